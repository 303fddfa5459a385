"""The real server over streamable HTTP, on the loopback only: for a suite that cannot speak over a pipe.

The product serves over stdin and stdout alone. What answers here is the same server, put together by the same
function over a local data directory; only the wire in front of it is the SDK's instead of ours.

Run as a script with a data directory and a workspace, it prints the port it listens on and serves until its stdin ends.
"""

import socket
import sys
import threading
from pathlib import Path

import uvicorn

from interlock.config.ports import local_ports
from interlock.config.settings import Settings
from interlock.server.app import build_server


def serve(settings: Settings) -> None:
    """Serve until stdin ends: whoever started this has then gone, or wants it to go."""
    app = build_server(local_ports(settings), settings.workspace).streamable_http_app(streamable_http_path="/mcp")
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1))

    def end_with_stdin() -> None:
        sys.stdin.read()
        server.should_exit = True

    with socket.create_server(("127.0.0.1", 0)) as listener:
        # It listens already: whoever connects from now on waits, at the most, until the server takes up.
        print(listener.getsockname()[1], flush=True)  # noqa: T201 — the port is what a caller waits for
        threading.Thread(target=end_with_stdin, daemon=True).start()
        server.run(sockets=[listener])


if __name__ == "__main__":
    serve(Settings(data_dir=Path(sys.argv[1]), workspace=Path(sys.argv[2]), user_workflows=None))
