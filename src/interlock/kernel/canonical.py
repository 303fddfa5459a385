"""Canonical JSON (RFC 8785) and digests over it (ID-3)."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, cast

from interlock.kernel.ids import Digest
from interlock.kernel.text import has_surrogate, render_path

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, JsonValue
    from pydantic_core import CoreSchema

    Json = JsonValue
else:

    class _JsonValue:
        """Says to pydantic that any JSON value is meant, without its import, which most commands do not need."""

        @classmethod
        def __get_pydantic_core_schema__(cls, source: Any, handler: "GetCoreSchemaHandler") -> "CoreSchema":  # noqa: ANN401 — pydantic's
            """Validate as `JsonValue` does."""
            from pydantic import JsonValue  # noqa: PLC0415 — see the class

            return handler.generate_schema(JsonValue)

    Json = Annotated[Any, _JsonValue]


SAFE_INTEGER_MAX = 2**53 - 1
"""The largest integer that every JSON reader keeps exact (RFC 8785, 3.2.2.3)."""

_WRITTEN_IN_DIGITS_MAX = 1e21
"""A whole float below this is written as digits (RFC 8785, 3.2.2.3), so it is read back as an integer."""
_LONG_NUMBER = re.compile(rb"[0-9]{16}")
"""What the bytes of a value hold if a float in it is written as an integer that is not exact."""

JsonScalar = str | int | float | bool | None

_PLAIN_SCALARS: frozenset[type[object]] = frozenset({str, bool, type(None)})
_encode_plain = json.JSONEncoder(
    ensure_ascii=False, sort_keys=True, separators=(",", ":"), check_circular=False, allow_nan=False
).encode


class NotCanonicalError(ValueError):
    """A value has no canonical form; `path` says where, `found` what was found there."""

    def __init__(self, path: str, found: str) -> None:
        super().__init__(f"{path or '(root)'}: {found}")
        self.path = path
        self.found = found


def parse_object(data: bytes) -> dict[str, Any] | None:
    """Return the JSON object that some bytes hold; None if they hold anything else."""
    try:
        value: object = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def canonical_bytes(value: object) -> bytes:
    """Return the one byte sequence that RFC 8785 gives a JSON value.

    Plain values (no float, ASCII keys) take a path through the C encoder that yields the same bytes.

    Raises:
        NotCanonicalError: The value holds what JSON cannot carry exactly: NaN, an integer of 2^53 or beyond, also as a
            float that is written in digits, a lone surrogate, a key that is not a string, another type, or nesting
            beyond the interpreter's stack.
    """
    try:
        if _is_plain(value):
            return _encode_plain(value).encode("utf-8")
        import rfc8785  # noqa: PLC0415 — most values are plain

        written = rfc8785.dumps(cast("dict[str, object]", value))  # pyright: ignore[reportArgumentType] — judges by itself
    except RecursionError:
        raise NotCanonicalError("", "nested too deep") from None
    except (ValueError, UnicodeError, AttributeError):
        raise _find_fault(value) or NotCanonicalError("", "not a JSON value") from None
    if _LONG_NUMBER.search(written) and (fault := _find_fault(value)) is not None:
        raise fault
    return written


def readable_json(value: Json) -> str:
    """Return a JSON value for people, on one line; numbers as they are stored, so a search finds them."""
    match value:
        case float() if value - value == 0:
            return canonical_bytes(value).decode()
        case dict():
            members = (f"{json.dumps(key, ensure_ascii=False)}: {readable_json(item)}" for key, item in value.items())
            return f"{{{', '.join(members)}}}"
        case list():
            return f"[{', '.join(map(readable_json, value))}]"
        case _:
            return json.dumps(value, ensure_ascii=False)


def digest_of_bytes(data: bytes) -> Digest:
    """Return `sha256:<hex>` of the bytes."""
    return Digest(f"sha256:{hashlib.sha256(data).hexdigest()}")


def digest_of(value: object) -> Digest:
    """Return `sha256:<hex>` of the canonical bytes of a JSON value.

    Raises:
        NotCanonicalError: See `canonical_bytes`.
    """
    return digest_of_bytes(canonical_bytes(value))


def members_of(value: object) -> Iterable[object]:
    """Return the direct members of a JSON value: an object's values, a list's items, nothing for a scalar."""
    if isinstance(value, Mapping):
        return cast("Mapping[str, object]", value).values()
    return cast("Sequence[object]", value) if isinstance(value, list | tuple) else ()


def nests_deeper_than(value: object, depth_max: int) -> bool:
    """Return whether containers are nested deeper than this.

    It works level by level, because a recursive function would overflow on the values that it must refuse.
    """
    level = [value]
    for _ in range(depth_max):
        level = [
            item for container in level for item in members_of(container) if isinstance(item, Mapping | list | tuple)
        ]
        if not level:
            return False
    return any(isinstance(item, Mapping | list | tuple) for item in level)


def number_fault(number: float) -> str | None:
    """Return why a number has no canonical form, in the words of `NotCanonicalError.found`; None if it has one."""
    if number - number != 0:
        return "a number that is not finite"
    is_exact = abs(number) <= SAFE_INTEGER_MAX or (isinstance(number, float) and abs(number) >= _WRITTEN_IN_DIGITS_MAX)
    return None if is_exact else "an integer of 2^53 or beyond"


def is_digest(text: str) -> bool:
    """Return whether the string has the form of a digest: `sha256:` and 64 lowercase hex digits."""
    return (
        len(text) == len("sha256:") + 64
        and text.startswith("sha256:")
        and all(char in "0123456789abcdef" for char in text[7:])
    )


def _is_plain(value: object) -> bool:
    """Return whether the C encoder gives a value the same bytes as RFC 8785.

    It does for strings, booleans, null and safe integers, and for objects whose keys are ASCII: only
    there does its order by code point agree with the order by UTF-16 unit.
    """
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return True
    if kind is int:
        return -SAFE_INTEGER_MAX <= cast("int", value) <= SAFE_INTEGER_MAX
    if kind is dict:
        members = cast("dict[object, object]", value)
        # Loops: a generator costs more than what it yields here, and every record passes through this.
        for key, item in members.items():
            if type(key) is not str or not key.isascii() or not (type(item) is str or _is_plain(item)):
                return False
        return True
    if kind is list or kind is tuple:
        items = cast("Sequence[object]", value)
        return set(map(type, items)) <= _PLAIN_SCALARS or all(map(_is_plain, items))
    return False


def _find_fault(value: object) -> NotCanonicalError | None:
    """Return why a value has no canonical form, if that is found. The search can descend deeper than the encoder."""
    try:
        located = _located(value)
    except RecursionError:
        return NotCanonicalError("", "nested too deep")
    if located is None:
        return None
    found, inside_out = located
    return NotCanonicalError(render_path(reversed(inside_out)), found)


def _located(value: object) -> tuple[str, list[str | int]] | None:
    """Find the first fault that keeps a value from having a canonical form, and its path with the last part first.

    A path is built while the search returns; building it on the way down would cost its length for every value.
    """
    found = _scalar_fault(value)
    if found is not None:
        return found, []
    members: Iterable[tuple[object, object]] = ()
    if isinstance(value, dict):
        members = cast("dict[object, object]", value).items()
    elif isinstance(value, list | tuple):
        members = enumerate(cast("Sequence[object]", value))
    for part, member in members:
        if isinstance(value, dict):
            fault = "a key that is not a string" if not isinstance(part, str) else _scalar_fault(part)
            if fault is not None:
                return fault, []
        inside = _located(member)
        if inside is not None:
            inside[1].append(cast("str | int", part))
            return inside
    return None


def _scalar_fault(value: object) -> str | None:
    match value:
        case str():
            return "text with a lone surrogate" if has_surrogate(value) else None
        case bool() | None | dict() | list() | tuple():
            return None
        case int() | float():
            return number_fault(value)
        case _:
            return f"a {type(value).__name__}, which JSON cannot represent"
