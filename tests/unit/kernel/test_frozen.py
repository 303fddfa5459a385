"""Values behave as frozen dataclasses of the standard library with slots do."""

import copy
import dataclasses
import pprint
from collections.abc import Callable
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields
from typing import ClassVar, cast

import pytest

from interlock.kernel.frozen import frozen, mutable, positional, replace


@frozen
class Point:
    """A place."""

    x: int
    y: int = 0
    names: list[str] = field(default_factory=list[str], compare=False, repr=False)


@frozen
class Marked(Point):
    mark: str = "!"
    length: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError("left of the origin")
        object.__setattr__(self, "length", self.x + self.y)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standard:
    """A place."""

    x: int
    y: int = 0
    names: list[str] = field(default_factory=list[str], compare=False, repr=False)


@positional
class Ordered:
    """A place."""

    x: int
    y: int = 0
    names: list[str] = field(default_factory=list[str], compare=False, repr=False)


@mutable
class Counter:
    name: str
    seen: list[str] = field(default_factory=list[str])
    left: int = field(default=3, init=False)

    def take(self) -> None:
        self.left -= 1


@frozen
class Further(Point):
    kind: ClassVar[str] = "further"
    y: int = 7
    late: "str" = "a"


@frozen
class Nothing:
    pass


@frozen
class Own:
    x: int

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 1

    def __repr__(self) -> str:
        return "own"


@frozen
class OwnInit:
    x: int

    def __init__(self, text: str) -> None:
        object.__setattr__(self, "x", len(text))


@frozen
class OwnEquality:  # noqa: PLW1641 — the decorator adds it
    x: int
    y: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "y", self.x)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OwnEquality)


def test_an_instance_has_its_values_its_defaults_and_what_factories_make() -> None:
    point, other = Point(x=1), Point(x=1, y=2, names=["a"])
    assert (point.x, point.y, point.names) == (1, 0, [])
    assert (other.x, other.y, other.names) == (1, 2, ["a"])
    assert point.names is not Point(x=1).names
    assert (Marked(x=1, y=2).length, Marked(x=1, mark="?").mark) == (3, "?")
    assert repr(Marked(x=1)).endswith("Marked(x=1, y=0, mark='!', length=1)")
    with pytest.raises(ValueError, match="left of the origin"):
        Marked(x=-1)


@pytest.mark.parametrize("made", [Point, Standard])
def test_it_is_made_by_names_alone_and_complains_as_any_function(made: Callable[..., object]) -> None:
    with pytest.raises(TypeError, match=r"__init__\(\) missing 1 required keyword-only argument: 'x'"):
        made()
    with pytest.raises(TypeError, match="takes 1 positional argument but 2"):
        made(1)
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        made(x=1, z=2)


def test_a_positional_value_is_made_and_matched_in_order() -> None:
    for _ in range(50):  # the first instances of a class are made otherwise
        assert (Ordered(1), Ordered(1, y=2), Ordered(1, 2, ["a"])) == (Ordered(x=1), Ordered(x=1, y=2), Ordered(1, 2))
        assert Ordered(1).names is not Ordered(1).names
        match Ordered(3, 4, ["b"]):
            case Ordered(x, y, [name]):
                assert (x, y, name) == (3, 4, "b")
            case _:
                pytest.fail("it is not matched in order")
        wrong: tuple[tuple[tuple[object, ...], dict[str, object], str], ...] = (
            ((), {}, "missing 1 required positional argument: 'x'"),
            ((1, 2, [], 4), {}, "takes from 2 to 4 positional arguments but 5"),
            ((1,), {"x": 2}, "multiple values for argument 'x'"),
            ((1,), {"z": 2}, "unexpected keyword argument 'z'"),
        )
        for args, values, complaint in wrong:
            with pytest.raises(TypeError, match=complaint):
                cast("Callable[..., object]", Ordered)(*args, **values)


def test_the_fields_of_a_mutable_class_can_be_set_and_it_is_no_key() -> None:
    counter, same = Counter("a"), Counter(name="a")
    assert (counter.left, counter) == (3, same)
    counter.take()
    counter.name, counter.seen = "b", ["c"]
    assert (counter.left, counter.name, counter.seen, counter != same) == (2, "b", ["c"], True)
    assert repr(counter).endswith("Counter(name='b', seen=['c'], left=2)")
    assert copy.copy(counter) == counter
    with pytest.raises(TypeError, match="unhashable"):
        hash(counter)
    with pytest.raises(AttributeError):
        counter.other = 1  # type: ignore[attr-defined]


def test_the_first_instances_of_a_class_are_made_as_all_others() -> None:
    @frozen
    class Fresh:
        x: int
        y: int = 0
        names: list[str] = field(default_factory=list[str])

        def __post_init__(self) -> None:
            if self.y < 0:
                raise ValueError("below")

    made = [Fresh(x=number, y=1) for number in range(50)]
    assert [(one.x, one.y, one.names) for one in made] == [(number, 1, []) for number in range(50)]
    assert len({id(one.names) for one in made}) == len(made)
    for _ in range(50):
        with pytest.raises(ValueError, match="below"):
            Fresh(x=1, y=-1)


def test_it_compares_and_hashes_by_its_compared_fields_and_its_class() -> None:
    assert Point(x=1, names=["a"]) == Point(x=1)
    assert hash(Point(x=1, names=["a"])) == hash(Point(x=1))
    assert Point(x=1) != Point(x=2)
    assert Point(x=1) != Marked(x=1)
    assert Nothing() == Nothing()
    assert len({Nothing(), Nothing()}) == 1
    assert (Own(x=1) == Own(x=2), hash(Own(x=5)), repr(Own(x=1))) == (True, 1, "own")
    assert OwnInit("four").x == 4
    assert hash(OwnEquality(x=1)) == hash(OwnEquality(x=1))
    assert OwnEquality(x=1) == OwnEquality(x=2)
    assert OwnEquality(x=2).y == 2


def test_a_class_variable_is_no_field_and_a_subclass_may_give_a_field_another_default() -> None:
    assert [one.name for one in fields(Further)] == ["x", "y", "names", "late"]
    assert (Further(x=1).y, Further(x=1).late, Further(x=1, late="b").late) == (7, "a", "b")
    assert (Further.kind, Further(x=1).kind, Point(x=1).y) == ("further", "further", 0)
    assert Further(x=1) == Further(x=1, y=7)
    assert replace(Further(x=1), y=2).y == dataclasses.replace(Further(x=1), y=2).y == 2
    assert not hasattr(Further(x=1), "__dict__")


def test_its_fields_cannot_change_and_no_other_can_be_added() -> None:
    point = Point(x=1)
    for name in ("x", "z"):
        with pytest.raises(FrozenInstanceError):
            setattr(point, name, 2)
    with pytest.raises(FrozenInstanceError):
        del point.x  # pyright: ignore[reportAttributeAccessIssue] — that is what is tested
    assert not hasattr(point, "__dict__")


def test_the_tools_of_the_standard_library_know_it() -> None:
    point = Point(x=1, names=["a"])
    assert [one.name for one in fields(Marked)] == ["x", "y", "names", "mark", "length"]
    assert dataclasses.replace(point, y=3) == Point(x=1, y=3)
    assert asdict(point) == {"x": 1, "y": 0, "names": ["a"]}
    for same in (copy.copy(point), copy.deepcopy(point)):
        assert same == point
        assert same.names == ["a"]
    assert repr(point) == repr(Standard(x=1)).replace("Standard", "Point")
    assert Point.__doc__ == "A place."


def test_they_print_and_inherit_it_too() -> None:
    assert pprint.pformat(Marked(x=1, mark="a" * 90)) == repr(Marked(x=1, mark="a" * 90))
    assert [one.kw_only for one in (*fields(Further), *fields(Ordered))] == [True] * 4 + [False] * 3

    @dataclass
    class Inheriting(Counter):
        more: int = 3

    assert (Inheriting("a").more, [one.name for one in fields(Inheriting)]) == (3, ["name", "seen", "left", "more"])


def test_a_default_that_can_change_and_a_field_without_a_type_are_refused() -> None:
    with pytest.raises(ValueError, match="needs a default_factory: list can change"):

        @mutable
        class Sharing:
            names: list[str] = []  # noqa: RUF012 — that is what is tested

    with pytest.raises(TypeError, match="a field of Untyped has no type"):

        @frozen
        class Untyped:
            x = field(default=1)  # pyright: ignore[reportGeneralTypeIssues] — that is what is tested


@pytest.mark.parametrize("value", [Point(x=1, names=["a"]), Marked(x=1, y=2), Own(x=1), Standard(x=1, y=2)])
def test_a_copy_has_the_changed_fields_and_all_others(value: Point | Own | Standard) -> None:
    for _ in range(2):  # the first copy of a class is made otherwise
        changed = replace(value, x=7)
        expected = dataclasses.replace(value, x=7)
        assert type(changed) is type(expected) is type(value)
        for one in fields(value):
            assert getattr(changed, one.name) == getattr(expected, one.name)
        assert value.x == 1
    with pytest.raises(TypeError, match="z"):
        replace(value, z=1)


def test_a_copy_is_checked_as_an_instance_is() -> None:
    assert replace(Marked(x=1, y=2), y=5).length == 6
    with pytest.raises(ValueError, match="left of the origin"):
        replace(Marked(x=1), x=-1)
    with pytest.raises((ValueError, TypeError), match="length"):  # the latter from Python 3.13 on
        replace(Marked(x=1), length=4)
