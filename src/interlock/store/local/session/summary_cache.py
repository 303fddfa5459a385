"""The cached summary of a session: derived, bound to one state of the log, and ignored if anything differs (RES-4).

The file is a line that says which log the rest is of, a line that says which files the summary was made from, and the
summary. It is replaced whole and never synced: what a crash leaves of it does not match its first line, and is none.

A summary is used only while the files that it was made from are unchanged (HIS-7): the manifest has the size and the
time that it had, no segment is missing or newer than the last one was when the summary was cached, and the snapshots
and workflows that it names verify. For a session that costs one `stat` of its manifest and of each segment and one
small read for each run and of the settled mark, which may say that the manifest lost its end; no event is read. A
change that leaves the time of a segment unchanged is found when the log is read, and by `verify`. In a copy that did
not keep the times of files, the manifest is read whole, and no summary is used for segments that are newer.

A caller that reads the log of a session before it offers it needs no more than the manifest (`read_of`).
"""

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

from interlock.kernel.budgets.files import CACHED_SUMMARY_BYTES_MAX
from interlock.kernel.canonical import Json, canonical_bytes, digest_of_bytes
from interlock.kernel.ids import SessionId
from interlock.store.local import layout
from interlock.store.local.content import ContentFiles, discard
from interlock.store.local.failures import store_failure
from interlock.store.local.files import FileOps, UnreadableError
from interlock.store.local.session.settled import missing_bytes, read_mark
from interlock.store.local.session.summary_file import VERSION, CachedSummary, is_attested, read_cached
from interlock.store.ports.errors import ContentDamagedError
from interlock.store.ports.reader import ContentCheck, LogVersion
from interlock.store.regular_file import unused_name

if TYPE_CHECKING:
    from interlock.store.local.session.reading import Verified


class SummaryCache:
    """Reads and writes the cached summaries of all sessions."""

    def __init__(self, files: FileOps, content: ContentFiles) -> None:
        self._files = files
        self._content = content
        self._read_workflows = set[str]()

    def read(self, session: SessionId, check: ContentCheck | None = None) -> bytes | None:
        """Return a session's cached summary if the log and its files are unchanged since it was cached, else None.

        With `check`, the other content that the log names is looked up, too (see `SessionReader.cached_summary`).
        If something cannot be read, nothing is cached: whoever then reads the log finds what it is.

        Raises:
            StoreFailureError: The disk failed.
        """
        try:
            cached = read_cached(self._files, session)
            if cached is None or not _is_current(self._files, cached):
                return None
            origin = cached.origin()
            if not _has_segments(self._files, session, origin["events"], origin["modifiedS"]):
                return None
            if check is not None:
                self._check(check, origin["others"], origin["modifiedS"])
        except UnreadableError:
            return None
        except OSError as error:
            raise store_failure(error) from error
        return cached.summary if all(map(self._is_sound, origin["content"])) else None

    def read_of(self, session: SessionId, version: LogVersion) -> bytes | None:
        """Return the cached summary of a version of a session's log, else None. See `SessionReader.cached_summary_of`.

        Raises:
            StoreFailureError: The disk failed.
        """
        manifest_bytes, _, modified_s, settled = version
        if settled > manifest_bytes:
            return None
        try:
            cached = read_cached(self._files, session)
            if cached is None or not _is_of_manifest(self._files, cached, manifest_bytes, modified_s):
                return None
        except UnreadableError:
            return None
        except OSError as error:
            raise store_failure(error) from error
        return cached.summary

    def _check(self, check: ContentCheck, paths: Iterable[str], known_s: float) -> None:
        """Note which files are lost. One that is newer than what the summary was made from is read and verified."""
        for path in paths:
            if path not in check.times:
                stat = self._files.stat(path)
                check.times[path] = stat.modified_s if stat is not None else None
            modified_s = check.times[path]
            if modified_s is not None and modified_s <= known_s:
                continue
            try:
                self._content.read(path, layout.digest_in(path), layout.kind_of(path))
            except ContentDamagedError as error:
                check.lost.append(error)
            else:
                check.times[path] = 0.0

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

    def write(self, verified: "Verified", summary: bytes) -> None:
        """Cache a summary of the verified log, unless it is larger than what is read.

        Raises:
            StoreFailureError: The disk failed.
        """
        path = layout.cached_summary(verified.session)
        temp = layout.temp(path, unused_name())
        try:
            body = json.dumps(_origin(self._files, verified)).encode() + b"\n" + summary
            data = canonical_bytes(_head(self._files, verified, body)) + b"\n" + body
            if len(data) > CACHED_SUMMARY_BYTES_MAX:
                return
            self._files.make_dir(layout.cache_dir(verified.session))
            self._files.write(temp, data)
            self._files.rename(temp, path)
        except OSError as error:
            discard(self._files, temp)
            raise store_failure(error) from error


def _is_current(files: FileOps, cached: CachedSummary) -> bool:
    """Say whether the manifest is what it was when the summary was cached, and has not lost its end."""
    stat = files.stat(layout.manifest(cached.session))
    if stat is None or missing_bytes(read_mark(files, cached.session), stat.size):
        return False
    return _is_of_manifest(files, cached, stat.size, stat.modified_s)


def _is_of_manifest(files: FileOps, cached: CachedSummary, size: int, modified_s: float) -> bool:
    """Say whether a summary is of a manifest with this size and time.

    A manifest of the same size and time is not read. It was settled: only a writer that holds the lock caches.
    """
    if size != cached.manifest_bytes:
        return False
    return modified_s == cached.manifest_modified_s or is_attested(files, cached)


def _head(files: FileOps, verified: "Verified", body: bytes) -> dict[str, Json]:
    manifest = files.stat(layout.manifest(verified.session))
    return {
        "v": VERSION,
        "session": verified.session,
        "manifestBytes": verified.manifest_bytes,
        "manifestModifiedS": manifest.modified_s if manifest is not None else 0.0,
        "manifest": verified.manifest_digest,
        "summary": digest_of_bytes(body),
    }


def _origin(files: FileOps, verified: "Verified") -> dict[str, Json]:
    """Return what a summary is made from: events, the time of the last segment, content; and other content."""
    from interlock.record.manifest import parse_segment_closed  # noqa: PLC0415 — only a writer needs it

    last = parse_segment_closed(verified.last_group.partition(b"\n")[0]).segment_rel_path
    segment = files.stat(f"{layout.session_dir(verified.session)}/{last}")
    fold = verified.fold
    content = {layout.pinned_workflow(run.workflow_hash) for run in fold.runs.values()}
    content |= {layout.snapshot(fold.nodes[run.tip].snapshot) for run in fold.runs.values() if run.tip is not None}
    others = {layout.snapshot(ref) for ref in verified.pins} | {layout.artifact(one) for one in verified.artifacts}
    others -= content
    return {
        "events": fold.next_index,
        "modifiedS": segment.modified_s if segment is not None else 0.0,
        "content": [*sorted(content)],
        "others": [*sorted(others)],
    }


def _has_segments(files: FileOps, session: SessionId, events: int, modified_s: float) -> bool:
    """Say whether the segments of so many events are there, and none is newer."""
    times = files.modified(layout.events_dir(session))
    reached = {0}
    for name in sorted(filter(layout.is_segment, times)):
        if times[name] > modified_s:
            return False
        # An interrupted append left a segment that begins where another one does, so each way on is followed.
        first, last = name.removesuffix(".jsonl").split("-")
        if int(first) in reached:
            reached.add(int(last) + 1)
    return events in reached
