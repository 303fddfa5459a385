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
    after = object.__new__(type(value))
    try:
        members = after.__dict__
    except AttributeError:
        return dataclasses.replace(value, **changes)
    members.update(value.__dict__)
    count = len(members)
    members.update(changes)
    assert len(members) == count, "only members are changed"
    return after
