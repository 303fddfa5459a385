"""The report of a session as JSON, for `--json`."""

from interlock.kernel.canonical import Json
from interlock.record.outcome import Blocker
from interlock.service.report.session_report import (
    Branch,
    GapReport,
    RunReport,
    SessionReport,
    StepReport,
)
from interlock.service.run.context import StepLabel
from interlock.views.session import RunEnd
from interlock.views.summary import run_json


def session_json(report: SessionReport) -> dict[str, Json]:
    """Return the report of a session."""
    runs: list[Json] = [_run(run) for run in report.runs]
    return {"session": report.session, "events": report.events, "runs": runs}


def gap_json(report: GapReport) -> dict[str, Json]:
    """Return an open gap."""
    step = _place(report.step) if report.step is not None else None
    return {**report.gap.to_json(), "node": report.node, "step": step, "at": report.at, "remedy": report.remedy}


def _run(run: RunReport) -> dict[str, Json]:
    observed: dict[str, Json] = {str(key): value for key, value in run.observed.items()}
    details: dict[str, Json] = {
        "workflowHash": run.workflow_hash,
        "sourceKind": run.source_kind,
        "source": run.source_ref,
        "preferences": run.preferences.to_json(),
        "blockers": _blockers(run.blockers),
        "steps": [_step(step) for step in run.steps],
        "stepsLeftOut": run.left_out,
        "branches": [_branch(branch) for branch in run.branches],
        "openGaps": [gap_json(gap) for gap in run.gaps],
        "ended": _ended(run.ended) if run.ended is not None else None,
        "contextKeys": list(run.context_keys),
        "observed": observed,
    }
    return run_json(run.summary) | details


def _ended(ended: RunEnd) -> dict[str, Json]:
    actor = ended.actor.to_json() if ended.actor is not None else None
    return {**ended.work.to_json(), "at": ended.at, "actor": actor}


def _step(step: StepReport) -> dict[str, Json]:
    return {
        **_place(step.place),
        "node": step.node,
        "isDone": step.is_done,
        "at": step.at,
        "notes": step.notes,
        "checkpoint": step.checkpoint,
        "refused": [_blockers(blockers) for blockers in step.refused],
        "artifacts": [artifact.to_json() for artifact in step.artifacts],
        "left": [work.to_json() for work in step.left],
    }


def _place(place: StepLabel) -> dict[str, Json]:
    loop: dict[str, Json] | None = None
    if place.loop is not None:
        loop = {"loopId": place.loop.loop_id, "pass": place.loop.pass_}
    return {"number": place.number, "title": place.title, "loop": loop}


def _branch(branch: Branch) -> dict[str, Json]:
    place = _place(branch.place) if branch.place is not None else None
    return {"node": branch.node, "step": place, "isPreferredTip": branch.is_tip, "at": branch.at}


def _blockers(blockers: tuple[Blocker, ...]) -> list[Json]:
    return [blocker.to_json() for blocker in blockers]
