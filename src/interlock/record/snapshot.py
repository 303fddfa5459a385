"""The execution snapshot: the minimum that is needed to continue from a node (SNAP-5).

Its names and keys are ASCII and its numbers whole, so its canonical bytes are written in one pass (ID-3).
"""

import itertools
import operator
from bisect import bisect_left
from collections.abc import Iterable
from typing import Literal, TypeAlias

from interlock.kernel.canonical import Json
from interlock.kernel.shape import Reader
from interlock.record.base import (
    DelimiterSafe,
    IndexField,
    NodeIdField,
    OfKind,
    Record,
    WorkflowHashField,
    read_record,
)


class LoopPosition(Record):
    """A pass of a loop. Passes count from 0."""

    iteration: IndexField
    loop_id: DelimiterSafe


class LoopFrame(Record):
    """A running loop. `items_at` is the node whose context has the list of a loop over a list, as this pass reads it.

    The list itself is not stored: the log has it (SNAP-8).
    """

    items_at: NodeIdField | None = None
    iteration: IndexField
    loop_id: DelimiterSafe


class ListFrame(LoopFrame):
    """A running loop over a list, with the list. It is stored as a `LoopFrame`."""

    items: list[Json]

    def stored(self) -> LoopFrame:
        """Return the frame without the list."""
        return LoopFrame(items_at=self.items_at, iteration=self.iteration, loop_id=self.loop_id)


def step_instance_key(step_id: str, loop_path: tuple[LoopPosition | LoopFrame, ...] = ()) -> str:
    """Return the canonical key of a step in a loop pass: `outer@0/inner@2::step`, or the bare step id."""
    path = "/".join(f"{frame.loop_id}@{frame.iteration}" for frame in loop_path)
    return f"{path}::{step_id}" if path else step_id


def loop_path_of(stack: Iterable[LoopFrame]) -> tuple[LoopPosition, ...]:
    """Return the passes of running loops, without where their lists are."""
    return tuple(LoopPosition(loop_id=frame.loop_id, iteration=frame.iteration) for frame in stack)


class KeySet(Record):
    """A set of step instance keys: sorted, each once."""

    kind: Literal["set"]
    values: tuple[str, ...]

    def __contains__(self, key: str) -> bool:
        """Say whether a key is in the set."""
        at = bisect_left(self.values, key)
        return at < len(self.values) and self.values[at] == key

    def check_read(self) -> None:
        """Check that the keys are in order."""
        if not all(map(operator.lt, self.values, itertools.islice(self.values, 1, None))):
            raise ValueError("set values are not in ascending order")


class PendingStep(Record):
    """The step to perform next, and the loop passes that it is in."""

    loop_path: tuple[LoopPosition, ...]
    step_id: DelimiterSafe


class PendingSome(Record):
    """There is a step to perform."""

    kind: Literal["some"]
    step: PendingStep


class PendingNone(Record):
    """There is nothing left to perform."""

    kind: Literal["none"]


class Running(OfKind, tag="running"):
    """A step is pending. `edges_taken` lists the edges that decisions chose; the others follow from `completed`."""

    completed: KeySet
    edges_taken: KeySet
    loop_stack: tuple[LoopFrame, ...]
    pending: PendingSome
    skipped: KeySet

    def __post_init__(self) -> None:
        """Check that the pending step is in the running loops, and not done."""
        step = self.pending.step
        if step.loop_path != loop_path_of(self.loop_stack):
            raise ValueError("the pending step's loop path is not the loop stack")
        loops = [frame.loop_id for frame in self.loop_stack]
        if len(set(loops)) != len(loops):
            raise ValueError("a loop is in the loop stack twice")
        key = step_instance_key(step.step_id, step.loop_path)
        if key in self.completed or key in self.skipped:
            raise ValueError("the pending step is already completed or skipped")


class Complete(OfKind, tag="complete"):
    """Every step is completed or skipped."""

    completed: KeySet
    edges_taken: KeySet
    pending: PendingNone
    skipped: KeySet


EngineState: TypeAlias = Running | Complete


class EnginePayload(Record):
    """The engine's state, with its own version."""

    engine_state: EngineState
    v: Literal[1]

    def __post_init__(self) -> None:
        """Check that no step is both completed and skipped."""
        if any(key in self.engine_state.completed for key in self.engine_state.skipped.values):
            raise ValueError("a step is both completed and skipped")


class ExecutionSnapshot(Record):
    """The state of a node and the hash of its workflow. Its address is the digest of its canonical bytes."""

    engine_payload: EnginePayload
    kind: Literal["execution_snapshot"]
    v: Literal[1]
    workflow_hash: WorkflowHashField

    def to_bytes(self) -> bytes:
        """Return the canonical bytes of the snapshot in one pass: in a long plan, it lists hundreds of steps."""
        return Record.to_bytes(self.stored())

    def to_json(self) -> dict[str, Json]:
        """Return the JSON value that is stored."""
        return Record.to_json(self.stored())

    def stored(self) -> "ExecutionSnapshot":
        """Return the snapshot without the lists of loops."""
        stack = self.state.loop_stack if isinstance(self.state, Running) else ()
        if not any(isinstance(frame, ListFrame) for frame in stack):
            return self
        frames = tuple(frame.stored() if isinstance(frame, ListFrame) else frame for frame in stack)
        payload = self.engine_payload.changed(engine_state=self.state.changed(loop_stack=frames))
        return self.changed(engine_payload=payload)

    def check_read(self) -> None:
        """Check that the sets of steps are in order."""
        for keys in (self.state.completed, self.state.edges_taken, self.state.skipped):
            keys.check_read()

    @property
    def state(self) -> Running | Complete:
        """The engine's state."""
        return self.engine_payload.engine_state


_SNAPSHOT: Reader[ExecutionSnapshot] = Reader(ExecutionSnapshot)


def build_snapshot(workflow_hash: WorkflowHashField, state: Running | Complete) -> ExecutionSnapshot:
    """Build the snapshot of a workflow's state. That the state is possible is checked, the order of its sets is not."""
    payload = EnginePayload(v=1, engine_state=state)
    return ExecutionSnapshot(v=1, kind="execution_snapshot", workflow_hash=workflow_hash, engine_payload=payload)


def parse_snapshot(data: bytes) -> ExecutionSnapshot:
    """Parse a stored snapshot.

    Raises:
        UnknownVersionError: A newer Interlock wrote it.
        MalformedRecordError: It is not a snapshot, or its state is not possible.
    """
    return read_record("snapshot", _SNAPSHOT, data)
