"""The workflow document as authors write it, and its parsing: untrusted to typed, every fault reported.

First cut of the native language: plain steps. All keys are camelCase; nothing else is accepted.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from interlock.define.diagnostics import Diagnostic, DiagnosticCode, Diagnostics, did_you_mean, fault
from interlock.define.workflow_ids import id_status
from interlock.kernel.budgets import DESCRIPTION_CHARS_MAX, PROMPT_BYTES_MAX, STEPS_MAX, TITLE_CHARS_MAX
from interlock.kernel.canonical import Json

_Title = Annotated[str, Field(min_length=1, max_length=TITLE_CHARS_MAX)]
_Text = Annotated[str, Field(min_length=1, max_length=PROMPT_BYTES_MAX)]
_Tag = Annotated[str, Field(pattern=r"^[a-z0-9_-]+$", max_length=64)]
_Lines = Annotated[tuple[_Text, ...], Field(max_length=100, strict=False)]


class Authored(BaseModel):
    """A part of a document: strict, and closed to unknown keys."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        alias_generator=to_camel,
        validate_by_name=False,
        validate_by_alias=True,
        defer_build=True,
    )


class PromptBlocks(Authored):
    """A prompt in parts; each part becomes a section of the rendered prompt."""

    goal: _Text
    constraints: _Lines = ()
    procedure: _Lines = ()
    output_required: _Lines = ()
    verify: _Lines = ()


class Reference(Authored):
    """Material that a workflow points at; it is named to the agent, never fetched."""

    id: Annotated[str, Field(pattern=r"^[a-z0-9_-]+$", max_length=128)]
    title: _Title
    source: Annotated[str, Field(min_length=1, max_length=1000)]
    purpose: Annotated[str, Field(min_length=1, max_length=1000)]
    authoritative: bool = False


class Step(Authored):
    """One unit of work for an agent, with a prompt and, by default, notes as its evidence."""

    id: Annotated[str, Field(pattern=r"^[a-z0-9_-]+$", max_length=128)]
    title: _Title
    prompt: _Text | None = None
    prompt_blocks: PromptBlocks | None = None
    agent_role: _Text | None = None
    guidance: _Lines = ()
    require_confirmation: bool = False
    notes: Literal["required", "optional"] = "required"


class WorkflowDocument(Authored):
    """A whole workflow."""

    id: Annotated[str, Field(min_length=1, max_length=128)]
    name: _Title
    description: Annotated[str, Field(max_length=DESCRIPTION_CHARS_MAX)] = ""
    tags: Annotated[
        tuple[Annotated[str, Field(pattern=r"^[a-z0-9_-]+$", max_length=64)], ...], Field(strict=False)
    ] = ()
    agent_role: _Text | None = None
    guidance: _Lines = ()
    references: Annotated[tuple[Reference, ...], Field(max_length=50, strict=False)] = ()
    steps: Annotated[tuple[Step, ...], Field(min_length=1, max_length=STEPS_MAX, strict=False)]


def parse_workflow(value: dict[str, Json]) -> WorkflowDocument | Diagnostics:
    """Return the document that a value holds, or every fault that keeps it from being one."""
    try:
        document = WorkflowDocument.model_validate(value)
    except ValidationError as error:
        return tuple(
            _diagnostic(fields["loc"], fields["type"], value, fields["msg"])
            for fields in error.errors(include_url=False, include_input=False, include_context=False)
        )
    faults = [*_id_faults(document), *_step_faults(document)]
    return tuple(faults) if faults else document


def _id_faults(document: WorkflowDocument) -> list[Diagnostic]:
    if id_status(document.id) is not None:
        return []
    return [
        fault("id", "bad_id", f"{document.id!r} is not a workflow id.", "Use `namespace.name`, lower case, one dot.")
    ]


def _step_faults(document: WorkflowDocument) -> list[Diagnostic]:
    faults: list[Diagnostic] = []
    first_at: dict[str, int] = {}
    for at, step in enumerate(document.steps):
        here = f"steps[{at}]"
        if step.id in first_at:
            twin = f"steps[{first_at[step.id]}]"
            faults.append(fault(f"{here}.id", "duplicate_id", f"{step.id!r} is the id of {twin} too.", "Rename one."))
        first_at.setdefault(step.id, at)
        if step.prompt is None and step.prompt_blocks is None:
            faults.append(fault(here, "prompt_missing", "The step says nothing.", "Add `prompt` or `promptBlocks`."))
        if step.prompt is not None and step.prompt_blocks is not None:
            faults.append(fault(here, "prompt_twice", "It has `prompt` and `promptBlocks`.", "Keep one of them."))
    return faults


_WORDS: dict[str, tuple[DiagnosticCode, str]] = {
    "missing": ("missing_key", "Add it."),
    "string_type": ("wrong_type", "Write a text."),
    "bool_type": ("wrong_type", "Write true or false."),
    "tuple_type": ("wrong_type", "Write a list."),
    "list_type": ("wrong_type", "Write a list."),
    "model_type": ("wrong_type", "Write an object."),
    "model_attributes_type": ("wrong_type", "Write an object."),
    "string_too_short": ("empty", "Write something."),
    "too_short": ("empty", "Add at least one entry."),
    "string_too_long": ("too_long", "Shorten it."),
    "too_long": ("too_many", "Use fewer entries."),
    "string_pattern_mismatch": ("bad_id", "Use only a-z, 0-9, `_` and `-`."),
    "literal_error": ("wrong_value", "Use one of the allowed values."),
}


def _diagnostic(loc: tuple[int | str, ...], kind: str, document: dict[str, Json], said: str) -> Diagnostic:
    path = document_path(loc)
    if kind == "extra_forbidden":
        key = str(loc[-1])
        guess = did_you_mean(key, _keys_at(loc[:-1]))
        fix = f"Did you mean `{guess}`?" if guess else "Remove it."
        return fault(path, "unknown_key", f"The key {key!r} is not known here.", fix)
    code, fix = _WORDS.get(kind, ("wrong_value", "Correct it."))
    if code == "bad_id" and isinstance(value := value_at(document, loc), str):
        fix += f" For example `{safe_id(value)}`."
    if code == "missing_key":
        return fault(path, code, f"The key {str(loc[-1])!r} is missing.", fix)
    found = _found(document, loc)
    return fault(path, code, f"Found {found}: {said[:1].lower()}{said[1:]}.", fix)


def document_path(loc: tuple[int | str, ...]) -> str:
    """Return a location as authors read it: `steps[3].promptBlocks.goal`."""
    path = ""
    for part in loc:
        path += f"[{part}]" if isinstance(part, int) else (f".{part}" if path else part)
    return path


def _keys_at(loc: tuple[int | str, ...]) -> list[str]:
    model: type[Authored] = WorkflowDocument
    nested: dict[str, type[Authored]] = {"steps": Step, "promptBlocks": PromptBlocks, "references": Reference}
    for part in loc:
        model = nested.get(str(part), model)
    return [field.alias or name for name, field in model.model_fields.items()]


def safe_id(text: str) -> str:
    """Return the delimiter-safe id that most resembles a text."""
    return re.sub(r"[^a-z0-9_-]+", "-", text.lower()).strip("-")[:128] or "step"


def value_at(document: Mapping[str, Json], loc: tuple[int | str, ...]) -> object:
    """Return what stands at a location of a JSON value, or None where nothing does."""
    value: object = document
    for part in loc:
        if isinstance(value, Mapping):
            value = cast("Mapping[str, object]", value).get(str(part))
        elif isinstance(value, list) and isinstance(part, int):
            value = cast("list[object]", value)[part]
    return cast("object", value)


def _found(document: dict[str, Json], loc: tuple[int | str, ...]) -> str:
    match value := value_at(document, loc):
        case str():
            return repr(value if len(value) <= 60 else value[:57] + "…")  # noqa: PLR2004 — enough to find it
        case dict():
            return "an object"
        case list():
            return "a list"
        case None:
            return "null"
        case _:
            return repr(value)
