"""The count of a JSON text before it is parsed, against the value that the parser makes of it."""

import json
from collections.abc import Iterator
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from interlock.kernel.budgets import NUMBER_DIGITS_MAX
from interlock.kernel.canonical import Json
from interlock.kernel.json_bounds import Excess, JsonBounds, find_excess

unhurried = settings(
    deadline=None,
    max_examples=300,
    suppress_health_check=[HealthCheck.too_slow],
)
AWKWARD = st.sampled_from(
    ['"', "\\", '\\"', '\\\\"', "[", "]{}", ",,,,", ":", "[[", '","', "\n", "\ud800", "é", "9" * 30]
)
TEXT = st.lists(AWKWARD | st.text(max_size=3), max_size=4).map("".join)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT
VALUES: st.SearchStrategy[Json] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=16,
)
LAYOUTS = st.sampled_from([{}, {"indent": 1}, {"separators": (",", ":")}, {"ensure_ascii": False}])
CHUNKS = st.integers(1, 9) | st.just(64 * 1024)
UNBOUNDED = JsonBounds(values_max=10**9, depth_max=10**9)


def containers(value: Json) -> Iterator[list[Json]]:
    """Yield what each container of a value holds."""
    if isinstance(value, dict | list):
        members = list(value.values()) if isinstance(value, dict) else value
        yield members
        for member in members:
            yield from containers(member)


def counted(value: Json) -> int:
    """Return how many values a text of this value is: one, and those of each container, at least one of each."""
    return 1 + sum(max(len(members), 1) for members in containers(value))


def depth_of(value: Json) -> int:
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 1 + max(map(depth_of, members), default=0) if members is not None else 0


def written(value: Json, layout: dict[str, object]) -> bytes:
    return json.dumps(value, **layout).encode("utf-8", "surrogatepass")  # pyright: ignore[reportArgumentType] — a table


@pytest.mark.inv("LIM-1")
@unhurried
@given(VALUES, LAYOUTS, CHUNKS)
@example(value={'a\\"': ["\\", '"[,']}, layout={}, chunk=1)
def test_a_text_is_refused_exactly_from_the_first_value_and_level_too_many_on(
    value: Json, layout: dict[str, object], chunk: int
) -> None:
    data, values, depth = written(value, layout), counted(value), depth_of(value)
    assert json.loads(data.decode("utf-8", "surrogatepass")) == value
    fitting = JsonBounds(values_max=values, depth_max=depth)
    assert find_excess(data, fitting, chunk_bytes=chunk) is None
    fewer = JsonBounds(values_max=values - 1, depth_max=depth)
    assert find_excess(data, fewer, chunk_bytes=chunk) == "values"
    if depth:
        flatter = JsonBounds(values_max=values, depth_max=depth - 1)
        assert find_excess(data, flatter, chunk_bytes=chunk) == "depth"


@pytest.mark.inv("LIM-1")
@unhurried
@given(
    st.integers(1, 3 * NUMBER_DIGITS_MAX), TEXT, CHUNKS | st.integers(400, 600), st.sampled_from(["", "-", "1.", "1e"])
)
def test_digits_count_outside_texts_alone_however_the_text_is_cut(
    digits: int, text: str, chunk: int, before: str
) -> None:
    data = f"[{json.dumps(text + '7' * 2000)},7,{json.dumps('7' * 600)},{before}{'7' * digits}]".encode()
    expected = "digits" if digits > NUMBER_DIGITS_MAX else None
    assert find_excess(data, UNBOUNDED, chunk_bytes=chunk) == expected


@pytest.mark.inv("LIM-1")
@unhurried
@given(st.lists(st.sampled_from([*'[]{}",:\\1 a', '\\"', "[[[[", '""""']), max_size=60).map("".join), CHUNKS)
def test_of_a_text_that_is_no_json_no_more_is_parsed_than_the_bounds_allow(text: str, chunk: int) -> None:
    """Every object and array that the parser finished before it met the fault was counted."""
    finished: list[int] = []

    def count(pairs: list[tuple[str, object]]) -> dict[str, object]:
        finished.append(len(pairs))
        return dict(pairs)

    with suppress(ValueError):
        json.loads(text, object_pairs_hook=count)
    made = sum(max(members, 1) for members in finished)
    if made:
        few = JsonBounds(values_max=made, depth_max=10**9)
        assert find_excess(text.encode(), few, chunk_bytes=chunk) == "values"


@pytest.mark.inv("LIM-1")
@pytest.mark.parametrize(
    ("unit", "excess"), [(b"[],", "values"), (b'"', "values"), (b'"",', "values"), (b"[", "depth"), (b"9", "digits")]
)
def test_what_exceeds_a_bound_is_read_no_further_than_that(unit: bytes, excess: Excess) -> None:
    """A view of the bytes that counts what is taken from it: the count ends with the chunk that is too much."""
    bounds = JsonBounds(values_max=10_000 if excess == "values" else 10**9, depth_max=100)

    class Watched(bytes):
        taken = 0

        def __getitem__(self, at: slice) -> bytes:  # pyright: ignore[reportIncompatibleMethodOverride] — slices alone
            part = super().__getitem__(at)
            Watched.taken += len(part)
            return part

    assert find_excess(Watched(unit * (5_000_000 // len(unit))), bounds) == excess
    assert Watched.taken <= 128 * 1024
