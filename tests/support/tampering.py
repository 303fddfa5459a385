"""A session altered by somebody who knows how: one fact is another, and every digest around it is good again."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import fields

from interlock.kernel.canonical import canonical_bytes, digest_of_bytes
from interlock.kernel.ids import Digest, NodeId, SessionId, SnapshotRef
from interlock.kernel.shape import Reader
from interlock.record.events import EVENT_CLASSES, Event, NodeCreatedEvent, build_dedupe_key, event_kind, parse_event
from interlock.record.manifest import build_group
from interlock.store.local import layout

Body = dict[str, Any]
Change = Callable[[Body], object]

_CLASSES = {event_kind(event_class): event_class for event_class in EVENT_CLASSES}


class Tampering:
    """Alters the one session of a data directory. Each alteration leaves the session healthy."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (directory,) = (root / "sessions").iterdir()
        self.session = SessionId(directory.name)
        self.plans = [
            [json.loads(line) for line in path.read_bytes().splitlines()] for path in sorted(self._segments())
        ]

    def alter(self, kind: str, change: Change, *, number: int = 0) -> NodeId:
        """Change one event, the `number`th of its kind; return the node that its plan made."""
        plan, event = self._found(kind, number)
        change(event)
        self.rewrite()
        return self._node_of(plan)

    def drop(self, kind: str, *, number: int = 0) -> NodeId:
        """Leave one event out; return the node that its plan made."""
        plan, event = self._found(kind, number)
        node = self._node_of(plan)
        plan.remove(event)
        self.rewrite()
        return node

    def alter_capture(self, change: Change, *, number: int = 0) -> NodeId:
        """Change the captured record that a trace refers to, and the reference with it."""

        def refer(event: Body) -> None:
            event["data"]["captureRef"] = self.refiled(layout.artifact(event["data"]["captureRef"]), change)

        return self.alter("decision_trace_appended", refer, number=number)

    def alter_snapshot(self, change: Change, *, number: int = 0) -> NodeId:
        """Change the snapshot of a node, and the reference with it."""

        def refer(event: Body) -> None:
            event["data"]["snapshotRef"] = self.refiled(layout.snapshot(event["data"]["snapshotRef"]), change)

        return self.alter("node_created", refer, number=number)

    def refiled(self, path: str, change: Change) -> Digest:
        """Store changed content under its own digest, and return that."""
        file = self.root / path
        body = json.loads(file.read_bytes())
        change(body)
        data = canonical_bytes(body)
        digest = digest_of_bytes(data)
        file.with_name(digest.removeprefix("sha256:") + file.suffix).write_bytes(data)
        return digest

    def file_of_capture(self, number: int = 0) -> Path:
        """Return the file of the captured record that a trace refers to."""
        _, event = self._found("decision_trace_appended", number)
        return self.root / layout.artifact(event["data"]["captureRef"])

    def node_of(self, kind: str, *, number: int = 0) -> NodeId:
        """Return the node that the plan of an event made."""
        return self._node_of(self._found(kind, number)[0])

    def _found(self, kind: str, number: int) -> tuple[list[Body], Body]:
        return [(plan, event) for plan in self.plans for event in plan if event["kind"] == kind][number]

    def _node_of(self, plan: Sequence[Body]) -> NodeId:
        return next(NodeId(event["scope"]["nodeId"]) for event in plan if event["kind"] == "node_created")

    def _segments(self) -> list[Path]:
        return list((self.root / layout.events_dir(self.session)).glob("*.jsonl"))

    def rewrite(self) -> None:
        """Write the log anew: indexes, dedupe keys, segments and manifest follow from what the events say."""
        for path in self._segments():
            path.unlink()
        index, lines, manifest, pinned = 0, 0, b"", frozenset[SnapshotRef]()
        for plan in self.plans:
            events = [stamped(event, index + at) for at, event in enumerate(plan)]
            data = b"".join(event.to_bytes() + b"\n" for event in events)
            group = build_group(self.session, manifest_index=lines, segment=data, events=events, pinned=pinned)
            name = layout.segment(self.session, index, index + len(events) - 1)
            (self.root / name).write_bytes(data)
            index, lines, manifest = index + len(events), lines + group.lines, manifest + group.data
            pinned |= {event.data.snapshot_ref for event in events if isinstance(event, NodeCreatedEvent)}
        (self.root / layout.manifest(self.session)).write_bytes(manifest)


def stamped(body: Body, index: int) -> Event:
    """Return a changed event at an index, with the dedupe key that its content has."""
    event_class: Any = _CLASSES[body["kind"]]
    parts = {one.name: Reader[Any](one.type) for one in fields(event_class)}
    keyless: Body = {"v": 1, "event_id": "", "event_index": 0, "dedupe_key": "", "session_id": body["sessionId"]}
    for name in ("scope", "data"):
        if name in body:
            keyless[name] = parts[name].read(json.dumps(body[name]).encode())
    key = build_dedupe_key(event_class(**keyless))
    return parse_event(canonical_bytes({**body, "eventIndex": index, "dedupeKey": key}))
