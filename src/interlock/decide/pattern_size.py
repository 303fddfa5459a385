"""An upper bound for the size of a pattern's compiled program, estimated from its text before RE2 compiles it.

RE2 unfolds repetitions and expands a Unicode class into byte ranges, so a dozen characters can become half a million
instructions. RE2 has its own limit, but it spends time and memory until it reaches that limit.
"""

import re

_TOKEN = re.compile(
    r"""
      (?P<quoted>\\Q.*?(?:\\E|\Z))
    | (?P<category>\\[pP](?:\{[^}]*\}?|.)?)
    | (?P<char>\\x\{[^}]*\}?|\\.)
    | (?P<set>\[\^?\]?(?:\[:\^?\w+:\]|\\[pP]\{[^}]*\}|\\.|[^\]])*\]?)
    | (?P<flags>\(\?[a-zA-Z-]*\))
    | (?P<open>\((?:\?(?:P?<\w*>|[a-zA-Z-]*:))?)
    | (?P<close>\))
    | (?P<repeat>[*+?]|\{[0-9]+(?:,[0-9]*)?\})
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_MEMBER = re.compile(r"(?P<category>\\[pP](?:\{[^}]*\}|.))|(?P<char>\[:\^?\w+:\]|\\x\{[^}]*\}|\\.|.)", re.DOTALL)
_FOLDING = re.compile(r"\(\?[a-zA-Z]*i")
_NUMBER = re.compile(r"[0-9]+")
_FRAME = 16
"""Instructions that every program has: for the start and the end of a match."""
_CATEGORY = 1_500
"""Instructions of a class such as `\\p{L}`. The largest class has 1,200."""
_SET = 24
"""Instructions of a set `[...]` in addition to its members."""
_CHAR, _CHAR_FOLDED = 2, 8
"""Instructions of an ASCII character: matched exactly, and matched in both cases."""
_WIDE, _WIDE_FOLDED = 24, 48
"""Instructions of a non-ASCII character, of a class such as `\\d`, and of each end of a range."""


def pattern_size(pattern: str, flags: str = "") -> int:
    """Return the largest number of instructions that RE2 can make of a pattern, valid or not."""
    is_folded = "i" in flags or _FOLDING.search(pattern) is not None
    inside, around, last = _FRAME, list[int](), 0
    for token in _TOKEN.finditer(pattern):
        kind, text = token.lastgroup, token[0]
        match kind:
            case "open":
                around.append(inside)
                inside = last = 2
            case "close" if around:
                last, inside = inside, inside + around.pop()
            case "repeat":
                repeated = (last + 2) * _count_repeats(text)
                last, inside = repeated, inside - last + repeated
            case _:
                last = _token_size(kind, text, is_folded=is_folded)
                inside += last
    return inside + sum(around)


def _count_repeats(text: str) -> int:
    numbers = [int(number) for number in _NUMBER.findall(text)]
    # RE2 compiles `x{2,}` as `xx+`, counted as three. It parses `x{0}` before it drops it, so that counts once.
    return max([1, *numbers]) + text.endswith(",}")


def _token_size(kind: str | None, text: str, *, is_folded: bool) -> int:
    match kind:
        case "category":
            return _CATEGORY
        case "set":
            members = _MEMBER.finditer(text)
            return _SET + sum(_CATEGORY if one["category"] else _wide_char_size(is_folded=is_folded) for one in members)
        case "quoted":
            return sum(_char_size(char, is_folded=is_folded) for char in text)
        case "flags":
            return 1
        case _:
            return _char_size(text, is_folded=is_folded)


def _char_size(text: str, *, is_folded: bool) -> int:
    if len(text) > 1 or text == "." or not text.isascii():
        return _wide_char_size(is_folded=is_folded)
    return _CHAR_FOLDED if is_folded else _CHAR


def _wide_char_size(*, is_folded: bool) -> int:
    return _WIDE_FOLDED if is_folded else _WIDE
