"""Parts of a workflow that read the same as authored and as compiled: strict, frozen, closed to unknown keys."""

from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from interlock.kernel.budgets import CONTEXT_KEY_BYTES_MAX, PROMPT_BYTES_MAX, TITLE_CHARS_MAX
from interlock.kernel.canonical import Json

SafeId = Annotated[str, Field(pattern=r"^[a-z0-9_-]+$", max_length=100)]
"""Delimiter-safe: no character that a step instance key uses (locks 9)."""
Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=64)]
Title = Annotated[str, Field(min_length=1, max_length=TITLE_CHARS_MAX)]
LongText = Annotated[str, Field(min_length=1, max_length=PROMPT_BYTES_MAX)]
Lines = Annotated[tuple[LongText, ...], Field(max_length=100, strict=False)]
ContextKey = Annotated[str, Field(min_length=1, max_length=CONTEXT_KEY_BYTES_MAX)]
DeclaredKey = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_-]*$", max_length=CONTEXT_KEY_BYTES_MAX)]
"""A context key that a document declares: no dot, which would be read as a path."""
ContextPath = Annotated[str, Field(min_length=1, max_length=4 * CONTEXT_KEY_BYTES_MAX)]
"""A context key, or a dotted path into its value."""

CapabilityName = Literal["delegation", "web_browsing"]
CapabilityNeed = Literal["required", "preferred", "disabled"]


class Part(BaseModel):
    """A part of a document. Only what was written is written again."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        alias_generator=to_camel,
        validate_by_name=False,
        validate_by_alias=True,
        allow_inf_nan=False,
        defer_build=True,
    )


_Part = TypeVar("_Part", bound=Part)


def plainly(part: _Part) -> _Part:
    """Return a part as if defaults had not been written: saying one is saying nothing."""
    return type(part).model_validate(part.model_dump(mode="json", by_alias=True, exclude_defaults=True))


class Reference(Part):
    """Material that a workflow points at; it is named to the agent, never fetched."""

    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]+$", max_length=128)]
    title: Title
    source: Annotated[str, Field(min_length=1, max_length=1000)]
    purpose: Annotated[str, Field(min_length=1, max_length=1000)]
    authoritative: bool = False


class Dimension(Part):
    """One thing that an assessment rates."""

    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$", max_length=64)]
    purpose: Annotated[str, Field(min_length=1, max_length=256)]
    levels: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=64)], ...], Field(min_length=2, max_length=20, strict=False)
    ]
    required: bool = True


class Assessment(Part):
    """A rating that a step asks for."""

    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$", max_length=64)]
    purpose: Annotated[str, Field(min_length=1, max_length=512)]
    dimensions: Annotated[tuple[Dimension, ...], Field(min_length=1, max_length=20, strict=False)]


class Parameter(Part):
    """A parameter of a function."""

    name: Name
    type: Literal["string", "number", "boolean", "array", "object"]
    required: bool = False
    enum: Annotated[tuple[Json, ...], Field(strict=False)] = ()
    default: Json = None
    description: str | None = None


class FunctionDefinition(Part):
    """Instructions with a name: defined once, referred to by steps as `name()`."""

    name: Name
    definition: LongText
    parameters: Annotated[tuple[Parameter, ...], Field(strict=False)] = ()
    scope: Literal["workflow", "loop", "step"] | None = None


class ContextInput(Part):
    """A context key that a run is started with."""

    key: DeclaredKey
    description: Annotated[str, Field(min_length=1, max_length=1000)]
    required: bool = False
    type: Literal["string", "number", "boolean", "list", "object"]
    choices: Annotated[tuple[Json, ...], Field(max_length=50, strict=False)] = ()


EVIDENCE_ROOTS = frozenset({"artifact", "assessments"})
"""What paths of `set` begin with that read the step's evidence, not the context."""


class SetAction(Part):
    """A context key that is set when the step is done: to a value, or to what stands at a path.

    A path begins with a context key, with `artifact` (the step's artifact) or with `assessments` (levels by
    assessment and dimension).
    """

    key: DeclaredKey
    value: Json = None
    source: Annotated[ContextPath | None, Field(alias="from")] = None


class UserNeed(Part):
    """What only the user can give (locks 3)."""

    reason: Literal[
        "needs_user_secret_or_token",
        "needs_user_account_access",
        "needs_user_artifact",
        "needs_user_choice",
        "needs_user_approval",
        "needs_user_environment_action",
    ]
    ask: Annotated[str, Field(min_length=1, max_length=1000)]
    choice_kind: (
        Literal[
            "preference_tradeoff",
            "scope_boundary",
            "irreversible_action",
            "external_side_effect",
            "policy_or_compliance",
        ]
        | None
    ) = None


class RecommendedPreferences(Part):
    """What the author recommends; a run that goes further is warned, never stopped (locks 5)."""

    recommended_autonomy: Literal["guided", "full_auto_stop_on_user_deps", "full_auto_never_stop"] | None = None
    recommended_risk_policy: Literal["conservative", "balanced", "aggressive"] | None = None


class ExtensionPoint(Part):
    """A slot that a project may bind to something of its own."""

    slot_id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]+$", max_length=64)]
    purpose: Annotated[str, Field(min_length=1, max_length=256)]
    default: Annotated[str, Field(min_length=1, max_length=128)]
    accepted_kinds: Annotated[tuple[Literal["routine", "workflow"], ...], Field(strict=False)] = ()
