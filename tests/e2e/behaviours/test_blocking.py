"""A report that does not suffice is refused with what to send."""

import json
from typing import Any

import pytest
from tests.e2e.behaviours.conftest import Maker
from tests.support.server import ABC, Server

from interlock.kernel.budgets import CONTEXT_BYTES_MAX
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
    looked = server.rehydrate(first)
    assert looked.warnings == ["ATTEMPT_LIMIT_REACHED"]
    assert server.follow(looked)["pending"]["stepId"] == "b"


# Over a server in memory.

HOSTILE: dict[str, dict[str, Any]] = {
    "no arguments": {},
    "numbers for texts": {"ackToken": 1, "output": 2, "context": 3, "preferences": 4, "run": 5},
    "a reserved key": {"context": {"__proto__": {"a": 1}}},
    "reserved keys in evidence": {"output": {"artifacts": [{"__proto__": 1, "constructor": {}}]}},
    "too deep": {"context": json.loads('{"a":' * 80 + "1" + "}" * 80)},
    "evidence too deep": {"output": {"artifacts": [json.loads('{"a":' * 80 + "1" + "}" * 80)]}},
    "too large": {"context": {"x": "x" * 300_000}},
    "notes that are none": {"output": {"notesMarkdown": ["n"]}},
    "artifacts that are none": {"output": {"artifacts": {"kind": "k"}}},
    "a null character": {"output": {"notesMarkdown": "\x00"}, "context": {"\x00": "\x00"}},
    "text that is no JSON": {"output": "{", "context": "[[["},
    "an unknown label": {"run": "{{x}}"},
    "an unknown preference": {"preferences": {"autonomy": "yolo"}},
}


@pytest.mark.inv("ANS-9", "CTX-4")
@pytest.mark.parametrize("name", HOSTILE)
def test_nothing_that_an_agent_sends_is_a_fault_of_ours_and_the_run_goes_on(make: Maker, name: str) -> None:
    """Every answer is checked for not being an internal error."""
    served = make(ABC)
    first = served.start()
    sent = HOSTILE[name]
    for arguments in (sent, {"ackToken": first.ack} | sent, {"stateToken": first.state} | sent):
        served.call("continue_workflow", **arguments)
    served.call("start_workflow", **({"workflowId": "test.abc"} | sent))
    assert served.rehydrate(served.rehydrate(first))["run"]["label"] == first["run"]["label"]


@pytest.mark.inv("CTX-4")
def test_context_above_the_limit_is_refused_with_what_was_measured_and_what_is_allowed(make: Maker) -> None:
    served = make(ABC)
    refused = served.advance(served.start(), context={"x": "x" * 300_000})
    assert refused.code is ErrorCode.VALIDATION_ERROR
    assert (refused["details"]["measuredBytes"], refused["details"]["maxBytes"]) == (300_008, CONTEXT_BYTES_MAX)
    assert "300008" in refused.text
