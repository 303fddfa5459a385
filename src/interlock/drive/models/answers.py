"""Parses the answer of a script or a command into a response. Its form is the same for both."""

from collections.abc import Mapping
from typing import cast, get_args

from interlock.drive.conversation.messages import ToolCall, carried, carried_text, members_of
from interlock.drive.faults import MODEL_CODES, Fault, TurnError
from interlock.drive.models.protocol import FinishReason, InferenceResponse, Usage
from interlock.kernel.budgets import ECHO_BYTES_MAX
from interlock.kernel.budgets.drive import TOKENS_PER_ANSWER_MAX
from interlock.kernel.canonical import SAFE_INTEGER_MAX
from interlock.kernel.text import one_line

_FORM = (
    'Answer with a JSON object: {"content": text or null, "toolCalls": [{"name", "arguments"}], "usage":'
    ' {"inputTokens", "outputTokens"}, "model": text} or {"error": {"code", "message"}}.'
)


def parse_answer(answer: object, model: str) -> InferenceResponse:
    """Return the response that an answer holds.

    Raises:
        TurnError: It holds an error of the closed set, or is not of the form: `LLM_ERROR`.
    """
    if not isinstance(answer, Mapping):
        raise _malformed(f"found {type(answer).__name__}")
    members = cast("Mapping[str, object]", answer)
    if "error" in members:
        raise TurnError(_parse_error(members["error"]))
    content, calls = members.get("content"), members.get("toolCalls", [])
    if not isinstance(content, str | None):
        raise _malformed("`content` is no text")
    if not isinstance(calls, list):
        raise _malformed("`toolCalls` is no list")
    parsed = tuple(_parse_call(one) for one in cast("list[object]", calls))
    finish = members.get("finishReason") or ("tool_use" if parsed else "stop")
    if finish not in get_args(FinishReason):
        raise _malformed(f"`finishReason` is {finish!r}")
    return InferenceResponse(
        content=None if content is None else carried_text(content),
        calls=parsed,
        finish_reason=cast("FinishReason", finish),
        usage=_parse_usage(members.get("usage")),
        model=str(members.get("model") or model),
    )


def _parse_call(call: object) -> ToolCall:
    members = members_of(call)
    name = members.get("name")
    if not isinstance(name, str) or not name:
        raise _malformed("a call has no `name`")
    return ToolCall(call_id="", name=carried_text(name), arguments=carried(members.get("arguments", {})))


def _parse_usage(usage: object) -> Usage:
    members = members_of(usage)
    sent, received = (_count(members.get(name)) or 0 for name in ("inputTokens", "outputTokens"))
    if max(sent, received) > TOKENS_PER_ANSWER_MAX:
        raise _malformed(f"`usage` has more than {TOKENS_PER_ANSWER_MAX} tokens")
    return Usage(input_tokens=sent, output_tokens=received)


def _parse_error(error: object) -> Fault:
    members = members_of(error)
    code = str(members.get("code", "LLM_ERROR")).removeprefix("turn.")
    message = str(members.get("message", "The model reported an error."))
    after = _count(members.get("retryAfterMs"))
    if code not in MODEL_CODES:
        code, message = "LLM_ERROR", f"The model reported {one_line(code, ECHO_BYTES_MAX)}: {message}"
    return Fault(
        code=code,
        message=carried_text(message),
        recoverable=members.get("recoverable") is not False,
        retry_after_ms=None if after is None else min(after, SAFE_INTEGER_MAX),
    )


def _count(value: object) -> int | None:
    """Return a whole number from 0 on; None for anything else, such as `true`, which Python takes for 1."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _malformed(found: str) -> TurnError:
    return TurnError(Fault(code="LLM_ERROR", message=f"The model's answer is malformed: {found}. {_FORM}"))
