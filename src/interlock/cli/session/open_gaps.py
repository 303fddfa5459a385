"""`interlock session open-gaps`: what is still open, why, where, and what would resolve it."""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

from interlock.cli.options import add_store_options
from interlock.cli.render.phrases import place_words
from interlock.cli.render.progress import with_progress
from interlock.cli.render.report_json import gap_json
from interlock.cli.screen import flat, say, say_json
from interlock.cli.session.chosen import SelectedSession, add_session_argument, chosen_session, read_history
from interlock.cli.store import answered_by_store, open_chosen_reader
from interlock.kernel.canonical import Json
from interlock.kernel.ids import RunId, SessionId
from interlock.service.report.session_report import GapReport, SessionReporter
from interlock.service.run.plans import Plans
from interlock.store.ports.errors import ContentDamagedError, SessionUnhealthyError
from interlock.store.ports.store import StoreReader


@dataclass(frozen=True, slots=True, kw_only=True)
class _Open:
    """What is open on one run."""

    session: SessionId
    run: RunId
    label: str
    workflow: str
    gaps: tuple[GapReport, ...]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_store_options(parser)
    add_session_argument(parser, "all")


def run(options: argparse.Namespace) -> int:
    """Print the open gaps of a session, or of all; return 1 if a critical one is open, or what is open is not known."""
    store, unreadable = open_chosen_reader(options), list[SessionId]()
    with answered_by_store():
        plans = Plans(store)
        if options.session is not None:
            found = list(_of_session(store, plans, chosen_session(store, plans, options.session)))
        else:
            found = list(_of_all(store, plans, unreadable))
    if options.as_json:
        say_json({"runs": [_json(one) for one in found], "unreadable": unreadable})
    else:
        _say(found, is_whole=not unreadable)
        if unreadable:
            say(f"{len(unreadable)} sessions cannot be read; `interlock session list` lists them.")
    is_critical = any(gap.gap.severity == "critical" for one in found for gap in one.gaps)
    return 1 if is_critical or unreadable else 0


def _of_all(store: StoreReader, plans: Plans, unreadable: list[SessionId]) -> Iterator[_Open]:
    sessions = store.sessions()
    for session in with_progress(sessions, len(sessions), "Reading sessions"):
        try:
            facts = store.load(session)
            if facts is not None and facts.open_gaps:
                yield from list(_of_session(store, plans, SelectedSession(session=session)))
        except (SessionUnhealthyError, ContentDamagedError):
            unreadable.append(session)


def _of_session(store: StoreReader, plans: Plans, chosen: SelectedSession) -> Iterator[_Open]:
    history = read_history(store, chosen)
    facts, accounts = history.facts, SessionReporter(store, plans, history)
    for run in chosen.runs(facts):
        gaps = accounts.gaps(run)
        if gaps:
            workflow = facts.runs[run].workflow_id
            yield _Open(session=facts.session, run=run, label=facts.label(run), workflow=workflow, gaps=gaps)


def _say(found: list[_Open], *, is_whole: bool) -> None:
    if not found:
        say("There are no open gaps." if is_whole else "There are no open gaps in the sessions that can be read.")
    for one in found:
        say(f"Run {one.label} of {one.session}, {flat(one.workflow)}: {len(one.gaps)} open")
        for gap in one.gaps:
            say("\n".join(f"  {line}" for line in gap_lines(gap)))


def gap_lines(told: GapReport) -> list[str]:
    """Return an open gap in lines: what, where and when, what would resolve it."""
    gap = told.gap
    where = place_words(told.step) if told.step is not None else "the start"
    return [
        flat(f"{gap.severity}, {gap.reason.detail.replace('_', ' ')}: {gap.summary}"),
        "  " + flat(f"opened in {where}, {told.at or 'at an unknown time'} ({told.node})"),
        f"  to resolve: {told.remedy}",
    ]


def _json(one: _Open) -> dict[str, Json]:
    gaps: list[Json] = [gap_json(gap) for gap in one.gaps]
    return {"session": one.session, "run": one.run, "label": one.label, "workflowId": one.workflow, "gaps": gaps}
