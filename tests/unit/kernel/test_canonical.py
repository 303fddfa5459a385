import enum
import hashlib
import math
from collections.abc import Callable
from types import MappingProxyType

import pytest

from interlock.kernel.canonical import (
    SAFE_INTEGER_MAX,
    NotCanonicalError,
    canonical_bytes,
    digest_of,
    digest_of_bytes,
    is_digest,
    members_of,
    nests_deeper_than,
)

Wrap = Callable[[object], object]

# RFC 8785, appendix B and section 3.2.2.3: number to text.
NUMBERS = [
    (0.0, "0"),
    (-0.0, "0"),
    (5e-324, "5e-324"),
    (-5e-324, "-5e-324"),
    (1.7976931348623157e308, "1.7976931348623157e+308"),
    (9.999999999999997e22, "9.999999999999997e+22"),
    (1e23, "1e+23"),
    (1.0000000000000001e23, "1.0000000000000001e+23"),
    (1e21, "1e+21"),
    (9.999999999999997e-7, "9.999999999999997e-7"),
    (0.000001, "0.000001"),
    (333333333.33333329, "333333333.3333333"),
    (1424953923781206.2, "1424953923781206.2"),
    (4.50, "4.5"),
    (2e-3, "0.002"),
    (1e-27, "1e-27"),
]


@pytest.mark.inv("ID-3")
def test_the_example_of_the_rfc_gives_the_bytes_of_the_rfc() -> None:
    value = {
        "numbers": [333333333.33333329, 1e30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": "\u20ac$\u000f\u000aA'\u0042\u0022\u005c\\\"/",
        "literals": [None, True, False],
    }
    expected = (
        '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )
    assert canonical_bytes(value) == expected.encode()


@pytest.mark.inv("ID-3")
def test_keys_are_ordered_by_utf_16_units_as_the_rfc_orders_them() -> None:
    value = {"€": 1, "\r": 2, "\ufb33": 3, "1": 4, "\U0001f600": 5, "\u0080": 6, "ö": 7}
    # The emoji stands before the presentation form, whose code point is lower.
    assert canonical_bytes(value).decode() == ('{"\\r":2,"1":4,"\u0080":6,"ö":7,"€":1,"\U0001f600":5,"\ufb33":3}')


@pytest.mark.inv("ID-3")
@pytest.mark.parametrize(("number", "text"), NUMBERS)
def test_numbers_are_written_as_the_rfc_writes_them(number: float, text: str) -> None:
    assert canonical_bytes(number) == text.encode()


@pytest.mark.inv("ID-3")
def test_every_control_character_is_escaped_in_its_shortest_form() -> None:
    short = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
    for code in range(0x20):
        expected = short.get(chr(code), f"\\u{code:04x}")
        assert canonical_bytes(chr(code)) == f'"{expected}"'.encode()
    assert canonical_bytes("\x7f/é") == '"\x7f/é"'.encode()


@pytest.mark.inv("ID-3")
def test_a_tuple_is_written_as_an_array_and_an_enum_of_text_as_its_text() -> None:
    class Colour(enum.StrEnum):
        RED = "red"

    assert canonical_bytes({"a": (1, Colour.RED)}) == b'{"a":[1,"red"]}'


@pytest.mark.inv("ID-4")
def test_the_largest_safe_integers_are_kept_and_the_next_ones_refused() -> None:
    for sign in (1, -1):
        assert canonical_bytes(sign * SAFE_INTEGER_MAX) == str(sign * (2**53 - 1)).encode()
        with pytest.raises(NotCanonicalError, match="an integer of 2\\^53 or beyond"):
            canonical_bytes(sign * 2**53)


@pytest.mark.inv("ID-4")
@pytest.mark.parametrize(
    ("value", "path", "found"),
    [
        (math.nan, "", "a number that is not finite"),
        ({"a": [0, math.inf]}, "a[1]", "a number that is not finite"),
        ({"a": {"b": -math.inf}}, "a.b", "a number that is not finite"),
        ([1.5, {"n": 2**53}], "[1].n", "an integer of 2^53 or beyond"),
        # The RFC writes these floats as digits, which are read back as integers.
        ({"n": 2.0**53}, "n", "an integer of 2^53 or beyond"),
        ([295147905179352830000.0], "[0]", "an integer of 2^53 or beyond"),
        (-999999999999999700000.0, "", "an integer of 2^53 or beyond"),
        ({"a": "x\ud800"}, "a", "text with a lone surrogate"),
        ({"a": {"\udfff": 1}}, "a", "text with a lone surrogate"),
        ({"a": {1: 2}}, "a", "a key that is not a string"),
        ({1.5: 2}, "", "a key that is not a string"),
        ({"a": b"bytes"}, "a", "a bytes, which JSON cannot represent"),
        ([{1, 2}], "[0]", "a set, which JSON cannot represent"),
        ((1, (2, math.nan)), "[1][1]", "a number that is not finite"),
        ({"é.f": [math.nan]}, "é.f[0]", "a number that is not finite"),
        (MappingProxyType({"a": 1}), "", "a mappingproxy, which JSON cannot represent"),
    ],
)
def test_what_has_no_canonical_form_is_refused_where_it_stands(value: object, path: str, found: str) -> None:
    with pytest.raises(NotCanonicalError) as refused:
        canonical_bytes(value)
    assert (refused.value.path, refused.value.found) == (path, found)
    assert str(refused.value) == f"{path or '(root)'}: {found}"


def in_list(inner: object) -> object:
    return [inner]


def in_dict(inner: object) -> object:
    return {"k": inner}


def in_tuple(inner: object) -> object:
    return ("first", inner)


def nested(levels: int, leaf: object, wrap: Wrap) -> object:
    for _ in range(levels):
        leaf = wrap(leaf)
    return leaf


def is_refused(value: object) -> bool:
    try:
        canonical_bytes(value)
    except NotCanonicalError:
        return True
    return False


@pytest.mark.inv("ID-4")
@pytest.mark.parametrize("leaf", [1, 1.5, math.nan])
@pytest.mark.parametrize("wrap", [in_list, in_dict])
def test_nesting_beyond_the_stack_is_refused_and_never_overflows(leaf: object, wrap: Wrap) -> None:
    """At any depth: the walks over a value use the stack at different rates."""
    refused = [is_refused(nested(levels, leaf, wrap)) for levels in (*range(100, 1_000, 25), 5_000)]
    assert refused == sorted(refused)
    assert refused[-1]


@pytest.mark.inv("ID-4")
def test_a_fault_that_is_found_beside_deep_nesting_is_refused_too() -> None:
    value = {"z": 1.5, "b": nested(3_000, 1, in_list), "a": math.nan}
    with pytest.raises(NotCanonicalError):
        canonical_bytes(value)


def test_a_value_that_contains_itself_is_refused() -> None:
    value: list[object] = []
    value.append(value)
    with pytest.raises(NotCanonicalError, match="nested too deep"):
        canonical_bytes(value)


def test_the_members_of_a_value_are_what_stands_directly_inside_it() -> None:
    assert list(members_of({"a": 1, "b": [2]})) == [1, [2]]
    assert list(members_of(MappingProxyType({"a": 1}))) == [1]
    assert list(members_of([1, [2]])) == list(members_of((1, [2]))) == [1, [2]]
    for scalar in ("text", b"bytes", 1, 1.5, None, True):
        assert list(members_of(scalar)) == []


@pytest.mark.parametrize("wrap", [in_list, in_dict, in_tuple])
def test_nesting_is_counted_in_containers_at_any_depth(wrap: Wrap) -> None:
    for levels in (0, 1, 2, 63, 64, 65, 100_000):
        value: object = ["beside", nested(levels, "leaf", wrap), "it"]
        assert not nests_deeper_than(value, levels + 1)
        assert nests_deeper_than(value, levels)
    assert not nests_deeper_than("leaf", 0)


@pytest.mark.inv("ID-3")
def test_a_digest_is_of_the_canonical_bytes() -> None:
    assert digest_of({"b": 1, "a": [True]}) == "sha256:" + hashlib.sha256(b'{"a":[true],"b":1}').hexdigest()
    assert digest_of({"b": 1, "a": 2}) == digest_of({"a": 2, "b": 1}) != digest_of({"a": 1, "b": 2})
    assert digest_of_bytes(b"") == "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@pytest.mark.inv("ID-3")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "sha256:",
        "sha256:" + "a" * 63,
        "sha256:" + "a" * 65,
        "sha256:" + "A" * 64,
        "sha256:" + "g" * 64,
        "sha256:" + "٣" * 64,
        "sha255:" + "a" * 64,
        "SHA256:" + "a" * 64,
        "a" * 71,
        "sha256:" + "a" * 63 + "\n",
    ],
)
def test_no_other_spelling_is_a_digest(text: str) -> None:
    assert is_digest(digest_of_bytes(b"x"))
    assert not is_digest(text)
