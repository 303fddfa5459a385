"""Ends of runs for tests: the artifact that asks for one, and the command that a person runs."""

from tests.support.flow import Document
from tests.support.modes import with_artifacts

from interlock.cli.session.lifecycle.end import COMMAND_LINE
from interlock.kernel.errors import Refusal
from interlock.kernel.ids import RunId
from interlock.record.payloads import WorkRecorded
from interlock.service.ports import AppendPorts
from interlock.service.tools.end_run import EndedRun, end_run
from interlock.testing.harness import Harness, ToolResult

CANCELLED = WorkRecorded(work="cancelled", reason="user_request", note="No longer wanted.")


def work_record(work: str = "cancelled", reason: str = "user_request", **more: object) -> Document:
    """Return the output of a call that holds only the artifact `wr.work_record`."""
    return with_artifacts({"kind": "wr.work_record", "work": work, "reason": reason, **more}, notes=None)


def ended_by_command(harness: Harness, start: ToolResult, work: WorkRecorded = CANCELLED) -> EndedRun | Refusal | None:
    """End the run that a start began, as `interlock session cancel` does."""
    ports = AppendPorts(read=harness.ports.read, writer=harness.ports.writer, clock=harness.ports.clock)
    return end_run(ports, (harness.session_of(start), RunId(start["run"]["runId"])), work, COMMAND_LINE)
