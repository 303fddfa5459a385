"""A report that does not suffice is refused with what to send, at a real server process."""

import pytest
from tests.support_server import Server

from interlock.kernel.errors import ErrorCode


@pytest.mark.inv("BLK-1", "BLK-3")
def test_without_notes_the_answer_is_blocked_and_the_step_stays(server: Server) -> None:
    first = server.start()
    blocked = server.advance(first, None)
    assert (blocked["kind"], blocked["retryable"], blocked.is_error) == ("blocked", True, False)
    assert [blocker["code"] for blocker in blocked["blockers"]] == ["MISSING_REQUIRED_OUTPUT"]
    assert blocked["pending"] == first["pending"]
    assert blocked.ack != first.ack
    assert server.advance(first, None) == blocked


@pytest.mark.inv("BLK-3", "ADV-5")
def test_the_tokens_of_a_blocked_answer_go_on_and_their_repeat_replays(server: Server) -> None:
    blocked = server.advance(server.start(), None)
    second = server.follow(blocked, "Now with notes.")
    assert second["pending"]["stepId"] == "b"
    assert server.follow(blocked, "Now with notes.") == second


@pytest.mark.inv("ADV-7", "BLK-3")
def test_the_spent_token_with_corrected_notes_is_not_silently_replayed(server: Server) -> None:
    first = server.start()
    server.advance(first, None)
    again = server.advance(first, "Now with notes.")
    assert (again["kind"], again.warnings) == ("blocked", ["REPLAY_PAYLOAD_IGNORED"])
    assert server.follow(again, "Now with notes.")["pending"]["stepId"] == "b"


@pytest.mark.inv("BLK-1")
def test_a_step_with_optional_notes_advances_without(server: Server) -> None:
    second = server.follow(server.start("test.optional"))
    assert "optional" in second.text
    assert server.advance(second, None)["pending"]["stepId"] == "c"


@pytest.mark.inv("BLK-4", "BLK-5")
def test_the_tenth_refusal_says_how_to_recover_and_the_run_can_still_be_looked_at(server: Server) -> None:
    first = answer = server.start()
    for _ in range(9):
        answer = server.advance(answer, None)
        assert answer["kind"] == "blocked"
    refused = server.advance(answer, None)
    assert refused.code is ErrorCode.ATTEMPT_LIMIT_REACHED
    assert refused["details"]["fork"]["ackToken"] in refused.text
    looked = server.look(first)
    assert looked.warnings == ["ATTEMPT_LIMIT_REACHED"]
    assert server.follow(looked)["pending"]["stepId"] == "b"
