"""Shapes: what both readers take, what is written, and what is said of a value that is refused."""

import pkgutil
from collections.abc import Iterator
from importlib import import_module
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec
import pytest
from msgspec.structs import fields

import interlock
from interlock.define.parts import ApprovalAsk, AwaitEvent, Proof
from interlock.kernel.canonical import Json
from interlock.kernel.shape import Reader, RefusedError, Shape, ShapeError, Written, described, limits
from interlock.kernel.shape.mirror import mirror_of, schema_of_type

Word = Literal["near", "far"]
Name = Annotated[str, *limits(pattern=r"^[a-z]+$", max_length=5)]


class Inner(Shape):
    """A part."""

    some_name: Name


class Outer(Shape):
    """A whole."""

    parts: tuple[Inner, ...]
    word: Word = "near"
    level: Annotated[int, *limits(ge=1, description="how far")] = 1
    held: dict[str, Json] = msgspec.field(default_factory=dict)
    mode: Word = msgspec.field(default_factory=Written[Word]("near"))
    at: Annotated[str | None, described("where")] = msgspec.field(default=None, name="from")


READER: Reader[Outer] = Reader(Outer)
WHOLE = b'{"parts":[{"someName":"a"}],"word":"far","level":2,"held":{"x":[1]},"mode":"far","from":"b"}'


def test_a_value_read_and_written_again_is_the_same() -> None:
    value = READER.read(WHOLE)
    assert value.to_json() == msgspec.json.decode(WHOLE)
    assert Outer.of_json(value.to_json()) == value
    assert value.changed(level=3).level == 3


def test_a_field_with_its_default_is_left_out_also_if_it_was_written() -> None:
    written: dict[str, Json] = {"parts": [], "word": "near", "level": 1, "held": {}, "mode": "near", "from": None}
    left: dict[str, Json] = {"parts": [], "mode": "near"}
    assert Outer.of_json(written).to_json() == left
    assert READER.read(msgspec.json.encode(written)).to_json() == left
    assert Outer(parts=()).to_json() == left


@pytest.mark.parametrize(
    ("text", "kind", "loc"),
    [
        (b'{"parts":[{"someName":"a\\n"}]}', "string_pattern_mismatch", ("parts", 0, "someName")),
        (b'{"parts":[{"someName":"abcdef"}]}', "string_too_long", ("parts", 0, "someName")),
        (b'{"parts":[{"some_name":"a"}]}', "missing", ("parts", 0, "someName")),
        (b'{"parts":[],"level":0}', "greater_than_equal", ("level",)),
        (b'{"parts":[],"level":1.0}', "int_type", ("level",)),
        (b'{"parts":[],"level":true}', "int_type", ("level",)),
        (b'{"parts":[],"word":"off"}', "literal_error", ("word",)),
        (b'{"parts":[],"more":1}', "extra_forbidden", ("more",)),
        (b'{"parts":[]', "json_invalid", ()),
        (b'{"parts":[],"held":{"x":' + b"[" * 300 + b"]" * 300 + b"}}", "json_invalid", ()),
        (b"\xff", "json_invalid", ()),
    ],
)
def test_what_one_reader_refuses_the_other_one_explains(text: bytes, kind: str, loc: tuple[object, ...]) -> None:
    with pytest.raises(RefusedError):
        READER.read(text)
    first = READER.faults(text)[0]
    assert (first["type"], first["loc"]) == (kind, loc)


def test_what_is_sent_may_hold_values_and_is_refused_with_its_faults() -> None:
    assert Outer.of_json({"parts": [Inner(some_name="a"), {"someName": "b"}]}).parts[1] == Inner(some_name="b")
    with pytest.raises(ShapeError) as refused:
        Outer.of_json({"parts": [{"someName": 1}], "word": 2})
    assert [(one["type"], one["loc"]) for one in refused.value.faults] == [
        ("string_type", ("parts", 0, "someName")),
        ("literal_error", ("word",)),
    ]


def test_a_schema_has_the_limits_and_the_descriptions() -> None:
    schema = mirror_of(Outer).model_json_schema(by_alias=True)
    assert schema == schema_of_type(Outer)
    assert schema["properties"]["level"] == {
        "default": 1, "description": "how far", "minimum": 1, "title": "Level", "type": "integer",
    }  # fmt: skip
    assert schema["properties"]["mode"]["default"] == "near"
    assert schema["required"] == ["parts"]


def shapes() -> Iterator[type[Shape]]:
    for module in pkgutil.walk_packages(interlock.__path__, "interlock."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    waiting: list[type[Shape]] = [Shape]
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        if kind.__module__.startswith("interlock."):
            yield kind


def words_of(kind: Any) -> frozenset[object]:
    if get_origin(kind) is Literal:
        return frozenset(get_args(kind))
    return frozenset(word for part in get_args(kind) for word in words_of(part))


def test_each_default_is_one_object_so_that_it_is_left_out_whoever_gave_it() -> None:
    """msgspec leaves out a field if its value is the same object as its default. Forms of files are never written."""
    only = (None, True, False, "", (), *range(257), msgspec.NODEFAULT)
    written = [kind for kind in shapes() if not kind.__module__.startswith("interlock.define.native.")]
    for kind in written:
        for one in fields(kind):
            is_known = any(one.default is known for known in only) or one.default in words_of(one.type)
            assert is_known or (kind, one.name) == (ApprovalAsk, "choices"), (kind, one)
            assert one.default_factory in (msgspec.NODEFAULT, dict) or isinstance(one.default_factory, Written)


def test_a_default_that_an_author_writes_is_left_out() -> None:
    asked = {"question": "Go?", "choices": ["approve", "reject"], "needsNote": False}
    awaits = AwaitEvent.of_json({"event": "wr.approval", "assurance": "claimed", "approval": asked})
    assert awaits.to_json() == {"event": "wr.approval", "approval": {"question": "Go?"}}
    proof = b'{"command":{"value":"make"},"exit":0,"assurance":"observed"}'
    assert Reader[Proof](Proof).read(proof).to_json() == {"command": {"value": "make"}}
