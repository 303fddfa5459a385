"""`interlock session search`: where words occur in everything that was recorded."""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

from interlock.cli.options import add_store_options
from interlock.cli.render.phrases import place_words
from interlock.cli.render.progress import with_progress
from interlock.cli.screen import StopError, flat, say, say_json
from interlock.cli.session.chosen import say_unreadable
from interlock.cli.store import answered_by_store, open_chosen_reader
from interlock.kernel.budgets import PASSAGE_BYTES_MAX, PASSAGES_LISTED
from interlock.kernel.canonical import Json
from interlock.kernel.ids import SessionId
from interlock.kernel.matching import Closeness, Words, match_texts
from interlock.kernel.text import one_line
from interlock.record.base import UnknownVersionError
from interlock.service.report.search import Passage, passages, step_of
from interlock.service.run.context import StepLabel
from interlock.service.run.plans import Plans
from interlock.service.run.summaries import Unreadable, unreadable_by
from interlock.store.ports.errors import ContentDamagedError, SessionUnhealthyError
from interlock.store.ports.store import StoreReader

_APPROXIMATE = {
    Closeness.SLIPS: "Nothing has these words; these passages have them if one letter is wrong.",
    Closeness.SOME: "Nothing has all of these words; these passages have the most of them.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hit:
    session: SessionId
    passage: Passage
    label: str | None = None
    step: StepLabel | None = None


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
    store, unreadable = open_chosen_reader(options), list[Unreadable]()
    with answered_by_store():
        every = list(_read_all(store, unreadable))
        found = match_texts(Words.of(" ".join(options.words)), [one.passage.text for one in every])
        best = min((one for one in found if one is not None), default=None)
        hits = [hit for hit, close in zip(every, found, strict=True) if close is not None and close is best]
        shown = [_located(store, hit) for hit in hits[: options.limit]]
    if options.as_json:
        closeness = best.name.lower() if best is not None else None
        passages_found: list[Json] = [_json(hit) for hit in shown]
        left_out = [one.session for one in unreadable]
        say_json({"passages": passages_found, "found": len(hits), "closeness": closeness, "unreadable": left_out})
    else:
        _say(shown, len(hits), best)
        say_unreadable(unreadable)
    return 0 if hits else 1


def _read_all(store: StoreReader, unreadable: list[Unreadable]) -> Iterator[_Hit]:
    """Yield every passage of every session that can be read, the newest session first."""
    sessions = sorted(store.sessions(), reverse=True)
    for session in with_progress(sessions, len(sessions), "Searching sessions"):
        try:
            found = list(passages(store, session))
        except (SessionUnhealthyError, UnknownVersionError, ContentDamagedError) as error:
            unreadable.append(unreadable_by(session, error))
            continue
        yield from (_Hit(session=session, passage=passage) for passage in found)


def _located(store: StoreReader, hit: _Hit) -> _Hit:
    session = store.load(hit.session)
    assert session is not None, "a session with a passage has a log"
    step = step_of(session, Plans(store), hit.passage)
    label = session.label(hit.passage.run) if hit.passage.run is not None else None
    return _Hit(session=hit.session, passage=hit.passage, label=label, step=step)


def _say(shown: list[_Hit], total: int, best: Closeness | None) -> None:
    if best is not None and best in _APPROXIMATE:
        say(_APPROXIMATE[best])
    for hit in shown:
        run = f" run {hit.label}" if hit.label is not None else ""
        step = f", {place_words(hit.step)}" if hit.step is not None else ""
        say(flat(f"{hit.session}{run}{step}: {hit.passage.where}"))
        say(f"  {one_line(hit.passage.text, PASSAGE_BYTES_MAX)}")
    if not shown:
        say("Nothing that was recorded matches.")
    elif total > len(shown):
        say(f"{total - len(shown)} more: --limit {total}, or add words.")


def _json(hit: _Hit) -> dict[str, Json]:
    passage, step = hit.passage, hit.step
    return {
        "session": hit.session,
        "run": passage.run,
        "label": hit.label,
        "node": passage.node,
        "event": passage.index,
        "where": passage.where,
        "step": {"number": step.number, "title": step.title} if step is not None else None,
        "text": passage.text,
    }
