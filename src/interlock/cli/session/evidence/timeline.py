"""`interlock session timeline`: what happened in a session, in order: time, client, event, details."""

import argparse
import sys

from interlock.cli.options import add_store_options
from interlock.cli.render.phrases import ago, place_words
from interlock.cli.render.terminal import as_text
from interlock.cli.screen import StopError, flat, say, say_json
from interlock.cli.session.chosen import SelectedSession, add_session_argument, chosen_session
from interlock.cli.session.evidence.configured import known_keys
from interlock.cli.session.evidence.damage import view_session
from interlock.cli.store import answered_by_store, open_chosen_reader
from interlock.kernel.budgets import TIMELINE_ENTRIES
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import RunId
from interlock.kernel.text import json_line
from interlock.record.events import OWN_ACTORS, Event, SessionCreatedEvent
from interlock.service.clock import SystemClock
from interlock.service.run.context import RunContext, load_run_context
from interlock.service.run.history import History
from interlock.service.run.plans import Plans
from interlock.views.session import Node, Session
from interlock.views.timeline import Entry, entry_of, parts_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_store_options(parser)
    add_session_argument(parser)
    at_most = f"at most N entries (default: {TIMELINE_ENTRIES})"
    parser.add_argument("--limit", type=int, default=TIMELINE_ENTRIES, metavar="N", help=at_most)
    parser.add_argument("--after", type=int, default=-1, metavar="INDEX", help="entries after this event")
    parser.add_argument("--last", type=int, metavar="N", help="the last N entries")


def run(options: argparse.Namespace) -> int:
    """Print what happened in a session, or in one run of it, oldest first; return the exit code.

    Raises:
        StopError: The name fits no session or several, or the store cannot answer.
    """
    store = open_chosen_reader(options)
    if options.limit < 1 or (options.last is not None and options.last < 1):
        raise StopError(
            "--limit and --last must be at least 1.", "Leave both options out for the first page.", exit_code=2
        )
    with answered_by_store():
        plans = Plans(store)
        chosen = chosen_session(store, plans, options.session)
        viewed = view_session(store, plans, chosen, lambda history: _page(history, chosen, plans, options))
    if options.as_json:
        say_json(viewed.with_damage(_json(viewed.view)))
        return viewed.exit_code
    if viewed.damage is not None:
        say(as_text(viewed.banner, None))
    _say(viewed.view, SystemClock().unix_ms() if sys.stdout.isatty() else None)
    return viewed.exit_code


@frozen
class _Page:
    session: Session
    entries: tuple[Entry, ...]
    earlier: int
    later: int


class StepTitles:
    """Titles of steps of all runs of a session. Runs are loaded on first use."""

    def __init__(self, session: Session, plans: Plans) -> None:
        self._facts = session
        self._plans = plans
        self._scenes: dict[RunId, RunContext] = {}

    def title_of(self, node: Node) -> str | None:
        """See `TitleOf`."""
        if node.run not in self._scenes:
            self._scenes[node.run] = load_run_context(self._facts, self._facts.runs[node.run], self._plans)
        place = self._scenes[node.run].place(node)
        return place_words(place) if place is not None else None


def _page(history: History, chosen: SelectedSession, plans: Plans, options: argparse.Namespace) -> _Page:
    """Return one page of entries. Titles are loaded only for the steps on it."""
    parts = (part for plan in history.appended for part in parts_of(plan))
    about = [part for part in parts if chosen.run is None or chosen.run in map(run_of, part)]
    if options.last is not None:
        first, shown = max(0, len(about) - options.last), about[-options.last :]
    else:
        first = sum(part[0].event_index <= options.after for part in about)
        shown = about[first : first + options.limit]
    title_of = StepTitles(history.session, plans).title_of
    keys = known_keys(options, history.session)
    entries = tuple(entry_of(history.session, part, title_of, keys) for part in shown)
    return _Page(session=history.session, entries=entries, earlier=first, later=len(about) - first - len(shown))


def run_of(event: Event) -> RunId | None:
    """Return the run that an event is about; None if it is about the session."""
    scope = None if isinstance(event, SessionCreatedEvent) else event.scope
    return scope.run_id if scope is not None else None


def _say(page: _Page, now_ms: int | None) -> None:
    session = page.session
    say(f"{session.session}: {session.next_index} events")
    if page.earlier:
        say(f"  … {page.earlier} earlier")
    for entry in page.entries:
        when = ago(entry.at, now_ms) if now_ms is not None else entry.at or "unknown"
        say("\n".join(entry_lines(session, entry, when)))
    if page.later:
        say(f"  … {page.later} later: --after {page.entries[-1].last}")


def entry_lines(session: Session, entry: Entry, when: str) -> list[str]:
    """Return an entry as lines: the number of its first event, when, which run, who and what.

    The name that a client gave is in quotes; the names of Interlock's own commands are not.
    """
    label = f" run {session.label(entry.run)}" if entry.run is not None else ""
    name = entry.who if entry.who is None or entry.who in OWN_ACTORS else json_line(flat(entry.who))
    who = f" {name}" if name is not None else ""
    first = f"{entry.first:>5}  " + flat(f"{when}{label}{who}: {entry.what}")
    return [first, *(f"         {flat(line)}" for line in entry.more)]


def _json(page: _Page) -> dict[str, Json]:
    entries: list[Json] = [
        {
            "first": entry.first,
            "last": entry.last,
            "at": entry.at,
            "who": entry.who,
            "run": entry.run,
            "node": entry.node,
            "what": entry.what,
            "more": list(entry.more),
            "events": [event.to_json() for event in entry.events],
        }
        for entry in page.entries
    ]
    return {
        "session": page.session.session,
        "events": page.session.next_index,
        "entries": entries,
        "earlier": page.earlier,
        "later": page.later,
    }
