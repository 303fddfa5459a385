"""A run after an earlier event, and the turns of its driver (CON-12)."""

from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from interlock.console.pages.runs import number_of, run_values
from interlock.console.reading import RefusedPageError, Sources, missing
from interlock.console.rendering.templates import Templates
from interlock.kernel.budgets.console import CONSOLE_MATCHES_SHOWN, CONSOLE_STEPS_SHOWN
from interlock.kernel.ids import RunId
from interlock.service.report.session_report import SessionReport, SessionReporter
from interlock.service.run.history import History, history_at
from interlock.service.run.turns import RecordedTurn, RunTurns, totals_of, turns_of


@dataclass(frozen=True, kw_only=True)
class PastPages:
    """The handlers. Each runs in a worker thread."""

    sources: Sources
    templates: Templates

    def replay(self, request: Request) -> Response:
        """Show a run as of an earlier event, numbered as in the timeline: see `history_at`."""
        session, run = request.path_params["session"], request.path_params["run"]

        def make(history: History) -> tuple[SessionReport, list[int]]:
            if run not in history.session.runs:
                raise RefusedPageError(missing(f"run {run}", session), 404)
            began = history.session.runs[RunId(run)].index
            ends = [end for end in history.ends if end >= began]
            past = history_at(history, max(number_of(request, "at", ends[-1], least=0), began))
            report = SessionReporter(self.sources.store, self.sources.plans, past, self.sources.keys).session(
                [RunId(run)], steps_max=CONSOLE_STEPS_SHOWN
            )
            return report, ends

        key = (session, "replay", run, request.query_params.get("at", ""))
        viewed, reading = self.sources.view_or_progress(key, make)
        if viewed is None:
            return self.templates.reading(request, f"Replay of run {run}", reading)
        report, ends = viewed.view
        at = report.events - 1
        index = ends.index(at)
        values = {
            **run_values(session, report.runs[0], viewed.damage),
            "title": f"Replay of run {report.runs[0].summary.label}",
            "events": report.events,
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

        def make(history: History) -> tuple[str, RunTurns]:
            if run not in history.session.runs:
                raise RefusedPageError(missing(f"run {run}", session), 404)
            return history.session.label(RunId(run)), turns_of(self.sources.store, history.session, RunId(run))

        viewed, reading = self.sources.view_or_progress((session, "turns", run), make)
        if viewed is None:
            return self.templates.reading(request, f"Turns of run {run}", reading, session)
        label, found = viewed.view
        newest = list(reversed(found.turns))[:CONSOLE_MATCHES_SHOWN]
        values = {
            "title": f"Turns of run {label}",
            "session": session,
            "run": run,
            "totals": totals_of([one.record for one in found.turns]) if found.turns else None,
            "turns": [_turn_row(one) for one in newest],
            "left_out": len(found.turns) - len(newest),
            "damage": viewed.damage,
            "live": session,
        }
        return self.templates.page(request, "turns.html", values)


def _turn_row(turn: RecordedTurn) -> dict[str, Any]:
    return {"turn": turn, "sums": totals_of([turn.record]), "record": dict(turn.record)}
