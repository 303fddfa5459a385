"""A chart of lines over a common axis, as SVG: each line has its name at its end, so it needs no legend."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 760, 320, 48, 230, 40, 48
"""The size of the chart and the margins around its lines, in pixels. The names are in the right margin."""
_NAME = 15
"""The least distance of two names, in pixels."""
_TEXT, _GRID = "#1f2328", "#d0d7de"


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """A named line: its points (x, y), with x from left to right, and its colour."""

    name: str
    colour: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LineChart:
    """Lines with a title, the words of both axes, and the values of x that are marked; the last is the end."""

    title: str
    x_words: str
    y_words: str
    x_marks: Sequence[int]
    series: Sequence[Series]


def line_chart_svg(chart: LineChart) -> str:
    """Return the chart, readable on a light and on a dark page because it has a background. y begins at 0."""
    top = int(max(y for one in chart.series for _, y in one.points)) + 1
    title = escape(chart.title)
    size = f'width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}"'
    root = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{title}" fill="{_TEXT}"'
    lines = [
        f'{root} font-family="system-ui, sans-serif" font-size="12">',
        f"<title>{title}</title>",
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>',
        f'<text x="{_LEFT}" y="20" font-weight="bold">{title}</text>',
        *_axes(chart, top),
        *(_line(one, chart.x_marks[-1], top) for one in chart.series),
        *_names(chart, top),
    ]
    return "\n".join([*lines, "</svg>", ""])


def _axes(chart: LineChart, top: int) -> Iterator[str]:
    end, floor = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    for value in range(top + 1):
        y = _y(value, top)
        yield f'<path d="M{_LEFT} {y} L{end} {y}" stroke="{_TEXT if value == 0 else _GRID}"/>'
        yield f'<text x="{_LEFT - 6}" y="{y + 4}" text-anchor="end">{value}</text>'
    for value in chart.x_marks:
        yield f'<text x="{_x(value, chart.x_marks[-1])}" y="{floor + 18}" text-anchor="middle">{value:,}</text>'
    yield f'<text x="{(_LEFT + end) // 2}" y="{floor + 38}" text-anchor="middle">{escape(chart.x_words)}</text>'
    yield f'<text x="14" y="{_HEIGHT // 2}" text-anchor="middle" transform="rotate(-90 14 {_HEIGHT // 2})">'
    yield f"{escape(chart.y_words)}</text>"


def _line(series: Series, end: int, top: int) -> str:
    places = [(_x(x, end), _y(y, top)) for x, y in series.points]
    way = " ".join(f"{'L' if number else 'M'}{x} {y}" for number, (x, y) in enumerate(places))
    return f'<path d="{way}" fill="none" stroke="{series.colour}" stroke-width="2"/>'


def _names(chart: LineChart, top: int) -> Iterator[str]:
    """Yield the names at the ends of the lines, from top to bottom, none over another."""
    lowest = 0
    for one in sorted(chart.series, key=lambda one: one.points[-1][1], reverse=True):
        lowest = max(_y(one.points[-1][1], top) + 4, lowest + _NAME)
        place = f'x="{_WIDTH - _RIGHT + 6}" y="{lowest}"'
        yield f'<text {place} fill="{one.colour}">{escape(one.name)}</text>'


def _x(value: float, end: int) -> int:
    return _LEFT + round(value / end * (_WIDTH - _LEFT - _RIGHT))


def _y(value: float, top: int) -> int:
    return _HEIGHT - _BOTTOM - round(value / top * (_HEIGHT - _TOP - _BOTTOM))
