"""The state of a run in its plan: which nodes are resolved, which edges were taken, and which node is next.

One rule covers all joins: a node is ready when every edge into it is resolved and one of them was taken. If all are
dead, it is skipped, and the edges out of it are dead too. A resolved node is completed or skipped. A completed decision
takes only the edge that was chosen; every other completed node takes all its edges.
"""

from bisect import insort
from collections.abc import Iterator, Sequence
from itertools import chain, filterfalse, islice

from interlock.kernel.frozen import frozen
from interlock.plan.graph import BARRIERS, Graphs
from interlock.plan.records import PlanEdge, PlanNode
from interlock.record.snapshot import Complete, KeySet, LoopFrame, Running


@frozen
class OpenNode:
    """The next node that is not resolved; `is_dead` if no edge into it was taken."""

    node: PlanNode
    is_dead: bool


def _prefix(stack: Sequence[LoopFrame]) -> str:
    path = "/".join(f"{frame.loop_id}@{frame.iteration}" for frame in stack)
    return f"{path}::" if path else ""


class ExecutionState:
    """The state of a walk: which nodes are completed or skipped, and which edges are taken. It can be changed."""

    def __init__(self, graphs: Graphs, state: Running | Complete | None = None) -> None:
        self.graphs = graphs
        self.stack: list[LoopFrame] = list(state.loop_stack) if isinstance(state, Running) else []
        stored = (state.completed, state.skipped, state.edges_taken) if state is not None else (_NONE, _NONE, _NONE)
        self.completed, self.skipped, self.taken = map(_Marked, stored)
        self._resolved_to: dict[str, int] = {}
        """By prefix, how many nodes of that scope are known to be resolved: nodes are resolved in plan order."""

    @property
    def scope(self) -> str | None:
        """The loop whose body is being walked, if any."""
        return self.stack[-1].loop_id if self.stack else None

    @property
    def prefix(self) -> str:
        """The common prefix of the keys of the nodes in scope."""
        return _prefix(self.stack)

    def key(self, name: str) -> str:
        """Return the key of a node or edge in scope."""
        return self.prefix + name

    def next_open(self) -> OpenNode | None:
        """Return the first unresolved node in scope. Plan order ensures that the edges into it are resolved."""
        prefix = self.prefix
        keys = map(prefix.__add__, islice(self.graphs.names[self.scope], self._resolved_to.get(prefix, 0), None))
        not_completed = filterfalse(self.completed.__contains__, keys)
        key = next(filterfalse(self.skipped.__contains__, not_completed), None)
        if key is None:
            return None
        node = self.graphs.nodes[key.removeprefix(prefix)]
        edges = self.graphs.in_edges.get(node.node_id, ())
        is_dead = bool(edges) and not any(self.is_taken(edge, prefix) for edge in edges)
        return OpenNode(node=node, is_dead=is_dead)

    def is_taken(self, edge: PlanEdge, prefix: str) -> bool:
        """Say whether an edge was taken; `prefix` is that of the keys of its graph."""
        if prefix + edge.source not in self.completed:
            return False
        is_chosen = self.graphs.nodes[edge.source].kind == "decision"
        return not is_chosen or prefix + edge.edge_id in self.taken

    def complete(self, node_id: str) -> None:
        """Mark a node in scope, the next open one, as completed."""
        self._resolve(self.completed, node_id)

    def skip(self, node_id: str) -> None:
        """Mark a node in scope, the next open one, as skipped."""
        self._resolve(self.skipped, node_id)

    def _resolve(self, marked: "_Marked", node_id: str) -> None:
        prefix = self.prefix
        marked.mark(prefix + node_id)
        self._resolved_to[prefix] = self.graphs.position_of[node_id] + 1

    def ready_beside(self, node_id: str) -> dict[str, str]:
        """Return the other steps that can begin while a step is pending, each with its key, in plan order.

        They are parallel to the step and ready now: no unfinished step, loop or decision comes before them. So the run
        comes to each of them whatever the others report, and none follows from another.
        """
        prefixes: dict[str | None, str] = {None: ""}
        for depth, frame in enumerate(self.stack, start=1):
            prefixes[frame.loop_id] = _prefix(self.stack[:depth])
        parallel = self.graphs.parallel_to(node_id)
        if not parallel:
            return {}
        ready = {step: prefix + step for scope, prefix in prefixes.items() for step in self._ready_in(scope, prefix)}
        return {step: ready[step] for step in parallel if step in ready}

    def _ready_in(self, scope: str | None, prefix: str) -> Iterator[str]:
        """Yield the unfinished steps of a scope to which completed nodes, splits and barriers alone lead."""
        passed, waiting = set[str](), set[str]()
        for node in self.graphs.members[scope]:
            name = node.node_id
            if prefix + name in self.completed or prefix + name in self.skipped:
                continue
            edges = self.graphs.in_edges.get(name, ())
            if any(edge.source in waiting for edge in edges):
                waiting.add(name)
            elif not edges or any(edge.source in passed or self.is_taken(edge, prefix) for edge in edges):
                (passed if node.kind in BARRIERS else waiting).add(name)
                if node.kind == "task":
                    yield name

    def is_first_beside(self, node_id: str, other: str) -> bool:
        """Say whether a pending step is the first one since another step of its scope became ready."""
        graphs = self.graphs
        begins = max((graphs.position_of[one] for one in graphs.before(other)), default=-1)
        between = graphs.names[graphs.scope_of[node_id]][begins + 1 : graphs.position_of[node_id]]
        return not any(graphs.nodes[one].kind == "task" and self.key(one) in self.completed for one in between)

    def take(self, edge: PlanEdge) -> None:
        """Mark the edge that a decision chose."""
        self.taken.mark(self.key(edge.edge_id))

    def enter(self, frame: LoopFrame) -> None:
        """Begin the first pass of a loop."""
        self.stack.append(frame)

    def begin_next_pass(self, frame: LoopFrame) -> None:
        """Begin the next pass of the innermost loop; the keys of the finished one are removed (SNAP-6)."""
        self._forget_pass()
        self.stack[-1] = frame

    def leave(self) -> None:
        """End the innermost loop, which is completed; the keys of its passes are removed (SNAP-6)."""
        self._forget_pass()
        self.complete(self.stack.pop().loop_id)

    def _forget_pass(self) -> None:
        for marked in (self.completed, self.skipped, self.taken):
            marked.forget(self.prefix)
        self._resolved_to.pop(self.prefix, None)

    def sets(self) -> tuple[KeySet, KeySet, KeySet]:
        """Return completed, skipped and taken as they are stored."""
        return self.completed.stored(), self.skipped.stored(), self.taken.stored()


class _Marked:
    """Marked keys: stored ones that are kept, and new ones. A long plan stores a thousand, and few are asked for."""

    def __init__(self, before: KeySet) -> None:
        self._kept = before
        self._new = set[str]()

    def __contains__(self, key: str) -> bool:
        return key in self._new or key in self._kept

    def __iter__(self) -> Iterator[str]:
        return chain(self._kept.values, self._new)

    def mark(self, key: str) -> None:
        """Add a key."""
        if key not in self._kept:
            self._new.add(key)

    def forget(self, prefix: str) -> None:
        """Remove the keys that begin so."""
        kept = tuple(key for key in self._kept.values if not key.startswith(prefix))
        if len(kept) < len(self._kept.values):
            self._kept = _in_order(kept)
        self._new = {key for key in self._new if not key.startswith(prefix)}

    def stored(self) -> KeySet:
        """Return the keys as they are stored."""
        if not self._new:
            return self._kept
        values = list(self._kept.values)
        for key in self._new:
            insort(values, key)
        return _in_order(tuple(values))


def _in_order(values: tuple[str, ...]) -> KeySet:
    """Build a set from keys in order, which are not validated again."""
    return KeySet(kind="set", values=values)


_NONE = _in_order(())
