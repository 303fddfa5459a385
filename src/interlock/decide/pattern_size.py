"""How large a pattern's program becomes at most, read from its text: known before the engine spends anything on it.

The engine unfolds what is repeated and writes a class of Unicode out as ranges of bytes, so a dozen characters can
become half a million instructions. It has a limit of its own, but pays until it meets that.
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
"""Instructions of every program: where a match begins, and that it ends."""
_CATEGORY = 1_500
"""Of a class such as `\\p{L}`: the largest has 1,200."""
_SET = 24
"""Of a set, for what lies outside what it names."""
_CHAR, _CHAR_FOLDED = 2, 8
"""Of a character in ASCII, and of one that stands for upper and lower case."""
_WIDE, _WIDE_FOLDED = 24, 48
"""Of a character beyond ASCII, of a kind of characters, and of either end of a range."""


def pattern_size(pattern: str, flags: str = "") -> int:
    """Return how many instructions the engine makes of a pattern at most, whether or not it can be used."""
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
    # `x{2,}` is `xx*`, and `x{0}` is read before it is dropped.
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
