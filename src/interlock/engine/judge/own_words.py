"""Says whether a text can be an account of work: not the same over and over, and not copied from elsewhere (EVID-11).

Texts are compared as words, without regard to case and spaces. No prose is rated: a text of few words always passes.
"""

from collections.abc import Iterator, Mapping

from interlock.kernel.budgets import (
    COPIED_RUN_WORDS,
    COPIED_WORDS_SHARE_MAX,
    DISTINCT_WORDS_ENOUGH,
    DISTINCT_WORDS_SHARE_MIN,
    LONG_NOTES_WORDS_MIN,
    REPEATED_WORDS_MIN,
)
from interlock.kernel.canonical import Json


def _words_of(text: str) -> tuple[str, ...]:
    """Return the words of a text as they are compared."""
    return tuple(text.casefold().split())


def is_copy(text: str, source: str) -> bool:
    """Say whether most words of a text are in runs of words that a source has, too."""
    words, size = _words_of(text), COPIED_RUN_WORDS
    if len(words) < REPEATED_WORDS_MIN:
        return False
    theirs = _words_of(source)
    if sum(map(set(theirs).__contains__, words)) <= COPIED_WORDS_SHARE_MAX * len(words):
        return False  # for most notes: a word of a run that the source has is a word of the source
    known = set(_runs(theirs, size))
    copied: set[int] = set()
    for at, run in enumerate(_runs(words, size)):
        if run in known:
            copied.update(range(at, at + size))
    return len(copied) > COPIED_WORDS_SHARE_MAX * len(words)


def repeats_itself(text: str) -> bool:
    """Say whether a text has so few different words that it says the same over and over."""
    words = _words_of(text)
    wanted = min(DISTINCT_WORDS_ENOUGH, DISTINCT_WORDS_SHARE_MIN * len(words))
    return len(words) >= LONG_NOTES_WORDS_MIN and len(set(words)) < wanted


def is_sent_again(text: str, earlier: str) -> bool:
    """Say whether a text has the words of an earlier one, and is too long for this to be chance."""
    words = _words_of(text)
    return len(words) >= LONG_NOTES_WORDS_MIN and _words_of(earlier) == words


def text_in_two_fields(artifact: Mapping[str, Json]) -> tuple[str, str] | None:
    """Return two fields of one object in an artifact that hold the same text, by their names; None if there are none.

    An item of a list may say what the object around it says: the only check, and the summary of the checks.
    """
    first: dict[tuple[str, ...], str] = {}
    for name, member in artifact.items():
        for item in member if isinstance(member, list) else [member]:
            if isinstance(item, dict) and (found := text_in_two_fields(item)) is not None:
                return found
            words = _words_of(item) if isinstance(item, str) else ()
            if len(words) >= REPEATED_WORDS_MIN and first.setdefault(words, name) != name:
                return first[words], name
    return None


def _runs(words: tuple[str, ...], size: int) -> Iterator[tuple[str, ...]]:
    return (words[at : at + size] for at in range(len(words) - size + 1))
