"""`interlock session cancel` and `fail`: end a run whose last step will not be done."""

import argparse
import sys
from typing import get_args

from interlock.cli.options import add_store_options
from interlock.cli.screen import RefusedError, StopError, say, say_json
from interlock.cli.session.chosen import chosen_run
from interlock.cli.store import answered_by_store, open_chosen_store
from interlock.engine.answer.secret_scanning import secret_warnings
from interlock.kernel.budgets import WORK_NOTE_BYTES_MAX
from interlock.kernel.errors import ErrorCode, Refusal
from interlock.kernel.text import has_surrogate, utf8_bytes
from interlock.record.events import Actor
from interlock.record.payloads import Work, WorkReason, WorkRecorded
from interlock.service.ports import AppendPorts, ReadPorts
from interlock.service.run.plans import Plans
from interlock.service.tools.end_run import EndedRun, end_run, ended_out
from interlock.store.ports.store import Store
from interlock.version import VERSION

_WORKS: dict[str, Work] = {"cancel": "cancelled", "fail": "failed"}
COMMAND_LINE = Actor(type="human", identifier="command line", metadata={"version": VERSION})
"""Who runs a command: a person, as far as Interlock can say."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of both commands."""
    add_store_options(parser)
    parser.add_argument("wanted", metavar="RUN", help="a run label or id, or what else names a session with one run")
    parser.add_argument("--reason", required=True, choices=get_args(WorkReason), help="why the run ends")
    parser.add_argument(
        "--note", metavar="TEXT", help=f"more about it, at most {WORK_NOTE_BYTES_MAX} bytes, stored unencrypted"
    )


def run(options: argparse.Namespace) -> int:
    """End a run, print how it ended, and return the exit code.

    Raises:
        StopError: No single run was named, it cannot be ended, the note is too long, or the store failed.
    """
    work = _work(_WORKS[options.action], options.reason, options.note)
    store = open_chosen_store(options)
    with answered_by_store():
        session, found = chosen_run(store, Plans(store), options.wanted)
        where = session.session, found.run
        outcome = end_run(_ports(store), where, work, COMMAND_LINE)
    if outcome is None:
        raise StopError("The run is not there any more.", _LIST, exit_code=1, code=ErrorCode.SESSION_NOT_FOUND)
    if isinstance(outcome, Refusal):
        raise RefusedError(outcome)
    for warned in secret_warnings(None, None, work.note):
        print(f"interlock: {warned.message}", file=sys.stderr)
    if options.as_json:
        ended = ended_out(outcome.ended).to_json()
        say_json({"session": where[0], "run": where[1], **ended, "isNew": outcome.is_new})
    else:
        _say(outcome)
    return 0


def _work(work: Work, reason: WorkReason, note: str | None) -> WorkRecorded:
    if note is None:
        return WorkRecorded(work=work, reason=reason)
    if has_surrogate(note):
        raise StopError("--note is not valid text.", "Write it in UTF-8.", exit_code=2)
    if not note.strip() or utf8_bytes(note) > WORK_NOTE_BYTES_MAX:
        fix = f"Write 1 to {WORK_NOTE_BYTES_MAX} bytes, or leave it out."
        raise StopError(f"--note has {utf8_bytes(note)} bytes.", fix, exit_code=2)
    return WorkRecorded(work=work, reason=reason, note=note)


def _ports(store: Store) -> AppendPorts:
    return AppendPorts(read=ReadPorts.over(store, store), writer=store)


def _say(outcome: EndedRun) -> None:
    ended = outcome.ended
    again = "" if outcome.is_new else " It had ended before; nothing was changed."
    reason = ended.work.reason.replace("_", " ")
    say(f"Run `{outcome.label}` ({outcome.workflow_id}) has ended: {ended.kind}, {reason}.{again}")


_LIST = "`interlock session list` lists the runs."
