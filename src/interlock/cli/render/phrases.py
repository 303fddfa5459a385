"""Short phrases for lists and pages: relative times and names of steps."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from interlock.kernel.budgets import AGE_DAYS_MAX
from interlock.service.clock import moment_of
from interlock.views.summary import RunSummary

if TYPE_CHECKING:
    from interlock.service.run.context import StepLabel

_MINUTE, _HOUR, _DAY = 60_000, 3_600_000, 86_400_000


def ago(at: str | None, now_ms: int) -> str:
    """Render a recorded time relative to now; an old one as its date, an invalid one as `unknown`."""
    moment = moment_of(at)
    if moment is None:
        return "unknown"
    past = now_ms - moment
    if not -_MINUTE <= past < AGE_DAYS_MAX * _DAY:
        return _day(moment)
    if past < _MINUTE:
        return "just now"
    if past < _HOUR:
        return f"{past // _MINUTE} min ago"
    if past < _DAY:
        return f"{past // _HOUR} h ago"
    return "yesterday" if past < 2 * _DAY else f"{past // _DAY} days ago"


def step_words(run: RunSummary) -> str:
    """Render the number of a run's current step, as in `2 of 5`."""
    return f"{run.number} of {run.total}" if run.number is not None else "-"


def place_words(place: "StepLabel") -> str:
    """Render a step with its number, its title, and the pass of its loop."""
    within = f" (pass {place.loop.pass_})" if place.loop is not None else ""
    return f"step {place.number}, {place.title}{within}"


def _day(moment: int) -> str:
    return datetime.fromtimestamp(moment / 1000, tz=UTC).date().isoformat()
