"""Successors of frozen values."""

import dataclasses
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Value = TypeVar("Value", bound="DataclassInstance")


def replace(value: Value, **changes: Any) -> Value:  # noqa: ANN401 — as `dataclasses.replace` has it
    """Return a frozen value with some of its members changed.

    A value that keeps its members in a dictionary, and does nothing when it is made, is copied with it, which takes
    a quarter of the time of `dataclasses.replace`: the fold of a log makes several successors for each event.
    """
    if not hasattr(value, "__dict__"):
        return dataclasses.replace(value, **changes)
    members = vars(value)
    assert members.keys() >= changes.keys(), "only members are changed"
    after = object.__new__(type(value))
    vars(after).update(members, **changes)
    return after
