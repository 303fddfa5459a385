"""`interlock session status`: the status of each run in one line."""

import argparse

from interlock.cli.options import add_store_options
from interlock.cli.render.phrases import step_words
from interlock.cli.screen import say, say_json, say_table
from interlock.cli.session.chosen import (
    add_session_argument,
    chosen_session,
    listing,
    read_history,
    say_incomplete,
    say_unreadable,
)
from interlock.cli.store import answered_by_store, open_chosen_reader
from interlock.kernel.budgets import CELL_BYTES_MAX
from interlock.kernel.canonical import Json
from interlock.kernel.text import one_line
from interlock.service.report.run_list import Row, newest_first, rows_of
from interlock.service.run.plans import Plans
from interlock.service.run.summaries import Listing, read_lost_content
from interlock.store.ports.store import StoreReader
from interlock.views.summary import run_json

_HEADS = ("RUN", "STATUS", "STEP", "TITLE", "WORKFLOW", "GOAL")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_store_options(parser)
    add_session_argument(parser, "all")


def run(options: argparse.Namespace) -> int:
    """Print the status of a session's runs, or of all runs; return the exit code, the same for every status."""
    store = open_chosen_reader(options)
    with answered_by_store():
        plans = Plans(store)
        rows, listed = _rows(store, plans, options.session)
    if options.as_json:
        runs: list[Json] = [{"session": row.session, **run_json(row.run)} for row in rows]
        say_json(
            {
                "runs": runs,
                "unreadable": [one.session for one in listed.unreadable],
                "incomplete": [one.session for one in listed.incomplete],
            }
        )
        return 0
    if rows:
        say_table(_HEADS, map(_row, rows), ids=("RUN", "WORKFLOW"))
    else:
        say("There are no runs that can be read." if listed.unreadable else "There are no runs here.")
    say_unreadable(listed.unreadable)
    say_incomplete(listed.incomplete)
    return 0


def _rows(store: StoreReader, plans: Plans, wanted: str | None) -> tuple[list[Row], Listing]:
    """Return the rows to show, and the list that says which sessions are damaged."""
    if wanted is None:
        listed = listing(store, plans)
        return newest_first(row for session in listed.sessions for row in rows_of(session)), listed
    from interlock.service.run.summarize import summary_of  # noqa: PLC0415 — a list of cached summaries needs none

    chosen = chosen_session(store, plans, wanted)
    summary = summary_of(read_history(store, chosen).session, plans)
    rows = [row for row in rows_of(summary) if chosen.run in (None, row.run.run)]
    incomplete = read_lost_content(store, chosen.session)
    return rows, Listing(sessions=(summary,), unreadable=(), incomplete=incomplete)


def _row(row: Row) -> tuple[str, ...]:
    run = row.run
    title, goal = one_line(run.step or "-", CELL_BYTES_MAX), one_line(run.goal or "-", CELL_BYTES_MAX)
    return run.label, run.status_text, step_words(run), title, run.workflow_id, goal
