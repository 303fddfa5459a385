"""What a document declares: no id twice, no key that can never be sent, no value that contradicts its type."""

from collections.abc import Callable, Iterable, Iterator

from interlock.define import document as doc
from interlock.define.diagnostics import Diagnostic, fault, warning
from interlock.define.parts import Assessment, ContextInput, FunctionDefinition
from interlock.plan.check.kinds import IN_WORDS, kind_of_value
from interlock.record.context import RESERVED_KEYS


def check_declarations(document: doc.WorkflowDocument) -> Iterator[Diagnostic]:
    """Yield what is wrong with what a document declares; in files of the WorkRail dialect most of it only warns."""
    tell = fault if document.requires_declared_keys else warning
    # Errors of every dialect first, for only so many diagnostics are looked at.
    yield from _dimensions(document.assessments)
    yield from _inputs(document.inputs)
    yield from _twice((one.id for one in document.references), "references[{}].id", tell)
    yield from _twice((one.slot_id for one in document.extension_points), "extensionPoints[{}].slotId", tell)
    yield from _assessments(document.assessments, tell)
    yield from _functions(document.functions, "functionDefinitions", tell)
    for step in doc.walk_steps(document.steps):
        if isinstance(step, doc.AgentStep | doc.LoopStep):
            yield from _functions(step.own_functions, f"{step.at}.functionDefinitions", tell)
        if isinstance(step, doc.AgentStep):
            yield from _of_step(step, tell)


_Tell = Callable[..., Diagnostic]


def _twice(names: Iterable[str], at: str, tell: _Tell) -> Iterator[Diagnostic]:
    """Tell each name that stood before; `at` is the place of one, with a gap for its number."""
    first: dict[str, int] = {}
    for number, name in enumerate(names):
        if name in first:
            message = f"{name!r} is that of {at.format(first[name])} too."
            yield tell(at.format(number), "duplicate_id", message, f"Rename one, for example `{name}-2`, or remove it.")
        first.setdefault(name, number)


def _dimensions(assessments: Iterable[Assessment]) -> Iterator[Diagnostic]:
    """Tell a dimension that stands twice: a rating names each, so that neither could be rated, in any dialect."""
    for number, assessment in enumerate(assessments):
        yield from _twice(
            (one.id for one in assessment.dimensions), f"assessments[{number}].dimensions[{{}}].id", fault
        )


def _assessments(assessments: Iterable[Assessment], tell: _Tell) -> Iterator[Diagnostic]:
    assessments = tuple(assessments)
    yield from _twice((one.id for one in assessments), "assessments[{}].id", tell)
    for number, assessment in enumerate(assessments):
        at = f"assessments[{number}].dimensions"
        for inner, dimension in enumerate(assessment.dimensions):
            # Levels are matched without case and the space around them.
            levels = (level.strip().lower() for level in dimension.levels)
            yield from _twice(levels, f"{at}[{inner}].levels[{{}}]", tell)


def _functions(functions: Iterable[FunctionDefinition], at: str, tell: _Tell) -> Iterator[Diagnostic]:
    functions = tuple(functions)
    yield from _twice((one.name for one in functions), at + "[{}].name", tell)
    for number, function in enumerate(functions):
        yield from _twice((one.name for one in function.parameters), f"{at}[{number}].parameters[{{}}].name", tell)


def _inputs(inputs: tuple[ContextInput, ...]) -> Iterator[Diagnostic]:
    yield from _twice((one.key for one in inputs), "inputs[{}].key", fault)
    for number, declared in enumerate(inputs):
        at = f"inputs[{number}]"
        yield from _reserved(declared.key, f"{at}.key")
        if declared.key == "goal" and declared.type != "string":
            yield fault(f"{at}.type", "wrong_type", "The goal of a run is a text.", "Write `string`.")
        for place, choice in enumerate(declared.choices):
            if kind_of_value(choice) != declared.type:
                message = f"The choice {choice!r} is not {IN_WORDS[declared.type]}, which `type` requires."
                fix = f"Write {IN_WORDS[declared.type]}, or another `type`."
                yield fault(f"{at}.choices[{place}]", "wrong_type", message, fix)


def _of_step(step: doc.AgentStep, tell: _Tell) -> Iterator[Diagnostic]:
    # Those of delegated work come last and are called by us.
    fragments = (one.fragment_id for one in step.fragments if not one.fragment_id.startswith("delegate"))
    yield from _twice(fragments, f"{step.at}.promptFragments[{{}}].id", tell)
    for number, key in enumerate(step.produces):
        yield from _reserved(key, f"{step.at}.produces[{number}]")
    for number, action in enumerate(step.sets):
        yield from _reserved(action.key, f"{step.at}.set[{number}].key")


def _reserved(key: str, at: str) -> Iterator[Diagnostic]:
    if key in RESERVED_KEYS:
        message = f"The context key {key!r} is reserved: it can never be sent."
        yield fault(at, "wrong_value", message, "Give it another name.")
