"""Keep marks: the sessions that never expire (GC-2)."""

from typing import Annotated, Literal

from pydantic import Field, ValidationError

from interlock.kernel.budgets import KEEP_MARKS_MAX
from interlock.kernel.canonical import Json, digest_of
from interlock.kernel.ids import SessionId
from interlock.record.base import DigestField, MalformedRecordError, Record, SessionIdField, classify_read_error


class KeepMarks(Record):
    """All marks of a data directory, each session once, in order, with a check over them.

    Equal marks are equal bytes. A session id with one byte changed is another valid id, so the marks need the check.
    """

    v: Literal[1]
    kind: Literal["keep_marks"]
    sessions: Annotated[tuple[SessionIdField, ...], Field(max_length=KEEP_MARKS_MAX)]
    check: DigestField


def build_keep_marks(sessions: frozenset[SessionId]) -> KeepMarks:
    """Return the record of these marks."""
    in_order = tuple(sorted(sessions))
    body: dict[str, Json] = {"v": 1, "kind": "keep_marks", "sessions": [*in_order]}
    return KeepMarks(v=1, kind="keep_marks", sessions=in_order, check=digest_of(body))


def parse_keep_marks(data: bytes) -> frozenset[SessionId]:
    """Return the marks that stored bytes hold.

    Raises:
        UnknownVersionError: A newer Interlock wrote them.
        MalformedRecordError: They are no marks, their check does not hold, or they are not in the one spelling.
    """
    try:
        sessions = frozenset(KeepMarks.model_validate_json(data, by_name=False).sessions)
    except ValidationError as error:
        raise classify_read_error("keep marks", error) from None
    if build_keep_marks(sessions).to_bytes() + b"\n" != data:
        raise MalformedRecordError("keep marks", "its check does not hold")
    return sessions
