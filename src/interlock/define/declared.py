"""The blank that a call shows for a declared context key."""

from typing import cast

from interlock.define.parts import ContextInput
from interlock.kernel.blanks import Blank
from interlock.kernel.canonical import JsonScalar


def declared_blank(declared: ContextInput) -> Blank:
    """Return the blank of a declared key."""
    choices = (True, False) if declared.type == "boolean" else declared.choices
    if choices and not any(isinstance(choice, list | dict) for choice in choices):
        return Blank(what=declared.description, choices=cast("tuple[JsonScalar, ...]", choices))
    return Blank(what=declared.description, shape=None if declared.type == "string" else declared.type)
