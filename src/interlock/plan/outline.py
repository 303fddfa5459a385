"""Renders a plan as text for a reader who decides whether to start it: steps, required evidence, loops, branches."""

from collections.abc import Iterator

from interlock.decide.condition import Always, describe_condition
from interlock.define.parts import AwaitEvent, Proof
from interlock.kernel.frozen import frozen
from interlock.kernel.text import flat
from interlock.plan.compiled import CompiledWorkflow
from interlock.plan.records import CONFIRMATION_CONTRACT, NOTES_CONTRACT, Loop, PlanNode


def outline_lines(workflow: CompiledWorkflow) -> list[str]:
    """Return one line for each part of the plan that a reader should see, indented by the loops around it."""
    lines: list[str] = []
    for node in workflow.plan.nodes:
        line = _line(workflow, node)
        if line is not None:
            indent = "   " * len(workflow.graphs.loops_around(node.node_id))
            lines.append(indent + line)
    return lines


def input_lines(workflow: CompiledWorkflow) -> list[str]:
    """Return one line for each declared context key: those to send at the start, and those that steps set.

    A required key is sent at the start even if a step sets it later.
    """
    lines: list[str] = []
    for one in workflow.inputs:
        steps = ", ".join(f"`{step_id}`" for step_id in workflow.set_by.get(one.key, ()))
        key, kind = f"`context.{one.key}`", f"{one.type}, required" if one.required else one.type
        if steps and not one.required:
            lines.append(f"- {key} ({kind}) is set by {steps}; you need not send it: {one.description}")
        else:
            lines.append(f"- start with {key} ({kind}): {one.description}")
    return lines


@frozen
class HumanGate:
    """The confirmation of a step by a person, which is resolved together with the step (decision 37)."""

    node_id: str
    step_id: str
    title: str
    evidence_schema_ref: str
    when: str


def gate_after(node: PlanNode) -> HumanGate | None:
    """Return the gate after a step; None if a person need not confirm it."""
    confirmation = node.task.confirmation if node.task is not None else None
    if confirmation is None:
        return None
    return HumanGate(
        node_id=f"{node.node_id}--gate",
        step_id=node.node_id,
        title=f"Confirm: {node.title}",
        evidence_schema_ref=CONFIRMATION_CONTRACT,
        when="always" if isinstance(confirmation, Always) else describe_condition(confirmation),
    )


def constraints_of(workflow: CompiledWorkflow, node: PlanNode) -> list[str]:
    """Return what must hold before a node is resolved or when it is, and the tags of the node for readers."""
    facts = [f"uses {capability}" for capability in node.capabilities]
    if node.kind == "fan_in":
        sources = (edge.source for edge in workflow.graphs.in_edges.get(node.node_id, ()))
        facts.append(f"waits for {', '.join(sources)}")
    task = node.task
    if task is not None:
        facts += [f"needs `{path}`" for path in task.needs]
        facts += [f"produces `{key}`" for key in task.produces]
        facts += [f"sets `{action.key}`" for action in task.sets]
        facts += [f"sends `{action.kind}`" for action in task.emits]
        facts += [f"waits for {waits_for(task.awaits)}"] if task.awaits is not None else []
        facts += [f"rated by {name}" for name in task.evidence.assessments]
        facts += [f"asks the user ({need.reason.removeprefix('needs_user_')})" for need in task.needs_user]
        facts += [f"needs proof of {proof_of(one)}" for one in task.proofs]
        by = " (by another)" if task.by is not None else ""
        facts += [f"verifies {step_id}{by}" for step_id in task.verifies]
    facts += [f"hint {hint}" for hint in node.hints]
    facts += [f"{name}: {text}" for name, text in (node.metadata or {}).items()]
    return facts


def proof_of(proof: Proof) -> str:
    """Name what a proof demands."""
    command = proof.command.value if proof.command.value is not None else proof.command.source
    tree = ", tree unchanged" if proof.tree is not None else ""
    verdict = f", for the verdict {proof.verdict}" if proof.verdict is not None else ""
    return f"`{command}` (exit {proof.exit}, {proof.assurance}{tree}{verdict})"


def waits_for(awaits: AwaitEvent) -> str:
    """Name what a step waits for."""
    if awaits.check is not None:
        return f"the check `{awaits.check}`"
    if awaits.approval is not None:
        return f"a person's answer: {' or '.join(awaits.approval.choices)}"
    return f"the event `{awaits.event}`"


def profile_lines(workflow: CompiledWorkflow) -> list[str]:
    """Return one line for each constraint on the whole run: capabilities of the client, recommended preferences."""
    lines = [f"- the client's {one.capability}: {one.need}" for one in workflow.capabilities]
    if workflow.recommended is not None:
        advice = workflow.recommended
        named = {"autonomy": advice.recommended_autonomy, "risk policy": advice.recommended_risk_policy}
        lines += [f"- recommended {name}: {value}" for name, value in named.items() if value is not None]
    return lines


def step_lines(workflow: CompiledWorkflow) -> Iterator[str]:
    """Yield each task in full: its prompt, its conditional fragments, its evidence."""
    for number, node in enumerate(workflow.steps.values(), start=1):
        task = node.task
        assert task is not None, "a step is a task"
        parts = [f"## {number}. {flat(node.title)} (`{node.node_id}`)"]
        parts += [f"*{task.agent_role}*"] if task.agent_role else []
        parts.append(task.prompt)
        for fragment in task.fragments:
            when = f"When {describe_condition(fragment.condition)}: " if fragment.condition is not None else ""
            asks = "In a run that may stop for the user: " if fragment.asks_user else ""
            parts.append(f"{when}{asks}{fragment.text}")
        parts += ["\n".join(f"- Ask the user: {need.ask}" for need in task.needs_user)] if task.needs_user else []
        if task.requirements:
            parts.append("\n".join(["**Evidence of this step**", *(f"- {line}" for line in task.requirements)]))
        yield "\n\n".join(parts)


def _line(workflow: CompiledWorkflow, node: PlanNode) -> str | None:
    title = flat(node.title)
    match node.kind:
        case "task":
            return f"{workflow.numbers[node.node_id]}. {title} (`{node.node_id}`{_requirements(node)})"
        case "loop":
            return f"↻ {title} (`{node.node_id}`): {loop_words(workflow, workflow.graphs.loops[node.node_id])}"
        case "decision":
            return f"◆ {_choice(workflow, node)}"
        case "fan_out":
            return f"∥ {title}: the branches do not wait for each other"
        case "fan_in":
            return f"⊥ {title}: waits for all branches"
        case "terminal":
            return None


def _requirements(node: PlanNode) -> str:
    assert node.task is not None, "a task"
    parts: list[str] = []
    if node.task.awaits is not None:
        return f", waits for {waits_for(node.task.awaits)}"
    if node.evidence_schema_ref not in (None, NOTES_CONTRACT):
        optional = "" if node.task.evidence.artifact_required or node.task.evidence.assessments else " (optional)"
        parts.append(f"evidence {node.evidence_schema_ref}{optional}")
    if node.task.evidence.criteria is not None:
        parts.append("criteria on its notes")
    if node.task.confirmation is not None:
        when = (
            "" if isinstance(node.task.confirmation, Always) else f" when {describe_condition(node.task.confirmation)}"
        )
        parts.append(f"needs confirmation{when}")
    parts += [f"the user must give: {need.reason.removeprefix('needs_user_')}" for need in node.task.needs_user]
    if node.provenance.source != "authored":
        parts.append(f"from {node.provenance.origin_id}")
    return "".join(f", {one}" for one in parts)


def loop_words(workflow: CompiledWorkflow, loop: Loop) -> str:
    """Describe how the number of a loop's passes is decided."""
    bound = f"at most {loop.max_iterations} passes"
    match loop.kind:
        case "for":
            return f"{loop.count} passes, {bound}"
        case "for_each":
            return f"once for each item of `{loop.items}`, {bound}"
        case "while" | "until":
            condition = describe_condition(workflow.graphs.conditions[loop.condition_id or ""])
            return f"{loop.kind} {condition}, {bound}"


def _choice(workflow: CompiledWorkflow, node: PlanNode) -> str:
    ways: list[str] = []
    for edge in workflow.graphs.out_edges[node.node_id]:
        target = workflow.graphs.nodes[edge.target]
        name = "the end" if target.kind == "terminal" else f"`{target.node_id}`"
        if edge.condition_id is None:
            ways.append(f"otherwise {name}")
        else:
            ways.append(f"if {describe_condition(workflow.graphs.conditions[edge.condition_id])}: {name}")
    return "; ".join(ways)
