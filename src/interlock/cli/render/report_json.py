"""The report of a session as JSON, for `--json`."""

from interlock.kernel.canonical import Json
from interlock.record.outcome import Blocker
from interlock.record.payloads import DivergenceRecorded
from interlock.service.report.layout import DriftOf
from interlock.service.report.session_report import (
    Branch,
    ContextEntry,
    FactReport,
    GapReport,
    RunReport,
    SessionReport,
    StepNotDone,
    VerdictReport,
)
from interlock.service.report.step_report import ContextChange, RefusedAttempt, StepReport
from interlock.service.run.context import StepLabel
from interlock.views.session import RunEnd
from interlock.views.summary import run_json


def session_json(report: SessionReport, drift_of: DriftOf) -> dict[str, Json]:
    """Return the report of a session; `drift_of` says whether the source of a run's workflow changed."""
    runs: list[Json] = [{**_run(run), "drift": drift_of(run.summary)} for run in report.runs]
    return {"session": report.session, "events": report.events, "runs": runs}


def gap_json(report: GapReport) -> dict[str, Json]:
    """Return an open gap."""
    step = _place(report.step) if report.step is not None else None
    return {**report.gap.to_json(), "node": report.node, "step": step, "at": report.at, "remedy": report.remedy}


def _run(run: RunReport) -> dict[str, Json]:
    observed: dict[str, Json] = {str(key): value for key, value in run.observed.items()}
    details: dict[str, Json] = {
        "workflowHash": run.workflow_hash,
        "appliedConfigHash": run.config_hash,
        "sourceKind": run.source_kind,
        "source": run.source_ref,
        "preferences": run.preferences.to_json(),
        "blockers": _blockers(run.blockers),
        "verdicts": [_verdict(one) for one in run.verdicts],
        "steps": [step_json(step) for step in run.steps],
        "stepsLeftOut": run.left_out,
        "stepsNotDone": [_not_done(one) for one in run.not_done],
        "stepsElsewhere": [step_json(step) for step in run.elsewhere],
        "branches": [_branch(branch) for branch in run.branches],
        "facts": [_fact(one) for one in run.facts],
        "openGaps": [gap_json(gap) for gap in run.gaps],
        "ended": _ended(run.ended) if run.ended is not None else None,
        "context": [context_json(one) for one in run.context],
        "observed": observed,
        "restsOn": run.rests_on.to_json(),
    }
    return run_json(run.summary) | details


def _ended(ended: RunEnd) -> dict[str, Json]:
    actor = ended.actor.to_json() if ended.actor is not None else None
    return {**ended.work.to_json(), "at": ended.at, "actor": actor}


def step_json(step: StepReport) -> dict[str, Json]:
    """Return the report of a step, with its evidence."""
    return {
        **_place(step.place),
        "stepId": step.step_id,
        "node": step.node,
        "isDone": step.is_done,
        "since": step.since,
        "at": step.at,
        "tookMs": step.took_ms,
        "waitedForPersonMs": step.waited_ms,
        "client": step.by,
        "prompt": step.prompt,
        "notes": step.notes,
        "checkpoint": step.checkpoint,
        "refused": [_refused(attempt) for attempt in step.refused],
        "artifacts": [artifact.to_json() for artifact in step.artifacts],
        "answered": step.answered.to_json() if step.answered is not None else None,
        "context": [_change(one) for one in step.context],
        "gaps": [gap.to_json() for gap in step.gaps],
        "capabilities": [one.to_json() for one in step.capabilities],
        "divergences": [one.to_json() for one in step.divergences],
        "decisions": list(step.decisions),
        "verifies": list(step.verifies),
        "left": [work.to_json() for work in step.left],
        "received": [
            one.data.to_json()
            | {
                "at": one.at,
                "hasUnknownKey": one.event_id in step.unknown_keys,
                "isImported": one.event_id in step.imported,
                "isTaken": one.event_id in step.took,
            }
            for one in step.received
        ],
        "sent": [
            {"intentId": one.intent_id, "kind": one.sends, "fields": dict(one.fields), "state": one.state}
            for one in step.sent
        ],
    }


def _fact(one: FactReport) -> dict[str, Json]:
    kind = "divergence" if isinstance(one.fact, DivergenceRecorded) else "capability"
    step = _place(one.step) if one.step is not None else None
    where: dict[str, Json] = {"node": one.node, "step": step, "at": one.at, "isOnPath": one.is_on_path}
    return {"kind": kind, **one.fact.to_json(), **where}


def context_json(entry: ContextEntry) -> dict[str, Json]:
    """Return a context key with its value and the step that set it last."""
    step = _place(entry.step) if entry.step is not None else None
    return {"key": entry.key, "value": entry.value, "step": step, "at": entry.at, "isComputed": entry.is_computed}


def _refused(attempt: RefusedAttempt) -> dict[str, Json]:
    return {
        "node": attempt.node,
        "at": attempt.at,
        "client": attempt.by,
        "notes": attempt.notes,
        "artifacts": [artifact.to_json() for artifact in attempt.artifacts],
        "blockers": _blockers(attempt.blockers),
    }


def _change(one: ContextChange) -> dict[str, Json]:
    values = {"before": one.before, "after": one.after}
    return {"key": one.key, "change": one.change, **values, "isComputed": one.is_computed}


def _verdict(one: VerdictReport) -> dict[str, Json]:
    verdict = one.verdict
    stated: dict[str, Json] = {"kind": verdict.kind, "verdict": verdict.word, "standing": verdict.standing}
    where: dict[str, Json] = {"step": _place(one.step), "at": one.at, "isInEffect": one.is_in_effect}
    return {**stated, "summary": verdict.summary, **where}


def _not_done(one: StepNotDone) -> dict[str, Json]:
    return {"stepId": one.step_id, "title": one.title, "number": one.number, "isSkipped": one.is_skipped}


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
