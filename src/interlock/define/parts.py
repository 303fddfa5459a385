"""Parts of a workflow that are the same in a document and in a plan: strict, frozen, without unknown keys."""

from typing import Annotated, ClassVar, Literal

import msgspec

from interlock.decide.condition import Condition
from interlock.decide.value import Given, Read, Value, iter_conditions
from interlock.kernel.budgets import (
    AWAIT_S_MAX,
    CONTEXT_KEY_BYTES_MAX,
    EVENT_TEXT_CHARS_MAX,
)
from interlock.kernel.budgets.workflow import (
    PROMPT_BYTES_MAX,
    PROOF_COMMAND_CHARS_MAX,
    STEP_ID_CHARS_MAX,
    TITLE_CHARS_MAX,
)
from interlock.kernel.canonical import Json
from interlock.kernel.shape import Shape, described, limits
from interlock.record.world import Assurance, OutsideKind

Hint = Annotated[str, *limits(min_length=1, max_length=100)]
"""A free tag of a step, for readers."""
Hints = Annotated[tuple[Hint, ...], *limits(max_length=20, strict=False)]
Metadata = Annotated[
    dict[Annotated[str, *limits(pattern=r"^[A-Za-z0-9_.-]+$", max_length=64)], Hint], *limits(max_length=20)
]
SafeId = Annotated[str, *limits(pattern=r"^[a-z0-9_-]+$", max_length=STEP_ID_CHARS_MAX)]
"""Delimiter-safe: it contains no delimiter of a step instance key (SNAP-3)."""
NAME_PATTERN = r"^[A-Za-z_][A-Za-z0-9_]*$"
Name = Annotated[str, *limits(pattern=NAME_PATTERN, max_length=64)]
Title = Annotated[str, *limits(min_length=1, max_length=TITLE_CHARS_MAX)]
LongText = Annotated[str, *limits(min_length=1, max_length=PROMPT_BYTES_MAX)]
Lines = Annotated[tuple[LongText, ...], *limits(max_length=100, strict=False)]
CheckName = Annotated[str, *limits(pattern=r"^[A-Za-z0-9_.-]+$", max_length=EVENT_TEXT_CHARS_MAX)]
"""The name of a check of the user's configuration."""
ContextKey = Annotated[str, *limits(min_length=1, max_length=CONTEXT_KEY_BYTES_MAX)]
DECLARED_KEY_PATTERN = r"^[A-Za-z_][A-Za-z0-9_-]*$"
DeclaredKey = Annotated[str, *limits(pattern=DECLARED_KEY_PATTERN, max_length=CONTEXT_KEY_BYTES_MAX)]
"""A context key that a document declares. It has no dot, because dots separate the parts of a path."""
ContextPath = Annotated[str, *limits(min_length=1, max_length=4 * CONTEXT_KEY_BYTES_MAX)]
"""A context key, or a dotted path into its value."""

CLARIFY = "Ask the user if it is not clear: "
"""How a line of guidance begins that names a question to clarify. It is compiled into plans."""

CapabilityName = Literal["delegation", "web_browsing"]
CapabilityNeed = Literal["required", "preferred", "disabled"]


class Part(Shape):
    """A part of a document. A field that has its default is not written."""

    is_described: ClassVar[bool] = False


class Reference(Part):
    """Material that a workflow refers to. The server names it to the agent and never fetches it."""

    id: Annotated[str, *limits(pattern=r"^[A-Za-z0-9_.-]+$", max_length=128, description="its name")]
    title: Annotated[Title, described("what it is")]
    source: Annotated[str, *limits(min_length=1, max_length=1000, description="where it is: a path or a URL")]
    purpose: Annotated[str, *limits(min_length=1, max_length=1000, description="what to use it for")]
    authoritative: Annotated[bool, described("whether it takes precedence over other sources")] = False


class Dimension(Part):
    """One thing that an assessment rates."""

    id: Annotated[str, *limits(pattern=r"^[A-Za-z0-9_-]+$", max_length=64, description="its name")]
    purpose: Annotated[str, *limits(min_length=1, max_length=256, description="what is rated")]
    levels: Annotated[
        tuple[Annotated[str, *limits(min_length=1, max_length=64)], ...],
        *limits(min_length=2, max_length=20, description="the levels to choose from"),
    ]
    required: Annotated[bool, described("whether it must be rated")] = True


class Assessment(Part):
    """A rating that a step asks for."""

    id: Annotated[
        str,
        *limits(
            pattern=r"^[A-Za-z0-9_-]+$",
            max_length=64,
            description="its name, for `assessmentRefs` and `assessments.<id>.<dimension>`",
        ),
    ]
    purpose: Annotated[str, *limits(min_length=1, max_length=512, description="what is rated")]
    dimensions: Annotated[
        tuple[Dimension, ...],
        *limits(min_length=1, max_length=20, description="the rated dimensions"),
    ]


class Parameter(Part):
    """A parameter of a function."""

    name: Annotated[Name, described("its name")]
    type: Annotated[Literal["string", "number", "boolean", "array", "object"], described("for readers")]
    required: Annotated[bool, described("for readers")] = False
    enum: Annotated[tuple[Json, ...], described("for readers")] = ()
    default: Annotated[Json, described("for readers")] = None
    description: Annotated[str | None, described("for readers")] = None


class FunctionDefinition(Part):
    """Named instructions. Steps refer to them as `name()`."""

    name: Annotated[Name, described("its name, without brackets")]
    definition: Annotated[LongText, described("the instructions")]
    parameters: Annotated[tuple[Parameter, ...], described("its parameters; the agent sees their names")] = ()
    scope: Annotated[
        Literal["workflow", "loop", "step"] | None, described("for readers; the place of the definition decides")
    ] = None


ValueType = Literal["string", "number", "boolean", "list", "object"]
"""The type of a context value."""
_Choices = Annotated[
    tuple[Json, ...],
    *limits(max_length=50, description="the allowed values; if omitted, any value of its type"),
]


class ItemField(Part):
    """A member of each item of a list of objects."""

    key: Annotated[DeclaredKey, described("its name")]
    type: Annotated[ValueType, described("the type of its value")]
    required: Annotated[bool, described("whether each item must have it")] = True
    choices: _Choices = ()


class ListItems(Part):
    """The items of a declared list."""

    type: Annotated[ValueType, described("the type of each item")]
    choices: _Choices = ()
    fields: Annotated[
        tuple[ItemField, ...],
        *limits(max_length=20, description="the members of each item; if omitted, any"),
    ] = ()
    min_items: Annotated[int, *limits(ge=0, le=1000, description="how many items the list has at least")] = 0


class ProducedKey(Part):
    """A context key that a step produces, with its declaration."""

    key: Annotated[DeclaredKey, described("the context key")]
    description: Annotated[
        str, *limits(min_length=1, max_length=1000, description="what it is, for the caller that sends it")
    ]
    type: Annotated[ValueType, described("the type of its value")]
    choices: _Choices = ()
    items: Annotated[ListItems | None, described("of a list: what each item is")] = None


class ContextInput(ProducedKey):
    """A context key that a run is started with."""

    required: Annotated[bool, described("whether a run must be started with it")] = False


def payload_of(value: Json, source: str | None, compute: Value | None) -> Value:
    """Return a computed value, the value at a path, or a constant: the first of these that is given."""
    if compute is not None:
        return compute
    return Given(op="constant", value=value) if source is None else Read(op="read", var=source)


class SetAction(Part):
    """A context key that is set when the step is done: to a constant, the value at a path, or a computed value."""

    key: DeclaredKey
    value: Json = None
    source: ContextPath | None = msgspec.field(default=None, name="from")
    compute: Value | None = None
    when: Condition | None = None

    @property
    def payload(self) -> Value:
        """What the key is set to."""
        return payload_of(self.value, self.source, self.compute)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The conditions of the action: its own, and those inside its value."""
        return (*((self.when,) if self.when is not None else ()), *iter_conditions(self.payload))


class EmitField(Part):
    """A field of an intent: a fixed value, the value at a path, or a computed value."""

    value: Json = None
    source: ContextPath | None = msgspec.field(default=None, name="from")
    compute: Value | None = None

    @property
    def payload(self) -> Value:
        """What the field is."""
        return payload_of(self.value, self.source, self.compute)


class EmitAction(Part):
    """An intent that is sent outside the server when the step is done.

    `once`: at most once in the run, whatever is forked or repeated. `mirror` maps context keys to the fields that they
    are set to.
    """

    kind: OutsideKind
    fields: dict[DeclaredKey, EmitField] = msgspec.field(default_factory=dict)
    when: Condition | None = None
    once: Literal["run"] | None = None
    mirror: dict[DeclaredKey, DeclaredKey] = msgspec.field(default_factory=dict)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The conditions of the action: its own, and those inside its fields."""
        own = (self.when,) if self.when is not None else ()
        return (*own, *(one for name in sorted(self.fields) for one in iter_conditions(self.fields[name].payload)))


DECISION_CHOICES = ("approve", "reject")
"""The choices of a question for which its author names none."""


class ApprovalAsk(Part):
    """A question that a person decides before the work. The first choice approves, every other one rejects.

    `show` names what the person sees: `notes.<step>`, `artifact.<step>`, `check.<step>`, or a path in the context.
    """

    question: Annotated[str, *limits(min_length=1, max_length=1000)]
    show: Annotated[tuple[ContextPath, ...], *limits(max_length=20)] = ()
    choices: Annotated[tuple[SafeId, ...], *limits(min_length=2, max_length=10)] = DECISION_CHOICES
    needs_note: bool = False

    @property
    def has_several(self) -> bool:
        """Whether approving or rejecting alone does not name the choice: one of the two verbs has several."""
        return len(self.choices) > len(DECISION_CHOICES)


class AwaitEvent(Part):
    """The event that a step waits for: its kind, its fields, how well it must be known, and for how long.

    `check` names the check whose result it is, `approval` is the question that it answers. `must` is a field that has
    to be true; otherwise the step still waits.
    """

    event: OutsideKind
    fields: dict[DeclaredKey, Literal["string", "number", "boolean"]] = msgspec.field(default_factory=dict)
    assurance: Assurance = "claimed"
    timeout_s: Annotated[int, *limits(ge=1, le=AWAIT_S_MAX)] | None = None
    check: CheckName | None = None
    approval: ApprovalAsk | None = None
    must: DeclaredKey | None = None


INPUTS = "inputs."
"""How the path of a command begins that a run was started with."""


class ProofCommand(Part):
    """The command of a proof: a fixed `value`, or the input `inputs.KEY` as the run was started with it."""

    value: Annotated[
        Annotated[str, *limits(min_length=1, max_length=PROOF_COMMAND_CHARS_MAX)] | None, described("the command line")
    ] = None
    source: Annotated[
        ContextPath | None,
        described("`inputs.KEY`: the value with which the run was started; without one, no proof is demanded"),
    ] = msgspec.field(default=None, name="from")


class Proof(Part):
    """A receipt that a report needs: `interlock witness` saw that a command ended like this."""

    command: Annotated[ProofCommand, described("the command: exactly one of `value` and `from`")]
    exit: Annotated[int, *limits(ge=0, le=255, description="the exit code that it must have")] = 0
    assurance: Annotated[
        Literal["claimed", "observed"],
        described("how well it must be known: `claimed` by a command of an agent, or `observed` by one of a person"),
    ] = "observed"
    tree: Annotated[
        Literal["unchanged"] | None,
        described("`unchanged`: no file of the git working tree has changed since the command ended"),
    ] = None
    verdict: Annotated[
        Annotated[str, *limits(min_length=1, max_length=64)] | None,
        described("the proof is demanded only if the reported artifact has this `verdict`, such as `passed`"),
    ] = None


class UserNeed(Part):
    """Something that only the user can provide (MODE-1)."""

    reason: Annotated[
        Literal[
            "needs_user_secret_or_token",
            "needs_user_account_access",
            "needs_user_artifact",
            "needs_user_choice",
            "needs_user_approval",
            "needs_user_environment_action",
        ],
        described("what only the user can provide"),
    ]
    ask: Annotated[str, *limits(min_length=1, max_length=1000, description="the question to the user")]
    choice_kind: Annotated[
        (
            Literal[
                "preference_tradeoff",
                "scope_boundary",
                "irreversible_action",
                "external_side_effect",
                "policy_or_compliance",
            ]
            | None
        ),
        described("the kind of choice; `needs_user_choice` must have one"),
    ] = None


class RecommendedPreferences(Part):
    """Preferences that the author recommends. A run that exceeds them gets a warning, but continues (MODE-5)."""

    recommended_autonomy: Annotated[
        Literal["guided", "full_auto_stop_on_user_deps", "full_auto_never_stop"] | None,
        described("how far the agent may continue without the user"),
    ] = None
    recommended_risk_policy: Annotated[
        Literal["conservative", "balanced", "aggressive"] | None, described("how much risk it may take")
    ] = None


class ExtensionPoint(Part):
    """A slot that a project may bind to its own routine or workflow."""

    slot_id: Annotated[
        str, *limits(pattern=r"^[a-z][a-z0-9_]+$", max_length=64, description="its name in `.interlock/bindings.json`")
    ]
    purpose: Annotated[str, *limits(min_length=1, max_length=256, description="what to bind here")]
    default: Annotated[
        str, *limits(min_length=1, max_length=128, description="what it is bound to if the project binds nothing")
    ]
    accepted_kinds: Annotated[
        tuple[Literal["routine", "workflow"], ...], described("for readers: what may be bound")
    ] = ()
