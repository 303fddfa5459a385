"""What views say of runs that wait and send: lifecycle, conformance, resume, list."""

import pytest
from tests.support.lifecycle import hold_lifecycle
from tests.support.modes import session_of
from tests.support.outside import WAITING, sent

from interlock.kernel.ids import RunId
from interlock.testing.harness import Harness


@pytest.mark.inv("WORLD-1", "LIFE-5")
def test_the_lifecycle_of_a_run_that_waits_holds_before_and_after_its_event() -> None:
    harness = Harness.in_memory(WAITING)
    first = harness.start("test.flow", goal="Ship")
    waiting = harness.advance(first)

    def hold() -> None:
        session = session_of(harness, first)
        hold_lifecycle(harness.store, session, RunId(first["run"]["runId"]))

    hold()
    sent(harness, first)
    hold()
    third = harness.advance(waiting, None)
    harness.advance(third, "Finished the rest.")
    hold()
