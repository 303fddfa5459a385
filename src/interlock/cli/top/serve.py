"""`interlock serve`: the MCP server on stdin and stdout."""

import gc
import logging
import os
import signal
import sys
import threading
from collections.abc import Mapping
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from interlock.config.applied import applied_config_hash
from interlock.config.data_dir import PlaceArguments, SettingsError, check_data_dir, data_dir_of
from interlock.config.model import FaultyConfig
from interlock.config.places import LOG_LEVELS
from interlock.config.settings import Settings, read_settings
from interlock.kernel.budgets import RESUME_SENDING_S, SERVER_COLLECTION_VALUES_MIN
from interlock.kernel.frozen import positional

if TYPE_CHECKING:
    import argparse

    from mcp.server.lowlevel import Server

    from interlock.server.transport.front import Front
    from interlock.service.ports import Ports

_log = logging.getLogger(__name__)


def add_arguments(parser: "argparse.ArgumentParser") -> None:
    """Add the arguments of the command."""
    from interlock.cli.commands import add_places  # noqa: PLC0415 — a plain `serve` parses its options itself

    add_places(parser)
    parser.add_argument("--core-source", help="add a directory of core workflows (for packagers and tests)")


@positional
class Loaded:
    """A server that is ready to serve, and the ports that it uses."""

    server: "Server[Any]"
    ports: "Ports"


def run(options: "argparse.Namespace") -> int:
    """Serve until the client disconnects or a signal arrives. Return the exit code: 2 if a setting is invalid."""
    from interlock.cli.options import place_arguments  # noqa: PLC0415 — see `add_arguments`

    # Until the server handles signals, Ctrl-C ends the process in the default way: without a traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    settings = check(place_arguments(options))
    if isinstance(settings, int):
        return settings
    if sys.stdin.isatty():
        print("interlock serve: waiting for an MCP client on standard input; Ctrl-C ends it.", file=sys.stderr)
    return serve(load(settings))


def places_of(options: Mapping[str, str]) -> PlaceArguments:
    """Return the directories that the options name; an option keeps its dashes."""
    return PlaceArguments(
        data_dir=options.get("--data-dir"),
        workspace=options.get("--workspace"),
        workflows_dir=options.get("--workflows-dir"),
        core_source=options.get("--core-source"),
    )


def check(arguments: PlaceArguments) -> Settings | int:
    """Return the settings of the server, or after a message the exit code 2 if one is invalid.

    Logs go to stderr from now on. A faulty configuration ends the command: to serve with other values than the file
    says would hide the fault.
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
    return settings


def load(settings: Settings, server_input: int = 0) -> Loaded:
    """Import the server, which takes half a second, and build it. `server_input` is the descriptor of its input."""
    # The SDK defines hundreds of models, of which a connection uses a few: each is built when it is first used.
    BaseModel.model_config["defer_build"] = True
    from interlock.server.transport.sdk import defer_packages  # noqa: PLC0415 — as below

    defer_packages()
    from interlock.config.ports import local_ports  # noqa: PLC0415 — the SDK is imported after the checks
    from interlock.server.app import build_server  # noqa: PLC0415 — as above

    ports = local_ports(settings, server_input=server_input)
    server = build_server(ports, settings.workspace)
    # Imported here, in a thread perhaps, so that `serve` begins at once.
    import_module("anyio")
    import_module("interlock.server.transport.stdio")
    del BaseModel.model_config["defer_build"]
    return Loaded(server, ports)


def serve(loaded: Loaded, front: "Front | None" = None) -> int:
    """Serve until the client disconnects or a signal arrives; return the exit code."""
    import anyio  # noqa: PLC0415 — see `load`

    from interlock.server.app import close_subscriptions  # noqa: PLC0415 — as above
    from interlock.server.transport.loop import new_event_loop  # noqa: PLC0415 — as above
    from interlock.server.transport.stdio import serve_stdio  # noqa: PLC0415 — as above

    # Everything that exists now lives as long as the process; collections need not search it.
    gc.freeze()
    gc.set_threshold(SERVER_COLLECTION_VALUES_MIN)
    gc.enable()
    resuming = threading.Timer(RESUME_SENDING_S, loaded.ports.outbox.resume)
    resuming.daemon = True
    resuming.start()
    try:
        on_closing = partial(close_subscriptions, loaded.server)
        serving = partial(serve_stdio, loaded.server, on_closing=on_closing, front=front)
        return anyio.run(serving, backend_options={"loop_factory": new_event_loop})
    finally:
        resuming.cancel()
        loaded.ports.outbox.close()
        if loaded.ports.late_summaries is not None:
            loaded.ports.late_summaries.close()


def _check_streams() -> None:
    if sys.stdin is None or sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison] — so it is if closed
        raise SettingsError(
            "Standard input or output is closed.", "Let an MCP client start the server: the client connects both."
        )


def _log_level() -> str:
    level = os.environ.get("INTERLOCK_LOG_LEVEL") or "WARNING"
    if level.upper() not in LOG_LEVELS:
        fix = f"Set it to one of {', '.join(LOG_LEVELS).lower()}, or unset it."
        raise SettingsError(f"INTERLOCK_LOG_LEVEL: {level!r} is not a log level.", fix)
    return level.upper()


def _checked_settings(arguments: PlaceArguments) -> Settings:
    check_data_dir(data_dir_of(os.environ, arguments))
    settings = read_settings(os.environ, arguments)
    if isinstance(settings, FaultyConfig):
        raise SettingsError("The configuration file has faults.", "\n".join(settings.lines()))
    return settings
