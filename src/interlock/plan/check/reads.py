"""What the steps of a document read from the context: in conditions, and by paths outside of conditions."""

from collections.abc import Iterable, Iterator, Mapping

from interlock.decide.condition import Compare, iter_comparisons
from interlock.decide.criteria import iter_rule_conditions
from interlock.decide.value import iter_reads
from interlock.define import document as doc
from interlock.define.parts import EmitAction, ListItems, SetAction


def declared_keys(document: doc.WorkflowDocument, steps: Iterable[doc.Step]) -> tuple[set[str], set[str]]:
    """Return the keys that are declared or set by steps, and those that an agent produces."""
    firm, produced = {one.key for one in document.inputs} | {"goal"}, set[str]()
    for step in steps:
        if isinstance(step, doc.AgentStep):
            firm |= {action.key for action in step.sets}
            produced |= set(step.produces)
    return firm, produced


def declared_items(document: doc.WorkflowDocument) -> Mapping[str, ListItems]:
    """Return what the items of each declared list are, by its key; a loop's variable of the same name hides the key."""
    steps = list(doc.walk_steps(document.steps))
    produced = (key for step in steps if isinstance(step, doc.AgentStep) for key in step.declares)
    hidden = {name for step in steps if isinstance(step, doc.LoopStep) for name in loop_variables(step)}
    return {
        one.key: one.items for one in (*document.inputs, *produced) if one.items is not None and one.key not in hidden
    }


def loop_variables(loop: doc.LoopStep) -> set[str]:
    """Return the keys that a loop sets for the steps of its body."""
    return {name for name in (loop.iteration_var, loop.index_var, loop.item_var) if name is not None}


def walk_in_loops(
    steps: Iterable[doc.Step], around: frozenset[str] = frozenset()
) -> Iterator[tuple[doc.Step, frozenset[str]]]:
    """Yield every step, at any nesting level, with the variables of the loops around it."""
    for step in steps:
        yield step, around
        inside = around | loop_variables(step) if isinstance(step, doc.LoopStep) else around
        yield from walk_in_loops(doc.inner_steps(step), inside)


def guards(step: doc.Step) -> Iterator[doc.Guard]:
    """Yield the conditions of a step, except the condition of a loop itself."""
    if step.when is not None:
        yield step.when
    match step:
        case doc.AgentStep():
            yield from (fragment.when for fragment in step.fragments if fragment.when is not None)
            if step.confirmation is not None:
                yield step.confirmation
            if step.evidence.criteria is not None:
                at = f"{step.at}.validationCriteria"
                yield from (doc.Guard(condition=when, at=at) for when in iter_rule_conditions(step.evidence.criteria))
        case doc.ChoiceStep():
            yield from (branch.guard for branch in step.branches)
        case _:
            return


def read_paths(step: doc.Step) -> Iterator[tuple[str, str]]:
    """Yield the place and the context path of each value that a step reads outside of conditions."""
    if isinstance(step, doc.LoopStep):
        for name, path in (("forEach.items", step.items), ("for.countFrom", step.count)):
            if isinstance(path, str):
                yield f"{step.at}.{name}", path
    if isinstance(step, doc.AgentStep):
        yield from ((f"{step.at}.needs[{number}]", path) for number, path in enumerate(step.needs))


def set_reads(action: SetAction) -> Iterator[tuple[str, str]]:
    """Yield the paths that an action reads, each once, with the part of the action that reads it before it."""
    paths = [("from" if action.compute is None else "compute", path) for path in iter_reads(action.payload)]
    for condition in action.conditions:
        part = "when" if condition is action.when else "compute"
        paths += [(part, term.var) for term in iter_comparisons(condition)]
    yield from dict.fromkeys(paths)


def action_reads(step: doc.Step) -> Iterator[tuple[str, str]]:
    """Yield the place and the path of each value that the actions of a step read: what it sets, and what it sends."""
    if not isinstance(step, doc.AgentStep):
        return
    for number, action in enumerate(step.sets):
        yield from ((f"{step.at}.set[{number}].{part}", path) for part, path in set_reads(action))
    for number, action in enumerate(step.emits):
        at = f"{step.at}.emit[{number}]"
        for name, one in sorted(action.fields.items()):
            part = "from" if one.compute is None else "compute"
            yield from ((f"{at}.fields.{name}.{part}", path) for path in dict.fromkeys(iter_reads(one.payload)))
        yield from ((f"{where}", term.var) for where, term in _terms_of(action, at))


def _terms_of(action: EmitAction, at: str) -> Iterator[tuple[str, Compare]]:
    for condition in action.conditions:
        part = "when" if condition is action.when else "fields"
        yield from ((f"{at}.{part}", term) for term in iter_comparisons(condition))


def action_comparisons(step: doc.Step) -> Iterator[tuple[str, Compare]]:
    """Yield the place of each comparison in the actions of a step, and the comparison."""
    if not isinstance(step, doc.AgentStep):
        return
    for number, action in enumerate(step.sets):
        for condition in action.conditions:
            at = f"{step.at}.set[{number}].{'when' if condition is action.when else 'compute'}"
            yield from ((at, term) for term in iter_comparisons(condition))
    for number, action in enumerate(step.emits):
        yield from _terms_of(action, f"{step.at}.emit[{number}]")


def has_blank_part(path: str) -> bool:
    """Say whether some part of a dotted path is blank, so that it can never have a value."""
    return not all(part.strip() for part in path.split("."))
