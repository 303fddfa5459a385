"""What a log refers to, found without parsing it: in a directory that is no session, or in the trash.

Such a log is not verified, so this finds too much rather than too little: every digest and every session that its bytes
name.
"""

import re
from collections.abc import Iterator
from contextlib import suppress

from interlock.kernel.frozen import frozen
from interlock.kernel.ids import ID_BODY_PATTERN, Digest, SessionId
from interlock.store.local import layout
from interlock.store.local.files import FileOps, UnreadableError
from interlock.store.regular_file import NotRegularFileError
from interlock.store.retention import seconds_of

_DIGEST = re.compile(rb"sha256:[0-9a-f]{64}")
_SESSION = re.compile(rf"sess_{ID_BODY_PATTERN}".encode())
_RECORDED = re.compile(rb'"recordedAt":"([^"]{1,40})"')


@frozen
class LogTrace:
    """The content and the sessions that the bytes of a log name, and its newest recorded time, from the epoch."""

    content: frozenset[str]
    sessions: frozenset[SessionId]
    recorded_s: float


def trace_log(files: FileOps, path: str) -> LogTrace:
    """Return what the logs in a directory and below it name. Links are not followed; a file holds no log.

    Raises:
        OSError: The disk failed.
    """
    digests, sessions, times = set[bytes](), set[bytes](), set[bytes]()
    for data in _logs(files, path):
        digests.update(_DIGEST.findall(data))
        sessions.update(_SESSION.findall(data))
        times.update(_RECORDED.findall(data))
    named = [Digest(one.decode()) for one in digests]
    return LogTrace(
        content=frozenset(
            place(one) for place in (layout.snapshot, layout.pinned_workflow, layout.artifact) for one in named
        ),
        sessions=frozenset(SessionId(one.decode()) for one in sessions),
        recorded_s=max((seconds_of(one.decode("ascii", "replace")) for one in times), default=0.0),
    )


def _logs(files: FileOps, path: str) -> Iterator[bytes]:
    stat = files.own_stat(path)
    for name in files.names(path) if stat is not None and stat.is_dir else ():
        below = f"{path}/{name}"
        if name.endswith(".jsonl"):
            with suppress(FileNotFoundError, NotRegularFileError, UnreadableError):
                yield files.read(below)
        else:
            yield from _logs(files, below)
