"""Processes that Interlock starts: how it starts itself, and the mark of those whose word is no person's (WORLD-9)."""

import sys

DESCENDANT = "INTERLOCK_DESCENDANT"
"""The environment variable that every child process of a channel or a driver carries, with the value 1."""
ISOLATED = "-P"
"""The option without which an interpreter imports from its current directory first (CHECK-9)."""


def own_program() -> list[str]:
    """Return how Interlock starts a process of its own: the files of the current directory are no modules for it."""
    return [sys.executable, ISOLATED, "-m", "interlock"]
