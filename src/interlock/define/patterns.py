"""The patterns of one workflow file: each is judged, and together they cost no more than a file may."""

from dataclasses import replace

from interlock.decide.criteria import find_pattern_fault
from interlock.decide.pattern_size import pattern_size
from interlock.define.diagnostics import Diagnostic, fault
from interlock.kernel.budgets import PATTERN_CHARS_MAX, PATTERN_SIZE_MAX, PATTERNS_SIZE_MAX

_SYNTAX = "Use RE2 syntax: no look-around, no back-references."
_SMALLER = "Repeat less, or name fewer kinds of characters: each class such as `\\p{L}` counts 1500."
_AGAIN = "Call again: what was checked is kept."


class PatternChecker:
    """Judges the patterns of one file as they are met, up to a total size."""

    def __init__(self, size_max: int = PATTERNS_SIZE_MAX) -> None:
        assert size_max <= PATTERNS_SIZE_MAX, "a caller may allow a file less, not more"
        self._size_max = size_max
        self._results: dict[tuple[str, str], Diagnostic | None] = {}
        self.size = 0
        """What the patterns so far come to, each text once. It never exceeds what was allowed."""
        self.is_exhausted = False
        """Whether the file has a pattern that was not judged because the total was reached."""

    def check(self, pattern: str, flags: str, at: str) -> list[Diagnostic]:
        """Return why a pattern cannot be used. The engine sees none that is too large by itself or with the others.

        The first pattern beyond the total is reported; no later one is looked at.
        """
        if self.is_exhausted:
            return []
        if (pattern, flags) not in self._results:
            self._results[pattern, flags] = self._check_new(pattern, flags, at)
        found = self._results[pattern, flags]
        return [replace(found, path=at)] if found is not None else []

    def _check_new(self, pattern: str, flags: str, at: str) -> Diagnostic | None:
        if len(pattern) > PATTERN_CHARS_MAX:
            return _bad_pattern(at, f"it has {len(pattern)} characters, at most {PATTERN_CHARS_MAX}", "Shorten it.")
        left = self._size_max - self.size
        size = pattern_size(pattern, flags) if left > 0 else 1
        if min(size, PATTERN_SIZE_MAX) > left:
            self.is_exhausted = True
            return self._report_limit(at)
        self.size += min(size, PATTERN_SIZE_MAX)
        if size > PATTERN_SIZE_MAX:
            return _bad_pattern(at, f"it unfolds to {size} instructions, at most {PATTERN_SIZE_MAX}", _SMALLER)
        found = find_pattern_fault(pattern, flags)
        return _bad_pattern(at, found, _SYNTAX) if found is not None else None

    def _report_limit(self, at: str) -> Diagnostic:
        if self._size_max < PATTERNS_SIZE_MAX:
            return _bad_pattern(at, "one call checks only so many, and the files before this one have many", _AGAIN)
        found = f"with it, those of the file unfold to more than {PATTERNS_SIZE_MAX} instructions"
        return _bad_pattern(at, f"{found}; those after it are not checked", _SMALLER)


def _bad_pattern(at: str, found: str, fix: str) -> Diagnostic:
    return fault(at, "bad_pattern", f"The pattern cannot be used: {found}.", fix)
