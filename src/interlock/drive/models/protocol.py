"""The one question that a driver asks a model: this conversation, these tools; what next?"""

from collections.abc import Mapping
from dataclasses import field
from typing import Literal, Protocol

from interlock.drive.conversation.messages import Message, ToolCall
from interlock.drive.faults import Fault
from interlock.kernel.budgets.drive import TOOL_CALLS_PER_ANSWER_MAX
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import frozen

FinishReason = Literal["stop", "length", "tool_use", "content_filter", "error"]


@frozen
class Usage:
    """Tokens of a request and its response, and what they cost by the profile's prices."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cost=self.cost + other.cost,
        )

    @property
    def tokens(self) -> int:
        """Tokens in both directions."""
        return self.input_tokens + self.output_tokens

    def to_json(self) -> dict[str, Json]:
        """Return the usage as it is recorded."""
        return {
            "inputTokens": self.input_tokens,
            "outputTokens": self.output_tokens,
            "cost": round(self.cost, 9),
        }


@frozen
class ToolSpec:
    """A tool as a model sees it."""

    name: str
    description: str
    input_schema: Mapping[str, Json]

    def to_json(self) -> dict[str, Json]:
        """Return the tool as a command receives it."""
        return {"name": self.name, "description": self.description, "inputSchema": dict(self.input_schema)}


@frozen
class Place:
    """Where in the run a request is made: by it a scripted model chooses its answer. Counted from 1."""

    step_id: str
    turn: int
    turn_of_step: int


@frozen
class InferenceRequest:
    """What a model is asked. The examples precede the messages of the conversation."""

    model: str
    system_prompt: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...]
    parameters: Mapping[str, Json]
    place: Place

    def to_json(self) -> dict[str, Json]:
        """Return the request as a command receives it."""
        return {
            "model": self.model,
            "systemPrompt": self.system_prompt,
            "messages": [one.to_json() for one in self.messages],
            "tools": [one.to_json() for one in self.tools],
            "parameters": dict(self.parameters),
            "step": self.place.step_id,
            "turn": self.place.turn,
            "turnOfStep": self.place.turn_of_step,
        }


@frozen
class InferenceResponse:
    """What a model answered. `model` is the name of the model that answered."""

    content: str | None
    calls: tuple[ToolCall, ...]
    finish_reason: FinishReason
    usage: Usage = field(default=Usage())
    model: str = ""

    def fault(self) -> Fault | None:
        """Return why the answer cannot be used; None if it can."""
        if self.finish_reason == "error":
            return Fault(code="LLM_ERROR", message="The model ended with an error.", recoverable=True)
        if len(self.calls) > TOOL_CALLS_PER_ANSWER_MAX:
            allowed = f"at most {TOOL_CALLS_PER_ANSWER_MAX} are allowed. None of them was called."
            message = f"The model called {len(self.calls)} tools in one answer; {allowed}"
            return Fault(code="LLM_ERROR", message=message, recoverable=True)
        return None


class Model(Protocol):
    """A model. `name` identifies it for the breaker and for the record."""

    @property
    def name(self) -> str:
        """The name of the model, as the profile or the command line states it."""
        ...

    async def infer(self, request: InferenceRequest) -> InferenceResponse:
        """Answer a request. It may be cancelled at any time.

        Raises:
            TurnError: `LLM_ERROR`, `LLM_TIMEOUT`, `RATE_LIMITED`, `QUOTA_EXCEEDED` or `CONTENT_FILTERED`.
        """
        ...
