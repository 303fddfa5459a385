"""From a file's bytes to a JSON value, strictly: no duplicate keys, no surprises (JSON and YAML)."""

import json
from typing import Literal, NoReturn, cast

from interlock.define.diagnostics import Diagnostic, fault
from interlock.kernel.budgets import DOCUMENT_BYTES_MAX, DOCUMENT_DEPTH_MAX
from interlock.kernel.canonical import Json, NotCanonicalError, canonical_bytes, nests_deeper_than

Form = Literal["json", "yaml"]


class _FormError(ValueError):
    """A text is not in its form; carries the diagnostic."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic


def parse_text(data: bytes, form: Form) -> dict[str, Json] | Diagnostic:
    """Return the object that a workflow file holds, or the fault that keeps it from being read."""
    try:
        value = _value(data, form)
        canonical_bytes(value)
    except _FormError as error:
        return error.diagnostic
    except NotCanonicalError as error:
        return fault(error.path, "number_not_exact", f"Found {error.found}.", "Write it as text.")
    except RecursionError:
        return _too_deep()
    except (ValueError, OverflowError):
        # A number of thousands of digits, a character beyond Unicode: the reader stumbles, the document is at fault.
        return fault("", "not_json" if form == "json" else "not_yaml", "A value cannot be read.", "Write it as text.")
    return value


def _value(data: bytes, form: Form) -> dict[str, Json]:
    if len(data) > DOCUMENT_BYTES_MAX:
        fix = f"Keep it within {DOCUMENT_BYTES_MAX}; point at long texts."
        raise _FormError(fault("", "too_large", f"The file has {len(data)} bytes.", fix))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _FormError(
            fault("", "not_utf8", f"Byte {error.start} is not UTF-8.", "Save the file as UTF-8.")
        ) from None
    value = _json(text) if form == "json" else _yaml(text)
    if nests_deeper_than(value, DOCUMENT_DEPTH_MAX):
        raise _FormError(_too_deep())
    if not isinstance(value, dict):
        begin = "Begin with `id`, `name` and `steps`."
        raise _FormError(fault("", "not_an_object", "The file does not hold an object.", begin))
    return cast("dict[str, Json]", value)


def _too_deep() -> Diagnostic:
    return fault("", "too_deep", f"Nested deeper than {DOCUMENT_DEPTH_MAX} levels.", "Flatten the document.")


def _json(text: str) -> object:
    try:
        value = json.loads(text, object_pairs_hook=_Pairs, parse_constant=_constant)
        return _without_pairs(value, "")
    except json.JSONDecodeError as error:
        raise _FormError(
            fault("", "not_json", f"Line {error.lineno}, column {error.colno}: {error.msg}.", "Correct the JSON.")
        ) from None


class _Pairs(list[tuple[str, object]]):
    """An object's members as they stand, so that a repeated key can be told with its place."""


def _without_pairs(value: object, path: str) -> object:
    """Return the value with objects as objects; a key that stands twice is told with its path."""
    if isinstance(value, _Pairs):
        members: dict[str, object] = {}
        for key, member in value:
            where = f"{path}.{key}" if path else key
            if key in members:
                raise _FormError(fault(where, "duplicate_key", f"The key {key!r} stands twice.", "Keep one of them."))
            members[key] = _without_pairs(member, where)
        return members
    if isinstance(value, list):
        items = cast("list[object]", value)
        return [_without_pairs(item, f"{path}[{at}]") for at, item in enumerate(items)]
    return value


def _constant(name: str) -> NoReturn:
    raise _FormError(fault("", "not_json", f"{name} is not JSON.", "Write a number or a text."))


def _yaml(text: str) -> object:
    from interlock.define.yaml_form import YamlFault, load_yaml  # noqa: PLC0415 — JSON files do not pay for YAML

    found = load_yaml(text)
    if isinstance(found, YamlFault):
        raise _FormError(fault(found.path, found.code, found.message, found.fix))
    return found.value
