"""Patterns of the RE2 syntax, compiled once and matched in linear time. RE2 is loaded with the first pattern."""

from functools import lru_cache
from typing import Protocol, cast

from interlock.kernel.budgets.workflow import (
    COMPILED_PATTERNS_KEPT_MAX,
    PATTERN_MEMORY_BYTES_MAX,
    PATTERNS_KEPT_MAX,
)


def has_match(pattern: str, flags: str, text: str | bytes) -> bool:
    """Return whether a pattern matches somewhere in a text, or its UTF-8 bytes, in time linear in the text's length."""
    return _compile(pattern, flags).search(text) is not None


@lru_cache(PATTERNS_KEPT_MAX)
def find_pattern_fault(pattern: str, flags: str = "") -> str | None:
    """Return why RE2 cannot use a pattern, or None if it can. The result is cached."""
    import re2  # noqa: PLC0415 — see `_compile`

    try:
        _compile(pattern, flags)
    except cast("type[Exception]", re2.error) as error:
        found = cast("object", error.args[0])
        return found.decode("utf-8", "replace") if isinstance(found, bytes) else str(found)
    return None


class _Pattern(Protocol):
    def search(self, text: str | bytes) -> object | None: ...


@lru_cache(COMPILED_PATTERNS_KEPT_MAX)
def _compile(pattern: str, flags: str) -> _Pattern:
    # RE2's own cache compares all options at each call, which costs more than a match in a short text.
    import re2  # noqa: PLC0415 — few steps have patterns; without them a server need not load RE2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = PATTERN_MEMORY_BYTES_MAX
    return cast("_Pattern", re2.compile(f"(?{''.join(sorted(set(flags)))}){pattern}" if flags else pattern, options))
