"""What `interlock doctor` finds: one thing that it looked at, and what to do about it if anything."""

from typing import Literal

from interlock.engine.published import Published

Level = Literal["fine", "note", "attention"]
"""Whether there is something to do: nothing, nothing now, something."""


class Finding(Published):
    """One thing that was looked at: what it is, what was found, and what to do. Only `attention` calls for it."""

    check: str
    level: Level
    message: str
    fix: str = ""


def fine(check: str, message: str) -> Finding:
    """Return that something is as it should be."""
    return Finding(check=check, level="fine", message=message)


def note(check: str, message: str, fix: str = "") -> Finding:
    """Return something to know."""
    return Finding(check=check, level="note", message=message, fix=fix)


def attention(check: str, message: str, fix: str) -> Finding:
    """Return something to act on."""
    return Finding(check=check, level="attention", message=message, fix=fix)
