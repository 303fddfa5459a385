"""`interlock serve`: the MCP server on stdin and stdout."""

import gc
import logging
import os
import sys

import anyio

from interlock.server.app import build_server, local_ports
from interlock.server.settings import settings_from
from interlock.server.stdio import serve_stdio


def run_server(*, data_dir: str | None, workspace: str | None, core_source: str | None = None) -> int:
    """Serve until the client leaves or a signal says so; return the exit code. Logs go to stderr."""
    logging.basicConfig(stream=sys.stderr, level=os.environ.get("INTERLOCK_LOG_LEVEL", "WARNING").upper())
    if os.name == "nt":
        logging.getLogger(__name__).warning("Windows is untested")
    settings = settings_from(os.environ, data_dir=data_dir, workspace=workspace, core_source=core_source)
    server = build_server(local_ports(settings), settings.workspace)
    # What stands now stands for good; collections need not look at it again.
    gc.freeze()
    gc.enable()
    return anyio.run(serve_stdio, server)
