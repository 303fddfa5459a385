"""Renders the prompt of a step: its text, the fragments whose conditions are true, functions and required evidence.

Pure: the pinned workflow and the node's context give the same prompt every time.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from interlock.decide.evaluate import ConditionInputs, evaluate
from interlock.define.parts import CLARIFY, FunctionDefinition
from interlock.engine.gates import QuestionItem, asks_of, needs_of
from interlock.engine.template import ValueRoom, rendered, rendered_line
from interlock.kernel.budgets import FUNCTIONS_BYTES_MAX, PARALLEL_PROMPTS_BYTES_MAX
from interlock.kernel.text import TRUNCATION_MARKER, quoted, truncated, utf8_bytes
from interlock.plan.compiled import CompiledWorkflow
from interlock.plan.records import PlanNode, Task
from interlock.record.context import Context

NO_STEPS: Mapping[str, bool] = MappingProxyType({})


def prompt_of(
    workflow: CompiledWorkflow,
    node: PlanNode,
    seen: Context,
    *,
    never_stops: bool = False,
    parallel_with: Mapping[str, bool] = NO_STEPS,
) -> str:
    """Return a step's prompt; `seen` is the node's context with the variables of the loops around the step.

    `parallel_with` are the steps that can begin now, too, each with whether this prompt carries its prompt, for a
    subagent (PLAN-21). In a run that never stops, the prompt asks the agent to make the
    decisions that it would otherwise ask the user for (MODE-8).
    """
    sections = [*_sections(workflow, node, seen, never_stops=never_stops)]
    if parallel_with:
        sections.append(_parallel_words(workflow, seen, parallel_with, never_stops=never_stops))
    return "\n\n".join(sections)


def _parallel_words(workflow: CompiledWorkflow, seen: Context, others: Mapping[str, bool], *, never_stops: bool) -> str:
    named = ", ".join(f"`{other}`" for other in others)
    words = (
        f"This step and {named} do not depend on each other; you receive and report them one by one. To work on them"
        " at the same time, use your client's own subagent tool; do not call `start_workflow` for that."
    )
    parts: list[str] = []
    left, room = list[str](), PARALLEL_PROMPTS_BYTES_MAX
    for other in (one for one, is_carried in others.items() if is_carried):
        step = workflow.steps[other]
        prompt = "\n\n".join(_sections(workflow, step, seen, never_stops=never_stops))
        part = f"For a subagent, `{other}` ({rendered_line(step.title, seen)}):\n\n{quoted(prompt)}"
        room -= utf8_bytes(part)
        if room < 0:
            left.append(f"`{other}`")
            room = 0
        else:
            parts.append(part)
    rest = [f"The prompts of {', '.join(left)} follow when these steps are pending."] if left else []
    return "\n\n".join([words, *parts, *rest])


def _sections(workflow: CompiledWorkflow, node: PlanNode, seen: Context, *, never_stops: bool) -> Iterator[str]:
    task = node.task
    assert task is not None, "as checked by the caller"
    if never_stops:
        asks = _listed(f"**Not asked of the user**\n{_DECIDE}", asks_of(node, seen))
    else:
        asks = _listed("**Ask the user for this**", needs_of(node, seen))
    yield from _texts(task, seen, _DECIDE if never_stops and asks is None else None, never_stops=never_stops)
    functions = [one for one in visible_functions(workflow, node) if one.name in task.functions]
    if functions:
        yield function_words("**Functions used here**", functions, FUNCTIONS_BYTES_MAX)
    if asks is not None:
        yield asks
    if task.requirements:
        wanted = "\n".join(f"- {line}" for line in task.requirements)
        yield f"**Evidence of this step**\n{wanted}"


def _texts(task: Task, seen: Context, instead: str | None, *, never_stops: bool) -> Iterator[str]:
    """Yield the prompt and the fragments that are shown; `instead` replaces those that ask the user, once."""
    room = ValueRoom()
    yield rendered(task.prompt, seen, room)
    for fragment in task.fragments:
        # A fragment whose condition cannot be decided is left out: a prompt never stops a run (PLAN-20).
        if fragment.condition is not None and evaluate(fragment.condition, ConditionInputs(context=seen)) is not True:
            continue
        if not fragment.asks_user or not never_stops:
            yield rendered(fragment.text, seen, room)
        elif instead is not None:
            yield instead
            instead = None


def _listed(head: str, asks: Sequence[QuestionItem]) -> str | None:
    return "\n".join([head, *(f"- {one.ask} ({one.subject})" for one in asks)]) if asks else None


def function_words(head: str, functions: Sequence[FunctionDefinition], bytes_max: int) -> str:
    """Return functions with their definitions below a head line, cut to `bytes_max` with the marker (PLAN-9)."""
    whole = "\n".join([head, *map(_function, functions)])
    if utf8_bytes(whole) <= bytes_max:
        return whole
    for kept in range(len(functions) - 1, -1, -1):
        note = f"\nOmitted {len(functions) - kept} function definitions."
        whole = "\n".join([head, *map(_function, functions[:kept])])
        room = bytes_max - utf8_bytes(note)
        if utf8_bytes(whole) + utf8_bytes(TRUNCATION_MARKER) <= room:
            # What does not fit whole is begun: half a definition says more than none.
            begun = "\n".join([whole, _function(functions[kept])])
            return truncated(begun, room) + note
    return truncated(head, bytes_max)


def visible_functions(workflow: CompiledWorkflow, node: PlanNode) -> list[FunctionDefinition]:
    """Return the functions that a step sees: its own, those of the loops around it, the workflow's; each by name."""
    order = [node.node_id, *reversed(workflow.graphs.loops_around(node.node_id)), None]
    seen = [one for one in workflow.functions if one.owner in order]
    nearest: dict[str, FunctionDefinition] = {}
    for one in sorted(seen, key=lambda one: (order.index(one.owner), one.function.name)):
        nearest.setdefault(one.function.name, one.function)
    return list(nearest.values())


def guidance_of(workflow: CompiledWorkflow, *, never_stops: bool = False) -> tuple[str, ...]:
    """Return the guidance for the whole run: the author's, and the workflow's instructions that no step refers to.

    A run that never stops is also guided to decide instead of asking the user.
    """
    authored = workflow.guidance
    if never_stops:
        authored = (
            f"{_DECIDE} This also applies to a text that refers you to the user.",
            *map(_without_asking, authored),
        )
    lines = [_function(function).removeprefix("- ") for function in workflow.loose_functions]
    lines += [_CAPABILITY_WORDS[one.need].format(one.capability.replace("_", " ")) for one in workflow.capabilities]
    advice = workflow.recommended
    wanted = [advice.recommended_autonomy, advice.recommended_risk_policy] if advice is not None else []
    if any(wanted):
        lines.append(f"The author recommends: {', '.join(f'`{one}`' for one in wanted if one is not None)}.")
    return (*authored, *lines)


_DECIDE = "This run does not stop for the user: decide as the user would, and write each assumption down in the notes."


def _without_asking(line: str) -> str:
    return f"If it is not clear, assume an answer: {line.removeprefix(CLARIFY)}" if line.startswith(CLARIFY) else line


_CAPABILITY_WORDS = {
    "required": "This workflow needs {}; its first step checks whether your client has it.",
    "preferred": "Use {} if your client has it.",
    "disabled": "Do not use {} in this run.",
}


def _function(function: FunctionDefinition) -> str:
    parameters = ", ".join(parameter.name for parameter in function.parameters)
    return f"- `{function.name}({parameters})`: {function.definition}"
