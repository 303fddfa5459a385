"""What a document declares: no id twice, no key that can never be sent, no value that contradicts its type."""

from collections.abc import Callable, Iterable, Iterator

from interlock.define import document as doc
from interlock.define.declared import TypeMismatch, conform_value
from interlock.define.diagnostics import Diagnostic, fault, warning
from interlock.define.faults import make_free_name
from interlock.define.parts import Assessment, ContextInput, FunctionDefinition, ItemField, ListItems, ProducedKey
from interlock.plan.check.kinds import IN_WORDS, kind_of_value
from interlock.record.context import RESERVED_KEYS
from interlock.record.world import UNANSWERED_CHOICE


def check_declarations(document: doc.WorkflowDocument) -> Iterator[Diagnostic]:
    """Yield the faults of a document's declarations; in files of the WorkRail dialect most are only warnings."""
    report = fault if document.requires_declared_keys else warning
    # Errors of every dialect first, because the number of diagnostics is limited.
    yield from _dimensions(document.assessments)
    yield from _inputs(document.inputs)
    yield from _produced(document)
    yield from _check_unique((one.id for one in document.references), "references[{}].id", report)
    yield from _check_unique((one.slot_id for one in document.extension_points), "extensionPoints[{}].slotId", report)
    yield from _assessments(document.assessments, report)
    yield from _functions(document.functions, "functionDefinitions", report)
    for step in doc.walk_steps(document.steps):
        if isinstance(step, doc.AgentStep | doc.LoopStep):
            yield from _functions(step.own_functions, f"{step.at}.functionDefinitions", report)
        if isinstance(step, doc.AgentStep):
            yield from _of_step(step, report)


_Report = Callable[..., Diagnostic]


def _check_unique(names: Iterable[str], at: str, report: _Report) -> Iterator[Diagnostic]:
    """Yield each repeated name; `at` is the path of a name, with `{}` for its number."""
    first: dict[str, int] = {}
    every = list(names)
    taken = set(every)
    for number, name in enumerate(every):
        if name in first:
            message = f"{name!r} is that of {at.format(first[name])} too."
            fix = f"Rename one, for example `{make_free_name(name, taken, '_')}`, or remove it."
            yield report(at.format(number), "duplicate_id", message, fix)
        first.setdefault(name, number)


def _dimensions(assessments: Iterable[Assessment]) -> Iterator[Diagnostic]:
    """Yield repeated dimensions, in every dialect an error: a rating could not name either of them."""
    for number, assessment in enumerate(assessments):
        yield from _check_unique(
            (one.id for one in assessment.dimensions), f"assessments[{number}].dimensions[{{}}].id", fault
        )


def _assessments(assessments: Iterable[Assessment], report: _Report) -> Iterator[Diagnostic]:
    assessments = tuple(assessments)
    yield from _check_unique((one.id for one in assessments), "assessments[{}].id", report)
    for number, assessment in enumerate(assessments):
        at = f"assessments[{number}].dimensions"
        for inner, dimension in enumerate(assessment.dimensions):
            # Levels are matched without case and the space around them.
            levels = (level.strip().lower() for level in dimension.levels)
            yield from _check_unique(levels, f"{at}[{inner}].levels[{{}}]", report)


def _functions(functions: Iterable[FunctionDefinition], at: str, report: _Report) -> Iterator[Diagnostic]:
    functions = tuple(functions)
    yield from _check_unique((one.name for one in functions), at + "[{}].name", report)
    for number, function in enumerate(functions):
        yield from _check_unique(
            (one.name for one in function.parameters), f"{at}[{number}].parameters[{{}}].name", report
        )


def _inputs(inputs: tuple[ContextInput, ...]) -> Iterator[Diagnostic]:
    yield from _check_unique((one.key for one in inputs), "inputs[{}].key", fault)
    for number, declared in enumerate(inputs):
        at = f"inputs[{number}]"
        yield from _reserved(declared.key, f"{at}.key")
        yield from _of_key(declared, at)


def _produced(document: doc.WorkflowDocument) -> Iterator[Diagnostic]:
    """Yield the faults of the keys that steps declare: each key has one declaration."""
    known: dict[str, ProducedKey] = {one.key: one for one in document.inputs}
    for step in (one for one in doc.walk_steps(document.steps) if isinstance(one, doc.AgentStep)):
        for one in step.declares:
            at = f"{step.at}.produces[{step.produces.index(one.key)}]"
            yield from _of_key(one, at)
            if known.setdefault(one.key, one) != one:
                message = f"The key {one.key!r} has a second declaration, which differs."
                yield fault(f"{at}.key", "duplicate_id", message, f"Write only {one.key!r} here, or rename the key.")


def _of_key(declared: ProducedKey, at: str) -> Iterator[Diagnostic]:
    """Yield why a declaration contradicts itself."""
    if declared.key == "goal" and declared.type != "string":
        yield fault(f"{at}.type", "wrong_type", "The input `goal` must be of type `string`.", "Write `string`.")
    yield from _choices(declared, at)
    if declared.items is None:
        return
    if declared.type != "list":
        yield fault(f"{at}.items", "wrong_type", f"{declared.key!r} has items, but is no list.", "Write `type: list`.")
    yield from _choices(declared.items, f"{at}.items")
    for place, choice in enumerate(declared.choices):
        if isinstance(choice, list) and isinstance(conform_value(declared, choice), TypeMismatch):
            message = f"The choice {choice!r} does not fit `items`, so it can never be sent."
            yield fault(f"{at}.choices[{place}]", "wrong_value", message, "Correct the choice or the `items`.")
    if declared.items.fields and declared.items.type != "object":
        yield fault(f"{at}.items.fields", "wrong_type", "Only objects have fields.", "Write `type: object`.")
    yield from _check_unique((one.key for one in declared.items.fields), f"{at}.items.fields[{{}}].key", fault)
    for number, one in enumerate(declared.items.fields):
        yield from _reserved(one.key, f"{at}.items.fields[{number}].key")
        yield from _choices(one, f"{at}.items.fields[{number}]")


def _choices(declared: ProducedKey | ListItems | ItemField, at: str) -> Iterator[Diagnostic]:
    for place, choice in enumerate(declared.choices):
        if kind_of_value(choice) != declared.type:
            message = f"The choice {choice!r} is not {IN_WORDS[declared.type]}, which `type` requires."
            fix = f"Write {IN_WORDS[declared.type]}, or another `type`."
            yield fault(f"{at}.choices[{place}]", "wrong_type", message, fix)


def _of_step(step: doc.AgentStep, report: _Report) -> Iterator[Diagnostic]:
    # The fragments of delegated work come last; their ids are ours.
    fragments = (one.fragment_id for one in step.fragments if not one.fragment_id.startswith("delegate"))
    yield from _check_unique(fragments, f"{step.at}.promptFragments[{{}}].id", report)
    choices = step.awaits.approval.choices if step.awaits is not None and step.awaits.approval is not None else ()
    yield from _check_unique(choices, f"{step.at}.choices[{{}}]", fault)
    if UNANSWERED_CHOICE in choices:
        message = f"{UNANSWERED_CHOICE!r} is what the step reads after the deadline; no person chooses it."
        at = f"{step.at}.choices[{choices.index(UNANSWERED_CHOICE)}]"
        yield fault(at, "wrong_value", message, "Give the choice another name.")
    for number, key in enumerate(step.produces):
        yield from _reserved(key, f"{step.at}.produces[{number}]")
        yield from _fixed(key, f"{step.at}.produces[{number}]")
    for number, need in enumerate(step.needs_user):
        if need.reason == "needs_user_choice" and need.choice_kind is None:
            message = "The choice has no `choiceKind`: only choices that an agent must not assume are put to the user."
            fix = "Add `choiceKind`, for example `scope_boundary`; let the agent make any other choice."
            yield fault(f"{step.at}.needsUser[{number}]", "missing_key", message, fix)
    for number, action in enumerate(step.sets):
        yield from _reserved(action.key, f"{step.at}.set[{number}].key")
        yield from _fixed(action.key, f"{step.at}.set[{number}].key")
    for number, action in enumerate(step.emits):
        for key in action.mirror:
            yield from _fixed(key, f"{step.at}.emit[{number}].mirror.{key}")


def _reserved(key: str, at: str) -> Iterator[Diagnostic]:
    if key in RESERVED_KEYS:
        message = f"The context key {key!r} is reserved: it can never be sent."
        yield fault(at, "wrong_value", message, "Give the key another name.")


def _fixed(key: str, at: str) -> Iterator[Diagnostic]:
    """Yield why no step writes this key: what a run is for does not change while it runs (CTX-6)."""
    if key == "goal":
        message = "`goal` is the goal that the run was started with; no step changes it."
        yield fault(at, "wrong_value", message, "Write the value into another key.")
