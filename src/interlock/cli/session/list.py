"""`interlock session list`: recorded runs, the newest first, and every session that cannot be read."""

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import get_args

from interlock.cli.options import add_store_options
from interlock.cli.render.phrases import ago, step_words
from interlock.cli.render.progress import with_progress
from interlock.cli.screen import StopError, counted, say, say_json, say_table
from interlock.cli.session.chosen import listing, say_incomplete, short_of
from interlock.cli.session.place import Place
from interlock.cli.store import answered_by_store, open_chosen_reader
from interlock.kernel.budgets import CELL_BYTES_MAX, CELL_FOUND_BYTES_MAX, ECHO_BYTES_MAX, RUNS_LISTED
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import SessionId
from interlock.kernel.matching import Closeness
from interlock.kernel.text import one_line
from interlock.service.clock import SystemClock, moment_of
from interlock.service.report.run_list import ListFilter, Row, best_matches, newest_first, rows_of, texts_of
from interlock.service.run.advice import advise_by_health
from interlock.service.run.plans import Plans
from interlock.service.run.summaries import Listing, Unreadable
from interlock.store.ports.errors import ContentDamagedError, Health, SessionUnhealthyError
from interlock.store.ports.store import StoreReader
from interlock.views.summary import RunStatus, run_json

_HEADS = ("PROJECT", "SESSION", "RUN", "WORKFLOW", "GOAL", "STATUS", "STEP", "WHEN", "CLIENT")
_IDS = ("SESSION", "RUN", "WORKFLOW")
_STATUSES: tuple[RunStatus, ...] = get_args(RunStatus)
_MINUTE = 60_000
_UNITS = {"m": _MINUTE, "h": 60 * _MINUTE, "d": 24 * 60 * _MINUTE, "w": 7 * 24 * 60 * _MINUTE}
_SPAN = re.compile(r"(\d{1,6})([mhdw])")
_APPROXIMATE = {
    Closeness.SLIPS: "No run matches these words; these match if one letter of a word is wrong.\n",
    Closeness.SOME: "No run matches all of these words; these match the most of them.\n",
}


@frozen
class _Found:
    """The runs that match, newest first; how many runs there are; all sessions, and fixes of unreadable ones.

    `closeness` says how well the runs match the words of the search; `elsewhere` counts runs of other projects.
    """

    rows: list[Row]
    total: int
    listed: Listing
    fixes: Mapping[SessionId, str]
    closeness: Closeness | None
    elsewhere: int
    short: Callable[[SessionId], str] = field(compare=False)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_store_options(parser)
    parser.add_argument(
        "words", metavar="WORD", nargs="*", help="words to find in the goal, the workflow or the last notes"
    )
    parser.add_argument(
        "--status", dest="statuses", action="append", choices=_STATUSES, help="runs of this status; may be repeated"
    )
    parser.add_argument("--workflow", metavar="ID", help="runs of this workflow")
    parser.add_argument("--branch", metavar="NAME", help="runs last seen on a git branch whose name begins with NAME")
    parser.add_argument(
        "--since", metavar="WHEN", help="runs with work since a date, a time (UTC) or a period before now (3d, 12h)"
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--here", dest="is_here", action="store_true", help="runs of this repository only (default inside one)"
    )
    where.add_argument("--everywhere", dest="is_everywhere", action="store_true", help="runs of all projects")
    parser.add_argument("--workspace", default=argparse.SUPPRESS, help="directory of the project (INTERLOCK_WORKSPACE)")
    parser.add_argument("--deep", dest="is_deep", action="store_true", help="search the titles and notes of every step")
    parser.add_argument(
        "--limit", type=int, default=RUNS_LISTED, metavar="N", help=f"at most N runs (default: {RUNS_LISTED})"
    )
    parser.add_argument("--page", type=int, default=1, metavar="N", help="the page to show (default: 1)")


def run(options: argparse.Namespace) -> int:
    """Print the runs that match; return the exit code.

    Raises:
        StopError: An option has an invalid value, or the store cannot answer.
    """
    store, now_ms = open_chosen_reader(options), SystemClock().unix_ms()
    if options.limit < 1 or options.page < 1:
        raise StopError(
            "--limit and --page must be at least 1.", "Leave both options out for the first page.", exit_code=2
        )
    since_ms = since(options.since, now_ms) if options.since is not None else None
    here = Place(options)
    with answered_by_store():
        found = _find_runs(store, options, since_ms, here)
    first = (options.page - 1) * options.limit
    shown = found.rows[first : first + options.limit]
    if options.as_json:
        say_json(_json(found, shown, options, here))
        return 0
    _say_rows(found, shown, now_ms, here)
    _say_rest(found, shown, options)
    _say_unreadable(found)
    if found.listed.incomplete:
        say("")
    say_incomplete(found.listed.incomplete)
    return 0


def since(text: str, now_ms: int) -> int:
    """Parse the value of `--since`: a date, a time (UTC) or a period before now such as `3d`. Return milliseconds.

    Raises:
        StopError: It is none of them.
    """
    span = _SPAN.fullmatch(text)
    if span is not None:
        return now_ms - int(span[1]) * _UNITS[span[2]]
    moment = moment_of(text)
    if moment is None:
        fix = "Use a date (2025-01-31), a time (2025-01-31T14:00, UTC), or a period before now (90m, 12h, 3d, 2w)."
        raise StopError(
            f"--since: {one_line(text, ECHO_BYTES_MAX)!r} is not a date, a time or a period.", fix, exit_code=2
        )
    return moment


def _find_runs(store: StoreReader, options: argparse.Namespace, since_ms: int | None, here: Place) -> _Found:
    plans = Plans(store)
    listed = listing(store, plans)
    rows = [row for session in listed.sessions for row in rows_of(session)]
    wanted = ListFilter(
        statuses=frozenset(options.statuses or ()),
        workflow=options.workflow,
        branch=options.branch,
        since_ms=since_ms,
    )
    everywhere = newest_first(row for row in rows if wanted.fits(row.run))
    fitting = [row for row in everywhere if options.is_everywhere or here.holds(row.run, is_strict=options.is_here)]
    elsewhere = len(everywhere) - len(fitting)
    closeness: Closeness | None = Closeness.WORDS
    if options.words:
        searched = with_progress(fitting, len(fitting), "Searching runs") if options.is_deep else fitting
        texts = [_all_texts(store, plans, row) if options.is_deep else texts_of(row) for row in searched]
        fitting, closeness = best_matches(fitting, texts, " ".join(options.words))
    names = [*(one.session for one in listed.sessions), *(one.session for one in listed.unreadable)]
    fixes = {one.session: _fix(store, one) for one in listed.unreadable}
    return _Found(
        rows=fitting,
        total=len(rows),
        listed=listed,
        fixes=fixes,
        short=short_of(names),
        closeness=closeness,
        elsewhere=elsewhere,
    )


def _all_texts(store: StoreReader, plans: Plans, row: Row) -> Iterable[str]:
    """Return the texts that a deep search reads: those of every search, and the titles and notes of all steps."""
    from interlock.service.run.context import load_run_context  # noqa: PLC0415 — only a deep search reads logs
    from interlock.views.recap import notes_of_attempt, notes_of_checkpoint  # noqa: PLC0415 — see above

    texts = list(texts_of(row))
    try:
        session = store.load(row.session)
        if session is None or row.run.run not in session.runs:
            return texts
        run_context = load_run_context(session, session.runs[row.run.run], plans)
        for node in session.nodes.values():
            if node.run == row.run.run:
                texts += [run_context.title(node), notes_of_attempt(node) or "", notes_of_checkpoint(node) or ""]
    except (SessionUnhealthyError, ContentDamagedError):
        return texts
    return texts


def _json(found: _Found, shown: list[Row], options: argparse.Namespace, here: Place) -> dict[str, Json]:
    runs: list[Json] = [
        {
            "session": row.session,
            "short": found.short(row.session),
            "project": here.project_of(row.run),
            "drift": here.drift_of(row.run),
            **run_json(row.run),
        }
        for row in shown
    ]
    unreadable: list[Json] = [
        {"session": one.session, "health": one.health, "found": one.found, "fix": found.fixes[one.session]}
        for one in found.listed.unreadable
    ]
    return {
        "runs": runs,
        "fitting": len(found.rows),
        "closeness": found.closeness.name.lower() if options.words and found.closeness is not None else None,
        "total": found.total,
        "elsewhere": found.elsewhere,
        "page": options.page,
        "limit": options.limit,
        "unreadable": unreadable,
        "incomplete": [{"session": one.session, "found": one.found} for one in found.listed.incomplete],
    }


def _say_rows(found: _Found, shown: list[Row], now_ms: int, here: Place) -> None:
    if shown and found.closeness is not None and found.closeness in _APPROXIMATE:
        say(_APPROXIMATE[found.closeness])
    if shown:
        is_watched = sys.stdout.isatty()
        rows = [_row(row, found, now_ms if is_watched else None, here) for row in shown]
        # A recording without git positions has no projects to tell apart.
        first = 0 if any(row[0] for row in rows) else 1
        say_table(_HEADS[first:], [row[first:] for row in rows], ids=_IDS)
    elif not found.total and not found.listed.unreadable:
        say(
            "There are no sessions here yet. A session begins when an agent starts a workflow:"
            " `interlock workflow list` lists what it can start. `--data-dir` names another data directory."
        )
    elif found.rows:
        say(f"This page is empty: {len(found.rows)} runs match.")
    elif found.total:
        say(f"None of the {found.total} runs matches. Leave out words or options; `--deep` searches every step.")


def _row(row: Row, found: _Found, now_ms: int | None, here: Place) -> tuple[str, ...]:
    run = row.run
    when = ago(run.last_at, now_ms) if now_ms is not None else run.last_at or "unknown"
    drift = here.drift_of(run)
    return (
        here.project_of(run),
        found.short(row.session),
        run.label,
        run.workflow_id,
        one_line(run.goal or "-", CELL_BYTES_MAX),
        run.status_text if drift is None else f"{run.status_text}, source {drift}",
        step_words(run),
        when,
        run.client or "-",
    )


def _say_rest(found: _Found, shown: list[Row], options: argparse.Namespace) -> None:
    if found.elsewhere:
        say(f"\n{counted(found.elsewhere, 'run')} of other projects: --everywhere")
    last = options.page * options.limit
    if shown and last < len(found.rows):
        more = len(found.rows) - last
        say(f"\n{more} more: --page {options.page + 1}, or narrow by words, --status, --workflow, --branch or --since.")


def _say_unreadable(found: _Found) -> None:
    if found.listed.unreadable:
        say("\nCannot be read:")
        rows = ((one.session, one.health, one_line(one.found, CELL_FOUND_BYTES_MAX)) for one in found.listed.unreadable)
        say_table(("SESSION", "HEALTH", "FOUND"), rows, ids=_IDS)
        for fix in dict.fromkeys(found.fixes.values()):
            say(fix)
        say("`interlock doctor --deep` reports everything that is missing or damaged.")


def _fix(store: StoreReader, one: Unreadable) -> str:
    if one.health in (Health.UNKNOWN_VERSION, Health.UNREADABLE, Health.UNDECIDED):
        return advise_by_health(one.session, one.health)
    from interlock.service.transfer.salvage import advise_damaged  # noqa: PLC0415 — needed only for a damaged session

    return advise_damaged(store, one.session)
