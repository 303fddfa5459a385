"""Detects the dialect of a workflow document and parses it. Every fault is reported, not only the first."""

from interlock.define.diagnostics import Diagnostics, fault, has_errors
from interlock.define.dialects import Dialect, explain_dialect
from interlock.define.document import WorkflowDocument
from interlock.define.patterns import PatternChecker
from interlock.kernel.budgets.workflow import (
    STEPS_MAX,
)
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import frozen, replace


@frozen
class FaultyDocument:
    """A document with faults. `recovered` is the document without the faulty parts: it is checked, but never run."""

    diagnostics: Diagnostics
    recovered: WorkflowDocument | None


def detect_dialect(value: dict[str, Json]) -> Dialect:
    """Return the dialect of a document. WorkRail files have the key `version`; native files never have it."""
    return "workrail" if "version" in value else "native"


def parse_document(value: dict[str, Json], patterns: PatternChecker | None = None) -> WorkflowDocument | FaultyDocument:
    """Parse a document. `patterns` checks its patterns and limits their total size."""
    patterns = patterns or PatternChecker()
    steps = value.get("steps")
    if isinstance(steps, list) and len(steps) > STEPS_MAX:
        # The steps are not checked one by one: each may have faults, and so many would take too long.
        message = f"The workflow has {len(steps)} steps; the limit is {STEPS_MAX}."
        return FaultyDocument(
            diagnostics=(fault("steps", "too_many", message, "Combine steps, or repeat them with a loop."),),
            recovered=None,
        )
    # The models of WorkRail files take a tenth of a second to build, so only the dialects in use are imported.
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
    """Parse a document, or return every fault of its form."""
    parsed = parse_document(value)
    return parsed.diagnostics if isinstance(parsed, FaultyDocument) else parsed
