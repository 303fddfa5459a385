"""A scripted model on the loopback. It knows only what a client shows it of an answer.

It starts a workflow, and from then on sends the next call that it finds in the last result, with notes. Of three
vendors' interfaces it speaks as much as their own clients need.
"""

import json
import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from tests.support.shown import shown_calls

TURNS_MAX = 12
"""A model that goes in circles is stopped."""

Body = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call of a tool, as the server names it."""

    tool: str
    arguments: dict[str, Any]


@dataclass(slots=True, kw_only=True)
class Model:
    """What it was shown, in order: one text for each result of a tool."""

    workflow_id: str
    address: str = ""
    shown: list[str] = field(default_factory=list[str])

    def decide(self, results: list[str]) -> Call | None:
        """Return the next call; None where there is none to be found."""
        self.shown = results
        if not results:
            return Call(tool="start_workflow", arguments={"workflowId": self.workflow_id})
        call = next_call(results[-1]) if len(results) < TURNS_MAX else None
        return call and Call(tool=call.tool, arguments={**call.arguments, "output": {"notesMarkdown": "Done."}})


def next_call(result: str) -> Call | None:
    """Return the call that a result names: in its `nextCall` if it holds the structure, else in its text."""
    structure = re.search(r'\{"kind": ?"(ok|blocked)"', result)
    if structure is not None:
        found = json.JSONDecoder().raw_decode(result, structure.start())[0]["nextCall"]
        return found and Call(tool=found["tool"], arguments=found["arguments"])
    shown = shown_calls(result)
    return Call(tool=shown[-1][0], arguments=shown[-1][1]) if shown else None


def anthropic(model: Model, body: Body) -> bytes:
    """Answer as the Messages interface does, as a stream."""
    parts = [message["content"] for message in body["messages"] if isinstance(message["content"], list)]
    contents = [part["content"] for content in parts for part in content if part["type"] == "tool_result"]
    call = model.decide([text_of(content) for content in contents]) if body.get("tools") else None
    block: Body = {"type": "text", "text": ""}
    delta: Body = {"type": "text_delta", "text": "Done."}
    if call is not None:
        name = f"mcp__interlock__{call.tool}"
        block = {"type": "tool_use", "id": f"toolu_{len(contents)}", "name": name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(call.arguments)}
    usage = {"input_tokens": 1, "output_tokens": 1}
    message: Body = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": [],
        "usage": usage,
    }
    reason = {"stop_reason": "tool_use" if call else "end_turn", "stop_sequence": None}
    return events(
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": reason, "usage": usage},
        {"type": "message_stop"},
    )


def openai(model: Model, body: Body) -> bytes:
    """Answer as the Responses interface does, as a stream."""
    outputs = [item["output"] for item in body["input"] if item["type"] == "function_call_output"]
    call = model.decide([text_of(output) for output in outputs])
    turn = len(outputs)
    text = {"type": "output_text", "text": "Done."}
    item: Body = {"type": "message", "id": "m", "role": "assistant", "content": [text]}
    if call is not None:
        named = {"name": call.tool, "namespace": "mcp__interlock", "arguments": json.dumps(call.arguments)}
        item = {"type": "function_call", "id": f"fc_{turn}", "call_id": f"call_{turn}", **named}
    usage: Body = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    return events(
        {"type": "response.created", "response": {"id": f"r{turn}"}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {"id": f"r{turn}", "usage": usage}},
    )


def gemini(model: Model, body: Body) -> bytes:
    """Answer as the Gemini interface does, as a stream."""
    parts = [part for content in body["contents"] for part in content["parts"]]
    responses = [part["functionResponse"]["response"] for part in parts if "functionResponse" in part]
    call = model.decide([str(one.get("output", one)) for one in responses]) if body.get("tools") else None
    said: Body = {"text": "Done."}
    if call is not None:
        said = {"functionCall": {"name": f"mcp_interlock_{call.tool}", "args": call.arguments}}
    candidate = {"content": {"role": "model", "parts": [said]}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    return events({"candidates": [candidate], "usageMetadata": usage})


INTERFACES = {"/messages": anthropic, "/responses": openai, "streamGenerateContent": gemini}


def text_of(content: str | list[Body]) -> str:
    """Return the text of a result, which is a text or a list of parts."""
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def events(*bodies: Body) -> bytes:
    """Return server-sent events; each is named by its type, if it has one."""
    lines = [(f"event: {one['type']}\n" if "type" in one else "") + f"data: {json.dumps(one)}\n\n" for one in bodies]
    return "".join(lines).encode()


@contextmanager
def serving(model: Model) -> Generator[None]:
    """Serve a model on the loopback for as long as the block lasts."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            path = self.path.partition("?")[0]
            speak = next((speak for end, speak in INTERFACES.items() if path.endswith(end)), None)
            content = speak(model, body) if speak else b"{}"
            self.send_response(200)
            self.send_header("content-type", "text/event-stream" if speak else "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 — so the base class calls it
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        model.address = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()
