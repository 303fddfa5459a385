"""Which form a document is written in, and its parsing: untrusted to typed, every fault reported."""

from dataclasses import dataclass, replace

from interlock.define.diagnostics import Diagnostics, fault, has_errors
from interlock.define.dialects import Dialect, with_dialect_said
from interlock.define.document import WorkflowDocument
from interlock.define.patterns import Patterns
from interlock.kernel.budgets import STEPS_MAX
from interlock.kernel.canonical import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Faulty:
    """A document with faults. `rest` is what is left of it without them: it is judged further, never run."""

    diagnostics: Diagnostics
    rest: WorkflowDocument | None


def dialect_of(value: dict[str, Json]) -> Dialect:
    """Return the form of a document: files of the WorkRail dialect say their `version`, native ones never do."""
    return "workrail" if "version" in value else "native"


def parse_document(value: dict[str, Json], patterns: Patterns | None = None) -> WorkflowDocument | Faulty:
    """Return the document that a value holds, or what keeps it from being one; `patterns` judges those in it."""
    patterns = patterns or Patterns()
    steps = value.get("steps")
    if isinstance(steps, list) and len(steps) > STEPS_MAX:
        # So many are not looked at one by one: each may have faults of its own.
        message = f"Found {len(steps)} steps, at most {STEPS_MAX}."
        return Faulty(diagnostics=(fault("steps", "too_many", message, "Use fewer steps, or a loop."),), rest=None)
    # Each form's models take a tenth of a second to build; a server builds those of the forms it meets.
    dialect = dialect_of(value)
    if dialect == "workrail":
        from interlock.define.workrail.document import parse_workrail  # noqa: PLC0415 — see above

        document, diagnostics = parse_workrail(value, patterns)
    else:
        from interlock.define.native.lowering import parse_native  # noqa: PLC0415 — see above

        document, diagnostics = parse_native(value, patterns)
    if document is not None and not has_errors(diagnostics):
        return replace(document, oddities=diagnostics) if diagnostics else document
    return Faulty(diagnostics=with_dialect_said(diagnostics, dialect), rest=document)


def parse_workflow(value: dict[str, Json]) -> WorkflowDocument | Diagnostics:
    """Return the document that a value holds, or every fault of its form."""
    parsed = parse_document(value)
    return parsed.diagnostics if isinstance(parsed, Faulty) else parsed
