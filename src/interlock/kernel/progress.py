"""The progress of a long operation, for a caller that shows it."""

from collections.abc import Callable
from typing import TypeAlias

Progress: TypeAlias = Callable[[int, int], None]
"""A function that receives the number of sessions read, and their total."""


def report_nothing(_done: int, _total: int) -> None:
    """Ignore the progress."""
