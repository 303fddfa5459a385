"""The file of a cached summary, and the state of the log that it is of: only a holder of the lock caches one."""

import json
from collections.abc import Mapping
from typing import Any, cast

from interlock.kernel.budgets.files import CACHED_SUMMARY_BYTES_MAX
from interlock.kernel.canonical import digest_of_bytes, parse_object
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import Digest, SessionId
from interlock.store.local import layout
from interlock.store.local.files import FileOps, UnreadableError
from interlock.store.regular_file import NotRegularFileError

VERSION = 5


@frozen
class CachedSummary:
    """A cached summary, the log that it says it is of, and what it was made from. Nothing of the log was compared.

    `manifest` is the digest of the first `manifest_bytes` of the manifest, which the writer had verified;
    `manifest_modified_s` is the time that the manifest had then. `line` holds what `origin` returns.
    """

    session: SessionId
    manifest_bytes: int
    manifest_modified_s: object
    manifest: Digest
    line: bytes
    summary: bytes

    def origin(self) -> Mapping[str, Any]:
        """Return what the summary was made from. Of a long session, this is most of the file."""
        return cast("Mapping[str, Any]", json.loads(self.line))


def read_cached(files: FileOps, session: SessionId) -> CachedSummary | None:
    """Return what is cached; None if there is nothing, or not what a writer wrote for this session."""
    try:
        data = files.read(layout.cached_summary(session), bytes_max=CACHED_SUMMARY_BYTES_MAX)
    except (FileNotFoundError, NotRegularFileError, UnreadableError):
        return None
    head, _, body = data.partition(b"\n")
    line, _, summary = body.partition(b"\n")
    said = parse_object(head)
    if said is None or said.get("v") != VERSION or said.get("summary") != digest_of_bytes(body):
        return None
    manifest_bytes = said.get("manifestBytes")
    # A directory that was copied or renamed brings the summary of another session.
    if said.get("session") != session or not isinstance(manifest_bytes, int):
        return None
    return CachedSummary(
        session=session,
        manifest_bytes=manifest_bytes,
        manifest_modified_s=said.get("manifestModifiedS"),
        manifest=Digest(str(said.get("manifest"))),
        line=line,
        summary=summary,
    )


def is_attested(files: FileOps, cached: CachedSummary) -> bool:
    """Say whether the manifest begins with the bytes after which the summary was cached."""
    try:
        manifest = files.read(layout.manifest(cached.session), bytes_max=cached.manifest_bytes)
    except (FileNotFoundError, NotRegularFileError):
        return False
    return digest_of_bytes(manifest) == cached.manifest


def folded_bytes(files: FileOps, session: SessionId) -> int:
    """Return how many bytes of the manifest the writer of the cached summary had settled, and folded without a fault.

    Zero if no summary of the current log is cached.

    Raises:
        OSError: The disk failed.
    """
    cached = read_cached(files, session)
    return cached.manifest_bytes if cached is not None and is_attested(files, cached) else 0
