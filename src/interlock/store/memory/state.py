"""What an in-memory store holds, shared by its ports."""

import threading
from collections.abc import Callable, Iterable
from dataclasses import field

from interlock.kernel.canonical import digest_of_bytes
from interlock.kernel.frozen import frozen, mutable
from interlock.kernel.ids import Digest, SessionId
from interlock.record.content import Contents, References
from interlock.record.events import Event, parse_event
from interlock.store.ports.maintenance import Kind
from interlock.views.session import Session


@frozen
class StoredContent:
    """Content that is stored under a digest, and when it was last written."""

    kind: Kind
    data: bytes
    written_s: float


@mutable
class MemoryState:
    """Everything in one store except its keys. A change of several parts takes the mutex."""

    now_s: Callable[[], float]
    segments: dict[SessionId, list[bytes]] = field(default_factory=dict[SessionId, list[bytes]])
    folds: dict[SessionId, Session] = field(default_factory=dict[SessionId, Session])
    changed_s: dict[SessionId, float] = field(default_factory=dict[SessionId, float])
    summaries: dict[SessionId, tuple[int, bytes]] = field(default_factory=dict[SessionId, tuple[int, bytes]])
    content: dict[str, StoredContent] = field(default_factory=dict[str, StoredContent])
    kept: frozenset[SessionId] = frozenset()
    locks: dict[SessionId, threading.Lock] = field(default_factory=dict[SessionId, threading.Lock])
    upkeep_lock: threading.Lock = field(default_factory=threading.Lock)
    mutex: threading.Lock = field(default_factory=threading.Lock)

    def history(self, session: SessionId, after: int = 0) -> tuple[tuple[Event, ...], ...]:
        """Return a session's events, one tuple for each plan that was appended, oldest first."""
        segments = tuple(self.segments.get(session, ()))
        plans = (tuple(map(parse_event, segment.splitlines())) for segment in segments)
        return tuple(plan for plan in plans if plan[0].event_index >= after)

    def put(self, contents: Contents) -> None:
        """Store content under its digest. Existing content counts as written now."""
        kinds = {
            Kind.SNAPSHOT: contents.snapshots,
            Kind.WORKFLOW: contents.workflows,
            Kind.ARTIFACT: contents.artifacts,
        }
        for kind, data_of in kinds.items():
            for digest, data in data_of.items():
                assert digest_of_bytes(data) == digest, "content is filed under its own digest"
                self.content[name_of(kind, digest)] = StoredContent(kind=kind, data=data, written_s=self.now_s())

    def record(self, fold: Session, segments: Iterable[bytes]) -> None:
        """Add segments to a session, and keep the fold of all its events."""
        self.segments.setdefault(fold.session, []).extend(segments)
        self.folds[fold.session] = fold
        self.changed_s[fold.session] = self.now_s()

    def remove(self, session: SessionId) -> None:
        """Remove a session. What it refers to stays."""
        for part in (self.segments, self.folds, self.changed_s, self.summaries):
            part.pop(session, None)


def names_of(refers: References) -> frozenset[str]:
    """Return the names of the content that events refer to."""
    snapshots = (name_of(Kind.SNAPSHOT, ref) for ref in refers.snapshots)
    workflows = (name_of(Kind.WORKFLOW, ref) for ref in refers.workflows)
    return frozenset((*snapshots, *workflows, *(name_of(Kind.ARTIFACT, ref) for ref in refers.artifacts)))


def name_of(kind: Kind, digest: Digest) -> str:
    """Return the name of content in the store."""
    return f"{kind.name.lower()}/{digest}"
