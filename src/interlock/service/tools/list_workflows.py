"""`list_workflows`: what can be started, what cannot and why. Writes nothing."""

from dataclasses import dataclass
from pathlib import Path

from interlock.define.document import count_steps
from interlock.define.workflow_ids import classify_id
from interlock.engine.answer.model import Answer
from interlock.kernel.budgets import LIST_DESCRIPTION_BYTES_MAX, LIST_ENTRIES_MAX
from interlock.kernel.canonical import Json
from interlock.kernel.text import one_line, tokens
from interlock.service.catalog import Catalog, CatalogView, Entry, RefusedFile


@dataclass(frozen=True, slots=True, kw_only=True)
class ListCommand:
    """A parsed call; `query` words must all occur, `tag` must be one of a workflow's tags."""

    workspace: Path | None
    query: str | None = None
    tag: str | None = None


def list_workflows(catalog: Catalog, command: ListCommand, *, entries_max: int = LIST_ENTRIES_MAX) -> Answer:
    """Return the workflows that match and the files that were refused, at most so many of each."""
    view = catalog.view(command.workspace)
    matching = [entry for _, entry in sorted(view.entries.items()) if matches(entry, command)]
    shown, more = matching[:entries_max], max(0, len(matching) - entries_max)
    refused, unshown = view.refused[:entries_max], max(0, len(view.refused) - entries_max)
    structure: dict[str, Json] = {"workflows": [_entry(view, entry) for entry in shown]}
    if more:
        structure["more"] = more
    if refused:
        structure["refused"] = [_refused(file) for file in refused]
    if unshown:
        structure["moreRefused"] = unshown
    listed = [_line(view, entry) for entry in shown]
    return Answer(structure=structure, text=_text(listed, more, refused, unshown))


def matches(entry: Entry, command: ListCommand) -> bool:
    """Say whether a workflow is one that was asked for."""
    document = entry.document
    if command.tag is not None and command.tag not in document.tags:
        return False
    if command.query is None:
        return True
    words = " ".join(
        (document.id.replace(".", " ").replace("_", " "), document.id, document.name, document.description)
    )
    have = tokens(words) | set(document.tags)
    wanted = tokens(command.query)
    return bool(wanted) and wanted <= have


def _entry(view: CatalogView, entry: Entry) -> dict[str, Json]:
    document = entry.document
    listed: dict[str, Json] = {
        "workflowId": document.id,
        "name": document.name,
        "description": one_line(document.description, LIST_DESCRIPTION_BYTES_MAX),
        "tags": list(document.tags),
        "steps": count_steps(document),
        "sourceKind": entry.source.kind,
        "idStatus": classify_id(document.id) or "legacy",
    }
    suggested = view.suggested(entry)
    return listed | ({"suggestedId": suggested} if suggested else {})


def _refused(file: RefusedFile) -> dict[str, Json]:
    refused: dict[str, Json] = {
        "source": file.source.ref,
        "sourceKind": file.source.kind,
        "diagnostic": file.diagnostics[0].to_json(),
    }
    return refused | ({"workflowId": file.workflow_id} if file.workflow_id else {})


def _line(view: CatalogView, entry: Entry) -> str:
    document = entry.document
    tags = f" [{', '.join(document.tags)}]" if document.tags else ""
    suggested = view.suggested(entry)
    rename = f" Rename it to `{suggested}`." if suggested else ""
    described = one_line(document.description, LIST_DESCRIPTION_BYTES_MAX)
    return f"- `{entry.workflow_id}` {document.name} ({count_steps(document)} steps){tags}: {described}{rename}"


def _text(listed: list[str], more: int, refused: tuple[RefusedFile, ...], unshown: int) -> str:
    lines = listed or ["No workflow matches. Call `list_workflows` without arguments for all of them."]
    if more:
        lines = [*lines, f"- {more} more; narrow with `query` or `tag`."]
    if refused:
        lines = [*lines, "\nCannot be started:"]
        lines += [f"- {file.source.ref} ({file.source.kind}): {file.diagnostics[0].render_line()}" for file in refused]
    if unshown:
        lines = [*lines, f"- {unshown} more files that cannot be started"]
    if listed:
        lines = [*lines, "\nBegin one with `start_workflow` and its `workflowId`."]
    return "\n".join(lines)
