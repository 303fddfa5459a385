"""`interlock session show`: one session: the status of its runs, the steps done, the open gaps."""

import argparse

from interlock.cli.options import add_store_options
from interlock.cli.render.terminal import as_text, terminal_columns
from interlock.cli.screen import StopError, flat, say, say_json
from interlock.cli.session.chosen import (
    LATEST_HERE,
    SelectedSession,
    add_session_argument,
    chosen_or_latest,
    chosen_session,
)
from interlock.cli.session.evidence.configured import known_keys, read_lifetime
from interlock.cli.session.evidence.damage import Viewed, view_session
from interlock.cli.session.place import Place
from interlock.cli.store import answered_by_store, open_chosen_reader
from interlock.kernel.budgets import ECHO_BYTES_MAX, STEPS_SHOWN
from interlock.kernel.frozen import replace
from interlock.kernel.text import one_line
from interlock.service.report.document import Paragraph
from interlock.service.report.layout import RenderOptions, page_of
from interlock.service.report.session_report import SessionReport, SessionReporter
from interlock.service.report.step_report import StepReport
from interlock.service.run.context import RunContext
from interlock.service.run.history import History, history_at
from interlock.service.run.plans import Plans
from interlock.store.ports.store import StoreReader

_NO_REMEDY = "repair the session first."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_store_options(parser)
    add_session_argument(parser, LATEST_HERE)
    parser.add_argument(
        "--evidence",
        dest="shows_evidence",
        action="store_true",
        help="every step with the content of its artifacts and what it changed in the context",
    )
    parser.add_argument(
        "--step", metavar="STEP", help="only the steps with this number, id or title, with their task and evidence"
    )
    parser.add_argument(
        "--at",
        type=int,
        metavar="EVENT",
        help="as it was at this event, numbered as in `session timeline`, with all that was recorded together with it",
    )
    parser.add_argument("--workspace", default=argparse.SUPPRESS, help="directory of the project (INTERLOCK_WORKSPACE)")
    parser.add_argument("--all", dest="shows_all", action="store_true", help="every step, with its complete notes")


def run(options: argparse.Namespace) -> int:
    """Print one session, or one run of it; return the exit code.

    Raises:
        StopError: The name fits no session or several, or the store cannot answer.
    """
    here = Place(options)
    shows_evidence: bool = options.shows_evidence or options.step is not None
    shows_all: bool = options.shows_all or shows_evidence
    store = open_chosen_reader(options)
    with answered_by_store():
        chosen, others = chosen_or_latest(store, Plans(store), options.session, here)
    viewed = account_of(store, chosen, steps_max=None if shows_all else STEPS_SHOWN, options=options, at=options.at)
    report = viewed.view if options.step is None else select_steps(viewed.view, options.step)
    lifetime = read_lifetime(options, viewed.view.runs[0].run_context.session)
    if options.as_json:
        from interlock.cli.render.report_json import session_json  # noqa: PLC0415 — the text needs none of it

        say_json(viewed.with_damage({**session_json(report, here.drift_of), "lifetime": lifetime.to_json()}))
        return viewed.exit_code
    render_options = RenderOptions(
        newest_first=not shows_evidence,
        is_whole=shows_all,
        is_for_others=False,
        shows_evidence=shows_evidence,
        shows_steps_only=options.step is not None,
        draw=drawn,
        drift_of=here.drift_of,
        lifetime=lifetime.in_words(),
    )
    past = (Paragraph((f"As of event {report.events - 1}.",)),) if options.at is not None else ()
    page = (*viewed.banner, *past, *page_of(report, render_options))
    say(as_text(page, terminal_columns()))
    if others is not None:
        say(others)
    return viewed.exit_code


def select_steps(report: SessionReport, wanted: str) -> SessionReport:
    """Return the report with only the steps that a number, an id or a title names; without runs that have none.

    Raises:
        StopError: No step of the path has it.
    """
    runs = [replace(run, steps=tuple(step for step in run.steps if _is_step(step, wanted))) for run in report.runs]
    if not any(run.steps for run in runs):
        known = dict.fromkeys(f"{step.place.number} {step.step_id}" for run in report.runs for step in run.steps)
        message = f"No step that was done or is pending is {one_line(wanted, ECHO_BYTES_MAX)!r}."
        raise StopError(message, f"Name one of these by its number or id: {', '.join(known) or 'none'}.", exit_code=1)
    return replace(report, runs=tuple(run for run in runs if run.steps))


def _is_step(step: StepReport, wanted: str) -> bool:
    names = {str(step.place.number), step.step_id.casefold(), flat(step.place.title).casefold()}
    return flat(wanted).casefold() in names


def drawn(run_context: RunContext) -> str:
    """Return the tree of a run that branched."""
    from interlock.cli.session.evidence.graph import drawn_text  # noqa: PLC0415 — most runs never branch

    return drawn_text(run_context)


def account_of(
    store: StoreReader,
    wanted: SelectedSession | str | None,
    *,
    steps_max: int | None = None,
    options: argparse.Namespace | None = None,
    at: int | None = None,
) -> Viewed[SessionReport]:
    """Load the report of the selected session or run; of its sound beginning if the session is damaged.

    With `at`, the report is as of that event. With `options`, signatures
    are compared with the keys that the user's configuration names.

    Raises:
        StopError: The name fits no session or several, no selected run had begun, or the store cannot answer.
    """
    with answered_by_store():
        plans = Plans(store)
        chosen = wanted if isinstance(wanted, SelectedSession) else chosen_session(store, plans, wanted)

        def report(history: History) -> SessionReport:
            keys = known_keys(options, history.session) if options is not None else None
            shown = history if at is None else _past(history, chosen, at)
            reporter = SessionReporter(store, plans, shown, keys)
            return reporter.session(chosen.runs(shown.session), steps_max=steps_max)

        viewed = view_session(store, plans, chosen, report)
    if viewed.damage is None:
        return viewed
    return replace(viewed, view=_without_remedies(viewed.view))


def _past(history: History, chosen: SelectedSession, at: int) -> History:
    """Return the history as of an event.

    Raises:
        StopError: The log, or its sound beginning, has no such event, or no selected run had begun at it.
    """
    last = history.ends[-1]
    runs = chosen.runs(history.session)
    first = min((history.session.runs[one].index for one in runs), default=0)
    end = next((end for end in history.ends if end >= at), last)
    least = max((one for one in history.ends if one < first), default=-1) + 1
    # The whole append is shown, so its first event is enough, although the run begins at a later one of it.
    if not 0 <= at <= last or end < first:
        missing = f"{chosen.session} has no event {at} that can be read"
        found = f"The run had not begun at event {at}" if 0 <= at <= last else missing
        raise StopError(f"{found}.", f"Name an event from {least} to {last} with --at.", exit_code=1)
    return history_at(history, at)


def _without_remedies(report: SessionReport) -> SessionReport:
    """Return the report of a damaged session: what would resolve its gaps cannot be done in it."""
    runs = (replace(run, gaps=tuple(replace(gap, remedy=_NO_REMEDY) for gap in run.gaps)) for run in report.runs)
    return replace(report, runs=tuple(runs))
