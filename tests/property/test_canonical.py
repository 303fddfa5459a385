"""Our canonical bytes against the reference implementation, and faults against where they were put."""

import json
import math
from typing import cast

import pytest
import rfc8785
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from interlock.kernel.canonical import (
    SAFE_INTEGER_MAX,
    Json,
    NotCanonicalError,
    canonical_bytes,
    digest_of,
    is_digest,
)

unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""A loaded machine is no fault of ours."""

INTEGERS = st.integers(-SAFE_INTEGER_MAX, SAFE_INTEGER_MAX) | st.sampled_from(
    [sign * (SAFE_INTEGER_MAX - less) for sign in (1, -1) for less in (0, 1)]
)
FLOATS = st.floats(allow_nan=False, allow_infinity=False).filter(lambda one: not 2**53 <= abs(one) < 1e21)
# Around the surrogates the order by code point and the order by UTF-16 unit part ways.
AWKWARD = st.sampled_from(
    ["", "\ue000", "\uffff", "\U00010000", "\U0010ffff", "\ud7ff", "\x00", "\x1f", "\x7f", '"\\/']
)
TEXT = st.text() | AWKWARD | st.text(st.characters(max_codepoint=0x7F))
SCALARS = st.none() | st.booleans() | INTEGERS | FLOATS | TEXT


def grown(leaves: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
        max_leaves=16,
    )


VALUES = grown(SCALARS)
PLAIN = grown(st.none() | st.booleans() | INTEGERS | TEXT)


@pytest.mark.inv("ID-3")
@settings(unhurried, max_examples=300)
@given(VALUES)
@example({"\U0001f600": 1, "\ufb33": 2, "a": -0.0})
def test_the_bytes_of_any_value_are_those_of_the_reference_implementation(value: Json) -> None:
    assert canonical_bytes(value) == rfc8785.dumps(value)


@pytest.mark.inv("ID-3")
@settings(unhurried, max_examples=300)
@given(PLAIN)
def test_the_fast_path_gives_the_same_bytes_too(value: Json) -> None:
    """Without floats most values with ASCII keys take it; those with other keys do not."""
    assert canonical_bytes(value) == rfc8785.dumps(value)


# A float from 2^53 up to 1e21 is written as an integer, which reads as one that has no canonical form.
READABLE = grown(st.none() | st.booleans() | INTEGERS | TEXT | FLOATS.filter(lambda x: not 2**53 <= abs(x) < 1e21))


@pytest.mark.inv("ID-3")
@unhurried
@given(READABLE)
def test_a_value_that_is_read_back_has_the_same_bytes_and_is_equal(value: Json) -> None:
    stored = canonical_bytes(value)
    read = json.loads(stored)
    assert read == value
    assert canonical_bytes(read) == stored
    assert is_digest(digest_of(value))


def turned(value: Json) -> Json:
    """Return the same value with the members of every object in the opposite order."""
    if isinstance(value, dict):
        return {key: turned(value[key]) for key in reversed(value)}
    return [turned(item) for item in value] if isinstance(value, list) else value


@pytest.mark.inv("ID-3")
@unhurried
@given(VALUES)
def test_the_order_of_members_makes_no_difference(value: Json) -> None:
    assert canonical_bytes(turned(value)) == canonical_bytes(value)


# Faults: a value, the steps to the place of its only fault, and what is said of it.

Steps = tuple[str | int, ...]
Faulty = tuple[object, Steps, str]

LONE = st.sampled_from(["\ud800", "\udbff", "\udc00", "\udfff"])
BROKEN_TEXT = st.tuples(TEXT, LONE, TEXT).map("".join)
BEYOND = st.integers(min_value=SAFE_INTEGER_MAX + 1) | st.integers(max_value=-SAFE_INTEGER_MAX - 1)


def fault(values: st.SearchStrategy[object], found: str) -> st.SearchStrategy[Faulty]:
    return values.map(lambda value: (value, (), found))


def in_key(keys: st.SearchStrategy[object], found: str) -> st.SearchStrategy[Faulty]:
    return st.tuples(keys, VALUES).map(lambda pair: ({pair[0]: pair[1]}, (), found))


FAULTS = st.one_of(
    fault(st.sampled_from([math.nan, math.inf, -math.inf]), "a number that is not finite"),
    fault(BEYOND, "an integer of 2^53 or beyond"),
    fault(BROKEN_TEXT, "text with a lone surrogate"),
    fault(st.binary(), "a bytes, which JSON cannot represent"),
    fault(st.frozensets(st.integers()), "a frozenset, which JSON cannot represent"),
    in_key(BROKEN_TEXT, "text with a lone surrogate"),
    in_key(st.integers() | st.none() | st.booleans() | FLOATS, "a key that is not a string"),
)


def in_list(inner: st.SearchStrategy[Faulty]) -> st.SearchStrategy[Faulty]:
    few = st.lists(VALUES, max_size=2)

    def around(before: list[Json], faulty: Faulty, after: list[Json]) -> Faulty:
        value, steps, found = faulty
        return [*before, value, *after], (len(before), *steps), found

    return st.builds(around, few, inner, few)


def in_dict(inner: st.SearchStrategy[Faulty]) -> st.SearchStrategy[Faulty]:
    def beside(others: dict[str, Json], key: str, faulty: Faulty) -> Faulty:
        value, steps, found = faulty
        return {**others, key: value}, (key, *steps), found

    return st.builds(beside, st.dictionaries(TEXT, VALUES, max_size=2), st.text(min_size=1), inner)


FAULTY = st.recursive(FAULTS, lambda inner: in_list(inner) | in_dict(inner), max_leaves=3)


def path_of(steps: Steps) -> str:
    """Return steps as a person writes them: `a.b[0].c`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).removeprefix(".")


@pytest.mark.inv("ID-4")
@settings(unhurried, max_examples=200)
@given(FAULTY)
def test_a_value_with_one_fault_is_refused_with_the_place_and_the_name_of_that_fault(faulty: Faulty) -> None:
    value, steps, found = faulty
    with pytest.raises(NotCanonicalError) as refused:
        canonical_bytes(value)
    assert (refused.value.path, refused.value.found) == (path_of(steps), found)


@pytest.mark.inv("ID-4")
@unhurried
@given(st.lists(FAULTY, min_size=2, max_size=3))
def test_a_value_with_many_faults_is_refused_with_the_first_of_them(faults: list[Faulty]) -> None:
    with pytest.raises(NotCanonicalError) as refused:
        canonical_bytes([value for value, _, _ in faults])
    _, steps, found = faults[0]
    assert (refused.value.path, refused.value.found) == (path_of((0, *steps)), found)


@pytest.mark.inv("ID-4")
@unhurried
@given(st.recursive(SCALARS | FAULTS.map(lambda faulty: cast("Json", faulty[0])), st.lists, max_leaves=8))
def test_a_value_is_refused_exactly_if_the_reference_implementation_refuses_it(value: Json) -> None:
    try:
        expected = rfc8785.dumps(value)
    except Exception:  # noqa: BLE001 — whatever it raises, it refuses
        with pytest.raises(NotCanonicalError):
            canonical_bytes(value)
    else:
        assert canonical_bytes(value) == expected
