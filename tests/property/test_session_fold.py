"""The fold of a session against a model: plain dicts, recomputed from all events by the locked definitions."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.record import SESSION, History, Sent, stamps
from tests.support.shares import examples

from interlock.kernel.canonical import Json
from interlock.kernel.ids import NodeId, RunId, ack_attempt
from interlock.record.events import Actor, Event, parse_event
from interlock.views.evolution import evolve
from interlock.views.session import Node, Session, new_session

pytestmark = pytest.mark.exhaustive

unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""A loaded machine is no fault of ours."""

Facts = dict[str, Json]


# Histories.


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One plan: a start, an attempt on some node that the history has by then, or a checkpoint of one."""

    kind: str
    pick: int
    sent: Sent


SAMPLES: list[Json] = ["", "x", [1, None], {"k": None}, {"k": [{}]}, False, 0.5]
VALUES: st.SearchStrategy[Json] = st.none() | st.integers(0, 3) | st.sampled_from(SAMPLES)
SENT = st.builds(
    Sent,
    context=st.none() | st.dictionaries(st.sampled_from(["a", "b", "goal"]), VALUES, max_size=3),
    notes=st.none() | st.text(max_size=5),
    autonomy=st.none() | st.sampled_from(["guided", "full_auto_stop_on_user_deps", "full_auto_never_stop"]),
)
KINDS = st.sampled_from(["start", "advance", "advance", "advance", "refuse", "refuse", "checkpoint", "end"])
MOVES = st.lists(st.builds(Move, kind=KINDS, pick=st.integers(0, 50), sent=SENT), min_size=1, max_size=16)


def played(moves: Iterable[Move], history: History) -> History:
    """Play moves: a node's first attempt is its ordinary one, any further one a fork."""
    nodes: list[NodeId] = []
    runs = 0
    for move in moves:
        nodes = [node for node in nodes if history.runs[node] not in ended_runs(history.events)]
        if move.kind == "start" or not nodes:
            # Few endings, so that labels clash; never the same six characters.
            run = RunId(f"run_{'0' * 20}{runs:02d}{('aaaa', 'bbbb')[move.pick % 2]}")
            nodes.append(history.start(run, move.sent))
            runs += 1
        elif move.kind == "end":
            history.end(history.runs[nodes[move.pick % len(nodes)]], "failed" if move.sent.notes else "cancelled")
        elif move.kind == "checkpoint":
            history.checkpoint(nodes[move.pick % len(nodes)], Sent(notes=move.sent.notes))
        else:
            # Counted from the newest, so that short histories grow deep as well as wide.
            parent = nodes[-1 - move.pick % len(nodes)]
            nodes.append(history.advance(parent, move.sent, is_refused=move.kind == "refuse"))
    return history


def ended_runs(events: Iterable[Event]) -> dict[str, Facts]:
    """Return how runs ended: every record of the end of a run, by run."""
    ends = [event.to_json() for event in events if event.kind == "work_recorded"]
    return {name(scope(event), "runId"): event for event in ends}


def folded(events: Iterable[Event]) -> Session:
    session = new_session(SESSION)
    for event in events:
        session = evolve(session, event)
    return session


# The model.


class Model:
    """What a whole log says, looked up in all of its events each time it is asked."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.events = [event.to_json() for event in events]
        self.created = {name(scope(event), "nodeId"): event for event in self.of_kind("node_created")}
        self.runs = [name(scope(event), "runId") for event in self.of_kind("run_started")]

    def of_kind(self, kind: str) -> list[Facts]:
        return [event for event in self.events if event["kind"] == kind]

    def at(self, kind: str, node: str) -> list[Facts]:
        return [event for event in self.of_kind(kind) if scope(event).get("nodeId") == node]

    def is_checkpoint(self, node: str) -> bool:
        return data(self.created[node])["nodeKind"] == "checkpoint"

    def ancestry(self, node: str) -> list[str]:
        """The node, its parent, and so on to the root."""
        line: list[str] = []
        while node:
            line.append(node)
            node = name(data(self.created[node]), "parentNodeId")
        return line

    def born_of(self, node: str) -> list[str]:
        return [child for child, event in self.created.items() if data(event)["parentNodeId"] == node]

    def children(self, node: str) -> list[str]:
        """Checkpoints are none: they do not keep their parent from being a tip (CHK-1)."""
        return [child for child in self.born_of(node) if not self.is_checkpoint(child)]

    def leaves(self, run: str) -> list[str]:
        nodes = [node for node, event in self.created.items() if scope(event)["runId"] == run]
        return [node for node in nodes if not self.is_checkpoint(node) and not self.children(node)]

    def touched(self, event: Facts) -> set[str]:
        """The nodes that an event is about. What is about a checkpoint is no activity of a tip (CHK-1)."""
        named = {name(scope(event), "nodeId")}
        named |= {name(data(event), key) for key in ("nodeId", "fromNodeId", "toNodeId")}
        nodes = named - {""}
        return set() if any(map(self.is_checkpoint, nodes)) else nodes

    def tip(self, run: str) -> str:
        """Locks 2: the leaf with the latest activity in its history, then the later created, then by id."""

        def rank(leaf: str) -> tuple[int, int, str]:
            history = set(self.ancestry(leaf))
            latest = max(index(event) for event in self.events if self.touched(event) & history)
            return latest, index(self.created[leaf]), leaf

        return max(self.leaves(run), key=rank)

    def last(self, run: str) -> Facts:
        """The last event of a run; its end is none."""
        events = [event for event in self.events if scope(event).get("runId") == run]
        return next(event for event in reversed(events) if event["kind"] != "work_recorded")

    def context(self, node: str) -> Facts:
        """CTX-2: the deltas over the node's own ancestry, oldest first; null deletes."""
        merged: Facts = {}
        for ancestor in reversed(self.ancestry(node)):
            for event in self.of_kind("context_set"):
                if data(event)["nodeId"] == ancestor:
                    merged |= cast("Facts", data(event)["context"])
                    merged = {key: value for key, value in merged.items() if value is not None}
        return merged

    def preferences(self, node: str) -> Json:
        """Locks 4: what the nearest ancestor with a change says, else the baseline."""
        for ancestor in self.ancestry(node):
            changes = self.at("preferences_changed", ancestor)
            if changes:
                return data(changes[-1])["effective"]
        return {"autonomy": "guided", "riskPolicy": "conservative"}

    def refusals(self, node: str) -> int:
        """BLK-4: how many refused attempts in a row end here."""
        line = [data(self.created[ancestor])["nodeKind"] for ancestor in self.ancestry(node)]
        return next(at for at, kind in enumerate(line) if kind != "blocked_attempt")

    def forks(self, node: str) -> int:
        """ID-2: the recorded attempts on a node other than its ordinary one."""
        ordinary = ack_attempt(NodeId(node))
        return sum(data(event)["attemptId"] != ordinary for event in self.at("advance_recorded", node))

    def label(self, run: str) -> str:
        """ANS-2: four characters, six where a run that began earlier ends in those four."""
        earlier = self.runs[: self.runs.index(run)]
        return run[-6:] if any(other.endswith(run[-4:]) for other in earlier) else run[-4:]

    def node(self, node: str) -> dict[str, object]:
        event = self.created[node]
        return {
            "run": scope(event)["runId"],
            "kind": data(event)["nodeKind"],
            "parent": data(event)["parentNodeId"],
            "snapshot": data(event)["snapshotRef"],
            "index": event["eventIndex"],
            "depth": len(self.ancestry(node)) - 1,
            "refusals": self.refusals(node),
            "preferences": self.preferences(node),
            "children": self.children(node),
            "outputs": [data(output)["outputId"] for output in self.at("node_output_appended", node)],
            "forks": self.forks(node),
            "checkpoints": sum(map(self.is_checkpoint, self.born_of(node))),
        }


def scope(event: Facts) -> Facts:
    return cast("Facts", event.get("scope", {}))


def data(event: Facts) -> Facts:
    return cast("Facts", event["data"])


def index(event: Facts) -> int:
    return cast("int", event["eventIndex"])


def name(facts: Facts, key: str) -> str:
    """Return the id that stands at a key, "" where there is none."""
    return cast("str", facts.get(key) or "")


def shown(node: Node) -> dict[str, object]:
    """Return what the fold says of a node, as the model says it."""
    return {
        "run": node.run,
        "kind": node.kind,
        "parent": node.parent,
        "snapshot": node.snapshot,
        "index": node.index,
        "depth": node.depth,
        "refusals": node.refusals,
        "preferences": node.preferences.to_json(),
        "children": list(node.children),
        "outputs": [output.output_id for output in node.outputs],
        "forks": node.forks,
        "checkpoints": node.checkpoints,
    }


# What holds of every history.


@pytest.mark.inv("READ-6")
@unhurried
@given(MOVES)
def test_every_node_is_what_a_recomputation_from_all_events_makes_of_it(moves: list[Move]) -> None:
    history = played(moves, History())
    session, model = folded(history.events), Model(history.events)
    assert {node: shown(facts) for node, facts in session.nodes.items()} == {
        node: model.node(node) for node in model.created
    }


@pytest.mark.inv("READ-3")
@unhurried
@given(MOVES)
def test_the_preferred_tip_of_each_run_is_the_leaf_that_the_locked_definition_selects(moves: list[Move]) -> None:
    history = played(moves, History())
    session, model = folded(history.events), Model(history.events)
    assert {run: facts.tip for run, facts in session.runs.items()} == {run: model.tip(run) for run in model.runs}


@pytest.mark.inv("END-1", "END-2", "END-3")
@unhurried
@given(MOVES)
def test_a_run_has_ended_if_and_only_if_the_log_says_so_and_its_last_activity_is_the_one_before(
    moves: list[Move],
) -> None:
    history = played(moves, History())
    session, model, ended = folded(history.events), Model(history.events), ended_runs(history.events)
    assert {run: facts.ended.index for run, facts in session.runs.items() if facts.ended is not None} == {
        run: index(event) for run, event in ended.items()
    }
    for run, facts in session.runs.items():
        assert facts.last_index == index(model.last(run))
        assert facts.ended is None or facts.ended.work.to_json() == data(ended[run])


@unhurried
@given(MOVES)
def test_each_run_has_a_label_of_its_own_that_stays_what_it_was(moves: list[Move]) -> None:
    history = played(moves, History())
    session, first = new_session(SESSION), dict[RunId, str]()
    for event in history.events:
        session = evolve(session, event)
        assert all(first.setdefault(run, session.label(run)) == session.label(run) for run in session.runs)
    model = Model(history.events)
    assert first == {run: model.label(run) for run in model.runs}
    assert len(set(first.values())) == len(first)


@pytest.mark.inv("CTX-2", "CTX-3")
@unhurried
@given(MOVES)
def test_the_context_of_each_node_is_the_fold_over_its_own_ancestry(moves: list[Move]) -> None:
    history = played(moves, History())
    session, model = folded(history.events), Model(history.events)
    for node in session.nodes:
        assert dict(session.context(node)) == model.context(node)
    assert set(session.contexts) == {leaf for run in model.runs for leaf in model.leaves(run)}


@pytest.mark.inv("CTX-2")
@unhurried
@given(MOVES)
def test_the_context_of_a_node_never_changes_after_its_own_plan(moves: list[Move]) -> None:
    history = played(moves, History())
    session, first = new_session(SESSION), dict[NodeId, str]()
    for segment in history.segments:
        for event in segment.events:
            session = evolve(session, event)
        for node in session.nodes:
            # As text, since True equals 1: an answer is rendered from it.
            assert first.setdefault(node, repr(session.context(node))) == repr(session.context(node))


@pytest.mark.inv("READ-6", "EVT-5")
@unhurried
@given(MOVES)
def test_attempts_and_dedupe_keys_are_found_where_the_log_has_them(moves: list[Move]) -> None:
    history = played(moves, History())
    session, model = folded(history.events), Model(history.events)
    assert dict(session.dedupe_keys.items()) == {str(event["dedupeKey"]): at for at, event in enumerate(model.events)}
    recorded = {
        (name(scope(event), "nodeId"), name(data(event), "attemptId")): (index(event), data(event)["outcome"])
        for event in model.of_kind("advance_recorded")
    }
    assert {
        (advance.node, advance.attempt): (advance.index, advance.outcome.to_json())
        for advance in session.advances.values()
    } == recorded
    for advance in session.advances.values():
        assert session.advance(advance.node, advance.attempt) is advance


@pytest.mark.inv("READ-6")
@unhurried
@given(MOVES)
def test_replaying_the_stored_segments_gives_the_live_session(moves: list[Move]) -> None:
    history = played(moves, History())
    live, stored = folded(history.events), b"".join(segment.data for segment in history.segments)
    replayed = folded(parse_event(line) for line in stored.splitlines())
    assert replayed == live
    assert {node: repr(replayed.context(node)) for node in replayed.nodes} == {
        node: repr(live.context(node)) for node in live.nodes
    }


@pytest.mark.inv("READ-6", "EVT-5")
@settings(unhurried, max_examples=examples(50))
@given(MOVES)
def test_the_same_plans_at_another_time_by_another_caller_say_the_same(moves: list[Move]) -> None:
    other = stamps("2031-12-31T23:59:59.999Z", first_id=5_000, actor=Actor(type="system", identifier="other"))
    one = played(moves, History())
    two = played(moves, History(stamps=other))
    assert timeless(folded(one.events)) == timeless(folded(two.events))


def timeless(session: Session) -> Session:
    runs = session.runs
    for run, facts in runs.items():
        ended = replace(facts.ended, at=None, actor=None) if facts.ended is not None else None
        runs = runs.insert(run, replace(facts, recorded_at=None, last_at=None, client=None, ended=ended))
    nodes = session.nodes
    for node, made in nodes.items():
        nodes = nodes.insert(node, replace(made, actor=None))
    return replace(session, runs=runs, nodes=nodes)
