from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Literal

import pytest
from rpds import HashTrieMap
from tests.support.record import (
    DIGEST,
    NODE,
    RECORDED_AT,
    RUN,
    SESSION,
    WORKFLOW_HASH,
    History,
    Sent,
    context_draft,
    node_draft,
    notes_draft,
    numbered,
    preferences_draft,
    root_of,
    running,
    sample,
    stamps,
)

from interlock.kernel.canonical import Json, canonical_bytes, digest_of_bytes
from interlock.kernel.ids import (
    AttemptId,
    NodeId,
    OutputId,
    RunId,
    SessionId,
    SnapshotRef,
    WorkflowHash,
    ack_attempt,
    fork_attempt,
    node_of_attempt,
)
from interlock.record import payloads as data
from interlock.record.append_plan import EventDraft, PlannedEdge
from interlock.record.base import Preferences
from interlock.record.context import merge_context
from interlock.record.events import Actor, Event, parse_event
from interlock.record.outcome import AdvancedTo, Blocked
from interlock.views.evolution import evolve
from interlock.views.session import BASELINE, BrokenHistoryError, Session, new_session

OTHER_RUN = RunId(numbered("run", 2))
OTHER_NODE = NodeId(numbered("node", 77))


def folded(events: Sequence[Event], session: Session | None = None) -> Session:
    facts = session or new_session(SESSION)
    for event in events:
        facts = evolve(facts, event)
    return facts


def fold(history: History) -> Session:
    return folded(history.events)


def started(sent: Sent | None = None) -> tuple[History, NodeId]:
    history = History()
    return history, history.start(sent=sent or Sent())


# What a start makes true.


def test_a_start_gives_the_session_its_run_with_a_root_that_is_the_tip() -> None:
    history, root = started()
    session = fold(history)
    run = session.runs[RUN]
    assert (run.run, run.index, run.root, run.tip, run.recorded_at) == (RUN, 1, root, root, RECORDED_AT)
    assert (run.workflow_id, run.workflow_hash) == ("project.sample", WORKFLOW_HASH)
    assert (run.source_kind, run.source_ref) == ("project", "sample.yaml")
    node = session.nodes[root]
    assert (node.run, node.kind, node.parent, node.index, node.depth) == (RUN, "step", None, 2, 0)
    assert (node.refusals, node.forks, node.checkpoints, node.children, node.outputs) == (0, 0, 0, (), ())
    assert session.next_index == len(history.events) == 3


def test_a_second_start_adds_a_run_and_leaves_the_first_alone() -> None:
    history, root = started(Sent(context={"a": 1}))
    before = fold(history)
    other = history.start(OTHER_RUN, Sent(context={"b": 2}))
    after = fold(history)
    assert after.runs[RUN] == before.runs[RUN]
    assert after.nodes[root] == before.nodes[root]
    assert (after.runs[OTHER_RUN].root, after.context(other)) == (other, {"b": 2})


def test_a_session_before_its_first_event_is_empty() -> None:
    session = new_session(SESSION)
    assert (session.session, session.next_index, len(session.runs), len(session.nodes)) == (SESSION, 0, 0, 0)


def test_taking_in_an_event_leaves_the_earlier_session_as_it_was() -> None:
    history, root = started(Sent(context={"a": 1}, notes="one"))
    before = fold(history)
    shown = repr(before)
    child = history.advance(root, Sent(context={"a": 2}, notes="two", autonomy="guided"))
    history.checkpoint(root)
    after = folded(history.events[before.next_index :], before)
    assert repr(before) == shown
    assert (before.runs[RUN].tip, before.context(root)) == (root, {"a": 1})
    assert (after.runs[RUN].tip, after.context(root)) == (child, {"a": 1})


# Advances, refusals and forks.


def test_an_advance_is_found_by_its_attempt_and_its_child_hangs_below() -> None:
    history, root = started()
    child = history.advance(root, Sent(notes="Done."))
    session = fold(history)
    advance = session.advance(root, ack_attempt(root))
    assert advance is not None
    assert (advance.node, advance.attempt, advance.index) == (root, ack_attempt(root), 3)
    assert advance.outcome == AdvancedTo(to_node_id=child)
    assert session.nodes[root].children == (child,)
    assert (session.nodes[child].parent, session.nodes[child].depth, session.runs[RUN].tip) == (root, 1, child)
    assert session.nodes[root].forks == 0
    assert session.advance(child, ack_attempt(root)) is None
    assert session.advance(root, fork_attempt(root, 0)) is None


def test_refusals_in_a_row_are_counted_and_an_advance_begins_anew() -> None:
    history, node = started()
    counts: list[int] = []
    for is_refused in (True, True, False, True, False, False):
        node = history.advance(node, is_refused=is_refused)
        session = fold(history)
        counts.append(session.nodes[node].refusals)
        assert session.runs[RUN].tip == node
        assert session.nodes[node].kind == ("blocked_attempt" if is_refused else "step")
    assert counts == [1, 2, 0, 1, 0, 0]


def test_the_blockers_of_a_refused_attempt_are_kept() -> None:
    history, root = started()
    history.advance(root, is_refused=True)
    advance = fold(history).advance(root, ack_attempt(root))
    assert advance is not None
    assert isinstance(advance.outcome, Blocked)
    assert [blocker.code for blocker in advance.outcome.blockers.blockers] == ["MISSING_REQUIRED_OUTPUT"]


def test_each_fork_is_counted_on_its_node_and_makes_a_branch_beside_the_others() -> None:
    history, root = started()
    children = [history.advance(root, is_refused=at == 2) for at in range(4)]
    session = fold(history)
    assert len(set(children)) == 4
    assert session.nodes[root].children == tuple(children)
    assert session.nodes[root].forks == 3
    assert all(session.advance(root, fork_attempt(root, k)) is not None for k in range(3))
    assert session.advance(root, fork_attempt(root, 3)) is None
    assert session.runs[RUN].tip == children[-1]
    assert [session.nodes[child].refusals for child in children] == [0, 0, 1, 0]


@pytest.mark.inv("READ-3")
def test_an_advance_on_an_older_branch_makes_that_branch_the_preferred_one() -> None:
    history, root = started()
    older, newer = history.advance(root), history.advance(root)
    assert fold(history).runs[RUN].tip == newer
    below = history.advance(older)
    assert fold(history).runs[RUN].tip == below


@pytest.mark.inv("READ-3")
def test_a_checkpoint_is_never_the_tip_and_does_not_keep_its_parent_from_being_one() -> None:
    history, root = started()
    first = history.checkpoint(root, Sent(notes="So far."))
    second = history.checkpoint(root)
    session = fold(history)
    assert session.runs[RUN].tip == root
    assert (session.nodes[root].children, session.nodes[root].checkpoints) == ((), 2)
    assert [session.nodes[node].kind for node in (first, second)] == ["checkpoint", "checkpoint"]
    assert session.nodes[first].outputs[0].payload == data.NotesPayload(notes_markdown="So far.")
    child = history.advance(root)
    assert fold(history).runs[RUN].tip == child


def test_the_digest_of_the_request_of_a_checkpoint_is_kept_on_it() -> None:
    history, root = started()
    created = data.NodeCreated(
        node_kind="checkpoint",
        parent_node_id=root,
        workflow_hash=WORKFLOW_HASH,
        snapshot_ref=SnapshotRef(DIGEST),
        request_digest=DIGEST,
    )
    history.append(EventDraft(data=created, run=RUN, node=NODE))
    assert fold(history).nodes[NODE].request_digest == DIGEST


# Context.


@pytest.mark.inv("CTX-3")
@pytest.mark.parametrize(
    ("base", "delta", "merged"),
    [
        ({}, {}, {}),
        ({"a": 1}, {}, {"a": 1}),
        ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ({"a": 1}, {"a": None}, {}),
        ({}, {"a": None}, {}),
        ({"a": {"x": 1, "y": 2}}, {"a": {"x": 3}}, {"a": {"x": 3}}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": 1}, {"a": {"b": None}}, {"a": {"b": None}}),
        ({"a": 0}, {"a": False, "b": ""}, {"a": False, "b": ""}),
    ],
)
def test_a_delta_merges_at_the_top_level_and_null_removes(
    base: dict[str, Json], delta: dict[str, Json], merged: dict[str, Json]
) -> None:
    kept = dict(base)
    assert dict(merge_context(base, delta)) == merged
    assert base == kept


@pytest.mark.inv("CTX-2")
def test_a_context_is_the_fold_over_the_nodes_own_ancestry() -> None:
    history, root = started(Sent(context={"a": 1, "b": 1}))
    child = history.advance(root)
    grandchild = history.advance(child, Sent(context={"a": None, "c": 3}))
    session = fold(history)
    assert session.context(root) == session.context(child) == {"a": 1, "b": 1}
    assert session.context(grandchild) == {"b": 1, "c": 3}


@pytest.mark.inv("CTX-2")
def test_a_value_that_was_set_on_one_branch_is_not_seen_from_another() -> None:
    history, root = started(Sent(context={"goal": "g"}))
    left = history.advance(root, Sent(context={"side": "left"}))
    right = history.advance(root, Sent(context={"other": "right"}))
    below_left = history.advance(left)
    session = fold(history)
    assert session.context(root) == {"goal": "g"}
    assert session.context(left) == session.context(below_left) == {"goal": "g", "side": "left"}
    assert session.context(right) == {"goal": "g", "other": "right"}


@pytest.mark.inv("CTX-2")
def test_what_came_with_a_refused_attempt_stays_with_it_and_is_there_for_the_next() -> None:
    history, root = started(Sent(context={"a": 1}))
    refused = history.advance(root, Sent(context={"b": 2}), is_refused=True)
    child = history.advance(refused)
    session = fold(history)
    assert session.context(root) == {"a": 1}
    assert session.context(refused) == session.context(child) == {"a": 1, "b": 2}


@pytest.mark.inv("CTX-2")
def test_a_node_has_the_same_context_before_and_after_its_own_advance() -> None:
    history, node = started(Sent(context={"n": 0}))
    for number in range(1, 4):
        before = fold(history).context(node)
        child = history.advance(node, Sent(context={"n": number}))
        assert fold(history).context(node) == before == {"n": number - 1}
        node = child


@pytest.mark.inv("CTX-2")
def test_a_checkpoint_has_the_context_of_its_parent() -> None:
    history, root = started(Sent(context={"a": 1}))
    early = history.checkpoint(root)
    child = history.advance(root, Sent(context={"a": 2}))
    late = history.checkpoint(child)
    session = fold(history)
    assert (session.context(early), session.context(late)) == ({"a": 1}, {"a": 2})


def test_merged_contexts_are_kept_for_leaves_and_deltas_for_the_nodes_that_set_one() -> None:
    history, root = started(Sent(context={"a": 1}))
    left = history.advance(root)
    right = history.advance(root, Sent(context={"b": 2}))
    history.checkpoint(left)
    session = fold(history)
    assert set(session.contexts) == {left, right}
    assert {node: dict(delta) for node, delta in session.deltas.items()} == {root: {"a": 1}, right: {"b": 2}}


def test_a_context_is_folded_over_a_long_ancestry_too() -> None:
    history, node = started(Sent(context={"k0": 0}))
    first = node
    for number in range(1, 1_200):
        node = history.advance(node, Sent(context={f"k{number % 7}": number}))
    parent = fold(history).nodes[node].parent
    assert parent is not None
    assert dict(fold(history).context(parent)) == {f"k{n % 7}": n for n in range(1_199)}
    assert fold(history).context(first) == {"k0": 0}


# Preferences.


@pytest.mark.inv("CTX-7")
def test_preferences_hold_from_their_node_on_and_on_its_own_branch() -> None:
    history, root = started()
    left = history.advance(root, Sent(autonomy="full_auto_never_stop"))
    below = history.advance(left)
    right = history.advance(root)
    session = fold(history)
    changed = Preferences(autonomy="full_auto_never_stop", risk_policy="balanced")
    assert Preferences(autonomy="guided", risk_policy="conservative") == BASELINE
    assert [session.nodes[node].preferences for node in (root, left, below, right)] == [
        BASELINE,
        changed,
        changed,
        BASELINE,
    ]


# Outputs.


def output(
    number: int, node: NodeId, *, channel: Literal["recap", "artifact"] = "recap", supersedes: int | None = None
) -> EventDraft:
    payload = (
        data.NotesPayload(notes_markdown=f"note {number}")
        if channel == "recap"
        else data.ArtifactPayload(sha256=DIGEST, content_type="x/y", byte_length=number)
    )
    appended = data.NodeOutputAppended(
        output_id=OutputId(numbered("out", number)),
        output_channel=channel,
        payload=payload,
        supersedes_output_id=None if supersedes is None else OutputId(numbered("out", supersedes)),
    )
    return EventDraft(data=appended, run=RUN, node=node)


@pytest.mark.inv("READ-5")
def test_outputs_stand_on_their_node_in_log_order_with_what_they_supersede() -> None:
    history, root = started()
    history.append(output(1, root), output(2, root, channel="artifact"), output(3, root, supersedes=1))
    outputs = fold(history).nodes[root].outputs
    assert [(one.output_id, one.channel, one.index) for one in outputs] == [
        (numbered("out", 1), "recap", 3),
        (numbered("out", 2), "artifact", 4),
        (numbered("out", 3), "recap", 5),
    ]
    assert [one.supersedes for one in outputs] == [None, None, numbered("out", 1)]


@pytest.mark.inv("READ-5")
def test_an_output_cannot_supersede_a_later_one_or_one_of_another_node_or_channel() -> None:
    child = node_of_attempt(ack_attempt(root_of(RUN)))
    for wrong in (
        output(3, child, supersedes=1),
        output(3, child, supersedes=3),
        output(3, child, supersedes=9),
        output(3, root_of(RUN), supersedes=2),
    ):
        history, root = started()
        history.append(output(1, root), output(2, root, channel="artifact"))
        assert history.advance(root) == child
        fold(history)
        history.append(wrong)
        with pytest.raises(BrokenHistoryError, match="supersedes"):
            fold(history)


# Labels.


def test_a_run_is_labelled_by_four_characters_and_by_six_where_an_earlier_run_has_those_four() -> None:
    history = History()
    runs = [RunId(f"run_{'0' * 20}{end}") for end in ("aaabcd", "bbabcd", "ccwxyz", "ddabcd")]
    for run in runs:
        history.start(run)
        assert fold(history).label(runs[0]) == "abcd"
    assert [fold(history).label(run) for run in runs] == ["abcd", "bbabcd", "wxyz", "ddabcd"]


# What cannot be history.


def assert_breaks(history: History, wrong: EventDraft, saying: str) -> None:
    session = fold(history)
    history.append(wrong)
    with pytest.raises(BrokenHistoryError, match=saying):
        folded(history.events[session.next_index :], session)


def test_an_event_at_another_index_than_the_next_is_refused() -> None:
    history, root = started()
    history.advance(root)
    events = history.events
    for at, event in enumerate(events):
        for wrong in {0, len(events) - 1, at + 1, at + 2} - {at}:
            with pytest.raises(BrokenHistoryError, match=f"expected {at}"):
                evolve(folded(events[:at]), event.changed(event_index=wrong))


@pytest.mark.inv("EVT-3")
def test_an_event_of_another_session_is_refused() -> None:
    history = History(session=SessionId(numbered("sess", 2)))
    history.start()
    with pytest.raises(BrokenHistoryError):
        fold(history)


@pytest.mark.inv("EVT-3")
def test_a_session_begins_with_its_creation_and_is_not_created_again() -> None:
    history, _ = started()
    first = history.events[1].changed(event_index=0)
    with pytest.raises(BrokenHistoryError, match="begins with session_created"):
        evolve(new_session(SESSION), first)
    assert_breaks(history, EventDraft(data=data.SessionCreated()), "recorded twice")


@pytest.mark.inv("EVT-5")
def test_a_dedupe_key_that_was_seen_is_refused() -> None:
    history, root = started()
    history.append(notes_draft(RUN, root, "att", "one"))
    assert_breaks(history, notes_draft(RUN, root, "att", "two"), "node_output_appended is recorded twice")


@pytest.mark.inv("EVT-4")
@pytest.mark.parametrize(
    ("wrong", "saying"),
    [
        (node_draft(OTHER_RUN, NODE, root_of(RUN), "step", running("a")), "not in the log"),
        (node_draft(RUN, NODE, OTHER_NODE, "step", running("a")), "not in the log"),
        (node_draft(RUN, NODE, None, "step", running("a")), "second root"),
        (node_draft(RUN, NODE, None, "blocked_attempt", running("a")), "second root"),
        (notes_draft(RUN, OTHER_NODE, "att", "x"), "not in the log"),
        (preferences_draft(RUN, OTHER_NODE, "att", "guided"), "not in the log"),
        (context_draft(RUN, OTHER_NODE, "att", {}), "not in the log"),
    ],
)
def test_an_event_about_a_run_or_node_that_never_was_or_a_second_root_is_refused(
    wrong: EventDraft, saying: str
) -> None:
    history, _ = started()
    assert_breaks(history, wrong, saying)


@pytest.mark.inv("EVT-4")
def test_a_node_below_a_parent_of_another_run_or_with_another_workflow_is_refused() -> None:
    history, root = started()
    history.start(OTHER_RUN)
    assert_breaks(history, node_draft(OTHER_RUN, NODE, root, "step", running("a")), "not of its run")
    history, root = started()
    other = data.NodeCreated(
        node_kind="step",
        parent_node_id=root,
        workflow_hash=WorkflowHash(digest_of_bytes(b"another")),
        snapshot_ref=SnapshotRef(DIGEST),
    )
    assert_breaks(history, EventDraft(data=other, run=RUN, node=NODE), "not of its run")


@pytest.mark.inv("EVT-4")
@pytest.mark.parametrize("kind", ["checkpoint", "blocked_attempt"])
def test_a_root_that_is_no_step_is_refused(kind: data.NodeKind) -> None:
    history, _ = started()
    run = data.RunStarted(
        workflow_id="a.b", workflow_hash=WORKFLOW_HASH, workflow_source_kind="user", workflow_source_ref="x"
    )
    history.append(EventDraft(data=run, run=OTHER_RUN))
    assert_breaks(history, node_draft(OTHER_RUN, NODE, None, kind, running("a")), "no step")


@pytest.mark.inv("EVT-4")
def test_a_fork_of_a_node_that_never_was_is_refused() -> None:
    history, _ = started()
    recorded = data.AdvanceRecorded(
        attempt_id=AttemptId(numbered("att", 1)),
        intent="ack_pending",
        outcome=AdvancedTo(to_node_id=NODE),
        request_digest=DIGEST,
    )
    assert_breaks(history, EventDraft(data=recorded, run=RUN, node=OTHER_NODE), "not in the log")


@pytest.mark.inv("EVT-4")
def test_an_edge_says_what_the_nodes_say_or_is_refused() -> None:
    def edge(kind: data.EdgeKind, upper: NodeId, lower: NodeId, run: RunId = RUN) -> EventDraft:
        planned = PlannedEdge(edge_kind=kind, from_node=upper, to_node=lower, cause="tip_advance", cause_position=0)
        return EventDraft(data=planned, run=run)

    def grown() -> tuple[History, NodeId, NodeId, NodeId]:
        history, root = started()
        history.start(OTHER_RUN)
        return history, root, history.advance(root), history.checkpoint(root)

    history, root, left, saved = grown()
    fold(history)
    for wrong, saying in (
        (edge("acked_step", left, root), "not its child"),
        (edge("acked_step", left, left), "not its child"),
        (edge("acked_step", root_of(OTHER_RUN), left), "not its child"),
        (edge("acked_step", root, left, OTHER_RUN), "not its child"),
        (edge("checkpoint", root, left), "a checkpoint edge to a step"),
        (edge("acked_step", root, saved), "a acked_step edge to a checkpoint"),
        (edge("acked_step", root, OTHER_NODE), "not in the log"),
        (edge("acked_step", OTHER_NODE, left), "not in the log"),
    ):
        assert_breaks(grown()[0], wrong, saying)


@pytest.mark.inv("EVT-4")
def test_a_node_that_no_attempt_made_is_refused() -> None:
    made = node_of_attempt(ack_attempt(root_of(RUN)))
    kinds: tuple[data.NodeKind, ...] = ("step", "blocked_attempt")
    for kind in kinds:
        history, root = started()
        assert_breaks(history, node_draft(RUN, made, root, kind, running("b")), "made by no recorded attempt")
    for node, parent in ((NODE, root_of(RUN)), (NODE, made), (node_of_attempt(ack_attempt(made)), made)):
        history, root = started()
        assert history.advance(root) == made
        assert_breaks(history, node_draft(RUN, node, parent, "step", running("b")), "made by no recorded attempt")


@pytest.mark.inv("EVT-4")
def test_an_attempt_that_is_not_the_next_one_or_leads_elsewhere_is_refused() -> None:
    root = root_of(RUN)
    child = node_of_attempt(ack_attempt(root))
    for attempt, to, saying in (
        (fork_attempt(root, 1), None, "not the next attempt"),
        (ack_attempt(child), None, "not the next attempt"),
        (fork_attempt(root, 0), child, "a node that it does not make"),
    ):
        history, _ = started()
        history.advance(root)
        outcome = AdvancedTo(to_node_id=to or node_of_attempt(attempt))
        recorded = data.AdvanceRecorded(
            attempt_id=attempt, intent="ack_pending", request_digest=DIGEST, outcome=outcome
        )
        assert_breaks(history, EventDraft(data=recorded, run=RUN, node=root), saying)


@pytest.mark.parametrize(
    "kind",
    [
        "divergence_recorded",
    ],
)
def test_kinds_that_the_fold_does_not_project_advance_the_index_and_nothing_else(kind: str) -> None:
    history, root = started()
    before = fold(history)
    event = sample(kind) | {"eventIndex": before.next_index}
    if event["scope"] != {"runId": RUN}:
        event["scope"] = {"runId": RUN, "nodeId": root}
    after = evolve(before, parse_event(canonical_bytes(event)))
    assert after.next_index == before.next_index + 1
    assert after.dedupe_keys[str(event["dedupeKey"])] == before.next_index
    for one in fields(Session):
        if one.name not in {"next_index", "dedupe_keys", "runs"}:
            assert getattr(after, one.name) == getattr(before, one.name)


@pytest.mark.inv("READ-6")
def test_neither_the_time_nor_the_caller_of_an_event_changes_what_the_log_says() -> None:
    def result(recorded_at: str, actor: Actor | None) -> Session:
        history = History(stamps=stamps(recorded_at, actor=actor))
        root = history.start(sent=Sent(context={"a": 1}))
        refused = history.advance(root, Sent(notes="x"), is_refused=True)
        history.advance(refused)
        history.advance(root)
        session = fold(history)
        run = replace(session.runs[RUN], recorded_at=None, last_at=None, client=None)
        nodes = {name: replace(node, actor=None) for name, node in session.nodes.items()}
        return replace(session, runs=session.runs.insert(RUN, run), nodes=HashTrieMap(nodes))

    later = result("1999-01-01T00:00:00.000Z", Actor(type="human", identifier="somebody"))
    assert result(RECORDED_AT, None) == later


def test_recorded_reasons_hang_on_the_node_that_they_led_to_and_on_nothing_else() -> None:
    history, root = started()
    before = fold(history)
    event = sample("decision_trace_appended") | {
        "eventIndex": before.next_index,
        "scope": {"runId": RUN, "nodeId": root},
    }
    after = evolve(before, parse_event(canonical_bytes(event)))
    (entry,) = after.nodes[root].trace
    assert (entry.kind, entry.summary) == ("entered_loop", "The condition held.")
    assert after.nodes[root] == replace(before.nodes[root], trace=(entry,))
    assert after.next_index == before.next_index + 1
    for one in fields(Session):
        if one.name not in {"next_index", "dedupe_keys", "nodes", "runs"}:
            assert getattr(after, one.name) == getattr(before, one.name)


# Runs that end otherwise than by their last step.


@pytest.mark.inv("END-1", "END-2")
def test_an_end_stays_on_its_run_and_moves_neither_tip_nor_client_nor_the_last_activity() -> None:
    history = History(stamps=stamps(actor=Actor(type="agent", identifier="client")))
    child = history.advance(history.start())
    before = fold(history).runs[RUN]
    by = Actor(type="human", identifier="somebody")
    history.stamps = stamps("2031-12-31T23:59:59.999Z", first_id=500, actor=by)
    history.end(work="failed")
    after = fold(history)
    ended = after.runs[RUN].ended
    assert ended is not None
    assert (ended.kind, ended.work.reason, ended.actor) == ("failed", "user_request", by)
    assert ended.index == history.events[-1].event_index
    assert after.runs[RUN] == replace(before, ended=ended)
    assert (after.runs[RUN].tip, after.runs[RUN].client) == (child, "client")
    assert after.next_index == len(history.events)


@pytest.mark.inv("END-3")
def test_nothing_of_a_run_follows_its_end_and_other_runs_go_on() -> None:
    def ended() -> tuple[History, NodeId, NodeId]:
        history, root = started()
        other = history.start(OTHER_RUN)
        history.end()
        return history, root, other

    second_end = EventDraft(data=data.WorkRecorded(work="failed", reason="gave_up"), run=RUN)
    _, root, _ = ended()
    for draft, found in ((context_draft(RUN, root, "after", {"a": 1}), "ended"), (second_end, "twice")):
        assert_breaks(ended()[0], draft, found)
    for follow in (History.advance, History.checkpoint):
        history, root, _ = ended()
        follow(history, root)
        with pytest.raises(BrokenHistoryError, match="ended"):
            fold(history)
    history, _, other = ended()
    child = history.advance(other)
    assert fold(history).runs[OTHER_RUN].tip == child


@pytest.mark.inv("END-3")
def test_an_end_of_a_run_that_never_began_is_refused() -> None:
    history, _ = started()
    assert_breaks(
        history,
        EventDraft(data=data.WorkRecorded(work="failed", reason="crashed"), run=OTHER_RUN),
        "not in the log",
    )


@pytest.mark.inv("END-7")
def test_how_work_was_left_stays_on_the_node_of_its_step_and_the_run_goes_on() -> None:
    history, root = started()
    left = data.WorkRecorded(work="released", reason="handoff", note="Half of it.")
    history.checkpoint(root, Sent(), left)
    session = fold(history)
    assert (session.nodes[root].left, session.runs[RUN].ended, session.runs[RUN].tip) == ((left,), None, root)
    history.advance(root)
    fold(history)
    record = EventDraft(data=left, run=RUN, node=root)
    assert_breaks(history, record, "no checkpoint")
