"""How far a long reading is, for whoever waits for it."""

from collections.abc import Callable
from contextvars import ContextVar
from typing import TypeAlias

Progress: TypeAlias = Callable[[int, int], None]
"""Takes how many sessions were looked at, and of how many."""


def untold(_done: int, _total: int) -> None:
    """Tell nobody of the progress."""


READING: ContextVar[Progress] = ContextVar("READING", default=untold)
"""Takes the progress of whatever a call reads; whoever makes the call sets it, and a thread inherits it."""
