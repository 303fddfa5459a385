"""Checks each read of a declared context key against the types and the choices that the key can have.

A strict operator never converts: if the key can only have another type, the run would wait forever, or the comparison
always has the same result.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Literal, TypeAlias, cast

from interlock.decide.condition import Compare, iter_comparisons
from interlock.decide.evaluate import EVIDENCE_ROOTS, describe_kind, is_same_value
from interlock.decide.value import Given, Operation, Value
from interlock.define import document as doc
from interlock.define.declared import describe_choices
from interlock.define.diagnostics import Diagnostic, fault, guessed_fix, suggest_name, warning
from interlock.define.faults import check_path
from interlock.define.parts import ListItems
from interlock.kernel.budgets import ECHO_BYTES_MAX
from interlock.kernel.budgets.workflow import CRITERIA_COMPARED_MAX
from interlock.kernel.canonical import Json
from interlock.kernel.text import one_line
from interlock.plan.check.reads import action_comparisons, declared_items, guards, read_paths

Kind: TypeAlias = Literal["string", "number", "boolean", "list", "object"]
Report: TypeAlias = Callable[..., Diagnostic]
"""`fault` or `warning`."""
Kinds: TypeAlias = Mapping[str, frozenset[Kind] | None]
"""Declared keys with their possible types; None if the type is not declared.

The path of a member, such as `item.name`, is in it if the items of a loop's list are declared with their members; then
the item has no others.
"""

IN_WORDS: Mapping[Kind, str] = {
    "string": "a string",
    "number": "a number",
    "boolean": "true or false",
    "list": "a list",
    "object": "an object",
}
_BY_WORDS: Mapping[str, Kind] = {words: kind for kind, words in IN_WORDS.items()}
_ORDERED: tuple[Kind, ...] = ("number",)
_TEXT: tuple[Kind, ...] = ("string",)
_WANTED: Mapping[str, tuple[str, tuple[Kind, ...]]] = {
    **{name: (name, _ORDERED) for name in ("gt", "gte", "lt", "lte")},
    "starts_with": ("startsWith", _TEXT),
    "ends_with": ("endsWith", _TEXT),
    "contains": ("contains", ("list", "string")),
}
"""How each operator that wants a kind is spelled, and what it wants."""
_EQUALITIES: Mapping[str, str] = {"equals": "equals", "not_equals": "notEquals", "in": "in"}
"""How each operator that compares with values of any kind is spelled."""
_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,9})?")
"""A text that is a number of JSON, and so short that no digit is lost."""
_YES_OR_NO: Mapping[str, bool] = {
    **dict.fromkeys(("true", "yes", "on"), True),
    **dict.fromkeys(("false", "no", "off"), False),
}


def kind_of_value(value: Json) -> Kind | None:
    """Return the type of an input with this value; None for null, which has no type."""
    return _BY_WORDS.get(describe_kind(value))


def declared_kinds(document: doc.WorkflowDocument) -> Kinds:
    """Return the keys that a document declares, each with its possible types."""
    kinds: dict[str, frozenset[Kind] | None] = {one.key: frozenset((one.type,)) for one in document.inputs}
    kinds["goal"] = frozenset(_TEXT)
    steps = [step for step in doc.walk_steps(document.steps) if isinstance(step, doc.AgentStep)]
    typed = kinds.keys() | {one.key for step in steps for one in step.declares}

    def declare(key: str, held: frozenset[Kind] | None) -> None:
        before = kinds.get(key, frozenset())
        kinds[key] = None if before is None or held is None else before | held

    for step in doc.walk_steps(document.steps):
        if isinstance(step, doc.AgentStep):
            for action in step.sets:
                kind = _kind_of_payload(action.payload)
                declare(action.key, frozenset((kind,)) if kind is not None else None)
            for one in step.declares:
                declare(one.key, frozenset((one.type,)))
            for key in step.produces:
                # The type of a declaration also counts for the steps that produce the key by its name.
                declare(key, frozenset() if key in typed else None)
        if isinstance(step, doc.LoopStep):
            declare(step.iteration_var, frozenset(_ORDERED))
            declare(step.index_var, frozenset(_ORDERED))
    for variable, known in _items_by_variable(document).items():
        has_members = known is not None and variable not in kinds and all(one.fields for one in known)
        declare(variable, frozenset(one.type for one in known) if known is not None else None)
        for member in (member for one in known or () for member in one.fields if has_members):
            declare(f"{variable}.{member.key}", frozenset((member.type,)))
    return kinds


def _items_by_variable(document: doc.WorkflowDocument) -> Mapping[str, list[ListItems] | None]:
    """Return what each item of a loop is, by its variable; None if one of the loops has a list of unknown items."""
    items, found = declared_items(document), dict[str, list[ListItems] | None]()
    for step in doc.walk_steps(document.steps):
        if isinstance(step, doc.LoopStep) and step.item_var is not None:
            before, here = found.get(step.item_var, []), items.get(step.items or "")
            found[step.item_var] = None if before is None or here is None else [*before, here]
    return found


def _kind_of_payload(value: Value) -> Kind | None:
    """Return the type of what an action sets, or None if it is not known from the action alone."""
    match value:
        case Given():
            return kind_of_value(value.value)
        case Operation():
            return "list" if value.op == "append" else "number"
        case _:
            return None


def unanswerable_reads(document: doc.WorkflowDocument) -> Iterator[Diagnostic]:
    """Yield each read of a declared key that can never succeed: the type is wrong, or the path enters no object."""
    kinds = declared_kinds(document)
    for step in doc.walk_steps(document.steps):
        turning = (step.condition,) if isinstance(step, doc.LoopStep) and step.condition is not None else ()
        for guard in (*guards(step), *turning):
            for term in iter_comparisons(guard.condition):
                yield from _check_comparison(term, guard.at, kinds)
        for at, term in action_comparisons(step):
            if term.key not in EVIDENCE_ROOTS:
                yield from _check_operator(term, at, kinds)
        for at, path in read_paths(step):
            yield from path_faults(at, path, kinds)
            if not at.endswith("]"):
                wanted: tuple[Kind, ...] = ("list",) if at.endswith(".items") else _ORDERED
                yield from _check_type(at, path, f"`{at.rpartition('.')[2]}`", wanted, kinds)


def path_faults(at: str, path: str, kinds: Kinds, report: Report = fault) -> Iterator[Diagnostic]:
    """Yield why a path can never have a value: no value can be sent there, or it enters what is not an object."""
    unusable = list(check_path(path, at))
    if unusable:
        yield from unusable
        return
    key, _, members = path.partition(".")
    before = key
    for member in members.split(".") if members else ():
        held, here = kinds.get(before), f"{before}.{member}"
        known = [one.rpartition(".")[2] for one in kinds if one.startswith(f"{before}.")]
        if held and "object" not in held:
            message = f"{path!r} cannot exist: {before!r} is {_in_words(held)}."
            yield report(
                at, "wrong_type", message, f"Only objects have members: read {before!r} itself, or another key."
            )
        elif known and here not in kinds:
            guess = guessed_fix(member, known, f"Read one of {', '.join(known)}.", before=f"{before}.")
            yield report(at, "undeclared_key", f"{path!r} cannot exist: an item has no {member!r}.", *guess)
        before = here


def constant_comparisons(document: doc.WorkflowDocument) -> Iterator[Diagnostic]:
    """Yield each comparison of a declared key with values that the key can never have (DEC-16)."""
    kinds = declared_kinds(document)
    choices = _declared_choices(document, kinds)
    for step in doc.walk_steps(document.steps):
        turning = (step.condition,) if isinstance(step, doc.LoopStep) and step.condition is not None else ()
        conditions = ((one.at, term) for one in (*guards(step), *turning) for term in iter_comparisons(one.condition))
        actions = ((at, term) for at, term in action_comparisons(step) if term.key not in EVIDENCE_ROOTS)
        for at, term in chain(conditions, actions):
            held = kinds.get(term.var)
            if held and term.op in _EQUALITIES:
                yield from _check_values(term, at, held, choices.get(term.var))


def _declared_choices(document: doc.WorkflowDocument, kinds: Kinds) -> Mapping[str, Sequence[Json] | None]:
    """Return the choices of keys, and of members of items; None for those that can have other values."""
    found: dict[str, Sequence[Json] | None] = {}
    for key, choices in (*_choices_of_steps(document), *_choices_of_items(document, kinds)):
        before = found.get(key, ())
        found[key] = None if before is None or not choices else (*before, *choices)
    return found


def _choices_of_steps(document: doc.WorkflowDocument) -> Iterator[tuple[str, Sequence[Json]]]:
    """Yield the keys of a document's declarations, steps and loops, with their choices; without any, all values."""
    inputs = {one.key for one in document.inputs}
    yield from ((one.key, one.choices) for one in document.inputs)
    for step in doc.walk_steps(document.steps):
        if isinstance(step, doc.AgentStep):
            yield from ((one.key, one.choices) for one in step.declares)
            yield from ((action.key, ()) for action in step.sets if action.key not in inputs)
        if isinstance(step, doc.LoopStep):
            yield from ((name, ()) for name in (step.iteration_var, step.index_var))


def _choices_of_items(document: doc.WorkflowDocument, kinds: Kinds) -> Iterator[tuple[str, Sequence[Json]]]:
    """Yield the items of loops and their members, by their paths, with their choices."""
    for variable, known in _items_by_variable(document).items():
        if known is None:
            yield variable, ()
        for item in known or ():
            yield variable, item.choices
            members = ((f"{variable}.{one.key}", one.choices) for one in item.fields)
            yield from ((path, choices) for path, choices in members if path in kinds)


def _check_values(
    term: Compare, at: str, held: frozenset[Kind], choices: Sequence[Json] | None
) -> Iterator[Diagnostic]:
    values = cast("Sequence[Json]", term.value) if term.op == "in" else (term.value,)
    if not values or len(values) > CRITERIA_COMPARED_MAX or any(_can_be(one, held, choices) for one in values):
        return
    spelled = _EQUALITIES[term.op]
    result = "always" if term.op == "not_equals" else "never"
    allowed = describe_choices(choices) if choices else _in_words(held)
    message = (
        f"The comparison is {result} true: {term.var!r} is {allowed}, and `{spelled}` compares it with"
        f" {_echo(term.value)}."
    )
    corrected = [_nearest(one, held, choices) for one in values]
    if None not in corrected:
        fix = f"Write `{spelled}: {_echo(corrected if term.op == 'in' else corrected[0])}`."
        if "boolean" in held:
            fix += " A text such as `yes` or `'true'` is no boolean."
    elif choices:
        fix = f"Compare it with {describe_choices(choices)}, or add the value to the `choices` of {term.var!r}."
    else:
        otherwise = "compare another key" if term.var == "goal" else f"change the declared type of {term.var!r}"
        fix = f"Compare it with {_in_words(held)}, or {otherwise}."
    yield warning(at, "constant_comparison", message, fix)


def _can_be(value: Json, held: frozenset[Kind], choices: Sequence[Json] | None) -> bool:
    """Return whether a key can have a value. Null stands for no value, which any key can have."""
    if value is None:
        return True
    if choices:
        return any(is_same_value(value, one) for one in choices)
    return kind_of_value(value) in held


def _nearest(value: Json, held: frozenset[Kind], choices: Sequence[Json] | None) -> Json:
    """Return the possible value that was intended by an impossible one, or None."""
    if isinstance(value, list | dict):
        return None
    words = value.strip() if isinstance(value, str) else _echo(value)
    intended: list[Json] = [words]
    if words.lower() in _YES_OR_NO:
        intended.append(_YES_OR_NO[words.lower()])
    if _NUMBER.fullmatch(words):
        intended.append(cast("Json", json.loads(words)))
    texts = [one for one in choices or () if isinstance(one, str)]
    intended += [one for one in texts if one.casefold() == words.casefold()]
    intended.append(suggest_name(words, texts))
    return next((one for one in intended if one is not None and _can_be(one, held, choices)), None)


def _echo(value: Json | Iterable[Json]) -> str:
    return one_line(json.dumps(value, ensure_ascii=False), ECHO_BYTES_MAX)


def _check_comparison(term: Compare, at: str, kinds: Kinds) -> Iterator[Diagnostic]:
    if term.op == "exists":
        yield from check_path(term.var, at)
        return
    found = list(path_faults(at, term.var, kinds))
    yield from found
    if not found:
        yield from _check_operator(term, at, kinds)


def _check_operator(term: Compare, at: str, kinds: Kinds) -> Iterator[Diagnostic]:
    if term.op not in _WANTED:
        return
    spelled, wanted = _WANTED[term.op]
    if term.op == "contains" and not isinstance(term.value, str):
        # A string contains only strings.
        yield from _check_type(at, term.var, f"`contains` with {describe_kind(term.value)}", ("list",), kinds)
    else:
        yield from _check_type(at, term.var, f"`{spelled}`", wanted, kinds)


def _check_type(at: str, key: str, reader: str, wanted: tuple[Kind, ...], kinds: Kinds) -> Iterator[Diagnostic]:
    held = kinds.get(key)
    if not held or not held.isdisjoint(wanted):
        return
    words = " or ".join(IN_WORDS[kind] for kind in wanted)
    declared = f"declare {key!r} with `type: {wanted[0]}`, or " if key != "goal" else ""
    fix = f"{declared}read another key."
    yield fault(
        at, "wrong_type", f"{key!r} is {_in_words(held)}, but {reader} needs {words}.", fix[:1].upper() + fix[1:]
    )


def _in_words(held: frozenset[Kind]) -> str:
    return " or ".join(IN_WORDS[kind] for kind in sorted(held))
