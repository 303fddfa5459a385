"""`interlock session verify`: compute every recorded decision again and compare."""

import argparse

from interlock.cli.options import add_store_options
from interlock.cli.screen import StopError, counted, say, say_json
from interlock.cli.session.chosen import named_sessions
from interlock.cli.store import answered_by_store, open_chosen_reader
from interlock.kernel.errors import ErrorCode
from interlock.service.audit.verify import Mismatch, unfinished_note, verify_session
from interlock.service.run.plans import Plans


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_store_options(parser)
    parser.add_argument("sessions", metavar="SESSION", nargs="*", help="session ids (default: all)")
    parser.add_argument(
        "--force",
        dest="is_forced",
        action="store_true",
        help="also compare decisions that another build of Interlock made",
    )


def run(options: argparse.Namespace) -> int:
    """Verify sessions, or all of them; return 1 if a decision differs."""
    store = open_chosen_reader(options)
    wanted, is_forced = named_sessions(store, options.sessions), bool(options.is_forced)
    with answered_by_store():
        known = store.sessions()
        unknown = [name for name in wanted if name not in known]
        if unknown:
            message = f"There is no session {unknown[0]!r} in this data directory."
            raise StopError(
                message, "Leave out the id to verify all sessions.", exit_code=1, code=ErrorCode.SESSION_NOT_FOUND
            )
        names = wanted or list(known)
        plans = Plans(store)
        notes = {name: note for name in names if (note := unfinished_note(store, name)) is not None}
        found = {name: verify_session(store, plans, name, is_forced=is_forced) for name in names}
    count = sum(map(len, found.values()))
    if options.as_json:
        mismatches = [one.to_json() for each in found.values() for one in each]
        say_json({"sessions": names, "mismatches": mismatches, "unfinished": dict(notes)})
    else:
        for name, mismatches in found.items():
            say(f"{name}: {counted(len(mismatches), 'mismatch') if mismatches else 'sound'}")
            for one in mismatches:
                say(_render_mismatch(one))
            if name in notes:
                say(f"  note: {notes[name]}")
        say(f"{counted(len(names), 'session')}, {counted(count, 'mismatch')}")
    return 1 if count else 0


def _render_mismatch(one: Mismatch) -> str:
    return f"  {one.code} at {one.node or 'the session'}, {one.where}: {one.found}\n    {one.fix}"
