"""Loops over lists: a snapshot refers to the list, and the log has it once (SNAP-8)."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.flow import SOME_NODE, compiled, loop, step
from tests.support.lifecycle import hold_lifecycle

from interlock.engine.walk.items import ItemMissingError, load_lists
from interlock.kernel.canonical import Json
from interlock.kernel.ids import NodeId, RunId, SnapshotRef
from interlock.record.snapshot import ExecutionSnapshot, LoopFrame, Running, build_snapshot, parse_snapshot
from interlock.service.audit.verify import verify_session
from interlock.store.memory.store import MemoryStore
from interlock.testing.harness import Harness, ToolResult, linear_workflow

DOCUMENT = linear_workflow(
    "test.items",
    {
        "loopId": "each",
        "title": "Each part",
        "maxIterations": 4,
        "forEach": {"items": "parts", "itemVar": "part"},
        "body": [
            {"id": "one", "title": "One", "prompt": "Do {{part.name}}.", "notes": "optional"},
            {"id": "two", "title": "Two {{part.name}}", "prompt": "Check {{part.name}}.", "notes": "optional"},
        ],
    },
    inputs=[{"key": "parts", "description": "The parts.", "type": "list"}],
)


def parts(*names: str) -> dict[str, Any]:
    return {"parts": [{"name": name, "text": "abc" * 400} for name in names]}


def snapshots_of(harness: Harness, answer: ToolResult) -> list[ExecutionSnapshot]:
    session = harness.store.load(harness.session_of(answer))
    assert session is not None
    nodes = sorted(session.nodes.values(), key=lambda node: node.index)
    return [harness.store.snapshot(node.snapshot) for node in nodes]


def references(snapshots: list[ExecutionSnapshot]) -> list[NodeId | None]:
    return [one.state.loop_stack[0].items_at for one in snapshots if isinstance(one.state, Running)]


@pytest.mark.inv("SNAP-8")
def test_the_size_of_a_snapshot_does_not_follow_the_items_of_a_loop() -> None:
    sizes: list[list[int]] = []
    for text in ("short", "long" * 5_000):
        harness = Harness.in_memory(DOCUMENT)
        answer = harness.start("test.items", context={"parts": [{"name": "x", "text": text}]})
        harness.advance(harness.advance(answer))
        stored = [one.to_bytes() for one in snapshots_of(harness, answer)]
        assert not any(text.encode() in one for one in stored)
        sizes.append([len(one) for one in stored])
    assert sizes[0] == sizes[1]
    assert len(sizes[0]) == 3


@pytest.mark.inv("SNAP-8")
def test_passes_refer_to_one_node_until_their_list_changes() -> None:
    harness = Harness.in_memory(DOCUMENT)
    answer = harness.start("test.items", context=parts("x", "y", "z"))
    second = harness.advance(harness.advance(answer))
    changed = harness.advance(second, context=parts("x", "p", "q"))
    assert "Check y." in changed["pending"]["prompt"]
    third = harness.advance(changed)
    assert "Do q." in third["pending"]["prompt"]
    first, *others, last = references(snapshots_of(harness, answer))
    assert others == [first] * 3
    assert last not in (first, None)


@pytest.mark.inv("SNAP-8")
def test_another_server_reads_the_item_of_a_pass_from_the_log(tmp_path: Path) -> None:
    harness = Harness.on_disk(tmp_path, DOCUMENT)
    answer = harness.start("test.items", context=parts("x", "y"))
    in_second = harness.advance(harness.advance(answer))
    within = harness.advance(in_second, context={"parts": []})
    again = Harness.on_disk(tmp_path, DOCUMENT)
    assert again.rehydrate(within)["pending"]["title"] == "Two y"
    assert "Check y." in again.rehydrate(within)["pending"]["prompt"]
    assert again.advance(within)["pending"] is None


class Elsewhere(MemoryStore):
    """Gives out snapshots whose loops refer to a node that is not in the log."""

    def __init__(self) -> None:
        super().__init__()
        self.is_altered = False

    def snapshot(self, ref: SnapshotRef) -> ExecutionSnapshot:
        found = super().snapshot(ref)
        if not self.is_altered or not isinstance(found.state, Running):
            return found
        (frame,) = found.state.loop_stack
        state = found.state.changed(loop_stack=(frame.changed(items_at=SOME_NODE),))
        return build_snapshot(found.workflow_hash, state)


@pytest.mark.inv("SNAP-4", "SNAP-8")
def test_a_reference_to_a_list_that_is_not_there_is_damage() -> None:
    store = Elsewhere()
    answer = Harness.over(store, DOCUMENT).start("test.items", context=parts("x", "y"))
    store.is_altered = True
    damaged = Harness.over(store, DOCUMENT)
    assert damaged.rehydrate(answer).code == "SESSION_NOT_HEALTHY"
    assert damaged.advance(answer).code == "SESSION_NOT_HEALTHY"
    store.is_altered = False
    assert "Do x." in Harness.over(store, DOCUMENT).rehydrate(answer)["pending"]["prompt"]


@pytest.mark.inv("SNAP-8")
@pytest.mark.parametrize("found", [None, "text", {}, [], ["only one"]])
def test_a_list_without_the_item_of_the_pass_is_missing(found: Json) -> None:
    workflow = compiled(loop("l", step("b"), forEach={"items": "things"}))
    stack = (LoopFrame(loop_id="l", iteration=1, items_at=SOME_NODE),)

    def value(node: NodeId, key: str) -> Json:
        assert (node, key) == (SOME_NODE, "things")
        return found

    with pytest.raises(ItemMissingError, match="item 2 of loop 'l'"):
        load_lists(workflow.graphs, stack, value)


@pytest.mark.inv("SNAP-2", "SNAP-8")
def test_a_loop_path_holds_loops_and_passes_alone() -> None:
    harness = Harness.in_memory(DOCUMENT)
    answer = harness.start("test.items", context=parts("x"))
    (stored,) = snapshots_of(harness, answer)
    state = json.loads(stored.to_bytes())["enginePayload"]["engineState"]
    assert state["pending"]["step"]["loopPath"] == [{"loopId": "each", "iteration": 0}]
    assert set(state["loopStack"][0]) == {"loopId", "iteration", "itemsAt"}
    assert parse_snapshot(stored.to_bytes()) == stored


NEEDING = {
    "when": {"when": {"var": "part.name", "equals": "x"}},
    "needs": {"needs": ["part.name"]},
    "set": {"set": [{"key": "last", "from": "part.name"}]},
    "computed": {"set": [{"key": "last", "value": "y", "when": {"var": "part.name", "equals": "x"}}]},
}
"""What the second step of a pass may read of its item."""


def over_parts(*body: dict[str, Any], **more: object) -> dict[str, object]:
    each = {"loopId": "each", "title": "Each part", "maxIterations": 4, "body": list(body), **more}
    inputs = [
        {"key": "parts", "description": "The parts.", "type": "list"},
        {"key": "last", "description": "The last name.", "type": "string"},
    ]
    return linear_workflow("test.lacking", {"forEach": {"items": "parts", "itemVar": "part"}, **each}, inputs=inputs)


def hold(harness: Harness, answer: ToolResult) -> None:
    """Hold a session against a replay of its decisions, and the lifecycle of its run against its snapshots."""
    session = harness.store.load(harness.session_of(answer))
    assert session is not None
    assert verify_session(harness.store, harness.ports.read.plans, session.session) == ()
    hold_lifecycle(harness.store, session, RunId(answer["run"]["runId"]))


@pytest.mark.inv("WALK-2", "WALK-4", "WALK-10")
@pytest.mark.parametrize("reads", NEEDING)
def test_an_item_that_lacks_a_member_is_corrected_within_its_pass(reads: str) -> None:
    harness = Harness.in_memory(over_parts(step("one"), step("two", **NEEDING[reads]), step("three")))
    answer = started = harness.start("test.lacking", context={"parts": [{"nom": "x"}]})
    if reads in ("set", "computed"):
        answer = harness.advance(answer, "The first one.")
    refused = harness.advance(answer, "Looked at it closely.")
    (blocker,) = refused["blockers"]
    assert blocker["pointer"] == {"kind": "context_key", "key": "parts"}
    assert "a list whose item 1 is without 'name'" in blocker["message"]
    hold(harness, started)
    corrected = harness.advance(refused, "Looked at it again.", context={"parts": [{"name": "x"}]})
    assert corrected["kind"] != "blocked"
    hold(harness, started)
    while not corrected["isComplete"]:
        corrected = harness.advance(corrected, f"Did {corrected['pending']['title']}.")
    hold(harness, started)


@pytest.mark.inv("WALK-10")
def test_a_list_that_is_corrected_in_the_report_that_needs_it_is_read_again() -> None:
    harness = Harness.in_memory(over_parts(step("one"), step("two", **NEEDING["when"]), step("three")))
    answer = started = harness.start("test.lacking", context={"parts": [{"nom": "x"}]})
    moved = harness.advance(answer, context={"parts": [{"name": "x"}]})
    assert moved["pending"]["stepId"] == "two"
    hold(harness, started)


@pytest.mark.inv("WALK-10")
def test_the_fork_after_the_last_attempt_reads_a_corrected_list() -> None:
    harness = Harness.in_memory(over_parts(step("one"), step("two", **NEEDING["when"]), step("three")))
    answer = harness.start("test.lacking", context={"parts": [{"nom": "x"}]})
    for number in range(10):
        answer = harness.advance(answer, f"Attempt {number} on the part.")
    assert answer.code == "ATTEMPT_LIMIT_REACHED"
    fork = answer.structure["details"]["fork"]["ackToken"]
    moved = harness.advance(fork, "Another one.", context={"parts": [{"name": "x"}]})
    assert moved["pending"]["stepId"] == "two"


@pytest.mark.inv("WALK-10")
def test_the_item_of_an_inner_loop_is_corrected_by_the_outer_list() -> None:
    files = {"items": "part.files", "itemVar": "file"}
    inner = loop("inner", step("read"), step("two", when={"var": "file.name", "equals": "x"}), forEach=files)
    inner |= {"iterationVar": "number", "indexVar": "at"}
    harness = Harness.in_memory(over_parts(step("one"), inner))
    answer = started = harness.start("test.lacking", context={"parts": [{"files": [{"name": "x"}, {}]}]})
    for name in ("one", "two", "three"):
        answer = harness.advance(answer, f"Looked at {name}.")
    refused = harness.advance(answer, "Looked at the last one.")
    (blocker,) = refused["blockers"]
    assert blocker["pointer"]["key"] == "parts"
    assert "whose item 1 has a list whose item 2 is without 'name' as 'files'" in blocker["message"]
    assert "all have 'files', a list whose items all have 'name', a value" in blocker["suggestedFix"]
    context = {"parts": [{"files": [{"name": "x"}, {"name": "x"}]}]}
    moved = harness.advance(refused, "Sent the files.", context=context)
    assert moved["pending"]["stepId"] == "two"
    hold(harness, started)


@pytest.mark.inv("WALK-10")
def test_a_list_that_has_no_item_for_the_pass_is_not_read_again() -> None:
    harness = Harness.in_memory(over_parts(step("one"), step("two", **NEEDING["when"])))
    answer = started = harness.start("test.lacking", context={"parts": [{"nom": "x"}]})
    refused = harness.advance(answer, context={"parts": []})
    assert refused["kind"] == "blocked"
    assert refused["blockers"][0]["pointer"]["key"] == "parts"
    hold(harness, started)


@pytest.mark.inv("WALK-10")
def test_a_pass_without_an_undecided_condition_keeps_its_item() -> None:
    harness = Harness.in_memory(over_parts(step("one"), step("two", **NEEDING["when"]), step("three")))
    answer = harness.start("test.lacking", context={"parts": [{"name": "x"}]})
    assert harness.advance(answer, context={"parts": [{"name": "y"}]})["pending"]["stepId"] == "two"


@pytest.mark.inv("MODE-2", "WALK-10")
def test_a_run_that_never_stops_resolves_the_gap_of_an_item_by_its_list() -> None:
    harness = Harness.in_memory(over_parts(step("one"), step("two", **NEEDING["when"]), step("three")))
    never = {"autonomy": "full_auto_never_stop"}
    answer = started = harness.start("test.lacking", context={"parts": [{"nom": "x"}]}, preferences=never)
    assert harness.advance(answer, "Looked.")["pending"]["stepId"] == "three"
    again = harness.advance(
        harness.rehydrate(answer)["fork"]["ackToken"], "Looked again.", context={"parts": [{"name": "x"}]}
    )
    assert again["pending"]["stepId"] == "two"
    hold(harness, started)


@pytest.mark.inv("WALK-10")
def test_a_value_of_an_item_that_does_not_fit_is_corrected_by_its_list() -> None:
    harness = Harness.in_memory(over_parts(step("one", **NEEDING["set"]), step("two")))
    answer = started = harness.start("test.lacking", context={"parts": [{"name": 5}]})
    refused = harness.advance(answer, "Looked.")
    assert refused["blockers"][0]["pointer"]["key"] == "parts"
    assert "has a number as 'name'" in refused["blockers"][0]["message"]
    moved = harness.advance(refused, "Looked again.", context={"parts": [{"name": "x"}]})
    assert moved["pending"]["stepId"] == "two"
    hold(harness, started)
