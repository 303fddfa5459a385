"""Since when the running call waits: a wait for a lock counts from the call's arrival, not from its turn (LOCK-6)."""

import time
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_ARRIVED_S: ContextVar[float | None] = ContextVar("arrived_s", default=None)


@contextmanager
def call_arrived() -> Generator[None]:
    """Count every wait inside from now on. Worker threads that are started inside inherit it."""
    before = _ARRIVED_S.set(time.monotonic())
    try:
        yield
    finally:
        _ARRIVED_S.reset(before)


def arrived_s() -> float:
    """Return when the running call arrived, by `time.monotonic`; outside of a call, now."""
    arrived = _ARRIVED_S.get()
    return time.monotonic() if arrived is None else arrived
