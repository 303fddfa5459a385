"""The cached summary of a session: derived, bound to one state of the log, and ignored if anything differs (RES-4).

The file is a line that says which log the rest is of, a line that says which files the summary was made from, and the
summary. It is replaced whole and never synced: what a crash leaves of it does not match its first line, and is none.

A summary is used only while the files that it was made from are unchanged (HIS-7): no segment is missing or newer than
the last one was when the summary was cached, and the snapshots and workflows that it names verify. For a session that
costs one `stat` of each segment and one small read for each run; no event is read. A change that leaves the time of a
segment unchanged is found when the log is read, and by `verify`. In a copy that did not keep the times of
files, no summary is used until the next append.
"""

import json
import secrets

from interlock.kernel.canonical import Json, canonical_bytes, digest_of_bytes
from interlock.kernel.ids import SessionId
from interlock.record.manifest import parse_segment_closed
from interlock.store.local import layout
from interlock.store.local.content import ContentFiles, discard
from interlock.store.local.files import FileOps, store_failure
from interlock.store.local.session.reading import Verified
from interlock.store.ports.errors import ContentDamagedError
from interlock.store.regular_file import NotRegularFileError

_VERSION = 2


class SummaryCache:
    """Reads and writes the cached summaries of all sessions."""

    def __init__(self, files: FileOps, content: ContentFiles) -> None:
        self._files = files
        self._content = content
        self._read_workflows = set[str]()

    def read(self, session: SessionId) -> bytes | None:
        """Return a session's cached summary if the log and its files are unchanged since it was cached, else None.

        Raises:
            StoreFailureError: The disk failed.
        """
        try:
            current = _find_current(self._files, session)
            if current is None:
                return None
            line, _, summary = current[1].partition(b"\n")
            origin = json.loads(line)
            if not _has_segments(self._files, session, origin["events"], origin["modifiedS"]):
                return None
        except OSError as error:
            raise store_failure(error) from error
        return summary if all(map(self._is_sound, origin["content"])) else None

    def _is_sound(self, path: str) -> bool:
        """Say whether a content-addressed file verifies. Sessions share workflows, so each is read once."""
        if path in self._read_workflows:
            return True
        try:
            self._content.read(path, layout.digest_in(path), "content")
        except ContentDamagedError:
            return False
        if path.startswith(f"{layout.PINNED}/"):
            self._read_workflows.add(path)
        return True

    def write(self, verified: Verified, summary: bytes) -> None:
        """Cache a summary of the verified log.

        Raises:
            StoreFailureError: The disk failed.
        """
        path = layout.cached_summary(verified.session)
        temp = layout.temp(path, secrets.token_hex(8))
        try:
            body = json.dumps(_origin(self._files, verified)).encode() + b"\n" + summary
            head = canonical_bytes(_head(verified.last_group, verified.manifest_bytes, body))
            self._files.make_dir(layout.cache_dir(verified.session))
            self._files.write(temp, head + b"\n" + body)
            self._files.rename(temp, path)
        except OSError as error:
            discard(self._files, temp)
            raise store_failure(error) from error


def folded_bytes(files: FileOps, session: SessionId) -> int:
    """Return how many bytes of the manifest were already folded without a fault, by the writer of the cached summary.

    Zero if no summary of the current log is cached.

    Raises:
        OSError: The disk failed.
    """
    current = _find_current(files, session)
    return current[0] if current is not None else 0


def _find_current(files: FileOps, session: SessionId) -> tuple[int, bytes] | None:
    """Return the current length of the manifest, and the body that was cached with it."""
    try:
        data = files.read(layout.cached_summary(session))
    except (FileNotFoundError, NotADirectoryError, NotRegularFileError):
        return None
    head, _, body = data.partition(b"\n")
    try:
        said = json.loads(head)
        manifest_bytes = said["manifestBytes"]
        group = files.read(layout.manifest(session), manifest_bytes - said["lastGroupBytes"])
        is_current = said == _head(group, manifest_bytes, body)
    except (ValueError, KeyError, TypeError, OverflowError, FileNotFoundError, NotRegularFileError):
        return None
    return (manifest_bytes, body) if is_current else None


def _head(last_group: bytes, manifest_bytes: int, body: bytes) -> dict[str, Json]:
    return {
        "v": _VERSION,
        "manifestBytes": manifest_bytes,
        "lastGroupBytes": len(last_group),
        "lastGroup": digest_of_bytes(last_group),
        "summary": digest_of_bytes(body),
    }


def _origin(files: FileOps, verified: Verified) -> dict[str, Json]:
    """Return what a summary is made from: so many events, the time of the last segment, the content of each run."""
    last = parse_segment_closed(verified.last_group.partition(b"\n")[0]).segment_rel_path
    stat = files.stat(f"{layout.session_dir(verified.session)}/{last}")
    fold = verified.fold
    content = {layout.pinned_workflow(run.workflow_hash) for run in fold.runs.values()}
    content |= {layout.snapshot(fold.nodes[run.tip].snapshot) for run in fold.runs.values() if run.tip is not None}
    return {
        "events": fold.next_index,
        "modifiedS": stat.modified_s if stat is not None else 0.0,
        "content": [*sorted(content)],
    }


def _has_segments(files: FileOps, session: SessionId, events: int, modified_s: float) -> bool:
    """Say whether the segments of so many events are there, and none is newer."""
    directory = layout.events_dir(session)
    ends = dict[int, list[int]]()
    for name in filter(layout.is_segment, files.names(directory)):
        stat = files.stat(f"{directory}/{name}")
        if stat is None or stat.modified_s > modified_s:
            return False
        first, last = map(int, name.removesuffix(".jsonl").split("-"))
        ends.setdefault(first, []).append(last + 1)
    # An interrupted append left a segment that begins where another one does, so each way on is followed.
    reached, due = set[int](), [0]
    while due:
        at = due.pop()
        if at not in reached:
            reached.add(at)
            due += ends.get(at, ())
    return events in reached
