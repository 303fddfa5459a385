"""The paths of one session's files, for a reader that does not rely on the store: the demo, which checks the bytes."""

from pathlib import Path

from interlock.kernel.frozen import frozen
from interlock.kernel.ids import Digest, SessionId
from interlock.record.manifest import SegmentClosed, parse_segment_closed
from interlock.store.local import layout
from interlock.store.local.files import OsFiles

_SEGMENT_MARK = b'"kind":"segment_closed"'


@frozen
class SessionFiles:
    """The files of one session in a data directory. It verifies nothing."""

    root: Path
    session: SessionId

    def log_bytes(self) -> int:
        """Return the size of the log, which grows with each append."""
        found = OsFiles(self.root).stat(layout.manifest(self.session))
        return 0 if found is None else found.size

    def segments(self) -> list[tuple[SegmentClosed, Path]]:
        """Return the log's record of each segment, oldest first, with the segment's file."""
        lines = OsFiles(self.root).read(layout.manifest(self.session)).splitlines()
        records = [parse_segment_closed(line) for line in lines if _SEGMENT_MARK in line]
        directory = self.root / layout.session_dir(self.session)
        return [(record, directory / record.segment_rel_path) for record in records]

    def snapshot(self, ref: Digest) -> Path:
        """Return the file of a snapshot."""
        return self.root / layout.snapshot(ref)

    def pinned_workflow(self, workflow_hash: Digest) -> Path:
        """Return the file of a pinned workflow."""
        return self.root / layout.pinned_workflow(workflow_hash)
