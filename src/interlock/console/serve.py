"""Runs the console on a port of this machine until it is interrupted."""

import socket
from threading import Event
from types import FrameType

import uvicorn
from starlette.applications import Starlette

from interlock.console.decisions import Decisions
from interlock.kernel.budgets.console import CONSOLE_END_S

LOOPBACK = "127.0.0.1"


def bind_port(port: int) -> socket.socket:
    """Return a socket that listens on this machine only; port 0 takes any free one.

    Raises:
        OSError: The port is taken.
    """
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((LOOPBACK, port))
        # The link is opened before the server accepts: until then connections wait.
        listening.listen()
    except OSError:
        listening.close()
        raise
    return listening


class _Server(uvicorn.Server):
    """A server that says when a signal arrives, so that open streams end by themselves."""

    def __init__(self, config: uvicorn.Config, ending: Event) -> None:
        super().__init__(config)
        self._ending = ending

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to end."""
        self._ending.set()
        super().handle_exit(sig, frame)


def serve_console(listening: socket.socket, app: Starlette, decisions: Decisions, ending: Event) -> None:
    """Serve until a signal arrives. Open streams end with the process; what is being sent gets a short time.

    Raises:
        KeyboardInterrupt: The signal was SIGINT.
    """
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=CONSOLE_END_S,
        lifespan="off",
        ws="none",
    )
    try:
        _Server(config, ending).run(sockets=[listening])
        # The server raises the signal once more at its end, which the event loop loses if its task ends just then.
        if ending.is_set():
            raise KeyboardInterrupt
    finally:
        decisions.ports.outbox.close()
