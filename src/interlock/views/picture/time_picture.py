"""The steps of a run over time: a bar from the time at which each became pending to the time at which it was done.

All positions come from recorded times, so the same log gives the same picture. A long time in which nothing was
recorded is drawn short, with its length above it.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from html import escape
from itertools import pairwise
from statistics import median_low

from interlock.kernel.budgets.pictures import IDLE_MS_MIN, IDLE_TIMES_USUAL, PICTURE_LINE_MAX
from interlock.kernel.frozen import positional
from interlock.kernel.text import duration_words, flat
from interlock.views.picture.layout import wrap_text
from interlock.views.picture.time_bar import TimeBar

_LABELS, _TRACK, _WORDS = 230, 560, 110
"""The widths of the titles, of the bars, and of the durations, in pixels."""
_HEAD, _ROW, _BAR, _MARGIN = 34, 24, 14, 10
"""The heights of the head, of a row and of a bar, and the margin, in pixels."""
_PAUSE, _OPEN, _LEAST = 40, 24, 3
"""The widths of a squeezed time, of a bar that has no end yet, and of the shortest bar, in pixels."""
_TITLE_CHARS, _TEXT_TRACK = 32, 40
"""The widths of the titles and of the bars in the text, in characters."""
_STEP, _CURRENT, _REFUSED, _IDLE = "#2da44e", "#218bff", "#cf222e", "#6e7781"


@positional
class TimeScale:
    """Recorded instants, in order, with the position of each from 0 to 1, and whether the time after it is idle."""

    instants: tuple[int, ...]
    positions: tuple[float, ...]
    idle: tuple[bool, ...]

    def position(self, instant: int) -> float:
        """Return the position of one of the instants."""
        return self.positions[bisect_left(self.instants, instant)]


def time_scale(bars: Sequence[TimeBar]) -> TimeScale:
    """Return a scale in which a time without a record is squeezed if it is much longer than such times usually are."""
    found = {at for bar in bars for at in (bar.since, *bar.refused, *(() if bar.until is None else (bar.until,)))}
    instants = tuple(sorted(found))
    lengths = [after - before for before, after in pairwise(instants)]
    limit = max(IDLE_MS_MIN, IDLE_TIMES_USUAL * median_low(lengths)) if lengths else IDLE_MS_MIN
    idle = tuple(length > limit for length in lengths)
    pause = min(_PAUSE / _TRACK, 0.5 / max(1, sum(idle)))
    drawn = sum(length for length, is_idle in zip(lengths, idle, strict=True) if not is_idle)
    unit = (1 - pause * sum(idle)) / drawn if drawn else 0.0
    positions, here = [0.0], 0.0
    for length, is_idle in zip(lengths, idle, strict=True):
        here += pause if is_idle else length * unit
        positions.append(here)
    return TimeScale(instants, tuple(positions[: len(instants)]), idle)


def shown_bars(bars: Sequence[TimeBar]) -> Sequence[TimeBar]:
    """Return the newest bars, at most as many as one picture has; none if nothing took time."""
    shown = bars[-PICTURE_LINE_MAX:]
    return (
        shown if len({bar.since for bar in shown} | {bar.until for bar in shown if bar.until is not None}) > 1 else ()
    )


def time_svg(bars: Sequence[TimeBar], *, link_of: Callable[[str], str] | None = None) -> str:
    """Return the bars as one SVG element for a page, in its colours. With `link_of`, each row is a link to its step."""
    scale = time_scale(bars)
    width, height = 2 * _MARGIN + _LABELS + _TRACK + _WORDS, _HEAD + _ROW * len(bars) + _MARGIN
    role = "img" if link_of is None else "group"
    root = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
        f' role="{role}" aria-label="The steps over time" fill="currentColor" font-family="system-ui, sans-serif"'
        ' font-size="12">'
    )
    lines = [
        root,
        "<title>The steps over time</title>",
        *_idle_times(scale, height),
    ]
    for number, bar in enumerate(bars):
        row = _row(bar, scale, _HEAD + number * _ROW)
        if link_of is None:
            lines += row
        else:
            label = escape(f"{flat(bar.title)}: {bar.words}")
            address, node = escape(link_of(bar.node)), escape(bar.node)
            lines += (f'<a href="{address}" data-node="{node}" aria-label="{label}">', *row, "</a>")
    return "\n".join([*lines, "</svg>"])


def _x(position: float) -> int:
    # The last bar may have no end: there is room for it after the last instant.
    return _MARGIN + _LABELS + round(position * (_TRACK - _OPEN))


def _idle_times(scale: TimeScale, height: int) -> Iterator[str]:
    for number, is_idle in enumerate(scale.idle):
        if is_idle:
            left, right = _x(scale.positions[number]), _x(scale.positions[number + 1])
            place = f'x="{left}" y="{_HEAD - 6}" width="{right - left}" height="{height - _HEAD}"'
            yield f'<rect {place} fill="{_IDLE}" fill-opacity="0.12"/>'
            words = duration_words(scale.instants[number + 1] - scale.instants[number], 1)
            # Neighbours are on two lines, so that their words do not overlap.
            y = 12 if sum(scale.idle[:number]) % 2 else 24
            yield f'<text x="{(left + right) // 2}" y="{y}" font-size="11" text-anchor="middle">{words}</text>'


def _row(bar: TimeBar, scale: TimeScale, top: int) -> Iterator[str]:
    left, text_y = _x(scale.position(bar.since)), top + _ROW - 9
    right = left + _OPEN if bar.until is None else max(left + _LEAST, _x(scale.position(bar.until)))
    is_current = bar.until is None
    yield f'<rect x="{_MARGIN}" y="{top}" width="{_LABELS + _TRACK + _WORDS}" height="{_ROW}" fill-opacity="0"/>'
    yield f'<text x="{_MARGIN}" y="{text_y}">{escape(_cut(bar.title))}</text>'
    colour = f'fill="{_CURRENT if is_current else _STEP}" fill-opacity="0.5"'
    dashes = ' stroke="currentColor" stroke-dasharray="3 3"' if is_current else ""
    place = f'x="{left}" y="{top + (_ROW - _BAR) // 2}" width="{right - left}" height="{_BAR}" rx="2"'
    yield f"<rect {place} {colour}{dashes}/>"
    for at in bar.refused:
        x, y = _x(scale.position(at)), top + _ROW // 2
        yield f'<path d="M{x - 4} {y - 4} L{x + 4} {y + 4} M{x - 4} {y + 4} L{x + 4} {y - 4}" stroke="{_REFUSED}"/>'
    yield f'<text x="{_MARGIN + _LABELS + _TRACK + 6}" y="{text_y}" font-size="11">{escape(bar.words)}</text>'


def time_text(bars: Sequence[TimeBar]) -> str:
    """Return the bars as lines of text, for where no picture can be shown."""
    scale, lines = time_scale(bars), list[str]()
    for bar in bars:
        left = round(scale.position(bar.since) * (_TEXT_TRACK - 1))
        right = round(scale.position(bar.until) * (_TEXT_TRACK - 1)) if bar.until is not None else _TEXT_TRACK - 1
        track = " " * left + ("█" if bar.until is not None else "░") * max(1, right - left)
        lines.append(f"{_cut(bar.title):<{_TITLE_CHARS + 1}} │{track:<{_TEXT_TRACK}}│ {bar.words}")
    return "\n".join(lines)


def _cut(title: str) -> str:
    first, *more = wrap_text(flat(title), _TITLE_CHARS) or [""]
    return f"{first}…" if more else first
