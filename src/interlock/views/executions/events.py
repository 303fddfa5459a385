"""Execution events: what happened to the execution of a block, a flow or a contract, one fact each (EXE-2)."""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from interlock.define.operations.base import Metadata, UuidField, Value
from interlock.kernel.budgets.operations import EXECUTION_TIME_CHARS_MAX, EXECUTOR_CHARS_MAX
from interlock.kernel.canonical import Json

ExecutionEventType = Literal[
    "created",
    "executor_assigned",
    "executor_released",
    "started",
    "progress",
    "outcome_produced",
    "completed",
    "failed",
    "skipped",
    "cancelled",
]
"""A closed set of ten."""
ExecutionState = Literal["pending", "in_progress", "completed", "failed", "skipped", "cancelled"]
"""A closed set of six. A state is always derived from events (EXE-3)."""
TERMINAL: frozenset[str] = frozenset({"completed", "failed", "skipped", "cancelled"})
"""The types of events that end an execution. Each is also the state after it."""
ADMINISTRATIVE: frozenset[str] = frozenset({"executor_released"})
"""The types of events that are accepted after the end (EXE-6)."""

TIME_PATTERN = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?Z$"
Time: TypeAlias = Annotated[str, Field(pattern=TIME_PATTERN, max_length=EXECUTION_TIME_CHARS_MAX)]
"""A time in UTC as RFC 3339 text. Times inform: the order of events is the order in which they were appended."""


class ExecutorInfo(Value):
    """Who or what works on an execution, as it describes itself: a claim, not a proof."""

    type: Literal["human", "agent", "system"]
    identifier: Annotated[str, Field(min_length=1, max_length=EXECUTOR_CHARS_MAX)]
    metadata: Metadata = Field(default_factory=dict[str, Json])


class ExecutionEvent(Value):
    """One fact about one execution. The executor is that of this event, because executors change (EXE-4).

    `payload` is any JSON value; nothing reads it, except an outcome's payload, which is passed on (EXE-11).
    """

    id: UuidField
    timestamp: Time
    execution_id: UuidField
    event_type: ExecutionEventType
    executor: ExecutorInfo | None = None
    payload: Json = None
    metadata: Metadata = Field(default_factory=dict[str, Json])


def is_later(time: Time, other: Time) -> bool:
    """Return whether a time is later than another one."""
    return _comparable(time) > _comparable(other)


def _comparable(time: Time) -> str:
    seconds, _, fraction = time.removesuffix("Z").partition(".")
    return f"{seconds}.{fraction.rstrip('0')}"
