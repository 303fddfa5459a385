from collections.abc import Mapping
from typing import cast

import pytest
from tests.support.record import WORKFLOW_HASH, complete, key_set, numbered, running

from interlock.kernel.canonical import Json, canonical_bytes
from interlock.kernel.errors import InterlockError
from interlock.kernel.ids import NodeId
from interlock.kernel.shape import ShapeError
from interlock.record.errors import MalformedRecordError, UnknownVersionError
from interlock.record.snapshot import (
    Complete,
    KeySet,
    ListFrame,
    LoopFrame,
    PendingNone,
    PendingSome,
    PendingStep,
    Running,
    build_snapshot,
    loop_path_of,
    parse_snapshot,
    step_instance_key,
)

Members = dict[str, Json]


def frames(*loops: tuple[str, int]) -> tuple[LoopFrame, ...]:
    return tuple(LoopFrame(loop_id=loop, iteration=iteration) for loop, iteration in loops)


def frame_json(loop: str, iteration: int) -> Json:
    return {"loopId": loop, "iteration": iteration}


def running_json() -> Members:
    return {
        "kind": "running",
        "completed": {"kind": "set", "values": ["a", "outer@0/inner@2::c"]},
        "skipped": {"kind": "set", "values": ["b"]},
        "edgesTaken": {"kind": "set", "values": ["a>b", "outer@0/inner@3::c--when>d"]},
        "loopStack": [frame_json("outer", 0), frame_json("inner", 3)],
        "pending": {
            "kind": "some",
            "step": {"stepId": "c", "loopPath": [frame_json("outer", 0), frame_json("inner", 3)]},
        },
    }


def complete_json() -> Members:
    return {
        "kind": "complete",
        "completed": {"kind": "set", "values": ["a", "b"]},
        "skipped": {"kind": "set", "values": []},
        "edgesTaken": {"kind": "set", "values": ["a--when>b"]},
        "pending": {"kind": "none"},
    }


def snapshot_json(state: Mapping[str, Json]) -> Members:
    return {
        "v": 1,
        "kind": "execution_snapshot",
        "workflowHash": WORKFLOW_HASH,
        "enginePayload": {"v": 1, "engineState": dict(state)},
    }


def refusal_of(snapshot: Json | bytes) -> type[InterlockError]:
    with pytest.raises(InterlockError) as refused:
        parse_snapshot(snapshot if isinstance(snapshot, bytes) else canonical_bytes(snapshot))
    return type(refused.value)


@pytest.mark.parametrize("state", [running_json(), complete_json()])
def test_a_snapshot_read_and_written_again_is_the_same_bytes(state: Members) -> None:
    stored = canonical_bytes(snapshot_json(state))
    snapshot = parse_snapshot(stored)
    assert snapshot.to_bytes() == stored
    assert snapshot == build_snapshot(WORKFLOW_HASH, snapshot.state)


def test_a_snapshot_gives_the_state_that_it_was_made_of() -> None:
    for state in (running("b", "a", skipped=("c",), taken=("a>b",)), complete("a", "b")):
        assert build_snapshot(WORKFLOW_HASH, state).state == state
        assert parse_snapshot(build_snapshot(WORKFLOW_HASH, state).to_bytes()).state == state


@pytest.mark.inv("ID-3")
def test_a_snapshot_is_written_as_canonical_json() -> None:
    items = ListFrame(loop_id="each", iteration=2, items_at=NodeId(numbered("node", 1)), items=["a", 1.5, {"b": None}])
    stack = (LoopFrame(loop_id="outer", iteration=0), items)
    listed = Running(
        completed=key_set("a", "outer@0/each@1::c"),
        skipped=key_set("b"),
        edges_taken=key_set("a>b"),
        loop_stack=stack,
        pending=PendingSome(kind="some", step=PendingStep(step_id="c", loop_path=loop_path_of(stack))),
    )
    for state in (listed, running("c", "a", "b", skipped=("d",), taken=("a--when>b",)), complete("a")):
        snapshot = build_snapshot(WORKFLOW_HASH, state)
        assert snapshot.to_bytes() == canonical_bytes(snapshot.to_json())
        assert parse_snapshot(snapshot.to_bytes()).to_bytes() == snapshot.to_bytes()


@pytest.mark.inv("SNAP-3")
def test_a_step_instance_key_names_the_loop_passes_from_the_outermost_on() -> None:
    assert step_instance_key("triage") == "triage"
    assert step_instance_key("triage", frames(("outer", 0))) == "outer@0::triage"
    assert step_instance_key("triage", frames(("outer", 0), ("inner", 2))) == "outer@0/inner@2::triage"


@pytest.mark.inv("SNAP-3")
def test_no_two_step_instances_share_a_key() -> None:
    """Every step of every path of at most two loops, over ids that differ by the delimiters' neighbours."""
    ids = ["a", "b", "a-0", "a_0", "0"]
    single = [frames((loop, iteration)) for loop in ids for iteration in (0, 1, 10)]
    paths = [(), *single, *((*outer, *inner) for outer in single for inner in single)]
    keys = [step_instance_key(step, path) for path in paths for step in ids]
    assert len(set(keys)) == len(keys) == (1 + 15 + 225) * 5


@pytest.mark.inv("SNAP-3")
@pytest.mark.parametrize("char", ["@", "/", ":", " ", "A", "é", ".", "\n", ""])
def test_a_step_or_loop_id_has_no_character_that_a_key_uses(char: str) -> None:
    for text in [f"a{char}", f"{char}a"] if char else [""]:
        with pytest.raises(ShapeError):
            PendingStep.of_json({"stepId": text, "loopPath": ()})
        with pytest.raises(ShapeError):
            LoopFrame.of_json({"loopId": text, "iteration": 0})


def test_a_loop_pass_is_counted_from_zero() -> None:
    assert LoopFrame(loop_id="a", iteration=0).iteration == 0
    with pytest.raises(ShapeError):
        LoopFrame.of_json({"loopId": "a", "iteration": -1})


@pytest.mark.inv("SNAP-3")
@pytest.mark.parametrize("values", [["b", "a"], ["a", "a"], ["a", "c", "b"], ["a", "B"]])
def test_a_set_that_is_not_ascending_or_repeats_a_key_is_refused(values: list[str]) -> None:
    with pytest.raises(ShapeError, match="ascending"):
        KeySet.of_json({"kind": "set", "values": values})
    for name in ("completed", "skipped", "edgesTaken"):
        state = running_json() | {name: {"kind": "set", "values": cast("Json", values)}}
        assert refusal_of(snapshot_json(state)) is MalformedRecordError


@pytest.mark.inv("SNAP-3")
def test_a_state_without_the_edges_that_decisions_took_is_no_state() -> None:
    for state in (running_json(), complete_json()):
        del state["edgesTaken"]
        assert refusal_of(snapshot_json(state)) is MalformedRecordError


@pytest.mark.inv("SNAP-2")
def test_each_impossible_running_state_is_refused_when_made() -> None:
    def made(
        step: str, *, completed: tuple[str, ...] = (), skipped: tuple[str, ...] = (), stack: tuple[LoopFrame, ...] = ()
    ) -> None:
        path = loop_path_of(frames(("outer", 1)))
        Running(
            completed=key_set(*completed),
            skipped=key_set(*skipped),
            edges_taken=key_set(),
            loop_stack=stack,
            pending=PendingSome(kind="some", step=PendingStep(step_id=step, loop_path=path)),
        )

    stack = frames(("outer", 1))
    made("a", completed=("a", "outer@0::a"), stack=stack)
    with pytest.raises(ValueError, match="already completed or skipped"):
        made("a", completed=("outer@1::a",), stack=stack)
    with pytest.raises(ValueError, match="already completed or skipped"):
        made("a", skipped=("outer@1::a",), stack=stack)
    for other in ((), frames(("outer", 0)), frames(("inner", 1)), frames(("outer", 1), ("inner", 0))):
        with pytest.raises(ValueError, match="not the loop stack"):
            made("a", stack=other)


@pytest.mark.inv("SNAP-2")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("pending", {"kind": "none"}),
        ("pending", None),
        ("pending", {"kind": "some"}),
        ("pending", {"kind": "some", "step": None}),
        ("pending", {"kind": "some", "step": {"stepId": "c", "loopPath": []}}),
        ("pending", {"kind": "some", "step": {"stepId": "c", "loopPath": [frame_json("outer", 0)]}}),
        ("loopStack", []),
        ("loopStack", [frame_json("inner", 3), frame_json("outer", 0)]),
        ("loopStack", [frame_json("outer", 0), frame_json("inner", 2)]),
        ("completed", {"kind": "set", "values": ["outer@0/inner@3::c"]}),
        ("skipped", {"kind": "set", "values": ["outer@0/inner@3::c"]}),
        ("skipped", {"kind": "set", "values": ["a"]}),
        ("completed", ["a"]),
        ("completed", {"kind": "set", "values": [1]}),
        ("completed", {"kind": "set", "values": "ab"}),
        ("edgesTaken", None),
        ("edgesTaken", ["a>b"]),
        ("edgesTaken", {"kind": "set", "values": [1]}),
        ("edgesTaken", {"kind": "set", "values": ["b>c", "a>b"]}),
    ],
)
def test_each_impossible_running_state_is_malformed_when_read(name: str, value: Json) -> None:
    assert parse_snapshot(canonical_bytes(snapshot_json(running_json())))
    assert refusal_of(snapshot_json(running_json() | {name: value})) is MalformedRecordError


@pytest.mark.inv("SNAP-2")
def test_a_loop_that_is_in_the_stack_twice_is_malformed() -> None:
    twice: list[Json] = [frame_json("outer", 0), frame_json("outer", 1)]
    pending: Json = {"kind": "some", "step": {"stepId": "c", "loopPath": twice}}
    assert refusal_of(snapshot_json(running_json() | {"loopStack": twice, "pending": pending})) is MalformedRecordError


@pytest.mark.inv("SNAP-2")
def test_a_complete_state_has_no_pending_step_no_loop_and_no_step_both_completed_and_skipped() -> None:
    some = running_json()["pending"]
    assert issubclass(refusal_of(snapshot_json(complete_json() | {"pending": some})), InterlockError)
    assert issubclass(refusal_of(snapshot_json(complete_json() | {"loopStack": []})), InterlockError)
    both: Json = {"kind": "set", "values": ["b"]}
    assert refusal_of(snapshot_json(complete_json() | {"skipped": both})) is MalformedRecordError
    none = PendingNone(kind="none")
    doubled = Complete(completed=key_set("b"), skipped=key_set("b"), edges_taken=key_set(), pending=none)
    with pytest.raises(ValueError, match="both completed and skipped"):
        build_snapshot(WORKFLOW_HASH, doubled)


@pytest.mark.inv("EVT-2")
@pytest.mark.parametrize(
    "newer",
    [
        {**snapshot_json(complete_json()), "v": 2},
        {"v": 2, "kind": "execution_snapshot", "state": {}},
        {**snapshot_json(complete_json()), "enginePayload": {"v": 2, "state": []}},
        {**snapshot_json(complete_json()), "notes": "x"},
        {**snapshot_json(complete_json()), "kind": "execution_snapshot_two"},
        snapshot_json({**complete_json(), "kind": "suspended", "until": 5}),
        snapshot_json({**running_json(), "waitingFor": "x"}),
    ],
)
def test_a_snapshot_of_an_unknown_version_field_or_kind_is_newer_and_not_damaged(newer: Members) -> None:
    assert refusal_of(newer) is UnknownVersionError


@pytest.mark.inv("SNAP-5")
@pytest.mark.parametrize("name", ["context", "notes", "recap", "output", "preferences"])
def test_a_snapshot_has_no_place_for_anything_but_execution_state(name: str) -> None:
    assert issubclass(refusal_of(snapshot_json(running_json() | {name: "x"})), InterlockError)


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"null", b"[]", b"{}", b"nonsense", b"\xff", b"[" * 100_000),
        canonical_bytes(snapshot_json(complete_json()))[:-1],
        canonical_bytes({**snapshot_json(complete_json()), "workflowHash": "sha256:x"}),
        canonical_bytes({**snapshot_json(complete_json()), "v": None}),
        canonical_bytes({**snapshot_json(complete_json()), "v": "1"}),
    ],
    ids=lambda data: f"{data[:12]!r}-{len(data)}",
)
def test_bytes_that_are_no_snapshot_are_malformed(data: bytes) -> None:
    assert refusal_of(data) is MalformedRecordError
