"""A finding of `interlock doctor`: what was checked, the result, and the fix if one is needed."""

from typing import Literal

from interlock.engine.published import Published

Level = Literal["fine", "note", "attention"]
"""`fine`: no action. `note`: no action now. `attention`: action needed."""


class Finding(Published):
    """One check with its result. `fix` says what to do; only `attention` needs it."""

    check: str
    level: Level
    message: str
    fix: str = ""


def fine(check: str, message: str) -> Finding:
    """Return a finding without a problem."""
    return Finding(check=check, level="fine", message=message)


def note(check: str, message: str, fix: str = "") -> Finding:
    """Return a finding to know about."""
    return Finding(check=check, level="note", message=message, fix=fix)


def attention(check: str, message: str, fix: str) -> Finding:
    """Return a finding that needs action."""
    return Finding(check=check, level="attention", message=message, fix=fix)
