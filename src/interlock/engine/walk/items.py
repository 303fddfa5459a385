"""The lists of running loops: a snapshot refers to them, and the context of the log has them (SNAP-8)."""

from collections.abc import Callable
from typing import cast

from interlock.decide.evaluate import value_at
from interlock.engine.template import with_loop_variables
from interlock.kernel.canonical import Json
from interlock.kernel.errors import InterlockError
from interlock.kernel.ids import NodeId
from interlock.plan.graph import Graphs
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
