"""A snapshot that does not fit its plan is never executed."""

import pytest

from interlock.define.document import WorkflowDocument, parse_workflow
from interlock.kernel.ids import WorkflowHash
from interlock.plan.compiled import CompiledWorkflow
from interlock.plan.compiler import compile_workflow
from interlock.plan.fit import snapshot_fault
from interlock.record.snapshot import (
    Complete,
    KeySet,
    LoopFrame,
    PendingNone,
    PendingSome,
    PendingStep,
    Running,
    snapshot_of,
)

HASH = WorkflowHash("sha256:" + "0" * 64)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def workflow() -> CompiledWorkflow:
    steps = [{"id": name, "title": name, "prompt": name} for name in ("a", "b", "c")]
    document = parse_workflow({"id": "test.abc", "name": "ABC", "steps": steps})  # pyright: ignore[reportArgumentType]
    assert isinstance(document, WorkflowDocument)
    found = compile_workflow(document)
    assert isinstance(found, CompiledWorkflow)
    return found


def keys(*names: str) -> KeySet:
    return KeySet(kind="set", values=names)


def running(
    pending: str, completed: KeySet, skipped: KeySet | None = None, loops: tuple[LoopFrame, ...] = ()
) -> Running:
    step = PendingStep(step_id=pending, loop_path=loops)
    return Running(
        kind="running",
        completed=completed,
        skipped=skipped or keys(),
        loop_stack=loops,
        pending=PendingSome(kind="some", step=step),
    )


def complete(*completed: str, skipped: KeySet | None = None) -> Complete:
    return Complete(
        kind="complete", completed=keys(*completed), skipped=skipped or keys(), pending=PendingNone(kind="none")
    )


@pytest.mark.inv("SNAP-4")
@pytest.mark.parametrize(
    "state",
    [
        running("a", keys()),
        running("b", keys("a")),
        running("c", keys("a"), keys("b")),
        complete("a", "b", "c"),
        complete("a", "c", skipped=keys("b")),
    ],
)
def test_a_state_of_the_plan_fits(state: Running | Complete) -> None:
    assert snapshot_fault(snapshot_of(HASH, state), workflow()) is None


@pytest.mark.inv("SNAP-4")
@pytest.mark.parametrize(
    ("state", "said"),
    [
        (running("z", keys()), "'z'"),
        (running("b", keys("z")), "'z'"),
        (running("b", keys("a"), keys("z")), "'z'"),
        (running("a", keys(), loops=(LoopFrame(loop_id="l", iteration=0),)), "'l'"),
        (complete("a", "b"), "neither"),
        (complete("a", "b", "z"), "'z'"),
    ],
)
def test_a_state_that_the_plan_cannot_be_in_is_named(state: Running | Complete, said: str) -> None:
    assert said in (snapshot_fault(snapshot_of(HASH, state), workflow()) or "")


@pytest.mark.inv("SNAP-4")
@pytest.mark.parametrize("state", [running("c", keys()), running("a", keys("b")), running("b", keys("a", "c"))])
def test_a_linear_plan_has_done_exactly_what_comes_before_its_pending_step(state: Running) -> None:
    """With plain steps alone there is one lawful past for each pending step; any other is damage."""
    assert snapshot_fault(snapshot_of(HASH, state), workflow()) is not None
