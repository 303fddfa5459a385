"""A successor differs from its value in what was changed and in nothing else, with slots or without."""

from dataclasses import FrozenInstanceError, dataclass

import pytest

from interlock.kernel.frozen import replace


@dataclass(frozen=True, kw_only=True)
class Loose:
    one: int
    other: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Slotted:
    one: int
    other: str


@pytest.mark.parametrize("kind", [Loose, Slotted])
def test_a_successor_is_equal_to_a_value_made_with_the_change_and_the_value_stays(kind: type[Loose | Slotted]) -> None:
    value = kind(one=1, other="x")
    after = replace(value, one=2)
    assert (after, value) == (kind(one=2, other="x"), kind(one=1, other="x"))
    assert type(after) is kind
    assert hash(after) == hash(kind(one=2, other="x"))
    with pytest.raises(FrozenInstanceError):
        setattr(after, "o" + "ne", 3)


@pytest.mark.parametrize("kind", [Loose, Slotted])
def test_what_is_no_member_cannot_be_changed(kind: type[Loose | Slotted]) -> None:
    with pytest.raises((AssertionError, TypeError)):
        replace(kind(one=1, other="x"), another=1)
