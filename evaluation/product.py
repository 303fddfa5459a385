"""The real `interlock serve` over stdio: its tools as a model reads them, and its responses."""

import json
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

from benchmarks.wire import Wire, temporary_site

from evaluation.arms import ARMS


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """Both channels of a response. A refusal of the protocol has its message as text, and no structure."""

    text: str
    structure: Mapping[str, Any]
    is_error: bool

    @property
    def code(self) -> str:
        """The error's code, `blocked` for evidence that was not accepted, or nothing."""
        if self.structure.get("kind") == "blocked":
            return "blocked"
        return str(self.structure.get("code", "PROTOCOL_ERROR")) if self.is_error else ""

    @property
    def is_refused(self) -> bool:
        """Whether the call did not have the effect that it asks for."""
        return self.code != ""

    @property
    def is_complete(self) -> bool:
        """Whether the run is at its end."""
        return self.structure.get("isComplete") is True

    @property
    def has_gaps(self) -> bool:
        """Whether the run is at an end with open gaps."""
        return any(one["code"] == "COMPLETE_WITH_GAPS" for one in self.structure.get("warnings", ()))

    @property
    def next_call(self) -> Mapping[str, Any] | None:
        """The call that the response offers, or that it offers as a correction."""
        details = cast("Mapping[str, Any]", self.structure.get("details") or {})
        return self.structure.get("nextCall") or details.get("correctedCall")


class Product:
    """A connected server."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self.instructions = str(wire.hello()["instructions"])
        listed = cast("list[dict[str, Any]]", wire.request("tools/list", {})["tools"])
        self.tools = [
            {"name": tool["name"], "description": tool["description"], "parameters": tool["inputSchema"]}
            for tool in listed
        ]

    def call(self, tool: str, arguments: Mapping[str, Any]) -> Response:
        """Call a tool. Every outcome is a response."""
        self._wire.send("tools/call", {"name": tool, "arguments": dict(arguments)})
        line = self._wire.receive_line()
        if not line:
            raise RuntimeError("the server ended")
        answer = cast("dict[str, Any]", json.loads(line))
        if "error" in answer:
            return Response(text=str(answer["error"]["message"]), structure={}, is_error=True)
        result = answer["result"]
        return Response(
            text="\n".join(block["text"] for block in result["content"] if block["type"] == "text"),
            structure=result.get("structuredContent") or {},
            is_error=bool(result.get("isError")),
        )


@contextmanager
def serving_product(python: str = sys.executable) -> Generator[Product, None, None]:
    """Yield a server on a new data directory, with the workflows of all arms; `python` runs it."""
    with temporary_site() as site:
        for arm in ARMS.values():
            if arm.document is not None:
                site.add_workflow(arm.document)
        with Wire([python, *site.command()[1:]], era="2025-11-25", extra=site.environment()) as wire:
            yield Product(wire)
