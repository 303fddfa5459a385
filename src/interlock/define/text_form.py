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
    if len(data) > DOCUMENT_BYTES_MAX:
        return fault(
            "",
            "too_large",
            f"The file has {len(data)} bytes.",
            f"Keep it within {DOCUMENT_BYTES_MAX}; refer to long texts.",
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return fault("", "not_utf8", f"Byte {error.start} is not UTF-8.", "Save the file as UTF-8.")
    try:
        value = _json(text) if form == "json" else _yaml(text)
        if nests_deeper_than(value, DOCUMENT_DEPTH_MAX):
            return _too_deep()
    except _FormError as error:
        return error.diagnostic
    except RecursionError:
        return _too_deep()
    if not isinstance(value, dict):
        return fault("", "not_an_object", "The file does not hold an object.", "Begin with `id`, `name` and `steps`.")
    document = cast("dict[str, Json]", value)
    try:
        canonical_bytes(document)
    except NotCanonicalError as error:
        return fault(error.path, "number_not_exact", f"Found {error.found}.", "Write it as text.")
    return document


def _too_deep() -> Diagnostic:
    return fault("", "too_deep", f"Nested deeper than {DOCUMENT_DEPTH_MAX} levels.", "Flatten the document.")


def _json(text: str) -> object:
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
    except json.JSONDecodeError as error:
        raise _FormError(
            fault("", "not_json", f"Line {error.lineno}, column {error.colno}: {error.msg}.", "Correct the JSON.")
        ) from None


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result: dict[str, object] = {}
    for key, value in pairs:
        if key in result:
            raise _FormError(fault(key, "duplicate_key", f"The key {key!r} stands twice.", "Keep one of them."))
        result[key] = value
    return result


def _constant(name: str) -> NoReturn:
    raise _FormError(fault("", "not_json", f"{name} is not JSON.", "Write a number or a text."))


def _yaml(text: str) -> object:
    from interlock.define.yaml_form import YamlFault, load_yaml  # noqa: PLC0415 — JSON files do not pay for YAML

    found = load_yaml(text)
    if isinstance(found, YamlFault):
        raise _FormError(fault(found.path, found.code, found.message, found.fix))
    return found.value
