"""How far a long reading is, for whoever waits for it."""

from collections.abc import Callable
from typing import TypeAlias

Progress: TypeAlias = Callable[[int, int], None]
"""Takes how many sessions were read, and of how many."""


def report_nothing(_done: int, _total: int) -> None:
    """Report the progress to nobody."""
