"""`interlock serve`: the MCP server on stdin and stdout."""

import gc
import logging
import os
import sys

import anyio

from interlock.server.app import build_server, local_ports
from interlock.server.applied_config import applied_config_hash
from interlock.server.config import FaultyConfig
from interlock.server.settings import PlaceArguments, read_settings
from interlock.server.stdio import serve_stdio

_log = logging.getLogger(__name__)
EXIT_FAULTY_CONFIG = 2


def run_server(arguments: PlaceArguments) -> int:
    """Serve until the client leaves or a signal says so; return the exit code. Logs go to stderr.

    A configuration with a fault starts nothing: to go on with other values than were written would be silent.
    """
    logging.basicConfig(stream=sys.stderr, level=os.environ.get("INTERLOCK_LOG_LEVEL", "WARNING").upper())
    if os.name == "nt":
        _log.warning("Windows is untested")
    settings = read_settings(os.environ, arguments)
    if isinstance(settings, FaultyConfig):
        _refuse(settings)
        return EXIT_FAULTY_CONFIG
    _log.info("appliedConfigHash %s", applied_config_hash(settings))
    server = build_server(local_ports(settings), settings.workspace)
    # What stands now stands for good; collections need not look at it again.
    gc.freeze()
    gc.enable()
    return anyio.run(serve_stdio, server)


def _refuse(config: FaultyConfig) -> None:
    from interlock.cli.screen import printable  # noqa: PLC0415 — only a refusal pays for it

    lines = "\n".join(config.lines())
    print(printable(f"interlock does not start: its configuration cannot be used.\n{lines}"), file=sys.stderr)
