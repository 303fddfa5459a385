"""The size of a pattern as it is read from its text, against the program that the engine makes of it."""

from typing import Protocol, cast

import pytest
import re2  # pyright: ignore[reportMissingTypeStubs] — the engine has none
from hypothesis import example, given, settings
from hypothesis import strategies as st

from interlock.decide.pattern_size import pattern_size

CHARS = st.sampled_from([*"abkKsS01 _<,", *"éſαǄɏ", "\U0010ffff", "\u212a"]) | st.sampled_from(
    [r"\d", r"\W", r"\w", r"\S", r"\b", r"\x{1F600}", r"\x41", r"\.", ".", "^", "$", r"\pN", r"\p{Greek}", r"\PL"]
)
ENDS = st.one_of(
    st.integers(0x21, 0x2FF), st.integers(0x370, 0x5FF), st.integers(0x1E00, 0xD7FF), st.integers(0x10000, 0x10FFFF)
)
RANGES = st.tuples(ENDS, ENDS).map(lambda ends: rf"\x{{{min(ends):X}}}-\x{{{max(ends):X}}}")
MEMBERS = RANGES | st.sampled_from(
    ["a", "é", r"\d", r"\W", r"\pN", r"\p{Lu}", "[:alpha:]", "[:^digit:]", r"\]", "{9}", "("]
)
SETS = st.tuples(st.sampled_from(["", "^", "]", "^]"]), st.lists(MEMBERS, min_size=1, max_size=4).map("".join)).map(
    lambda parts: f"[{parts[0]}{parts[1]}]"
)
QUOTED = st.sampled_from([r"\Q[\E", r"\Q(a{9}\E", r"\Q\E", r"\Qé\E"])
OPENINGS = st.sampled_from(["(", "(?:", "(?i:", "(?s-m:", "(?P<name>"])
TIMES = st.sampled_from(["*", "+", "?", "{3}", "{2,}", "{0,7}", "{1,30}", "*?", "{0}", "{40}"])


def grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.tuples(OPENINGS, inner, st.just(")")).map("".join),
        st.tuples(st.just("(?:"), inner, st.just("|"), inner, st.just(")")).map("".join),
        st.tuples(st.just("(?:"), inner, st.just(")"), TIMES).map("".join),
    )


PATTERNS = st.recursive(CHARS | SETS | QUOTED, grown, max_leaves=8)


class _Program(Protocol):
    programsize: int


def program_size(pattern: str, flags: str) -> int | None:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = 64 << 20
    try:
        program = cast("_Program", re2.compile(f"(?{flags}){pattern}" if flags else pattern, options))
    except re2.error:
        return None
    return program.programsize


@pytest.mark.inv("LIM-3")
@settings(deadline=None, max_examples=400)
@given(PATTERNS, st.sampled_from(["", "i", "s", "im"]))
@example(pattern=r"(?:[\p{L}\p{N}]{1,4}){7}", flags="")
@example(pattern=r"\Q[\E(?:\p{L}{9}){3}", flags="")
@example(pattern=r"[]\p{L}]{5}", flags="i")
@example(pattern=r"(?i)[A-ɏ]{9}", flags="")
def test_a_program_is_never_larger_than_its_text_promises(pattern: str, flags: str) -> None:
    promised = pattern_size(pattern, flags)
    if promised < 300_000 and (found := program_size(pattern, flags)) is not None:
        assert found <= promised


@pytest.mark.inv("LIM-3")
@given(st.text(st.sampled_from([*"()[]{}\\|*+?^-:,9pPLQEix<>a"]), max_size=60))
def test_any_text_has_a_size(text: str) -> None:
    assert pattern_size(text) > 0


@pytest.mark.parametrize(
    ("pattern", "most"),
    [
        (r"^verdict: (yes|no)$", 100),
        (r"(?i)^\s*verdict:\s*(yes|no)\b", 400),
        (r"\b[A-Z]{2,5}-\d{1,6}\b", 1_000),
        (r"^## Summary\n(.+\n){2,10}", 1_000),
        (r"\p{Lu}\p{L}{1,30} \p{Lu}\p{L}{1,30}", 100_000),
    ],
)
def test_what_authors_write_is_small(pattern: str, most: int) -> None:
    assert pattern_size(pattern) <= most
