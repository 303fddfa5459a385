"""A run as an event store, for a client of the tools: it reads executions and records what the tools can (ADPT-6)."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Protocol, cast

from interlock.kernel.canonical import Json
from interlock.kernel.uuids import Uuid
from interlock.operations.event_store import EventRefusedError, ExecutionEndedError
from interlock.views.executions.derive import derive_block_state, may_append
from interlock.views.executions.events import ExecutionEvent, is_later
from interlock.views.executions.model import BlockExecution

ReadExecutions = Callable[[], Mapping[str, Any]]
"""Returns what `interlock session executions RUN --json` prints."""


class CallTool(Protocol):
    """Calls a tool of Interlock, over whatever connection, and returns the structured answer."""

    def __call__(self, tool: str, arguments: Mapping[str, Json], /) -> Mapping[str, Any]:
        """Return the structured content of the answer."""
        ...


class SessionEventStore:
    """The pending step of a run as an execution that can be appended to.

    `progress` becomes a checkpoint, `executor_released` and `failed` a checkpoint that leaves the step, and `completed`
    the report of the step, with the outcome that was appended before it. Whatever else an event says follows from the
    log itself, so such an event is refused. `answer` is the latest answer about the run: its tokens are used.
    """

    def __init__(self, call: CallTool, read: ReadExecutions, answer: Mapping[str, Any]) -> None:
        self._call = call
        self._read = read
        self._outcome: Json = None
        self.answer = answer

    def append(self, event: ExecutionEvent) -> None:
        """Record an event of the pending step.

        Raises:
            ExecutionEndedError: The execution has ended.
            EventRefusedError: It is not the execution of the pending step, the tools cannot record such an event, or
                the report was refused.
        """
        events = self.get_events(event.execution_id)
        state = derive_block_state(events)
        if not may_append(state, event):
            raise ExecutionEndedError(event, state)
        if event.execution_id != self.pending_execution():
            raise EventRefusedError(event, "it is not the execution of the pending step")
        match event.event_type:
            case "outcome_produced":
                self._outcome = event.payload
            case "completed":
                self._report(event)
            case "progress":
                self._checkpoint(event, {"notesMarkdown": json.dumps(event.payload, ensure_ascii=False)})
            case "executor_released" | "failed":
                work = "released" if event.event_type == "executor_released" else "failed"
                reason = "handoff" if work == "released" else "gave_up"
                self._checkpoint(event, {"artifacts": [{"kind": "wr.work_record", "work": work, "reason": reason}]})
            case _:
                raise EventRefusedError(event, "the log records this by itself, or not at all")

    def get_events(self, execution_id: Uuid, after: str | None = None) -> list[ExecutionEvent]:
        """Return the events of an execution of the run in their order; with `after`, only those with a later time."""
        blocks = [one for one in self._blocks() if one.id == execution_id]
        return [event for one in blocks for event in one.events if after is None or is_later(event.timestamp, after)]

    def get_latest_event(self, execution_id: Uuid) -> ExecutionEvent | None:
        """Return the latest event of an execution of the run, or None if the run has no such execution."""
        events = self.get_events(execution_id)
        return events[-1] if events else None

    def _blocks(self) -> list[BlockExecution]:
        found = cast("list[Mapping[str, Any]]", self._read()["block_executions"])
        return [BlockExecution.from_json(one) for one in found]

    def pending_execution(self) -> Uuid | None:
        """Return the execution of the pending step: the last that has not ended."""
        return next((one.id for one in reversed(self._blocks()) if one.state in {"pending", "in_progress"}), None)

    def _report(self, event: ExecutionEvent) -> None:
        artifact: Json = {"kind": "wr.block_outputs", "outputs": self._outcome}
        output: dict[str, Json] = {"artifacts": [artifact]} if self._outcome is not None else {"notesMarkdown": "Done."}
        arguments: dict[str, Json] = {"ackToken": self._ack_token(), "output": output}
        answer = self._call("continue_workflow", arguments)
        if answer.get("kind") != "ok":
            found = answer.get("message") or [one["message"] for one in answer.get("blockers", ())]
            raise EventRefusedError(event, f"the report was refused: {found}")
        self.answer, self._outcome = answer, None

    def _checkpoint(self, event: ExecutionEvent, output: dict[str, Json]) -> None:
        exact = self.answer.get("checkpointToken")
        token: dict[str, Json] = {"checkpointToken": exact} if exact is not None else {"ackToken": self._ack_token()}
        answer = self._call("checkpoint_workflow", {**token, "output": output})
        if "code" in answer:
            raise EventRefusedError(event, f"the checkpoint was refused: {answer['message']}")
        self.answer = {**self.answer, **{key: answer[key] for key in ("checkpointToken",) if answer.get(key)}}

    def _ack_token(self) -> str:
        """Return the token that reports the step: the answer with the next step has it in its `nextCall` alone."""
        found = self.answer.get("ackToken")
        return cast("str", self.answer["nextCall"]["arguments"]["ackToken"] if found is None else found)
