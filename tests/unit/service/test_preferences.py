"""Preferences: chosen at the start, changed with an ack, and in force from the node that the change made."""

from dataclasses import replace

import pytest

from interlock.kernel.errors import ErrorCode
from interlock.record.base import Preferences
from interlock.record.events import PreferencesChangedEvent
from interlock.testing.harness import Harness


@pytest.mark.inv("CTX-7")
def test_a_start_takes_preferences_and_leaves_the_rest_at_the_baseline(harness: Harness) -> None:
    first = harness.start("test.abc", preferences={"autonomy": "full_auto_stop_on_user_deps"})
    expected = {"autonomy": "full_auto_stop_on_user_deps", "riskPolicy": "conservative"}
    assert first["preferences"] == expected
    assert harness.rehydrate(first)["preferences"] == expected
    assert "full_auto_stop_on_user_deps" in first.text


FULL_AUTO = {"autonomy": "full_auto_stop_on_user_deps", "riskPolicy": "balanced"}


def with_baseline(harness: Harness) -> Harness:
    baseline = Preferences(autonomy="full_auto_stop_on_user_deps", risk_policy="balanced")
    return replace(harness, ports=replace(harness.ports, baseline=baseline))


@pytest.mark.inv("CTX-7")
def test_a_new_session_begins_with_the_configured_baseline(harness: Harness) -> None:
    assert with_baseline(harness).start("test.abc")["preferences"] == FULL_AUTO


@pytest.mark.inv("CTX-7")
def test_a_start_that_sends_one_preference_keeps_the_other_of_the_configured_baseline(harness: Harness) -> None:
    first = with_baseline(harness).start("test.abc", preferences={"autonomy": "full_auto_never_stop"})
    assert first["preferences"] == {"autonomy": "full_auto_never_stop", "riskPolicy": "balanced"}


@pytest.mark.inv("CTX-7", "ADV-2")
def test_a_run_that_joins_begins_with_what_the_sessions_first_run_began_with(harness: Harness) -> None:
    first = harness.start("test.abc", preferences={"riskPolicy": "aggressive"})
    session = harness.session_of(first)
    harness.advance(first, preferences={"autonomy": "full_auto_never_stop"})
    configured = with_baseline(harness)
    second = configured.start("test.one", sessionId=session, preferences={"autonomy": "full_auto_stop_on_user_deps"})
    assert second["preferences"] == {"autonomy": "full_auto_stop_on_user_deps", "riskPolicy": "aggressive"}
    third = configured.start("test.one", sessionId=session)
    assert third["preferences"] == {"autonomy": "guided", "riskPolicy": "aggressive"}


@pytest.mark.inv("CTX-7")
def test_a_new_baseline_changes_no_run_that_has_begun(harness: Harness) -> None:
    first = harness.start("test.abc")
    configured = with_baseline(harness)
    second = configured.advance(first)
    assert "preferences" not in second.structure
    assert configured.rehydrate(second)["preferences"] == {"autonomy": "guided", "riskPolicy": "conservative"}


@pytest.mark.inv("CTX-7")
def test_a_change_belongs_to_the_next_node_and_is_reported_once(harness: Harness) -> None:
    first = harness.start("test.abc")
    second = harness.advance(first, preferences={"riskPolicy": "aggressive"})
    expected = {"autonomy": "guided", "riskPolicy": "aggressive"}
    assert second["preferences"] == expected
    assert harness.rehydrate(first)["preferences"]["riskPolicy"] == "conservative"
    third = harness.advance(second)
    assert "preferences" not in third.structure
    assert "Preferences" not in third.text
    assert harness.rehydrate(third)["preferences"] == expected


def test_sending_what_holds_already_changes_nothing_that_is_shown(harness: Harness) -> None:
    second = harness.advance(harness.start("test.abc"), preferences={"autonomy": "guided"})
    assert "preferences" not in second.structure


@pytest.mark.inv("CTX-7")
def test_a_change_of_one_branch_does_not_hold_on_another(harness: Harness) -> None:
    first = harness.start("test.abc")
    harness.advance(first, preferences={"riskPolicy": "aggressive"})
    forked = harness.advance(harness.rehydrate(first)["fork"]["ackToken"])
    assert harness.rehydrate(forked)["preferences"]["riskPolicy"] == "conservative"


@pytest.mark.inv("BLK-2", "CTX-7")
def test_a_change_that_came_with_a_refused_attempt_holds_on_its_chain(harness: Harness) -> None:
    blocked = harness.advance(harness.start("test.abc"), None, preferences={"riskPolicy": "balanced"})
    assert blocked["preferences"]["riskPolicy"] == "balanced"
    second = harness.advance(blocked)
    assert "preferences" not in second.structure
    assert harness.rehydrate(second)["preferences"]["riskPolicy"] == "balanced"


@pytest.mark.inv("CTX-7", "ADV-8")
def test_looking_at_a_step_shows_the_preferences_that_hold_where_its_tokens_stand(harness: Harness) -> None:
    """The tokens shown are those of the last refused attempt, so an ack with them goes by its preferences."""
    first = harness.start("test.abc")
    blocked = harness.advance(first, None, preferences={"autonomy": "full_auto_never_stop"})
    looked = harness.rehydrate(first)
    assert looked.ack == blocked.ack
    assert looked["preferences"] == harness.rehydrate(blocked)["preferences"]


@pytest.mark.inv("CTX-8")
@pytest.mark.parametrize(
    "preferences",
    [
        {"autonomy": "yolo"},
        {"riskPolicy": "Balanced"},
        {"autonomy": 1},
        {"risk_policy": "balanced"},
        ["guided"],
        "guided",
    ],
)
def test_a_preference_outside_the_closed_sets_is_refused(harness: Harness, preferences: object) -> None:
    first = harness.start("test.abc")
    for refused in (
        harness.start("test.abc", preferences=preferences),
        harness.advance(first, preferences=preferences),
    ):
        assert refused.code is ErrorCode.VALIDATION_ERROR
        assert refused["details"]["path"].startswith("preferences")
    assert len(harness.events(harness.session_of(first))) == 4


@pytest.mark.inv("CTX-8")
def test_a_change_record_holds_the_delta_and_the_whole(harness: Harness) -> None:
    first = harness.start("test.abc")
    harness.advance(first, preferences={"riskPolicy": "balanced", "autonomy": None})
    changed = [one for one in harness.events(harness.session_of(first)) if isinstance(one, PreferencesChangedEvent)]
    assert [[change.key for change in one.data.delta] for one in changed] == [
        ["autonomy", "riskPolicy"],
        ["riskPolicy"],
    ]
    assert [one.data.source for one in changed] == ["system", "user"]
    assert changed[1].data.effective.to_json() == {"autonomy": "guided", "riskPolicy": "balanced"}
