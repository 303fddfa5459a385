"""Checks the patterns of one workflow file, each by itself and all together against a total size."""

from interlock.decide.pattern_match import find_pattern_fault
from interlock.decide.pattern_size import pattern_size
from interlock.define.diagnostics import Diagnostic, fault
from interlock.kernel.budgets.workflow import (
    PATTERN_CHARS_MAX,
    PATTERN_SIZE_MAX,
    PATTERNS_SIZE_MAX,
)
from interlock.kernel.frozen import replace

_SYNTAX = "Use RE2 syntax: no look-around, no back-references."
_SMALLER = "Use fewer repetitions or fewer character classes: each class such as `\\p{L}` counts 1500."
_AGAIN = "Call again: patterns that were already checked need not be checked again."


class PatternChecker:
    """Checks the patterns of one file in the order in which they are read, up to a total size."""

    def __init__(self, size_max: int = PATTERNS_SIZE_MAX) -> None:
        assert size_max <= PATTERNS_SIZE_MAX, "a caller may allow a file less, not more"
        self._size_max = size_max
        self._results: dict[tuple[str, str], Diagnostic | None] = {}
        self.size = 0
        """The total size of the patterns checked so far, each distinct pattern once. Never more than allowed."""
        self.is_exhausted = False
        """Whether a pattern was not checked because the total size was reached."""

    def check(self, pattern: str, flags: str, at: str) -> list[Diagnostic]:
        """Return why a pattern cannot be used; empty if it can.

        RE2 compiles only patterns that are small enough, alone and together with the others. The first pattern beyond
        the total is reported; later ones are not checked.
        """
        if self.is_exhausted:
            return []
        if (pattern, flags) not in self._results:
            self._results[pattern, flags] = self._check_new(pattern, flags, at)
        found = self._results[pattern, flags]
        return [replace(found, path=at)] if found is not None else []

    def _check_new(self, pattern: str, flags: str, at: str) -> Diagnostic | None:
        if len(pattern) > PATTERN_CHARS_MAX:
            return _bad_pattern(
                at, f"it has {len(pattern)} characters, at most {PATTERN_CHARS_MAX}", "Shorten the pattern."
            )
        left = self._size_max - self.size
        size = pattern_size(pattern, flags) if left > 0 else 1
        if min(size, PATTERN_SIZE_MAX) > left:
            self.is_exhausted = True
            return self._report_limit(at)
        self.size += min(size, PATTERN_SIZE_MAX)
        if size > PATTERN_SIZE_MAX:
            return _bad_pattern(at, f"it compiles to {size} instructions, at most {PATTERN_SIZE_MAX}", _SMALLER)
        found = find_pattern_fault(pattern, flags)
        return _bad_pattern(at, found, _SYNTAX) if found is not None else None

    def _report_limit(self, at: str) -> Diagnostic:
        if self._size_max < PATTERNS_SIZE_MAX:
            return _bad_pattern(at, "the patterns of this call reached the limit of one call", _AGAIN)
        found = f"with it, the patterns of the file have more than {PATTERNS_SIZE_MAX} instructions"
        return _bad_pattern(at, f"{found}; the patterns after it were not checked", _SMALLER)


def _bad_pattern(at: str, found: str, fix: str) -> Diagnostic:
    return fault(at, "bad_pattern", f"The pattern cannot be used: {found}.", fix)
