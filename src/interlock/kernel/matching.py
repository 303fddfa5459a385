"""The one matcher of searches: whole words, then their beginnings, then one slip, then the most words (RES-5)."""

import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from enum import IntEnum
from functools import lru_cache

from interlock.kernel.budgets import BEGINNING_CHARS_MIN, SLIP_CHARS_MIN
from interlock.kernel.frozen import positional

_WORD = re.compile(r"[\w-]+")
_PART = re.compile(r"[^\W_]+")


class Closeness(IntEnum):
    """How well a text matches a query. A smaller value is better."""

    WORDS = 0
    """Every word of the query is a word of the text."""
    BEGINNINGS = 1
    """Every word of the query is the beginning of a word of the text."""
    SLIPS = 2
    """At least one word of the query differs from a word of the text in one letter."""
    SOME = 3
    """Not every word of the query is in the text, but at least half of them are."""


@positional
class Words:
    """The searchable words of a query, in any script. Without one, it matches nothing."""

    words: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> "Words":
        """Return the words of a text, each once. Quotes, backticks and punctuation around a word do not count."""
        found = (word.strip("-_") for word in _WORD.findall(_plain(text)))
        return cls(tuple(dict.fromkeys(word for word in found if word)))

    def __bool__(self) -> bool:
        """Whether there is a word."""
        return bool(self.words)


NO_WORDS = Words(())


def words_of(text: str) -> frozenset[str]:
    """Return the words of a text, and the parts of words with hyphens or underscores."""
    plain = _plain(text)
    return frozenset(word.strip("-_") for word in _WORD.findall(plain)) | frozenset(_PART.findall(plain))


def closeness_of(query: Words, text: str) -> Closeness | None:
    """Return how well one text matches a query; None if it does not."""
    return match_texts(query, [text])[0]


def match_texts(query: Words, texts: Sequence[str]) -> list[Closeness | None]:
    """Return how well each text matches a query; None for those that do not.

    A worse kind of match is looked for only if no text matches better, so a slip never competes with the words
    themselves. A word of a script without spaces matches anywhere in a text.
    """
    if not query:
        return [None] * len(texts)
    found = [word_closeness(query, text) for text in texts]
    if any(one is not None for one in found):
        return found
    vocabularies = [words_of(text) for text in texts]
    near = [_near_words(word, vocabularies) for word in query.words]
    counts = [sum(not words.isdisjoint(one) for one in near) for words in vocabularies]
    most = max(counts, default=0)
    closeness = closeness_of_count(query, most)
    return [closeness if count == most else None for count in counts]


def closeness_of_count(query: Words, count: int) -> Closeness | None:
    """Return how well a text matches that has so many words of the query, at best with a slip in one of them."""
    if count == len(query.words) > 0:
        return Closeness.SLIPS
    return Closeness.SOME if 0 < len(query.words) <= 2 * count else None


def near_count(query: Words, text: str) -> int:
    """Return how many words of a query are words of a text, or begin one, or are one slip away from one."""
    words = words_of(text)
    return sum(bool(_near_words(word, (words,))) for word in query.words)


def bound_of_record(query: Words, record: str) -> Closeness | None:
    """Return the best closeness that a text in a stored record may have; None if it has neither words nor beginnings.

    A record is canonical JSON. Its keys and escapes are read as texts, too, so a text may match less.
    """
    plain = _plain(record)
    if not query or not all(word in plain for word in query.words):
        return None
    found = [_closest_start(word, plain) for word in query.words if _has_spaces(word)]
    if None in found:
        return None
    return max((one for one in found if one is not None), default=Closeness.WORDS)


def near_pattern(word: str) -> str:
    """Return an RE2 pattern that a record matches, in lower case, if a text in it has a near word of this one."""
    if not _has_spaces(word):
        return re.escape(word)
    begin, end = r"(?:^|[^a-z0-9]|\\[bfnrt])", r"(?:[^a-z0-9]|$)"
    found = begin + re.escape(word)
    if len(word) < SLIP_CHARS_MIN - 1 or word.isdigit():
        return found
    parts = [(re.escape(word[:at]), re.escape(word[at : at + 1]), re.escape(word[at + 1 :])) for at in range(len(word))]
    slips = [f"{first}.?{rest}" for first, _, rest in parts]
    slips += [f"{first}.{letter}{rest}" for first, letter, rest in parts] + [f"{re.escape(word)}."]
    slips += [re.escape(word[:at] + word[at + 1] + word[at] + word[at + 2 :]) for at in range(len(word) - 1)]
    return f"{found}|{begin}(?:{'|'.join(slips)}){end}"


def plain_record(record: str) -> str:
    """Return a stored record as `near_pattern` reads it."""
    return _plain(record)


def _closest_start(word: str, plain: str) -> Closeness | None:
    """Return whether a word is a word of a text, or only begins one; None if it does neither."""
    found = None
    at = plain.find(word)
    while at >= 0:
        # A letter before it may belong to an escape, as in `\\n`.
        if not plain[at - 1 : at].isalnum() or plain[at - 2 : at - 1] == "\\":
            if not plain[at + len(word) : at + len(word) + 1].isalnum():
                return Closeness.WORDS
            found = Closeness.BEGINNINGS if len(word) >= BEGINNING_CHARS_MIN else found
        at = plain.find(word, at + 1)
    return found


def word_closeness(query: Words, text: str) -> Closeness | None:
    """Return whether every word of the query is a word of the text, or begins one; None if not."""
    plain = _plain(text)
    found = Closeness.WORDS
    for word in query.words:
        if word not in plain:
            return None
        if not _has_spaces(word):
            continue
        whole, beginning = _patterns(word)
        if whole.search(plain) is None:
            if len(word) < BEGINNING_CHARS_MIN or beginning.search(plain) is None:
                return None
            found = Closeness.BEGINNINGS
    return found


@lru_cache(maxsize=64)
def _patterns(word: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return patterns that find a word, and the beginning of one, in a text: the same words as those of `words_of`."""
    here = re.escape(word)
    if _PART.fullmatch(word):
        return re.compile(rf"(?<![^\W_]){here}(?![^\W_])"), re.compile(rf"(?<![^\W_]){here}")
    return re.compile(rf"(?<![\w-])[-_]*{here}[-_]*(?![\w-])"), re.compile(rf"(?<![\w-])[-_]*{here}")


def _begins(word: str, words: Collection[str]) -> bool:
    """Say whether a word is one of these, or begins one of them; too few letters begin too many words."""
    return word in words or (len(word) >= BEGINNING_CHARS_MIN and any(one.startswith(word) for one in words))


def _near_words(word: str, vocabularies: Iterable[frozenset[str]]) -> frozenset[str]:
    """Return the words of all texts that a word of the query may mean."""
    every = frozenset[str]().union(*vocabularies)
    spaceless = not _has_spaces(word)
    return frozenset(one for one in every if _begins(word, (one,)) or (spaceless and word in one) or is_slip(word, one))


def is_slip(word: str, other: str) -> bool:
    """Say whether two words differ in one letter that is added, missing or another one, or in two that are swapped.

    Short words are never slips of each other: too many differ in one letter. Neither are numbers.
    """
    if abs(len(word) - len(other)) > 1 or min(len(word), len(other)) < SLIP_CHARS_MIN:
        return False
    if word.isdigit() or other.isdigit():
        return False
    begin = 0
    while begin < min(len(word), len(other)) and word[begin] == other[begin]:
        begin += 1
    rest, other_rest = word[begin:], other[begin:]
    if len(rest) == len(other_rest):
        is_swap = len(rest) > 1 and rest[:2] == other_rest[1::-1] and rest[2:] == other_rest[2:]
        return rest[1:] == other_rest[1:] or is_swap
    longer, shorter = (rest, other_rest) if len(rest) > len(other_rest) else (other_rest, rest)
    return longer[1:] == shorter


def _has_spaces(word: str) -> bool:
    """Say whether the script of a word separates words, as most do; Chinese, Japanese and Thai do not."""
    return word.isascii() or not any(
        unicodedata.east_asian_width(char) == "W" or unicodedata.name(char, "").startswith(("THAI", "LAO", "KHMER"))
        for char in word
    )


def _plain(text: str) -> str:
    return text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()
