"""The syntax of what goes out and what comes in, in native workflow files: intents, and steps that wait for events."""

from typing import Annotated, Literal

from pydantic import Field

from interlock.define.native.condition_forms import ComputeForm, ConditionForm, SetActionForm
from interlock.define.parts import CheckName, ContextPath, DeclaredKey, LongText, SafeId, Title
from interlock.kernel.budgets.workflow import EMITS_PER_STEP_MAX, EVENT_FIELDS_MAX
from interlock.kernel.canonical import Json
from interlock.kernel.shape.mirror import Form
from interlock.record.world import Assurance, OutsideKind


class EmitFieldForm(Form):
    """A field of an intent: exactly one of `value`, `from` and `compute`."""

    value: Json = Field(default=None, description="a fixed value: a string, a number or a boolean")
    source: Annotated[
        ContextPath | None,
        Field(alias="from", description="the path of the value: in the context, `artifact`, `assessments` or `event`"),
    ] = None
    compute: ComputeForm | None = Field(default=None, description="a computed value")


class EmitForm(Form):
    """Something that a channel of the user's configuration sends outside when the step is done, at most once."""

    kind: OutsideKind = Field(description="its kind, `namespace.name`; exactly one channel must accept it")
    fields: Annotated[
        dict[DeclaredKey, EmitFieldForm], Field(max_length=EVENT_FIELDS_MAX, description="what is sent, by name")
    ] = Field(default_factory=dict)
    when: ConditionForm | None = Field(default=None, description="send it only if this is true; if omitted, always")
    once: Literal["run"] | None = Field(
        default=None, description="`run`: at most once in the run, whatever is repeated or forked"
    )
    mirror: Annotated[
        dict[DeclaredKey, DeclaredKey],
        Field(max_length=EVENT_FIELDS_MAX, description="context keys that are set to fields of it: key to field"),
    ] = Field(default_factory=dict)


Duration = Annotated[str, Field(pattern=r"^[1-9][0-9]{0,5}[smhd]$")]
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 24 * 3600}


def seconds_of(duration: str) -> int:
    """Return the seconds of a duration such as `30m`: a number and a unit."""
    return int(duration[:-1]) * _SECONDS[duration[-1]]


class AwaitForm(Form):
    """A step that waits for an event from outside. Nobody does it: it is done when the event is there."""

    type: Literal["await"] = Field(description="`await`")
    id: SafeId = Field(description="its id in the plan, the log and diagnostics")
    title: Title = Field(description="its title, in one line; may contain `{{key}}`")
    event: OutsideKind = Field(description="the kind of the event, `namespace.name`")
    fields: Annotated[
        dict[DeclaredKey, Literal["string", "number", "boolean"]],
        Field(max_length=EVENT_FIELDS_MAX, description="the fields that the event must have, each with its type"),
    ] = Field(default_factory=dict)
    assurance: Assurance = Field(
        default="claimed",
        description="how well the event must be known: `claimed` by an agent, `observed` by a command, `signed` by a"
        " source, or `executed` by Interlock",
    )
    timeout: Duration | None = Field(
        default=None, description="how long it waits, such as `30m`, `2h` or `7d`; if omitted, without end"
    )
    prompt: LongText | None = Field(default=None, description="what the agent should know while it waits")
    when: ConditionForm | None = Field(default=None, description="the step is skipped unless this is true")
    set: Annotated[
        tuple[SetActionForm, ...],
        Field(
            max_length=50,
            strict=False,
            description="context keys that are set when the event is there; `event.<field>` reads it, and"
            " `event.expired` says whether the time has passed",
        ),
    ] = ()
    emit: Annotated[
        tuple[EmitForm, ...],
        Field(max_length=EMITS_PER_STEP_MAX, strict=False, description="what is sent outside then"),
    ] = ()


class CheckForm(Form):
    """A step that Interlock does itself: it runs a command of the user's configuration and records the result."""

    type: Literal["check"] = Field(description="`check`")
    id: SafeId = Field(description="its id in the plan, the log and diagnostics")
    title: Title = Field(description="its title, in one line; may contain `{{key}}`")
    run: CheckName = Field(
        description="a check of `config.toml`, or of the project's `.interlock/checks.toml`, by name"
    )
    prompt: LongText | None = Field(default=None, description="what the agent should know while it runs")
    when: ConditionForm | None = Field(default=None, description="the step is skipped unless this is true")
    set: Annotated[
        tuple[SetActionForm, ...],
        Field(
            max_length=50,
            strict=False,
            description="context keys that are set with the result: `event.passed`, `event.exit`, `event.seconds`,"
            " `event.output` and others; if one of them reads `event.passed` or `event.exit`, the step is done with any"
            " result, otherwise only when the check passes",
        ),
    ] = ()
    emit: Annotated[
        tuple[EmitForm, ...],
        Field(max_length=EMITS_PER_STEP_MAX, strict=False, description="what is sent outside then"),
    ] = ()


class ApproveForm(Form):
    """A step that a person decides before the work continues: through the client, or with a command."""

    type: Literal["approve"] = Field(description="`approve`")
    id: SafeId = Field(description="its id in the plan, the log and diagnostics")
    title: Title = Field(description="its title, in one line; may contain `{{key}}`")
    question: Annotated[str, Field(min_length=1, max_length=1000, description="what the person decides")]
    show: Annotated[
        tuple[ContextPath, ...],
        Field(
            max_length=20,
            strict=False,
            description="what the person sees: `notes.<step>`, `artifact.<step>`, `check.<step>`, or a context path",
        ),
    ] = ()
    choices: Annotated[
        tuple[SafeId, ...],
        Field(
            min_length=2,
            max_length=10,
            strict=False,
            description="the possible answers: the first approves, every other one rejects",
        ),
    ] = ("approve", "reject")
    expires: Duration | None = Field(
        default=None, description="how long it can be answered, such as `24h`; if omitted, without end"
    )
    note: Literal["required"] | None = Field(default=None, description="`required`: a rejection needs a note")
    assurance: Assurance = Field(
        default="observed",
        description="how well the answer must be known; with `claimed`, an agent may say that a person approved",
    )
    prompt: LongText | None = Field(default=None, description="what the agent should know while it waits")
    when: ConditionForm | None = Field(default=None, description="the step is skipped unless this is true")
    set: Annotated[
        tuple[SetActionForm, ...],
        Field(
            max_length=50,
            strict=False,
            description="context keys that are set with the answer: `event.choice`, `event.approved`, `event.note`; if"
            " one reads `event.choice` or `event.approved`, the step is done with any answer, otherwise when approved",
        ),
    ] = ()
    emit: Annotated[
        tuple[EmitForm, ...],
        Field(max_length=EMITS_PER_STEP_MAX, strict=False, description="what is sent outside then"),
    ] = ()
