"""The lists of running loops: a snapshot refers to them, and the context of the log has them (SNAP-8)."""

from collections.abc import Callable, Iterable, Sequence
from typing import cast

from interlock.decide.evaluate import NOT_SET, Undecided, value_at
from interlock.engine.template import with_loop_variables
from interlock.kernel.canonical import Json, canonical_bytes
from interlock.kernel.errors import InterlockError
from interlock.kernel.ids import NodeId
from interlock.plan.graph import Graphs
from interlock.record.context import Context
from interlock.record.snapshot import ListFrame, LoopFrame


class ItemMissingError(InterlockError):
    """The context that a loop's frame refers to does not have the item of its pass."""

    def __init__(self, frame: LoopFrame) -> None:
        super().__init__(f"item {frame.iteration + 1} of loop {frame.loop_id!r} is not in the context it refers to")


def load_lists(
    graphs: Graphs, stack: tuple[LoopFrame, ...], value: Callable[[NodeId, str], Json]
) -> tuple[LoopFrame, ...]:
    """Return the frames of running loops, with the list of each loop over a list.

    `value` returns a context key of a node, None if it is not set. The list of an inner loop may be part of the item of
    an outer one.

    Raises:
        ItemMissingError: A list does not have the item of its pass.
    """
    loaded: list[LoopFrame] = []
    for frame in stack:
        path = graphs.loops[frame.loop_id].items
        if path is None or frame.items_at is None:
            loaded.append(frame)
            continue
        key = path.partition(".")[0]
        seen = with_loop_variables(graphs, {key: value(frame.items_at, key)}, loaded)
        items = value_at(seen, path)
        if not isinstance(items, list) or frame.iteration >= len(cast("list[Json]", items)):
            raise ItemMissingError(frame)
        loaded.append(
            ListFrame(
                loop_id=frame.loop_id,
                iteration=frame.iteration,
                items_at=frame.items_at,
                items=cast("list[Json]", items),
            )
        )
    return tuple(loaded)


def read_lists_again(
    graphs: Graphs, stack: Iterable[LoopFrame], context: Context, node: NodeId
) -> tuple[LoopFrame, ...]:
    """Return the frames of running loops with their lists as the context of a node has them (WALK-10).

    A frame stays as it is if its list did not change, or has no item for the pass any more.
    """
    read: list[LoopFrame] = []
    for frame in stack:
        path = graphs.loops[frame.loop_id].items
        items = value_at(with_loop_variables(graphs, context, read), path) if path is not None else None
        read.append(_with_items(frame, cast("list[Json]", items), node) if isinstance(items, list) else frame)
    return tuple(read)


def _with_items(frame: LoopFrame, items: list[Json], node: NodeId) -> LoopFrame:
    if not isinstance(frame, ListFrame) or frame.iteration >= len(items) or is_same_list(frame.items, items):
        return frame
    return ListFrame(loop_id=frame.loop_id, iteration=frame.iteration, items_at=node, items=items)


def is_same_list(before: list[Json], items: list[Json]) -> bool:
    """Say whether two lists are equal, without comparing a list that did not change with itself."""
    return before is items or canonical_bytes(before) == canonical_bytes(items)


def name_list(graphs: Graphs, stack: Sequence[LoopFrame], found: Undecided) -> Undecided:
    """Point what is wrong with a loop's item at the list, because only the list can be sent.

    The list of an inner loop may be part of the item of an outer one.
    """
    for frame in reversed(stack):
        loop, (key, _, member) = graphs.loops[frame.loop_id], (found.path or "").partition(".")
        if loop.items is None or loop.item_var != key:
            continue
        what = f"has {found.found} as {member!r}" if member else f"is {found.found}"
        if member and found.found == NOT_SET:
            what = f"is without {member!r}"
        reported = f"a list whose item {frame.iteration + 1} {what}"
        wanted = f"a list whose items all have {member!r}, {found.expected}" if member else found.expected
        found = Undecided(path=loop.items, found=reported, expected=wanted)
    return found
