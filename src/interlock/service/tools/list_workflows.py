"""`list_workflows`: the workflows that can be started, and the refused files with the reason. Writes nothing."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from interlock.define.workflow_ids import classify_id
from interlock.engine.answer.model import Answer
from interlock.engine.answer.structure import DiagnosticOut
from interlock.engine.published import Published
from interlock.kernel.budgets import LIST_DESCRIPTION_BYTES_MAX, LIST_ENTRIES_MAX
from interlock.kernel.frozen import frozen
from interlock.kernel.matching import Closeness, Words, match_texts
from interlock.kernel.shape import described
from interlock.kernel.text import one_line
from interlock.service.workflows.catalog import Catalog, CatalogView, Entry, RefusedFile, describe_missing_workspace


@frozen
class ListCommand:
    """A parsed call; a workflow matches if it contains all words of `query` and has the tag `tag`.

    `is_workspace_sent`: the caller named the workspace.
    """

    workspace: Path | None
    is_workspace_sent: bool = False
    query: str | None = None
    tag: str | None = None


class ReplacedFile(Published):
    """A file with the same id in a farther source, which is not used."""

    source: str
    source_kind: str


class ListedWorkflow(Published):
    """A workflow that can be started."""

    workflow_id: str
    name: str
    description: str
    tags: tuple[str, ...]
    steps: int
    source_kind: str
    id_status: Literal["namespaced", "legacy"]
    replaces: ReplacedFile | None = None


class RefusedOut(Published):
    """A file that holds no workflow that can be started."""

    source: str
    source_kind: str
    diagnostic: DiagnosticOut
    workflow_id: str | None = None


class ListAnswer(Published):
    """Answer of `list_workflows`."""

    workflows: tuple[ListedWorkflow, ...]
    reason: Annotated[str | None, described("Why the list is not what was searched for.")] = None
    more: int | None = None
    refused: tuple[RefusedOut, ...] | None = None
    more_refused: int | None = None


def list_workflows(catalog: Catalog, command: ListCommand, *, entries_max: int = LIST_ENTRIES_MAX) -> Answer:
    """Return the matching workflows and the refused files, at most `entries_max` of each.

    If nothing matches, return all workflows and say so: an agent that finds nothing gives up (SRC-8).
    """
    view = catalog.view(command.workspace)
    every = [entry for _, entry in sorted(view.entries.items())]
    matching, closeness = matching_entries(every, command)
    reason = _NO_MATCH if every and not matching else _APPROXIMATE.get(closeness) if closeness is not None else None
    missing = describe_missing_workspace(command.workspace, is_sent=command.is_workspace_sent)
    reason = " ".join(filter(None, (missing, reason))) or None
    matching = matching or every
    shown, more = matching[:entries_max], max(0, len(matching) - entries_max)
    refused, unshown = view.refused[:entries_max], max(0, len(view.refused) - entries_max)
    data = ListAnswer(
        workflows=tuple(_entry(view, one) for one in shown),
        reason=reason,
        more=more or None,
        refused=tuple(map(_refused, refused)) or None,
        more_refused=unshown or None,
    )
    head = [f"{reason}\n"] if reason is not None else []
    return Answer(
        data=data, text="\n".join([*head, _text([_line(view, one) for one in shown], more, refused, unshown)])
    )


_APPROXIMATE = {
    Closeness.SLIPS: "No workflow has these words; these have them if one letter is wrong.",
    Closeness.SOME: "No workflow has all of these words; these have the most of them.",
}
_NO_MATCH = "No workflow matches; these are all workflows."


def matching_entries(entries: Sequence[Entry], command: ListCommand) -> tuple[list[Entry], Closeness | None]:
    """Return the workflows that match the call's query and tag, the best matches first, and how well they match.

    Names, ids, tags, keywords, descriptions and examples are searched.
    """
    tagged = [entry for entry in entries if command.tag is None or command.tag in entry.listing.tags]
    if command.query is None:
        return tagged, Closeness.WORDS
    query = Words.of(command.query)
    named = match_texts(query, [_called(entry) for entry in tagged])
    whole = match_texts(query, [_searched_text(entry) for entry in tagged])
    # What a workflow is called says more than a word of its description.
    ranks = [
        (close, name is None, at)
        for at, (close, name) in enumerate(zip(whole, named, strict=True))
        if close is not None
    ]
    ranks.sort()
    return [tagged[at] for _, _, at in ranks], ranks[0][0] if ranks else None


def _called(entry: Entry) -> str:
    """Return what a workflow is called, by its author and by those who want it."""
    return "\n".join((entry.workflow_id, entry.listing.name, *entry.listing.tags, *entry.listing.keywords))


def _searched_text(entry: Entry) -> str:
    named = (entry.workflow_id.replace(".", " "), entry.listing.name, entry.listing.description)
    return "\n".join((*named, *entry.listing.tags, *entry.listing.keywords, *entry.listing.examples))


def _entry(view: CatalogView, entry: Entry) -> ListedWorkflow:
    replaced = view.replaced_by(entry)
    return ListedWorkflow(
        workflow_id=entry.workflow_id,
        name=entry.listing.name,
        description=one_line(entry.listing.description, LIST_DESCRIPTION_BYTES_MAX),
        tags=entry.listing.tags,
        steps=entry.listing.step_count,
        source_kind=entry.source.kind,
        id_status=classify_id(entry.workflow_id) or "legacy",
        replaces=ReplacedFile(source=replaced.ref, source_kind=replaced.kind) if replaced is not None else None,
    )


def _refused(file: RefusedFile) -> RefusedOut:
    return RefusedOut(
        source=file.source.ref,
        source_kind=file.source.kind,
        diagnostic=DiagnosticOut.of(file.faults[0]),
        workflow_id=file.workflow_id or None,
    )


def _line(view: CatalogView, entry: Entry) -> str:
    tags = f" [{', '.join(entry.listing.tags)}]" if entry.listing.tags else ""
    described = one_line(entry.listing.description, LIST_DESCRIPTION_BYTES_MAX)
    replaced = view.replaced_by(entry)
    instead = f" (used in place of {replaced.ref} of the {replaced.kind} source)" if replaced is not None else ""
    steps = f"({entry.listing.step_count} steps)"
    return f"- `{entry.workflow_id}` {entry.listing.name} {steps}{tags}{instead}: {described}"


def _text(listed: list[str], more: int, refused: tuple[RefusedFile, ...], unshown: int) -> str:
    lines = listed or ["No workflow can be started."]
    if more:
        lines = [*lines, f"- {more} more; narrow with `query` or `tag`."]
    if refused:
        lines = [*lines, "\nFiles with faults; no run can start from them:"]
        lines += [f"- {file.source.ref} ({file.source.kind}): {file.faults[0].render_line()}" for file in refused]
    if unshown:
        lines = [*lines, f"- {unshown} more files with faults"]
    if listed:
        lines = [*lines, "\nBegin one with `start_workflow` and its `workflowId`."]
    return "\n".join(lines)
