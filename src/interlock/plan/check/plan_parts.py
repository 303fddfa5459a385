"""Checks the parts of a compiled workflow that came from a file: what the compiler ensures for a document (IR-14)."""

import re
from collections.abc import Callable, Iterator, Mapping

from interlock.decide.condition import Compare, Condition, Not, iter_loop_controls, iter_terms, reads_loop_control
from interlock.decide.criteria import Criteria, Length, Matches, iter_rule_conditions, iter_rules
from interlock.decide.evaluate import is_number
from interlock.decide.value import OPERANDS, Choose, Given, Operation, Read, Value, iter_parts
from interlock.define import document as doc
from interlock.define.diagnostics import Diagnostic, fault, has_errors
from interlock.define.faults import check_length
from interlock.define.parts import DECLARED_KEY_PATTERN, NAME_PATTERN
from interlock.define.patterns import PatternChecker
from interlock.define.workflow_ids import classify_id
from interlock.kernel.budgets import (
    CONTEXT_KEY_BYTES_MAX,
)
from interlock.kernel.budgets.workflow import (
    CONDITION_TERMS_MAX,
    DESCRIPTION_CHARS_MAX,
    LOOP_DEPTH_MAX,
    LOOP_PASSES_MAX,
    PLAN_DEPTH_MAX,
    PLAN_NODES_MAX,
    PROMPT_BYTES_MAX,
    REQUIREMENT_LINES_MAX,
    STEP_ID_CHARS_MAX,
    TITLE_CHARS_MAX,
)
from interlock.kernel.text import utf8_bytes
from interlock.plan.check.declarations import check_declarations
from interlock.plan.check.reads import has_blank_part
from interlock.plan.compiled import CompiledWorkflow
from interlock.plan.graph import Graphs, find_meetings
from interlock.plan.prompt_blocks import join_blocks
from interlock.plan.records import Loop, Task
from interlock.plan.step_graph import action_faults

_OPERANDS: Mapping[str, Callable[[object], bool]] = {
    "in": lambda value: isinstance(value, list),
    "exists": lambda value: isinstance(value, bool),
    **dict.fromkeys(("gt", "gte", "lt", "lte"), is_number),
    **dict.fromkeys(("starts_with", "ends_with"), lambda value: isinstance(value, str)),
}
"""What an operator can be compared with; every other operator takes any value."""


def check_parts(workflow: CompiledWorkflow, patterns: PatternChecker, *, is_sound: bool) -> Iterator[Diagnostic]:
    """Yield the faults of a compiled workflow that its graph does not show. `is_sound`: the graph has no errors."""
    yield from _header(workflow)
    yield from _slots(workflow)
    yield from _declarations(workflow)
    yield from _conditions(workflow)
    yield from _loop_controls(workflow)
    for number, node in enumerate(workflow.plan.nodes):
        at = f"plan.nodes[{number}]"
        yield from _too_long(f"{at}.title", node.title, TITLE_CHARS_MAX, least=1)
        if node.task is not None:
            yield from _task(workflow, node.task, f"{at}.task", patterns)
            for found in action_faults(node.task):
                code = "duplicate_write" if found.code == "duplicate_write" else "wrong_value"
                yield fault(f"{at}.task.sets", code, found.message, "Remove all but one action on each key.")
    for number, loop in enumerate(workflow.plan.loops):
        yield from _loop(loop, f"plan.loops[{number}]")
    if is_sound:
        yield from _nesting(workflow)


def _header(workflow: CompiledWorkflow) -> Iterator[Diagnostic]:
    if classify_id(workflow.workflow_id) is None:
        message = f"{workflow.workflow_id!r} is not a workflow id."
        yield fault("workflowId", "bad_id", message, "Use `namespace.name`, lower case, one dot.")
    yield from _too_long("name", workflow.name, TITLE_CHARS_MAX, least=1)
    yield from _too_long("description", workflow.description, DESCRIPTION_CHARS_MAX)
    if len(workflow.plan.nodes) > PLAN_NODES_MAX:
        message = f"The plan has more than {PLAN_NODES_MAX} nodes."
        yield fault("plan.nodes", "too_many", message, "Use fewer nodes, or a loop.")


def _slots(workflow: CompiledWorkflow) -> Iterator[Diagnostic]:
    """Check that each slot of a flow is a step of its own."""
    free = set(workflow.steps)
    for number, slot in enumerate(workflow.flow.slots if workflow.flow is not None else ()):
        if slot.node_id not in free:
            message = f"{slot.node_id!r} is no step of the plan, or that of another slot."
            yield fault(f"flow.slots[{number}].nodeId", "wrong_value", message, "Name the step of the slot.")
        free.discard(slot.node_id)


def _too_long(at: str, text: str, most: int, least: int = 0) -> Iterator[Diagnostic]:
    if len(text) > most:
        yield fault(at, "too_long", f"Found {len(text)} characters, at most {most}.", "Shorten it.")
    if len(text.strip()) < least:
        yield fault(at, "empty", "The text is empty.", "Write something.")


def _declarations(workflow: CompiledWorkflow) -> Iterator[Diagnostic]:
    """Check what the workflow declares by the rules of documents; only errors, because a plan has no author."""
    steps = tuple(
        doc.AgentStep(
            at=f"plan.nodes[{number}].task",
            id=node.node_id,
            title=node.title,
            prompt=(),
            produces=node.task.produces,
            sets=node.task.sets,
            emits=node.task.emits,
            awaits=node.task.awaits,
            needs_user=node.task.needs_user,
        )
        for number, node in enumerate(workflow.plan.nodes)
        if node.task is not None
    )
    document = doc.WorkflowDocument(
        id=workflow.workflow_id,
        name=workflow.name,
        steps=steps,
        inputs=workflow.inputs,
        references=workflow.references,
        assessments=workflow.assessments,
        requires_declared_keys=False,
    )
    yield from (one for one in check_declarations(document) if has_errors((one,)))


def _conditions(workflow: CompiledWorkflow) -> Iterator[Diagnostic]:
    terms = 0
    for at, condition in _all_conditions(workflow):
        for term in iter_terms(condition):
            terms += 1
            if isinstance(term, Compare):
                yield from _comparison(term, at)
    for at, value in _all_values(workflow):
        for part in iter_parts(value):
            terms += 1
            yield from _part(part, at)
    if terms > CONDITION_TERMS_MAX:
        message = f"The conditions and values have more than {CONDITION_TERMS_MAX} terms."
        yield fault("plan.conditions", "too_many", message, "Use fewer or shorter conditions.")


def _all_conditions(workflow: CompiledWorkflow) -> Iterator[tuple[str, Condition]]:
    for number, named in enumerate(workflow.plan.conditions):
        yield f"plan.conditions[{number}].condition", named.condition
    for number, node in enumerate(workflow.plan.nodes):
        if node.task is not None:
            yield from _task_conditions(node.task, f"plan.nodes[{number}].task")


def _task_conditions(task: Task, at: str) -> Iterator[tuple[str, Condition]]:
    if task.confirmation is not None:
        yield f"{at}.confirmation", task.confirmation
    for number, fragment in enumerate(task.fragments):
        if fragment.condition is not None:
            yield f"{at}.fragments[{number}].condition", fragment.condition
    if task.evidence.criteria is not None:
        for condition in iter_rule_conditions(task.evidence.criteria):
            yield f"{at}.evidence.criteria", condition
    for part, actions in (("sets", task.sets), ("emits", task.emits)):
        for number, action in enumerate(actions):
            yield from ((f"{at}.{part}[{number}]", condition) for condition in action.conditions)


def _all_values(workflow: CompiledWorkflow) -> Iterator[tuple[str, Value]]:
    """Yield the values that steps set and send."""
    for number, node in enumerate(workflow.plan.nodes):
        at, task = f"plan.nodes[{number}].task", node.task
        if task is None:
            continue
        yield from ((f"{at}.sets[{inner}]", action.payload) for inner, action in enumerate(task.sets))
        for inner, action in enumerate(task.emits):
            yield from ((f"{at}.emits[{inner}].fields.{name}", one.payload) for name, one in action.fields.items())


def _part(part: Value, at: str) -> Iterator[Diagnostic]:
    """Check a part of a value: the path that it reads, or the number of its operands."""
    match part:
        case Read(var=path):
            yield from _path(at, path)
            if has_blank_part(path):
                message = f"A part of the path {path[:CONTEXT_KEY_BYTES_MAX]!r} is blank, so it never has a value."
                yield fault(at, "wrong_value", message, "Write the keys with one dot between them.")
        case Operation(op=op, of=operands):
            least, most = OPERANDS[op]
            if not least <= len(operands) <= (most or len(operands)):
                wanted = str(least) if least == most else f"at least {least}"
                message = f"`{op}` has {len(operands)} operands; it takes {wanted}."
                yield fault(at, "wrong_value", message, f"Give it {wanted}.")
        case Given() | Choose():
            return


def _loop_controls(workflow: CompiledWorkflow) -> Iterator[Diagnostic]:
    """Check that loop control is the condition of a loop, not reversed: agents are asked for it there, in its words."""
    of_loops = {loop.condition_id for loop in workflow.plan.loops}
    of_edges = {edge.condition_id for edge in workflow.plan.edges}
    names = [named.condition_id for named in workflow.plan.conditions]
    for number, (at, condition) in enumerate(_all_conditions(workflow)):
        is_of_loop = number < len(names) and names[number] in of_loops and names[number] not in of_edges
        if not is_of_loop and any(one.when_absent == "missing" for one in iter_loop_controls(condition)):
            message = "`loop_control` is the condition of a loop; here it can never be decided."
            yield fault(at, "wrong_value", message, "Read a context key.")
        if any(isinstance(term, Not) and reads_loop_control(term) for term in iter_terms(condition)):
            message = "`not` reverses `loop_control`: `continue` of the agent would end the loop."
            yield fault(at, "wrong_value", message, "Remove `not`.")


def _comparison(term: Compare, at: str) -> Iterator[Diagnostic]:
    yield from _path(at, term.var)
    fits = _OPERANDS.get(term.op)
    if fits is not None and not fits(term.value):
        message = f"`{term.op}` cannot compare with this value."
        yield fault(at, "wrong_type", message, "Write a value of the type that the operator compares with.")


def _path(at: str, path: str) -> Iterator[Diagnostic]:
    """Check a context path: paths are part of blockers, which name keys of a limited length."""
    if not path.strip() or len(path.partition(".")[0].encode()) > CONTEXT_KEY_BYTES_MAX:
        message = f"{path[:CONTEXT_KEY_BYTES_MAX]!r} does not begin with a context key."
        yield fault(at, "wrong_value", message, f"Write a key of at most {CONTEXT_KEY_BYTES_MAX} bytes.")
    yield from _too_long(at, path, 4 * CONTEXT_KEY_BYTES_MAX)


def _task(workflow: CompiledWorkflow, task: Task, at: str, patterns: PatternChecker) -> Iterator[Diagnostic]:
    yield from _texts(task, at)
    for number, key in enumerate(task.produces):
        yield from _word(f"{at}.produces[{number}]", key, DECLARED_KEY_PATTERN, CONTEXT_KEY_BYTES_MAX)
    for number, path in enumerate(task.needs):
        yield from _path(f"{at}.needs[{number}]", path)
    for number, ref in enumerate(task.evidence.assessments):
        if ref not in workflow.ratings:
            message = f"There is no assessment {ref!r}."
            yield fault(f"{at}.evidence.assessments[{number}]", "unknown_assessment", message, "Add it.")
    if task.evidence.criteria is not None:
        yield from _criteria(task.evidence.criteria, f"{at}.evidence.criteria", patterns)


def _texts(task: Task, at: str) -> Iterator[Diagnostic]:
    """Check what an agent reads of a task: its prompt with all fragments, its role, the lines on its evidence."""
    shown = {"prompt": task.prompt, "agentRole": task.agent_role}
    for name, text in shown.items():
        if text is not None and not text.strip():
            yield fault(f"{at}.{name}", "empty", "The text is empty.", "Write something.")
    if task.prompt_blocks is not None and join_blocks(task.prompt_blocks) != task.prompt:
        message = "The parts are not those of the prompt: joined, they give another text."
        yield fault(f"{at}.promptBlocks", "wrong_value", message, "Leave `promptBlocks` out; agents read `prompt`.")
    prompt = utf8_bytes(task.prompt) + sum(utf8_bytes(fragment.text) for fragment in task.fragments)
    for name, size in (("prompt", prompt), ("agentRole", utf8_bytes(task.agent_role or ""))):
        if size > PROMPT_BYTES_MAX:
            message = f"Found {size} bytes, those of its fragments included."
            yield fault(f"{at}.{name}", "too_long", message, f"Keep it within {PROMPT_BYTES_MAX}.")
    if len(task.requirements) > REQUIREMENT_LINES_MAX:
        message = f"Found {len(task.requirements)} lines, at most {REQUIREMENT_LINES_MAX}."
        yield fault(f"{at}.requirements", "too_many", message, "Write fewer lines.")
    for number, line in enumerate(task.requirements):
        yield from _too_long(f"{at}.requirements[{number}]", line, DESCRIPTION_CHARS_MAX)


def _criteria(criteria: Criteria, at: str, patterns: PatternChecker) -> Iterator[Diagnostic]:
    for rule in iter_rules(criteria):
        if isinstance(rule, Matches):
            yield from patterns.check(rule.pattern, rule.flags, at)
        if isinstance(rule, Length):
            # A rule that is negated and one that is not differ only in limits that no run depends on.
            yield from check_length(rule, at, is_negated=True)


def _word(at: str, text: str, pattern: str, most: int) -> Iterator[Diagnostic]:
    if not re.fullmatch(pattern, text) or len(text) > most:
        yield fault(at, "wrong_value", f"{text!r} is not a name.", f"Write a name of at most {most} characters.")


def _loop(loop: Loop, at: str) -> Iterator[Diagnostic]:
    if loop.max_iterations > LOOP_PASSES_MAX:
        message = f"Found {loop.max_iterations} passes, at most {LOOP_PASSES_MAX}."
        yield fault(f"{at}.maxIterations", "wrong_value", message, f"Write {LOOP_PASSES_MAX} or less.")
    for name, variable in (("iterationVar", loop.iteration_var), ("indexVar", loop.index_var)):
        yield from _word(f"{at}.{name}", variable, NAME_PATTERN, STEP_ID_CHARS_MAX)
    if loop.item_var is not None:
        yield from _word(f"{at}.itemVar", loop.item_var, NAME_PATTERN, STEP_ID_CHARS_MAX)
    for name, path in (("count", loop.count), ("items", loop.items)):
        if isinstance(path, str):
            yield from _path(f"{at}.{name}", path)


def _nesting(workflow: CompiledWorkflow) -> Iterator[Diagnostic]:
    """Yield a fault if loops or branches nest deeper than functions that recurse over a plan can follow."""
    graphs = workflow.graphs
    meets = find_meetings(workflow.plan, graphs)
    for loop in workflow.plan.loops:
        if len(graphs.loops_around(loop.loop_id)) >= LOOP_DEPTH_MAX:
            message = f"Loops nest deeper than {LOOP_DEPTH_MAX} levels."
            yield fault("plan.loops", "too_many", message, "Use fewer levels.")
            return
    if any(_depth(graphs, meets, scope) > PLAN_DEPTH_MAX for scope in graphs.members):
        message = f"Decisions and branches nest deeper than {PLAN_DEPTH_MAX} levels."
        yield fault("plan.nodes", "too_many", message, "Use fewer levels.")


def _depth(graphs: Graphs, meets: Mapping[str, str], scope: str | None) -> int:
    """Return how deep the branches of a graph nest: a branch ends where all paths from its node meet."""
    deepest, seen = 0, set[str]()
    frontier: list[tuple[str | None, str | None, int]] = [(graphs.members[scope][0].node_id, None, 0)]
    while frontier:
        here, stop, depth = frontier.pop()
        if here is None or here == stop or here in seen:
            continue
        seen.add(here)
        deepest = max(deepest, depth)
        following = meets.get(here)
        frontier.append((following, stop, depth))
        if graphs.branches_at(here):
            edges = graphs.out_edges.get(here, ())
            frontier += [(edge.target, following, depth + 1) for edge in reversed(edges)]
    return deepest
