"""Loops over lists: a snapshot refers to the list, and the log has it once (SNAP-8)."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.flow import SOME_NODE, compiled, loop, step

from interlock.engine.walk.items import ItemMissingError, load_lists
from interlock.kernel.canonical import Json
from interlock.kernel.ids import NodeId, SnapshotRef
from interlock.record.snapshot import ExecutionSnapshot, LoopFrame, Running, build_snapshot, parse_snapshot
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
        state = found.state.model_copy(update={"loop_stack": (frame.model_copy(update={"items_at": SOME_NODE}),)})
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
