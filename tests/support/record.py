"""Records for tests: one full sample of each event kind, and histories made of plans as the engine makes them."""

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count

from interlock.kernel.canonical import Json, digest_of, digest_of_bytes
from interlock.kernel.ids import (
    AttemptId,
    ChangeId,
    ContextId,
    EventId,
    NodeId,
    OutputId,
    RunId,
    SessionId,
    SnapshotRef,
    WorkflowHash,
    ack_attempt,
    derived_id,
    fork_attempt,
    node_of_attempt,
)
from interlock.kernel.uuids import derived_uuid
from interlock.record import payloads as data
from interlock.record.append_plan import AppendPlan, EventDraft, PlannedEdge, Segment, Stamps, stamp
from interlock.record.base import Autonomy, Preferences
from interlock.record.events import Actor, Event
from interlock.record.outcome import (
    AdvancedTo,
    Blocked,
    Blocker,
    OutputContractPointer,
    build_report,
)
from interlock.record.snapshot import (
    Complete,
    ExecutionSnapshot,
    KeySet,
    PendingNone,
    PendingSome,
    PendingStep,
    Running,
    build_snapshot,
)


def numbered(prefix: str, number: int) -> str:
    """Return a well-formed id that a reader of a failure can tell from its neighbours."""
    return f"{prefix}_{number:026d}"


BINDING = derived_uuid("binding")
SESSION = SessionId(numbered("sess", 1))
RUN = RunId(numbered("run", 1))
NODE = NodeId(numbered("node", 1))
CHILD = NodeId(numbered("node", 2))
EVENT = EventId(numbered("evt", 1))
OTHER_EVENT = EventId(numbered("evt", 2))
ATTEMPT = AttemptId(numbered("att", 1))
OUTPUT = OutputId(numbered("out", 1))
OTHER_OUTPUT = OutputId(numbered("out", 2))
CONTEXT = ContextId(numbered("ctx", 1))
CHANGE = ChangeId(numbered("prefchg", 1))
DIGEST = digest_of_bytes(b"something")
WORKFLOW_HASH = WorkflowHash(digest_of_bytes(b"a workflow"))
RECORDED_AT = "2026-01-02T03:04:05.678Z"

RUN_SCOPE: dict[str, Json] = {"runId": RUN}
NODE_SCOPE: dict[str, Json] = {"runId": RUN, "nodeId": NODE}

_OBSERVED: dict[str, Json] = {"type": "short_string", "value": "main"}

# Every sample is full: it has each optional field that its kind allows.
_DATA: dict[str, tuple[dict[str, Json] | None, str, dict[str, Json]]] = {
    "session_created": (None, "", {}),
    "observation_recorded": (
        RUN_SCOPE,
        f":{RUN}:git_branch:{digest_of(_OBSERVED)}",
        {"key": "git_branch", "value": _OBSERVED, "confidence": "high"},
    ),
    "run_started": (
        RUN_SCOPE,
        f":{RUN}",
        {
            "workflowId": "project.bug_investigation",
            "workflowHash": WORKFLOW_HASH,
            "workflowSourceKind": "project",
            "workflowSourceRef": "workflows/bug_investigation.yaml",
            "appliedConfigHash": DIGEST,
            "binding": {"bindingId": BINDING, "role": "test", "position": 1, "test": 0},
        },
    ),
    "node_created": (
        NODE_SCOPE,
        f":{RUN}:{NODE}",
        {
            "nodeKind": "checkpoint",
            "parentNodeId": CHILD,
            "workflowHash": WORKFLOW_HASH,
            "snapshotRef": DIGEST,
            "requestDigest": DIGEST,
        },
    ),
    "edge_created": (
        RUN_SCOPE,
        f":{RUN}:{NODE}->{CHILD}:acked_step",
        {
            "edgeKind": "acked_step",
            "fromNodeId": NODE,
            "toNodeId": CHILD,
            "cause": {"kind": "tip_advance", "eventId": OTHER_EVENT},
        },
    ),
    "advance_recorded": (
        NODE_SCOPE,
        f":{NODE}:{ATTEMPT}",
        {
            "attemptId": ATTEMPT,
            "intent": "ack_pending",
            "requestDigest": DIGEST,
            "outcome": {
                "kind": "blocked",
                "blockers": {
                    "blockers": [
                        {
                            "code": "MISSING_REQUIRED_OUTPUT",
                            "pointer": {"kind": "output_contract", "contractRef": "wr.contracts.notes"},
                            "message": "The step needs notes — none were sent.",
                            "suggestedFix": "Send `output.notesMarkdown`.",
                            "details": {"found": 0, "empty": True, "ratio": 0.5, "note": None, "text": "x"},
                        }
                    ]
                },
            },
        },
    ),
    "node_output_appended": (
        NODE_SCOPE,
        f":{OUTPUT}",
        {
            "outputId": OUTPUT,
            "outputChannel": "artifact",
            "supersedesOutputId": OTHER_OUTPUT,
            "payload": {
                "payloadKind": "artifact_ref",
                "sha256": DIGEST,
                "contentType": "application/json",
                "byteLength": 12,
            },
        },
    ),
    "context_set": (
        RUN_SCOPE,
        f":{CONTEXT}",
        {
            "contextId": CONTEXT,
            "nodeId": NODE,
            "context": {"goal": "mend it", "é": [1, 2.5, None, True, {"deep": {}}]},
            "source": "agent_delta",
        },
    ),
    "preferences_changed": (
        NODE_SCOPE,
        f":{CHANGE}",
        {
            "changeId": CHANGE,
            "source": "user",
            "delta": [
                {"key": "autonomy", "value": "full_auto_never_stop"},
                {"key": "riskPolicy", "value": "conservative"},
            ],
            "effective": {"autonomy": "full_auto_never_stop", "riskPolicy": "conservative"},
        },
    ),
    "capability_observed": (
        NODE_SCOPE,
        f":{numbered('capobs', 1)}",
        {
            "capObsId": numbered("capobs", 1),
            "capability": "web_browsing",
            "status": "unavailable",
            "provenance": {
                "kind": "attempted_use",
                "enforcementGrade": "strong",
                "detail": {"attemptContext": "workflow_step", "result": "failure", "failureCode": "tool_missing"},
            },
        },
    ),
    "gap_recorded": (
        NODE_SCOPE,
        f":{numbered('gap', 1)}",
        {
            "gapId": numbered("gap", 1),
            "severity": "critical",
            "reason": {"category": "contract_violation", "detail": "missing_required_output"},
            "summary": "Notes were missing.",
            "resolution": {"kind": "resolves", "resolvesGapId": numbered("gap", 2)},
            "evidenceRefs": [{"kind": "event", "eventId": OTHER_EVENT}, {"kind": "output", "outputId": OUTPUT}],
        },
    ),
    "divergence_recorded": (
        NODE_SCOPE,
        f":{numbered('div', 1)}",
        {
            "divergenceId": numbered("div", 1),
            "reason": "capability_unavailable",
            "summary": "Done one after the other.",
            "relatedStepId": "investigate",
        },
    ),
    "decision_trace_appended": (
        NODE_SCOPE,
        f":{numbered('trace', 1)}",
        {
            "traceId": numbered("trace", 1),
            "entries": [
                {
                    "kind": "entered_loop",
                    "summary": "The condition held.",
                    "refs": [
                        {"kind": "step_id", "stepId": "investigate"},
                        {"kind": "loop_id", "loopId": "outer"},
                        {"kind": "condition_id", "conditionId": "is-open"},
                        {"kind": "iteration", "value": 0},
                    ],
                }
            ],
        },
    ),
    "work_recorded": (
        RUN_SCOPE,
        f":{RUN}",
        {
            "work": "cancelled",
            "reason": "user_request",
            "note": "No longer wanted.",
            "refs": ["TICKET-7"],
            "answerRef": DIGEST,
        },
    ),
    "event_received": (
        NODE_SCOPE,
        f":{RUN}:{NODE}:signed:{digest_of(['ci.finished', 'build 7'])}",
        {
            "event": "ci.finished",
            "sentId": "build 7",
            "fields": {"status": "green", "failures": 0, "isWhole": True},
            "assurance": "signed",
            "via": "command",
            "signed": {"source": "ci", "publicKey": "k" * 43, "signature": "s" * 86},
            "intentId": numbered("intent", 1),
        },
    ),
    "intent_recorded": (
        NODE_SCOPE,
        f":{numbered('intent', 1)}",
        {"intentId": numbered("intent", 1), "sends": "team.notify", "number": 0, "fields": {"text": "Built"}},
    ),
    "intent_settled": (
        RUN_SCOPE,
        f":{numbered('intent', 1)}:1:claim",
        {
            "intentId": numbered("intent", 1),
            "attempt": 1,
            "state": "dispatched",
            "channel": "chat",
            "owner": "process 7",
            "note": "Sent.",
        },
    ),
    "contract_bound": (
        None,
        f":{BINDING}",
        {
            "bindingId": BINDING,
            "contractId": derived_uuid("contract"),
            "contractVersion": 2,
            "definition": DIGEST,
            "definitions": [DIGEST],
            "parent": {"bindingId": derived_uuid("parent"), "position": 1},
        },
    ),
    "execution_claimed": (
        None,
        f":{BINDING}:work:0:{derived_uuid('execution')}",
        {
            "binding": {"bindingId": BINDING, "role": "work", "position": 0},
            "sourceSessionId": SESSION,
            "sourceRunId": RUN,
            "sourceNodeId": NODE,
            "flowId": derived_uuid("flow"),
            "flowVersion": 1,
            "flowExecutionId": derived_uuid("execution"),
            "state": "completed",
            "outputs": DIGEST,
        },
    ),
}

KINDS = tuple(_DATA)


def sample(kind: str) -> dict[str, Json]:
    """Return a full event of a kind as the JSON value that is stored; the caller may alter it."""
    scope, key, payload = copy.deepcopy(_DATA[kind])
    event: dict[str, Json] = {
        "v": 1,
        "eventId": EVENT,
        "eventIndex": 7,
        "sessionId": SESSION,
        "kind": kind,
        "dedupeKey": f"{kind}:{SESSION}{key}",
        "recordedAt": RECORDED_AT,
        "actor": {"type": "agent", "identifier": "client 1.2", "metadata": {"transport": "stdio"}},
        "data": payload,
    }
    if scope is not None:
        event["scope"] = scope
    return event


def key_set(*keys: str) -> KeySet:
    return KeySet(kind="set", values=keys)


def running(step: str, *completed: str, skipped: tuple[str, ...] = (), taken: tuple[str, ...] = ()) -> Running:
    """Return the state in which a step outside every loop is pending."""
    return Running(
        completed=key_set(*completed),
        skipped=key_set(*skipped),
        edges_taken=key_set(*taken),
        loop_stack=(),
        pending=PendingSome(kind="some", step=PendingStep(step_id=step, loop_path=())),
    )


def complete(*completed: str) -> Complete:
    return Complete(
        completed=key_set(*completed),
        skipped=key_set(),
        edges_taken=key_set(),
        pending=PendingNone(kind="none"),
    )


def ref_of(snapshot: ExecutionSnapshot) -> SnapshotRef:
    return SnapshotRef(digest_of_bytes(snapshot.to_bytes()))


def missing_notes() -> Blocked:
    blocker = Blocker(
        code="MISSING_REQUIRED_OUTPUT",
        pointer=OutputContractPointer(contract_ref="wr.contracts.notes"),
        message="Notes are missing.",
        suggested_fix="Send notes.",
    )
    return Blocked(blockers=build_report([blocker]))


def stamps(recorded_at: str = RECORDED_AT, *, first_id: int = 1, actor: Actor | None = None) -> Stamps:
    ids = count(first_id)
    return Stamps(
        mint_event_id=lambda: EventId(numbered("evt", next(ids))),
        recorded_at=recorded_at,
        actor=actor,
    )


def root_of(run: RunId) -> NodeId:
    return NodeId(derived_id("node", run, "root"))


def node_draft(run: RunId, node: NodeId, parent: NodeId | None, kind: data.NodeKind, state: Running) -> EventDraft:
    created = data.NodeCreated(
        node_kind=kind,
        parent_node_id=parent,
        workflow_hash=WORKFLOW_HASH,
        snapshot_ref=ref_of(build_snapshot(WORKFLOW_HASH, state)),
    )
    return EventDraft(data=created, run=run, node=node)


def preferences_draft(run: RunId, node: NodeId, identity: str, autonomy: Autonomy) -> EventDraft:
    effective = Preferences(autonomy=autonomy, risk_policy="balanced")
    change = data.PreferencesChanged(
        change_id=ChangeId(derived_id("prefchg", identity)),
        source="user",
        delta=(data.PreferenceChange(key="autonomy", value=autonomy),),
        effective=effective,
    )
    return EventDraft(data=change, run=run, node=node)


def notes_draft(run: RunId, node: NodeId, identity: str, notes: str) -> EventDraft:
    output = data.NodeOutputAppended(
        output_id=OutputId(derived_id("out", identity)),
        output_channel="recap",
        payload=data.NotesPayload(notes_markdown=notes),
    )
    return EventDraft(data=output, run=run, node=node)


def context_draft(run: RunId, node: NodeId, identity: str, delta: Mapping[str, Json]) -> EventDraft:
    context = data.ContextSet(
        context_id=ContextId(derived_id("ctx", identity)), node_id=node, context=dict(delta), source="agent_delta"
    )
    return EventDraft(data=context, run=run)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """What comes with a start or an attempt."""

    context: Mapping[str, Json] | None = None
    notes: str | None = None
    autonomy: Autonomy | None = None

    def drafts(self, run: RunId, node: NodeId, identity: str) -> Iterable[EventDraft]:
        if self.notes is not None:
            yield notes_draft(run, node, identity, self.notes)
        if self.context is not None:
            yield context_draft(run, node, identity, self.context)
        if self.autonomy is not None:
            yield preferences_draft(run, node, identity, self.autonomy)


NOTHING = Sent()


@dataclass(slots=True, kw_only=True)
class History:
    """A session's log as it grows by plans. It keeps the books that a caller needs to name the next attempt."""

    session: SessionId = SESSION
    stamps: Stamps = field(default_factory=stamps)
    segments: list[Segment] = field(default_factory=list[Segment])
    runs: dict[NodeId, RunId] = field(default_factory=dict[NodeId, RunId])
    attempts: dict[tuple[NodeId, str], int] = field(default_factory=dict[tuple[NodeId, str], int])

    @property
    def events(self) -> list[Event]:
        return [event for segment in self.segments for event in segment.events]

    def append(self, *drafts: EventDraft) -> Segment:
        """Stamp the drafts as one plan and take them into the log."""
        plan = AppendPlan(session=self.session, drafts=drafts)
        segment = stamp(plan, next_index=len(self.events), stamps=self.stamps)
        self.segments.append(segment)
        return segment

    def start(self, run: RunId = RUN, sent: Sent = NOTHING) -> NodeId:
        """Begin a run, and with the first one the session; return its root."""
        root = root_of(run)
        started = data.RunStarted(
            workflow_id="project.sample",
            workflow_hash=WORKFLOW_HASH,
            workflow_source_kind="project",
            workflow_source_ref="sample.yaml",
        )
        begin = () if self.segments else (EventDraft(data=data.SessionCreated()),)
        node = node_draft(run, root, None, "step", running("first"))
        self.append(*begin, EventDraft(data=started, run=run), node, *sent.drafts(run, root, run))
        self.runs[root] = run
        return root

    def advance(self, parent: NodeId, sent: Sent = NOTHING, *, is_refused: bool = False) -> NodeId:
        """Record the next attempt on a node: its ordinary one if that is new, else a fork. Return the child."""
        run = self.runs[parent]
        is_fork = (parent, "ack") in self.attempts
        attempt = fork_attempt(parent, self._next(parent, "fork")) if is_fork else ack_attempt(parent)
        if not is_fork:
            self._next(parent, "ack")
        child = node_of_attempt(attempt)
        outcome = missing_notes() if is_refused else AdvancedTo(to_node_id=child)
        recorded = data.AdvanceRecorded(
            attempt_id=attempt, intent="ack_pending", outcome=outcome, request_digest=digest_of(sent.notes)
        )
        node = node_draft(run, child, parent, "blocked_attempt" if is_refused else "step", running("second", "first"))
        edge = EventDraft(
            run=run,
            data=PlannedEdge(
                edge_kind="acked_step",
                from_node=parent,
                to_node=child,
                cause="intentional_fork" if is_fork else "tip_advance",
                cause_position=0,
            ),
        )
        self.append(
            EventDraft(data=recorded, run=run, node=parent),
            node,
            *(() if is_refused else (edge,)),
            *sent.drafts(run, child, attempt),
        )
        self.runs[child] = run
        return child

    def checkpoint(self, parent: NodeId, sent: Sent = NOTHING, *left: data.WorkRecorded) -> NodeId:
        """Record a checkpoint of a node, with its edge and how it left the step; return the checkpoint."""
        run = self.runs[parent]
        attempt = derived_id("att", parent, "checkpoint", self._next(parent, "checkpoint"))
        child = NodeId(derived_id("node", attempt, "node"))
        node = node_draft(run, child, parent, "checkpoint", running("second", "first"))
        edge = PlannedEdge(
            edge_kind="checkpoint", from_node=parent, to_node=child, cause="checkpoint_created", cause_position=0
        )
        records = [EventDraft(data=one, run=run, node=child) for one in left]
        self.append(node, EventDraft(data=edge, run=run), *sent.drafts(run, child, attempt), *records)
        return child

    def end(self, run: RunId = RUN, work: data.Work = "cancelled") -> None:
        """Record that a run ended."""
        self.append(EventDraft(data=data.WorkRecorded(work=work, reason="user_request"), run=run))

    def _next(self, node: NodeId, sort: str) -> int:
        number = self.attempts.get((node, sort), 0)
        self.attempts[node, sort] = number + 1
        return number
