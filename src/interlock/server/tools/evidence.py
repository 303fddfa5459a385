"""The arguments with evidence and preferences, and their checks before a use case runs."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from interlock.engine.request import PreferenceDelta, is_sample
from interlock.kernel.budgets import ARTIFACT_DEPTH_MAX, ARTIFACTS_MAX, NOTES_INPUT_BYTES_MAX
from interlock.kernel.canonical import Json, NotCanonicalError, canonical_bytes, nests_deeper_than
from interlock.kernel.text import utf8_bytes
from interlock.server.tools.contract import Fault, ObjectArgument, too_large


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
        list[dict[str, JsonValue]] | None,
        Field(
            description="Structured evidence, if the step asks for it: objects, each with a `kind`. Always allowed:"
            " `wr.workflow_divergence` (`reason`, `summary`) if you deviated from the step on purpose, and"
            " `wr.confirmation` (`confirmedBy`, `statement`) if an answer shows it and a person did confirm."
        ),
    ] = None


NESTED: dict[str, type[ObjectArgument]] = {"output": OutputArgument, "preferences": PreferencesArgument}
"""The arguments that are objects with members of their own."""


def preference_delta(argument: PreferencesArgument | None) -> PreferenceDelta:
    """Return the change of preferences that a call asks for."""
    if argument is None:
        return PreferenceDelta()
    return PreferenceDelta(autonomy=argument.autonomy, risk_policy=argument.risk_policy)


def evidence_faults(output: OutputArgument | None, artifact_bytes_max: int) -> Iterator[Fault]:
    """Yield the faults of notes and artifacts that do not depend on the step."""
    if output is None:
        return
    notes, artifacts = output.notes_markdown or "", output.artifacts or []
    if utf8_bytes(notes) > NOTES_INPUT_BYTES_MAX:
        yield too_large("output.notesMarkdown", utf8_bytes(notes), NOTES_INPUT_BYTES_MAX)
    if any("\ud800" <= char <= "\udfff" for char in notes):
        yield Fault("output.notesMarkdown", "The text contains half of a surrogate pair.", "Send valid Unicode text.")
    if len(artifacts) > ARTIFACTS_MAX:
        yield Fault("output.artifacts", f"Found {len(artifacts)} artifacts.", f"Send at most {ARTIFACTS_MAX}.")
    for at, artifact in enumerate(artifacts):
        yield from _artifact_faults(f"output.artifacts[{at}]", artifact, artifact_bytes_max)


def _artifact_faults(path: str, artifact: dict[str, Json], bytes_max: int) -> Iterator[Fault]:
    if not isinstance(artifact.get("kind"), str) or is_sample(artifact["kind"]):
        yield Fault(f"{path}.kind", "An artifact needs a `kind`: a string.", 'Add it, for example "kind": "report".')
    if nests_deeper_than(artifact, ARTIFACT_DEPTH_MAX):
        yield Fault(path, f"It is nested deeper than {ARTIFACT_DEPTH_MAX} levels.", "Flatten it.")
    try:
        size = len(canonical_bytes(artifact))
    except NotCanonicalError as error:
        at = f"{path}.{error.path}".rstrip(".")
        yield Fault(at, f"Found {error.found}.", "Send it as text.")
        return
    if size > bytes_max:
        yield too_large(path, size, bytes_max)
