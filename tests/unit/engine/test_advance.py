"""Start and advance as pure decisions: the same facts always give the same plan, and the plan says it all."""

from typing import Any, cast

import pytest

from interlock.engine.advance import decide_advance
from interlock.engine.judge.attempt import Advanced, Attempt, AttemptLimitReached, Decision, Refused
from interlock.engine.request import PreferenceDelta, Request
from interlock.engine.start import Start, plan_start, root_node
from interlock.kernel.budgets import ATTEMPTS_PER_STEP_MAX, NOTES_BYTES_MAX
from interlock.kernel.canonical import digest_of_bytes
from interlock.kernel.ids import NodeId, RunId, SessionId, ack_attempt, derived_id, fork_attempt, node_of_attempt
from interlock.kernel.text import utf8_bytes
from interlock.plan.compiled import CompiledWorkflow, pinned_bytes
from interlock.record import payloads as data
from interlock.record.append_plan import AppendPlan, PlannedEdge
from interlock.record.base import Preferences
from interlock.record.outcome import AdvancedTo, Blocked
from interlock.record.snapshot import Complete, ExecutionSnapshot, Running, parse_snapshot
from interlock.service.workflows.catalog import Catalog, Pinnable
from interlock.testing.harness import InlineWorkflows, linear_workflow
from interlock.views.session import BASELINE

SESSION = SessionId(derived_id("sess", "test"))
RUN = RunId(derived_id("run", "test"))
ROOT = root_node(RUN)
OPTIONAL = {"id": "b", "title": "B", "prompt": "b", "notes": "optional"}


def workflow() -> CompiledWorkflow:
    view = Catalog(InlineWorkflows(linear_workflow("test.abc", "a", OPTIONAL, "c"))).view(None)
    compiled = view.entries["test.abc"].compiled
    assert isinstance(compiled, Pinnable)
    return compiled.workflow


WORKFLOW = workflow()
HASH, BYTES = pinned_bytes(WORKFLOW)


def started(request: Request | None = None, *, is_new_session: bool = True) -> AppendPlan:
    plan = plan_start(
        Start(
            session=SESSION,
            is_new_session=is_new_session,
            run=RUN,
            workflow=WORKFLOW,
            workflow_hash=HASH,
            workflow_bytes=BYTES,
            source_kind="project",
            source_ref="abc.json",
            request=request or Request(),
            baseline=BASELINE,
        )
    )
    assert isinstance(plan, AppendPlan)
    return plan


def snapshot_in(plan: AppendPlan) -> ExecutionSnapshot:
    ((ref, stored),) = plan.snapshots
    assert digest_of_bytes(stored) == ref
    return parse_snapshot(stored)


def kinds(plan: AppendPlan) -> list[str]:
    return [type(draft.data).__name__ for draft in plan.drafts]


def payload(plan: AppendPlan, kind: type) -> Any:
    (found,) = [draft.data for draft in plan.drafts if isinstance(draft.data, kind)]
    return found


def decided(request: Request, *, snapshot: ExecutionSnapshot | None = None, **changes: Any) -> Decision:
    node = cast("NodeId", changes.pop("node", ROOT))
    fields: dict[str, Any] = {
        "session": SESSION,
        "run": RUN,
        "node": node,
        "attempt": ack_attempt(node),
        "is_fork": False,
        "refusals": 0,
        "snapshot": snapshot or snapshot_in(started()),
        "preferences": BASELINE,
        "workflow": WORKFLOW,
        "request": request,
        "context": {},
    }
    return decide_advance(Attempt(**(fields | changes)))


def advanced(request: Request | None = None, **changes: Any) -> AppendPlan:
    decision = decided(request or Request(notes="done"), **changes)
    assert isinstance(decision, Advanced)
    return decision.plan


@pytest.mark.inv("ADV-1", "CTX-1", "CTX-7")
def test_a_start_is_one_plan_with_everything_the_run_begins_with() -> None:
    plan = started(Request(context={"goal": "G"}, preferences=PreferenceDelta(autonomy="full_auto_never_stop")))
    assert kinds(plan) == ["SessionCreated", "RunStarted", "NodeCreated", "PreferencesChanged", "ContextSet"]
    assert plan.workflow == (HASH, BYTES)
    node = payload(plan, data.NodeCreated)
    assert (node.parent_node_id, node.node_kind, node.workflow_hash) == (None, "step", HASH)
    assert node.snapshot_ref == plan.snapshots[0][0]
    changed = payload(plan, data.PreferencesChanged)
    assert changed.effective == Preferences(autonomy="full_auto_never_stop", risk_policy="conservative")
    assert [change.key for change in changed.delta] == ["autonomy", "riskPolicy"]
    context = payload(plan, data.ContextSet)
    assert (context.node_id, context.context, context.source) == (ROOT, {"goal": "G"}, "initial")
    state = snapshot_in(plan).state
    assert isinstance(state, Running)
    assert (state.pending.step.step_id, state.completed.values) == ("a", ())


def test_a_start_in_a_session_that_exists_does_not_create_it_again() -> None:
    assert kinds(started(is_new_session=False)) == ["RunStarted", "NodeCreated", "PreferencesChanged"]


@pytest.mark.inv("ID-2")
def test_the_same_start_is_the_same_plan() -> None:
    assert started() == started()


@pytest.mark.inv("ADV-3")
def test_an_accepted_ack_is_its_outcome_a_child_and_the_edge_between() -> None:
    plan = advanced()
    assert kinds(plan) == ["AdvanceRecorded", "NodeCreated", "PlannedEdge", "NodeOutputAppended"]
    child = node_of_attempt(ack_attempt(ROOT))
    assert payload(plan, data.AdvanceRecorded).outcome == AdvancedTo(to_node_id=child)
    assert payload(plan, data.NodeCreated).parent_node_id == ROOT
    edge = payload(plan, PlannedEdge)
    assert (edge.from_node, edge.to_node, edge.edge_kind, edge.cause) == (ROOT, child, "acked_step", "tip_advance")
    assert isinstance(plan.drafts[edge.cause_position].data, data.AdvanceRecorded)
    state = snapshot_in(plan).state
    assert isinstance(state, Running)
    assert (state.pending.step.step_id, state.completed.values) == ("b", ("a",))


@pytest.mark.inv("ADV-10")
def test_a_fork_differs_from_an_advance_in_its_cause_and_its_ids() -> None:
    fork = fork_attempt(ROOT, 0)
    plan = advanced(attempt=fork, is_fork=True)
    edge = payload(plan, PlannedEdge)
    assert (edge.cause, edge.to_node) == ("intentional_fork", node_of_attempt(fork))
    assert edge.to_node != node_of_attempt(ack_attempt(ROOT))


@pytest.mark.inv("ADV-4")
def test_the_last_step_completes_the_run() -> None:
    snapshot = snapshot_in(advanced())
    snapshot = snapshot_in(advanced(snapshot=snapshot))
    plan = advanced(snapshot=snapshot)
    state = snapshot_in(plan).state
    assert isinstance(state, Complete)
    assert state.completed.values == ("a", "b", "c")
    assert state.skipped.values == state.edges_taken.values == ()


@pytest.mark.inv("BLK-1", "BLK-2")
def test_missing_notes_make_a_child_with_the_same_snapshot_and_no_edge() -> None:
    request = Request(artifacts=({"kind": "k"},), context={"x": 1}, preferences=PreferenceDelta(risk_policy="balanced"))
    decision = decided(request)
    assert isinstance(decision, Refused)
    plan = decision.plan
    assert kinds(plan) == [
        "AdvanceRecorded",
        "NodeCreated",
        "NodeOutputAppended",
        "ContextSet",
        "PreferencesChanged",
    ]
    recorded = payload(plan, data.AdvanceRecorded)
    assert isinstance(recorded.outcome, Blocked)
    assert recorded.request_digest == request.digest()
    node = payload(plan, data.NodeCreated)
    child = node_of_attempt(ack_attempt(ROOT))
    assert (node.node_kind, node.parent_node_id) == ("blocked_attempt", ROOT)
    assert node.snapshot_ref == started().snapshots[0][0]
    assert plan.snapshots == ()
    assert len(plan.artifacts) == 1
    assert {draft.node for draft in plan.drafts[1:] if draft.node is not None} == {child}
    assert payload(plan, data.ContextSet).node_id == child


@pytest.mark.inv("BLK-1")
def test_a_step_with_optional_notes_advances_without() -> None:
    plan = advanced(Request(), snapshot=snapshot_in(advanced()))
    assert kinds(plan) == ["AdvanceRecorded", "NodeCreated", "PlannedEdge"]


@pytest.mark.inv("BLK-4")
@pytest.mark.parametrize("refusals", range(ATTEMPTS_PER_STEP_MAX))
def test_the_tenth_refusal_in_a_row_is_not_recorded(refusals: int) -> None:
    decision = decided(Request(), refusals=refusals)
    assert isinstance(decision, AttemptLimitReached if refusals == ATTEMPTS_PER_STEP_MAX - 1 else Refused)


@pytest.mark.inv("BLK-3")
def test_good_evidence_is_accepted_after_any_number_of_refusals() -> None:
    assert isinstance(decided(Request(notes="done"), refusals=ATTEMPTS_PER_STEP_MAX - 1), Advanced)


@pytest.mark.inv("EVT-6", "EVT-7")
def test_outputs_are_the_notes_first_and_then_the_artifacts_by_digest() -> None:
    artifacts = tuple({"kind": "k", "n": number} for number in range(5))
    plan = advanced(Request(notes="é" * NOTES_BYTES_MAX, artifacts=artifacts))
    outputs = [draft.data for draft in plan.drafts if isinstance(draft.data, data.NodeOutputAppended)]
    assert [output.output_channel for output in outputs] == ["recap", *["artifact"] * 6]
    notes, *refs = [output.payload for output in outputs]
    assert isinstance(notes, data.NotesPayload)
    assert utf8_bytes(notes.notes_markdown) <= NOTES_BYTES_MAX
    digests = [ref.sha256 for ref in refs if isinstance(ref, data.ArtifactPayload)]
    assert digests == sorted(digests) == [digest for digest, _ in plan.artifacts]
    assert len({output.output_id for output in outputs}) == 7


@pytest.mark.inv("CTX-7", "CTX-8")
def test_a_change_of_preferences_belongs_to_the_child_and_holds_the_whole() -> None:
    plan = advanced(Request(notes="n", preferences=PreferenceDelta(risk_policy="aggressive")))
    (draft,) = [draft for draft in plan.drafts if isinstance(draft.data, data.PreferencesChanged)]
    assert draft.node == node_of_attempt(ack_attempt(ROOT))
    changed = cast("data.PreferencesChanged", draft.data)
    assert [(change.key, change.value) for change in changed.delta] == [("riskPolicy", "aggressive")]
    assert changed.effective == Preferences(autonomy="guided", risk_policy="aggressive")
    assert changed.source == "user"


@pytest.mark.inv("ID-2", "EVT-5")
def test_the_same_attempt_is_the_same_plan_and_another_evidence_keeps_its_ids() -> None:
    one, same, other = advanced(Request(notes="a")), advanced(Request(notes="a")), advanced(Request(notes="b"))
    assert one == same
    assert [draft.node for draft in one.drafts] == [draft.node for draft in other.drafts]
    assert payload(one, data.NodeOutputAppended).output_id == payload(other, data.NodeOutputAppended).output_id


@pytest.mark.inv("BLK-3")
def test_what_a_refused_attempt_sent_counts_and_hangs_on_the_node_it_leads_to() -> None:
    earlier = Request(artifacts=({"kind": "k", "n": 1},))
    plan = advanced(Request(notes="Now with notes."), earlier=earlier)
    outputs = [draft.data for draft in plan.drafts if isinstance(draft.data, data.NodeOutputAppended)]
    assert [output.output_channel for output in outputs] == ["recap", "artifact"]
    assert plan.artifacts == tuple((one.digest, one.data) for one in earlier.stored_artifacts())
    assert isinstance(decided(Request(), earlier=Request(notes="Sent before.")), Advanced)


@pytest.mark.inv("ADV-7")
def test_what_is_recorded_of_an_attempt_is_the_digest_of_what_it_sent_itself() -> None:
    request = Request(notes="n")
    plan = advanced(request, earlier=Request(artifacts=({"kind": "k"},)))
    assert payload(plan, data.AdvanceRecorded).request_digest == request.digest()
