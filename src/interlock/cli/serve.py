"""`interlock serve`: the MCP server on stdin and stdout."""

import gc
import logging
import os
import sys

import anyio

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
from interlock.server.app import build_server, local_ports
from interlock.server.stdio import serve_stdio

_LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
_log = logging.getLogger(__name__)


def run_server(arguments: PlaceArguments) -> int:
    """Serve until the client leaves or a signal says so; return the exit code: 2 if it cannot begin as told.

    Logs go to stderr. A configuration with a fault starts nothing: to go on with other values than were written would
    be silent.
    """
    try:
        _check_streams()
        logging.basicConfig(stream=sys.stderr, level=_log_level())
        settings = _checked_settings(arguments)
    except SettingsError as error:
        from interlock.cli.screen import printable  # noqa: PLC0415 — only a refusal pays for it

        print(printable(f"interlock serve: {error.message}\n{error.fix}"), file=sys.stderr)
        return 2
    if os.name == "nt":
        _log.warning("Windows is untested")
    _log.info("appliedConfigHash %s", applied_config_hash(settings))
    if sys.stdin.isatty():
        print("interlock serve: waiting for an MCP client on standard input; Ctrl-C ends it.", file=sys.stderr)
    server = build_server(local_ports(settings), settings.workspace)
    # What stands now stands for good; collections need not look at it again.
    gc.freeze()
    gc.enable()
    return anyio.run(serve_stdio, server)


def _check_streams() -> None:
    if sys.stdin is None or sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison] — so it is if closed
        raise SettingsError("Standard input or output is closed.", "Let a client start it, with a pipe on both.")


def _log_level() -> str:
    level = os.environ.get("INTERLOCK_LOG_LEVEL") or "WARNING"
    if level.upper() not in _LOG_LEVELS:
        fix = f"Set it to one of {', '.join(_LOG_LEVELS).lower()}, or unset it."
        raise SettingsError(f"INTERLOCK_LOG_LEVEL: {level!r} is no log level.", fix)
    return level.upper()


def _checked_settings(arguments: PlaceArguments) -> Settings:
    check_data_dir(data_dir_of(os.environ, arguments))
    settings = read_settings(os.environ, arguments)
    if isinstance(settings, FaultyConfig):
        raise SettingsError("its configuration cannot be used.", "\n".join(settings.lines()))
    return settings
