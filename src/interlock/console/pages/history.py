"""A run after an earlier event, and the turns of its driver (CON-12)."""

from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from interlock.console.pages.runs import number_of, run_values
from interlock.console.reading import RefusedPageError, Sources, missing
from interlock.console.rendering.templates import Templates
from interlock.kernel.console_budgets import CONSOLE_MATCHES_SHOWN, CONSOLE_STEPS_SHOWN
from interlock.kernel.ids import RunId, SessionId
from interlock.record.events import Event, RunStartedEvent
from interlock.service.report.session_report import SessionReport, SessionReporter
from interlock.service.run.history import History
from interlock.service.run.turns import RecordedTurn, totals_of, turns_of
from interlock.views.evolution import evolve
from interlock.views.session import new_session


@dataclass(frozen=True, kw_only=True)
class PastPages:
    """The handlers. Each runs in a worker thread."""

    sources: Sources
    templates: Templates

    def replay(self, request: Request) -> Response:
        """Show a run after an earlier event: the session is computed from the beginning of its log."""
        session, run = request.path_params["session"], request.path_params["run"]

        def make(history: History) -> tuple[SessionReport, list[int]]:
            ends = list(accumulate(len(one) for one in history.appended))
            begins = [at for at, plan in enumerate(history.appended) if any(is_start(one, run) for one in plan)]
            if not begins:
                raise RefusedPageError(missing(f"run {run}", session), 404)
            wanted = number_of(request, "at", ends[-1])
            # An append becomes true whole, so the run is shown after whole appends only.
            place = next((at for at, end in enumerate(ends) if end >= wanted), len(ends) - 1)
            place = max(place, begins[0])
            past = past_of(history, place + 1)
            report = SessionReporter(self.sources.store, self.sources.plans, past, self.sources.keys).session(
                [RunId(run)], steps_max=CONSOLE_STEPS_SHOWN
            )
            return report, ends[begins[0] :]

        viewed = self.sources.view_session(session, make)
        report, ends = viewed.view
        at = report.events
        index = ends.index(at)
        values = {
            **run_values(session, report.runs[0], viewed.damage),
            "title": f"Replay of run {report.runs[0].summary.label}",
            "events": at,
            "at": at,
            "first": ends[0],
            "last": ends[-1],
            "earlier": ends[index - 1] if index > 0 else None,
            "later": ends[index + 1] if index + 1 < len(ends) else None,
        }
        return self.templates.page(request, "replay.html", values)

    def turns(self, request: Request) -> Response:
        """Show the turns that a driver recorded in a run, newest first, with what they sum up to."""
        session, run = request.path_params["session"], request.path_params["run"]
        loaded = self.sources.store.load(SessionId(session)) if session in self.sources.store.names() else None
        if loaded is None or run not in loaded.runs:
            raise RefusedPageError(missing(f"run {run}", session), 404)
        found = turns_of(self.sources.store, loaded, RunId(run))
        newest = list(reversed(found.turns))[:CONSOLE_MATCHES_SHOWN]
        values = {
            "title": f"Turns of run {loaded.label(RunId(run))}",
            "session": session,
            "run": run,
            "totals": totals_of([one.record for one in found.turns]) if found.turns else None,
            "turns": [_turn_row(one) for one in newest],
            "left_out": len(found.turns) - len(newest),
            "live": session,
        }
        return self.templates.page(request, "turns.html", values)


def past_of(history: History, appends: int) -> History:
    """Return the history of a session after its first appends."""
    kept = history.appended[:appends]
    events = [event for appended in kept for event in appended]
    return History(session=evolve(new_session(history.session.session), *events), appended=kept)


def is_start(event: Event, run: str) -> bool:
    """Say whether an event is the start of a run."""
    return isinstance(event, RunStartedEvent) and event.scope.run_id == run


def _turn_row(turn: RecordedTurn) -> dict[str, Any]:
    return {"turn": turn, "sums": totals_of([turn.record]), "record": dict(turn.record)}
