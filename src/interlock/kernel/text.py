"""Text under byte budgets, others' text beside ours, and the one way text is matched (ID-5, RES-5)."""

import json
import re
import unicodedata

TRUNCATION_MARKER = "\n\n[TRUNCATED]"
"""Appended, exactly so, to whatever was cut to fit a budget."""

_WORD = re.compile(r"[a-z0-9_-]+")
_TICKS = re.compile("`+")
_STEERING = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060\u2066-\u2069\ufeff"
    r"\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Characters that move, colour, reorder or hide what a terminal or an agent shows, and halves of characters."""


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
    """Return the text as `flat` does, cut with an ellipsis: for headers, lists, a caller's own words in an error."""
    # No more than this can survive the cut, so a huge text costs no more than a long one.
    head = text[: bytes_max * 4]
    line = flat(head)
    return truncated(line if len(text) == len(head) else f"{line}{'…' * bytes_max}", bytes_max, "…")


def tokens(text: str) -> frozenset[str]:
    """Return the words of a text after NFKC and lower-casing: the only matching semantics (RES-5)."""
    return frozenset(_WORD.findall(unicodedata.normalize("NFKC", text).lower()))


def has_words(text: str, words: frozenset[str]) -> bool:
    """Say whether every word is one of the text's own: cheap for the many texts that hold none of them."""
    if text.isascii():
        lowered = text.lower()
        if not all(word in lowered for word in words):
            return False
    return words <= tokens(text)


def printable(text: str) -> str:
    """Return text in which characters that steer a terminal or hide from a reader are written out. Lines end in LF."""
    if text.isascii() and text.isprintable():
        return text
    lines = text.replace("\r\n", "\n")
    return _STEERING.sub(lambda found: found.group().encode("unicode_escape", "surrogatepass").decode(), lines)


def flat(text: str) -> str:
    """Return text as `printable` does, with every run of space as one: for labels, which stand on one line."""
    return printable(" ".join(text.split()))


def quoted(text: str) -> str:
    """Return others' text as a Markdown block quote: each line is marked, so none of them can pass for ours.

    What the text leaves open, a block of code or a comment, ends with the quote. A blank line must follow it.
    """
    return "\n".join(f"> {line}" if line else ">" for line in printable(text).split("\n"))


def in_code(text: str) -> str:
    """Return others' text as a Markdown code span on one line, in more backticks than it holds in a row."""
    words = flat(text)
    if not words:
        return "(empty)"
    fence = fence_around(words)
    pad = " " if words.startswith("`") or words.endswith("`") else ""
    return f"{fence}{pad}{words}{pad}{fence}"


def fence_around(text: str, ticks_min: int = 1) -> str:
    """Return a fence of backticks that nothing in the text closes."""
    longest = max(map(len, _TICKS.findall(text)), default=0) if "`" in text else 0
    return "`" * max(ticks_min, longest + 1)


def json_in_code(value: object, separators: tuple[str, str] = (", ", ": ")) -> str:
    """Return a JSON value on one line in a Markdown block of code. What others' words hide in it is escaped."""
    line = json.dumps(value, ensure_ascii=False, separators=separators)
    shown = _STEERING.sub(lambda found: json.dumps(found.group())[1:-1], line)
    return f"```json\n{shown}\n```"
