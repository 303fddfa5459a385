"""One run of an arm: the model sees one channel of each answer, and everything it does is counted."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias, cast

from evaluation.arms import Arm
from evaluation.model import CUT, Message, ModelCall, NoCallError, Tool, call_text
from evaluation.product import Product, Response

Channel: TypeAlias = Literal["text", "structured"]
CHANNELS: tuple[Channel, ...] = ("text", "structured")
CALLS_MAX = 12


class Chooser(Protocol):
    """Chooses the next call: the model, or a script in a test."""

    def next_call(self, messages: Sequence[Message], tools: Sequence[Tool], seed: int) -> ModelCall:
        """Return the call to make after these messages."""
        ...


@dataclass(slots=True, kw_only=True)
class Episode:
    """What the model did in one run. All counts except the tokens are of the calls that the model made.

    `cut` counts those that were too long and never sent.
    """

    ended: str = "out of calls"
    calls: int = 0
    advances: int = 0
    refused: int = 0
    token_errors: int = 0
    blanks: int = 0
    cut: int = 0
    prompt_tokens: int = 0
    fresh_tokens: int = 0
    is_first_an_advance: bool = False
    has_gaps: bool = False
    transcript: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    @property
    def is_done(self) -> bool:
        """Whether the run is complete."""
        return self.ended == "done"

    def read(self, answer: ModelCall | NoCallError) -> None:
        """Add the tokens of a prompt that the model read."""
        self.prompt_tokens += answer.prompt_tokens
        self.fresh_tokens += answer.fresh_tokens

    def count(self, call: ModelCall, response: Response, blanks: int) -> None:
        """Add a call of the model and its response."""
        self.calls += 1
        self.refused += response.is_refused
        self.has_gaps = response.has_gaps
        self.token_errors += response.code.startswith("TOKEN_")
        self.blanks += blanks
        self.advances += "ackToken" in call.arguments and not response.is_refused
        if self.calls == 1:
            self.is_first_an_advance = self.advances == 1
        self.transcript.append(
            {"tool": call.tool, "arguments": call.arguments, "code": response.code, "shown": response.text}
        )


def play(product: Product, model: Chooser, arm: Arm, channel: Channel, seed: int) -> Episode:
    """Start a run of an arm and let the model continue until it is complete, or no further call is possible."""
    start = {"workflowId": arm.workflow_id, "goal": arm.goal}
    response = product.call("start_workflow", start)
    if response.is_refused:
        raise RuntimeError(f"the start of {arm.workflow_id} was refused: {response.text}")
    messages = _opening(product.instructions, arm, start)
    messages.append(Message(role="tool", content=_shown(response, channel)))
    episode, offered = Episode(), response.next_call
    for turn in range(CALLS_MAX):
        try:
            # Equal seeds would let the model repeat a refused call only because it draws the same numbers.
            call = model.next_call(messages, product.tools, seed * CALLS_MAX + turn)
        except NoCallError as error:
            episode.read(error)
            if error.reason != CUT:
                episode.ended = error.reason
                break
            # As clients do with a call that was cut off: no tool can read it, and the model is asked again.
            episode.cut += 1
            continue
        episode.read(call)
        response = product.call(call.tool, call.arguments)
        episode.count(call, response, count_blanks(offered, call))
        offered = response.next_call or offered
        if response.is_complete:
            episode.ended = "done"
            break
        messages.append(Message(role="assistant", content=call_text(call.tool, call.arguments)))
        messages.append(Message(role="tool", content=_shown(response, channel)))
    return episode


def count_blanks(offered: Mapping[str, Any] | None, call: ModelCall) -> int:
    """Return how many of the values that the last response asked for are missing, empty or a copy of the request."""
    if offered is None or call.tool != offered["tool"] or "ackToken" not in call.arguments:
        return 0
    return sum(_is_blank(call.arguments, blank) for blank in offered.get("fill", ()))


def _is_blank(arguments: Mapping[str, Any], blank: Mapping[str, Any]) -> bool:
    value = _value_at(arguments, blank["path"])
    if isinstance(value, str):
        text = value.strip()
        return not text or text in (blank["path"], blank.get("what")) or (text[0], text[-1]) == ("<", ">")
    return value is None


def _value_at(arguments: Mapping[str, Any], path: str) -> object:
    """Return the value at a path like `output.artifacts[0].verdict`; None if there is none."""
    value: object = arguments
    for key in re.findall(r"[^.\[\]]+", path):
        if isinstance(value, dict):
            value = cast("dict[str, object]", value).get(key)
        elif isinstance(value, list) and key.isdecimal():
            value = dict(enumerate(cast("list[object]", value))).get(int(key))
        else:
            return None
    return value


def _opening(instructions: str, arm: Arm, start: Mapping[str, str]) -> list[Message]:
    """Return the messages up to the start. The user asks for the start; the model does not decide it."""
    return [
        Message(role="system", content=f"You are an agent. You work alone, without questions.\n\n{instructions}"),
        Message(role="user", content=f"{arm.goal}. Use the workflow {arm.workflow_id}, to its end."),
        Message(role="assistant", content=call_text("start_workflow", start)),
    ]


def _shown(response: Response, channel: Channel) -> str:
    if channel == "text" or not response.structure:
        return response.text
    return json.dumps(response.structure, ensure_ascii=False, separators=(",", ":"))
