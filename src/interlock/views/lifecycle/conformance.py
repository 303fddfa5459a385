"""Judges a list of lifecycle events against a plan: tells a possible history from an impossible one (LIFE-9).

Every fault is reported, each with its place. An event that is faulty is still applied where that is possible, so that
one wrong line does not make all later ones faulty.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Literal, TypeAlias, cast

from interlock.define.diagnostics import has_errors
from interlock.kernel.budgets import FOUND_BYTES_MAX
from interlock.kernel.budgets.operations import (
    LIFECYCLE_EVENT_BYTES_MAX,
    LIFECYCLE_REF_CHARS_MAX,
    LIFECYCLE_REFS_BYTES_MAX,
    LIFECYCLE_REFS_MAX,
)
from interlock.kernel.canonical import Json, NotCanonicalError, canonical_bytes
from interlock.kernel.frozen import frozen, mutable
from interlock.kernel.shape import ShapeError
from interlock.kernel.text import one_line
from interlock.plan.check.validate import validate_plan
from interlock.plan.graph import Graphs
from interlock.plan.records import Plan, PlanEdge, PlanNode
from interlock.views.lifecycle.events import LifecycleEvent

FaultCode = Literal[
    "invalid_plan",
    "unknown_node",
    "unknown_edge",
    "before_run_created",
    "created_twice",
    "after_end",
    "ended_twice",
    "scheduled_too_early",
    "started_without_schedule",
    "completed_without_start",
    "edge_not_open",
    "attempt_out_of_order",
    "retried_without_failure",
    "failure_without_reason",
    "ended_with_open_nodes",
    "checkpoint_without_reference",
    "over_budget",
    "not_an_identifier",
]
"""Why a list of events cannot be the lifecycle of a run of the plan: a closed set."""

_ENDS = frozenset({"workflow.run.completed", "workflow.run.failed", "workflow.run.cancelled"})


@frozen
class Fault:
    """One contradiction. `line` is the position of the event in the list, from 0; None if the plan is at fault."""

    code: FaultCode
    line: int | None
    where: str
    found: str


Found: TypeAlias = Iterator[tuple[FaultCode, str, str]]


def faults_of(events: Iterable[object], plan: Plan) -> tuple[Fault, ...]:
    """Return every fault of a list of events, each event as JSON; none if a run of the plan can have had them."""
    broken = [one for one in validate_plan(plan) if has_errors((one,))]
    if broken:
        return tuple(Fault(code="invalid_plan", line=None, where=one.path, found=one.code) for one in broken)
    check = _Check(graphs=Graphs.of(plan))
    faults: list[Fault] = []
    for line, body in enumerate(events):
        parsed = _parse(body)
        found = parsed if not isinstance(parsed, LifecycleEvent) else [*_over_budget(body), *check.apply(parsed)]
        faults += [Fault(code=code, line=line, where=where, found=what) for code, where, what in found]
    return tuple(faults)


def _parse(body: object) -> "LifecycleEvent | list[tuple[FaultCode, str, str]]":
    try:
        return LifecycleEvent.of_json(body)
    except ShapeError as error:
        over = [*_over_budget(body)]
        if over:
            return over
        return [
            ("not_an_identifier", ".".join(map(str, one["loc"])) or "event", one_line(one["msg"], FOUND_BYTES_MAX))
            for one in error.faults
        ]


def _over_budget(body: object) -> Found:
    """Yield what of an event is too large. The size is that of the event before it is parsed."""
    try:
        size = len(canonical_bytes(cast("Json", body)))
    except (NotCanonicalError, TypeError, RecursionError):
        return
    if size > LIFECYCLE_EVENT_BYTES_MAX:
        yield "over_budget", "event", f"{size} bytes, at most {LIFECYCLE_EVENT_BYTES_MAX}"
    refs = cast("Mapping[str, object]", body).get("refs") if isinstance(body, dict) else None
    if not isinstance(refs, list):
        return
    items = cast("list[object]", refs)
    if len(items) > LIFECYCLE_REFS_MAX:
        yield "over_budget", "refs", f"{len(items)} references, at most {LIFECYCLE_REFS_MAX}"
    for number, one in enumerate(items):
        ref = cast("Mapping[str, object]", one).get("ref") if isinstance(one, dict) else None
        if isinstance(ref, str) and len(ref.encode("utf-8", "replace")) > LIFECYCLE_REF_CHARS_MAX:
            yield "over_budget", f"refs.{number}", f"more than {LIFECYCLE_REF_CHARS_MAX} bytes"
    total = len(canonical_bytes(cast("Json", items)))
    if total > LIFECYCLE_REFS_BYTES_MAX:
        yield "over_budget", "refs", f"{total} bytes in all, at most {LIFECYCLE_REFS_BYTES_MAX}"


@mutable
class _Instance:
    """What is known of a node in its loop passes. `is_failed`: its attempt failed, and no later one began."""

    attempt: int = 0
    is_started: bool = False
    is_completed: bool = False
    is_failed: bool = False


@mutable
class _Check:
    graphs: Graphs
    is_created: bool = False
    end: str | None = None
    instances: dict[str, _Instance] = field(default_factory=dict[str, _Instance])
    traversed: set[str] = field(default_factory=set[str])
    dead_edges: set[str] = field(default_factory=set[str])
    dead: set[str] = field(default_factory=set[str])

    def apply(self, event: LifecycleEvent) -> Found:
        """Yield the faults of the next event, and apply it."""
        if event.kind == "workflow.run.created":
            if self.is_created:
                yield "created_twice", "kind", event.kind
            self.is_created = True
            return
        if not self.is_created:
            yield "before_run_created", "kind", event.kind
        # The notes of a step that is done can still be saved, so a complete run can have later checkpoints.
        is_late = event.kind == "workflow.checkpoint.saved" and self.end == "workflow.run.completed"
        if self.end is not None and not is_late:
            yield ("ended_twice" if event.kind in _ENDS else "after_end"), "kind", f"{event.kind} after {self.end}"
        if event.kind in _ENDS:
            yield from self._ended(event)
        elif event.kind == "workflow.checkpoint.saved":
            if not any(ref.kind == "snapshot" for ref in event.refs):
                yield "checkpoint_without_reference", "refs", "no snapshot"
        else:
            yield from self._node_event(event)

    def _ended(self, event: LifecycleEvent) -> Found:
        is_second, self.end = self.end is not None, self.end or event.kind
        if event.kind != "workflow.run.completed":
            if event.code is None:
                yield "failure_without_reason", "code", f"{event.kind} without a code"
            return
        if not is_second:
            nodes = (node.node_id for node in self.graphs.members[None])
            left = [key for key in nodes if key not in self.dead and not self._is_completed(key)]
            left += [key for key, one in self.instances.items() if not one.is_completed and key not in left]
            for key in left:
                yield "ended_with_open_nodes", "kind", key

    def _node_event(self, event: LifecycleEvent) -> Found:
        node = self.graphs.nodes.get(event.node or "")
        prefix = self._prefix(event, node) if node is not None else None
        if node is None or prefix is None:
            yield "unknown_node", "instance" if node is not None else "node", event.instance or event.node or "nothing"
            return
        key = prefix + node.node_id
        match event.kind:
            case "workflow.node.scheduled":
                yield from self._scheduled(key, prefix, node)
            case "workflow.node.started":
                yield from self._started(key, event)
            case "workflow.node.failed":
                yield from self._failed(key, event)
            case "workflow.node.retried":
                yield from self._retried(key, event)
            case "workflow.node.completed":
                yield from self._completed(key, node, event)
            case _:
                yield from self._edge(key, prefix, node, event)

    def _prefix(self, event: LifecycleEvent, node: PlanNode) -> str | None:
        """Return the prefix of an instance, or None if the node is not in these loops."""
        passes, _, name = (event.instance or "").rpartition("::")
        loops = tuple(one.partition("@")[0] for one in passes.split("/")) if passes else ()
        if name != node.node_id or loops != self.graphs.loops_around(node.node_id):
            return None
        return f"{passes}::" if passes else ""

    def _scheduled(self, key: str, prefix: str, node: PlanNode) -> Found:
        if key in self.instances:
            yield "scheduled_too_early", "instance", f"{key} is scheduled a second time"
            return
        waits_for = self._waits_for(prefix, node)
        if waits_for is not None:
            yield "scheduled_too_early", "instance", f"{key} waits for {waits_for}"
        self.instances[key] = _Instance()

    def _waits_for(self, prefix: str, node: PlanNode) -> str | None:
        """Return what has to be done before a node can be scheduled; None if nothing."""
        if prefix + node.node_id in self.dead:
            return "nothing: it is skipped"
        for edge in self.graphs.in_edges.get(node.node_id, ()):
            if not self._is_settled(prefix + edge.edge_id):
                return edge.source
        return self._waits_for_pass(prefix)

    def _waits_for_pass(self, prefix: str) -> str | None:
        """Return what has to be done before a loop pass can begin; None if nothing."""
        if not prefix:
            return None
        outer, _, innermost = prefix.removesuffix("::").rpartition("/")
        loop_id, _, number = innermost.partition("@")
        around = f"{outer}::" if outer else ""
        loop = self.instances.get(around + loop_id)
        if loop is None or loop.is_completed or int(number) >= self.graphs.loops[loop_id].max_iterations:
            return f"a pass {int(number) + 1} of {loop_id}"
        if number == "0":
            return None
        before = f"{around.removesuffix('::')}{'/' if outer else ''}{loop_id}@{int(number) - 1}::"
        terminals = [one for one in self.graphs.members[loop_id] if one.kind == "terminal"]
        is_over = any(self._is_completed(before + one.node_id) for one in terminals)
        return None if is_over else f"the end of pass {number} of {loop_id}"

    def _started(self, key: str, event: LifecycleEvent) -> Found:
        one = self.instances.get(key)
        if one is None or one.is_started:
            yield "started_without_schedule", "instance", key
        if event.attempt != 1:
            yield "attempt_out_of_order", "attempt", f"{event.attempt}, expected 1"
        one = self.instances.setdefault(key, _Instance())
        one.is_started, one.attempt = True, 1

    def _failed(self, key: str, event: LifecycleEvent) -> Found:
        one = self.instances.setdefault(key, _Instance())
        if event.code is None:
            yield "failure_without_reason", "code", f"{key} failed without a code"
        if not one.is_started or one.is_completed:
            yield "started_without_schedule", "instance", f"{key} is not under way"
        if one.is_failed or event.attempt != one.attempt:
            yield "attempt_out_of_order", "attempt", f"{event.attempt}, expected {one.attempt + one.is_failed}"
        one.is_failed = True

    def _retried(self, key: str, event: LifecycleEvent) -> Found:
        one = self.instances.setdefault(key, _Instance())
        if not one.is_failed:
            yield "retried_without_failure", "instance", key
        elif event.attempt != one.attempt + 1:
            yield "attempt_out_of_order", "attempt", f"{event.attempt}, expected {one.attempt + 1}"
        one.attempt, one.is_failed = one.attempt + 1, False

    def _completed(self, key: str, node: PlanNode, event: LifecycleEvent) -> Found:
        is_task, is_scheduled = node.kind == "task", key in self.instances
        one = self.instances.setdefault(key, _Instance())
        is_under_way = one.is_started if is_task else is_scheduled
        if one.is_completed or not is_under_way or one.is_failed:
            yield "completed_without_start", "instance", key
        elif is_task and event.attempt != one.attempt:
            yield "attempt_out_of_order", "attempt", f"{event.attempt}, expected {one.attempt}"
        one.is_completed = True

    def _edge(self, key: str, prefix: str, node: PlanNode, event: LifecycleEvent) -> Found:
        edges = self.graphs.out_edges.get(node.node_id, ())
        edge = next((one for one in edges if one.edge_id == event.edge), None)
        if edge is None:
            yield "unknown_edge", "edge", event.edge or "nothing"
            return
        name = prefix + edge.edge_id
        if not self._is_completed(key) or self._is_settled(name):
            yield "edge_not_open", "edge", edge.edge_id
        self.traversed.add(name)
        if node.kind == "decision":
            self._kill(prefix, [one for one in edges if one is not edge])

    def _kill(self, prefix: str, edges: Sequence[PlanEdge]) -> None:
        """Mark edges as dead, and every node and edge that only they lead to."""
        waiting = list(edges)
        while waiting:
            edge = waiting.pop()
            self.dead_edges.add(prefix + edge.edge_id)
            ways_in = self.graphs.in_edges[edge.target]
            if all(prefix + one.edge_id in self.dead_edges for one in ways_in):
                self.dead.add(prefix + edge.target)
                waiting += self.graphs.out_edges.get(edge.target, ())

    def _is_settled(self, edge: str) -> bool:
        return edge in self.traversed or edge in self.dead_edges

    def _is_completed(self, key: str) -> bool:
        one = self.instances.get(key)
        return one is not None and one.is_completed
