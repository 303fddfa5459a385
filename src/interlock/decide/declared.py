"""Checks a value against a declared context key. Starts, workflow files and actions all use this one check."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from interlock.decide.evaluate import describe_kind, is_number, is_same_value
from interlock.kernel.budgets import ECHO_BYTES_MAX
from interlock.kernel.canonical import Json
from interlock.kernel.text import one_line

ValueType = Literal["string", "number", "boolean", "list", "object"]
"""The type of a context key's value, as inputs declare it."""


class Declaration(Protocol):
    """What is declared of a context key. Without a type, any value fits."""

    @property
    def type(self) -> ValueType | None:
        """The type of its value."""
        ...

    @property
    def choices(self) -> tuple[Json, ...]:
        """The allowed values; empty: any value of its type."""
        ...

    @property
    def required(self) -> bool:
        """Whether it always has a value."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeMismatch:
    """Why a value does not fit: what was found, and what is expected. `is_kind`: the type is wrong, not the choice."""

    found: str
    wanted: str
    is_kind: bool


def type_mismatch(declared: Declaration, value: object) -> TypeMismatch | None:
    """Return why a value does not fit a declared key, or None if it fits.

    The value None means that there is no value. It fits every key that is not required.
    """
    if declared.type is None:
        return None
    wanted = describe_type(declared.type)
    if value is None:
        return TypeMismatch(found="nothing", wanted=wanted, is_kind=True) if declared.required else None
    if not _KINDS[declared.type](value):
        return TypeMismatch(found=describe_kind(value), wanted=wanted, is_kind=True)
    if declared.choices and not any(is_same_value(value, choice) for choice in declared.choices):
        shown = one_line(json.dumps(value, ensure_ascii=False), ECHO_BYTES_MAX)
        return TypeMismatch(found=shown, wanted=describe_choices(declared), is_kind=False)
    return None


def describe_choices(declared: Declaration) -> str:
    """Describe the choices of a declared key."""
    return f"one of {json.dumps(list(declared.choices), ensure_ascii=False)}"


def describe_type(name: str) -> str:
    """Return a type's name with its article."""
    return f"an {name}" if name == "object" else f"a {name}"


def infer_type(value: object) -> str | None:
    """Return the type to declare for a value, or None for null."""
    return next((name for name, is_kind in _KINDS.items() if is_kind(value)), None)


_KINDS: Mapping[str, Callable[[object], bool]] = {
    "string": lambda value: isinstance(value, str),
    "number": is_number,
    "boolean": lambda value: isinstance(value, bool),
    "list": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, Mapping),
}
