"""The content that events refer to by digest: snapshots, workflows and artifacts (EVT-6, BND-5)."""

from collections.abc import Iterable, Mapping

from interlock.kernel.frozen import frozen
from interlock.kernel.ids import AttemptId, Digest, OutputId, SessionId, SnapshotRef, WorkflowHash, derived_id
from interlock.record import events as ev
from interlock.record.payloads import ArtifactPayload, NotesPayload

WHOLE_NOTES_CONTENT_TYPE = "text/markdown"
"""Notes beyond their budget are recorded cut; the complete text is stored as an artifact of this type."""
REDACTED = "[redacted]"
"""The text that replaces the value in a redacted copy of a session."""


def output_id(attempt: AttemptId, digest: Digest | None) -> OutputId:
    """Return the id of an output of an attempt: that of its notes, or of an artifact with this digest."""
    return OutputId(derived_id("out", attempt, digest or "notes"))


def output_id_of(attempt: AttemptId, payload: NotesPayload | ArtifactPayload) -> OutputId:
    """Return the id of an output of an attempt with this payload."""
    return output_id(attempt, payload.sha256 if isinstance(payload, ArtifactPayload) else None)


@frozen
class References:
    """The digests that events refer to, each once, in event order. `artifacts` includes decision captures.

    `sessions` are the sessions whose runs are claimed.
    """

    snapshots: tuple[SnapshotRef, ...]
    workflows: tuple[WorkflowHash, ...]
    artifacts: tuple[Digest, ...]
    sessions: frozenset[SessionId] = frozenset()


@frozen
class Contents:
    """Content as bytes, by digest."""

    snapshots: Mapping[SnapshotRef, bytes]
    workflows: Mapping[WorkflowHash, bytes]
    artifacts: Mapping[Digest, bytes]


def collect_references(events: Iterable[ev.Event]) -> References:
    """Collect the digests and the sessions that events refer to."""
    snapshots: dict[SnapshotRef, None] = {}
    workflows: dict[WorkflowHash, None] = {}
    artifacts: dict[Digest, None] = {}
    sessions: set[SessionId] = set()
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
            case ev.ContractBoundEvent():
                artifacts |= dict.fromkeys((event.data.definition, *(event.data.definitions or ())))
            case ev.ExecutionClaimedEvent():
                artifacts[event.data.outputs] = None
                sessions.add(event.data.source_session_id)
            case _:
                continue
    return References(
        snapshots=tuple(snapshots),
        workflows=tuple(workflows),
        artifacts=tuple(artifacts),
        sessions=frozenset(sessions),
    )
