"""One appended plan again: what the log says came in, put through the same decision as when it came (seed 3)."""

from collections.abc import Mapping
from dataclasses import dataclass

from interlock.engine.advance import decide_advance
from interlock.engine.attempt import Advanced, Asking, Refused
from interlock.engine.gates import GateClaims, reply_of
from interlock.engine.request import PreferenceDelta, Request
from interlock.engine.start import Start, plan_start
from interlock.kernel.canonical import Json
from interlock.kernel.ids import NodeId
from interlock.record import events as ev
from interlock.record.append_plan import AppendPlan
from interlock.record.outcome import Blocked
from interlock.service.attempts import Sent, answered_at, attempt_on, brought_by
from interlock.service.plans import Plans
from interlock.service.words import scene_of
from interlock.store.ports import SessionReader
from interlock.views.session import BASELINE, Session

KeyEvent = ev.RunStartedEvent | ev.AdvanceRecordedEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """An appended plan: its events, the one that is its key, the node it made, the session before and after it."""

    events: tuple[ev.Event, ...]
    key: KeyEvent
    node: NodeId
    before: Session
    after: Session

    @property
    def has_earlier_evidence(self) -> bool:
        """Say whether a refused attempt brought part of the evidence: which part, the log does not tell."""
        if isinstance(self.key, ev.RunStartedEvent):
            return False
        return self.before.nodes[self.key.scope.node_id].kind == "blocked_attempt"

    @property
    def has_notes(self) -> bool:
        """Say whether notes were recorded; notes that say nothing are not."""
        outputs = [event.data for event in self.events if isinstance(event, ev.NodeOutputAppendedEvent)]
        return any(output.output_channel == "recap" for output in outputs)


def recorded_plan(before: Session, after: Session, events: tuple[ev.Event, ...]) -> Recorded | None:
    """Return an appended plan with its key event, or None where nothing was decided in it."""
    key = next((event for event in events if isinstance(event, KeyEvent)), None)
    if key is None:
        return None
    if isinstance(key, ev.RunStartedEvent):
        root = after.runs[key.scope.run_id].root
        assert root is not None, "a start makes a root"
        return Recorded(events=events, key=key, node=root, before=before, after=after)
    advance = after.advance(key.scope.node_id, key.data.attempt_id)
    assert advance is not None, "the event records it"
    return Recorded(events=events, key=key, node=advance.child, before=before, after=after)


def derived_plan(reader: SessionReader, plans: Plans, recorded: Recorded) -> AppendPlan | str | None:
    """Return the plan that follows from what came in, or why none does.

    None where a person's no decided: it is kept in words alone.

    Raises:
        ContentDamagedError: Something that the plan needs is missing or damaged.
    """
    if isinstance(recorded.key, ev.RunStartedEvent):
        return _start(reader, plans, recorded, recorded.key)
    return _advance(reader, plans, recorded, recorded.key)


def _start(reader: SessionReader, plans: Plans, recorded: Recorded, key: ev.RunStartedEvent) -> AppendPlan | str:
    changed = _preferences_changed(recorded)
    is_chosen = changed is not None and changed.source == "user"
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
                context=_sent_context(recorded), preferences=_chosen(recorded) if is_chosen else PreferenceDelta()
            ),
            baseline=changed.effective if changed is not None else BASELINE,
        )
    )
    return plan if isinstance(plan, AppendPlan) else plan.message


def _advance(
    reader: SessionReader, plans: Plans, recorded: Recorded, key: ev.AdvanceRecordedEvent
) -> AppendPlan | str | None:
    child, before = recorded.after.nodes[recorded.node], recorded.before
    evidence = brought_by(reader, child)
    request = Request(
        notes=evidence.notes,
        artifacts=evidence.artifacts,
        context=_sent_context(recorded),
        preferences=_chosen(recorded),
    )
    answered = answered_at(reader, child)
    asking = Asking(
        client_can=answered is not None,
        claims=_claims_policy(recorded),
        reply=reply_of(answered) if answered is not None else None,
    )
    scene = scene_of(before, before.runs[child.run], plans)
    sent = Sent(attempt=key.data.attempt_id, request=request, asking=asking)
    decision = decide_advance(attempt_on(reader, scene, before.nodes[key.scope.node_id], sent))
    if isinstance(decision, Advanced | Refused):
        return decision.plan
    outcome = key.data.outcome
    is_no = isinstance(outcome, Blocked) and {one.code for one in outcome.blockers.blockers} == {"USER_ONLY_DEPENDENCY"}
    return None if is_no else decision.blockers[0].message


def _sent_context(recorded: Recorded) -> Mapping[str, Json]:
    """Return what came in of context, apart from what the step set."""
    sent: dict[str, Json] = {}
    for event in recorded.events:
        if isinstance(event, ev.ContextSetEvent) and event.data.source != "merge":
            sent |= event.data.context
    return sent


def _preferences_changed(recorded: Recorded) -> "ev.data.PreferencesChanged | None":
    events = [event.data for event in recorded.events if isinstance(event, ev.PreferencesChangedEvent)]
    return events[0] if events else None


def _chosen(recorded: Recorded) -> PreferenceDelta:
    changed = _preferences_changed(recorded)
    if changed is None:
        return PreferenceDelta()
    keys, effective = {change.key for change in changed.delta}, changed.effective
    return PreferenceDelta(
        autonomy=effective.autonomy if "autonomy" in keys else None,
        risk_policy=effective.risk_policy if "riskPolicy" in keys else None,
    )


def _claims_policy(recorded: Recorded) -> GateClaims:
    """Return how claims were taken: one that was accepted is disclosed as such (D24)."""
    gaps = [event.data for event in recorded.events if isinstance(event, ev.GapRecordedEvent)]
    is_taken = any(gap.severity == "warning" and gap.resolution.kind == "unresolved" for gap in gaps)
    return "always" if is_taken else "never"
