"""Whatever a usual run records is encoded in one pass: a time of day or a digest is not taken for a float."""

import pytest

from interlock.kernel.shape.plain import encode_plain
from interlock.testing.harness import Harness, linear_workflow


@pytest.mark.inv("EVT-1", "ID-3")
def test_each_event_of_a_usual_run_is_written_in_one_pass() -> None:
    harness = Harness.in_memory(linear_workflow("team.plain", "first", "second"))
    answer = harness.start("team.plain", goal="Repair it")
    session = harness.session_of(answer)
    for part in ("first", "second"):
        answer = harness.advance(answer, f"Repaired the {part} part at 10:30.5, which took 5e3 ms.")
    events = harness.events(session)
    assert {event.kind for event in events} >= {"advance_recorded", "node_created", "node_output_appended"}
    # A context may hold any JSON, so its values are looked at one by one.
    assert {event.kind for event in events if encode_plain(event) is None} == {"context_set"}
