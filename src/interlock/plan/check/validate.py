"""Checks the graph of a plan before it runs, and reports every fault at once."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import get_args

from interlock.define.diagnostics import Diagnostic, DiagnosticCode, Diagnostics, fault, suggest_name, warning
from interlock.plan.graph import Graphs
from interlock.plan.records import NOTES_CONTRACT, STEP_INPUT, NodeKind, Owner, Plan, PlanEdge, PlanNode
from interlock.record.outcome import Capability

_NEEDS_EVIDENCE = frozenset({"agent", "plugin", "verifier", "human_gate"})
_SAFE = re.compile(r"[a-z0-9_-]+")
_SAFE_EDGE = re.compile(r"[a-z0-9_>-]+")
_NEEDS_INPUT = frozenset({"agent", "plugin", "human_gate"})
_WAITING: frozenset[Owner] = frozenset({"plugin", "human_gate"})
_HARNESS: frozenset[Owner] = frozenset({"harness"})
_NO_WORK: frozenset[Owner] = frozenset({"harness", "plugin"})
"""Owners whose nodes end without an agent or a person: a loop of such nodes alone would run by itself."""
_OWNERS: Mapping[NodeKind, frozenset[Owner]] = {
    "task": frozenset({"agent", "verifier", "plugin", "human_gate"}),
    "decision": _HARNESS,
    "fan_out": _HARNESS,
    "fan_in": _HARNESS,
    "loop": _HARNESS,
    "terminal": _HARNESS,
}
"""Who resolves a node of each kind: nobody executes a plan whose nodes have other owners."""


def validate_plan(plan: Plan, contracts: Iterable[str] | None = None) -> Diagnostics:
    """Return every fault of a plan; a plan without errors always runs to its end.

    Args:
        plan: Any plan, however broken.
        contracts: The contract references that exist; None skips their check.
    """
    graphs = Graphs.of(plan)
    known = frozenset(contracts) if contracts is not None else None
    faults = [
        *_names(plan),
        *_duplicates(plan),
        *_wiring(plan, graphs),
        *_schemas(plan, known),
        *_loops(plan, graphs),
        *_parts(plan, graphs),
        *check_verified(plan),
        *_waiting(plan),
    ]
    for scope in graphs.members:
        faults += _shape(scope, graphs)
    return tuple(faults)


def _node(node_id: str, code: DiagnosticCode, message: str, fix: str) -> Diagnostic:
    return fault(f"plan.nodes[{node_id}]", code, message, fix)


def _edge(edge: PlanEdge, code: DiagnosticCode, message: str, fix: str) -> Diagnostic:
    return fault(f"plan.edges[{edge.edge_id}]", code, message, fix)


def _names(plan: Plan) -> Iterator[Diagnostic]:
    """Check ids and capabilities again: a plan may have been built without the checks of its records."""
    known = frozenset(get_args(Capability))
    for node in plan.nodes:
        if not _SAFE.fullmatch(node.node_id):
            message = f"{node.node_id!r} contains characters that step keys reserve."
            yield _node(node.node_id, "invalid_identifier", message, "Use only a-z, 0-9, `_` and `-`.")
        for capability in node.capabilities:
            if capability not in known:
                fix = f"Use one of {', '.join(sorted(known))}."
                yield _node(node.node_id, "unknown_capability", f"There is no capability {capability!r}.", fix)
    for edge in plan.edges:
        if not _SAFE_EDGE.fullmatch(edge.edge_id):
            message = f"The edge id {edge.edge_id!r} contains characters that step keys reserve, or none."
            yield _edge(edge, "invalid_identifier", message, f"For example `{edge.source}>{edge.target}`.")


def _duplicates(plan: Plan) -> Iterator[Diagnostic]:
    for node_id, times in Counter(node.node_id for node in plan.nodes).items():
        if times > 1:
            yield _node(
                node_id, "duplicate_node_id", f"{times} nodes have the id {node_id!r}.", "Rename one of the nodes."
            )
    for edge_id, times in Counter(edge.edge_id for edge in plan.edges).items():
        if times > 1:
            message = f"{times} edges have the id {edge_id!r}."
            yield fault(f"plan.edges[{edge_id}]", "duplicate_edge_id", message, "Rename or remove all but one.")
    parts = {
        "loops": [loop.loop_id for loop in plan.loops],
        "conditions": [named.condition_id for named in plan.conditions],
    }
    for kind, names in parts.items():
        for name, times in Counter(names).items():
            if times > 1:
                message = f"{times} {kind} have the id {name!r}."
                yield fault(f"plan.{kind}[{name}]", "duplicate_id", message, "Rename or remove all but one.")


def _wiring(plan: Plan, graphs: Graphs) -> Iterator[Diagnostic]:
    at = {node.node_id: number for number, node in enumerate(plan.nodes)}
    for edge in plan.edges:
        missing = [end for end in (edge.source, edge.target) if end not in graphs.nodes]
        if missing:
            yield _edge(edge, "dangling_edge", f"There is no node {missing[0]!r}.", "Name a node of the plan.")
            continue
        if edge.source == edge.target:
            yield _edge(edge, "self_loop", f"{edge.source!r} leads to itself.", "Use a loop.")
        elif graphs.scope_of[edge.source] != graphs.scope_of[edge.target]:
            yield _edge(
                edge,
                "dangling_edge",
                "The edge leads into or out of a loop's body.",
                "Connect only nodes of the same loop body, or nodes outside of all loops.",
            )
        elif at[edge.source] > at[edge.target]:
            yield _edge(
                edge, "unbounded_loop", f"The edge leads back to {edge.target!r}.", "Use a loop with `maxIterations`."
            )
        if edge.condition_id not in graphs.conditions and (edge.kind == "conditional" or edge.condition_id is not None):
            message = "A conditional edge has no condition, or one that does not exist."
            yield _edge(edge, "missing_condition", message, "Give the edge a condition.")


def missing_contracts(at: str, node_id: object, owner: str, named: Mapping[str, bool]) -> Iterator[Diagnostic]:
    """Yield a fault for each contract that a node of this owner must name and does not.

    `named` says of `evidenceSchemaRef` and `inputSchemaRef` whether they are there.
    """
    if owner in _NEEDS_EVIDENCE and not named["evidenceSchemaRef"]:
        message = f"{node_id!r} does not name its evidence contract."
        fix = f"Add `evidenceSchemaRef`: `{NOTES_CONTRACT}` for notes alone, or another contract."
        yield fault(at, "missing_evidence_schema", message, fix)
    if owner in _NEEDS_INPUT and not named["inputSchemaRef"]:
        message = f"{node_id!r} does not name its input contract."
        yield fault(at, "missing_input_schema", message, f"Add `inputSchemaRef`, for example `{STEP_INPUT}`.")


def _schemas(plan: Plan, known: frozenset[str] | None) -> Iterator[Diagnostic]:
    for node in plan.nodes:
        refs = {"evidenceSchemaRef": node.evidence_schema_ref, "inputSchemaRef": node.input_schema_ref}
        named = {name: ref is not None for name, ref in refs.items()}
        yield from missing_contracts(f"plan.nodes[{node.node_id}]", node.node_id, node.owner, named)
        for ref in (node.input_schema_ref, node.evidence_schema_ref):
            if known is not None and ref is not None and ref not in known:
                yield _node(
                    node.node_id, "unknown_contract_ref", f"There is no contract {ref!r}.", "Name an existing contract."
                )


def _loops(plan: Plan, graphs: Graphs) -> Iterator[Diagnostic]:
    listed = Counter(node_id for loop in plan.loops for node_id in loop.body)
    for loop in plan.loops:
        at = loop.loop_id
        if at not in graphs.nodes or graphs.nodes[at].kind != "loop":
            yield fault(f"plan.loops[{at}]", "dangling_edge", f"There is no loop node {at!r}.", "Add the loop node.")
        missing = [node_id for node_id in loop.body if node_id not in graphs.nodes or listed[node_id] > 1]
        if missing:
            message = (
                f"{missing[0]!r} in the body of the loop {at!r} is not a node of the plan, or is in two loop bodies."
            )
            yield fault(f"plan.loops[{at}]", "dangling_edge", message, "Name each node in exactly one loop body.")
        elif not _has_work(at, graphs, frozenset()):
            message = f"The loop {at!r} contains no step for an agent or a person."
            yield fault(f"plan.loops[{at}]", "automatic_cycle", message, "Put a step into the body of the loop.")
        needs_condition = loop.kind in {"while", "until"} or loop.condition_id is not None
        if needs_condition and loop.condition_id not in graphs.conditions:
            yield fault(
                f"plan.loops[{at}]",
                "missing_condition",
                f"The loop {at!r} has no condition.",
                "Give the loop a condition.",
            )
        if _is_in_itself(at, graphs):
            message = f"The loop {at!r} is inside itself."
            yield fault(f"plan.loops[{at}]", "unreachable_node", message, "Take it out of its own body.")
    for node in plan.nodes:
        if node.kind == "loop" and node.node_id not in graphs.loops:
            message = f"The loop {node.node_id!r} has no body and no bound."
            yield _node(node.node_id, "unbounded_loop", message, "Give the loop a body and `maxIterations`.")


def _is_in_itself(loop_id: str, graphs: Graphs) -> bool:
    """Say whether the scopes around a loop never end at the outermost one."""
    around: set[str] = set()
    scope = graphs.scope_of.get(loop_id)
    while scope is not None and scope not in around:
        around.add(scope)
        scope = graphs.scope_of.get(scope)
    return scope is not None


def _has_work(loop_id: str, graphs: Graphs, above: frozenset[str]) -> bool:
    for node_id in graphs.loops[loop_id].body:
        node = graphs.nodes.get(node_id)
        if node is None or node_id in above:
            continue
        if node.owner not in _NO_WORK:
            return True
        if node_id in graphs.loops and _has_work(node_id, graphs, above | {loop_id}):
            return True
    return False


def _parts(plan: Plan, graphs: Graphs) -> Iterator[Diagnostic]:
    """Check that each part has the fields that its kind needs."""
    for node in plan.nodes:
        if (node.kind == "task") != (node.task is not None):
            message = f"{node.node_id!r} is a {node.kind} {'without' if node.task is None else 'with'} a task."
            yield _node(node.node_id, "unfit_node", message, "Give a task to nodes of kind `task` only.")
        if node.owner not in _OWNERS[node.kind]:
            message = f"A node of kind `{node.kind}` cannot have the owner `{node.owner}`."
            yield _node(node.node_id, "unfit_node", message, f"Write {' or '.join(sorted(_OWNERS[node.kind]))}.")
    for loop in plan.loops:
        for kind, held, name in (("for", loop.count, "count"), ("for_each", loop.items, "items")):
            if loop.kind == kind and held is None:
                message = f"The loop {loop.loop_id!r} does not say its `{name}`."
                yield fault(f"plan.loops[{loop.loop_id}]", "unfit_node", message, f"Add `{name}` to the loop.")
    for edge in plan.edges:
        source = graphs.nodes.get(edge.source)
        if edge.kind != "conditional" and edge.condition_id is not None:
            message = f"An edge of kind `{edge.kind}` has a condition."
            yield _edge(edge, "unfit_node", message, "Write `conditional`, or no condition.")
        if edge.kind == "conditional" and source is not None and source.kind != "decision":
            message = f"The edge's condition is never read: {edge.source!r} is not a decision."
            yield _edge(edge, "unfit_node", message, "Put a decision before it.")


def _waiting(plan: Plan) -> Iterator[Diagnostic]:
    """Check that the steps of the owners `plugin` and `human_gate` are those that wait for an event."""
    for node in plan.nodes:
        waits = node.task is not None and node.task.awaits is not None
        if node.task is not None and (node.owner in _WAITING) != waits:
            message = f"{node.node_id!r} has the owner `{node.owner}` and {'an' if waits else 'no'} event to wait for."
            yield _node(
                node.node_id, "unfit_node", message, "Only steps of the owners `plugin` and `human_gate` have `awaits`."
            )


def check_verified(plan: Plan) -> Iterator[Diagnostic]:
    """Yield each step that verifies a step which does not come before it in the plan (IR-16)."""
    before: list[str] = []
    for node in plan.nodes:
        if node.task is None:
            continue
        for verified in node.task.verifies:
            if verified not in before:
                guess = suggest_name(verified, before)
                message = f"{node.node_id!r} verifies {verified!r}, which is no step before it."
                fix = f"Did you mean `{guess}`?" if guess else "Name a step that comes before it."
                yield _node(node.node_id, "unknown_step", message, fix)
        if node.task.by is not None and not node.task.verifies:
            message = f"{node.node_id!r} verifies no step, so `by` excludes no actor."
            yield _node(node.node_id, "unfit_node", message, "Name the steps that it verifies, or leave out `by`.")
        before.append(node.node_id)


def _shape(scope: str | None, graphs: Graphs) -> Iterator[Diagnostic]:
    """Check one graph: an entry, a terminal that every node leads to, and a default edge of each decision."""
    nodes = graphs.members[scope]
    where = f"plan.loops[{scope}]" if scope is not None else "plan"
    entries = [node for node in nodes if not graphs.in_edges.get(node.node_id)]
    terminals = [node.node_id for node in nodes if node.kind == "terminal"]
    if not entries:
        yield fault(
            where,
            "missing_entry",
            "The graph has no first node: every node has an edge into it.",
            "Remove the edges into the first node.",
        )
    from_entry = _reached([node.node_id for node in entries[:1]], _targets(graphs))
    to_terminal = _reached(terminals, _sources(graphs))
    yield from _ends(nodes, from_entry if entries else set(terminals), graphs, where)
    for node in nodes:
        yield from _exits(node, graphs)
        if node.kind == "terminal":
            continue
        is_isolated = not graphs.in_edges.get(node.node_id) and not graphs.out_edges.get(node.node_id)
        if is_isolated and len(nodes) > 1:
            message = f"Nothing leads to {node.node_id!r} or away from it."
            yield warning(f"plan.nodes[{node.node_id}]", "isolated_node", message, "Connect it or remove it.")
        elif entries and node.node_id not in from_entry:
            message = f"No path leads from the entry to {node.node_id!r}."
            yield _node(node.node_id, "unreachable_node", message, "Add an edge to this node.")
        elif terminals and node.node_id not in to_terminal:
            message = f"No path leads from {node.node_id!r} to an end."
            yield _node(node.node_id, "unreachable_terminal", message, "Add an edge from this node.")


def _ends(nodes: Sequence[PlanNode], reached: set[str], graphs: Graphs, where: str) -> Iterator[Diagnostic]:
    """Check that a graph has one end, its last node: a run ends at the first end that it reaches."""
    terminals = [node.node_id for node in nodes if node.kind == "terminal"]
    if not terminals:
        yield fault(
            where, "no_terminal_node", "The graph has no terminal node, which ends the run.", "Add a terminal node."
        )
    lost = [terminal for terminal in terminals if terminal not in reached]
    for terminal in lost:
        yield _node(terminal, "unreachable_terminal", "No edge leads to this end.", "Add an edge from the last node.")
    leads_on = any(graphs.out_edges.get(terminal) for terminal in terminals)
    if terminals and not lost and not leads_on and terminals != [nodes[-1].node_id]:
        message = f"The graph ends at {terminals[0]!r}, but {nodes[-1].node_id!r} comes after it."
        yield _node(terminals[0], "unreachable_terminal", message, "Let every path lead to one end, the last node.")


def _exits(node: PlanNode, graphs: Graphs) -> Iterator[Diagnostic]:
    out = graphs.out_edges.get(node.node_id, ())
    if node.kind == "decision":
        yield from _choices(node, out)
    if node.kind == "terminal" and out:
        yield _node(node.node_id, "unreachable_terminal", "An edge leads out of an end.", "Remove the edge.")


def _choices(node: PlanNode, out: Sequence[PlanEdge]) -> Iterator[Diagnostic]:
    """Check that a decision has something to decide, and exactly one edge for the case that no condition is true."""
    defaults = [edge for edge in out if edge.condition_id is None and edge.kind != "conditional"]
    if not defaults:
        message = f"All conditions of {node.node_id!r} may be false."
        yield _node(node.node_id, "no_default_branch", message, "Add an edge without a condition.")
    for edge in defaults[1:]:
        message = f"{node.node_id!r} has another edge without a condition, `{defaults[0].edge_id}`: only that is taken."
        yield _edge(edge, "missing_condition", message, "Give the edge the kind `conditional` and a `conditionId`.")
    if len(defaults) == len(out):
        message = f"No edge of the decision {node.node_id!r} has a condition, so there is nothing to decide."
        fix = "Give one of its edges a condition, or remove the decision."
        yield _node(node.node_id, "missing_condition", message, fix)


def _targets(graphs: Graphs) -> Mapping[str, tuple[str, ...]]:
    return {node: tuple(edge.target for edge in edges) for node, edges in graphs.out_edges.items()}


def _sources(graphs: Graphs) -> Mapping[str, tuple[str, ...]]:
    return {node: tuple(edge.source for edge in edges) for node, edges in graphs.in_edges.items()}


def _reached(begin: list[str], ways: Mapping[str, tuple[str, ...]]) -> set[str]:
    reached = set(begin)
    frontier = list(begin)
    while frontier:
        for further in ways.get(frontier.pop(), ()):
            if further not in reached:
                reached.add(further)
                frontier.append(further)
    return reached
