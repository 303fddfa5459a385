"""A loopback HTTP server that counts what it receives, for channels."""

import json
import threading
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(slots=True)
class Receiver:
    """What arrived, and what the server answers. `hangs` lets every request wait until the server stops."""

    url: str = ""
    status: int = 200
    reply: dict[str, Any] | None = None
    hangs: bool = False
    closes: bool = False
    received: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    keys: Counter[str] = field(default_factory=Counter[str])
    released: threading.Event = field(default_factory=threading.Event)


@contextmanager
def receiving() -> Generator[Receiver]:
    """Run a receiver on a free port of the loopback interface."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            receiver.received.append(json.loads(body))
            receiver.keys[self.headers["idempotency-key"]] += 1
            if receiver.hangs:
                receiver.released.wait(30)
            if receiver.closes:
                self.close_connection = True
                self.connection.close()
                return
            data = json.dumps(receiver.reply).encode() if receiver.reply is not None else b""
            if receiver.hangs:
                return
            self.send_response(receiver.status)
            self.send_header("content-length", str(len(data)))
            self.send_header("location", "http://127.0.0.1:1/elsewhere")
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002 — the name that the class gives it
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    receiver.url = f"http://127.0.0.1:{server.server_address[1]}/hook"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        receiver.released.set()
        server.shutdown()
        server.server_close()
