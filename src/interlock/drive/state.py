"""The state of an agent, in transactions: a turn buffers its changes, and they are committed together or not at all.

The log keeps the changes with the record of the turn; the state is their fold (TURN-1 to TURN-6).
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Literal, Protocol, cast

from interlock.drive.agent.profile import IsolationLevel
from interlock.drive.conversation.messages import carried
from interlock.drive.faults import Fault, TurnError
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import frozen

Operation = Literal["set", "delete", "append"]


@frozen
class StateChange:
    """One change: the key, its value before and after, and when it expires, in milliseconds since 1970."""

    key: str
    operation: Operation
    previous: Json
    value: Json
    expires_ms: int | None = None

    def to_json(self) -> dict[str, Json]:
        """Return the change as it is recorded."""
        change: dict[str, Json] = {
            "key": self.key,
            "operation": self.operation,
            "previousValue": self.previous,
            "newValue": self.value,
        }
        if self.expires_ms is not None:
            change["expiresMs"] = self.expires_ms
        return change


@frozen
class Entry:
    """A value of the state, when it expires, and a number that grows with each change of its key."""

    value: Json
    expires_ms: int | None
    version: int


class StateOperations(Protocol):
    """What a tool may do with the state of its turn."""

    async def get(self, key: str) -> Json:
        """Return a value; None if there is none."""
        ...

    async def get_many(self, keys: Iterable[str]) -> dict[str, Json]:
        """Return the values of those keys that exist."""
        ...

    async def exists(self, key: str) -> bool:
        """Say whether a key has a value."""
        ...

    async def set(self, key: str, value: Json, ttl_seconds: float | None = None) -> None:
        """Set a value; with a lifetime, it is gone after it."""
        ...

    async def delete(self, key: str) -> None:
        """Remove a key; one that is not there is no error."""
        ...

    async def append(self, key: str, value: Json) -> None:
        """Append to a list, which is made if there is none.

        Raises:
            TurnError: The value of the key is no list.
        """
        ...

    async def checkpoint(self) -> str:
        """Set a savepoint and return its name."""
        ...

    async def rollback(self, savepoint: str | None = None) -> None:
        """Undo the changes since a savepoint, or all changes of the turn.

        Raises:
            TurnError: There is no such savepoint, or the isolation level has no rollback.
        """
        ...


class StateStore:
    """The committed state, and the open turns that work on it."""

    def __init__(self, unix_ms: Callable[[], int], changes: Iterable[StateChange] = ()) -> None:
        self._unix_ms = unix_ms
        self._entries: dict[str, Entry] = {}
        self._version = 0
        self.open_turns: list[TurnState] = []
        self.apply(changes)

    def begin(self, level: IsolationLevel) -> "TurnState":
        """Begin the transaction of a turn."""
        turn = TurnState(self, level)
        self.open_turns.append(turn)
        return turn

    def apply(self, changes: Iterable[StateChange]) -> None:
        """Apply committed changes in their order."""
        for change in changes:
            self._version += 1
            self._entries[change.key] = Entry(
                value=None if change.operation == "delete" else change.value,
                expires_ms=-1 if change.operation == "delete" else change.expires_ms,
                version=self._version,
            )

    def now_ms(self) -> int:
        """Return the time by which values expire."""
        return self._unix_ms()

    def entries(self) -> Mapping[str, Entry]:
        """Return all entries, expired and deleted ones included."""
        return dict(self._entries)

    def values(self) -> dict[str, Json]:
        """Return the committed values that have not expired."""
        return {key: one.value for key, one in self._entries.items() if is_live(one, self.now_ms())}


def is_live(entry: Entry | None, now_ms: int) -> bool:
    """Say whether an entry holds a value now."""
    return entry is not None and (entry.expires_ms is None or entry.expires_ms > now_ms)


class TurnState:
    """The state as one turn sees and changes it: an implementation of `StateOperations`.

    - `serializable` reads what was committed when the turn began; a commit fails if another turn changed what was read.
    - `repeatable_read` reads the same, without that check.
    - `read_committed` reads what is committed at the moment of the read.
    - `read_uncommitted` also sees the open changes of other turns, and has no `rollback`; a turn that fails still
      commits nothing.
    """

    def __init__(self, store: StateStore, level: IsolationLevel) -> None:
        self._store, self._level = store, level
        self._snapshot = store.entries()
        self._changes: list[StateChange] = []
        self._read: dict[str, int] = {}
        self._savepoints: dict[str, int] = {}

    async def get(self, key: str) -> Json:
        """See `StateOperations.get`."""
        return self._value(key)

    async def get_many(self, keys: Iterable[str]) -> dict[str, Json]:
        """See `StateOperations.get_many`."""
        return {key: self._value(key) for key in keys if self._exists(key)}

    async def exists(self, key: str) -> bool:
        """See `StateOperations.exists`."""
        return self._exists(key)

    async def set(self, key: str, value: Json, ttl_seconds: float | None = None) -> None:
        """See `StateOperations.set`."""
        expires = None if ttl_seconds is None else self._store.now_ms() + round(ttl_seconds * 1000)
        self._change(key, "set", carried(value), expires)

    async def delete(self, key: str) -> None:
        """See `StateOperations.delete`."""
        if self._exists(key):
            self._change(key, "delete", None, None)

    async def append(self, key: str, value: Json) -> None:
        """See `StateOperations.append`."""
        found = self._value(key)
        if found is not None and not isinstance(found, list):
            message = f"The state {key!r} is no list, so nothing can be appended to it."
            raise TurnError(Fault(code="STATE_ERROR", message=message))
        entry = self._entry(key)
        # A key that was deleted or has expired begins anew, without the end of its former life.
        expires = entry.expires_ms if entry is not None and is_live(entry, self._store.now_ms()) else None
        self._change(key, "append", [*(found or []), carried(value)], expires)

    async def checkpoint(self) -> str:
        """See `StateOperations.checkpoint`."""
        name = f"savepoint-{len(self._savepoints) + 1}"
        self._savepoints[name] = len(self._changes)
        return name

    async def rollback(self, savepoint: str | None = None) -> None:
        """See `StateOperations.rollback`."""
        if self._level == "read_uncommitted":
            message = "The isolation level `read_uncommitted` has no rollback."
            raise TurnError(Fault(code="STATE_ERROR", message=message))
        if savepoint is not None and savepoint not in self._savepoints:
            known = ", ".join(self._savepoints) or "none"
            message = f"There is no savepoint {savepoint!r}; there are: {known}."
            raise TurnError(Fault(code="STATE_ERROR", message=message))
        length = 0 if savepoint is None else self._savepoints[savepoint]
        del self._changes[length:]
        self._savepoints = {name: at for name, at in self._savepoints.items() if at <= length}

    def changes(self) -> tuple[StateChange, ...]:
        """Return the changes to record, in their order.

        Raises:
            TurnError: Another turn changed what this one read, and the level is `serializable`.
        """
        entries = self._store.entries()
        changed = [key for key, version in self._read.items() if _version(entries.get(key)) != version]
        if self._level == "serializable" and self._changes and changed:
            message = f"Another turn changed {', '.join(sorted(changed))}, which this turn had read."
            raise TurnError(Fault(code="STATE_ERROR", message=message))
        return tuple(self._changes)

    def commit(self) -> None:
        """Make the changes visible to others, after they were recorded."""
        self._store.apply(self._changes)
        self.discard()

    def discard(self) -> None:
        """End the transaction. Changes that were not committed are gone."""
        self._changes = []
        if self in self._store.open_turns:
            self._store.open_turns.remove(self)

    def _change(self, key: str, operation: Operation, value: Json, expires_ms: int | None) -> None:
        previous = self._value(key)
        self._changes.append(
            StateChange(key=key, operation=operation, previous=previous, value=value, expires_ms=expires_ms)
        )

    def _exists(self, key: str) -> bool:
        return is_live(self._entry(key), self._store.now_ms())

    def _value(self, key: str) -> Json:
        entry = self._entry(key)
        return entry.value if entry is not None and is_live(entry, self._store.now_ms()) else None

    def _entry(self, key: str) -> Entry | None:
        own = self.own_entry(key)
        if own is not None:
            return own
        if self._level == "read_uncommitted":
            others = (turn.own_entry(key) for turn in reversed(self._store.open_turns) if turn is not self)
            open_entry = next((one for one in others if one is not None), None)
            if open_entry is not None:
                return open_entry
        is_snapshot = self._level in ("serializable", "repeatable_read")
        entry = (self._snapshot if is_snapshot else self._store.entries()).get(key)
        self._read.setdefault(key, _version(entry))
        return entry

    def own_entry(self, key: str) -> Entry | None:
        """Return what this turn made of a key, if it changed it."""
        change = next((one for one in reversed(self._changes) if one.key == key), None)
        if change is None:
            return None
        expires = -1 if change.operation == "delete" else change.expires_ms
        return Entry(value=change.value, expires_ms=expires, version=0)


def _version(entry: Entry | None) -> int:
    return 0 if entry is None else entry.version


def parse_changes(value: Json) -> tuple[StateChange, ...]:
    """Return the changes that a record holds; what is no change is left out."""
    found = [one for one in (value if isinstance(value, list) else []) if isinstance(one, dict)]
    return tuple(
        StateChange(
            key=str(one["key"]),
            operation=cast("Operation", one["operation"]),
            previous=one.get("previousValue"),
            value=one.get("newValue"),
            expires_ms=expires if isinstance(expires := one.get("expiresMs"), int) else None,
        )
        for one in found
        if isinstance(one.get("key"), str) and one.get("operation") in ("set", "delete", "append")
    )
