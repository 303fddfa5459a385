"""The event store: where adapters write what happened. The protocol, and a store in memory (ADPT-1, ADPT-2)."""

import threading
from typing import Protocol

from interlock.kernel.errors import InterlockError
from interlock.kernel.uuids import Uuid
from interlock.views.executions.derive import derive_block_state, may_append
from interlock.views.executions.events import ExecutionEvent, ExecutionState, is_later


class EventRefusedError(InterlockError):
    """A store refuses an event, and stored nothing. `event` is the event."""

    def __init__(self, event: ExecutionEvent, reason: str) -> None:
        super().__init__(f"{event.event_type} of execution {event.execution_id}: {reason}")
        self.event = event


class ExecutionEndedError(EventRefusedError):
    """The execution has ended, in the state `state`. A retry is another execution (EXE-6)."""

    def __init__(self, event: ExecutionEvent, state: ExecutionState) -> None:
        super().__init__(event, f"it has ended as {state}; begin another execution, or append `executor_released`")
        self.state = state


class EventStore(Protocol):
    """Stores events and returns them. Its order is the order of the appends, whatever their times say."""

    def append(self, event: ExecutionEvent) -> None:
        """Append an event, which never changes after that. An equal event that was appended before adds nothing.

        Raises:
            EventRefusedError: The event contradicts those before it.
        """
        ...

    def get_events(self, execution_id: Uuid, after: str | None = None) -> list[ExecutionEvent]:
        """Return the events of an execution in their order; with `after`, only those with a later time (RFC 3339)."""
        ...

    def get_latest_event(self, execution_id: Uuid) -> ExecutionEvent | None:
        """Return the event of an execution that was appended last, or None if there is none."""
        ...


class InMemoryEventStore:
    """An event store for tests and prototypes: it keeps nothing when the process ends. Threads may share it."""

    def __init__(self) -> None:
        self._by_execution: dict[Uuid, list[ExecutionEvent]] = {}
        self._by_id: dict[Uuid, ExecutionEvent] = {}
        self._mutex = threading.Lock()

    def append(self, event: ExecutionEvent) -> None:
        """Append an event.

        Raises:
            ExecutionEndedError: The execution has ended.
            EventRefusedError: Another event has this id.
        """
        with self._mutex:
            known = self._by_id.get(event.id)
            if known == event:
                return
            if known is not None:
                raise EventRefusedError(event, f"another event has the id {event.id}")
            events = self._by_execution.setdefault(event.execution_id, [])
            state = derive_block_state(events)
            if not may_append(state, event):
                raise ExecutionEndedError(event, state)
            events.append(event)
            self._by_id[event.id] = event

    def get_events(self, execution_id: Uuid, after: str | None = None) -> list[ExecutionEvent]:
        """Return the events of an execution in their order; with `after`, only those with a later time."""
        with self._mutex:
            events = list(self._by_execution.get(execution_id, ()))
        return [one for one in events if after is None or is_later(one.timestamp, after)]

    def get_latest_event(self, execution_id: Uuid) -> ExecutionEvent | None:
        """Return the event of an execution that was appended last, or None if there is none."""
        with self._mutex:
            events = self._by_execution.get(execution_id)
            return events[-1] if events else None

    def execution_ids(self) -> tuple[Uuid, ...]:
        """Return the executions that have events, in the order of their first event."""
        with self._mutex:
            return tuple(self._by_execution)
