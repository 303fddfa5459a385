"""The content that events refer to by digest: snapshots, workflows and artifacts (EVT-6, BND-5)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from interlock.kernel.ids import Digest, SnapshotRef, WorkflowHash
from interlock.record import events as ev
from interlock.record.payloads import ArtifactPayload


@dataclass(frozen=True, slots=True, kw_only=True)
class References:
    """The digests that events refer to, each once, in event order. `artifacts` includes decision captures."""

    snapshots: tuple[SnapshotRef, ...]
    workflows: tuple[WorkflowHash, ...]
    artifacts: tuple[Digest, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """Content as bytes, by digest."""

    snapshots: Mapping[SnapshotRef, bytes]
    workflows: Mapping[WorkflowHash, bytes]
    artifacts: Mapping[Digest, bytes]


def collect_references(events: Iterable[ev.Event]) -> References:
    """Collect the digests that events refer to."""
    snapshots: dict[SnapshotRef, None] = {}
    workflows: dict[WorkflowHash, None] = {}
    artifacts: dict[Digest, None] = {}
    for event in events:
        match event:
            case ev.NodeCreatedEvent():
                snapshots[event.data.snapshot_ref] = None
            case ev.RunStartedEvent():
                workflows[event.data.workflow_hash] = None
            case ev.NodeOutputAppendedEvent() if isinstance(event.data.payload, ArtifactPayload):
                artifacts[event.data.payload.sha256] = None
            case ev.DecisionTraceAppendedEvent() if event.data.capture_ref is not None:
                artifacts[event.data.capture_ref] = None
            case ev.WorkRecordedEvent() if event.data.answer_ref is not None:
                artifacts[event.data.answer_ref] = None
            case _:
                continue
    return References(snapshots=tuple(snapshots), workflows=tuple(workflows), artifacts=tuple(artifacts))
