"""Places a chart on a plane: from top to bottom, in pixels, the same for the same chart. Draws nothing."""

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import field

from interlock.kernel.budgets.pictures import PICTURE_COLUMN_PX_MAX, PICTURE_TEXT_LINES_MAX
from interlock.kernel.frozen import frozen, mutable
from interlock.kernel.text import flat
from interlock.views.picture.chart import Box, Chart, ChartPart, Lane, fold_chart

BOX_WIDTH = 230
LINE_HEIGHT = 16
_CHARS = 32
_PADDING = 8
_GAP = 24
_FRAME = 12
_HEAD = 34
_TEXT_GAP = 6
_WIDE = frozenset("WF")


@frozen
class PlacedBox:
    """A box at its place. `x` is that of its left edge, `y` of its top."""

    box: Box
    lines: tuple[str, ...]
    x: int
    y: int
    height: int


@frozen
class PlacedFrame:
    """The frame around the body of a loop."""

    x: int
    y: int
    width: int
    height: int


@frozen
class PlacedText:
    """A line of text that begins at `x`."""

    x: int
    y: int
    text: str


@frozen
class PlacedArrow:
    """An arrow along these points. A branch is dashed; a line that only joins others has no tip."""

    points: tuple[tuple[int, int], ...]
    is_dashed: bool = False
    has_tip: bool = True


@mutable
class Placed:
    """A chart with the place of everything on it."""

    title: str
    width: int = 0
    height: int = 0
    boxes: list[PlacedBox] = field(default_factory=list[PlacedBox])
    frames: list[PlacedFrame] = field(default_factory=list[PlacedFrame])
    texts: list[PlacedText] = field(default_factory=list[PlacedText])
    arrows: list[PlacedArrow] = field(default_factory=list[PlacedArrow])


def place_chart(chart: Chart) -> Placed:
    """Return a chart with the place of everything on it, folded if it is too large to read."""
    folded = fold_chart(chart)
    placed = Placed(title=flat(chart.title))
    x, before = _GAP, None
    for column in _columns(folded.parts):
        size = _size_of(column)
        axis = x + size.left
        if before is not None:
            between = x - _GAP // 2
            points = (before, (before[0], before[1] + _GAP // 2), (between, before[1] + _GAP // 2))
            placed.arrows.append(PlacedArrow(points=(*points, (between, _GAP // 2), (axis, _GAP // 2), (axis, _GAP))))
        before = _place(placed, column, axis, _GAP)
        x += size.left + size.right + _GAP
        placed.height = max(placed.height, _GAP + size.height + _GAP)
    placed.width = x
    return placed


@frozen
class _Size:
    """How far something reaches to the left and to the right of its axis, and down."""

    left: int
    right: int
    height: int

    @property
    def width(self) -> int:
        return self.left + self.right


def _columns(parts: Sequence[ChartPart]) -> Iterator[tuple[ChartPart, ...]]:
    column, height = list[ChartPart](), 0
    for part in parts:
        size = _part_size(part)
        if column and height + size.height > PICTURE_COLUMN_PX_MAX:
            yield tuple(column)
            column, height = [], 0
        column.append(part)
        height += size.height + _GAP
    yield tuple(column)


def _size_of(parts: Sequence[ChartPart]) -> _Size:
    sizes = [_part_size(part) for part in parts]
    return _Size(
        left=max((size.left for size in sizes), default=BOX_WIDTH // 2),
        right=max((size.right for size in sizes), default=BOX_WIDTH // 2),
        height=sum(size.height for size in sizes) + _GAP * max(0, len(sizes) - 1),
    )


def _part_size(part: ChartPart) -> _Size:
    left = right = BOX_WIDTH // 2
    height = _box_height(part.box)
    if part.body:
        body = _size_of(part.body)
        left, right = max(left, body.left + _FRAME), max(right, body.right + _FRAME)
        height += _GAP + body.height + 2 * _FRAME
    if part.ways:
        lanes = [_size_of(lane.parts) for lane in part.ways]
        width = _row_width(lanes)
        left, right = max(left, width // 2), max(right, width - width // 2)
        height += _HEAD + max(lane.height for lane in lanes) + _GAP
    if part.branches:
        lanes = [_size_of(lane.parts) for lane in part.branches]
        right += _GAP + _row_width(lanes)
        height = max(height, _HEAD + max(lane.height for lane in lanes))
    return _Size(left=left, right=right, height=height)


def _row_width(lanes: Sequence[_Size]) -> int:
    return sum(lane.width for lane in lanes) + _GAP * (len(lanes) - 1)


def _place(placed: Placed, parts: Sequence[ChartPart], axis: int, y: int) -> tuple[int, int]:
    """Place parts below each other, and return the point from which the next arrow begins."""
    end: tuple[int, int] | None = None
    for part in parts:
        if end is not None:
            placed.arrows.append(PlacedArrow(points=(end, (axis, y))))
        end = _place_part(placed, part, axis, y)
        y += _part_size(part).height + _GAP
    return end if end is not None else (axis, y)


def _place_part(placed: Placed, part: ChartPart, axis: int, y: int) -> tuple[int, int]:
    height = _box_height(part.box)
    box = PlacedBox(box=part.box, lines=_lines(part.box), x=axis - BOX_WIDTH // 2, y=y, height=height)
    placed.boxes.append(box)
    below, own_right = (axis, y + height), BOX_WIDTH // 2
    if part.body:
        body = _size_of(part.body)
        own_right = max(own_right, body.right + _FRAME)
        below = _place_body(placed, part.body, *below)
    if part.ways:
        width = _row_width([_size_of(lane.parts) for lane in part.ways])
        own_right = max(own_right, width - width // 2)
        below = _place_ways(placed, part.ways, *below)
    if part.branches:
        _place_branches(placed, part.branches, (axis + BOX_WIDTH // 2, y + height // 2), axis + own_right + _GAP)
    return below


def _place_body(placed: Placed, body: Sequence[ChartPart], axis: int, y: int) -> tuple[int, int]:
    size, top = _size_of(body), y + _GAP
    width, height = size.width + 2 * _FRAME, size.height + 2 * _FRAME
    placed.frames.append(PlacedFrame(x=axis - size.left - _FRAME, y=top, width=width, height=height))
    placed.arrows.append(PlacedArrow(points=((axis, y), (axis, top + _FRAME))))
    _place(placed, body, axis, top + _FRAME)
    return axis, top + height


def _place_ways(placed: Placed, ways: Sequence[Lane], axis: int, y: int) -> tuple[int, int]:
    lanes = [_size_of(lane.parts) for lane in ways]
    x, bottom = axis - _row_width(lanes) // 2, y + _HEAD + max(lane.height for lane in lanes)
    for way, lane in zip(ways, lanes, strict=True):
        lane_axis, top = x + lane.left, y + _HEAD
        fork = y + _GAP // 4
        way_in = ((axis, y), (axis, fork), (lane_axis, fork), (lane_axis, top))
        placed.arrows.append(PlacedArrow(points=way_in, has_tip=bool(way.parts)))
        placed.texts.append(PlacedText(x=lane_axis + _TEXT_GAP, y=y + _HEAD // 2 + 4, text=_cut(way.label, lane.right)))
        end = _place(placed, way.parts, lane_axis, top)
        join = bottom + _GAP // 2
        way_out = (end, (lane_axis, join), (axis, join), (axis, bottom + _GAP))
        placed.arrows.append(PlacedArrow(points=way_out, has_tip=False))
        x += lane.width + _GAP
    return axis, bottom + _GAP


def _place_branches(placed: Placed, branches: Sequence[Lane], begin: tuple[int, int], x: int) -> None:
    for branch in branches:
        lane = _size_of(branch.parts)
        axis, top = x + lane.left, begin[1] + _HEAD - LINE_HEIGHT
        placed.arrows.append(PlacedArrow(points=(begin, (axis, begin[1]), (axis, top)), is_dashed=True))
        placed.texts.append(
            PlacedText(x=axis + _TEXT_GAP, y=begin[1] + LINE_HEIGHT // 2, text=_cut(branch.label, lane.right))
        )
        _place(placed, branch.parts, axis, top)
        x += lane.width + _GAP


def _box_height(box: Box) -> int:
    return len(_lines(box)) * LINE_HEIGHT + 2 * _PADDING


def _lines(box: Box) -> tuple[str, ...]:
    lines = [line for text in box.lines for line in wrap_text(flat(text), _CHARS)]
    if len(lines) > PICTURE_TEXT_LINES_MAX:
        lines = [*lines[: PICTURE_TEXT_LINES_MAX - 1], f"{lines[PICTURE_TEXT_LINES_MAX - 1][: _CHARS - 1]}…"]
    return tuple(lines) or ("",)


def _cut(label: str, width: int) -> str:
    chars = max(1, (width - _TEXT_GAP) * _CHARS // BOX_WIDTH)
    lines = wrap_text(flat(label), chars)
    return "" if not lines else lines[0] if len(lines) == 1 else f"{lines[0]}…"


def wrap_text(text: str, columns: int) -> list[str]:
    """Return a text as lines of at most so many columns; a wide character takes two."""
    lines, line = list[str](), ""
    for word in text.split(" "):
        rest = word
        joined = f"{line} {rest}" if line else rest
        if _columns_of(joined) <= columns:
            line = joined
            continue
        if line:
            lines.append(line)
        while _columns_of(rest) > columns:
            head = _head(rest, columns)
            lines.append(head)
            rest = rest[len(head) :]
        line = rest
    return [*lines, line] if line else lines


def _head(word: str, columns: int) -> str:
    """Return the beginning of a word that fits, at least one character."""
    end, taken = 0, 0
    while end < len(word) and (end == 0 or taken + _columns_of(word[end]) <= columns):
        taken += _columns_of(word[end])
        end += 1
    return word[:end]


def _columns_of(text: str) -> int:
    return len(text) if text.isascii() else sum(2 if unicodedata.east_asian_width(one) in _WIDE else 1 for one in text)
