"""The arguments with evidence and preferences, and their checks before a use case runs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Literal, cast

from pydantic import Field, JsonValue, WithJsonSchema

from interlock.engine.ends import WORK_KIND, WORK_MEMBERS, parse_work
from interlock.engine.outside import EVENT_KIND, RESERVED, SentEvent, parse_event_artifact
from interlock.engine.request import MemberFault, PreferenceDelta, is_sample
from interlock.kernel.blanks import Blank
from interlock.kernel.budgets import ARTIFACT_DEPTH_MAX, ARTIFACTS_MAX, NOTES_INPUT_BYTES_MAX
from interlock.kernel.canonical import Json, NotCanonicalError, canonical_bytes, nests_deeper_than
from interlock.kernel.errors import Correction
from interlock.kernel.frozen import replace
from interlock.kernel.text import has_surrogate, render_path, utf8_bytes
from interlock.plan.builtins.packs import PACKS
from interlock.record.payloads import Work
from interlock.record.world import RECORDED_KINDS
from interlock.server.tools.contract import Fault, ObjectArgument, too_large

_ARTIFACT: dict[str, Json] = {
    "type": "object",
    "properties": {"kind": {"type": "string"}},
    "required": ["kind"],
    "additionalProperties": True,
}
"""As published. Without `kind` there, a small model wrote one artifact as several objects."""


class PreferencesArgument(ObjectArgument):
    """How much the run may do alone, and how cautious it is."""

    autonomy: Literal["guided", "full_auto_stop_on_user_deps", "full_auto_never_stop"] | None = None
    risk_policy: Literal["conservative", "balanced", "aggressive"] | None = None


class OutputArgument(ObjectArgument):
    """The evidence of this step."""

    notes_markdown: Annotated[
        str | None,
        Field(
            description="Markdown, this step only, 10 to 30 lines: what you did and decided; what you produced (files,"
            " paths, numbers); anything notable (risks, open questions, what you left out). Never repeat earlier steps."
        ),
    ] = None
    artifacts: Annotated[
        list[Annotated[dict[str, JsonValue], WithJsonSchema(_ARTIFACT)]] | None,
        Field(
            description="Structured evidence, if the step asks for it: objects, each with a `kind`. Always allowed:"
            " `wr.workflow_divergence` (`reason`, `summary`) if you deviated from the step on purpose, and"
            " `wr.confirmation` (`confirmedBy`, `statement`) if an answer shows it and a person did confirm. If the"
            " user drops the run: `wr.work_record` (`work`: `cancelled` or `failed`; `reason`; `note`) alone, with an"
            " `ackToken`; the user is asked. In a checkpoint its `work` is `released` or `failed`: you leave the step."
        ),
    ] = None


NESTED: dict[str, type[ObjectArgument]] = {"output": OutputArgument, "preferences": PreferencesArgument}
"""The arguments that are objects with members of their own."""


_MEMBERS_OF_KINDS: Mapping[str, frozenset[str]] = {
    **{
        pack.kind: frozenset(cast("Mapping[str, Json]", pack.schema["properties"]))
        for pack in PACKS.values()
        if pack.kind is not None and pack.schema is not None
    },
    WORK_KIND: frozenset(("kind", *WORK_MEMBERS)),
    EVENT_KIND: frozenset(("kind", *SentEvent.__struct_fields__)),
}


def members_of_kind(kind: str) -> frozenset[str]:
    """Return the members that the contract of a built-in kind of artifact declares; none for every other kind."""
    return _MEMBERS_OF_KINDS.get(kind, frozenset())


def preference_delta(argument: PreferencesArgument | None) -> PreferenceDelta:
    """Return the change of preferences that a call asks for."""
    if argument is None:
        return PreferenceDelta()
    return PreferenceDelta(autonomy=argument.autonomy, risk_policy=argument.risk_policy)


def evidence_faults(
    output: OutputArgument | None, artifact_bytes_max: int, *, takes_events: bool = False
) -> Iterator[Fault]:
    """Yield the faults of notes and artifacts that do not depend on the step, except those of work records."""
    if output is None:
        return
    notes, artifacts = output.notes_markdown or "", output.artifacts or []
    if utf8_bytes(notes) > NOTES_INPUT_BYTES_MAX:
        yield too_large("output.notesMarkdown", utf8_bytes(notes), NOTES_INPUT_BYTES_MAX)
    if has_surrogate(notes):
        yield Fault("output.notesMarkdown", "The text contains half of a surrogate pair.", "Send valid Unicode text.")
    if len(artifacts) > ARTIFACTS_MAX:
        place, blank = ("output", "artifacts"), Blank(what=f"your artifacts, at most {ARTIFACTS_MAX}", shape="list")
        fix, again = f"Send at most {ARTIFACTS_MAX}.", Correction(wrong=(place,), blanks={place: blank})
        yield Fault("output.artifacts", f"Found {len(artifacts)} artifacts.", fix, correction=again)
    for at, artifact in enumerate(artifacts):
        yield from _artifact_faults(at, artifact, artifact_bytes_max)
        yield from _kind_fault(at, artifact)
    yield from _event_faults(artifacts, takes_events=takes_events)


def member_correction(at: int, faults: Sequence[MemberFault]) -> Correction:
    """Return how to correct members of the artifact at a position."""
    blanks = {_member_path(at, one): one.blank for one in faults if one.blank is not None}
    return Correction(wrong=tuple(_member_path(at, one) for one in faults), blanks=blanks)


def work_faults(
    output: OutputArgument | None,
    works: Sequence[Work],
    correct: Callable[[int, Sequence[MemberFault]], Correction] = member_correction,
) -> Iterator[Fault]:
    """Yield the faults of the record of work, which must be one of `works`. A call has at most one."""
    artifacts = (output.artifacts if output is not None else None) or []
    records = [at for at, artifact in enumerate(artifacts) if artifact.get("kind") == WORK_KIND]
    for at in records:
        found = parse_work(artifacts[at], works)
        if isinstance(found, tuple):
            yield _fault_of_member(at, found[0], correct(at, found))
    if len(records) > 1:
        path, found = f"output.artifacts[{records[1]}]", f"This is the second `{WORK_KIND}` of the call."
        again = correct(records[0], ())
        if again.understood is None:
            again = replace(again, wrong=tuple(("output", "artifacts", at) for at in records[1:]))
        yield Fault(path, found, "Send one.", correction=again)


def _event_faults(artifacts: list[dict[str, Json]], *, takes_events: bool) -> Iterator[Fault]:
    for at, artifact in enumerate(artifacts):
        if artifact.get("kind") != EVENT_KIND:
            continue
        if not takes_events:
            fix = "Send it with `continue_workflow`."
            without = Correction(wrong=(("output", "artifacts", at),))
            yield Fault(f"output.artifacts[{at}]", f"A checkpoint records no `{EVENT_KIND}`.", fix, correction=without)
            continue
        found = parse_event_artifact(artifact)
        if isinstance(found, MemberFault):
            yield _fault_of_member(at, found, member_correction(at, [found]))


def _fault_of_member(at: int, found: MemberFault, correction: Correction) -> Fault:
    return Fault(render_path(_member_path(at, found)), found.found, found.fix, correction=correction)


def _member_path(at: int, found: MemberFault) -> tuple[int | str, ...]:
    return ("output", "artifacts", at, *found.member.split("."))


def _kind_fault(at: int, artifact: dict[str, Json]) -> Iterator[Fault]:
    """Refuse the kind of a record that Interlock alone makes: readers would take the artifact for such a record."""
    kind = artifact.get("kind")
    if isinstance(kind, str) and kind in RECORDED_KINDS:
        yield Fault(
            f"output.artifacts[{at}].kind",
            f"Found `{kind}`, which Interlock alone records.",
            f"Write the kind that the step asks for, or a kind of your own without `{RESERVED}` at its beginning.",
        )


def _artifact_faults(at: int, artifact: dict[str, Json], bytes_max: int) -> Iterator[Fault]:
    path = f"output.artifacts[{at}]"
    if not isinstance(artifact.get("kind"), str) or is_sample(artifact["kind"]):
        fix = "Add the kind that the step asks for. If it asks for no artifact, leave `artifacts` out."
        yield Fault(f"{path}.kind", "An artifact needs a `kind`: a string.", fix)
    if nests_deeper_than(artifact, ARTIFACT_DEPTH_MAX):
        yield Fault(path, f"It is nested deeper than {ARTIFACT_DEPTH_MAX} levels.", "Flatten it.")
    try:
        size = len(canonical_bytes(artifact))
    except NotCanonicalError as error:
        place = f"{path}.{error.path}".rstrip(".")
        again = _number_as_text(at, error.path, artifact.get(error.path))
        yield Fault(place, f"Found {error.found}.", "Send it as text.", correction=again)
        return
    if size > bytes_max:
        yield too_large(path, size, bytes_max)


def _number_as_text(at: int, member: str, value: Json) -> Correction | None:
    """Correct a number that has no canonical form; None if it is deeper in an artifact, so its member is left out."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    place = ("output", "artifacts", at, member)
    return Correction(wrong=(place,), blanks={place: Blank(choices=(str(value),))})
