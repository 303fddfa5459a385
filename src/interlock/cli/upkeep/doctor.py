"""`interlock doctor`: check the installation and the data, and report fixes. It writes no file."""

import argparse
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from interlock.cli.options import add_store_options, checked_settings, place_arguments
from interlock.cli.screen import printable, say, say_json
from interlock.cli.upkeep import checks
from interlock.cli.upkeep.clients import PLACES, registration, serving_command
from interlock.cli.upkeep.failures import READ_FIX
from interlock.cli.upkeep.finding import Finding, attention
from interlock.cli.upkeep.sessions import check_sessions, check_sessions_deeply
from interlock.cli.workflow.places import places_of
from interlock.config.data_dir import PlaceArguments, data_dir_of, data_dir_origin
from interlock.config.file import read_config
from interlock.config.model import Config, FaultyConfig
from interlock.config.places import CONFIG_FILE
from interlock.kernel.canonical import Json
from interlock.service.retention.collect import CollectCommand
from interlock.store.opening import open_store
from interlock.store.ports.errors import StoreFailureError
from interlock.version import VERSION

_DESCRIPTION = """Check the installation and the recorded data, and report how to fix each problem. Nothing is written.
Exit codes: 0 no problem found, 1 something needs attention, 2 wrong command line."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.description = _DESCRIPTION
    add_store_options(parser)
    parser.add_argument(
        "--deep", dest="is_deep", action="store_true", help="read every record and every file that a record refers to"
    )
    parser.add_argument("--client", choices=tuple(PLACES), help="print only how to register Interlock with this client")


def run(options: argparse.Namespace) -> int:
    """Check everything, or print how to register with a client; return the exit code.

    Raises:
        StopError: See `_check` and `_register`.
    """
    arguments, as_json = place_arguments(options), bool(options.as_json)
    if options.client is not None:
        return _register(os.environ, arguments, options.client, as_json=as_json)
    return _check(os.environ, arguments, is_deep=options.is_deep, as_json=as_json)


def _check(environment: Mapping[str, str], arguments: PlaceArguments, *, is_deep: bool, as_json: bool) -> int:
    """Run all checks, print the findings, and return the exit code: 1 if something needs attention.

    Data that cannot be read needs attention; the other checks still run.

    Raises:
        StopError: An argument names a path that is not a directory.
    """
    with checked_settings():
        findings = list(_findings(environment, arguments, is_deep=is_deep))
    problems = [one for one in findings if one.level == "attention"]
    if as_json:
        found: list[Json] = [one.to_json() for one in findings]
        data_dir, origin = data_dir_of(environment, arguments), data_dir_origin(environment, arguments)
        place: dict[str, Json] = {"dataDir": str(data_dir), "dataDirOrigin": origin}
        say_json({"interlock": VERSION, **place, "deep": is_deep, "attention": len(problems), "findings": found})
    else:
        for one in findings:
            say(_render_finding(one))
        say(_render_verdict(len(problems)))
    return 1 if problems else 0


def _register(environment: Mapping[str, str], arguments: PlaceArguments, client: str, *, as_json: bool) -> int:
    """Print how to register this Interlock with a client, and return the exit code.

    Raises:
        StopError: An argument names a path that is not a directory.
    """
    with checked_settings():
        entry = registration(client, serving_command(environment, arguments))
    if as_json:
        say_json(entry.to_json())
    else:
        say(entry.in_words())
    return 0


def _findings(environment: Mapping[str, str], arguments: PlaceArguments, *, is_deep: bool) -> Iterator[Finding]:
    data_dir = data_dir_of(environment, arguments)
    yield from checks.check_program()
    origin = data_dir_origin(environment, arguments)
    yield from _findings_until_unreadable("data directory", checks.check_data_directory(data_dir, origin))
    yield from _findings_until_unreadable("workflows", _workflows(environment, arguments, data_dir))
    if not os.path.isdir(data_dir):  # noqa: PTH112 — an unreachable directory is reported above
        return
    yield from checks.check_configuration(data_dir)
    store = open_store(data_dir)
    yield from _findings_until_unreadable("keys", checks.check_key_ring(store, store))
    yield from _findings_until_unreadable("sessions", _sessions(data_dir, is_deep=is_deep))


def _workflows(environment: Mapping[str, str], arguments: PlaceArguments, data_dir: Path) -> Iterator[Finding]:
    if not isinstance(read_config(data_dir / CONFIG_FILE), FaultyConfig):
        places = places_of(environment, arguments)
        yield from checks.check_workflow_files(places.files.files(places.workspace))


def _sessions(data_dir: Path, *, is_deep: bool) -> Iterator[Finding]:
    if not is_deep:
        yield from check_sessions(data_dir)
        return
    config = read_config(data_dir / CONFIG_FILE)
    days = (Config() if isinstance(config, FaultyConfig) else config).retention_days
    yield from check_sessions_deeply(data_dir, CollectCommand(days=days, now_s=time.time(), is_dry_run=True))


def _findings_until_unreadable(check: str, findings: Iterator[Finding]) -> Iterator[Finding]:
    """Yield findings; if a read fails, yield that as the last one."""
    try:
        yield from findings
    except (StoreFailureError, OSError) as error:
        found = error.found if isinstance(error, StoreFailureError) else error.strerror
        where = error.where if isinstance(error, StoreFailureError) else None
        place = f"{where}: " if where is not None else ""
        yield attention(check, f"This cannot be read completely ({place}{found}).", READ_FIX)


def _render_finding(one: Finding) -> str:
    margin = " " * 11
    fix = [one.fix] if one.fix else []
    lines = "\n".join([f"{one.check}: {one.message}", *fix]).splitlines()
    return printable(f"{one.level:<{len(margin)}}" + f"\n{margin}".join(lines))


def _render_verdict(problems: int) -> str:
    match problems:
        case 0:
            return "No problem found. To register Interlock with a client: interlock doctor --client NAME"
        case 1:
            return "One thing needs attention."
        case _:
            return f"{problems} things need attention."
