"""The syntax of what goes out and what comes in, in native workflow files: intents, and steps that wait for events."""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, UnsetType

from interlock.define.native.condition_forms import ComputeForm, ConditionForm, SetActionForm
from interlock.define.parts import CheckName, ContextPath, DeclaredKey, LongText, Part, SafeId, Title
from interlock.kernel.budgets.workflow import EMITS_PER_STEP_MAX, EVENT_FIELDS_MAX
from interlock.kernel.canonical import Json
from interlock.kernel.shape import described, limits
from interlock.record.world import Assurance, OutsideKind


class EmitFieldForm(Part):
    """A field of an intent: exactly one of `value`, `from` and `compute`."""

    value: Annotated[Json | UnsetType, described("a fixed value: a string, a number or a boolean")] = UNSET
    source: Annotated[
        ContextPath | UnsetType | None,
        described("the path of the value: in the context, `artifact`, `assessments` or `event`"),
    ] = msgspec.field(default=UNSET, name="from")
    compute: Annotated[ComputeForm | UnsetType | None, described("a computed value")] = UNSET


class EmitForm(Part):
    """Something that a channel of the user's configuration sends outside when the step is done, at most once."""

    kind: Annotated[OutsideKind, described("its kind, `namespace.name`; exactly one channel must accept it")]
    fields: Annotated[
        dict[DeclaredKey, EmitFieldForm], *limits(max_length=EVENT_FIELDS_MAX, description="what is sent, by name")
    ] = msgspec.field(default_factory=dict)
    when: Annotated[ConditionForm | None, described("send it only if this is true; if omitted, always")] = None
    once: Annotated[
        Literal["run"] | None, described("`run`: at most once in the run, whatever is repeated or forked")
    ] = None
    mirror: Annotated[
        dict[DeclaredKey, DeclaredKey],
        *limits(max_length=EVENT_FIELDS_MAX, description="context keys that are set to fields of it: key to field"),
    ] = msgspec.field(default_factory=dict)


Duration = Annotated[str, *limits(pattern="^[1-9][0-9]{0,5}[smhd]$")]
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 24 * 3600}


def seconds_of(duration: str) -> int:
    """Return the seconds of a duration such as `30m`: a number and a unit."""
    return int(duration[:-1]) * _SECONDS[duration[-1]]


class AwaitForm(Part):
    """A step that waits for an event from outside. Nobody does it: it is done when the event is there."""

    type: Annotated[Literal["await"], described("`await`")]
    id: Annotated[SafeId, described("its id in the plan, the log and diagnostics")]
    title: Annotated[Title, described("its title, in one line; may contain `{{key}}`")]
    event: Annotated[OutsideKind, described("the kind of the event, `namespace.name`, such as `ci.finished`")]
    fields: Annotated[
        dict[DeclaredKey, Literal["string", "number", "boolean"]],
        *limits(max_length=EVENT_FIELDS_MAX, description="the fields that the event must have, each with its type"),
    ] = msgspec.field(default_factory=dict)
    assurance: Annotated[
        Assurance,
        described(
            "how well the event must be known: `claimed` by an agent, `observed` by a command, `signed` by a"
            " source, or `executed` by Interlock"
        ),
    ] = "claimed"
    timeout: Annotated[
        Duration | None, described("how long it waits, such as `30m`, `2h` or `7d`; if omitted, without end")
    ] = None
    prompt: Annotated[LongText | None, described("what the agent should know while it waits")] = None
    when: Annotated[ConditionForm | None, described("the step is skipped unless this is true")] = None
    set: Annotated[
        tuple[SetActionForm, ...],
        *limits(
            max_length=50,
            strict=False,
            description="context keys that are set when the event is there; `event.<field>` reads it, and"
            " `event.expired` says whether the time has passed",
        ),
    ] = ()
    emit: Annotated[
        tuple[EmitForm, ...],
        *limits(max_length=EMITS_PER_STEP_MAX, strict=False, description="what is sent outside then"),
    ] = ()


class CheckForm(Part):
    """A step that Interlock does itself: it runs a command of the user's configuration and records the result."""

    type: Annotated[Literal["check"], described("`check`")]
    id: Annotated[SafeId, described("its id in the plan, the log and diagnostics")]
    title: Annotated[Title, described("its title, in one line; may contain `{{key}}`")]
    run: Annotated[
        CheckName,
        described("the name of a check in `config.toml`, or in the project's `.interlock/checks.toml`; no command"),
    ]
    prompt: Annotated[LongText | None, described("what the agent should know while it runs")] = None
    when: Annotated[ConditionForm | None, described("the step is skipped unless this is true")] = None
    set: Annotated[
        tuple[SetActionForm, ...],
        *limits(
            max_length=50,
            strict=False,
            description="context keys that are set with the result: `event.passed`, `event.exit`, `event.seconds`,"
            " `event.output` and others; if one of them reads `event.passed` or `event.exit`, the step is done"
            " with any result, otherwise only when the check passes",
        ),
    ] = ()
    emit: Annotated[
        tuple[EmitForm, ...],
        *limits(max_length=EMITS_PER_STEP_MAX, strict=False, description="what is sent outside then"),
    ] = ()


class ApproveForm(Part):
    """A step that a person decides before the work continues: through the client, or with a command."""

    type: Annotated[Literal["approve"], described("`approve`")]
    id: Annotated[SafeId, described("its id in the plan, the log and diagnostics")]
    title: Annotated[Title, described("its title, in one line; may contain `{{key}}`")]
    question: Annotated[str, *limits(min_length=1, max_length=1000, description="what the person decides")]
    show: Annotated[
        tuple[ContextPath, ...],
        *limits(
            max_length=20,
            strict=False,
            description="what the person sees: `notes.<step>`, `artifact.<step>`, `check.<step>`, or a context path",
        ),
    ] = ()
    choices: Annotated[
        tuple[SafeId, ...],
        *limits(
            min_length=2,
            max_length=10,
            strict=False,
            description="the possible answers: the first approves, every other one rejects",
        ),
    ] = ("approve", "reject")
    expires: Annotated[
        Duration | None, described("how long it can be answered, such as `24h`; if omitted, without end")
    ] = None
    note: Annotated[Literal["required"] | None, described("`required`: a rejection needs a note")] = None
    assurance: Annotated[
        Assurance,
        described("how well the answer must be known; with `claimed`, an agent may say that a person approved"),
    ] = "observed"
    prompt: Annotated[LongText | None, described("what the agent should know while it waits")] = None
    when: Annotated[ConditionForm | None, described("the step is skipped unless this is true")] = None
    set: Annotated[
        tuple[SetActionForm, ...],
        *limits(
            max_length=50,
            strict=False,
            description="context keys that are set with the answer: `event.choice`, `event.approved`, `event.note`; if"
            " one reads `event.choice` or `event.approved`, the step is done with any answer, otherwise when approved",
        ),
    ] = ()
    emit: Annotated[
        tuple[EmitForm, ...],
        *limits(max_length=EMITS_PER_STEP_MAX, strict=False, description="what is sent outside then"),
    ] = ()
