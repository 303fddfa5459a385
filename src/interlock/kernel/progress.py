"""How far a long look is."""

from collections.abc import Callable
from typing import TypeAlias

Progress: TypeAlias = Callable[[int, int], None]
"""Takes how many sessions were looked at, and of how many."""


def untold(_done: int, _total: int) -> None:
    """Tell nobody of the progress."""
