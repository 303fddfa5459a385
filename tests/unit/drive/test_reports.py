"""What becomes of a report: what a model may send with it, what it is answered, and how a run ends with it."""

import pytest
from tests.support.drive import driving, said

from interlock.drive.models.protocol import InferenceRequest, InferenceResponse
from interlock.testing.harness import Harness, linear_workflow

AB = linear_workflow("test.abc", "a", "b")
pytestmark = pytest.mark.asyncio


async def test_a_run_that_is_complete_with_gaps_is_so_when_it_is_resumed() -> None:
    def repeat(_request: InferenceRequest) -> InferenceResponse:
        return said(("report_step", {"notes": "Did the work with care, found three things to keep, and wrote them."}))

    harness = Harness.in_memory(AB)
    async with driving(harness, repeat) as drive:
        first = await drive.start()
    assert (first.status, first.exit_code) == ("complete_with_gaps", 4)
    async with driving(harness, repeat) as drive:
        again = await drive.resume(first.position.run)
    assert (again.status, again.exit_code) == ("complete_with_gaps", 4)
