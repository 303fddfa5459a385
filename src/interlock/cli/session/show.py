"""`interlock session show`: one session: the status of its runs, the steps done, the open gaps."""

import argparse
import shutil
import sys

from interlock.cli.options import add_store_options
from interlock.cli.render.report_json import session_json
from interlock.cli.render.terminal import as_text
from interlock.cli.screen import say, say_json
from interlock.cli.session.chosen import add_session_argument, chosen_session, read_history
from interlock.cli.store import answered_by_store, open_chosen_reader
from interlock.kernel.budgets import STEPS_SHOWN
from interlock.service.report.layout import RenderOptions, page_of
from interlock.service.report.session_report import SessionReport, SessionReporter
from interlock.service.run.context import RunContext
from interlock.service.run.plans import Plans
from interlock.store.ports.store import StoreReader


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_store_options(parser)
    add_session_argument(parser)
    parser.add_argument("--all", dest="shows_all", action="store_true", help="every step, with its complete notes")


def run(options: argparse.Namespace) -> int:
    """Print one session, or one run of it; return the exit code.

    Raises:
        StopError: The name fits no session or several, or the store cannot answer.
    """
    shows_all: bool = options.shows_all
    report = account_of(open_chosen_reader(options), options.session, steps_max=None if shows_all else STEPS_SHOWN)
    if options.as_json:
        say_json(session_json(report))
        return 0
    render_options = RenderOptions(newest_first=True, is_whole=shows_all, is_for_others=False, draw=drawn)
    say(as_text(page_of(report, render_options), shutil.get_terminal_size().columns if sys.stdout.isatty() else None))
    return 0


def drawn(run_context: RunContext) -> str:
    """Return the tree of a run that branched."""
    from interlock.cli.session.graph import drawn_text  # noqa: PLC0415 — most runs never branch

    return drawn_text(run_context)


def account_of(store: StoreReader, wanted: str | None, *, steps_max: int | None = None) -> SessionReport:
    """Load the report of the selected session or run.

    Raises:
        StopError: The name fits no session or several, or the store cannot answer.
    """
    with answered_by_store():
        plans = Plans(store)
        chosen = chosen_session(store, plans, wanted)
        history = read_history(store, chosen)
        return SessionReporter(store, plans, history).session(chosen.runs(history.session), steps_max=steps_max)
