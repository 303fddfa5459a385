"""`interlock session open-gaps`: open gaps, with the reason, the step and how to resolve each."""

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from interlock.cli.options import add_store_options
from interlock.cli.render.progress import with_progress
from interlock.cli.screen import flat, say, say_json
from interlock.cli.session.chosen import (
    SelectedSession,
    add_session_argument,
    chosen_session,
    listing,
    read_history,
    say_incomplete,
    say_unreadable,
)
from interlock.cli.store import answered_by_store, open_chosen_reader
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import RunId, SessionId
from interlock.service.run.plans import Plans
from interlock.service.run.summaries import Unreadable, read_lost_content, unreadable_by
from interlock.store.ports.errors import UNUSABLE_SESSION
from interlock.store.ports.store import StoreReader

if TYPE_CHECKING:
    from interlock.service.report.session_report import GapReport


@frozen
class _OpenRun:
    """The open gaps of one run."""

    session: SessionId
    run: RunId
    label: str
    workflow: str
    gaps: "tuple[GapReport, ...]"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_store_options(parser)
    add_session_argument(parser, "all")


def run(options: argparse.Namespace) -> int:
    """Print the open gaps of a session, or of all; return 1 if a gap is critical or a session cannot be read."""
    store, unreadable, incomplete = open_chosen_reader(options), list[Unreadable](), list[Unreadable]()
    with answered_by_store():
        plans = Plans(store)
        if options.session is not None:
            chosen = chosen_session(store, plans, options.session)
            found = list(_load_session(store, plans, chosen))
            incomplete += read_lost_content(store, chosen.session)
        else:
            found = list(_load_all(store, plans, unreadable, incomplete))
    if options.as_json:
        say_json(
            {
                "runs": [_json(one) for one in found],
                "unreadable": [one.session for one in unreadable],
                "incomplete": [one.session for one in incomplete],
            }
        )
    else:
        _say(found, is_whole=not unreadable)
        say_unreadable(unreadable)
        say_incomplete(incomplete)
    is_critical = any(gap.gap.severity == "critical" for one in found for gap in one.gaps)
    return 1 if is_critical or unreadable else 0


def _load_all(
    store: StoreReader, plans: Plans, unreadable: list[Unreadable], incomplete: list[Unreadable]
) -> Iterator[_OpenRun]:
    """Yield the runs with open gaps; add the sessions that are damaged, those without an open gap included."""
    listed = listing(store, plans)
    unreadable += listed.unreadable
    incomplete += listed.incomplete
    having = [one for one in listed.sessions if one.has_open_gaps]
    for one in with_progress(having, len(having), "Reading open gaps"):
        try:
            yield from list(_load_session(store, plans, SelectedSession(session=one.session)))
        except UNUSABLE_SESSION as error:
            unreadable.append(unreadable_by(one.session, error))


def _load_session(store: StoreReader, plans: Plans, chosen: SelectedSession) -> Iterator[_OpenRun]:
    from interlock.service.report.session_report import SessionReporter  # noqa: PLC0415 — see `gap_lines`

    history = read_history(store, chosen)
    session, reporter = history.session, SessionReporter(store, plans, history)
    for run in chosen.runs(session):
        gaps = reporter.gaps(run)
        if gaps:
            workflow = session.runs[run].workflow_id
            yield _OpenRun(session=session.session, run=run, label=session.label(run), workflow=workflow, gaps=gaps)


def _say(found: list[_OpenRun], *, is_whole: bool) -> None:
    if not found:
        say("There are no open gaps." if is_whole else "There are no open gaps in the sessions that can be read.")
    for one in found:
        say(f"Run {one.label} of {one.session}, {flat(one.workflow)}: {len(one.gaps)} open")
        for gap in one.gaps:
            say("\n".join(f"  {line}" for line in gap_lines(gap)))


def gap_lines(report: "GapReport") -> list[str]:
    """Return an open gap as lines: the summary, the step and the time, how to resolve it."""
    from interlock.cli.render.phrases import place_words  # noqa: PLC0415 — most sessions have no open gap

    gap = report.gap
    where = place_words(report.step) if report.step is not None else "the start"
    return [
        flat(f"{gap.severity}, {gap.reason.detail.replace('_', ' ')}: {gap.summary}"),
        "  " + flat(f"opened in {where}, {report.at or 'at an unknown time'} ({report.node})"),
        f"  to resolve: {report.remedy}",
    ]


def _json(one: _OpenRun) -> dict[str, Json]:
    from interlock.cli.render.report_json import gap_json  # noqa: PLC0415 — see `gap_lines`

    gaps: list[Json] = [gap_json(gap) for gap in one.gaps]
    return {"session": one.session, "run": one.run, "label": one.label, "workflowId": one.workflow, "gaps": gaps}
