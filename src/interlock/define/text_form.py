"""From a file's bytes to a JSON value, strictly: no duplicate keys, no surprises (JSON and YAML)."""

import json
import re
from collections.abc import Iterable
from math import isfinite
from typing import Literal, NoReturn, TypeAlias, cast

from interlock.define.diagnostics import Diagnostic, fault
from interlock.kernel.budgets import DOCUMENT_BYTES_MAX, DOCUMENT_DEPTH_MAX, YAML_BYTES_MAX
from interlock.kernel.canonical import SAFE_INTEGER_MAX, Json, NotCanonicalError, canonical_bytes

Form = Literal["json", "yaml"]

FORM_BYTES_MAX: dict[Form, int] = {"json": DOCUMENT_BYTES_MAX, "yaml": YAML_BYTES_MAX}
_Container: TypeAlias = dict[str, object] | list[object]
_CONTAINERS = (dict, list)
_HALF_A_CHARACTER = re.compile("[\ud800-\udfff]")


class _FormError(ValueError):
    """A text is not in its form; carries the diagnostic."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic


def parse_text(data: bytes, form: Form) -> dict[str, Json] | Diagnostic:
    """Return the object that a workflow file holds, or the fault that keeps it from being read."""
    try:
        return _value(data, form)
    except _FormError as error:
        return error.diagnostic
    except RecursionError:
        return _too_deep()
    except (ValueError, OverflowError):
        # A number of thousands of digits, a character beyond Unicode: the reader stumbles, the document is at fault.
        return fault("", "not_json" if form == "json" else "not_yaml", "A value cannot be read.", "Write it as text.")


def _value(data: bytes, form: Form) -> dict[str, Json]:
    if len(data) > FORM_BYTES_MAX[form]:
        fix = f"Keep it within {FORM_BYTES_MAX[form]}; point at long texts."
        raise _FormError(fault("", "too_large", f"The file has {len(data)} bytes.", fix))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _FormError(
            fault("", "not_utf8", f"Byte {error.start} is not UTF-8.", "Save the file as UTF-8.")
        ) from None
    value = _json(text) if form == "json" else _yaml(text)
    if not isinstance(value, dict):
        begin = "Begin with `id`, `name` and `steps`."
        raise _FormError(fault("", "not_an_object", "The file does not hold an object.", begin))
    inexact = _inexact(cast("dict[str, object]", value))
    if inexact is not None:
        found, inside_out = inexact
        raise _FormError(fault(_path(inside_out), "number_not_exact", f"Found {found}.", "Write it as text."))
    return cast("dict[str, Json]", value)


def _too_deep() -> Diagnostic:
    return fault("", "too_deep", f"Nested deeper than {DOCUMENT_DEPTH_MAX} levels.", "Flatten the document.")


def _is_too_deep(value: object) -> bool:
    """Say whether containers nest too deeply. Walks level by level: one that recursed would meet the limit itself."""
    level = [value]
    for _ in range(DOCUMENT_DEPTH_MAX):
        level = [item for container in level for item in _inside(container) if type(item) is dict or type(item) is list]
        if not level:
            return False
    return True


def _inside(value: object) -> Iterable[object]:
    if type(value) is dict:
        return cast("dict[str, object]", value).values()
    return cast("list[object]", value) if type(value) is list else ()


def _json(text: str) -> object:
    repeats: list[bool] = []

    def members(pairs: list[tuple[str, object]]) -> object:
        made = dict(pairs)
        if len(made) == len(pairs):
            return made
        repeats.append(True)
        return _Pairs(pairs)

    try:
        value = cast("object", json.loads(text, object_pairs_hook=members, parse_constant=_constant))
    except json.JSONDecodeError as error:
        raise _FormError(
            fault("", "not_json", f"Line {error.lineno}, column {error.colno}: {error.msg}.", "Correct the JSON.")
        ) from None
    repeated = _repeated(value) if repeats else None
    if repeated is not None:
        message = f"The key {repeated[0]!r} stands twice."
        raise _FormError(fault(_path(repeated), "duplicate_key", message, "Keep one of them."))
    if _is_too_deep(value):
        raise _FormError(_too_deep())
    return value


class _Pairs(list[tuple[str, object]]):
    """The members, as they stand, of an object that has one key twice."""


def _members(value: object) -> Iterable[tuple[str | int, object]]:
    if isinstance(value, _Pairs):
        return value
    if isinstance(value, dict):
        return cast("dict[str, object]", value).items()
    return enumerate(cast("list[object]", value)) if isinstance(value, list) else ()


def _repeated(value: object) -> list[str | int] | None:
    """Return the path of the first key that stands twice, its last part first."""
    met: set[str | int] = set()
    for part, member in _members(value):
        if part in met:
            return [part]
        met.add(part)
        inside_out = _repeated(member)
        if inside_out is not None:
            inside_out.append(part)
            return inside_out
    return None


def _inexact(value: _Container) -> tuple[str, list[str | int]] | None:
    """Return what keeps a value from having canonical bytes, and its path with the last part first.

    Paths are put together on the way out. One that was built on the way in would cost its length for every value,
    and keys may be long.
    """
    if isinstance(value, dict):
        found = _why_inexact("".join(value))
        if found:
            return found, []
    for part, member in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(member, _CONTAINERS):
            inside = _inexact(cast("_Container", member)) if member else None
            if inside is not None:
                inside[1].append(part)
                return inside
        elif found := _why_inexact(member):
            return found, [part]
    return None


def _why_inexact(scalar: object) -> str | None:
    """Return what `canonical_bytes` has against a scalar; it is asked only about those that it may refuse."""
    match scalar:
        case str():
            is_exact = scalar.isascii() or not _HALF_A_CHARACTER.search(scalar)
        case int():
            is_exact = -SAFE_INTEGER_MAX <= scalar <= SAFE_INTEGER_MAX
        case float():
            is_exact = isfinite(scalar)
        case _:
            is_exact = True
    if not is_exact:
        try:
            canonical_bytes(scalar)
        except NotCanonicalError as error:
            return error.found
    return None


def _path(inside_out: Iterable[str | int]) -> str:
    path = ""
    for part in reversed(tuple(inside_out)):
        path = f"{path}[{part}]" if isinstance(part, int) else f"{path}.{part}" if path else part
    return path


def _constant(name: str) -> NoReturn:
    raise _FormError(fault("", "not_json", f"{name} is not JSON.", "Write a number or a text."))


def _yaml(text: str) -> object:
    from interlock.define.yaml_form import YamlFault, load_yaml  # noqa: PLC0415 — JSON files do not pay for YAML

    found = load_yaml(text)
    if isinstance(found, YamlFault):
        raise _FormError(fault(_path(found.inside_out), found.code, found.message, found.fix))
    return found.value
