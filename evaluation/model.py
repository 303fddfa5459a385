"""The model behind its server on the loopback, and the one question that it is asked: which tool to call next."""

import http.client
import json
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, cast
from urllib.parse import urlsplit

Message = dict[str, Any]
ANSWER_TOKENS_MAX = 600
TEMPERATURE = 0.7
_ANSWER_S_MAX = 900


class NoCallError(Exception):
    """The model has made no call. `reason` is `context full`, or `cut` for a call that is too long."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


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

    def next_call(self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]], seed: int) -> ModelCall:
        """Return the call that the model makes after these messages; a grammar of the tools' schemas forces one.

        Raises:
            NoCallError: The prompt does not fit the context, or the call does not fit an answer.
            RuntimeError: The model's server failed.
        """
        body = {
            "messages": messages,
            "tools": tools,
            "tool_choice": "required",
            "parallel_tool_calls": False,
            "temperature": TEMPERATURE,
            "seed": seed,
            "max_tokens": ANSWER_TOKENS_MAX,
            "cache_prompt": True,
        }
        status, answer = self._post("/v1/chat/completions", body)
        if answer.get("error", {}).get("type") == "exceed_context_size_error":
            raise NoCallError("context full")
        if status != http.client.OK:
            raise RuntimeError(f"the model's server: {status} {json.dumps(answer)[:400]}")
        return _call_in(answer)

    def _post(self, path: str, body: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        connection = http.client.HTTPConnection(self._address, timeout=_ANSWER_S_MAX)
        try:
            connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, cast("dict[str, Any]", json.loads(response.read()))
        finally:
            connection.close()


def _call_in(answer: Mapping[str, Any]) -> ModelCall:
    choice = answer["choices"][0]
    calls = choice["message"].get("tool_calls")
    if choice["finish_reason"] == "length" or not calls:
        raise NoCallError("cut")
    function = calls[0]["function"]
    return ModelCall(
        tool=function["name"],
        arguments=json.loads(function["arguments"]),
        prompt_tokens=answer["usage"]["prompt_tokens"],
        fresh_tokens=answer["timings"]["prompt_n"],
    )
