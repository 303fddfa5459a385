"""What a driver takes from its surroundings: time, pauses and new ids. Tests pass their own."""

import time
import uuid
from datetime import UTC, datetime
from typing import Protocol

import anyio

from interlock.kernel.frozen import positional


class Effects(Protocol):
    """The clock, the pauses and the ids of a driver."""

    def unix_ms(self) -> int:
        """Return the time in milliseconds since 1970."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never go back."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Pause."""
        ...

    def new_id(self) -> str:
        """Return a new UUID."""
        ...


@positional
class SystemEffects:
    """The clock and the ids of this machine."""

    def unix_ms(self) -> int:
        """See `Effects.unix_ms`."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """See `Effects.monotonic`."""
        return anyio.current_time()

    async def sleep(self, seconds: float) -> None:
        """See `Effects.sleep`."""
        await anyio.sleep(seconds)

    def new_id(self) -> str:
        """See `Effects.new_id`."""
        return str(uuid.uuid4())


def timestamp(unix_ms: int) -> str:
    """Return a time as RFC 3339 writes it, in UTC with milliseconds."""
    return datetime.fromtimestamp(unix_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
