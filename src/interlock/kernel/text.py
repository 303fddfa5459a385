"""Text under byte budgets, and the one way text is matched (locks 1, 2.3)."""

import re
import unicodedata

TRUNCATION_MARKER = "\n\n[TRUNCATED]"
"""Appended, exactly so, to whatever was cut to fit a budget."""

_WORD = re.compile(r"[a-z0-9_-]+")
_STEERING = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060\u2066-\u2069\ufeff"
    r"\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Characters that move, colour, reorder or hide what a terminal shows, and halves of characters."""


def utf8_bytes(text: str) -> int:
    """Return the length in UTF-8 bytes, the unit of every text budget. Lone surrogates count three."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def truncated(text: str, bytes_max: int, marker: str = TRUNCATION_MARKER) -> str:
    """Return the text if it fits, else the longest whole-character prefix that fits with the marker."""
    if utf8_bytes(text) <= bytes_max:
        return text
    room = bytes_max - utf8_bytes(marker)
    assert room >= 0, "a budget must at least hold the marker"
    return text.encode("utf-8", "surrogatepass")[:room].decode("utf-8", "ignore") + marker


def one_line(text: str, bytes_max: int) -> str:
    """Return the text on one line, cut with an ellipsis: for headers, lists, and a caller's own words in an error.

    Half a character, which no answer can carry, is written out.
    """
    # No more than this can survive the cut, so a huge text costs no more than a long one.
    head = text[: bytes_max * 4]
    line = " ".join(head.split()).encode("utf-8", "backslashreplace").decode("utf-8")
    return truncated(line if len(text) == len(head) else f"{line}{'…' * bytes_max}", bytes_max, "…")


def tokens(text: str) -> frozenset[str]:
    """Return the words of a text after NFKC and lower-casing: the only matching semantics (locks 2.3)."""
    return frozenset(_WORD.findall(unicodedata.normalize("NFKC", text).lower()))


def has_words(text: str, words: frozenset[str]) -> bool:
    """Say whether every word is one of the text's own: cheap for the many texts that hold none of them."""
    if text.isascii():
        lowered = text.lower()
        if not all(word in lowered for word in words):
            return False
    return words <= tokens(text)


def printable(text: str) -> str:
    """Return text in which characters that steer a terminal are written out."""
    return _STEERING.sub(lambda found: found.group().encode("unicode_escape", "surrogatepass").decode(), text)


def flat(text: str) -> str:
    """Return text as `printable` does, with every run of space as one: for labels, which stand on one line."""
    return printable(" ".join(text.split()))
