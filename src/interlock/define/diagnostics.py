"""What is wrong with a workflow document: every fault at once, each with its place and its fix."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Literal, TypeAlias

from interlock.kernel.budgets import PATH_BYTES_MAX, WORDS_BYTES_MAX
from interlock.kernel.canonical import Json
from interlock.kernel.text import one_line

_NAME_CHARS_MAX = 200
"""Longer than any name that could be meant; comparing would take long."""
_CANDIDATES_MAX = 100
"""Names that one is compared with: those of its first letter and its length first."""
_PREFIX_CHARS_MIN = 3

DiagnosticCode = Literal[
    "too_large",
    "not_utf8",
    "not_json",
    "not_yaml",
    "duplicate_key",
    "too_deep",
    "not_an_object",
    "number_not_exact",
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
]
"""Closed. Codes of form come first, then what a name may refer to, then what makes a plan unfit to run."""
Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """One fault: where in the document (`steps[2].id`), what was found, and what to write instead.

    `line` and `column`, counted from 1, are known where the document came from a file.
    """

    path: str
    code: DiagnosticCode
    message: str
    fix: str
    severity: Severity = "error"
    line: int | None = None
    column: int | None = None

    def to_json(self) -> dict[str, Json]:
        """Return the diagnostic as answers carry it."""
        told: dict[str, Json] = {
            "path": self.path,
            "code": self.code,
            "severity": self.severity,
            "message": self.message,
            "fix": self.fix,
        }
        return told | ({} if self.line is None else {"line": self.line, "column": self.column})

    def render_line(self) -> str:
        """Return the diagnostic as one line."""
        place = f"line {self.line}, column {self.column}, " if self.line is not None else ""
        return f"{place}{self.path or '(document)'}: {self.message} {self.fix}"


Diagnostics: TypeAlias = tuple[Diagnostic, ...]


def fault(path: str, code: DiagnosticCode, message: str, fix: str) -> Diagnostic:
    """Return a diagnostic that keeps a document from running."""
    return Diagnostic(
        path=one_line(path, PATH_BYTES_MAX),
        code=code,
        message=one_line(message, WORDS_BYTES_MAX),
        fix=one_line(fix, WORDS_BYTES_MAX),
    )


def warning(path: str, code: DiagnosticCode, message: str, fix: str) -> Diagnostic:
    """Return a diagnostic that keeps nothing from running."""
    return replace(fault(path, code, message, fix), severity="warning")


def has_errors(diagnostics: Iterable[Diagnostic]) -> bool:
    """Say whether any of them keeps the document from running."""
    return any(diagnostic.severity == "error" for diagnostic in diagnostics)


def suggest_name(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that a mistaken one most resembles, if any does."""
    if len(name) > _NAME_CHARS_MAX:
        return None
    candidates = sorted(known, key=lambda one: (one[:1] != name[:1], abs(len(one) - len(name)), one))
    candidates = candidates[:_CANDIDATES_MAX]
    matches = get_close_matches(name, candidates, n=1, cutoff=0.6)
    if matches:
        return matches[0]
    # A short form is no close match, but it is what people write: `notes` for `notesMarkdown`.
    begun = [candidate for candidate in candidates if len(name) >= _PREFIX_CHARS_MIN and candidate.startswith(name)]
    return begun[0] if len(begun) == 1 else None
