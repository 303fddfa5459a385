"""An advance against the history before it: 5,000 in one session, and as many of the minimal server and of five syncs.

`python -m benchmarks.growing FILE` also draws them.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.support.load import linear_workflow

from benchmarks.advance import MinimalSession, minimal_server
from benchmarks.floors import FiveSyncs
from benchmarks.history import RATIO_MAX, SHORT, SHORT_STEPS, Line
from benchmarks.line_chart import LineChart, Series, line_chart_svg
from benchmarks.table import Figure, at_most, ms
from benchmarks.wire import serving, temporary_site

STEPS, STEPS_QUICK, MARKS = 5_000, 500, 5
WINDOWS = 25
"""Of how many medians a line consists."""
OURS, MINIMAL, SYNCS = "Interlock", "the smallest durable server", "its five syncs alone"
COLOURS = {OURS: "#0969da", MINIMAL: "#6e7781", SYNCS: "#9a6700"}


def figures(*, is_quick: bool) -> list[Figure]:
    """Measure how much the last advances take against the first ones."""
    return _judged(_medians(STEPS_QUICK if is_quick else STEPS))


def _medians(steps: int) -> Mapping[str, Sequence[float]]:
    """Return the medians in milliseconds, each over an equal part of the steps, by contestant."""
    with temporary_site() as site:
        site.add_workflow(linear_workflow(SHORT, SHORT_STEPS))
        with serving(site) as wire, minimal_server(site.root / "minimal") as minimal:
            line, session, floor = Line(wire, SHORT), MinimalSession(minimal), FiveSyncs(site.root)
            contestants: dict[str, Callable[[], float]] = {
                OURS: line.advance,
                MINIMAL: session.advance,
                SYNCS: floor.append_once,
            }
            taken = [{name: advance() for name, advance in contestants.items()} for _ in range(steps)]
    size = steps // WINDOWS
    parts = [taken[start : start + size] for start in range(0, steps, size)]
    return {name: [ms(one[name] for one in part) for part in parts] for name in contestants}


def _judged(medians: Mapping[str, Sequence[float]]) -> list[Figure]:
    first, last = medians[OURS][0], medians[OURS][-1]
    what = f"advance in the last of {WINDOWS} parts of a session / in the first"
    return [at_most(what, last / first, RATIO_MAX, beside=f"{last:.2f} / {first:.2f} ms")]


def _drawn(medians: Mapping[str, Sequence[float]], steps: int) -> str:
    """Return the medians as a chart."""
    size = steps // WINDOWS
    series = [
        Series(
            name=f"{name}, {found[-1]:.1f} ms",
            colour=COLOURS[name],
            points=[((number + 0.5) * size, value) for number, value in enumerate(found)],
        )
        for name, found in medians.items()
    ]
    return line_chart_svg(
        LineChart(
            title="The time of a report does not grow with the session",
            x_words="steps that the session has done before",
            y_words=f"ms, median of {size}",
            x_marks=range(0, steps + 1, steps // MARKS),
            series=series,
        )
    )


def main() -> None:
    """Measure, and draw to the file that the command names."""
    medians = _medians(STEPS)
    Path(sys.argv[1]).write_text(_drawn(medians, STEPS), encoding="utf-8")
    for one in _judged(medians):
        print(one.what, one.found, one.budget)


if __name__ == "__main__":
    main()
