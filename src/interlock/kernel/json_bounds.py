"""Limits on JSON text, checked before it is parsed: its values, its nesting, the digits of its numbers.

A parser creates an object for every value, so a text of `[],[],…` takes fifty times its size in memory. The count
costs a fraction of parsing, needs no memory, and ends when a limit is exceeded.
"""

from itertools import accumulate
from typing import Literal

from interlock.kernel.budgets import NUMBER_DIGITS_MAX
from interlock.kernel.frozen import frozen

Excess = Literal["values", "depth", "digits"]

_FOLDED = bytes.maketrans(b"{}123456789", b"[]000000000")
"""One kind of bracket and one digit are enough to count."""
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]"))
_LONG_NUMBER = b"0" * (NUMBER_DIGITS_MAX + 1)
_STEPS = {ord("["): 1, ord("]"): -1}


@frozen
class JsonBounds:
    """How many values a text may hold, and how deeply containers may be nested.

    Each comma and each opening bracket counts as a value, and so does the text: an empty container counts twice.
    """

    values_max: int
    depth_max: int


def find_excess(data: bytes, bounds: JsonBounds, *, chunk_bytes: int = 64 * 1024) -> Excess | None:
    """Return the first limit that a JSON text exceeds, or None if it exceeds none.

    For a text that is not JSON, the result applies to the part that a parser would read. `data` is UTF-8; at most one
    chunk of it is copied at a time.
    """
    values, quotes, depth = 1, 0, 0
    kept, tail = b"", b""
    for start in range(0, len(data), chunk_bytes):
        chunk = kept + data[start : start + chunk_bytes]
        # An escape sequence is not split: its backslash is left to the next chunk.
        is_cut = (len(chunk) - len(chunk.rstrip(b"\\"))) % 2 == 1
        kept = b"\\" if is_cut else b""
        text = chunk[: len(chunk) - is_cut]
        if b"\\" in text:
            text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
        parts = text.split(b'"')
        is_inside = quotes % 2 == 1
        quotes += len(parts) - 1
        outside = (b'"' if is_inside else b"") + b'"'.join(parts[is_inside::2]).translate(_FOLDED)
        opened = outside.count(b"[")
        values += opened + outside.count(b",")
        # Each value has at most two strings, its key and itself: more are not JSON, and cost time.
        if max(values, quotes // 4) > bounds.values_max:
            return "values"
        if depth + opened > bounds.depth_max and _deepest(outside, depth) > bounds.depth_max:
            return "depth"
        depth += opened - outside.count(b"]")
        tail += outside
        if _LONG_NUMBER in tail:
            return "digits"
        tail = tail[-NUMBER_DIGITS_MAX:]
    return None


def _deepest(outside: bytes, depth: int) -> int:
    brackets = outside.translate(None, _NO_BRACKETS)
    return max(accumulate(map(_STEPS.__getitem__, brackets), initial=depth))
