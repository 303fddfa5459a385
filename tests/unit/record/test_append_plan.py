import json
from collections.abc import Iterator

import pytest
from tests.support.record import (
    CHILD,
    DIGEST,
    NODE,
    RECORDED_AT,
    RUN,
    SESSION,
    WORKFLOW_HASH,
    History,
    Sent,
    context_draft,
    missing_notes,
    node_draft,
    notes_draft,
    numbered,
    preferences_draft,
    running,
    stamps,
)

from interlock.kernel.budgets import PLAN_BYTES_MAX, PLAN_EVENTS_MAX
from interlock.kernel.canonical import Json, canonical_bytes
from interlock.kernel.errors import InterlockError
from interlock.kernel.ids import AttemptId, CapObsId, DivergenceId, GapId, SnapshotRef, TraceId
from interlock.record import payloads as data
from interlock.record.append_plan import AppendPlan, EventDraft, PlannedEdge, stamp
from interlock.record.base import Record
from interlock.record.events import Actor, ContextSetEvent, EdgeCreatedEvent, event_class_of, event_kind, parse_event

ACTOR = Actor(type="agent", identifier="client 1.2")


def planned(*drafts: EventDraft) -> AppendPlan:
    return AppendPlan(session=SESSION, drafts=drafts)


def edge(cause_position: int) -> EventDraft:
    planned_edge = PlannedEdge(
        edge_kind="acked_step", from_node=NODE, to_node=CHILD, cause="tip_advance", cause_position=cause_position
    )
    return EventDraft(data=planned_edge, run=RUN)


def notes(number: int = 1, text: str = "Done.") -> EventDraft:
    return notes_draft(RUN, NODE, f"att {number}", text)


def one_of_each() -> Iterator[EventDraft]:
    """Yield a draft for every kind of payload that has a class."""
    yield EventDraft(data=data.SessionCreated())
    value = data.ObservationValue(type="git_sha1", value="a" * 40)
    observed = data.ObservationRecorded(key="git_head_sha", value=value, confidence="med")
    yield EventDraft(data=observed)
    yield EventDraft(data=observed, run=RUN)
    yield EventDraft(data=observed, run=RUN, node=NODE)
    yield EventDraft(
        data=data.RunStarted(
            workflow_id="a.b", workflow_hash=WORKFLOW_HASH, workflow_source_kind="user", workflow_source_ref="x.yaml"
        ),
        run=RUN,
    )
    yield node_draft(RUN, NODE, None, "step", running("a"))
    yield edge(0)
    yield EventDraft(
        data=data.AdvanceRecorded(
            attempt_id=AttemptId(numbered("att", 1)),
            intent="ack_pending",
            outcome=missing_notes(),
            request_digest=DIGEST,
        ),
        run=RUN,
        node=NODE,
    )
    yield notes()
    yield context_draft(RUN, NODE, "att", {"é": [1, None]})
    yield preferences_draft(RUN, NODE, "att", "guided")
    claim = data.ManualClaimDetail(claimed_by="agent", claim="available")
    yield EventDraft(
        data=data.CapabilityObserved(
            cap_obs_id=CapObsId(numbered("capobs", 1)),
            capability="delegation",
            status="available",
            provenance=data.ManualClaim(enforcement_grade="weak", detail=claim),
        ),
        run=RUN,
        node=NODE,
    )
    yield EventDraft(
        data=data.GapRecorded(
            gap_id=GapId(numbered("gap", 1)),
            severity="info",
            reason=data.GapReason(category="unexpected", detail="invariant_violation"),
            summary="Odd.",
            resolution=data.Unresolved(),
        ),
        run=RUN,
        node=NODE,
    )
    yield EventDraft(
        data=data.DivergenceRecorded(
            divergence_id=DivergenceId(numbered("div", 1)), reason="safety_stop", summary="Stopped."
        ),
        run=RUN,
        node=NODE,
    )
    entry = data.TraceEntry(kind="selected_next_step", summary="It was next.")
    yield EventDraft(
        data=data.DecisionTraceAppended(trace_id=TraceId(numbered("trace", 1)), entries=(entry,)), run=RUN, node=NODE
    )


@pytest.mark.inv("EVT-1", "EVT-3")
@pytest.mark.parametrize("draft", list(one_of_each()), ids=lambda draft: type(draft.data).__name__)
def test_a_draft_of_every_kind_becomes_an_event_that_is_read_back(draft: EventDraft) -> None:
    segment = stamp(planned(draft), next_index=7, stamps=stamps(actor=ACTOR))
    (event,) = segment.events
    assert segment.data == event.to_bytes() + b"\n"
    assert parse_event(segment.data[:-1]) == event
    assert (event.event_index, event.session_id, event.recorded_at, event.actor) == (7, SESSION, RECORDED_AT, ACTOR)
    payload_class = data.EdgeCreated if isinstance(draft.data, PlannedEdge) else type(draft.data)
    assert event.kind == event_kind(event_class_of(payload_class))


@pytest.mark.inv("APP-3", "EVT-3")
def test_the_events_of_a_plan_are_canonical_lines_with_consecutive_indexes_in_the_order_of_the_drafts() -> None:
    drafts = [notes(number) for number in range(5)]
    segment = stamp(planned(*drafts), next_index=40, stamps=stamps(first_id=10))
    assert [event.event_index for event in segment.events] == [40, 41, 42, 43, 44]
    assert [event.event_id for event in segment.events] == [numbered("evt", number) for number in range(10, 15)]
    assert [event.data for event in segment.events] == [draft.data for draft in drafts]
    lines = segment.data.split(b"\n")
    assert lines.pop() == b""
    assert [canonical_bytes(json.loads(line)) for line in lines] == lines


@pytest.mark.inv("FOLLOW-4")
def test_the_events_of_a_segment_are_those_that_a_reader_of_its_bytes_gets() -> None:
    """Whoever appends must not see more than whoever follows: neither the order of keys nor `1.0` is stored."""
    sent: dict[str, Json] = {"b": 1.0, "a": {"z": [2.50, -0.0], "é": {"y": 1, "x": 2}}}
    segment = stamp(planned(context_draft(RUN, NODE, "att", sent)), next_index=0, stamps=stamps())
    (event,) = segment.events
    assert repr(event) == repr(parse_event(segment.data[:-1]))
    assert isinstance(event, ContextSetEvent)
    assert repr(event.data.context) == "{'a': {'z': [2.5, 0], 'é': {'x': 2, 'y': 1}}, 'b': 1}"


def test_an_event_carries_an_actor_and_a_scope_only_where_they_were_given() -> None:
    session_created = EventDraft(data=data.SessionCreated())
    segment = stamp(planned(session_created, notes()), next_index=0, stamps=stamps())
    first, second = (json.loads(line) for line in segment.data.splitlines())
    assert "actor" not in first
    assert "scope" not in first
    assert second["scope"] == {"runId": RUN, "nodeId": NODE}


@pytest.mark.inv("EVT-5")
def test_a_plan_stamped_twice_gives_the_same_keys_and_payloads_under_other_ids() -> None:
    plan = planned(notes(), edge(0), context_draft(RUN, NODE, "att", {"a": 1}))
    one = stamp(plan, next_index=3, stamps=stamps())
    two = stamp(plan, next_index=9, stamps=stamps("2030-01-01T00:00:00.000Z", first_id=50, actor=ACTOR))
    assert [event.dedupe_key for event in one.events] == [event.dedupe_key for event in two.events]
    assert one.events[0].data == two.events[0].data
    assert {event.event_id for event in one.events}.isdisjoint(event.event_id for event in two.events)
    assert stamp(plan, next_index=3, stamps=stamps()) == one


@pytest.mark.parametrize("position", [0, 1, 2])
def test_an_edge_names_the_event_of_its_own_plan_that_caused_it(position: int) -> None:
    drafts = [notes(1), notes(2)]
    drafts.insert(1, edge(position))
    segment = stamp(planned(*drafts), next_index=3, stamps=stamps(first_id=70))
    made = segment.events[1]
    assert isinstance(made, EdgeCreatedEvent)
    assert made.data.cause == data.EdgeCause(kind="tip_advance", event_id=segment.events[position].event_id)


@pytest.mark.inv("APP-4")
def test_a_plan_holds_between_one_event_and_the_budget() -> None:
    most = [notes(number) for number in range(PLAN_EVENTS_MAX)]
    assert len(stamp(planned(*most), next_index=0, stamps=stamps()).events) == PLAN_EVENTS_MAX
    for drafts in ([], [*most, notes(PLAN_EVENTS_MAX)]):
        with pytest.raises(AssertionError, match="between one event and the budget"):
            stamp(planned(*drafts), next_index=0, stamps=stamps())


@pytest.mark.inv("APP-4")
def test_a_plan_whose_segment_would_be_above_the_budget_of_bytes_is_not_stamped() -> None:
    base = len(stamp(planned(notes(text="")), next_index=0, stamps=stamps()).data)
    full = stamp(planned(notes(text="x" * (PLAN_BYTES_MAX - base))), next_index=0, stamps=stamps())
    assert len(full.data) == PLAN_BYTES_MAX
    with pytest.raises(AssertionError, match="checked against its limit"):
        stamp(planned(notes(text="x" * (PLAN_BYTES_MAX - base + 1))), next_index=0, stamps=stamps())


@pytest.mark.inv("EVT-4")
@pytest.mark.parametrize(
    "draft",
    [
        EventDraft(data=data.SessionCreated(), run=RUN),
        EventDraft(data=notes().data, run=RUN),
        EventDraft(data=edge(0).data, run=RUN, node=NODE),
        EventDraft(data=context_draft(RUN, NODE, "att", {}).data, run=RUN, node=NODE),
    ],
)
def test_a_draft_with_the_scope_of_another_kind_is_not_stamped(draft: EventDraft) -> None:
    with pytest.raises((InterlockError, AttributeError, TypeError)):
        stamp(planned(draft), next_index=0, stamps=stamps())


def test_a_plan_has_content_as_bytes_and_the_events_that_refer_to_it() -> None:
    plan = AppendPlan(
        session=SESSION,
        drafts=(notes(),),
        snapshots=((SnapshotRef(DIGEST), b"s"),),
        artifacts=((DIGEST, b"a"),),
        workflow=(WORKFLOW_HASH, b"w"),
    )
    segment = stamp(plan, next_index=0, stamps=stamps())
    assert segment == stamp(planned(notes()), next_index=0, stamps=stamps())


def test_a_segment_does_not_spill_its_bytes_into_a_traceback() -> None:
    history = History()
    history.start(sent=Sent(notes="a secret of the run"))
    assert b"a secret of the run" in history.segments[0].data
    assert "data=b" not in repr(history.segments[0])


def test_a_record_is_written_with_the_fields_that_were_set_and_no_others() -> None:
    def written(record: Record) -> dict[str, Json]:
        return record.to_json()

    node = data.NodeCreated(
        node_kind="step", parent_node_id=None, workflow_hash=WORKFLOW_HASH, snapshot_ref=SnapshotRef(DIGEST)
    )
    assert written(node) == {
        "nodeKind": "step",
        "parentNodeId": None,
        "workflowHash": WORKFLOW_HASH,
        "snapshotRef": DIGEST,
    }
