"""Ports for what differs between calls: the clock, entropy and the timing trace."""

import json
import os
import sys
import time
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from typing import Protocol

from interlock.kernel.ids import EventId, RunId, SessionId, minted_id

_EPOCH = datetime.fromtimestamp(0, UTC)


class Clock(Protocol):
    """Clock and entropy. Times are for display; events are never ordered by time (READ-6)."""

    def unix_ms(self) -> int:
        """Return the time in milliseconds since the epoch."""
        ...

    def entropy(self) -> bytes:
        """Return ten random bytes."""
        ...


class SystemClock:
    """The real clock and the operating system's entropy."""

    def unix_ms(self) -> int:
        """See `Clock.unix_ms`."""
        return time.time_ns() // 1_000_000

    def entropy(self) -> bytes:
        """See `Clock.entropy`."""
        return os.urandom(10)


class Trace(Protocol):
    """Records the duration of parts of a call: parse, load, decide, append, render. Off by default (SRV-6)."""

    def span(self, name: str) -> AbstractContextManager[None]:
        """Return a context manager; the time spent inside it is the span."""
        ...


class NoTrace:
    """Records nothing, at no cost."""

    def span(self, name: str) -> AbstractContextManager[None]:  # noqa: ARG002 — a span that is not recorded
        """See `Trace.span`."""
        return _NOTHING


_NOTHING = nullcontext()


class StderrTrace:
    """Writes each span as one JSON line to stderr, for `INTERLOCK_TRACE=1`. A failed write is ignored (TEL-4)."""

    @contextmanager
    def span(self, name: str) -> Generator[None]:
        """See `Trace.span`."""
        began = time.perf_counter()
        try:
            yield
        finally:
            ms = round((time.perf_counter() - began) * 1000, 3)
            # A stderr that is closed, from the start or since, is None or raises.
            with suppress(OSError, ValueError, AttributeError):
                sys.stderr.write(json.dumps({"span": name, "ms": ms}) + "\n")


def mint_session(clock: Clock) -> SessionId:
    """Return a fresh session id."""
    return SessionId(minted_id("sess", unix_ms=clock.unix_ms(), entropy=clock.entropy()))


def mint_run(clock: Clock) -> RunId:
    """Return a fresh run id."""
    return RunId(minted_id("run", unix_ms=clock.unix_ms(), entropy=clock.entropy()))


def mint_event(clock: Clock) -> EventId:
    """Return a fresh event id."""
    return EventId(minted_id("evt", unix_ms=clock.unix_ms(), entropy=clock.entropy()))


def recorded_at(clock: Clock) -> str:
    """Return the current time as events store it."""
    return text_of_moment(clock.unix_ms())


def text_of_moment(unix_ms: int) -> str:
    """Return a time as events store it: ISO 8601, UTC, with milliseconds."""
    moment = datetime.fromtimestamp(unix_ms / 1000, tz=UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def moment_of(text: str | None) -> int | None:
    """Parse a recorded time into milliseconds since the epoch; None if it is missing or invalid.

    A time without a zone is UTC, as all recorded times are.
    """
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return round((aware - _EPOCH).total_seconds() * 1000)
