"""The workflow document as authors write it, and its parsing: untrusted to typed, every fault reported.

First cut of the native language: plain steps. All keys are camelCase; nothing else is accepted.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from interlock.define.diagnostics import Diagnostic, DiagnosticCode, Diagnostics, did_you_mean, fault
from interlock.define.workflow_ids import ID_CHARS_MAX, id_status
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
    faults: list[Diagnostic] = []
    document: WorkflowDocument | None = None
    try:
        document = WorkflowDocument.model_validate(value)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False, include_context=False)
        # Members at fault are left out before a list is counted, so a list of them alone seems empty.
        told = [one for one in found if not (one["type"] == "too_short" and value_at(value, one["loc"]))]
        faults = [_diagnostic(one["loc"], one["type"], value, one["msg"]) for one in told]
    # Judged on the value as it stands, so that no fault of form hides these.
    faults += _id_faults(value.get("id"))
    if not any(one.path == "steps" for one in faults):
        faults += _step_faults(value.get("steps"))
    return document if document is not None and not faults else tuple(faults)


def _id_faults(workflow_id: object) -> list[Diagnostic]:
    if not isinstance(workflow_id, str) or not workflow_id or len(workflow_id) > ID_CHARS_MAX:
        return []
    if id_status(workflow_id) is not None:
        return []
    message = f"{workflow_id!r} is not a workflow id."
    return [fault("id", "bad_id", message, "Use `namespace.name`, lower case, one dot.")]


def _step_faults(steps: object) -> list[Diagnostic]:
    faults: list[Diagnostic] = []
    first_at: dict[str, int] = {}
    for at, step in enumerate(cast("list[object]", steps) if isinstance(steps, list) else []):
        if not isinstance(step, dict):
            continue
        here, members = f"steps[{at}]", cast("dict[str, object]", step)
        step_id = members.get("id")
        if isinstance(step_id, str):
            if step_id in first_at:
                twin = f"steps[{first_at[step_id]}]"
                message = f"{step_id!r} is the id of {twin} too."
                faults.append(fault(f"{here}.id", "duplicate_id", message, f"Rename one, for example `{step_id}-2`."))
            first_at.setdefault(step_id, at)
        prompts = [name for name in ("prompt", "promptBlocks") if members.get(name) is not None]
        if not prompts:
            faults.append(fault(here, "prompt_missing", "The step says nothing.", "Add `prompt` or `promptBlocks`."))
        if len(prompts) > 1:
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
    if code == "wrong_type":
        return fault(path, code, f"Found {found}, which is of the wrong kind.", fix)
    if code in {"empty", "too_many"}:
        return fault(path, code, f"Found {found}, {'with nothing in it' if code == 'empty' else 'too long'}.", fix)
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
        case bool():
            return "true" if value else "false"
        case _:
            return repr(value)
