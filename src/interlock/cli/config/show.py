"""`interlock config show`: the settings that a server with the same arguments and environment would use."""

import argparse
import json
import os
from pathlib import Path

from interlock.cli.options import add_store_options, checked_settings, place_arguments
from interlock.cli.screen import StopError, printable_line, say, say_json, say_table
from interlock.config.applied import AppliedKey, applied_config_hash, applied_keys, server_states
from interlock.config.form import restart_marks
from interlock.config.model import FaultyConfig
from interlock.config.places import CONFIG_FILE
from interlock.config.settings import read_settings
from interlock.kernel.canonical import Json
from interlock.kernel.ids import Digest


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_store_options(parser)
    # A default here would overwrite a value that was given before the command.
    parser.add_argument("--workflows-dir", default=argparse.SUPPRESS, help="your own workflow files")


def run(options: argparse.Namespace) -> int:
    """Print the value of each key, its origin and whether a change needs a restart, and the hash; return the exit code.

    Raises:
        StopError: The configuration file has faults. The error lists all of them.
    """
    with checked_settings():
        settings = read_settings(os.environ, place_arguments(options))
    if isinstance(settings, FaultyConfig):
        lines = "\n".join(settings.lines())
        raise StopError(
            "The configuration file has faults.",
            f"{lines}\nCorrect each fault. Until then, `interlock serve` does not start.",
            exit_code=1,
        )
    file, keys, digest = settings.data_dir / CONFIG_FILE, applied_keys(settings), applied_config_hash(settings)
    servers = server_states(settings.data_dir, settings.config)
    if options.as_json:
        running: Json = [one.to_json() for one in servers] if servers is not None else None
        say_json({**_to_json(file, keys, digest), "servers": running})
        return 0
    found = "" if file.is_file() else " (this file does not exist)"
    say(f"{printable_line(str(file))}{found}")
    marks = restart_marks()
    heads = ("key", "value", "from", "a change")
    rows = [(one.key, _format_value(one.value), one.origin, _format_change(is_restart=marks[one.key])) for one in keys]
    say_table(heads, rows, ids=("key",))
    say(f"appliedConfigHash {digest}")
    for one in servers or ():
        client = f" of client {one.server.client}" if one.server.client is not None else ""
        applied = f", applied {one.server.applied.values}" if one.server.applied is not None else ""
        say(f"Running server {one.server.pid}{client}: {one.words()}{applied}")
    say("Values apply when a server starts; those of retention apply when `interlock gc` runs.")
    return 0


def _to_json(file: Path, keys: tuple[AppliedKey, ...], digest: Digest) -> dict[str, Json]:
    marks = restart_marks()
    return {
        "file": str(file),
        "exists": file.is_file(),
        "appliedAt": "start",
        "appliedConfigHash": digest,
        "keys": [
            {"key": one.key, "value": one.value, "origin": one.origin, "restartRequired": marks[one.key]}
            for one in keys
        ],
    }


def _format_change(*, is_restart: bool) -> str:
    return "restart-required" if is_restart else "runtime-safe"


def _format_value(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value)
