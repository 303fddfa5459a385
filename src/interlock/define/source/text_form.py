"""Parses the bytes of a JSON or YAML file into a JSON value. Strict: for example, duplicate keys are refused."""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Literal, NoReturn, TypeAlias, cast

from interlock.define.diagnostics import Diagnostic, fault
from interlock.define.source.unreadable import find_false_space, find_merge_marker
from interlock.kernel.budgets import (
    NUMBER_DIGITS_MAX,
)
from interlock.kernel.budgets.workflow import (
    DOCUMENT_BYTES_MAX,
    DOCUMENT_DEPTH_MAX,
    DOCUMENT_VALUES_MAX,
    YAML_BYTES_MAX,
)
from interlock.kernel.canonical import Json, NotCanonicalError, canonical_bytes, number_fault
from interlock.kernel.frozen import replace
from interlock.kernel.json_bounds import Excess, JsonBounds, find_excess
from interlock.kernel.text import has_surrogate, render_path

TextFormat = Literal["json", "yaml"]

FORMAT_BYTES_MAX: dict[TextFormat, int] = {"json": DOCUMENT_BYTES_MAX, "yaml": YAML_BYTES_MAX}
_Container: TypeAlias = dict[str, object] | list[object]
_CONTAINERS = (dict, list)
_LONE_SURROGATE = "text with a lone surrogate"
"""The error of `canonical_bytes` for a text that UTF-8 cannot represent."""
_STRING = r'"(?:[^"\\]|\\.)*"'
_BRACKET = r"[\[\]{}]"
_CONSTANT = "NaN|-?Infinity"
_LONG_NUMBER = f"[0-9]{{{NUMBER_DIGITS_MAX + 1},}}"
_BOUNDS = JsonBounds(values_max=DOCUMENT_VALUES_MAX, depth_max=DOCUMENT_DEPTH_MAX)


class _ConstantError(Exception):
    """A JSON text contains a constant that is not JSON, such as NaN."""


class _UnreadableTextError(ValueError):
    """A text is not valid in its format. The error carries the diagnostic."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic


def parse_text(data: bytes, text_format: TextFormat) -> dict[str, Json] | Diagnostic:
    """Parse the object in a workflow file, or return the fault that makes it unreadable."""
    try:
        return _parse_object(data, text_format)
    except _UnreadableTextError as error:
        return error.diagnostic


def _parse_object(data: bytes, text_format: TextFormat) -> dict[str, Json]:
    if len(data) > FORMAT_BYTES_MAX[text_format]:
        fix = f"Shorten the file to {FORMAT_BYTES_MAX[text_format]} bytes; refer to long texts instead."
        # The file was read only up to one byte above the limit, so its size is not known.
        raise _UnreadableTextError(
            fault("", "too_large", f"The file has more than {FORMAT_BYTES_MAX[text_format]} bytes.", fix)
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _UnreadableTextError(
            fault("", "not_utf8", f"The file is not UTF-8: byte {error.start} is invalid.", "Save the file as UTF-8.")
        ) from None
    if text_format == "json" and (excess := find_excess(data, _BOUNDS)) is not None:
        raise _UnreadableTextError(_report_excess(text, excess))
    value = _parse_json(text) if text_format == "json" else _parse_yaml(text)
    if not isinstance(value, dict):
        begin = "Write one object. A workflow begins with `id`, `name` and `steps`."
        raise _UnreadableTextError(fault("", "not_an_object", "The file does not hold an object.", begin))
    inexact = _find_inexact(cast("dict[str, object]", value))
    if inexact is not None:
        found, reversed_path = inexact
        if found == _LONE_SURROGATE:
            fix = "Write both halves of the character, such as `\\ud83d\\ude00`."
            raise _UnreadableTextError(
                fault(
                    render_path(reversed(reversed_path)),
                    "not_utf8",
                    f"Found {found}, which is only half of a character.",
                    fix,
                )
            )
        raise _UnreadableTextError(
            fault(
                render_path(reversed(reversed_path)),
                "number_not_exact",
                f"Found {found}, which cannot be stored exactly.",
                "Write the number as text, in quotes.",
            )
        )
    return cast("dict[str, Json]", value)


def _report_excess(text: str, excess: Excess) -> Diagnostic:
    match excess:
        case "values":
            return fault(
                "",
                "too_large",
                f"The file has more than {DOCUMENT_VALUES_MAX} values.",
                "Move some of the steps to another workflow.",
            )
        case "depth":
            return _report_depth(text)
        case "digits":
            found = fault(
                "",
                "not_json",
                f"A number has more than {NUMBER_DIGITS_MAX} digits.",
                "Write the number as text, in quotes.",
            )
            return _add_position(found, text, _find_outside_strings(text, _LONG_NUMBER))


def _report_depth(text: str) -> Diagnostic:
    found = fault(
        "",
        "too_deep",
        f"The file nests deeper than {DOCUMENT_DEPTH_MAX} levels.",
        "Use fewer objects and lists inside each other.",
    )
    depth = 0
    for bracket in _find_outside_strings(text, _BRACKET):
        depth += 1 if bracket[0] in "[{" else -1
        if depth > DOCUMENT_DEPTH_MAX:
            return _add_position(found, text, iter((bracket,)))
    return found


def _find_outside_strings(text: str, pattern: str) -> Iterator[re.Match[str]]:
    """Yield the matches of a pattern in a JSON text, outside its strings."""
    return (found for found in re.finditer(f"{_STRING}|{pattern}", text) if not found[0].startswith('"'))


def _add_position(found: Diagnostic, text: str, matches: Iterator[re.Match[str]]) -> Diagnostic:
    """Return a diagnostic with the line and column of the first match."""
    first = next(matches, None)
    return found if first is None else _at(found, text, first.start())


def _at(found: Diagnostic, text: str, at: int) -> Diagnostic:
    """Return a diagnostic with the line and column of an offset."""
    return replace(found, line=text.count("\n", 0, at) + 1, column=at - text.rfind("\n", 0, at))


def _parse_json(text: str) -> object:
    repeats: list[bool] = []

    def members(pairs: list[tuple[str, object]]) -> object:
        made = dict(pairs)
        if len(made) == len(pairs):
            return made
        repeats.append(True)
        return _Pairs(pairs)

    try:
        value = cast("object", json.loads(text, object_pairs_hook=members, parse_constant=_refuse_constant))
    except _ConstantError as error:
        found = fault("", "not_json", f"{error} is not JSON.", "Write a number or a string.")
        raise _UnreadableTextError(_add_position(found, text, _find_outside_strings(text, _CONSTANT))) from None
    except json.JSONDecodeError as error:
        culprit = find_merge_marker(text) or find_false_space(text, error.pos, error.pos)
        message = f"Line {error.lineno}, column {error.colno}: {error.msg}."
        if culprit is not None:
            found = fault("", "not_json", culprit.message, culprit.fix)
            raise _UnreadableTextError(_at(found, text, culprit.at)) from None
        found = fault("", "not_json", message, "Correct the JSON at this place.")
        raise _UnreadableTextError(replace(found, line=error.lineno, column=error.colno)) from None
    repeated = _find_repeated_key(value) if repeats else None
    if repeated is not None:
        message = f"The key {repeated[0]!r} occurs twice."
        raise _UnreadableTextError(
            fault(render_path(reversed(repeated)), "duplicate_key", message, "Remove one of the two.")
        )
    return value


class _Pairs(list[tuple[str, object]]):
    """The members of an object with a duplicate key, in order."""


def _iter_members(value: object) -> Iterable[tuple[str | int, object]]:
    if isinstance(value, _Pairs):
        return value
    if isinstance(value, dict):
        return cast("dict[str, object]", value).items()
    return enumerate(cast("list[object]", value)) if isinstance(value, list) else ()


def _find_repeated_key(value: object) -> list[str | int] | None:
    """Return the path of the first duplicate key, from its last part to its first."""
    seen: set[str | int] = set()
    for part, member in _iter_members(value):
        if part in seen:
            return [part]
        seen.add(part)
        reversed_path = _find_repeated_key(member)
        if reversed_path is not None:
            reversed_path.append(part)
            return reversed_path
    return None


def _find_inexact(value: _Container) -> tuple[str, list[str | int]] | None:
    """Return why a value has no canonical bytes, and its path from the last part to the first.

    The path is built only after a fault is found, on the way out of the recursion. Keys may be long, so building a path
    for every value would be slow.
    """
    if isinstance(value, dict):
        found = _describe_inexact("".join(value))
        if found:
            return found, []
    for part, member in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(member, _CONTAINERS):
            inside = _find_inexact(cast("_Container", member)) if member else None
            if inside is not None:
                inside[1].append(part)
                return inside
        elif found := _describe_inexact(member):
            return found, [part]
    return None


def _describe_inexact(scalar: object) -> str | None:
    """Return why `canonical_bytes` refuses a scalar, or None. It is called only for scalars that it may refuse."""
    if isinstance(scalar, int | float):
        return number_fault(scalar)
    if isinstance(scalar, str) and has_surrogate(scalar):
        try:
            canonical_bytes(scalar)
        except NotCanonicalError as error:
            return error.found
    return None


def _refuse_constant(name: str) -> NoReturn:
    raise _ConstantError(name)


def _parse_yaml(text: str) -> object:
    from interlock.define.source.yaml_form import YamlFault, load_yaml  # noqa: PLC0415 — JSON files do not pay for YAML

    result = load_yaml(text)
    if isinstance(result, YamlFault):
        diagnostic = fault(render_path(reversed(result.reversed_path)), result.code, result.message, result.fix)
        raise _UnreadableTextError(replace(diagnostic, line=result.line, column=result.column))
    return result.value
