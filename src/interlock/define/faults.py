"""Turns the faults that pydantic finds into diagnostics for authors: the place, what was found, and the fix.

A document that is refused is checked with pydantic models, in both front ends. The paths of diagnostics are those of
the author's document, without the names that pydantic adds for alternatives of a union.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import count
from types import UnionType
from typing import Annotated, Any, Literal, TypeAlias, Union, cast, get_args, get_origin

from pydantic import BaseModel, JsonValue, Tag
from pydantic.fields import FieldInfo

from interlock.decide.criteria import Length
from interlock.define.diagnostics import Diagnostic, DiagnosticCode, Replacement, fault, is_spelling_of, suggest_name
from interlock.define.source.unreadable import describe_invisible, is_invisible
from interlock.kernel.budgets import (
    NOTES_INPUT_BYTES_MAX,
)
from interlock.kernel.budgets.workflow import (
    DIAGNOSTICS_FOUND_MAX,
    FOUND_CHARS_MAX,
    LONG_NAME_CHARS,
    STEP_ID_CHARS_MAX,
)
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import frozen
from interlock.kernel.shape import Choice, ReadFault, Shape, required_members
from interlock.kernel.shape.mirror import mirror_of
from interlock.kernel.text import render_path
from interlock.record.context import RESERVED_KEYS

Location: TypeAlias = tuple[int | str, ...]

_LITERAL_TYPES = frozenset({"literal_error", "union_tag_invalid"})
_SAFE_PATTERN = r"^[a-z0-9_-]+$"
_JSON_MEMBERS: tuple[object, ...] = (
    Annotated[list[JsonValue], Tag("list")],
    Annotated[dict[str, JsonValue], Tag("dict")],
)
"""The containers that pydantic distinguishes inside a JSON value."""
_INTENDED_BY: Mapping[str, tuple[str, ...]] = {
    "steps": ("body",),
    "id": ("loopId",),
    "autonomy": ("recommendedAutonomy",),
    "riskPolicy": ("recommendedRiskPolicy",),
    **dict.fromkeys(("==", "=", "eq", "is"), ("equals",)),
    **dict.fromkeys(("!=", "<>", "ne", "neq"), ("notEquals",)),
    **dict.fromkeys((">", "greaterThan"), ("gt",)),
    **dict.fromkeys((">=", "greaterThanOrEqual"), ("gte",)),
    **dict.fromkeys(("<", "lessThan"), ("lt",)),
    **dict.fromkeys(("<=", "lessThanOrEqual"), ("lte",)),
}
"""The keys that are intended by keys of another part or language, in addition to those that are spelled like them."""
_NO_OPERATORS = frozenset({"matches", "match", "regex", "pattern", "like", "=~"})
_AN_OPERATOR = "startsWith"
"""A key that only conditions have."""
_WRITE_MATCHING = "Write a string that matches"
_KEY_MARKER = "[key]"
"""The last part of a pydantic location if the fault is in a key, not in its value."""

_CODE_AND_FIX: dict[str, tuple[DiagnosticCode, str]] = {
    "missing": ("missing_key", "Add the key."),
    "string_type": ("wrong_type", "Write a string."),
    "bool_type": ("wrong_type", "Write true or false."),
    "int_type": ("wrong_type", "Write a whole number."),
    "float_type": ("wrong_type", "Write a number."),
    "tuple_type": ("wrong_type", "Write a list."),
    "list_type": ("wrong_type", "Write a list."),
    "dict_type": ("wrong_type", "Write an object."),
    "model_type": ("wrong_type", "Write an object."),
    "model_attributes_type": ("wrong_type", "Write an object."),
    "string_too_short": ("empty", "Write a string that is not empty."),
    "too_short": ("empty", "Add at least one entry."),
    "string_too_long": ("too_long", "Shorten the text."),
    "too_long": ("too_many", "Use fewer entries."),
    "string_pattern_mismatch": ("bad_id", "Use only a-z, 0-9, `_` and `-`."),
    "literal_error": ("wrong_value", "Use one of the allowed values."),
}


@frozen
class _Place:
    """The place of a fault in the author's document.

    `siblings` are the keys that are known at this place. `is_key`: the key is at fault, not its value. `field` is what
    is known about the key at its place. `kinds` are the words that are allowed here if the object around the place were
    of another form: the types of steps. `owners` are the types of those forms that have the key.
    """

    loc: Location
    siblings: tuple[str, ...] = ()
    is_key: bool = False
    field: FieldInfo | None = None
    kinds: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()


def diagnose_faults(
    faults: Iterable[ReadFault], value: Mapping[str, Json], model: type[BaseModel | Shape]
) -> list[Diagnostic]:
    """Return one diagnostic for each place and code of some faults, up to one more than a file's list shows."""
    diagnostics: dict[tuple[Location, DiagnosticCode], Diagnostic] = {}
    for one in faults:
        place = _locate(one, value, model)
        if _is_miscounted(one, find_value(value, place.loc)):
            continue
        diagnostic = _build_diagnostic(one, place, value)
        # pydantic tries each alternative of a union without tags, so one fault can be reported several times. For
        # `int | float` it reports both types; "Write a number." is the correct fix.
        if one["type"] == "float_type":
            diagnostics[place.loc, diagnostic.code] = diagnostic
        diagnostics.setdefault((place.loc, diagnostic.code), diagnostic)
        if len(diagnostics) > DIAGNOSTICS_FOUND_MAX:
            break
    renamed = {_place_of_guess(one) for one in diagnostics.values() if one.code == "unknown_key"}
    return [one for one in diagnostics.values() if one.code != "missing_key" or one.path not in renamed]


def _place_of_guess(found: Diagnostic) -> str | None:
    """Return the path that an unknown key has as soon as it has the suggested name."""
    guess = found.replacement.write if found.replacement is not None else None
    if found.replacement is None or guess is None:
        return None
    return found.path.removesuffix(found.replacement.found) + guess


def find_value(document: Mapping[str, Json], loc: Location) -> object:
    """Return the value at a location of a JSON value, or None if there is none."""
    value: object = document
    for part in loc:
        if isinstance(value, Mapping):
            value = cast("Mapping[str, object]", value).get(str(part))
        elif isinstance(value, list) and isinstance(part, int) and part < len(cast("list[object]", value)):
            value = cast("list[object]", value)[part]
        else:
            return None
    return cast("object", value)


def make_safe_id(text: str) -> str:
    """Build a delimiter-safe id that is similar to a text."""
    return re.sub(r"[^a-z0-9_-]+", "-", text.lower()).strip("-")[:STEP_ID_CHARS_MAX] or "step"


def make_free_name(name: str, taken: set[str], before_number: str = "-") -> str:
    """Return a name that is similar to one that is used twice, and add it to the names that are taken.

    A long name does not become longer, so that it stays within its limit.
    """
    for number in count(2):
        suffix = f"{before_number}{number}"
        stem = name if len(name) < LONG_NAME_CHARS else name[: -len(suffix)]
        if (found := f"{stem}{suffix}") not in taken:
            taken.add(found)
            return found
    raise AssertionError("numbers have no end")


def _is_miscounted(one: ReadFault, found: object) -> bool:
    """Return whether a list is long enough after all. pydantic does not count items with faults."""
    if one["type"] != "too_short" or not isinstance(found, list):
        return False
    return len(cast("list[object]", found)) >= cast("int", one.get("ctx", {}).get("min_length", 1))


def _build_diagnostic(one: ReadFault, place: _Place, document: Mapping[str, Json]) -> Diagnostic:
    path = render_path(place.loc)
    key = str(place.loc[-1]) if place.loc else ""
    if one["type"] == "extra_forbidden":
        return _build_unknown_key(path, key, place, document)
    value = key if place.is_key else find_value(document, place.loc)
    if place.kinds and one["type"] == "literal_error":
        return _build_unknown_kind(place, value)
    code, fix = _choose_code_and_fix(one, value)
    described = place.field.description if place.field is not None and not place.is_key else None
    if described and one["type"] == "string_pattern_mismatch" and fix.startswith(_WRITE_MATCHING):
        fix = f"`{key}` is {described}. {fix}"
    if place.is_key and code == "wrong_value":
        code = "unknown_key"
    if code == "missing_key":
        return fault(path, code, f"The key {key!r} is missing.", _describe_missing(key, place.field) or fix)
    found = f"the key {key!r}" if place.is_key else _describe_value(find_value(document, place.loc))
    if code == "wrong_type":
        return fault(path, code, f"Found {found}, which has the wrong type.", fix)
    if code == "empty" and (size := _describe_size(find_value(document, place.loc))):
        least = cast("int", one.get("ctx", {}).get("min_length", 1))
        message = f"Found {found} with {size}; the minimum is {least}."
        return fault(path, "wrong_value", message, _fix_short(find_value(document, place.loc), least))
    if code == "empty":
        return fault(path, code, f"Found {found}, which is empty.", fix)
    if code == "too_many":
        size = _describe_size(find_value(document, place.loc))
        return fault(
            path, code, f"Found {found} with {size}; the limit is {one.get('ctx', {}).get('max_length')}.", fix
        )
    message = one["msg"]
    guess = _guess_value(one, value)
    written = Replacement(found=str(value), write=guess, is_key=place.is_key) if guess else None
    return fault(path, code, f"Found {found}: {message[:1].lower()}{message[1:]}.", fix, written)


def _build_unknown_key(path: str, key: str, place: _Place, document: Mapping[str, Json]) -> Diagnostic:
    around = find_value(document, place.loc[:-1])
    present = cast("Mapping[str, object]", around).keys() if isinstance(around, Mapping) else ()
    fix, edit = _fix_unknown_key(key, place, present)
    hidden = next(filter(is_invisible, key), None)
    if hidden is not None:
        message = f"The key {key!r} is not known here: it has the character {describe_invisible(hidden)}."
        return fault(path, "unknown_key", message, "Replace the character with a space, or remove it.", edit)
    return fault(path, "unknown_key", f"The key {key!r} is not known here.", fix, edit)


def _fix_short(value: object, least: int) -> str:
    """Return the fix of a list or a text that is too short."""
    if not isinstance(value, list):
        return f"Write at least {least} characters."
    more = least - len(cast("list[object]", value))
    return f"Add at least {more} entr{'ies' if more > 1 else 'y'}."


def _fix_unknown_key(key: str, place: _Place, present: Collection[str]) -> tuple[str, Replacement | None]:
    """Return the fix of an unknown key, and its edit if one is certain. `present` are the keys of its object."""
    intended = (one for one in _INTENDED_BY.get(key, ()) if one in place.siblings and one not in present)
    guess = next(intended, None)
    if guess is None and place.owners:
        owners = ", ".join(f"`{name}`" for name in place.owners)
        return f"Only steps of these types have this key: {owners}. Remove it, or write it in such a step.", None
    if guess is None and key in _NO_OPERATORS and _AN_OPERATOR in place.siblings:
        return "There are no patterns in conditions. Write `contains`, `startsWith` or `endsWith`.", None
    guess = guess or suggest_name(key, place.siblings)
    if guess is not None and guess in present:
        # A key that is only a little similar to one that is there has nothing to do with it.
        if is_spelling_of(key, guess):
            fix = f"`{guess}` is there already. Remove the key."
            return fix, Replacement(found=key, write=None, is_key=True)
        guess = suggest_name(key, [one for one in place.siblings if one not in present])
    fix = "Remove the key." if guess is None else f"Did you mean `{guess}`?"
    return fix, Replacement(found=key, write=guess, is_key=True)


def _describe_missing(key: str, field: FieldInfo | None) -> str | None:
    """Return what to write for a missing key: its only value, its members, or what it is. None if none is known."""
    words = _list_words(field)
    if len(words) == 1:
        return f"Add `{key}: {words[0]}`."
    bare = _strip_annotation(field.annotation) if field is not None else None
    if isinstance(bare, type) and issubclass(bare, Shape) and (members := required_members(bare)):
        return f"Add `{key}`, an object with {', '.join(f'`{name}`' for name in members)}."
    return f"Add `{key}`: {field.description}." if field is not None and field.description else None


def _build_unknown_kind(place: _Place, value: object) -> Diagnostic:
    """Build the diagnostic of an unknown kind of object, such as a type of step that does not exist."""
    path, key = render_path(place.loc), str(place.loc[-1])
    own = _list_words(place.field)
    # The other keys of the object say which kind it is, unless it has the kind that may be omitted.
    by_keys = own[0] if len(own) == 1 and own[0] != place.kinds[0] else None
    guess = by_keys or (suggest_name(value, place.kinds) if isinstance(value, str) else None)
    every = ", ".join(f"`{name}`" for name in place.kinds)
    fix = f"Did you mean `{guess}`? The {key}s are {every}." if guess else f"Write one of the {key}s {every}."
    written = Replacement(found=str(value), write=guess) if guess and isinstance(value, str) else None
    return fault(path, "wrong_value", f"Found {_describe_value(value)}: there is no such {key}.", fix, written)


def _list_words(field: FieldInfo | None) -> tuple[str, ...]:
    """Return the words that are allowed in a field; none if it takes other values."""
    if field is None:
        return ()
    bare = [_strip_annotation(one) for one in _list_alternatives(field.annotation)]
    return tuple(str(word) for one in bare if get_origin(one) is Literal for word in get_args(one))


def _guess_value(one: ReadFault, value: object) -> str | None:
    """Return what the fix suggests to write instead; None if it suggests nothing in particular."""
    limits = cast("Mapping[str, object]", one.get("ctx", {}))
    if isinstance(value, int | float) and not isinstance(value, bool):
        nearest = limits.get("ge", limits.get("le"))
        return None if nearest is None else str(nearest)
    if one["type"] == "string_pattern_mismatch" and limits.get("pattern") == _SAFE_PATTERN:
        return make_safe_id(str(value))
    return _guess_literal(one, value)


def _describe_size(value: object) -> str | None:
    """Describe the size of a string or list, or return None if it is empty or another value."""
    match value:
        case str() if value:
            return f"{len(value)} character{'s' * (len(value) > 1)}"
        case list() if value:
            entries = len(cast("list[object]", value))
            return f"{entries} entr{'ies' if entries > 1 else 'y'}"
        case _:
            return None


def _choose_code_and_fix(one: ReadFault, found: object) -> tuple[DiagnosticCode, str]:
    code, fix = _CODE_AND_FIX.get(one["type"], ("wrong_value", "Correct the value."))
    context = cast("Mapping[str, object]", one.get("ctx", {}))
    if one["type"] == "union_tag_not_found":
        return "missing_key", "Add the key."
    if one["type"] in _LITERAL_TYPES:
        guess = _guess_literal(one, found)
        return code, f"Did you mean `{guess}`?" if guess else f"Write {_expected(one)}."
    if "ge" in context or "le" in context:
        return code, f"Write {context['ge']} or more." if "ge" in context else f"Write {context['le']} or less."
    if one["type"] == "string_pattern_mismatch":
        pattern = str(context.get("pattern"))
        if "a-z" not in pattern:
            return "wrong_value", f"{_WRITE_MATCHING} `{pattern}`."
        if pattern != _SAFE_PATTERN:
            return code, f"{_WRITE_MATCHING} `{pattern}`."
        return code, f"{fix} For example `{make_safe_id(str(found))}`."
    return code, fix


def _guess_literal(one: ReadFault, found: object) -> str | None:
    """Return the expected word that is most similar to the value; None without a similar one."""
    if one["type"] not in _LITERAL_TYPES or not isinstance(found, str):
        return None
    return suggest_name(found, re.findall(r"'([^']*)'", _expected(one)))


def _expected(one: ReadFault) -> str:
    context = cast("Mapping[str, object]", one.get("ctx", {}))
    return str(context.get("expected", context.get("expected_tags", "")))


def _describe_value(value: object) -> str:
    match value:
        case str():
            return repr(value if len(value) <= FOUND_CHARS_MAX else value[: FOUND_CHARS_MAX - 3] + "…")
        case dict():
            return "an object"
        case list():
            return "a list"
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case _:
            return str(value)


def _locate(one: ReadFault, document: Mapping[str, Json], model: type[BaseModel | Shape]) -> _Place:
    """Return the place of an error in the document: pydantic's location without the names of alternatives."""
    loc: list[int | str] = []
    kinds: Sequence[object] = (model,)
    around: Sequence[object] = kinds
    forms: Sequence[object] = ()
    forms_around: Sequence[object] = ()
    for number, part in enumerate(one["loc"]):
        is_last = number == len(one["loc"]) - 1
        if part == _KEY_MARKER and is_last and one["type"] != "extra_forbidden" and not _has_key(document, loc, part):
            return _Place(loc=tuple(loc), is_key=True)
        around, forms_around = kinds, forms
        kinds, is_place = _descend(kinds, part)
        forms = () if is_place else [member for kind in around for member in _list_alternatives(kind)]
        loc += [part] if is_place else []
    if one["type"].startswith("union_tag_") and isinstance(find_value(document, tuple(loc)), dict):
        # pydantic puts the name of the discriminator key in quotes.
        loc.append(str(one.get("ctx", {}).get("discriminator", "")).strip("'"))
    key = loc[-1] if loc else ""
    field = _find_field(around, key)
    kinds_of_form = (
        word for form in forms_around if _list_words(field) for word in _list_words(_find_field([form], key))
    )
    return _Place(
        loc=tuple(loc),
        siblings=tuple(_iter_keys(around)),
        field=field,
        kinds=tuple(dict.fromkeys(kinds_of_form)),
        owners=tuple(_iter_owners(forms_around, key)) if field is None else (),
    )


def _iter_owners(forms: Sequence[object], key: int | str) -> Iterator[str]:
    """Yield the type of each form that has a key."""
    for form in forms:
        words = _list_words(_find_field([form], "type"))
        if words and _find_field([form], key) is not None:
            yield words[0]


def _find_field(kinds: Sequence[object], key: int | str) -> FieldInfo | None:
    """Return what is known about a key of the forms that an object can have."""
    members = (member for kind in kinds for member in _list_alternatives(kind))
    models = (model for member in members if (model := _find_model(_strip_annotation(member))) is not None)
    fields = (item for model in models for item in model.model_fields.items())
    return next((field for name, field in fields if (field.alias or name) == key), None)


def _has_key(document: Mapping[str, Json], loc: Sequence[int | str], key: int | str) -> bool:
    around = find_value(document, tuple(loc))
    return isinstance(around, dict) and key in around


def _descend(kinds: Sequence[object], part: int | str) -> tuple[list[object], bool]:
    """Return the types that are possible one part deeper.

    The second value is False if the part is not a place in the document, only pydantic's name of an alternative.
    """
    for kind in kinds:
        members = _list_alternatives(kind)
        if len(members) > 1:
            return [member for member in members if part in _iter_alternative_names(member)] or members, False
        if (inner := _find_member_type(members[0], part)) is not None:
            return [inner], True
    return [], True


def _list_alternatives(kind: object) -> list[object]:
    """Return the alternatives of a union without `None`, or the type itself if it is not a union."""
    bare = _strip_annotation(kind)
    if bare in (JsonValue, Any):
        return list(_JSON_MEMBERS)
    if get_origin(bare) not in (Union, UnionType):
        return [kind]
    members = [member for member in get_args(bare) if member is not type(None)]
    return _list_alternatives(members[0]) if len(members) == 1 else members


def _strip_annotation(kind: object) -> object:
    bare = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    is_choice = isinstance(bare, type) and issubclass(bare, Choice)
    return _strip_annotation(cast("type[Choice]", bare).union()) if is_choice else cast("object", bare)


def _iter_alternative_names(member: object) -> Iterator[object]:
    """Yield the names that pydantic may use for an alternative: its tag, its class, its discriminator values."""
    if get_origin(member) is Annotated:
        yield from (mark.tag for mark in get_args(member) if isinstance(mark, Tag))
    bare = _strip_annotation(member)
    if (model := _find_model(bare)) is not None:
        yield model.__name__
        for field in model.model_fields.values():
            if get_origin(field.annotation) is Literal:
                yield from get_args(field.annotation)


def _find_member_type(kind: object, part: int | str) -> object | None:
    bare = _strip_annotation(kind)
    if (model := _find_model(bare)) is not None:
        return next(
            (info.annotation for name, info in model.model_fields.items() if (info.alias or name) == part), None
        )
    arguments = get_args(bare)
    if get_origin(bare) in (tuple, list) and isinstance(part, int):
        return arguments[0]
    return arguments[1] if get_origin(bare) in (dict, Mapping) else None


def _find_model(kind: object) -> type[BaseModel] | None:
    if not isinstance(kind, type):
        return None
    if issubclass(kind, Shape):
        return mirror_of(kind)
    if not issubclass(kind, BaseModel):
        return None
    kind.model_rebuild(raise_errors=False)
    return kind


def _iter_keys(kinds: Sequence[object]) -> Iterator[str]:
    for kind in kinds:
        for member in _list_alternatives(kind):
            if (model := _find_model(_strip_annotation(member))) is not None:
                yield from (field.alias or name for name, field in model.model_fields.items())


def check_path(path: str, at: str) -> Iterator[Diagnostic]:
    """Yield why a context path can never have a value: a part of it is blank, or a reserved key."""
    parts = path.split(".")
    if not all(part.strip() for part in parts):
        fix = "Write names with single dots between them, such as `key.member`."
        yield fault(at, "wrong_value", f"The path {path!r} has an empty part.", fix)
    elif not RESERVED_KEYS.isdisjoint(parts):
        message = f"The path {path!r} contains a reserved key, which cannot be sent."
        yield fault(at, "wrong_value", message, "Use another context key.")


def check_length(rule: Length, at: str, *, is_negated: bool) -> Iterator[Diagnostic]:
    """Yield the reasons why no notes can meet a length rule. `is_negated`: notes must not meet the rule."""
    if rule.min is not None and rule.max is not None and rule.min > rule.max:
        message = f"`min` is {rule.min}, which is more than `max`, {rule.max}: no notes can meet the rule."
        yield fault(f"{at}.max", "wrong_value", message, f"Write a `max` of {rule.min} or more, or a smaller `min`.")
    if is_negated:
        return
    if rule.max == 0:
        message = "`max` is 0, but empty notes count as missing."
        yield fault(
            f"{at}.max", "wrong_value", message, 'Write a `max` of 1 or more, or `notes: "optional"` without this rule.'
        )
    if rule.min is not None and rule.min > NOTES_INPUT_BYTES_MAX:
        message = f"`min` is {rule.min}, but notes have at most {NOTES_INPUT_BYTES_MAX} bytes."
        yield fault(f"{at}.min", "wrong_value", message, f"Write {NOTES_INPUT_BYTES_MAX} or less.")
