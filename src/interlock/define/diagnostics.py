"""Diagnostics of a workflow document: each says where the fault is, what was found, and how to fix it."""

from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias

from interlock.kernel.budgets import (
    PATH_BYTES_MAX,
    WORDS_BYTES_MAX,
)
from interlock.kernel.budgets.workflow import (
    DIAGNOSTICS_FOUND_MAX,
    GUESS_CANDIDATES_MAX,
    GUESS_PREFIX_CHARS_MIN,
    GUESSED_NAME_CHARS_MAX,
)
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import frozen, replace
from interlock.kernel.text import one_line

DiagnosticCode = Literal[
    "too_large",
    "not_utf8",
    "not_json",
    "not_yaml",
    "duplicate_key",
    "too_deep",
    "not_an_object",
    "number_not_exact",
    "unknown_version",
    "unknown_key",
    "missing_key",
    "wrong_type",
    "wrong_value",
    "empty",
    "too_long",
    "too_many",
    "bad_id",
    "duplicate_id",
    "reserved_namespace",
    "id_taken",
    "prompt_missing",
    "prompt_twice",
    "legacy_id",
    "bad_pattern",
    "duplicate_consequence",
    "loop_condition_missing",
    "loop_decision_missing",
    "unknown_step",
    "unknown_condition",
    "unknown_template",
    "unknown_feature",
    "unknown_reference",
    "unknown_slot",
    "unknown_assessment",
    "unknown_level",
    "unknown_function",
    "unknown_contract_ref",
    "unknown_capability",
    "undeclared_key",
    "constant_comparison",
    "duplicate_write",
    "same_pass_read_after_write",
    "missing_argument",
    "template_recursion",
    "duplicate_node_id",
    "duplicate_edge_id",
    "dangling_edge",
    "unreachable_terminal",
    "no_terminal_node",
    "missing_evidence_schema",
    "missing_input_schema",
    "missing_condition",
    "self_loop",
    "invalid_identifier",
    "unfit_node",
    "no_default_branch",
    "unreachable_node",
    "missing_entry",
    "unbounded_loop",
    "automatic_cycle",
    "isolated_node",
    "unassessed_outcome",
    "gameable_validation",
    "unknown_definition",
    "unknown_outcome",
    "assessment_terminal",
    "invalid_port_mapping",
    "circular_contract",
    "version_taken",
    "predicate_not_read",
]
"""A closed set: first codes of form, then codes of unknown names, then codes of plans that cannot run."""
Severity = Literal["error", "warning"]


@frozen
class Replacement:
    """What corrects a fault: `write` instead of `found`, in the key at its path if it `is_key`, else in the value.

    `found` and `write` are strings, or numbers as their digits. Without `write`, the member at the path is removed.
    """

    found: str
    write: str | None
    is_key: bool = False


@frozen
class Diagnostic:
    """One fault: its path in the document (`steps[2].id`), what was found, and what to write instead.

    `line` and `column`, counted from 1, are set if the document came from a file. `replacement` is the fix as an edit
    that a program can make, where one is certain enough to be suggested.
    """

    path: str
    code: DiagnosticCode
    message: str
    fix: str
    severity: Severity = "error"
    line: int | None = None
    column: int | None = None
    replacement: Replacement | None = None

    def to_json(self) -> dict[str, Json]:
        """Return the diagnostic as it is part of an answer."""
        value: dict[str, Json] = {
            "path": self.path,
            "code": self.code,
            "severity": self.severity,
            "message": self.message,
            "fix": self.fix,
        }
        return value | ({} if self.line is None else {"line": self.line, "column": self.column})

    def render_line(self) -> str:
        """Render the diagnostic in one line."""
        place = f"line {self.line}, column {self.column}, " if self.line is not None else ""
        return f"{place}{self.path or '(document)'}: {self.message} {self.fix}"


Diagnostics: TypeAlias = tuple[Diagnostic, ...]


def fault(
    path: str, code: DiagnosticCode, message: str, fix: str, replacement: Replacement | None = None
) -> Diagnostic:
    """Build an error: a document with errors cannot run."""
    return Diagnostic(
        path=one_line(path, PATH_BYTES_MAX),
        code=code,
        message=one_line(message, WORDS_BYTES_MAX),
        fix=one_line(fix, WORDS_BYTES_MAX),
        replacement=replacement,
    )


def warning(
    path: str, code: DiagnosticCode, message: str, fix: str, replacement: Replacement | None = None
) -> Diagnostic:
    """Build a warning: a document with warnings can run."""
    return replace(fault(path, code, message, fix, replacement), severity="warning")


def guessed_fix(name: str, known: Iterable[str], otherwise: str, *, before: str = "") -> tuple[str, Replacement | None]:
    """Return the fix of an unknown name: the most similar known one, also as an edit; else the other words.

    `before` is what precedes both names at their place.
    """
    guess = suggest_name(name, known)
    if guess is None:
        return otherwise, None
    return f"Did you mean `{before}{guess}`?", Replacement(found=f"{before}{name}", write=f"{before}{guess}")


def limited(found: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """Yield one error and one warning more than a list of them shows, at most: `shortened` sees that there are more."""
    counts = {"error": 0, "warning": 0}
    for one in found:
        counts[one.severity] += 1
        if counts[one.severity] <= DIAGNOSTICS_FOUND_MAX + 1:
            yield one
        if counts["error"] > DIAGNOSTICS_FOUND_MAX:
            return


def shortened(found: Diagnostics) -> Diagnostics:
    """Return the diagnostics of one file; of too many, the first errors, and a last one that says so."""
    if len(found) <= DIAGNOSTICS_FOUND_MAX:
        return found
    ordered = sorted(found, key=lambda one: one.severity)
    first, left = ordered[:DIAGNOSTICS_FOUND_MAX], ordered[DIAGNOSTICS_FOUND_MAX:]
    words = f"Only the first {DIAGNOSTICS_FOUND_MAX} faults and warnings are listed; there are more."
    report = fault if has_errors(left) else warning
    return (*first, report("", "too_many", words, "Correct these first, then check the file again."))


def has_errors(diagnostics: Iterable[Diagnostic]) -> bool:
    """Return whether any of the diagnostics is an error."""
    return any(diagnostic.severity == "error" for diagnostic in diagnostics)


def is_spelling_of(name: str, known: str) -> bool:
    """Say whether a name is so similar to a known one that it is the same word with another spelling."""
    from difflib import get_close_matches  # noqa: PLC0415 — only a mistake pays for it

    return bool(get_close_matches(name[:GUESSED_NAME_CHARS_MAX], (known,), n=1, cutoff=0.8))


def suggest_name(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most similar to an unknown one, or None if no name is similar."""
    if len(name) > GUESSED_NAME_CHARS_MAX:
        return None
    from difflib import get_close_matches  # noqa: PLC0415 — only a mistake pays for it

    candidates = sorted(known, key=lambda one: (one[:1] != name[:1], abs(len(one) - len(name)), one))
    candidates = candidates[:GUESS_CANDIDATES_MAX]
    matches = get_close_matches(name, candidates, n=1, cutoff=0.6)
    if matches:
        return matches[0]
    # People write the beginning of a name, such as `notes` for `notesMarkdown`. It is too short for a close match.
    longer = [
        candidate for candidate in candidates if len(name) >= GUESS_PREFIX_CHARS_MIN and candidate.startswith(name)
    ]
    return longer[0] if len(longer) == 1 else None
