"""Lowers a flow to a plan, which runs like that of a workflow (OPS-16).

Each slot is a step. Entry edges leave a fan-out; a conditional edge is a decision whose other way leads to the end. A
condition is evaluated if its predicate has a supported form, and decided by an agent otherwise.
"""

from collections.abc import Iterator
from dataclasses import field

from interlock.decide.condition import Compare
from interlock.decide.condition import Condition as PlanCondition
from interlock.define.diagnostics import Diagnostic, Diagnostics, fault, has_errors, warning
from interlock.define.operations.definitions import Resolver
from interlock.define.operations.flows import Condition, Edge, Flow
from interlock.define.operations.validate_flow import validate_flow, validate_port_mappings
from interlock.define.workflow_ids import NAMESPACED
from interlock.kernel.budgets.workflow import (
    PLAN_NODES_MAX,
    PROMPT_BYTES_MAX,
    PROMPTS_BYTES_MAX,
)
from interlock.kernel.frozen import mutable, replace
from interlock.kernel.ids import SourceKind
from interlock.kernel.text import utf8_bytes
from interlock.plan.builtins.packs import PACKS
from interlock.plan.check.validate import validate_plan
from interlock.plan.compile.compiler import Compiled, placement_diagnostics
from interlock.plan.compiled import CompiledWarning, CompiledWorkflow, FlowOrigin, FlowSlot
from interlock.plan.flows.predicates import lower_predicate
from interlock.plan.flows.tasks import build_question, build_slot, generate_pack
from interlock.plan.flows.wiring import Wiring
from interlock.plan.packs import packs_of
from interlock.plan.records import AUTHORED, EdgeKind, NamedCondition, NodeKind, Plan, PlanEdge, PlanNode

BEGIN, END = "--begin", "--end"


def compile_flow(flow: Flow, resolver: Resolver) -> Compiled | Diagnostics:
    """Return the compiled workflow of a flow, or every fault that keeps it from running."""
    found = [*validate_flow(flow, resolver).faults, *validate_port_mappings(flow, resolver).faults]
    if has_errors(found):
        return tuple(found)
    wiring = Wiring.of(flow, resolver)
    found += wiring.find_faults()
    if has_errors(found):
        return tuple(found)
    lowering = _Lowering(wiring=wiring)
    plan = lowering.lower()
    found += lowering.faults
    packs = {pack.contract_ref: pack for pack in packs_of(plan)}
    distinct = {(block.id, block.version): block for block in wiring.blocks.values() if block.outputs}
    packs |= {(pack := generate_pack(block)).contract_ref: pack for block in distinct.values()}
    found += [one for one in validate_plan(plan, {*PACKS, *packs}) if one.severity == "error"]
    if has_errors(found):
        return tuple(found)
    workflow = CompiledWorkflow(
        schema_version=1,
        workflow_id=workflow_id_of(flow),
        name=flow.name,
        description=flow.description or flow.name,
        guidance=(),
        references=(),
        capabilities=(),
        features=(),
        inputs=(),
        functions=(),
        assessments=(),
        contracts=tuple(packs[ref] for ref in sorted(packs)),
        plan=plan,
        compiled_warnings=tuple(CompiledWarning(code=one.code, message=one.message) for one in found),
        flow=FlowOrigin(
            flow_id=flow.id,
            flow_version=flow.version,
            slots=tuple(
                FlowSlot(node_id=wiring.node_ids[slot.id], slot=slot.id, block=block.id, block_version=block.version)
                for slot in wiring.order
                for block in (wiring.blocks[slot.id],)
            ),
        ),
    )
    return Compiled(workflow=workflow, warnings=tuple(found))


def compile_agent_flow(flow: Flow, resolver: Resolver, source_kind: SourceKind) -> Compiled | Diagnostics:
    """Return the workflow of a flow that agents may start, or every fault, also of the workflow id that it states."""
    compiled = compile_flow(flow, resolver)
    found = tuple(_check_workflow_id(flow, source_kind))
    if isinstance(compiled, Compiled) and not has_errors(found):
        return replace(compiled, warnings=(*compiled.warnings, *found))
    return (*(compiled.warnings if isinstance(compiled, Compiled) else compiled), *found)


def _check_workflow_id(flow: Flow, source_kind: SourceKind) -> Iterator[Diagnostic]:
    stated = flow.metadata.get("workflow_id")
    if stated is None:
        return
    at = "metadata.workflow_id"
    if workflow_id_of(flow) != stated:
        fix = "Write an id of the form `namespace.name`: lower case, with one dot."
        yield fault(at, "bad_id", f"{stated!r} is not a workflow id.", fix)
    else:
        yield from (replace(one, path=at) for one in placement_diagnostics(workflow_id_of(flow), source_kind))


def workflow_id_of(flow: Flow) -> str:
    """Return the id by which a flow is started: that of its metadata, or else one that is made of its id."""
    stated = flow.metadata.get("workflow_id")
    if isinstance(stated, str) and NAMESPACED.fullmatch(stated):
        return stated
    return f"flow.id-{flow.id}"


@mutable
class _Lowering:
    """Builds the plan of one flow. Faults and warnings are added to `faults`."""

    wiring: Wiring
    faults: list[Diagnostic] = field(default_factory=list[Diagnostic])
    _nodes: list[PlanNode] = field(default_factory=list[PlanNode])
    _edges: dict[str, PlanEdge] = field(default_factory=dict[str, PlanEdge])
    _conditions: list[NamedCondition] = field(default_factory=list[NamedCondition])
    _kinds: dict[str, NodeKind] = field(default_factory=dict[str, NodeKind])
    _bytes: int = 0

    def lower(self) -> Plan:
        """Build the plan: every part comes after the parts that lead to it."""
        wiring = self.wiring
        position = {slot.id: at for at, slot in enumerate(wiring.flow.nodes)}
        self._kinds[END] = "terminal"
        self._add_harness_node(BEGIN, "fan_out", "Begin")
        for slot in wiring.order:
            ways = [(at, edge, self._enter_edge(at, edge)) for at, edge in wiring.edges_into[slot.id]]
            self._add_task(build_slot(wiring, slot), f"nodes[{position[slot.id]}]")
            for _, _, (source, condition_id) in ways:
                self._connect(source, wiring.node_ids[slot.id], condition_id)
        for slot_id in wiring.flow.terminal_slots:
            self._connect(wiring.node_ids[slot_id], END)
        self._add_harness_node(END, "terminal", "End")
        if len(self._nodes) > PLAN_NODES_MAX:
            message = f"The plan has {len(self._nodes)} nodes; the limit is {PLAN_NODES_MAX}."
            self.faults.append(fault("nodes", "too_many", message, "Use fewer slots or conditions."))
        return Plan(
            v=1,
            nodes=tuple(self._nodes),
            edges=tuple(self._edges.values()),
            loops=(),
            conditions=tuple(self._conditions),
        )

    def _enter_edge(self, at: int, edge: Edge) -> tuple[str, str | None]:
        """Return the node and the condition by which an edge is left. Add the decision of a conditional one."""
        source = BEGIN if edge.source_id is None else self.wiring.node_ids[edge.source_id]
        if edge.condition is None:
            return source, None
        decision = f"{source}--if-{at}"
        condition = self._lower_condition(at, edge)
        if condition is None:
            question, key = f"{source}--ask-{at}", f"decision-{at}"
            asked = build_question(question, edge.condition, None if edge.source_id is None else source, key)
            self._add_task(asked, f"edges[{at}].condition")
            self._connect(source, question)
            source, condition = question, Compare(op="equals", var=key, value=True)
        self._add_harness_node(decision, "decision", f"Whether: {edge.condition.description}")
        self._connect(source, decision)
        self._connect(decision, END)
        self._conditions.append(NamedCondition(condition_id=decision, condition=condition))
        return decision, decision

    def _lower_condition(self, at: int, edge: Edge) -> PlanCondition | None:
        """Return the condition of a predicate; None if there is none, or an agent has to decide it."""
        condition = edge.condition
        assert condition is not None, "as the caller checked"
        if condition.predicate is None:
            return None
        lowered = lower_predicate(condition.predicate, lambda path: self.wiring.rename_path(edge.source_id, path))
        if lowered is None:
            self.faults.append(_report_predicate(at, condition))
        return lowered

    def _add_task(self, node: PlanNode, at: str) -> None:
        assert node.task is not None, "a step is a task"
        size = utf8_bytes(node.task.prompt) + sum(utf8_bytes(one.text) for one in node.task.fragments)
        if size > PROMPT_BYTES_MAX:
            message = f"The prompt of the step has {size} bytes; the limit is {PROMPT_BYTES_MAX}."
            self.faults.append(fault(at, "too_long", message, "Shorten the descriptions of the block and its ports."))
        before, self._bytes = self._bytes, self._bytes + size
        if before <= PROMPTS_BYTES_MAX < self._bytes:
            message = f"The prompts of the flow have more than {PROMPTS_BYTES_MAX} bytes."
            self.faults.append(fault(at, "too_many", message, "Use fewer slots, or shorter descriptions."))
        self._nodes.append(node)
        self._kinds[node.node_id] = "task"

    def _add_harness_node(self, node_id: str, kind: NodeKind, title: str) -> None:
        node = PlanNode(node_id=node_id, kind=kind, owner="harness", title=title, provenance=AUTHORED)
        self._nodes.append(node)
        self._kinds[node_id] = kind

    def _connect(self, source: str, target: str, condition_id: str | None = None) -> None:
        kind: EdgeKind = "direct"
        if condition_id is not None:
            kind = "conditional"
        elif self._kinds.get(target) == "terminal":
            kind = "terminal"
        elif self._kinds[source] == "fan_out":
            kind = "fan_out"
        edge_id = f"{source}>{target}"
        # Two unconditional edges between the same slots say the same.
        self._edges[edge_id] = PlanEdge(
            edge_id=edge_id, kind=kind, source=source, target=target, condition_id=condition_id
        )


def _report_predicate(at: int, condition: Condition) -> Diagnostic:
    message = f"An agent decides this by its description, {condition.description!r}: the form is not supported."
    fix = "Write a condition of workflow files, or JSONLogic with == != > >= < <= in and or ! on `var` and constants."
    return warning(f"edges[{at}].condition.predicate", "predicate_not_read", message, fix)
