"""A picture as data: boxes in sequence, with ways side by side, frames around loops and branches beside a box."""

from collections.abc import Iterable, Iterator
from typing import Literal

from interlock.kernel.budgets.pictures import (
    PICTURE_BRANCHES_MAX,
    PICTURE_DEPTH_MAX,
    PICTURE_LINE_MAX,
    PICTURE_PARTS_MAX,
)
from interlock.kernel.frozen import frozen, replace

BoxKind = Literal["step", "decision", "barrier", "loop", "end", "refused", "current", "folded"]


@frozen
class Box:
    """A box with its lines of text. `steps` is how many steps it is for; `node` the node of a run that it shows."""

    kind: BoxKind
    lines: tuple[str, ...]
    steps: int = 1
    node: str | None = None


@frozen
class Lane:
    """Parts in sequence, below a label."""

    label: str
    parts: tuple["ChartPart", ...]


@frozen
class ChartPart:
    """A box and what belongs to it.

    `ways` lead from the box and meet again at the next part. `body` is inside a frame below the box, as the steps of a
    loop are. `branches` lead away from the box and do not come back.
    """

    box: Box
    ways: tuple[Lane, ...] = ()
    body: tuple["ChartPart", ...] = ()
    branches: tuple[Lane, ...] = ()


@frozen
class Chart:
    """A picture: its title, and its parts in sequence."""

    title: str
    parts: tuple[ChartPart, ...]


def fold_chart(chart: Chart) -> Chart:
    """Return the chart, or one that a person can read if it has too many parts.

    Frames, then ways and branches, become one box each that says how many steps it holds; a sequence that is still too
    long keeps its beginning and its end. Nesting deeper than the limit is always folded.
    """
    parts = _cut_depth(chart.parts, PICTURE_DEPTH_MAX)
    if _count(parts) > PICTURE_PARTS_MAX:
        parts = tuple(_fold_body(part) for part in parts)
    if _count(parts) > PICTURE_PARTS_MAX:
        parts = tuple(_fold_lanes(part) for part in parts)
    if len(parts) > PICTURE_LINE_MAX:
        kept = PICTURE_LINE_MAX // 2
        parts = (*parts[:kept], _folded(parts[kept:-kept]), *parts[-kept:])
    return replace(chart, parts=parts)


def _cut_depth(parts: tuple[ChartPart, ...], depth: int) -> tuple[ChartPart, ...]:
    return tuple(
        replace(
            part,
            body=_cut_body(part.body, depth),
            ways=tuple(_cut_lane(lane, depth) for lane in part.ways),
            branches=_cut_branches(tuple(_cut_lane(lane, depth) for lane in part.branches)),
        )
        for part in parts
    )


def _cut_body(body: tuple[ChartPart, ...], depth: int) -> tuple[ChartPart, ...]:
    return _cut_depth(body, depth - 1) if depth > 0 or not body else (_folded(body),)


def _cut_lane(lane: Lane, depth: int) -> Lane:
    return replace(lane, parts=_cut_body(lane.parts, depth))


def _cut_branches(branches: tuple[Lane, ...]) -> tuple[Lane, ...]:
    if len(branches) <= PICTURE_BRANCHES_MAX:
        return branches
    left = branches[PICTURE_BRANCHES_MAX - 1 :]
    steps = [part for lane in left for part in lane.parts]
    return (
        *branches[: PICTURE_BRANCHES_MAX - 1],
        Lane(label=f"{len(left)} more branches", parts=(_folded(steps),)),
    )


def _fold_body(part: ChartPart) -> ChartPart:
    body = (_folded(part.body),) if part.body else ()
    ways = tuple(replace(lane, parts=tuple(map(_fold_body, lane.parts))) for lane in part.ways)
    branches = tuple(replace(lane, parts=tuple(map(_fold_body, lane.parts))) for lane in part.branches)
    return replace(part, body=body, ways=ways, branches=branches)


def _fold_lanes(part: ChartPart) -> ChartPart:
    return replace(part, ways=_fold_all(part.ways), branches=_fold_all(part.branches))


def _fold_all(lanes: tuple[Lane, ...]) -> tuple[Lane, ...]:
    return tuple(replace(lane, parts=(_folded(lane.parts),) if lane.parts else ()) for lane in lanes)


def _folded(parts: Iterable[ChartPart]) -> ChartPart:
    count = sum(part.box.steps for part in all_parts(parts))
    return ChartPart(box=Box(kind="folded", lines=("1 step" if count == 1 else f"{count} steps",), steps=count))


def _count(parts: Iterable[ChartPart]) -> int:
    return sum(1 for _ in all_parts(parts))


def all_parts(parts: Iterable[ChartPart]) -> Iterator[ChartPart]:
    """Yield parts and all parts inside them. Without recursion, as branches of branches can be deep."""
    waiting = list(parts)
    while waiting:
        part = waiting.pop()
        yield part
        waiting += [*part.body, *(one for lane in (*part.ways, *part.branches) for one in lane.parts)]
