"""Models of providers, and any server of the chat completions shape. The extra `interlock[drive]` installs them.

One request without an agent loop: retries, tools and history are the driver's own.
"""

import json
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Self, cast

from pydantic_ai import direct
from pydantic_ai import exceptions as failures
from pydantic_ai import messages as parts
from pydantic_ai.models import Model as VendorModel
from pydantic_ai.models import ModelRequestParameters, infer_model
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from interlock.drive.agent.profile import Llm
from interlock.drive.conversation.messages import Message, ToolCall, carried, carried_text
from interlock.drive.faults import MODEL_UNAVAILABLE, Fault, TurnCode, TurnError
from interlock.drive.models.protocol import FinishReason, InferenceRequest, InferenceResponse, Usage
from interlock.kernel.budgets import ECHO_BYTES_MAX
from interlock.kernel.canonical import Json
from interlock.kernel.text import one_line

_FINISH: dict[str, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "tool_call": "tool_use",
    "content_filter": "content_filter",
    "error": "error",
}
_UNAVAILABLE = (failures.ModelAuthenticationError, failures.ModelNotFoundError, failures.ModelConnectionError)
"""The key is refused, there is no such model, or its server cannot be reached."""
_NO_KEY = "none"
"""A key for a server on the loopback or in a network of one's own, which checks none."""


class ProviderModel:
    """A model of a provider behind the protocol `Model`. It closes its connections when it is left."""

    def __init__(self, name: str, model: VendorModel, close: Callable[[], Awaitable[None]] | None = None) -> None:
        self._name, self._model, self._close = name, model, close

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._close is not None:
            await self._close()

    @property
    def name(self) -> str:
        """See `Model.name`."""
        return self._name

    async def infer(self, request: InferenceRequest) -> InferenceResponse:
        """See `Model.infer`."""
        tools = [
            ToolDefinition(
                name=tool.name,
                description=tool.description,
                parameters_json_schema=dict(tool.input_schema),
                strict=False,
            )
            for tool in request.tools
        ]
        try:
            response = await direct.model_request(
                self._model,
                _to_parts(request),
                model_settings=cast("ModelSettings", dict(request.parameters)),
                model_request_parameters=ModelRequestParameters(function_tools=tools),
            )
        except (failures.AgentRunError, failures.UserError) as error:
            raise TurnError(_fault_of(error)) from error
        return _from_response(response, self._name)


def vendor_model(name: str, llm: Llm) -> ProviderModel:
    """Return the model of a name such as `openai:NAME`; with an address, any server of the same shape.

    Raises:
        TurnError: There is no such provider, or it lacks its key.
    """
    provider, _, model = name.rpartition(":")
    provider = provider or llm.provider or ("openai" if llm.base_url is not None else "")
    try:
        match provider:
            case "openai":
                return ProviderModel(name, *_openai(model, llm.base_url))
            case "anthropic":
                return ProviderModel(name, *_anthropic(model, llm.base_url))
            case _:
                return ProviderModel(name, infer_model(f"{provider}:{model}" if provider else name))
    except (failures.UserError, ValueError) as error:
        message = f"The model {name!r} cannot be used: {one_line(str(error), 2 * ECHO_BYTES_MAX)}"
        raise TurnError(Fault(code="VALIDATION_ERROR", message=message)) from error


def _openai(model: str, base_url: str | None) -> tuple[VendorModel, Callable[[], Awaitable[None]]]:
    from openai import AsyncOpenAI  # noqa: PLC0415 — only this provider needs it
    from pydantic_ai.models.openai import OpenAIChatModel  # noqa: PLC0415 — see above
    from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415 — see above

    key = os.environ.get("OPENAI_API_KEY") or (_NO_KEY if base_url is not None else None)
    if key is None:
        raise ValueError("Set OPENAI_API_KEY.")
    # The driver repeats a failed request itself, by the rules of the profile.
    client = AsyncOpenAI(base_url=base_url, api_key=key, max_retries=0)
    return OpenAIChatModel(model, provider=OpenAIProvider(openai_client=client)), client.close


def _anthropic(model: str, base_url: str | None) -> tuple[VendorModel, Callable[[], Awaitable[None]]]:
    from anthropic import AsyncAnthropic  # noqa: PLC0415 — only this provider needs it
    from pydantic_ai.models.anthropic import AnthropicModel  # noqa: PLC0415 — see above
    from pydantic_ai.providers.anthropic import AnthropicProvider  # noqa: PLC0415 — see above

    key = os.environ.get("ANTHROPIC_API_KEY") or (_NO_KEY if base_url is not None else None)
    if key is None:
        raise ValueError("Set ANTHROPIC_API_KEY.")
    client = AsyncAnthropic(base_url=base_url, api_key=key, max_retries=0)
    return AnthropicModel(model, provider=AnthropicProvider(anthropic_client=client)), client.close


def _to_parts(request: InferenceRequest) -> list[parts.ModelMessage]:
    """Return the conversation in the form of the library: the results of calls belong to one request."""
    system: list[parts.ModelRequestPart] = [parts.SystemPromptPart(content=request.system_prompt)]
    history: list[parts.ModelMessage] = []
    open_parts = system
    for message in request.messages:
        if message.role == "assistant":
            if open_parts:
                history.append(parts.ModelRequest(parts=open_parts))
            history.append(parts.ModelResponse(parts=list(_of_assistant(message))))
            open_parts = []
        elif message.role == "tool":
            result = parts.ToolReturnPart(
                tool_name=message.tool_name or "", content=message.text(), tool_call_id=message.call_id or ""
            )
            open_parts.append(result)
        else:
            open_parts.append(parts.UserPromptPart(content=_content(message)))
    if open_parts:
        history.append(parts.ModelRequest(parts=open_parts))
    return history


def _of_assistant(message: Message) -> Iterator[parts.ModelResponsePart]:
    text = message.text()
    if text or not message.calls:
        yield parts.TextPart(content=text or " ")
    for call in message.calls:
        arguments = call.arguments if isinstance(call.arguments, dict) else {}
        yield parts.ToolCallPart(tool_name=call.name, args=dict(arguments), tool_call_id=call.call_id)


def _content(message: Message) -> str | list[parts.UserContent]:
    if isinstance(message.content, str):
        return message.content
    content: list[parts.UserContent] = []
    for one in message.content:
        match one.type:
            case "image":
                content.append(parts.ImageUrl(url=one.value, media_type=one.media_type))
            case "file":
                content.append(parts.DocumentUrl(url=one.value, media_type=one.media_type))
            case _:
                content.append(one.value)
    return content


def _from_response(response: parts.ModelResponse, name: str) -> InferenceResponse:
    calls = tuple(_calls(response.parts))
    texts = [part.content for part in response.parts if isinstance(part, parts.TextPart)]
    finish = _FINISH.get(response.finish_reason or "", "tool_use" if calls else "stop")
    return InferenceResponse(
        content=carried_text("".join(texts)) or None,
        calls=calls,
        finish_reason="tool_use" if calls and finish == "stop" else finish,
        usage=Usage(input_tokens=response.usage.input_tokens, output_tokens=response.usage.output_tokens),
        model=response.model_name or name,
    )


def _calls(found: Iterable[parts.ModelResponsePart]) -> Iterator[ToolCall]:
    for part in found:
        if isinstance(part, parts.ToolCallPart):
            yield ToolCall(call_id="", name=carried_text(part.tool_name), arguments=_arguments(part.args))


def _arguments(stated: object) -> Json:
    """Return the arguments of a call; text that is no JSON stays text, which fits no schema."""
    if not isinstance(stated, str):
        return carried(stated or {})
    try:
        return carried(json.loads(stated or "{}"))
    except (ValueError, RecursionError):
        return carried_text(stated)


def _fault_of(error: Exception) -> Fault:
    """Return what a failure of the library is for a turn. Its text may hold a key, so only its kind is reported."""
    code, recoverable = _kind_of(error)
    after = getattr(error, "retry_after", None)
    status = getattr(error, "status_code", None)
    shown = f" with the status {status}" if isinstance(status, int) else ""
    return Fault(
        code=code,
        message=f"The model's provider failed{shown}: {type(error).__name__}.",
        details=MODEL_UNAVAILABLE if isinstance(error, _UNAVAILABLE) and code == "LLM_ERROR" else {},
        recoverable=recoverable,
        retry_after_ms=round(after * 1000) if isinstance(after, int | float) else None,
    )


def _kind_of(error: Exception) -> tuple[TurnCode, bool]:
    match error:
        case failures.ContentFilterError():
            return "CONTENT_FILTERED", False
        case failures.ModelQuotaExceededError():
            return "QUOTA_EXCEEDED", False
        case failures.ModelRateLimitError():
            return "RATE_LIMITED", True
        case failures.ModelTimeoutError() | failures.ModelRequestTimeout():
            return "LLM_TIMEOUT", True
        case failures.ModelRequestRejectedError() | failures.UserError():
            return "LLM_ERROR", False
        case _:
            return "LLM_ERROR", True
