"""A step that a person has to confirm says so, and is not passed on an agent's word that nobody recorded."""

import pytest
from tests.e2e.behaviours.conftest import Maker
from tests.support.flow import IS_FAST, Document, document, step
from tests.support.server import blockers_of, step_of

from interlock.testing.harness import filled_call

GATES: dict[str, Document] = {"always": {"requireConfirmation": True}, "where it holds": {"confirmWhen": IS_FAST}}


@pytest.mark.parametrize("gate", GATES)
def test_a_step_that_a_person_confirms_says_so_in_both_channels(make: Maker, gate: str) -> None:
    served = make(document(step("a", **GATES[gate]), step("b")))
    first = served.start("test.flow", context={"mode": "fast"})
    assert first["nextIntent"] == "await_user_confirmation"
    assert first["pending"]["requireConfirmation"] is True
    assert "confirm" in first.text.replace(first["pending"]["prompt"], "").lower()
    assert served.rehydrate(first)["pending"] == first["pending"]


@pytest.mark.parametrize("gate", GATES)
def test_without_a_recorded_confirmation_the_step_is_not_passed_and_the_same_tokens_stand(
    make: Maker, gate: str
) -> None:
    """Nobody can be asked through this client, and no claim came: nothing is recorded."""
    served = make(document(step("a", **GATES[gate]), step("b")))
    first = served.start("test.flow", context={"mode": "fast"})
    recorded = len(served.events(first))
    refused = served.advance(first)
    assert [blocker["code"] for blocker in refused["blockers"]] == ["USER_ONLY_DEPENDENCY"]
    assert (refused["nextIntent"], step_of(refused)) == ("await_user_confirmation", "a")
    assert (refused.ack, refused.state) == (first.ack, first.state)
    assert len(served.events(first)) == recorded
    claim = filled_call(refused["nextCall"])["output"]["artifacts"][0]
    assert claim["kind"] == "wr.confirmation"
    assert step_of(served.report(refused, claim, notes="Done.")) == "b"


def test_what_is_missing_beside_the_confirmation_is_asked_for_first(make: Maker) -> None:
    served = make(document(step("a", requireConfirmation=True), step("b")))
    refused = served.advance(served.start("test.flow"), None)
    assert blockers_of(refused) == [("MISSING_REQUIRED_OUTPUT", "wr.contracts.notes")]
    assert step_of(refused) == "a"


def test_a_step_whose_confirmation_is_not_called_for_needs_none(make: Maker) -> None:
    served = make(document(step("a", confirmWhen=IS_FAST), step("b")))
    first = served.start("test.flow", context={"mode": "slow"})
    assert "requireConfirmation" not in first["pending"]
    assert step_of(served.advance(first)) == "b"
