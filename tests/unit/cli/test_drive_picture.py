"""The line that shows where a drive is."""

from interlock.cli.drive.picture import progress_line
from interlock.drive.client import Position, Tokens
from interlock.drive.models.protocol import Usage
from interlock.drive.run.driver import Progress
from interlock.kernel.budgets import ECHO_BYTES_MAX


def test_a_long_name_of_a_tool_is_cut() -> None:
    at = Position(
        session="s", run="r", label="l", workflow_id="w", tokens=Tokens(state=""), step=None, is_complete=True
    )
    line = progress_line(Progress(position=at, turn=1, usage=Usage(), seconds=1.0, tools=("look", "x" * 3_000_000)))
    assert "look, xxx" in line
    assert len(line.encode()) < ECHO_BYTES_MAX + 100
