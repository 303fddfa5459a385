"""The model behind its server on the loopback, and the one question that it is asked: which tool to call next."""

import http.client
import json
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias, cast
from urllib.parse import urlsplit

from evaluation.model_server import CONTEXT_TOKENS

Tool: TypeAlias = Mapping[str, Any]
"""A tool's `name`, `description` and `parameters`."""
ANSWER_TOKENS_MAX = 600
SAMPLING = {
    "temperature": 0.7,
    "top_p": 0.8,
    "top_k": 20,
    "min_p": 0.0,
    "repeat_penalty": 1.1,
    "repeat_last_n": CONTEXT_TOKENS,
}
"""How tokens are chosen: as the model's authors publish it with the model, with the penalty on all tokens before."""
_ANSWER_S_MAX = 3_600
"""The first prompt takes a minute on two idle cores, and much longer on busy ones."""
_TOOLS = """# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
%s
</tools>

For each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:
<tool_call>
{"name": <function-name>, "arguments": <args-json-object>}
</tool_call>"""
"""What the model was trained to read before and after the tools."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message of the conversation. The content of the `assistant` is a call, and that of the `tool` its response."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str


CUT = "cut"


class NoCallError(Exception):
    """The model has made no call. `reason` is `context full`, or `CUT` for a call that is too long.

    The tokens are those of the prompt that it read, as of a `ModelCall`.
    """

    def __init__(self, reason: str, prompt_tokens: int = 0, fresh_tokens: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.prompt_tokens = prompt_tokens
        self.fresh_tokens = fresh_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """A call that the model chose, and the tokens of the prompt that it read for it."""

    tool: str
    arguments: Mapping[str, Any]
    prompt_tokens: int
    fresh_tokens: int


class Model:
    """A model in a process of its own. Ends with its `with` block."""

    def __init__(self, directory: Path, threads: int) -> None:
        command = [directory / "venv" / "bin" / "python", Path(__file__).with_name("model_server.py")]
        with (directory / "model.log").open("wb") as log:
            self._process = subprocess.Popen(
                [*command, directory / "model.gguf", str(threads)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        assert self._process.stdout is not None, "it was asked for"
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the model's server ended: {directory / 'model.log'} says why")
        self._address = urlsplit(str(json.loads(line)["address"])).netloc

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None, "it was asked for"
        self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        self._process.kill()
        self._process.wait()

    def next_call(self, messages: Sequence[Message], tools: Sequence[Tool], seed: int) -> ModelCall:
        """Return the call that the model makes after these messages; a grammar of the tools' schemas forces one.

        Raises:
            NoCallError: The prompt does not fit the context, or the call does not fit an answer.
            RuntimeError: The model's server failed.
        """
        body = {
            "prompt": render_prompt(messages, tools),
            "json_schema": call_schema(tools),
            **SAMPLING,
            "seed": seed,
            "n_predict": ANSWER_TOKENS_MAX,
            "cache_prompt": True,
        }
        status, answer = self._post("/completion", body)
        if answer.get("error", {}).get("type") == "exceed_context_size_error":
            raise NoCallError("context full")
        if status != http.client.OK:
            raise RuntimeError(f"the model's server: {status} {json.dumps(answer)[:400]}")
        read, fresh = answer["tokens_evaluated"], answer["timings"]["prompt_n"]
        if answer["stop_type"] == "limit":
            raise NoCallError(CUT, read, fresh)
        chosen = json.loads(answer["content"])
        return ModelCall(tool=chosen["name"], arguments=chosen["arguments"], prompt_tokens=read, fresh_tokens=fresh)

    def _post(self, path: str, body: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        connection = http.client.HTTPConnection(self._address, timeout=_ANSWER_S_MAX)
        try:
            connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, cast("dict[str, Any]", json.loads(response.read()))
        finally:
            connection.close()


def render_prompt(messages: Sequence[Message], tools: Sequence[Tool]) -> str:
    """Return the prompt in the model's own format, up to the beginning of the call that is to be made.

    The first message is the system's; the tools follow it. So the prompts of all runs have the same beginning, which is
    evaluated once.
    """
    listed = "\n".join(json.dumps({"type": "function", "function": tool}, ensure_ascii=False) for tool in tools)
    first, *others = messages
    blocks = [Message(role="system", content=f"{first.content}\n\n{_TOOLS % listed}"), *map(_in_tags, others)]
    said = "".join(f"<|im_start|>{one.role}\n{one.content}<|im_end|>\n" for one in blocks)
    return f"{said}<|im_start|>assistant\n<tool_call>\n"


def _in_tags(message: Message) -> Message:
    """Return a message as the model was trained to read it: a response of a tool comes from the user."""
    if message.role == "user":
        return message
    role, tag = ("user", "tool_response") if message.role == "tool" else ("assistant", "tool_call")
    return Message(role=role, content=f"<{tag}>\n{message.content}\n</{tag}>")


def call_schema(tools: Sequence[Tool]) -> dict[str, Any]:
    """Return the JSON Schema of a call of one of the tools."""
    return {
        "anyOf": [
            {
                "type": "object",
                "properties": {"name": {"const": tool["name"]}, "arguments": tool["parameters"]},
                "required": ["name", "arguments"],
                "additionalProperties": False,
            }
            for tool in tools
        ]
    }


def call_text(tool: str, arguments: Mapping[str, Any]) -> str:
    """Return a call as the model writes it."""
    return json.dumps({"name": tool, "arguments": arguments}, ensure_ascii=False)
