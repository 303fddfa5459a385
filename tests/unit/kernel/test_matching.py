"""The matcher of all searches: what it finds, and what it never takes for something else."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.searches import goals, searches

from interlock.kernel.matching import Closeness, Words, closeness_of, is_slip, match_texts, words_of

WORDS, BEGINNINGS, SLIPS, SOME = Closeness


@pytest.mark.inv("RES-5")
@pytest.mark.parametrize(
    ("query", "text", "closeness"),
    [
        ("login flow", "Fix the LOGIN-flow, twice", WORDS),
        ("login-flow", "Fix the LOGIN-flow, twice", WORDS),
        ("snake", "snake_case v2", WORDS),
        ("\uff26\uff29\uff38", "fix", WORDS),
        ("k\u212a", "KK", WORDS),
        ("naïve", "a NAÏVE one", WORDS),
        ("STRASSE", "straße", WORDS),
        ("релиз", "Готовим Релиз 2.0", WORDS),
        ("発行", "リリースを発行する", WORDS),
        ("`ab12`", "run ab12", WORDS),
        ("run ab12", "run ab12", WORDS),
        ("fin", "find it", BEGINNINGS),
        ("fi", "find it", None),
        ("rele 2", "release 2", BEGINNINGS),
        ("retry limt", "the retry limit", SLIPS),
        ("cents", "off by one cent", SLIPS),
        ("recieve", "receive it", SLIPS),
        ("Fix the retry limit", "Raise the retry limit", SOME),
        ("apples and pears", "retry limit", None),
        ("fox", "fix it", None),
        ("2024", "2025", None),
        ("... !", "anything", None),
        ("", "anything", None),
    ],
)
def test_how_well_a_text_matches(query: str, text: str, closeness: Closeness | None) -> None:
    assert closeness_of(Words.of(query), text) is closeness


@pytest.mark.inv("RES-5")
def test_a_worse_match_is_none_where_a_better_one_exists() -> None:
    texts = ["the retry limit", "the retry limt", "limits", "other"]
    assert match_texts(Words.of("limt"), texts) == [None, WORDS, None, None]
    assert match_texts(Words.of("limit"), texts) == [WORDS, None, BEGINNINGS, None]
    assert match_texts(Words.of("limmit"), texts) == [SLIPS, None, None, None]


def edits(word: str) -> Iterator[str]:
    """Yield every word that is one slip from a word, over three letters."""
    for at in range(len(word) + 1):
        yield from (word[:at] + letter + word[at:] for letter in "abc")
        if at < len(word):
            yield word[:at] + word[at + 1 :]
            yield from (word[:at] + letter + word[at + 1 :] for letter in "abc")
        if at + 1 < len(word):
            yield word[:at] + word[at + 1] + word[at] + word[at + 2 :]


@pytest.mark.inv("RES-5")
@given(st.text(alphabet="abc", min_size=4, max_size=7), st.text(alphabet="abc", min_size=4, max_size=7))
def test_a_slip_is_one_edit_and_nothing_else(word: str, other: str) -> None:
    assert is_slip(word, other) == (other in set(edits(word)))


@given(st.text(max_size=80))
def test_every_text_has_words_and_matches_its_own(text: str) -> None:
    query = Words.of(text)
    assert all(query.words)
    assert closeness_of(query, text) is (WORDS if query else None)
    assert words_of(text) >= {word for word in query.words if len(word) > 1} or not query


@pytest.mark.inv("RES-11")
def test_of_200_misspelt_or_partial_searches_over_500_goals_95_in_100_find_the_meant_one_first() -> None:
    every = goals()
    right = silently_wrong = 0
    for meant, asked in searches(every):
        found = match_texts(Words.of(asked), every)
        best = min((one for one in found if one is not None), default=None)
        first = [goal for goal, one in zip(every, found, strict=True) if one is best and one is not None]
        right += first[:1] == [meant]
        silently_wrong += bool(first) and meant not in first and best in (WORDS, BEGINNINGS)
    assert right >= 190
    assert silently_wrong == 0
