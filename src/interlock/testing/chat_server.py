"""A server of a model on the loopback, for tests of drivers: it speaks chat completions and the Messages shape.

A function answers each request from its body, or from a script. The server counts what it served.
"""

import json
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any, TypeAlias

from interlock.kernel.frozen import frozen, mutable

Body: TypeAlias = dict[str, Any]


@frozen
class ChatAnswer:
    """What the model answers: a text, calls of tools, tokens; or a status with which the request fails."""

    text: str | None = None
    calls: Sequence[tuple[str, Mapping[str, Any]]] = ()
    input_tokens: int = 10
    output_tokens: int = 5
    finish_reason: str | None = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


Answer: TypeAlias = Callable[[Body], ChatAnswer]


@mutable
class ChatServer:
    """A running server: its address, the requests that it served, and the tokens that it counted."""

    address: str = ""
    requests: list[Body] = field(default_factory=list[Body])
    input_tokens: int = 0
    output_tokens: int = 0


def scripted(answers: Sequence[ChatAnswer]) -> Answer:
    """Return a function that gives one answer after the other and repeats the last one."""
    left = list(answers)

    def answer(_: Body) -> ChatAnswer:
        return left.pop(0) if len(left) > 1 else left[0]

    return answer


@contextmanager
def chat_server(answer: Answer) -> Generator[ChatServer]:
    """Serve a model on a port of the loopback for as long as the block lasts."""
    state, lock = ChatServer(), Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            with lock:
                state.requests.append(body)
                given = answer(body)
                if given.status == HTTPStatus.OK:
                    state.input_tokens += given.input_tokens
                    state.output_tokens += given.output_tokens
            shape = _messages if self.path.endswith("/messages") else _completion
            number = len(state.requests)
            sent = shape(body, given, number) if given.status == HTTPStatus.OK else {"error": {"message": "scripted"}}
            content = json.dumps(sent).encode()
            self.send_response(given.status)
            for name, value in given.headers.items():
                self.send_header(name, value)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 — so the base class calls it
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        state.address = f"http://127.0.0.1:{server.server_port}/v1"
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield state
        finally:
            server.shutdown()
            thread.join()


def _completion(body: Body, answer: ChatAnswer, number: int) -> Body:
    calls = [
        {
            "id": f"call_{number}_{at}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }
        for at, (name, arguments) in enumerate(answer.calls)
    ]
    message: Body = {"role": "assistant", "content": answer.text}
    if calls:
        message["tool_calls"] = calls
    finish = answer.finish_reason or ("tool_calls" if calls else "stop")
    return {
        "id": f"chat-{number}",
        "object": "chat.completion",
        "created": number,
        "model": f"{body['model']}-served",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {
            "prompt_tokens": answer.input_tokens,
            "completion_tokens": answer.output_tokens,
            "total_tokens": answer.input_tokens + answer.output_tokens,
        },
    }


def _messages(body: Body, answer: ChatAnswer, number: int) -> Body:
    content: list[Body] = [{"type": "text", "text": answer.text}] if answer.text else []
    content += [
        {"type": "tool_use", "id": f"toolu_{number}_{at}", "name": name, "input": dict(arguments)}
        for at, (name, arguments) in enumerate(answer.calls)
    ]
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": content,
        "stop_reason": "tool_use" if answer.calls else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": answer.input_tokens, "output_tokens": answer.output_tokens},
    }
