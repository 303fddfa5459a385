"""What reports say of the events that steps took, each with how well it is known, and of what was sent."""

from pathlib import Path

import pytest
from tests.support.flow import Document, document, step
from tests.support.history import Place, label_of
from tests.support.outside import AWAIT, STATUS, into_file, sender_of, sending, sent

from interlock.kernel.ids import IntentId

NOTIFY: Document = {"kind": "team.notify", "fields": {"text": {"value": "Built"}}}
SENDS_AND_WAITS = document({**step("a"), "emit": [NOTIFY]}, AWAIT, step("b"), inputs=[STATUS])


@pytest.mark.inv("WORLD-2", "EVD-1")
@pytest.mark.parametrize("assurance", ["claimed", "observed"])
def test_every_view_of_a_step_shows_its_event_with_how_well_it_is_known_and_what_it_sent(
    place: Place, tmp_path: Path, assurance: str
) -> None:
    channel = into_file(tmp_path / "out")
    harness = sending(place.serving(SENDS_AND_WAITS), channel)
    first = harness.start("test.flow", goal="Ship")
    waiting = harness.advance(first, "Built it.")
    sent(harness, first, assurance=assurance)  # pyright: ignore[reportArgumentType] — one of the levels
    harness.advance(waiting, None)
    run = label_of(first)
    received = f"received the event ci.finished ({assurance}, via command)"
    for shown in (place.run("show", run), place.run("show", run, "--evidence"), place.run("report", run)):
        plain = shown.out.replace("`", "")
        assert received in plain
        assert "intent team.notify: not sent yet" in plain

    step_json = place.run("show", run, "--json").json()["runs"][0]["steps"]
    assert [(step["stepId"], one["state"]) for step in step_json for one in step["sent"]] == [("a", None)]
    taken = [(step["stepId"], one["assurance"]) for step in step_json for one in step["received"]]
    assert taken == [("ci", assurance)]

    [intent] = [IntentId(one["intentId"]) for step in step_json for one in step["sent"]]
    sender_of(harness, channel).send(harness.session_of(first), intent, 0)
    assert "intent `team.notify`: delivered through the channel `log`" in place.run("report", run).out
