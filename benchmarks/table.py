"""Figures, and the plain table they are printed in."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_HEADS = ("measure", "found", "budget", "holds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One line of the table. `holds` is None where there is no budget, or its condition is not met here."""

    what: str
    found: str
    budget: str = ""
    holds: bool | None = None


def noted(what: str, found: str) -> Figure:
    """Return a figure without a budget."""
    return Figure(what=what, found=found)


def at_most(what: str, value: float, limit: float, unit: str = "", *, beside: str = "") -> Figure:
    """Return a figure that has to stay at or below a limit; `beside` is what it was measured against."""
    found = f"{value:.2f}{unit}{f' ({beside})' if beside else ''}"
    return Figure(what=what, found=found, budget=f"<= {limit:g}{unit}", holds=value <= limit)


def at_least(what: str, value: float, limit: float, unit: str = "", *, beside: str = "") -> Figure:
    """Return a figure that has to reach a limit."""
    found = f"{value:.0f}{unit}{f' ({beside})' if beside else ''}"
    return Figure(what=what, found=found, budget=f">= {limit:g}{unit}", holds=value >= limit)


def least(what: str, ratio: float, limit: float, beside: str) -> Figure:
    """Return a ratio that has to reach a limit."""
    return Figure(what=what, found=f"{ratio:.2f} ({beside})", budget=f">= {limit:g}", holds=ratio >= limit)


def ms(seconds: Iterable[float]) -> float:
    """Return the median of durations, in milliseconds."""
    return statistics.median(seconds) * 1000


def table(figures: Sequence[Figure]) -> str:
    """Return the figures as lines of aligned columns."""
    verdicts = {None: "", True: "yes", False: "NO"}
    rows = [_HEADS, *((one.what, one.found, one.budget, verdicts[one.holds]) for one in figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])
