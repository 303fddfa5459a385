"""One table from reason to blocker (locks 3): what was found, and what to send instead."""

from interlock.kernel.budgets import BLOCKER_FIX_BYTES_MAX, BLOCKER_MESSAGE_BYTES_MAX
from interlock.kernel.text import truncated
from interlock.record.outcome import Blocker, OutputContractPointer


def missing_notes(step_title: str, contract_ref: str) -> Blocker:
    """`contract_violation:missing_required_output` for a step whose evidence is its notes (D20)."""
    return Blocker(
        code="MISSING_REQUIRED_OUTPUT",
        pointer=OutputContractPointer(kind="output_contract", contract_ref=contract_ref),
        message=truncated(
            f"The step {step_title!r} needs notes, and none came: `output.notesMarkdown` was absent or empty.",
            BLOCKER_MESSAGE_BYTES_MAX,
        ),
        suggested_fix=truncated(
            "Do the step, then send the call of `nextCall` with `output.notesMarkdown` filled in: what you did and"
            " decided, what you produced (files, numbers), anything notable. 10 to 30 lines, this step only."
            " Use the tokens of this answer, not the earlier ones.",
            BLOCKER_FIX_BYTES_MAX,
        ),
    )
