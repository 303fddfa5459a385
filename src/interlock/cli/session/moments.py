"""Moments as people say them: how long ago something was, and since when is meant."""

import re
from datetime import UTC, datetime

from interlock.cli.screen import StopError
from interlock.service.moments import moment_of

_MINUTE, _HOUR, _DAY = 60_000, 3_600_000, 86_400_000
_UNITS = {"m": _MINUTE, "h": _HOUR, "d": _DAY, "w": 7 * _DAY}
_SPAN = re.compile(r"(\d{1,6})([mhdw])")
_DAYS_SAID_MAX = 30
"""From then on a date says more than a number of days."""


def ago(at: str | None, now_ms: int) -> str:
    """Return how long ago a recorded time was, in words; its date if that is long ago, `unknown` if it is no time."""
    moment = moment_of(at)
    if moment is None:
        return "unknown"
    past = now_ms - moment
    if not -_MINUTE <= past < _DAYS_SAID_MAX * _DAY:
        return _day(moment)
    if past < _MINUTE:
        return "just now"
    if past < _HOUR:
        return f"{past // _MINUTE} min ago"
    if past < _DAY:
        return f"{past // _HOUR} h ago"
    return "yesterday" if past < 2 * _DAY else f"{past // _DAY} days ago"


def since(said: str, now_ms: int) -> int:
    """Return the moment that `--since` means: a date or time (UTC), or a span back from now, as in `3d`.

    Raises:
        StopError: It is neither.
    """
    span = _SPAN.fullmatch(said)
    if span is not None:
        return now_ms - int(span[1]) * _UNITS[span[2]]
    moment = moment_of(said)
    if moment is None:
        fix = "Use a date (2025-01-31), a time (2025-01-31T14:00, UTC), or a span back from now (90m, 12h, 3d, 2w)."
        raise StopError(f"--since: {said[:40]!r} is no date, no time and no span.", fix, exit_code=2)
    return moment


def _day(moment: int) -> str:
    return datetime.fromtimestamp(moment / 1000, tz=UTC).date().isoformat()
