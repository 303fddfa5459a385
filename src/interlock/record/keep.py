"""Retention pins: the list of sessions that never expire (GC-2)."""

from typing import Annotated, Literal

from interlock.kernel.budgets import RETENTION_PINS_MAX
from interlock.kernel.canonical import Json, digest_of
from interlock.kernel.ids import SessionId
from interlock.kernel.shape import Reader, limits
from interlock.record.base import DigestField, Record, SessionIdField, read_record
from interlock.record.errors import MalformedRecordError


class KeepMarks(Record):
    """All marks of a data directory: each session once, in ascending order, with a digest.

    Equal marks have equal bytes. The digest is needed because a session id with one changed byte is still a valid id.
    """

    v: Literal[1]
    kind: Literal["keep_marks"]
    sessions: Annotated[tuple[SessionIdField, ...], *limits(max_length=RETENTION_PINS_MAX)]
    check: DigestField


_MARKS: Reader[KeepMarks] = Reader(KeepMarks)


def build_keep_marks(sessions: frozenset[SessionId]) -> KeepMarks:
    """Build the record that marks these sessions."""
    in_order = tuple(sorted(sessions))
    body: dict[str, Json] = {"v": 1, "kind": "keep_marks", "sessions": [*in_order]}
    return KeepMarks(v=1, kind="keep_marks", sessions=in_order, check=digest_of(body))


def parse_keep_marks(data: bytes) -> frozenset[SessionId]:
    """Parse stored marks.

    Raises:
        UnknownVersionError: A newer Interlock wrote them.
        MalformedRecordError: They are not marks, their digest does not match, or their bytes are not canonical.
    """
    sessions = frozenset(read_record("retention pins", _MARKS, data).sessions)
    if build_keep_marks(sessions).to_bytes() + b"\n" != data:
        raise MalformedRecordError("retention pins", "the check does not match")
    return sessions
