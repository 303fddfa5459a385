"""`interlock session search`: where words occur in everything that was recorded."""

import argparse
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from interlock.cli.frame.processes import map_in_processes
from interlock.cli.options import add_store_options
from interlock.cli.render.phrases import place_words
from interlock.cli.render.progress import with_progress
from interlock.cli.screen import StopError, flat, say, say_json
from interlock.cli.session.chosen import say_incomplete, say_unreadable
from interlock.cli.store import answered_by_store, open_chosen_reader
from interlock.kernel.budgets import PASSAGE_BYTES_MAX, PASSAGES_LISTED
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import SessionId
from interlock.kernel.matching import Closeness, Words
from interlock.kernel.text import one_line
from interlock.service.report.search.passage_search import Hit, SearchResult, search_passages
from interlock.service.run.plans import Plans
from interlock.store.ports.store import StoreReader

if TYPE_CHECKING:
    from interlock.service.report.search.passage_search import Scanned
    from interlock.service.report.search.passages import Passage
    from interlock.service.run.context import StepLabel
    from interlock.views.outside import SigningKeys
    from interlock.views.session import Session

_APPROXIMATE = {
    Closeness.SLIPS: "Nothing has these words; these passages have them if one letter is wrong.",
    Closeness.SOME: "Nothing has all of these words; these passages have the most of them.",
}


@frozen
class _Hit:
    session: SessionId
    passage: "Passage"
    label: str | None
    step: "StepLabel | None"
    level: str | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_store_options(parser)
    parser.add_argument("words", metavar="WORD", nargs="+", help="words to find in one passage, in any order")
    parser.add_argument(
        "--limit", type=int, default=PASSAGES_LISTED, metavar="N", help=f"at most N (default: {PASSAGES_LISTED})"
    )


def run(options: argparse.Namespace) -> int:
    """Print the passages that match best, the latest session first; return 1 if nothing matches.

    Raises:
        StopError: An option has an invalid value, or the store cannot answer.
    """
    if options.limit < 1:
        raise StopError("--limit must be at least 1.", "Leave it out for the first passages.", exit_code=2)
    store = open_chosen_reader(options)
    with answered_by_store():
        sessions = store.names()[::-1]
        query = Words.of(" ".join(options.words))
        result = search_passages(store, sessions, query, options.limit, _scan_with_progress)
        located = (_located(store, hit, options) for hit in result.hits[: options.limit])
        shown = [hit for hit in located if hit is not None]
    if options.as_json:
        say_json(_result_json(shown, result))
    else:
        _say(shown, result, options.limit)
        say_unreadable(result.unreadable)
        say_incomplete(result.incomplete)
    return 0 if shown else 1


def _scan_with_progress(work: Callable[[SessionId], "Scanned"], sessions: Sequence[SessionId]) -> "Iterator[Scanned]":
    return with_progress(map_in_processes(work, sessions), len(sessions), "Searching sessions")


def _located(store: StoreReader, hit: Hit, options: argparse.Namespace) -> _Hit | None:
    """Return a passage with its place; None if its session was deleted meanwhile."""
    from interlock.cli.session.evidence.configured import known_keys  # noqa: PLC0415 — nothing may match
    from interlock.service.report.search.passages import step_of  # noqa: PLC0415 — as above

    session = store.load(hit.session)
    if session is None:
        return None
    step = step_of(session, Plans(store), hit.passage)
    label = session.label(hit.passage.run) if hit.passage.run is not None else None
    keys = known_keys(options, session) if hit.passage.received is not None else None
    level = _level(session, hit.passage, keys)
    return _Hit(session=hit.session, passage=hit.passage, label=label, step=step, level=level)


def _level(session: "Session", passage: "Passage", keys: "SigningKeys | None") -> str | None:
    """Return how well the event of a passage is known; None if it holds none."""
    return session.describe_level(passage.index, passage.received, keys) if passage.received is not None else None


def _say(shown: list[_Hit], result: SearchResult, limit: int) -> None:
    if result.closeness is not None and result.closeness in _APPROXIMATE:
        say(_APPROXIMATE[result.closeness])
    for hit in shown:
        run = f" run {hit.label}" if hit.label is not None else ""
        step = f", {place_words(hit.step)}" if hit.step is not None else ""
        known = f" ({hit.level})" if hit.level is not None else ""
        say(flat(f"{hit.session}{run}{step}: {hit.passage.where}{known}"))
        say(f"  {one_line(hit.passage.text, PASSAGE_BYTES_MAX)}")
    if not shown:
        say("Nothing that was recorded matches.")
    elif not result.is_whole:
        say(f"There are more: --limit {2 * limit}, or add words.")
    elif len(result.hits) > len(shown):
        say(f"{len(result.hits) - len(shown)} more: --limit {len(result.hits)}, or add words.")


def _result_json(shown: list[_Hit], result: SearchResult) -> dict[str, Json]:
    passages: list[Json] = [_json(hit) for hit in shown]
    return {
        "passages": passages,
        "found": len(result.hits),
        "isWhole": result.is_whole,
        "closeness": result.closeness.name.lower() if result.closeness is not None else None,
        "unreadable": [one.session for one in result.unreadable],
        "incomplete": [one.session for one in result.incomplete],
    }


def _json(hit: _Hit) -> dict[str, Json]:
    passage, step = hit.passage, hit.step
    return {
        "session": hit.session,
        "run": passage.run,
        "label": hit.label,
        "node": passage.node,
        "event": passage.index,
        "where": passage.where,
        "level": hit.level,
        "step": {"number": step.number, "title": step.title} if step is not None else None,
        "text": passage.text,
    }
