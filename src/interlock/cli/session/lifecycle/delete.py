"""`interlock session delete`: delete a session that should never have been written, whatever its age."""

import argparse
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager

from interlock.cli.options import add_store_options, chosen_data_dir
from interlock.cli.screen import StopError, counted, flat, say, say_json
from interlock.cli.session.chosen import named_session
from interlock.cli.store import answered_by_store, open_chosen_reader
from interlock.cli.upkeep.failures import answered_by_upkeep
from interlock.cli.upkeep.gc import APART_FIX, LINKED_FIX, why_skipped
from interlock.kernel.budgets import CELL_BYTES_MAX, NAMED_MAX, SHORT_ID_CHARS_MIN
from interlock.kernel.errors import ErrorCode
from interlock.kernel.ids import SessionId
from interlock.kernel.text import one_line
from interlock.record.events import WorkRecordedEvent
from interlock.service.retention.collect import CollectCommand, Collected, collect
from interlock.service.run.history import history_of
from interlock.service.run.plans import Plans
from interlock.service.run.summarize import summary_of
from interlock.store.opening import open_store
from interlock.store.ports.errors import UNUSABLE_SESSION, StoreFailureError
from interlock.store.ports.maintenance import Kind
from interlock.store.ports.store import StoreReader

_CONTENT_LATER = (
    "Snapshots and artifacts that only this session refers to are deleted by `interlock gc`, one day after they were"
    " written. The session itself is gone from the disk."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_store_options(parser)
    parser.add_argument("session", metavar="SESSION", help="the session id or a run's label")
    parser.add_argument("--yes", dest="is_confirmed", action="store_true", help="do not ask")


def run(options: argparse.Namespace) -> int:
    """List the runs of a session, ask, and delete the session; return the exit code.

    Raises:
        StopError: It does not exist, is kept or referred to, nobody confirmed, or damage prevents deletions.
    """
    store = open_chosen_reader(options)
    session = named_session(store, options.session)
    with answered_by_store():
        if not store.is_stored(session):
            fix = "`interlock session list` lists all sessions."
            raise StopError(f"There is no session {session}.", fix, exit_code=1, code=ErrorCode.SESSION_NOT_FOUND)
        referring = list(_referring(store, session))
        runs = list(_runs(store, session))
    if referring:
        named = ", ".join(referring[:NAMED_MAX])
        raise StopError(f"{session} is referred to by {named}.", "Delete those first, or keep it.", exit_code=1)
    _confirm(session, runs, is_confirmed=options.is_confirmed, is_quiet=options.as_json)
    delete_session(options, session)
    if options.as_json:
        say_json({"deleted": session, "runs": len(runs)})
    else:
        say(f"Deleted {session} with {counted(len(runs), 'run')}. {_CONTENT_LATER}")
    return 0


def _runs(store: StoreReader, session: SessionId) -> Iterator[str]:
    loaded = store.load(session)
    for run in summary_of(loaded, Plans(store)).runs if loaded is not None else ():
        goal = one_line(run.goal or run.workflow_name, CELL_BYTES_MAX)
        yield flat(f"run {run.label}, {run.workflow_id}, {run.status_text}: {goal}")


def _referring(store: StoreReader, session: SessionId) -> Iterator[SessionId]:
    """Yield the other sessions whose records of ended work name a session. Those that cannot be read name none."""
    for other in store.sessions():
        try:
            history = history_of(store, other) if other != session else None
        except UNUSABLE_SESSION:
            continue
        events = [event for plan in history.appended for event in plan] if history is not None else []
        ended = [event.data for event in events if isinstance(event, WorkRecordedEvent)]
        if any(session in ref for work in ended for ref in work.refs or ()):
            yield other


def _confirm(session: SessionId, runs: list[str], *, is_confirmed: bool, is_quiet: bool) -> None:
    """Ask whether to delete a session.

    Raises:
        StopError: Nobody can be asked, or the answer is no.
    """
    if not is_quiet:
        say(f"{session} has {counted(len(runs), 'run')}:" if runs else f"{session} has no runs.")
        for line in runs:
            say(f"  {line}")
    if is_confirmed:
        return
    if not sys.stdin.isatty():
        raise StopError("Nobody can be asked here.", "Add --yes to delete the session.", exit_code=2)
    wanted = session[-SHORT_ID_CHARS_MIN:]
    try:
        typed = input(f"Type {wanted} to delete it for good: ").strip()
    except EOFError:
        typed = ""
    if typed != wanted:
        raise StopError("Nothing was deleted.", "Type the last characters of its id to delete it.", exit_code=1)


def delete_session(options: argparse.Namespace, session: SessionId) -> None:
    """Delete a session, in two sweeps: the first moves it to the trash, the second empties the trash.

    Raises:
        StopError: It is kept, another process holds it, its log is linked or apart, or damage prevents it.
    """
    store = open_store(chosen_data_dir(options))
    collector = store.upkeep
    with _from_the_trash(store, session), answered_by_upkeep():
        if session in collector.retention_pins.kept():
            raise StopError(f"{session} is kept.", f"`interlock session unkeep {session}` first.", exit_code=1)
        command = CollectCommand(days=0, now_s=time.time(), chosen=frozenset({session}))
        found = collect(collector, collector.retention_pins, command)
        if found.blockers:
            blocker = found.blockers[0]
            raise StopError(f"Nothing was deleted. {blocker.message}", blocker.fix, exit_code=1)
        if session not in {one.session for one in found.taken.sessions}:
            raise _not_deleted(session, found)
        emptied = collect(collector, collector.retention_pins, command)
        if emptied.needs_attention:
            raise StopError("It could not be deleted there.", _GC, exit_code=1)


_GC = "`interlock gc` empties the trash, and says what prevents it."


@contextmanager
def _from_the_trash(store: StoreReader, session: SessionId) -> Generator[None]:
    """Say of a deletion that failed if the session is in the trash: then it is gone for every other command.

    Raises:
        StopError: The deletion failed.
    """
    try:
        yield
    except StopError as stop:
        try:
            is_there = store.is_stored(session)
        except StoreFailureError:
            fix = f"`interlock session list` lists it if it is not. {_GC}"
            raise StopError(f"{session} may be in the trash of the data directory.", fix, exit_code=1) from stop
        if is_there:
            raise
        why = f" ({stop.refusal.details['cause']})" if "cause" in stop.refusal.details else ""
        message = f"{session} is in the trash of the data directory, and its files are still there{why}."
        raise StopError(message, _GC, exit_code=1, code=stop.refusal.code) from stop


def _not_deleted(session: SessionId, found: Collected) -> StopError:
    if Kind.SESSION in found.apart:
        return StopError(f"{session} was not deleted: `trash` is on another file system.", APART_FIX, exit_code=1)
    skipped = next((one for one in found.skipped if one.session == session), None)
    if skipped is not None and skipped.why == "linked":
        return StopError(f"{session} was not deleted: a link leads to its log.", LINKED_FIX, exit_code=1)
    if skipped is not None and skipped.why != "busy":
        fix = "`interlock doctor` examines its files. Run the command again when the cause is removed."
        return StopError(f"{session} was not deleted: {why_skipped(skipped)}.", fix, exit_code=1)
    if found.failure is not None:
        fix = "Run the command again when the cause is removed; `interlock doctor` examines the files."
        return StopError(f"{session} was not deleted: the disk failed ({found.failure.found}).", fix, exit_code=1)
    return StopError(
        f"{session} was not deleted: another process writes to it.",
        "Run the command again when that process is done.",
        exit_code=1,
        code=ErrorCode.SESSION_LOCKED,
    )
