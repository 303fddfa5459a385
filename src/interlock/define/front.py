"""Which form a document is written in, and its parsing: untrusted to typed, every fault reported."""

from dataclasses import dataclass, replace

from interlock.define.diagnostics import Diagnostics, fault, has_errors
from interlock.define.dialects import Dialect, explain_dialect
from interlock.define.document import WorkflowDocument
from interlock.define.patterns import PatternChecker
from interlock.kernel.budgets import STEPS_MAX
from interlock.kernel.canonical import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultyDocument:
    """A document with faults. `rest` is what is left of it without them: it is judged further, never run."""

    diagnostics: Diagnostics
    recovered: WorkflowDocument | None


def detect_dialect(value: dict[str, Json]) -> Dialect:
    """Return the form of a document: files of the WorkRail dialect say their `version`, native ones never do."""
    return "workrail" if "version" in value else "native"


def parse_document(value: dict[str, Json], patterns: PatternChecker | None = None) -> WorkflowDocument | FaultyDocument:
    """Return the document that a value holds, or what keeps it from being one; `patterns` judges those in it."""
    patterns = patterns or PatternChecker()
    steps = value.get("steps")
    if isinstance(steps, list) and len(steps) > STEPS_MAX:
        # So many are not looked at one by one: each may have faults of its own.
        message = f"Found {len(steps)} steps, at most {STEPS_MAX}."
        return FaultyDocument(
            diagnostics=(fault("steps", "too_many", message, "Use fewer steps, or a loop."),), recovered=None
        )
    # Each form's models take a tenth of a second to build; a server builds those of the forms it meets.
    dialect = detect_dialect(value)
    if dialect == "workrail":
        from interlock.define.workrail.document import parse_workrail  # noqa: PLC0415 — see above

        document, diagnostics = parse_workrail(value, patterns)
    else:
        from interlock.define.native.lowering import parse_native  # noqa: PLC0415 — see above

        document, diagnostics = parse_native(value, patterns)
    if document is not None and not has_errors(diagnostics):
        return replace(document, warnings=diagnostics) if diagnostics else document
    return FaultyDocument(diagnostics=explain_dialect(diagnostics, dialect), recovered=document)


def parse_workflow(value: dict[str, Json]) -> WorkflowDocument | Diagnostics:
    """Return the document that a value holds, or every fault of its form."""
    parsed = parse_document(value)
    return parsed.diagnostics if isinstance(parsed, FaultyDocument) else parsed
