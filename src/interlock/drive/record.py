"""The record of a turn, `wr.turn`: how it is written, and what a driver reads back of the turns of a run (TURN-7)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Literal

from interlock.drive.conversation.messages import Message, Origin, ToolCall, carried, parse_call, parse_message
from interlock.drive.faults import Fault
from interlock.drive.models.protocol import Usage
from interlock.drive.state import StateChange, parse_changes
from interlock.kernel.budgets.drive import RECORDED_TEXT_CHARS_MAX, TURN_RECORD_BYTES_MAX
from interlock.kernel.canonical import Json, canonical_bytes
from interlock.kernel.frozen import frozen, mutable, replace

TURN_KIND = "wr.turn"
RECORD_VERSION: Literal[1] = 1
REPORT_TOOL = "report_step"
PROGRESS_TOOL = "note_progress"
TurnStatus = Literal["done", "about_to_call", "waiting"]
PhaseName = Literal["init", "normalize", "resolve", "infer", "execute", "persist", "emit"]
PhaseStatus = Literal["ok", "failed", "skipped"]
ResultStatus = Literal["success", "error", "timeout"]
_CUT = "… [cut]"


@frozen
class Phase:
    """A phase of a turn: its name, when it began and ended, and how."""

    name: PhaseName
    start: str
    end: str
    status: PhaseStatus

    def to_json(self) -> dict[str, Json]:
        """Return the phase as it is recorded."""
        return {"name": self.name, "start": self.start, "end": self.end, "status": self.status}


@frozen
class TurnIds:
    """The ids of a turn. `session_id` is the run, `instance_id` the process, `chain_id` the chain of tool turns."""

    interaction_id: str
    session_id: str
    instance_id: str
    chain_id: str

    def to_json(self) -> dict[str, Json]:
        """Return the ids as they are recorded."""
        return {
            "interactionId": self.interaction_id,
            "sessionId": self.session_id,
            "instanceId": self.instance_id,
            "chainId": self.chain_id,
        }


@frozen
class ToolExecution:
    """A call of a tool with its times, its result and its retries (TOOL-5)."""

    call_id: str
    tool_name: str
    arguments: Json
    started_at: str
    completed_at: str
    status: ResultStatus
    output: Json = None
    error: Fault | None = None
    retries: int = 0

    def to_json(self) -> dict[str, Json]:
        """Return the execution as it is recorded."""
        result: dict[str, Json] = {"status": self.status}
        if self.status == "success":
            result["output"] = self.output
        elif self.error is not None:
            result["error"] = self.error.to_json()
        return {
            "callId": self.call_id,
            "toolName": self.tool_name,
            "input": self.arguments,
            "startedAt": self.started_at,
            "completedAt": self.completed_at,
            "result": result,
            "retries": self.retries,
        }


@mutable
class TurnRecord:
    """What a turn has come to so far. Its phases fill it in; `to_artifact` returns what is kept of it."""

    ids: TurnIds
    number: int
    number_of_step: int
    step_id: str
    started_at: str
    agent: str = "agent"
    delegated_by: Mapping[str, Json] | None = None
    trace: Mapping[str, Json] = field(default_factory=dict[str, Json])
    previous: Mapping[str, Json] | None = None
    phases: list[Phase] = field(default_factory=list[Phase])
    inputs: tuple[Message, ...] = ()
    response: Message | None = None
    model: Mapping[str, Json] = field(default_factory=dict[str, Json])
    usage: Usage = field(default_factory=Usage)
    unrecorded: Usage = field(default_factory=Usage)
    about_to_call: tuple[str, ...] = ()
    executions: list[ToolExecution] = field(default_factory=list[ToolExecution])
    changes: tuple[StateChange, ...] = ()
    errors: list[Fault] = field(default_factory=list[Fault])
    warnings: list[str] = field(default_factory=list[str])

    def to_artifact(self, status: TurnStatus) -> dict[str, Json]:
        """Return the artifact of the turn, within its budget: long texts are cut if the record is too large."""
        artifact: dict[str, Json] = {
            "kind": TURN_KIND,
            "version": RECORD_VERSION,
            "status": status,
            "ids": self.ids.to_json(),
            "turn": self.number,
            "turnOfStep": self.number_of_step,
            "stepId": self.step_id,
            "agent": self.agent,
            "startedAt": self.started_at,
            "trace": dict(self.trace),
            "phases": [one.to_json() for one in self.phases],
            "model": dict(self.model),
            "usage": self.usage.to_json(),
            "inputs": [one.to_json() for one in self.inputs],
            "response": None if self.response is None else self.response.to_json(),
            "tools": [one.to_json() for one in self.executions],
            "changes": [one.to_json() for one in self.changes],
            "errors": [one.to_json() for one in self.errors],
            "warnings": list(self.warnings),
            "previous": None if self.previous is None else dict(self.previous),
        }
        if self.delegated_by is not None:
            artifact["delegatedBy"] = dict(self.delegated_by)
        if self.unrecorded != Usage():
            artifact["usageOfFailedTurns"] = self.unrecorded.to_json()
        if self.about_to_call:
            artifact["aboutToCall"] = list(self.about_to_call)
        return _within_budget(artifact)

    def holds(self, report: ToolCall) -> bool:
        """Say whether the artifact of a turn holds its report whole: a waiting report is sent again from there."""
        kept = parse_turn(self.to_artifact("waiting"), is_of_pending_step=True).report
        return kept is not None and kept.arguments == report.arguments


def _within_budget(artifact: dict[str, Json]) -> dict[str, Json]:
    fitting = {key: carried(value) for key, value in artifact.items()}
    chars = RECORDED_TEXT_CHARS_MAX
    while len(canonical_bytes(fitting)) > TURN_RECORD_BYTES_MAX:
        # State is exact or nothing: only texts of the conversation are cut.
        fitting = {key: value if key == "changes" else _cut(value, chars) for key, value in fitting.items()}
        chars //= 2
        if chars == 0:
            return {**fitting, "inputs": [], "response": None, "tools": []}
    return fitting


def _cut(value: Json, chars: int) -> Json:
    if isinstance(value, str):
        return value if len(value) <= chars else value[:chars] + _CUT
    if isinstance(value, dict):
        return {key: _cut(inner, chars) for key, inner in value.items()}
    return [_cut(inner, chars) for inner in value] if isinstance(value, list) else value


@frozen
class PastTurn:
    """A recorded turn. `is_of_pending_step` says whether its step is still pending."""

    interaction_id: str
    chain_id: str
    number: int
    step_id: str
    agent: str
    started_at: str
    status: TurnStatus
    is_of_pending_step: bool
    inputs: tuple[Message, ...]
    response: Message | None
    results: Mapping[str, Json]
    about_to_call: tuple[str, ...]
    changes: tuple[StateChange, ...]
    usage: Usage
    previous: Mapping[str, Json]
    artifact: Mapping[str, Json]

    @property
    def report(self) -> ToolCall | None:
        """The call with which the turn reported its step, if it did."""
        return next((one for one in self.calls if self.is_report(one)), None)

    def is_report(self, call: ToolCall) -> bool:
        """Say whether a call reported the step: the driver refuses one of wrong arguments, and a second one."""
        refused = _object(self.results.get(call.call_id)).get("status") == "error"
        return call.name == REPORT_TOOL and not refused

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls that the model asked for."""
        return self.response.calls if self.response is not None else ()


@frozen
class RunHistory:
    """The turns of a run, the oldest first, with what they add up to. `checkpoints` are those of the pending step."""

    turns: tuple[PastTurn, ...] = ()
    checkpoints: int = 0

    @property
    def usage(self) -> Usage:
        """What all turns used."""
        return sum((turn.usage for turn in self.turns), Usage())

    @property
    def of_step(self) -> tuple[PastTurn, ...]:
        """The turns of the pending step."""
        return tuple(turn for turn in self.turns if turn.is_of_pending_step)

    @property
    def number(self) -> int:
        """The number of the latest turn."""
        return max((turn.number for turn in self.turns), default=0)

    def changes(self) -> Iterable[StateChange]:
        """Yield every change of state, in order."""
        for turn in self.turns:
            yield from turn.changes

    def with_turn(self, artifact: Mapping[str, Json], checkpoints: int) -> "RunHistory":
        """Return the history with one more turn of the pending step, in place of its mark if it has one."""
        turn = parse_turn(artifact, is_of_pending_step=True)
        kept = tuple(one for one in self.turns if one.interaction_id != turn.interaction_id)
        return RunHistory(turns=(*kept, turn), checkpoints=self.checkpoints + checkpoints)

    def at_next_step(self) -> "RunHistory":
        """Return the history after the pending step was done."""
        return RunHistory(turns=tuple(replace(one, is_of_pending_step=False) for one in self.turns))

    def conversation(self, last_answer: str | None, *, only_of: str | None = None) -> tuple[Message, ...]:
        """Return the messages of all turns, or of one agent. `last_answer` is what the server said to the last report.

        Every call has a result: what is not recorded was lost with the process that made the call.
        """
        messages: list[Message] = []
        for at, turn in enumerate(self.turns):
            if only_of not in (None, turn.agent):
                continue
            following = self.turns[at + 1].previous.get("answer") if at + 1 < len(self.turns) else last_answer
            messages += _messages_of(turn, following if isinstance(following, str) else "The step was reported.")
        return tuple(messages)


def _messages_of(turn: PastTurn, answer: str) -> Sequence[Message]:
    if turn.response is None:
        return turn.inputs
    results = [
        Message(
            role="tool",
            content=answer if turn.is_report(call) else result_text(turn.results.get(call.call_id)),
            origin=Origin(source="api", original_format="tool_result", normalized_at=turn.started_at),
            call_id=call.call_id,
            tool_name=call.name,
        )
        for call in turn.response.calls
    ]
    return [*turn.inputs, turn.response, *results]


def result_text(result: Json) -> str:
    """Return the result of a call as the model reads it."""
    if not isinstance(result, dict):
        return "The result was lost."
    if result.get("status") == "success":
        output = result.get("output")
        return output if isinstance(output, str) else canonical_bytes(output).decode()
    error = result.get("error")
    if isinstance(error, dict):
        return f"{error.get('code')}: {error.get('message')}"
    return "The call took too long and was cancelled."


def parse_history(value: Mapping[str, Json]) -> RunHistory:
    """Return the turns of a run's resource. A mark counts until the record of its turn is there."""
    pending, found = value.get("pendingNode"), value.get("turns")
    turns: dict[str, PastTurn] = {}
    checkpoints = 0
    for one in found if isinstance(found, list) else []:
        record = one.get("turn") if isinstance(one, dict) else None
        if not isinstance(one, dict) or not isinstance(record, dict) or one.get("isCurrent") is not True:
            continue
        is_pending = one.get("stepNode") == pending
        checkpoints += is_pending
        turn = parse_turn(record, is_of_pending_step=is_pending)
        turns[turn.interaction_id] = turn
    return RunHistory(turns=tuple(turns.values()), checkpoints=checkpoints)


def parse_turn(record: Mapping[str, Json], *, is_of_pending_step: bool) -> PastTurn:
    """Return a turn as its artifact records it. What is missing or of another type becomes empty: it is a claim."""
    ids, response = _object(record.get("ids")), record.get("response")
    tools = [_object(one) for one in _list(record.get("tools"))]
    status = record.get("status")
    return PastTurn(
        interaction_id=str(ids.get("interactionId", "")),
        chain_id=str(ids.get("chainId", "")),
        number=_count(record.get("turn")),
        step_id=str(record.get("stepId", "")),
        agent=str(record.get("agent", "")),
        started_at=str(record.get("startedAt", "")),
        status=status if status in ("about_to_call", "waiting") else "done",
        is_of_pending_step=is_of_pending_step,
        inputs=tuple(parse_message(_object(one)) for one in _list(record.get("inputs"))),
        response=parse_message(response) if isinstance(response, dict) else None,
        results={str(one.get("callId", "")): one.get("result") for one in tools},
        about_to_call=tuple(str(one) for one in _list(record.get("aboutToCall"))),
        changes=parse_changes(record.get("changes")),
        usage=_parse_usage(record.get("usage")) + _parse_usage(record.get("usageOfFailedTurns")),
        previous=_object(record.get("previous")),
        artifact=record,
    )


def report_of(turn: PastTurn) -> Mapping[str, Json]:
    """Return the arguments with which a turn reported its step."""
    call = turn.report
    assert call is not None, "only a turn that reported waits for an answer"
    return _object(parse_call(call.to_json()).arguments)


def error_messages(turn: PastTurn) -> str:
    """Return the messages of the errors of a turn, each once."""
    messages = (str(_object(one).get("message", "")) for one in _list(turn.artifact.get("errors")))
    return " ".join(dict.fromkeys(one for one in messages if one))


def _parse_usage(value: Json) -> Usage:
    usage = _object(value)
    return Usage(
        input_tokens=_count(usage.get("inputTokens")),
        output_tokens=_count(usage.get("outputTokens")),
        cost=_amount(usage.get("cost")),
    )


def _object(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, dict) else {}


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _count(value: Json) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _amount(value: Json) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0
