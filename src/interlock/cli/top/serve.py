"""`interlock serve`: the MCP server on stdin and stdout."""

import argparse
import gc
import logging
import os
import signal
import sys

from interlock.cli.commands import add_places
from interlock.cli.options import place_arguments
from interlock.config.applied import applied_config_hash
from interlock.config.model import FaultyConfig
from interlock.config.settings import (
    PlaceArguments,
    Settings,
    SettingsError,
    check_data_dir,
    data_dir_of,
    read_settings,
)

_LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
_log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_places(parser)
    parser.add_argument("--core-source", help="add a directory of core workflows (for packagers and tests)")


def run(options: argparse.Namespace) -> int:
    """Serve until the client disconnects or a signal arrives. Return the exit code: 2 if a setting is invalid.

    Logs go to stderr. A faulty configuration ends the command: to serve with other values than the file says would
    hide the fault.
    """
    # Until the server handles signals, Ctrl-C ends the process in the default way: without a traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        _check_streams()
        logging.basicConfig(stream=sys.stderr, level=_log_level())
        settings = _checked_settings(place_arguments(options))
    except SettingsError as error:
        from interlock.cli.screen import printable  # noqa: PLC0415 — only a refusal pays for it

        print(printable(f"interlock serve: {error.message}\n{error.fix}"), file=sys.stderr)
        return 2
    if os.name == "nt":
        _log.warning("Windows is untested")
    _log.info("appliedConfigHash %s", applied_config_hash(settings))
    if sys.stdin.isatty():
        print("interlock serve: waiting for an MCP client on standard input; Ctrl-C ends it.", file=sys.stderr)
    # Importing the SDK takes half a second: Ctrl-C must print no traceback in that time.
    import anyio  # noqa: PLC0415 — see above

    from interlock.config.ports import local_ports  # noqa: PLC0415 — as above
    from interlock.server.app import build_server  # noqa: PLC0415 — as above
    from interlock.server.transport.stdio import serve_stdio  # noqa: PLC0415 — as above

    ports = local_ports(settings, is_server=True)
    server = build_server(ports, settings.workspace)
    # Everything that exists now lives as long as the process; collections need not search it.
    gc.freeze()
    gc.enable()
    try:
        return anyio.run(serve_stdio, server)
    finally:
        ports.outbox.close()


def _check_streams() -> None:
    if sys.stdin is None or sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison] — so it is if closed
        raise SettingsError(
            "Standard input or output is closed.", "Let an MCP client start the server: the client connects both."
        )


def _log_level() -> str:
    level = os.environ.get("INTERLOCK_LOG_LEVEL") or "WARNING"
    if level.upper() not in _LOG_LEVELS:
        fix = f"Set it to one of {', '.join(_LOG_LEVELS).lower()}, or unset it."
        raise SettingsError(f"INTERLOCK_LOG_LEVEL: {level!r} is not a log level.", fix)
    return level.upper()


def _checked_settings(arguments: PlaceArguments) -> Settings:
    check_data_dir(data_dir_of(os.environ, arguments))
    settings = read_settings(os.environ, arguments)
    if isinstance(settings, FaultyConfig):
        raise SettingsError("The configuration file has faults.", "\n".join(settings.lines()))
    return settings
