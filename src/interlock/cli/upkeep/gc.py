"""`interlock gc`: delete expired and unreferenced data, or show what would be deleted."""

import argparse
import os
import sys
import time
from collections.abc import Collection, Mapping
from pathlib import Path

from interlock.cli.options import add_store_options, checked_settings, chosen_data_dir
from interlock.cli.render.progress import shown_progress
from interlock.cli.screen import StopError, in_units, printable_line, say, say_json, say_table
from interlock.cli.upkeep.failures import answered_by_upkeep
from interlock.config.data_dir import check_data_dir
from interlock.config.file import read_config
from interlock.config.model import Config, FaultyConfig
from interlock.config.places import CONFIG_FILE
from interlock.kernel.canonical import Json
from interlock.kernel.errors import ErrorCode
from interlock.kernel.progress import report_nothing
from interlock.service.retention.collect import CollectCommand, Collected, collect
from interlock.store.opening import open_store
from interlock.store.ports.maintenance import Due, Kind, Skipped

_DESCRIPTION = """\
Delete expired sessions and files that nothing refers to. The command moves them into the directory
`trash`; the next use of the command removes them from there. If the log of a session is damaged or newer than
this release, nothing is deleted. An expired session of which other content is missing or damaged stays.
Each session is named on stderr before it is moved.
Exit codes: 0 success, 1 something was not deleted for the reason printed, 2 wrong command line."""
APART_FIX = "Move the whole data directory to one file system, and name its new place with `--data-dir`."
LINKED_FIX = "Move the log to the place of the link, or delete both yourself."
_WORDS: Mapping[Kind, str] = {
    Kind.SESSION: "expired sessions",
    Kind.SNAPSHOT: "snapshots",
    Kind.WORKFLOW: "pinned workflows",
    Kind.ARTIFACT: "artifacts and captures",
    Kind.SEGMENT: "orphan segments",
    Kind.TEMP: "temporary files",
    Kind.LEFTOVER: "crash leftovers",
    Kind.TRASH: "trash, now removed",
}
_AGAIN = "Run `interlock gc` again when the cause is removed; `interlock doctor` examines the files."
_WHY = {
    "busy": "another process is writing to it",
    "changed": "it changed during this run",
    "full": "the disk is full",
    "damaged": "files that it refers to are missing or damaged, or cannot be read. `interlock session verify` names"
    " them: restore them, or run `interlock session delete`",
    "foreign": "it is no session, so Interlock does not delete it, nor the content that a log in it names. Move it out"
    " of the data directory if you do not need it there",
    "linked": f"a link leads to its log. {LINKED_FIX.removesuffix('.')}",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.description = _DESCRIPTION
    add_store_options(parser)
    parser.add_argument(
        "--dry-run", dest="is_dry_run", action="store_true", help="show what would be deleted, and write nothing"
    )


def run(options: argparse.Namespace) -> int:
    """Collect, print what was deleted, and return the exit code: 1 if something stays for a person to act on.

    Raises:
        StopError: The data directory is none, the configuration has faults, another command is at work, or the disk
            failed.
    """
    data_dir, is_dry_run = chosen_data_dir(options), bool(options.is_dry_run)
    with checked_settings():
        check_data_dir(data_dir)
    days = read_config_of(data_dir).retention_days
    collector = open_store(data_dir).upkeep
    # Without a data directory there is nothing to collect. The command does not create one.
    is_read_only = is_dry_run or not os.path.isdir(data_dir)  # noqa: PTH112
    command = CollectCommand(days=days, now_s=time.time(), is_dry_run=is_read_only)
    with answered_by_upkeep(), shown_progress("Reading sessions") as progress:
        found = collect(collector, collector.retention_pins, command, progress, _announce)
    if options.as_json:
        say_json(_to_json(data_dir, days, found, is_dry_run=is_dry_run))
    else:
        _say(days, found, is_dry_run=is_dry_run)
    return 1 if found.needs_attention else 0


def _announce(taken: Due) -> None:
    """Name what goes to the trash on stderr, before it goes there."""
    leftovers = [item.name for item in taken.items if item.kind is Kind.LEFTOVER]
    for name in (*(one.session for one in taken.sessions), *leftovers):
        print(printable_line(f"due: {name}"), file=sys.stderr, flush=True)


def dry_run_json(data_dir: Path, days: int) -> dict[str, Json]:
    """Return what would be deleted, as `--dry-run --json` prints it. Writes nothing.

    Raises:
        StoreFailureError: The disk failed.
    """
    collector = open_store(data_dir).upkeep
    command = CollectCommand(days=days, now_s=time.time(), is_dry_run=True)
    found = collect(collector, collector.retention_pins, command, report_nothing)
    return _to_json(data_dir, days, found, is_dry_run=True)


def read_config_of(data_dir: Path) -> Config:
    """Return the configuration of a data directory.

    Raises:
        StopError: It has faults. The error lists all of them.
    """
    config = read_config(data_dir / CONFIG_FILE)
    if isinstance(config, FaultyConfig):
        raise StopError("The configuration file has faults.", "\n".join(config.lines()), exit_code=1)
    return config


def count_by_kind(due: Due) -> dict[Kind, tuple[int, int]]:
    """Return the count and the bytes of each kind, in the order in which they are printed."""
    sums: dict[Kind, tuple[int, int]] = dict.fromkeys(Kind, (0, 0))
    for kind, size in due.sizes():
        count, total = sums[kind]
        sums[kind] = (count + 1, total + size)
    return sums


def _say(days: int, found: Collected, *, is_dry_run: bool) -> None:
    if found.is_safe_mode:
        say("Safe mode: `interlock gc` deletes nothing until these problems are solved.")
        for blocker in found.blockers:
            say(f"{blocker.message}\n  {blocker.fix}")
        return
    sums = count_by_kind(found.taken)
    rows = [(_WORDS[kind], str(count), in_units(size)) for kind, (count, size) in sums.items()]
    total = sum(size for _, size in sums.values())
    say_table(("would be deleted" if is_dry_run else "deleted", "count", "size"), [*rows, ("all", "", in_units(total))])
    for session in found.restored:
        say(f"{session} {'would be' if is_dry_run else 'was'} moved back from the trash: it has not expired.")
    for one in found.skipped:
        say(f"{one.session or one.name} was skipped: {why_skipped(one)}.")
    if found.apart:
        say(f"{_apart_words(found.apart)} were left: `trash` is on another file system. {APART_FIX}")
    if found.failure is not None:
        say(f"The disk failed ({found.failure.found}), so this run ended early. {_AGAIN}")
    say(_policy(days, found))
    if not is_dry_run and any(kind is not Kind.TRASH for kind, _ in found.taken.sizes()):
        say("The deleted data is in the directory `trash` until the next `interlock gc` removes it.")


def why_skipped(one: Skipped) -> str:
    """Return why something was left, in words."""
    return _WHY[one.why] if one.why != "failed" else f"the disk refused the work on `{one.name}` ({one.found})"


def _apart_words(apart: Collection[Kind]) -> str:
    return ", ".join(words for kind, words in _WORDS.items() if kind in apart).capitalize()


def _policy(days: int, found: Collected) -> str:
    age = f"Sessions expire {days} days after their last event" if days else "Sessions never expire"
    return f"{age} (`retention.days` in config.toml); {found.kept} of {found.sessions} are kept regardless of age."


def _to_json(data_dir: Path, days: int, found: Collected, *, is_dry_run: bool) -> dict[str, Json]:
    sums = count_by_kind(found.taken)
    return {
        "dataDir": str(data_dir),
        "dryRun": is_dry_run,
        "mode": "safe" if found.is_safe_mode else "normal",
        "retentionDays": days,
        "sessions": found.sessions,
        "kept": found.kept,
        "taken": [{"what": kind.value, "count": count, "bytes": size} for kind, (count, size) in sums.items()],
        "expired": [one.session for one in found.taken.sessions],
        "restored": list(found.restored),
        "skipped": [_skipped(one) for one in found.skipped],
        "apart": [kind.value for kind in Kind if kind in found.apart],
        "failure": found.failure.found if found.failure is not None else None,
        "warnings": [blocker.to_json() for blocker in found.blockers],
    }


def _skipped(one: Skipped) -> dict[str, Json]:
    fields: dict[str, Json] = {"session": one.session, "why": one.why}
    if one.why in {"failed", "foreign"}:
        fields |= {"name": one.name}
    if one.why == "failed":
        fields |= {"found": one.found}
    return fields | ({"code": ErrorCode.SESSION_LOCKED.value} if one.why == "busy" else {})
