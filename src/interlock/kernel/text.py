"""Text within byte budgets, and safe rendering of text from others (ID-5)."""

import json
import re
from collections.abc import Callable, Iterable
from functools import cache

TRUNCATION_MARKER = "\n\n[TRUNCATED]"
"""Appended, exactly in this form, to text that was cut to fit a budget."""

_TICKS = re.compile("`+")
_ASCII_STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
"""Those of ASCII that `_STEERING` matches, found in half the time."""
_STEERING = (
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    r"\u3164\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Characters that move, colour, reorder or hide text in a terminal or for an agent, and lone surrogates.

These are the control characters, the separators of lines, and what Unicode says a font may leave out
(Default_Ignorable_Code_Point, with the marks of annotations), except joiners and the variation selectors that
scripts and emoji need.
"""
_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))
"""Milliseconds of each unit, and its name; the largest first."""


@cache
def _steering() -> re.Pattern[str]:
    """Return `_STEERING` compiled, for which most texts have no use: they are printable ASCII."""
    return re.compile(_STEERING)


def utf8_bytes(text: str) -> int:
    """Return the length in UTF-8 bytes, the unit of every text budget. Lone surrogates count three."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def render_path(parts: Iterable[int | str]) -> str:
    """Render the keys and positions that lead to a value in JSON: `steps[3].promptBlocks.goal`."""
    path = ""
    for part in parts:
        path += f"[{part}]" if isinstance(part, int) else (f".{part}" if path else part)
    return path


def truncated(text: str, bytes_max: int, marker: str = TRUNCATION_MARKER) -> str:
    """Return the text if it fits, else the longest whole-character prefix that fits with the marker."""
    if utf8_bytes(text) <= bytes_max:
        return text
    room = bytes_max - utf8_bytes(marker)
    assert room >= 0, "a budget must at least hold the marker"
    return text.encode("utf-8", "surrogatepass")[:room].decode("utf-8", "ignore") + marker


def one_line(text: str, bytes_max: int) -> str:
    """Return the text as `flat` does, cut with an ellipsis: for headers, lists, a caller's own text in an error."""
    # The cut keeps at most this much, so a huge text costs no more than a long one.
    head = text[: bytes_max * 4]
    line = flat(head)
    return truncated(line if len(text) == len(head) else f"{line}{'…' * bytes_max}", bytes_max, "…")


def printable(text: str) -> str:
    """Return text with the characters escaped that control a terminal or are invisible. Lines end in LF."""
    return _escaped(text.replace("\r\n", "\n"), lambda char: char.encode("unicode_escape", "surrogatepass").decode())


def _escaped(text: str, escape: Callable[[str], str]) -> str:
    """Return text with each character that `_STEERING` matches escaped."""
    if text.isascii() and text.isprintable():
        return text
    steering = _ASCII_STEERING if text.isascii() else _steering()
    return steering.sub(lambda found: escape(found.group()), text)


def has_surrogate(text: str) -> bool:
    """Return whether a text holds a lone surrogate, which UTF-8 cannot express."""
    try:
        return not text.isascii() and not text.encode("utf-8")
    except UnicodeEncodeError:
        return True


def says_something(text: str) -> bool:
    """Return whether a text has a letter or a digit that can be seen: blanks, points and hidden marks say nothing."""
    return any(char.isalnum() and _steering().match(char) is None for char in text)


def flat(text: str) -> str:
    """Return text as `printable` does, on one line: every sequence of whitespace becomes one space."""
    return printable(" ".join(text.split()))


def quoted(text: str) -> str:
    """Return text from others as a Markdown block quote: each line is marked, so no line can imitate Interlock's text.

    A block of code or a comment that the text leaves open ends with the quote. A blank line must follow the quote.
    """
    return "\n".join(f"> {line}" if line else ">" for line in printable(text).split("\n"))


def in_code(text: str) -> str:
    """Return text from others as a Markdown code span on one line, with more backticks than it has in a row."""
    words = flat(text)
    return code_span(words) if words else "(empty)"


def code_span(line: str) -> str:
    """Return a line, unchanged, as a Markdown code span."""
    fence = fence_around(line)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def fence_around(text: str, ticks_min: int = 1) -> str:
    """Return a fence of backticks that the text does not close."""
    longest = max(map(len, _TICKS.findall(text)), default=0) if "`" in text else 0
    return "`" * max(ticks_min, longest + 1)


def json_line(value: object, separators: tuple[str, str] = (", ", ": ")) -> str:
    """Return a JSON value on one line, with invisible characters escaped."""
    line = json.dumps(value, ensure_ascii=False, separators=separators)
    return _escaped(line, lambda char: json.dumps(char)[1:-1])


def json_in_code(value: object, separators: tuple[str, str] = (", ", ": ")) -> str:
    """Return a JSON value on one line in a Markdown block of code."""
    return f"```json\n{json_line(value, separators)}\n```"


def duration_words(ms: int, units_max: int = 2) -> str:
    """Return a duration in its largest units, such as `2 h 5 min`."""
    counts, left = list[tuple[int, str]](), ms
    for unit, name in _UNITS:
        count, left = divmod(left, unit)
        if count or counts:
            counts.append((count, name))
    return " ".join(f"{count} {name}" for count, name in counts[:units_max] if count) or "less than 1 s"
