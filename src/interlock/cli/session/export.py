"""`interlock session export`: write one session and everything that it refers to into one file."""

import argparse
import sys
from pathlib import Path

from interlock.cli.options import add_store_options
from interlock.cli.render.out_file import check_free, unwritable, write_out
from interlock.cli.screen import RefusedError, StopError, printable_line, say, say_json
from interlock.cli.session.chosen import named_session
from interlock.cli.session.evidence.report import rendered_report
from interlock.cli.session.evidence.show import account_of
from interlock.cli.store import answered_by_store, open_chosen_reader
from interlock.kernel.errors import Refusal
from interlock.kernel.ids import SessionId
from interlock.service.clock import SystemClock
from interlock.service.transfer.export import Exported, export_session
from interlock.service.transfer.salvage import left_out_words
from interlock.store.ports.store import StoreReader

STDOUT = "-"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_store_options(parser)
    parser.add_argument("session", metavar="SESSION", help="the session id or a run's label")
    parser.add_argument(
        "--out", metavar="FILE", help="the file to write, `-` for standard output (default: SESSION.interlock.json)"
    )
    parser.add_argument(
        "--report",
        dest="has_report",
        action="store_true",
        help="write a folder (default: SESSION) with the bundle and the report as Markdown and HTML",
    )
    parser.add_argument(
        "--salvage", dest="is_salvage", action="store_true", help="export the intact part of a damaged session"
    )
    parser.add_argument("--force", dest="is_forced", action="store_true", help="overwrite the file")


def run(options: argparse.Namespace) -> int:
    """Write a bundle and return the exit code.

    Raises:
        StopError: The session cannot be exported, or the file cannot be written.
    """
    store, is_printed = open_chosen_reader(options), options.out == STDOUT
    if is_printed and options.as_json:
        raise StopError(
            "`--out -` prints the bundle, so there is no room for --json.", "Leave out --json.", exit_code=2
        )
    session = named_session(store, options.session)
    path = Path(options.out or (session if options.has_report else f"{session}.interlock.json"))
    if is_printed and options.has_report:
        raise StopError("`--report` writes several files.", "Name a folder with --out, or leave it out.", exit_code=2)
    if not is_printed:
        check_free(path, is_forced=options.is_forced)
    with answered_by_store():
        exported = export_session(store, SystemClock(), session, is_salvage=options.is_salvage)
    if isinstance(exported, Refusal):
        raise RefusedError(exported)
    if is_printed:
        sys.stdout.buffer.write(exported.data)
        return 0
    if options.has_report:
        path = _write_folder(store, session, path, exported.data, options)
    else:
        write_out(path, exported.data, is_forced=options.is_forced)
    _report(exported, path, as_json=options.as_json)
    return 0


def _write_folder(
    store: StoreReader, session: SessionId, folder: Path, data: bytes, options: argparse.Namespace
) -> Path:
    """Write the bundle and the reports of a session into a folder, and return the path of the bundle."""
    viewed = account_of(store, session, options=options)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(folder, error) from None
    bundle = folder / f"{session}.interlock.json"
    for form in ("md", "html"):
        text = rendered_report(viewed, form)
        write_out(folder / f"report.{form}", text.encode("utf-8", "backslashreplace"), is_forced=True)
    write_out(bundle, data, is_forced=True)
    return bundle


def _report(exported: Exported, path: Path, *, as_json: bool) -> None:
    if as_json:
        fields = {
            "file": str(path),
            "bundleId": exported.bundle_id,
            "sessionId": exported.session,
            "events": exported.events,
            "bytes": len(exported.data),
        }
        say_json(fields | ({"salvage": exported.banner.to_json()} if exported.banner is not None else {}))
        return
    if exported.banner is not None:
        say(f"{exported.banner.code}: this is not the complete session. Left out: {left_out_words(exported.banner)}.")
    name = printable_line(str(path))
    say(f"Wrote {name}: {exported.events} events of {exported.session}, {len(exported.data)} bytes.")
    say("It contains everything that was recorded, including notes and context, but no tokens.")
    say(f"On the other machine: interlock session import {name}")
