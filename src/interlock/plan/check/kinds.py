"""Checks each read of a declared context key against the types that the key can have.

A strict operator never converts: if the key can only have another type, the run would wait forever.
"""

from collections.abc import Iterator, Mapping
from typing import Literal, TypeAlias

from interlock.decide.condition import Compare, iter_comparisons
from interlock.decide.evaluate import EVIDENCE_ROOTS, describe_kind
from interlock.decide.value import Given, Operation, Value
from interlock.define import document as doc
from interlock.define.diagnostics import Diagnostic, fault, guessed_fix
from interlock.define.faults import check_path
from interlock.define.parts import ListItems
from interlock.kernel.canonical import Json
from interlock.plan.check.reads import action_comparisons, declared_items, guards, read_paths

Kind: TypeAlias = Literal["string", "number", "boolean", "list", "object"]
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


def path_faults(at: str, path: str, kinds: Kinds) -> Iterator[Diagnostic]:
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
            yield fault(
                at, "wrong_type", message, f"Only objects have members: read {before!r} itself, or another key."
            )
        elif known and here not in kinds:
            guess = guessed_fix(member, known, f"Read one of {', '.join(known)}.", before=f"{before}.")
            yield fault(at, "undeclared_key", f"{path!r} cannot exist: an item has no {member!r}.", *guess)
        before = here


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
