"""Which sessions there are, and the bytes and versions of their logs, without verifying a log.

This module needs no record models, so a process that only lists sessions starts without them.
"""

import re
from collections.abc import Mapping
from hashlib import sha256

from interlock.kernel.ids import Digest, SessionId, SnapshotRef
from interlock.store.local import layout
from interlock.store.local.failures import session_failure, store_failure
from interlock.store.local.files import FileOps, UnreadableError
from interlock.store.local.session.settled import is_lost, read_mark
from interlock.store.ports.reader import LogVersion, StoredLog
from interlock.store.regular_file import NotRegularFileError

_ATTESTED = re.compile(rb'"segmentRelPath":"events/([^"]+)","sessionId":"[^"]+","sha256":"sha256:([0-9a-f]{64})"')
_UNREADABLE = LogVersion((-1, -1, -1.0, -1))
_PINNED = re.compile(rb'"snapshotRef":"(sha256:[0-9a-f]{64})"')


class StoredSessions:
    """The sessions below one data directory."""

    def __init__(self, files: FileOps) -> None:
        self._files = files
        self._settled: Mapping[SessionId, LogVersion] = {}
        """The versions of the last list of which every group was settled."""

    def sessions(self) -> tuple[SessionId, ...]:
        """See `SessionReader.sessions`."""
        return tuple(sorted(self.log_versions()))

    def is_stored(self, session: SessionId) -> bool:
        """See `SessionReader.is_stored`."""
        try:
            return layout.is_session(session) and self._log_version(session) is not None
        except OSError as error:
            raise store_failure(error) from error

    def names(self) -> tuple[SessionId, ...]:
        """See `SessionReader.names`."""
        try:
            found = self._files.names(layout.SESSIONS)
        except OSError as error:
            raise store_failure(error) from error
        return tuple(SessionId(name) for name in sorted(found) if layout.is_session(name))

    def log(self, session: SessionId) -> StoredLog:
        """See `SessionReader.stored_log`."""
        try:
            found = self._files.contents(layout.events_dir(session))
            manifest = self._manifest(session)
        except OSError as error:
            raise session_failure(session, error) from error
        snapshots = tuple(SnapshotRef(Digest(ref.decode())) for ref in _PINNED.findall(manifest))
        # The lines of the manifest are not parsed.
        attested = set(_ATTESTED.findall(manifest))
        there = {(name.encode(), sha256(data).hexdigest().encode()): data for name, data in found.items()}
        segments = tuple(there[one] for one in sorted(there.keys() & attested))
        is_attested = bool(manifest) and there.keys() == attested
        return StoredLog(segments=segments, snapshots=snapshots, is_attested=is_attested)

    def log_versions(self, *, newest: int | None = None) -> dict[SessionId, LogVersion]:
        """See `SessionReader.log_versions`."""
        try:
            versions = ((name, self._log_version(name)) for name in self.names()[-(newest or 0) :])
            found = {name: version for name, version in versions if version is not None}
        except OSError as error:
            raise store_failure(error) from error
        settled = {name: version for name, version in found.items() if version[0] == version[3]}
        self._settled = settled if newest is None else {**self._settled, **settled}
        return found

    def _log_version(self, session: SessionId) -> LogVersion | None:
        """Return the version of a session's log; None if it never had a log. One that cannot be read is there."""
        try:
            return self._read_version(session)
        except UnreadableError:
            return _UNREADABLE

    def _read_version(self, session: SessionId) -> LogVersion | None:
        stat, before = self._files.stat(layout.manifest(session)), self._settled.get(session)
        if stat is not None and before is not None and (stat.size, stat.inode, stat.modified_s) == before[:3]:
            # A writer moves the mark only after it has appended to the manifest.
            return before
        mark = read_mark(self._files, session)
        settled = -1 if mark is None or mark.manifest_bytes is None else mark.manifest_bytes
        if stat is None or not stat.size:
            return LogVersion((0, 0, 0.0, settled)) if is_lost(self._files, session, mark) else None
        if mark is not None and mark.has_settled_nothing:
            return None
        return LogVersion((stat.size, stat.inode, stat.modified_s, settled))

    def _manifest(self, session: SessionId) -> bytes:
        try:
            return self._files.read(layout.manifest(session))
        except (FileNotFoundError, NotRegularFileError):
            return b""
