"""Pinned workflows and snapshots as runs execute them: verified on load, the most recent kept."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

from interlock.kernel.budgets import SNAPSHOTS_KEPT_MAX, WORKFLOWS_KEPT_MAX
from interlock.kernel.ids import SnapshotRef, WorkflowHash
from interlock.plan.compiled import CompiledWorkflow, parse_compiled
from interlock.plan.fit import snapshot_fault
from interlock.record.base import MalformedRecordError
from interlock.record.snapshot import ExecutionSnapshot
from interlock.store.ports import ContentDamagedError, SessionReader

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class _Recent(Generic[_Key, _Value]):
    """The most recently used values, for several threads."""

    def __init__(self, kept_max: int) -> None:
        self._kept_max = kept_max
        self._values: OrderedDict[_Key, _Value] = OrderedDict()
        self._mutex = threading.Lock()

    def get(self, key: _Key, load: Callable[[], _Value]) -> _Value:
        """Return a kept value, or load it."""
        with self._mutex:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        value = load()
        self.put(key, value)
        return value

    def put(self, key: _Key, value: _Value) -> None:
        """Keep a value, and let go of the one used longest ago."""
        with self._mutex:
            self._values[key] = value
            self._values.move_to_end(key)
            while len(self._values) > self._kept_max:
                self._values.popitem(last=False)


class Plans:
    """Loads what is immutable under its digest, once."""

    def __init__(self, reader: SessionReader) -> None:
        self._reader = reader
        self._workflows: _Recent[WorkflowHash, CompiledWorkflow] = _Recent(WORKFLOWS_KEPT_MAX)
        self._snapshots: _Recent[tuple[SnapshotRef, WorkflowHash], ExecutionSnapshot] = _Recent(SNAPSHOTS_KEPT_MAX)

    def workflow(self, workflow_hash: WorkflowHash) -> CompiledWorkflow:
        """Return a pinned workflow.

        Raises:
            ContentDamagedError: It is missing or damaged.
        """
        return self._workflows.get(workflow_hash, lambda: self._load_workflow(workflow_hash))

    def snapshot(self, ref: SnapshotRef, workflow_hash: WorkflowHash) -> ExecutionSnapshot:
        """Return a snapshot that fits the plan it pins.

        Raises:
            ContentDamagedError: It is missing, damaged, of another workflow, or impossible in its plan.
        """
        return self._snapshots.get((ref, workflow_hash), lambda: self._load_snapshot(ref, workflow_hash))

    def keep(self, ref: SnapshotRef, snapshot: ExecutionSnapshot) -> None:
        """Keep a snapshot that this process just made true, so that it is not read back."""
        self._snapshots.put((ref, snapshot.workflow_hash), snapshot)

    def _load_workflow(self, workflow_hash: WorkflowHash) -> CompiledWorkflow:
        data = self._reader.workflow_bytes(workflow_hash)
        try:
            return parse_compiled(data)
        except MalformedRecordError as error:
            raise ContentDamagedError(what="pinned workflow", digest=workflow_hash, found=error.found) from error

    def _load_snapshot(self, ref: SnapshotRef, workflow_hash: WorkflowHash) -> ExecutionSnapshot:
        snapshot = self._reader.snapshot(ref)
        fault = (
            snapshot_fault(snapshot, self.workflow(workflow_hash))
            if snapshot.workflow_hash == workflow_hash
            else "it pins another workflow"
        )
        if fault is not None:
            raise ContentDamagedError(what="snapshot", digest=ref, found=fault)
        return snapshot
