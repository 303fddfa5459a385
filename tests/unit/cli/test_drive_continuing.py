"""How a drive that stopped is continued, line by line."""

import argparse
from typing import Any

import pytest

from interlock.cli.drive.continuing import lines_to_continue
from interlock.drive.client import Position, Tokens
from interlock.drive.faults import Fault
from interlock.drive.models.protocol import Usage
from interlock.drive.run.result import DriveResult
from interlock.kernel.frozen import replace

pytestmark = pytest.mark.inv("DRIVE-18")
POSITION = Position(
    session="sess_x",
    run="run_x",
    label="ab12",
    workflow_id="test.abc",
    tokens=Tokens(state="st_x", ack="ack_x"),
    step=None,
    is_complete=False,
)
PLAIN = "interlock drive --resume run_x --agent 'my agent.yaml'"


def lines(details: dict[str, Any], position: Position = POSITION, **stated: Any) -> list[str]:
    """Return the lines after a drive that stopped with these details."""
    options = argparse.Namespace(agent="my agent.yaml", model=None, max_turns=None, ask=False)
    for name, value in stated.items():
        setattr(options, name, value)
    fault = Fault(code="ESCALATION_REQUIRED", message="It stopped.", details=details)
    result = DriveResult(status="person_needed", position=position, turns=4, usage=Usage(), fault=fault)
    return lines_to_continue(options, result)


def test_used_up_turns_are_raised_and_a_stated_limit_is_kept() -> None:
    used_up = {"limit": "constraints.max_turns", "used": 4, "allowed": 3}
    assert lines(used_up, max_turns=3) == [f"To continue: {PLAIN} --max-turns 7"]
    assert lines({"limit": "turn_chain"}, max_turns=9) == [f"To continue: {PLAIN} --max-turns 9"]
    assert lines({}, ask=True) == [f"To continue: {PLAIN} --ask"]


def test_lost_calls_have_a_command_for_each_thing_that_a_person_can_say() -> None:
    assert lines({"calls": ["call_1"]}) == [
        f"To continue if the call took place: {PLAIN} --lost-calls happened",
        f"To continue if it did not take place: {PLAIN} --lost-calls not-happened",
    ]


@pytest.mark.parametrize("limit", ["constraints.max_tokens", "budget.max_cost"])
def test_a_limit_that_only_the_profile_raises_is_named(limit: str) -> None:
    assert lines({"limit": limit}) == [f"Raise `{limit}` in my agent.yaml. To continue after that: {PLAIN}"]


def test_a_step_without_room_for_turns_is_reported_in_a_client() -> None:
    first, second = lines({"limit": "checkpoints"})
    assert first == "No `--resume` continues this step. Report it in a client, which finds the run by `resume_session`."
    assert second == f"To continue after that: {PLAIN}"


def test_a_run_that_is_over_has_no_line() -> None:
    assert lines({}, replace(POSITION, is_complete=True)) == []
