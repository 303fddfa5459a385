"""The events of a run's lifecycle: a closed, versioned set, each bounded and without free text (LIFE-1, LIFE-2)."""

from typing import Annotated, Literal

from interlock.kernel.budgets.operations import (
    LIFECYCLE_CODE_CHARS_MAX,
    LIFECYCLE_KEY_CHARS_MAX,
    LIFECYCLE_REF_CHARS_MAX,
    LIFECYCLE_REFS_MAX,
)
from interlock.kernel.shape import limits
from interlock.record.base import DelimiterSafe, IndexField, Record, RunIdField, SessionIdField, WorkflowHashField

LifecycleKind = Literal[
    "workflow.run.created",
    "workflow.node.scheduled",
    "workflow.node.started",
    "workflow.node.completed",
    "workflow.node.failed",
    "workflow.node.retried",
    "workflow.edge.traversed",
    "workflow.checkpoint.saved",
    "workflow.run.completed",
    "workflow.run.failed",
    "workflow.run.cancelled",
]
RefKind = Literal["event", "log_node", "snapshot", "capture", "output", "artifact", "gate_answer"]

_LOOP = r"[a-z0-9_-]+@[0-9]+"
InstanceKey = Annotated[
    str, *limits(pattern=rf"^({_LOOP}(/{_LOOP})*::)?[a-z0-9_-]+$", max_length=LIFECYCLE_KEY_CHARS_MAX)
]
"""A node of the plan in its loop passes, as in a snapshot: `outer@0/inner@2::step`, or the bare id."""
EdgeKey = Annotated[str, *limits(pattern=r"^[a-z0-9_>:.-]+$", max_length=LIFECYCLE_KEY_CHARS_MAX)]
Code = Annotated[str, *limits(pattern=r"^[A-Za-z][A-Za-z0-9_]*$", max_length=LIFECYCLE_CODE_CHARS_MAX)]


class Ref(Record):
    """Refers to a fact of the log; the fact itself is not copied (LIFE-4).

    An `event` is named by its index in the session, everything else by its id or digest.
    """

    kind: RefKind
    ref: Annotated[str, *limits(pattern=r"^[a-z0-9_:]+$", max_length=LIFECYCLE_REF_CHARS_MAX)]


class LifecycleEvent(Record):
    """One event. `seq` counts from 0 in one view; `attempt` counts from 1 for a step instance.

    `instance` is the node of the plan in its loop passes. `code` is why an attempt failed or a run ended. A step
    that is done because its time was over has the code `expired`.
    """

    v: Literal[1]
    seq: IndexField
    kind: LifecycleKind
    session: SessionIdField
    run: RunIdField
    node: DelimiterSafe | None = None
    instance: InstanceKey | None = None
    attempt: Annotated[int, *limits(ge=1)] | None = None
    edge: EdgeKey | None = None
    code: Code | None = None
    workflow_hash: WorkflowHashField | None = None
    refs: Annotated[tuple[Ref, ...], *limits(max_length=LIFECYCLE_REFS_MAX)] = ()
    refs_left_out: IndexField | None = None
