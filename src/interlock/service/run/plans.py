"""A cache of pinned workflows, snapshots and verdicts, which are verified when they are loaded."""

import json
from collections.abc import Callable, Iterable
from itertools import takewhile
from typing import TYPE_CHECKING

from interlock.kernel.budgets import (
    PENDING_STEPS_KEPT_MAX,
    RECAP_BYTES_MAX,
    RECAPS_KEPT_MAX,
    SNAPSHOTS_KEPT_MAX,
    VERDICTS_KEPT_MAX,
    WORKFLOWS_KEPT_MAX,
)
from interlock.kernel.ids import Digest, NodeId, SnapshotRef, WorkflowHash
from interlock.record.errors import MalformedRecordError
from interlock.service.run.recent import Recent
from interlock.store.ports.errors import ContentDamagedError
from interlock.store.ports.reader import SessionReader
from interlock.views.verdicts import Verdict, verdict_of

if TYPE_CHECKING:
    from interlock.plan.compiled import CompiledWorkflow
    from interlock.record.append_plan import AppendPlan
    from interlock.record.snapshot import ExecutionSnapshot, PendingStep
    from interlock.views.recap import RecapPart
    from interlock.views.session import Node


class Plans:
    """Loads pinned workflows, snapshots and verdicts, and keeps the most recent ones; they are immutable."""

    def __init__(self, reader: SessionReader) -> None:
        self.reader = reader
        """Reads the content that is not kept."""
        self._workflows: Recent[WorkflowHash, CompiledWorkflow] = Recent(WORKFLOWS_KEPT_MAX)
        self._snapshots: Recent[tuple[SnapshotRef, WorkflowHash], ExecutionSnapshot] = Recent(SNAPSHOTS_KEPT_MAX)
        self._pending: Recent[SnapshotRef, tuple[PendingStep | None]] = Recent(PENDING_STEPS_KEPT_MAX)
        self._verdicts: Recent[Digest, tuple[Verdict | None]] = Recent(VERDICTS_KEPT_MAX)
        self._recaps: Recent[NodeId, tuple[Node, tuple[RecapPart, ...]]] = Recent(RECAPS_KEPT_MAX)

    def workflow(self, workflow_hash: WorkflowHash) -> "CompiledWorkflow":
        """Return a pinned workflow.

        Raises:
            ContentDamagedError: It is missing or damaged.
        """
        return self._workflows.get(workflow_hash, lambda: self._load_workflow(workflow_hash))

    def snapshot(self, ref: SnapshotRef, workflow_hash: WorkflowHash) -> "ExecutionSnapshot":
        """Return a snapshot that fits the plan it pins.

        Raises:
            ContentDamagedError: It is missing, damaged, of another workflow, or impossible in its plan.
        """
        return self._snapshots.get((ref, workflow_hash), lambda: self._load_snapshot(ref, workflow_hash))

    def pending(self, ref: SnapshotRef, workflow_hash: WorkflowHash) -> "PendingStep | None":
        """Return the step that is pending in a snapshot; None if the run is complete there.

        Raises:
            ContentDamagedError: See `snapshot`.
        """
        return self._pending.get(ref, lambda: (_pending_in(self.snapshot(ref, workflow_hash)),))[0]

    def verdict(self, digest: Digest) -> Verdict | None:
        """Return the verdict that a stored artifact states; None if it states none or is not JSON.

        Raises:
            ContentDamagedError: It is missing or damaged.
        """
        return self._verdicts.get(digest, lambda: (self._load_verdict(digest),))[0]

    def recap_of(self, node: "Node") -> "tuple[RecapPart, ...]":
        """Return the first parts of the recap of a node; none if they are not kept.

        A node with the same id in another copy of the session is another object, and may have other notes above it.
        """
        of, parts = self._recaps.find(node.node) or (None, ())
        return parts if of is node else ()

    def keep_recap(self, node: "Node", parts: "Iterable[RecapPart | None]") -> None:
        """Keep the parts of the recap of a node, up to the first one that is long or may change."""
        kept = takewhile(lambda part: part is not None and part.is_fixed and len(part.text) <= RECAP_BYTES_MAX, parts)
        self._recaps.put(node.node, (node, tuple(filter(None, kept))))

    def keep(self, ref: SnapshotRef, snapshot: "ExecutionSnapshot") -> None:
        """Keep a snapshot that this process is about to append, so that it need not be read back."""
        self._snapshots.put((ref, snapshot.workflow_hash), snapshot)

    def keep_start(self, plan: "AppendPlan", parsed: Callable[[], "CompiledWorkflow"]) -> None:
        """Keep what a start pins, so that its answer reads nothing back from the disk.

        `parsed` returns the workflow that the pinned bytes hold. It is called if the workflow is not kept already.
        """
        from interlock.record.snapshot import parse_snapshot  # noqa: PLC0415 — a list of cached summaries needs none

        assert plan.workflow is not None, "a start pins its workflow"
        self._workflows.get(plan.workflow[0], parsed)
        for ref, snapshot in plan.snapshots:
            self.keep(ref, parse_snapshot(snapshot))

    def _load_workflow(self, workflow_hash: WorkflowHash) -> "CompiledWorkflow":
        from interlock.plan.compiled import parse_compiled  # noqa: PLC0415 — see `keep_start`

        data = self.reader.workflow_bytes(workflow_hash)
        try:
            return parse_compiled(data)
        except MalformedRecordError as error:
            raise ContentDamagedError(what="pinned workflow", digest=workflow_hash, found=error.found) from error

    def _load_verdict(self, digest: Digest) -> Verdict | None:
        try:
            return verdict_of(json.loads(self.reader.artifact(digest)))
        except (ValueError, RecursionError):
            return None

    def _load_snapshot(self, ref: SnapshotRef, workflow_hash: WorkflowHash) -> "ExecutionSnapshot":
        from interlock.plan.fit import snapshot_fault  # noqa: PLC0415 — see `keep_start`

        snapshot = self.reader.snapshot(ref)
        fault = (
            snapshot_fault(snapshot, self.workflow(workflow_hash))
            if snapshot.workflow_hash == workflow_hash
            else "it pins another workflow"
        )
        if fault is not None:
            raise ContentDamagedError(what="snapshot", digest=ref, found=fault)
        return snapshot


def _pending_in(snapshot: "ExecutionSnapshot") -> "PendingStep | None":
    return snapshot.state.pending.step if snapshot.state.pending.kind == "some" else None
