"""Runs the console on a port of this machine until it is interrupted."""

import socket

import uvicorn

from interlock.console.access import Access
from interlock.console.app import build_app
from interlock.console.decisions import Decisions
from interlock.console.reading import Sources

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
    except OSError:
        listening.close()
        raise
    return listening


def serve_console(listening: socket.socket, sources: Sources, decisions: Decisions, access: Access) -> None:
    """Serve until a signal arrives. Open streams end with the process; what is being sent gets a short time."""
    config = uvicorn.Config(
        build_app(sources, decisions, access),
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=1,
        lifespan="off",
        ws="none",
    )
    try:
        uvicorn.Server(config).run(sockets=[listening])
    finally:
        decisions.ports.outbox.close()
