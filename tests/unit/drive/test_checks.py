"""A step that a check decides: while it runs the driver waits, and after a failure the model corrects the cause."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.checks import NEEDED, checking, held, losing, running_at_once, shell
from tests.support.drive import calls, driving, each, profile, report, tool

from interlock.testing.harness import Harness

pytestmark = [pytest.mark.asyncio, pytest.mark.inv("DRIVE-16")]
NAME = "test.flow"
SCRIPT = "echo the test of the parser is red; test -e passes"


def failing(tmp_path: Path, script: str = SCRIPT) -> Harness:
    harness = checking(tmp_path, NEEDED, check=shell(tmp_path / "project", script))
    return running_at_once(harness)


async def test_after_a_check_failed_the_model_reads_its_output_and_its_report_runs_the_check_again(
    tmp_path: Path,
) -> None:
    harness = failing(tmp_path)

    async def repair(_arguments: Any, _context: Any) -> object:
        (tmp_path / "project" / "passes").touch()
        return {}

    answers = each(report, calls(("repair", {})))
    async with driving(harness, answers, functions={"repair": tool(repair)}) as drive:
        result = await drive.start(NAME)
        steps = [request.place.step_id for request in drive.model.requests]
        shown = drive.model.requests[1].messages[-1].text()
    assert (result.status, result.fault) == ("complete", None)
    assert steps == ["a", "tests", "tests", "b"]
    assert "Run 1 of the check `tests` did not pass (exit code 1)." in shown
    assert "> the test of the parser is red" in shown
    assert "call `report_step`: this call runs the check again." in shown
    assert len(held(harness).begun) == 2
    async with driving(harness, report) as drive:
        position = await drive.equipment.client.find(result.position.run)
        history = await drive.equipment.client.history(position)
    assert [turn.number for turn in history.turns] == [1, 2, 3, 4], "also the one whose check ended the step by itself"


async def test_a_check_that_fails_in_the_same_way_after_three_reports_ends_the_drive_with_its_result(
    tmp_path: Path,
) -> None:
    harness = failing(tmp_path)
    async with driving(harness, report) as drive:
        result = await drive.start(NAME)
        shown = [request.messages[-1].text().splitlines()[0] for request in drive.model.requests[1:]]
    assert [line[:5] for line in shown] == ["Run 1", "Run 2", "Run 3"]
    assert (result.status, result.exit_code) == ("failed", 1)
    assert result.fault is not None
    assert "after 3 reports in a row" in result.fault.message
    assert "Run 4 of the check `tests` did not pass (exit code 1)." in result.fault.message
    assert "the test of the parser is red" in result.fault.message
    (tmp_path / "project" / "passes").touch()
    async with driving(harness, report) as drive:
        resumed = await drive.resume(result.position.run)
        assert resumed.status == "complete", "the check runs before the model is asked"
        assert [request.place.step_id for request in drive.model.requests] == ["b"]


async def test_the_limit_of_turns_ends_the_repair_with_the_result_of_the_check(tmp_path: Path) -> None:
    harness = failing(tmp_path, "date +%N; exit 3")
    async with driving(harness, report, profile(constraints={"max_turns": 4})) as drive:
        result = await drive.start(NAME)
    assert (result.status, result.turns) == ("budget_used_up", 4)
    assert result.fault is not None
    assert result.fault.message.startswith("The run has had 4 turns; 4 are allowed.")
    assert "Run 4 of the check `tests` did not pass (exit code 3)." in result.fault.message


@pytest.mark.inv("CHECK-7")
async def test_a_check_whose_process_is_killed_after_every_report_ends_the_drive(tmp_path: Path) -> None:
    async with driving(losing(checking(tmp_path, NEEDED)), report) as drive:
        result = await drive.start(NAME)
    assert (result.status, result.exit_code) == ("failed", 1)
    assert result.fault is not None
    assert "did not pass (its process ended without a result)" in result.fault.message
