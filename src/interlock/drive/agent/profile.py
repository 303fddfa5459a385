"""The profile of an agent that the driver runs: what a person wrote about its model, tools, limits and state.

The names are those of the turn runtime. Both spellings of a name are read, `max_turns` and `maxTurns`.
"""

import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, LiteralString, cast

from pydantic import AfterValidator, AliasChoices, AliasGenerator, BaseModel, ConfigDict, Field, JsonValue
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from interlock.drive.faults import RecoveryStrategy, TurnCode
from interlock.kernel.budgets.drive import (
    BREAKER_FAILURES,
    BREAKER_OPEN_SECONDS,
    BREAKER_PROBES,
    DRIVE_HISTORY_TOKENS,
    DRIVE_HISTORY_WINDOW,
    DRIVE_MODEL_SECONDS,
    DRIVE_TOOL_MS,
    DRIVE_TOOL_TURNS,
    DRIVE_TURNS,
    DRIVE_WAIT_SECONDS,
    RETRY_DELAY_MS,
    RETRY_DELAY_MS_MAX,
    RETRY_MULTIPLIER,
)

Permission = Literal["allow", "ask", "deny"]
ToolType = Literal["builtin", "function", "mcp", "http", "grpc", "kubernetes"]
StateMode = Literal["none", "session", "persistent"]
IsolationLevel = Literal["read_uncommitted", "read_committed", "repeatable_read", "serializable"]
Summarization = Literal["truncate", "summarize", "sliding"]
Autonomy = Literal["guided", "full_auto_stop_on_user_deps", "full_auto_never_stop"]


def _check_name(text: str) -> str:
    if "\0" in text:
        raise PydanticCustomError("nul", "It has a NUL character, which no name of a file or a command has")
    return text


Name = Annotated[str, AfterValidator(_check_name)]
"""What names a file or a command."""


_PLACEHOLDER = re.compile(r"\$\{[^{}:]*(?::-([^{}]*))?\}")
"""A variable as manifests write it, `${NAME}` or `${NAME:-default}`."""


def _check_literal(text: str) -> str:
    found = _PLACEHOLDER.search(text)
    if found is not None:
        raise PydanticCustomError("placeholder", _describe_placeholder("It", found))
    return text


def _describe_placeholder(what: str, found: re.Match[str]) -> LiteralString:
    example = f", for example `{found[1]}`" if found[1] else ""
    message = f"{what} has the variable `{found[0]}`, which a driver does not read. Write the value{example}"
    return cast("LiteralString", message)


Literally = Annotated[str, AfterValidator(_check_literal)]
"""A text in which a driver replaces no variable, so it may have none."""


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_texts(value: object) -> bool:
    texts = cast("list[object]", value) if isinstance(value, list) else [value]
    return all(isinstance(one, str) for one in texts)


_PARAMETERS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "temperature": (lambda value: _is_number(value) and value >= 0, "number of 0 or more"),
    "max_tokens": (lambda value: _is_whole(value) and value >= 1, "whole number of 1 or more"),
    "top_p": (lambda value: _is_number(value) and 0 <= value <= 1, "number from 0 to 1"),
    "frequency_penalty": (_is_number, "number"),
    "presence_penalty": (_is_number, "number"),
    "stop": (_is_texts, "text or list of texts"),
    "seed": (_is_whole, "whole number"),
}
"""The parameters that are the same for every kind of model, each with a check and what it has to be."""
MODEL_PARAMETERS = tuple(_PARAMETERS)


def _check_parameters(parameters: dict[str, JsonValue]) -> dict[str, JsonValue]:
    for name, value in parameters.items():
        is_fit, wanted = _PARAMETERS.get(name, (None, ""))
        found = _PLACEHOLDER.search(value) if isinstance(value, str) else None
        if found is not None and name != "stop":
            raise PydanticCustomError("placeholder", _describe_placeholder(f"Its `{name}`", found))
        if value is not None and is_fit is not None and not is_fit(value):
            message = f"Its `{name}` is no {wanted}"
            raise PydanticCustomError("parameter", cast("LiteralString", message))
    return parameters


class Part(BaseModel):
    """A part of a profile: strict, frozen, and read in both spellings."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        alias_generator=AliasGenerator(validation_alias=lambda name: AliasChoices(name, to_camel(name))),
        validate_by_name=True,
    )


class Identity(Part):
    """Who the agent is, for telemetry."""

    id: str = "agent"
    name: str | None = None
    version: str | None = None


class FewShot(Part):
    """One example: what a user says and what the assistant answers."""

    user: Annotated[str, Field(validation_alias=AliasChoices("user", "input"))]
    assistant: Annotated[str, Field(validation_alias=AliasChoices("assistant", "output"))]


class Prompts(Part):
    """Texts for the model in addition to the role."""

    system: str | None = None
    few_shot_examples: Annotated[tuple[FewShot, ...], Field(strict=False)] = ()


class Llm(Part):
    """The model: its name, where it is served, and the parameters of each request."""

    model: Annotated[Name, AfterValidator(_check_literal)] = ""
    provider: Literally | None = None
    base_url: Literally | None = None
    parameters: Annotated[dict[str, JsonValue], AfterValidator(_check_parameters)] = {}


class Retry(Part):
    """How often and how fast a failed call is repeated; None leaves the number to the next rule."""

    max_retries: Annotated[int | None, Field(ge=0, le=20)] = None
    initial_delay_ms: Annotated[int, Field(ge=0)] = RETRY_DELAY_MS
    max_delay_ms: Annotated[int, Field(ge=0)] = RETRY_DELAY_MS_MAX
    backoff_multiplier: Annotated[float, Field(ge=1, strict=False)] = RETRY_MULTIPLIER


class CircuitBreaker(Part):
    """When calls of a failing tool or model stop, and when one is tried again."""

    failure_threshold: Annotated[int, Field(ge=1)] = BREAKER_FAILURES
    timeout_seconds: Annotated[float, Field(gt=0, strict=False)] = BREAKER_OPEN_SECONDS
    half_open_requests: Annotated[int, Field(ge=1)] = BREAKER_PROBES


class ToolEntry(Part):
    """A tool by its name, or an MCP server.

    Of an MCP server, the tools are offered that `capabilities` or `permissions` name. A permission that is not stated
    follows from the hints of the tool.
    """

    name: str = ""
    type: ToolType = "builtin"
    description: str | None = None
    parallel: bool = False
    timeout_ms: Annotated[int, Field(ge=1)] = DRIVE_TOOL_MS
    retry: Retry | None = None
    permission: Permission | None = None
    permissions: dict[str, Permission] = Field(default_factory=dict[str, Permission])
    capabilities: Annotated[tuple[str, ...], Field(strict=False)] = ()
    input_schema: Annotated[
        dict[str, JsonValue] | None,
        Field(validation_alias=AliasChoices("input_schema", "inputSchema", "parameters", "input")),
    ] = None
    command: Annotated[tuple[str, ...], Field(strict=False)] = ()
    env: dict[str, str] = Field(default_factory=dict[str, str])
    url: Annotated[str | None, Field(validation_alias=AliasChoices("url", "endpoint"))] = None
    fallback: JsonValue = None


class Constraints(Part):
    """Limits of a run: turns, tokens of all turns, and seconds of one request to the model."""

    max_turns: Annotated[int, Field(ge=1)] = DRIVE_TURNS
    max_tokens: Annotated[int | None, Field(ge=1)] = None
    timeout_seconds: Annotated[float, Field(gt=0, strict=False)] = DRIVE_MODEL_SECONDS


class Budget(Part):
    """What a run may use in addition to its turns and tokens: seconds, and money by the prices per million tokens."""

    max_seconds: Annotated[float | None, Field(gt=0, strict=False)] = None
    max_cost: Annotated[float | None, Field(gt=0, strict=False)] = None
    input_price: Annotated[float, Field(ge=0, strict=False)] = 0.0
    output_price: Annotated[float, Field(ge=0, strict=False)] = 0.0


class TextFilter(Part):
    """Patterns whose matches are replaced, or stop what holds them."""

    enabled: bool = True
    redact: Annotated[tuple[str, ...], Field(strict=False)] = ()
    block: Annotated[tuple[str, ...], Field(strict=False)] = ()


class Safety(Part):
    """What may enter the conversation."""

    content_filtering: TextFilter = TextFilter()


class Security(Part):
    """What of a tool's output is shown or kept, and the argv that confines commands."""

    output_filtering: TextFilter = TextFilter()
    sandbox: Annotated[tuple[str, ...], Field(strict=False)] = ()


class ErrorHandler(Part):
    """What to do about some errors instead of the default."""

    error_codes: Annotated[tuple[TurnCode, ...], Field(strict=False)]
    strategy: RecoveryStrategy
    max_retries: Annotated[int | None, Field(ge=0, le=20)] = None
    fallback_value: JsonValue = None
    escalation_target: str | None = None


class Reliability(Part):
    """Retries, breakers and handlers of errors."""

    retry: Retry | None = None
    circuit_breaker: CircuitBreaker = CircuitBreaker()
    error_handlers: Annotated[tuple[ErrorHandler, ...], Field(strict=False)] = ()


class State(Part):
    """How long the driver's own state lives, and what a turn sees of others."""

    mode: StateMode = "session"
    storage: Literal["log"] = "log"
    isolation_level: IsolationLevel = "serializable"


class TurnChain(Part):
    """How turns follow each other while the model calls tools."""

    continue_on_tool_use: bool = True
    max_tool_turns: Annotated[int, Field(ge=1)] = DRIVE_TOOL_TURNS
    confirm_between_turns: bool = False


class Memory(Part):
    """How much of the conversation a request holds."""

    window_size: Annotated[int, Field(ge=2)] = DRIVE_HISTORY_WINDOW
    max_history_tokens: Annotated[int, Field(ge=100)] = DRIVE_HISTORY_TOKENS
    summarization: Summarization = "truncate"


class ContextPropagation(Part):
    """What a delegated agent receives."""

    include_session_id: bool = True
    include_history: bool = False
    include_state: bool = False
    custom_context: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])


class Delegation(Part):
    """Another agent that takes over steps: by handoff, in parallel, or in a run of its own that is watched."""

    type: Literal["handoff", "parallel", "supervisor"]
    target_agent: Name
    steps: Annotated[tuple[str, ...], Field(strict=False)] = ()
    workflow: str | None = None
    context_propagation: ContextPropagation = ContextPropagation()
    timeout_ms: Annotated[int | None, Field(ge=1)] = None
    on_failure: Literal["retry", "fallback", "escalate"] = "escalate"


class ActivityStream(Part):
    """Where CloudEvents go: a file, one event in a line."""

    enabled: bool = False
    file: Name | None = None


class Observability(Part):
    """Where spans and metrics go, and whether events are written."""

    otlp_endpoint: str | None = None
    activity_stream: ActivityStream = ActivityStream()


class Profile(Part):
    """Everything the driver knows of the agent that it runs."""

    identity: Identity = Identity()
    role: str
    prompts: Prompts = Prompts()
    llm: Llm = Llm()
    tools: Annotated[tuple[ToolEntry, ...], Field(strict=False)] = ()
    constraints: Constraints = Constraints()
    budget: Budget = Budget()
    safety: Safety = Safety()
    security: Security = Security()
    reliability: Reliability = Reliability()
    state: State = State()
    turn_chain: TurnChain = TurnChain()
    memory: Memory = Memory()
    delegation: Annotated[tuple[Delegation, ...], Field(strict=False)] = ()
    observability: Observability = Observability()
    autonomy: Autonomy = "full_auto_stop_on_user_deps"
    max_wait_seconds: Annotated[float, Field(ge=0, strict=False)] = DRIVE_WAIT_SECONDS

    def limited_by(self, lead: "Profile") -> "Profile":
        """Return the profile with the limits of the agent that leads its run, where they are lower."""
        own, other = (self.constraints, self.budget), (lead.constraints, lead.budget)
        constraints = own[0].model_copy(
            update={
                "max_turns": min(own[0].max_turns, other[0].max_turns),
                "max_tokens": _lower(own[0].max_tokens, other[0].max_tokens),
            }
        )
        budget = own[1].model_copy(
            update={
                "max_seconds": _lower(own[1].max_seconds, other[1].max_seconds),
                "max_cost": _lower(own[1].max_cost, other[1].max_cost),
            }
        )
        return self.model_copy(update={"constraints": constraints, "budget": budget})


def _lower(one: float | None, other: float | None) -> float | None:
    return min((limit for limit in (one, other) if limit is not None), default=None)
