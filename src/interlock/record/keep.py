"""Keep marks: the sessions that never expire (locks 2.2)."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, ValidationError

from interlock.kernel.budgets import KEEP_MARKS_MAX
from interlock.kernel.ids import SessionId
from interlock.record.base import MalformedRecordError, Record, SessionIdField, reading_error


def _sorted_set(sessions: tuple[SessionId, ...]) -> tuple[SessionId, ...]:
    if list(sessions) != sorted(set(sessions)):
        raise ValueError("not a sorted set")
    return sessions


class KeepMarks(Record):
    """All marks of a data directory, each session once, in order: equal marks are equal bytes."""

    v: Literal[1]
    kind: Literal["keep_marks"]
    sessions: Annotated[tuple[SessionIdField, ...], Field(max_length=KEEP_MARKS_MAX), AfterValidator(_sorted_set)]


def keep_marks(sessions: frozenset[SessionId]) -> KeepMarks:
    """Return the record of these marks."""
    return KeepMarks(v=1, kind="keep_marks", sessions=tuple(sorted(sessions)))


def parse_keep_marks(data: bytes) -> KeepMarks:
    """Return the marks that stored bytes hold.

    Raises:
        UnknownVersionError: A newer Interlock wrote them.
        MalformedRecordError: They are no marks, or not in the one spelling.
    """
    try:
        marks = KeepMarks.model_validate_json(data, by_name=False)
    except ValidationError as error:
        raise reading_error("keep marks", error) from None
    if marks.to_bytes() + b"\n" != data:
        raise MalformedRecordError("keep marks", "not as they were written")
    return marks
