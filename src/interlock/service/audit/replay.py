"""Replays one appended plan: makes the same decision again from the input that the log recorded (VERIFY-1)."""

import itertools
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TypeAlias, assert_never, get_args

from interlock.engine.advance import decide_advance
from interlock.engine.ends import Ended, EndNotAgreed, RunComplete, decide_end, without_answer
from interlock.engine.gates import ApprovalContext, GateClaims, Reply
from interlock.engine.judge.amended import completed_artifact
from interlock.engine.judge.attempt import Advanced, Refused, Waiting
from interlock.engine.request import CONFIRMATION_KIND, Completed, PreferenceDelta, Request
from interlock.engine.start import Start, plan_start
from interlock.kernel.budgets import UNREPORTED_EVIDENCE_MAX
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import replace
from interlock.record import events as ev
from interlock.record.append_plan import AppendPlan
from interlock.record.base import Autonomy
from interlock.record.outcome import Blocked
from interlock.record.payloads import PreferencesChanged
from interlock.service.run.attempts import attempt_on, ending_of
from interlock.service.run.context import load_run_context
from interlock.service.run.evidence.sent import answered_at, evidence_sent, reply_stored
from interlock.service.run.plans import Plans
from interlock.store.ports.reader import SessionReader
from interlock.views.appends import BrokenChainError, RecordedPlan
from interlock.views.outside import SigningKeys
from interlock.views.session import BASELINE, Session


def derived_plan(reader: SessionReader, plans: Plans, recorded: RecordedPlan) -> AppendPlan | str:
    """Return the plan that the recorded input gives when it is decided again, or why it gives none.

    Raises:
        BrokenChainError: The plan starts from a node at which the run is complete.
        ContentDamagedError: Something that the plan needs is missing or damaged.
    """
    if isinstance(recorded.key, ev.RunStartedEvent):
        return _replay_start(reader, plans, recorded, recorded.key)
    return _replay_advance(reader, plans, recorded, recorded.key)


def derived_end(reader: SessionReader, plans: Plans, before: Session, key: ev.WorkRecordedEvent) -> AppendPlan | str:
    """Return the plan that a recorded end of a run leads to, or why it leads to none (END-8).

    The end is decided again from the actor of the event and the person's answer that it refers to.

    Raises:
        ContentDamagedError: The answer or the snapshot of the run's tip is missing or damaged.
    """
    run_context = load_run_context(before, before.runs[key.scope.run_id], plans)
    digest = key.data.answer_ref
    reply = reply_stored(reader, digest).reply() if digest is not None else None
    decision = decide_end(ending_of(run_context, without_answer(key.data), key.actor, reply))
    match decision:
        case Ended():
            return decision.plan
        case RunComplete():
            return "the run was complete"
        case EndNotAgreed():
            return "no person agreed"
        case _:
            assert_never(decision)


def is_as_sent(reader: SessionReader, plans: Plans, recorded: RecordedPlan) -> bool:
    """Say whether the recorded input can match the request digest of the attempt, whose plan `derived_plan` gave.

    The log does not record which evidence a retry sent again, nor an autonomy that a refused attempt asked for. So all
    possible requests are tried, those that omit little first. If there are too many, the digest proves nothing, and the
    result is True.

    Raises:
        ContentDamagedError: A part of the recorded input is missing or damaged.
    """
    if isinstance(recorded.key, ev.RunStartedEvent):
        return True
    child, digest = recorded.after.nodes[recorded.node], recorded.key.data.request_digest
    evidence, parent = evidence_sent(reader, child), recorded.before.nodes[recorded.key.scope.node_id]
    earlier = evidence_sent(reader, parent) if parent.kind == "blocked_attempt" else Request()
    run_context = load_run_context(recorded.before, recorded.before.runs[child.run], plans)
    pending = run_context.pending(parent)
    assert pending is not None, "the plan was derived before"
    completed = partial(completed_artifact, run_context.workflow, run_context.workflow.steps[pending.step_id])
    kept = tuple(_kept(evidence, earlier, completed))
    if len(kept) > UNREPORTED_EVIDENCE_MAX:
        return True
    context = _context_sent(recorded)
    for count, preferences in itertools.product(range(len(kept) + 1), _preferences_sent(recorded)):
        for omitted in itertools.combinations(kept, count):
            sent = _without(evidence, frozenset(omitted))
            if replace(sent, context=context, preferences=preferences).digest() == digest:
                return True
    return False


_Part: TypeAlias = tuple[int | None, str | None]
"""A piece of evidence: the number of an artifact, and the name of a field of it or None for the whole; or the notes."""
_NOTES: _Part = (None, None)


def _kept(evidence: Request, earlier: Request, completed: Completed) -> Iterator[_Part]:
    """Yield what a retry need not have sent, because the attempt before it sent the same (EVID-2)."""
    if evidence.notes is not None and evidence.notes == earlier.notes:
        yield _NOTES
    for number, artifact in enumerate(evidence.artifacts):
        alike = [one for one in earlier.artifacts if one.get("kind") == artifact.get("kind") != CONFIRMATION_KIND]
        if artifact in alike:
            yield number, None
        for name, value in artifact.items():
            part = {other: member for other, member in artifact.items() if other != name}
            same = (one for one in alike if name in one and one[name] == value)
            if name != "kind" and any(completed(part, one) == artifact for one in same):
                yield number, name


def _without(evidence: Request, omitted: frozenset[_Part]) -> Request:
    """Return evidence without some of its pieces."""
    artifacts = tuple(
        {name: value for name, value in artifact.items() if (number, name) not in omitted}
        for number, artifact in enumerate(evidence.artifacts)
        if (number, None) not in omitted
    )
    return Request(notes=None if _NOTES in omitted else evidence.notes, artifacts=artifacts)


def _replay_start(
    reader: SessionReader, plans: Plans, recorded: RecordedPlan, key: ev.RunStartedEvent
) -> AppendPlan | str:
    changed = _preferences_changed(recorded)
    is_of_user = changed is not None and changed.source == "user"
    plan = plan_start(
        Start(
            session=recorded.after.session,
            is_new_session=recorded.before.next_index == 0,
            run=key.scope.run_id,
            workflow=plans.workflow(key.data.workflow_hash),
            workflow_hash=key.data.workflow_hash,
            workflow_bytes=reader.workflow_bytes(key.data.workflow_hash),
            source_kind=key.data.workflow_source_kind,
            source_ref=key.data.workflow_source_ref,
            request=Request(
                context=_context_sent(recorded),
                preferences=_chosen_preferences(recorded) if is_of_user else PreferenceDelta(),
            ),
            baseline=changed.effective if changed is not None else BASELINE,
            config_hash=key.data.applied_config_hash,
            binding=key.data.binding,
            checks=key.data.checks or (),
            proofs=key.data.proofs or "enforce",
            notifies=key.data.notifies is True,
        )
    )
    return plan if isinstance(plan, AppendPlan) else plan.message


def _replay_advance(
    reader: SessionReader, plans: Plans, recorded: RecordedPlan, key: ev.AdvanceRecordedEvent
) -> AppendPlan | str:
    child, before = recorded.after.nodes[recorded.node], recorded.before
    node, run_context = before.nodes[key.scope.node_id], load_run_context(before, before.runs[child.run], plans)
    run_context = replace(run_context, signing_keys=_taken_keys(before, key))
    if run_context.pending(node) is None:
        raise BrokenChainError(key, "the run is already complete at its node")
    evidence, answered = evidence_sent(reader, child), answered_at(reader, child)
    request = Request(
        notes=evidence.notes,
        artifacts=evidence.artifacts,
        context=_context_sent(recorded),
        preferences=_chosen_preferences(recorded),
        asking=ApprovalContext(
            client_can=answered is not None,
            claims=_claims_policy(recorded),
            reply=answered.reply() if answered is not None else None,
        ),
    )
    if was_declined(key):
        # The log says that a person declined, but not what: it was the gate of the step, or else more autonomy.
        declined = ApprovalContext(client_can=True, reply=Reply(action="decline", client="", answers={}))
        autonomy = request.preferences.autonomy or "full_auto_never_stop"
        request = replace(request, preferences=replace(request.preferences, autonomy=autonomy), asking=declined)
    decision = decide_advance(attempt_on(reader, run_context, (node, key.data.attempt_id), request, key.actor))
    if isinstance(decision, Waiting):
        return "the event that the step waits for is not in the log"
    return decision.plan if isinstance(decision, Advanced | Refused) else decision.blockers[0].message


def _taken_keys(before: Session, key: ev.AdvanceRecordedEvent) -> SigningKeys:
    """Return the key of the signature that the step took: events of other keys before it did not count there."""
    taken = (before.outside.events.get(one) for one in key.data.took or ())
    signed = (one.data.signed for one in taken if one is not None)
    return frozenset((one.source, one.public_key) for one in signed if one is not None)


def was_declined(key: ev.AdvanceRecordedEvent) -> bool:
    """Say whether a person declined: only that leads to a refusal with this single code (GATE-4)."""
    outcome = key.data.outcome
    return isinstance(outcome, Blocked) and {one.code for one in outcome.blockers.blockers} == {"USER_ONLY_DEPENDENCY"}


def _context_sent(recorded: RecordedPlan) -> Mapping[str, Json]:
    """Return the context that the caller sent, without what the step set."""
    sent: dict[str, Json] = {}
    for event in recorded.events:
        if isinstance(event, ev.ContextSetEvent) and event.data.source != "merge":
            sent |= event.data.context
    return sent


def _preferences_changed(recorded: RecordedPlan) -> PreferencesChanged | None:
    events = [event.data for event in recorded.events if isinstance(event, ev.PreferencesChangedEvent)]
    return events[0] if events else None


def _chosen_preferences(recorded: RecordedPlan) -> PreferenceDelta:
    changed = _preferences_changed(recorded)
    if changed is None:
        return PreferenceDelta()
    keys, effective = {change.key for change in changed.delta}, changed.effective
    return PreferenceDelta(
        autonomy=effective.autonomy if "autonomy" in keys else None,
        risk_policy=effective.risk_policy if "riskPolicy" in keys else None,
    )


def _preferences_sent(recorded: RecordedPlan) -> Iterator[PreferenceDelta]:
    """Yield each possible preference of the request: a refused attempt does not record a declined autonomy (GATE-5)."""
    chosen = _chosen_preferences(recorded)
    yield chosen
    outcome = recorded.key.data.outcome if isinstance(recorded.key, ev.AdvanceRecordedEvent) else None
    if isinstance(outcome, Blocked) and chosen.autonomy is None:
        yield from (replace(chosen, autonomy=autonomy) for autonomy in get_args(Autonomy))


def _claims_policy(recorded: RecordedPlan) -> GateClaims:
    """Return the claims policy of the attempt: an accepted claim is recorded as a warning gap (GATE-6)."""
    gaps = [event.data for event in recorded.events if isinstance(event, ev.GapRecordedEvent)]
    is_accepted = any(gap.severity == "warning" and gap.resolution.kind == "unresolved" for gap in gaps)
    return "always" if is_accepted else "never"
