"""The cached summary of a session: derived, bound to one state of the log, and ignored if anything differs (RES-4).

The first line of the file identifies the state of the log; the summary follows. The file is replaced as a whole and
never synced: if a crash damages it, it does not match its first line and is ignored.
"""

import json
import secrets

from interlock.kernel.canonical import Json, canonical_bytes, digest_of_bytes
from interlock.kernel.ids import SessionId
from interlock.store.local import layout
from interlock.store.local.content import discard
from interlock.store.local.files import FileOps, store_failure
from interlock.store.local.session.reading import Verified
from interlock.store.regular_file import NotRegularFileError

_VERSION = 1


class SummaryCache:
    """Reads and writes the cached summaries of all sessions."""

    def __init__(self, files: FileOps) -> None:
        self._files = files

    def read(self, session: SessionId) -> bytes | None:
        """Return a session's cached summary if it matches the current log; else None.

        Raises:
            StoreFailureError: The disk failed.
        """
        try:
            current = self._current(session)
        except OSError as error:
            raise store_failure(error) from error
        return current[1] if current is not None else None

    def folded_bytes(self, session: SessionId) -> int:
        """Return how many bytes of the manifest were folded without an error by the process that cached the summary.

        Zero if no summary of the current log is cached.

        Raises:
            OSError: The disk failed.
        """
        current = self._current(session)
        return current[0] if current is not None else 0

    def _current(self, session: SessionId) -> tuple[int, bytes] | None:
        """Return the length of the current manifest and the summary that was cached for it."""
        try:
            data = self._files.read(layout.cached_summary(session))
        except (FileNotFoundError, NotADirectoryError, NotRegularFileError):
            return None
        head, _, body = data.partition(b"\n")
        try:
            said = json.loads(head)
            manifest_bytes = said["manifestBytes"]
            group = self._files.read(layout.manifest(session), manifest_bytes - said["lastGroupBytes"])
            is_current = said == _head(group, manifest_bytes, body)
        except (ValueError, KeyError, TypeError, OverflowError, FileNotFoundError, NotRegularFileError):
            return None
        return (manifest_bytes, body) if is_current else None

    def write(self, verified: Verified, summary: bytes) -> None:
        """Cache a summary of the verified log.

        Raises:
            StoreFailureError: The disk failed.
        """
        head = canonical_bytes(_head(verified.last_group, verified.manifest_bytes, summary))
        path = layout.cached_summary(verified.session)
        temp = layout.temp(path, secrets.token_hex(8))
        try:
            self._files.make_dir(layout.cache_dir(verified.session))
            self._files.write(temp, head + b"\n" + summary)
            self._files.rename(temp, path)
        except OSError as error:
            discard(self._files, temp)
            raise store_failure(error) from error


def _head(last_group: bytes, manifest_bytes: int, summary: bytes) -> dict[str, Json]:
    return {
        "v": _VERSION,
        "manifestBytes": manifest_bytes,
        "lastGroupBytes": len(last_group),
        "lastGroup": digest_of_bytes(last_group),
        "summary": digest_of_bytes(summary),
    }
