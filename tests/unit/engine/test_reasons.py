"""The blocker of missing notes fits every budget and says what to send."""

import pytest

from interlock.engine.reasons import missing_notes
from interlock.kernel.budgets import BLOCKER_FIX_BYTES_MAX, BLOCKER_MESSAGE_BYTES_MAX
from interlock.plan.compiled import NOTES_CONTRACT
from interlock.record.outcome import report


@pytest.mark.inv("BLK-6")
@pytest.mark.parametrize("title", ["Look", "é" * 200, "\N{GRINNING FACE}" * 200, "'\"`\n" * 50])
def test_the_blocker_of_missing_notes_keeps_to_its_budgets_whatever_the_title(title: str) -> None:
    blocker = missing_notes(title, NOTES_CONTRACT)
    assert report([blocker]).blockers == (blocker,)
    assert len(blocker.message.encode()) <= BLOCKER_MESSAGE_BYTES_MAX
    assert len((blocker.suggested_fix or "").encode()) <= BLOCKER_FIX_BYTES_MAX
    assert blocker.code == "MISSING_REQUIRED_OUTPUT"
    assert blocker.pointer.to_json() == {"kind": "output_contract", "contractRef": NOTES_CONTRACT}
    assert "notesMarkdown" in (blocker.suggested_fix or "")
