"""A snapshot that does not fit its plan is never executed."""

from typing import Any

import pytest

from interlock.define.document import WorkflowDocument
from interlock.define.front import parse_workflow
from interlock.kernel.ids import WorkflowHash
from interlock.plan.compile.compiler import Compiled, compile_workflow
from interlock.plan.compiled import CompiledWorkflow
from interlock.plan.fit import snapshot_fault
from interlock.record.snapshot import (
    Complete,
    KeySet,
    LoopFrame,
    PendingNone,
    PendingSome,
    PendingStep,
    Running,
    build_snapshot,
    loop_path_of,
)

HASH = WorkflowHash("sha256:" + "0" * 64)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def compiled(*steps: object, **more: object) -> CompiledWorkflow:
    value: dict[str, Any] = {"id": "test.abc", "name": "ABC", "steps": list(steps), **more}
    document = parse_workflow(value)
    assert isinstance(document, WorkflowDocument), document
    found = compile_workflow(document)
    assert isinstance(found, Compiled), found
    return found.workflow


def step(name: str, **more: object) -> dict[str, object]:
    return {"id": name, "title": name, "prompt": name, **more}


def loop(name: str, *body: object) -> dict[str, object]:
    return {"loopId": name, "title": name, "maxIterations": 3, "for": {"count": 2}, "body": list(body)}


LINEAR = compiled(step("a"), step("b"), step("c"))
CHOICE = compiled(
    step("a"),
    step("b", when={"var": "mode", "equals": "fast"}),
    step("c"),
    inputs=[{"key": "mode", "description": "How.", "type": "string"}],
)
LOOPS = compiled(step("a"), loop("outer", step("b"), loop("inner", step("c"), step("d"))), step("e"))


def frames(*passes: tuple[str, int]) -> tuple[LoopFrame, ...]:
    return tuple(LoopFrame(loop_id=name, iteration=iteration) for name, iteration in passes)


def keys(*names: str) -> KeySet:
    return KeySet(kind="set", values=names)


def running(
    pending: str,
    completed: KeySet,
    skipped: KeySet | None = None,
    loops: tuple[LoopFrame, ...] = (),
    taken: KeySet | None = None,
) -> Running:
    pending_step = PendingStep(step_id=pending, loop_path=loop_path_of(loops))
    return Running(
        completed=completed,
        skipped=skipped or keys(),
        edges_taken=taken or keys(),
        loop_stack=loops,
        pending=PendingSome(kind="some", step=pending_step),
    )


def complete(*completed: str, skipped: KeySet | None = None, taken: KeySet | None = None) -> Complete:
    return Complete(
        completed=keys(*completed),
        skipped=skipped or keys(),
        edges_taken=taken or keys(),
        pending=PendingNone(kind="none"),
    )


def fault(state: Running | Complete, workflow: CompiledWorkflow = LINEAR) -> str | None:
    return snapshot_fault(build_snapshot(HASH, state), workflow)


@pytest.mark.inv("SNAP-4")
@pytest.mark.parametrize(
    "state", [running("a", keys()), running("b", keys("a")), running("c", keys("a", "b")), complete("a", "b", "c")]
)
def test_a_state_of_the_plan_fits(state: Running | Complete) -> None:
    assert fault(state) is None


@pytest.mark.inv("SNAP-4")
@pytest.mark.parametrize(
    ("state", "said"),
    [
        (running("z", keys()), "'z'"),
        (running("b", keys("z")), "'z'"),
        (running("b", keys("a"), keys("z")), "'z'"),
        (running("b", keys("a"), taken=keys("a>z")), "'a>z'"),
        (running("b", keys("a"), taken=keys("a>b")), "'a>b'"),
        (running("a", keys(), loops=(LoopFrame(loop_id="l", iteration=0),)), "'l'"),
        (complete("a", "b"), "neither"),
        (complete("a", "b", "z"), "'z'"),
    ],
)
def test_a_state_that_the_plan_cannot_be_in_is_named(state: Running | Complete, said: str) -> None:
    assert said in (fault(state) or "")


@pytest.mark.inv("SNAP-4")
@pytest.mark.parametrize(
    "state",
    [
        running("c", keys()),
        running("a", keys("b")),
        running("b", keys("a", "c")),
        running("c", keys("a"), keys("b")),
        complete("a", "c", skipped=keys("b")),
    ],
)
def test_a_linear_plan_has_done_exactly_what_comes_before_its_pending_step(state: Running | Complete) -> None:
    """With plain steps alone there is one lawful past for each pending step; any other is damage."""
    assert fault(state) is not None


BEFORE, CHOSEN = ("a", "b--when"), "b--when>b"
PASSED = "b--when>c"


@pytest.mark.inv("SNAP-4")
@pytest.mark.parametrize(
    "state",
    [
        running("a", keys()),
        running("b", keys(*BEFORE), taken=keys(CHOSEN)),
        running("c", keys("a", "b", "b--when"), taken=keys(CHOSEN)),
        running("c", keys(*BEFORE), keys("b"), taken=keys(PASSED)),
        complete("a", "b--when", "c", skipped=keys("b"), taken=keys(PASSED)),
    ],
)
def test_a_decision_with_the_edge_it_took_fits_and_what_it_passed_over_is_skipped(state: Running | Complete) -> None:
    assert fault(state, CHOICE) is None


@pytest.mark.inv("SNAP-4")
@pytest.mark.parametrize(
    "state",
    [
        running("b", keys(*BEFORE)),
        running("b", keys(*BEFORE), taken=keys(PASSED)),
        running("b", keys("a"), taken=keys(CHOSEN)),
        running("c", keys(*BEFORE), taken=keys(PASSED)),
        running("c", keys(*BEFORE), keys("b"), taken=keys(CHOSEN)),
        running("c", keys(*BEFORE), keys("b")),
        complete("a", "b--when", "c", skipped=keys("b")),
        complete("a", "b--when", skipped=keys("b"), taken=keys(PASSED)),
    ],
)
def test_a_past_that_no_decision_led_to_is_damage(state: Running | Complete) -> None:
    assert fault(state, CHOICE) is not None


@pytest.mark.inv("SNAP-4")
@pytest.mark.parametrize(
    "state",
    [
        running("b", keys("a"), loops=frames(("outer", 0))),
        running("b", keys("a"), loops=frames(("outer", 2))),
        running("c", keys("a", "outer@1::b"), loops=frames(("outer", 1), ("inner", 0))),
        running("d", keys("a", "outer@1/inner@2::c", "outer@1::b"), loops=frames(("outer", 1), ("inner", 2))),
        running("e", keys("a", "outer")),
        complete("a", "e", "outer"),
    ],
)
def test_a_step_in_the_passes_of_its_loops_fits(state: Running | Complete) -> None:
    assert fault(state, LOOPS) is None


@pytest.mark.inv("SNAP-4")
@pytest.mark.parametrize(
    ("state", "said"),
    [
        (running("b", keys("a"), loops=frames(("outer", 3))), "beyond its bound"),
        (running("c", keys("a"), loops=frames(("inner", 0))), "'inner'"),
        (running("b", keys("a")), "not the ones before 'b'"),
        (running("b", keys(), loops=frames(("outer", 0))), "'outer' is not the next node"),
        (running("b", keys("a", "outer"), loops=frames(("outer", 0))), "'outer' is not the next node"),
        (running("c", keys("a"), loops=frames(("outer", 0), ("inner", 0))), "'inner' is not the next node"),
        (running("b", keys("a", "outer@0::b"), loops=frames(("outer", 1))), "'outer@0::b'"),
        (running("e", keys("a", "outer", "outer@0::b")), "'outer@0::b'"),
        (running("b", keys("a", "b"), loops=frames(("outer", 0))), "'b'"),
        (running("e", keys("a", "outer@1::b"), loops=frames(("outer", 1))), "'e'"),
        (complete("a", "e"), "a node before it is not"),
    ],
)
def test_a_step_outside_its_loops_or_with_the_past_of_another_pass_is_damage(
    state: Running | Complete, said: str
) -> None:
    assert said in (fault(state, LOOPS) or "")
