"""What the loops around a step add to the context that it sees."""

from collections.abc import Iterable

from interlock.kernel.canonical import Json
from interlock.plan.graph import Graphs
from interlock.record.context import Context
from interlock.record.snapshot import LoopFrame


def with_loop_variables(graphs: Graphs, context: Context, frames: Iterable[LoopFrame]) -> Context:
    """Return the context with what the loops around a step add: passes from 1, indexes from 0, items."""
    seen: dict[str, Json] | None = None
    for frame in frames:
        loop = graphs.loops[frame.loop_id]
        seen = dict(context) if seen is None else seen
        seen[loop.iteration_var] = frame.iteration + 1
        seen[loop.index_var] = frame.iteration
        if loop.item_var is not None and "item" in frame.model_fields_set:
            seen[loop.item_var] = frame.item
    return context if seen is None else seen
