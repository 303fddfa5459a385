"""Names what breaks a file and is easily overlooked: the markers of a merge, and characters that look like a space."""

import re
import unicodedata

from interlock.kernel.frozen import frozen

_MARKER = re.compile(r"^(<{7}|>{7})(?= |\r?$)", re.MULTILINE)
"""A line with which a merge marks a conflict."""

_IN_A_VALUE = re.compile(r".*[^\s:,{\[-]")
"""The beginning of a line after which a character is a part of a text, and not between the parts of the structure."""


@frozen
class Culprit:
    """What makes a text unreadable: its offset, what it is, and what to do about it."""

    at: int
    message: str
    fix: str


def find_merge_marker(text: str) -> Culprit | None:
    """Return the first marker of a merge. It may be far from the place that a parser refuses."""
    marker = _MARKER.search(text)
    if marker is None:
        return None
    message = f"{_place(text, marker.start())}: a marker of a merge, `{marker[1]}`."
    return Culprit(at=marker.start(), message=message, fix="Resolve the conflict, and remove its markers.")


def find_false_space(text: str, first: int, last: int) -> Culprit | None:
    """Return the first character between two offsets that looks like a space, at a place where a space is needed."""
    for at in range(first, min(last + 1, len(text))):
        if is_invisible(text[at]) and not _IN_A_VALUE.fullmatch(text, text.rfind("\n", 0, at) + 1, at):
            message = f"{_place(text, at)}: {describe_invisible(text[at])}, which is no space for a parser."
            return Culprit(at=at, message=message, fix="Replace it with a space, or remove it.")
    return None


def is_invisible(char: str) -> bool:
    """Say whether a character outside of ASCII shows as a space or not at all."""
    return not char.isascii() and unicodedata.category(char) in {"Zs", "Zl", "Zp", "Cf"}


def describe_invisible(char: str) -> str:
    """Return a character that cannot be seen by its code and its name."""
    return f"U+{ord(char):04X} ({unicodedata.name(char, 'a character without a name').lower()})"


def _place(text: str, at: int) -> str:
    return f"Line {text.count(chr(10), 0, at) + 1}, column {at - text.rfind(chr(10), 0, at)}"
