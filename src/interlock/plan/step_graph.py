"""The decision graphs of a plan: of a condition, and of what a step sets and sends (decision 18)."""

from interlock.decide.condition import Compare, Condition
from interlock.decide.evaluate import EMITTED
from interlock.decide.graph import DecisionGraph, EmitIntent, SetKey
from interlock.decide.lowering import Assignment, build_graph, emit_name
from interlock.decide.schedule import Schedule, build_schedule
from interlock.decide.validate import GraphFault, validate_graph
from interlock.plan.records import Task


def schedule_condition(condition_id: str, condition: Condition) -> Schedule:
    """Return the decision graph of a condition, scheduled."""
    return _schedule(build_graph({condition_id: condition}))


def schedule_actions(task: Task) -> Schedule:
    """Return the decision graph of what a step sets and sends, scheduled."""
    return _schedule(_step_graph(task))


def action_faults(task: Task) -> tuple[GraphFault, ...]:
    """Return the faults of the decision graph of what a step sets and sends. Only a plan file may have some."""
    return validate_graph(_step_graph(task))


def _step_graph(task: Task) -> DecisionGraph:
    """Return the decision graph of what a step sets and sends."""
    conditions: dict[str, Condition] = {}
    assignments: list[Assignment] = []
    for action in task.sets:
        gates = _gates(conditions, action.key, action.when)
        effect = SetKey(kind="set", key=action.key)
        assignments.append(Assignment(name=action.key, effect=effect, payload=(action.payload,), when=gates))
    for number, action in enumerate(task.emits):
        name = emit_name(number)
        gates = _gates(conditions, name, action.when)
        if action.once is not None:
            # Whether it was sent before is an input like any other, so that no trigger needs a memory (DEC-8).
            conditions[f"{name}.once"] = Compare(op="equals", var=f"{EMITTED}.{number}", value=False)
            gates = (*gates, f"{name}.once")
        fields = sorted(action.fields)
        effect = EmitIntent(
            kind="emit", number=number, sends=action.kind, fields=tuple(fields), mirror=dict(action.mirror)
        )
        payload = tuple(action.fields[one].payload for one in fields)
        assignments.append(Assignment(name=name, effect=effect, payload=payload, when=gates))
    return build_graph(conditions, assignments)


def _gates(conditions: dict[str, Condition], name: str, when: Condition | None) -> tuple[str, ...]:
    """Name the condition of an action, and return the names of its gates."""
    if when is None:
        return ()
    conditions[f"{name}.when"] = when
    return (f"{name}.when",)


def _schedule(graph: DecisionGraph) -> Schedule:
    schedule = build_schedule(graph)
    assert isinstance(schedule, Schedule), f"a plan has sound graphs: {schedule}"
    return schedule
