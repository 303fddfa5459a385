"""The driver's client of the workflow server: the only way by which a driver changes anything.

It keeps the tokens: no model sees one.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol, cast

import anyio
from mcp import types
from mcp.shared.exceptions import MCPError

from interlock.drive.faults import Fault, ServerRefusal, TurnError, server_rule
from interlock.drive.record import TURN_KIND, RunHistory, parse_history
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import frozen, replace

NO_PERSON = "interlock/noPerson"
"""The capability with which a client declares that it speaks for no person, so that no claim of it opens a gate."""


_BROKEN = (MCPError, OSError, RuntimeError, ValueError, anyio.BrokenResourceError, anyio.ClosedResourceError)
"""How a call fails if the server refused it in the protocol, answered what does not conform, or is gone."""


class ToolCaller(Protocol):
    """The part of the SDK's client that a driver uses."""

    async def call_tool(self, name: str, arguments: dict[str, Any] | None = None) -> types.CallToolResult:
        """Call a tool of the server."""
        ...

    async def read_resource(self, uri: str) -> types.ReadResourceResult:
        """Read a resource of the server."""
        ...


@frozen
class Tokens:
    """The tokens of a position. They leave the client in calls alone."""

    state: str = field(repr=False)
    ack: str | None = field(default=None, repr=False)
    checkpoint: str | None = field(default=None, repr=False)


@frozen
class PendingStep:
    """The pending step, as a model reads it."""

    step_id: str
    title: str
    prompt: str
    role: str | None
    number: int
    total: int
    needs_person: bool
    parallel_with: tuple[str, ...] = ()


@frozen
class Position:
    """Where a run is: its ids, its pending step, what is missing, and what was said about it.

    `wanted` is the call that reports the step, as the server outlines it. `unchanged` says that a report was
    understood but not recorded, because a person or an event is missing. `has_gaps` says that the run is complete
    with gaps.
    """

    session: str
    run: str
    label: str
    workflow_id: str
    tokens: Tokens
    step: PendingStep | None
    is_complete: bool
    ended: Mapping[str, Json] | None = None
    blockers: tuple[Mapping[str, Json], ...] = ()
    warnings: tuple[Mapping[str, Json], ...] = ()
    waiting: Mapping[str, Json] | None = None
    wanted: Mapping[str, Json] | None = None
    recap: str | None = None
    goal: str | None = None
    unchanged: bool = False
    has_gaps: bool = False


@frozen
class StartOptions:
    """How a run begins. With `session`, it begins in a session that exists."""

    workflow_id: str
    goal: str | None = None
    context: Mapping[str, Json] = field(default_factory=dict[str, Json])
    autonomy: str | None = None
    session: str | None = None


@frozen
class Evidence:
    """What reports or saves a step: notes, artifacts, context, and the record of the turn."""

    notes: str | None = None
    artifacts: tuple[Mapping[str, Json], ...] = ()
    context: Mapping[str, Json] = field(default_factory=dict[str, Json])
    record: Mapping[str, Json] | None = None

    def output(self) -> dict[str, Json]:
        """Return the argument `output`."""
        output: dict[str, Json] = {} if self.notes is None else {"notesMarkdown": self.notes}
        artifacts: list[Json] = [dict(one) for one in self.artifacts]
        if self.record is not None:
            artifacts.append(dict(self.record))
        if artifacts:
            output["artifacts"] = artifacts
        return output


_KINDS_OF_OTHERS = frozenset({"wr.confirmation", "wr.approval", "wr.work_record", TURN_KIND})
"""Artifacts that only a person may send, or only the driver itself (DRIVE-12)."""


def evidence_of(arguments: Mapping[str, Json], earlier: Sequence[str] = ()) -> tuple[Evidence, list[str]]:
    """Return the evidence of the arguments of `report_step`, and the kinds of artifacts that were left out of it.

    Args:
        arguments: What the model sent.
        earlier: Notes of the same turn, which precede those of the report.
    """
    artifacts, notes, context = arguments.get("artifacts"), arguments.get("notes"), arguments.get("context")
    sent = [one for one in (artifacts if isinstance(artifacts, list) else []) if isinstance(one, dict)]
    kept = [one for one in sent if one.get("kind") not in _KINDS_OF_OTHERS]
    texts = [*earlier, *([notes] if isinstance(notes, str) else [])]
    evidence = Evidence(
        notes="\n\n".join(texts) or None,
        artifacts=tuple(kept),
        context=context if isinstance(context, dict) else {},
    )
    return evidence, sorted({str(one.get("kind")) for one in sent if one not in kept})


class RefusedError(TurnError):
    """The server refused a call; `refusal` says why, and the fault what that is for a turn."""

    def __init__(self, refusal: ServerRefusal) -> None:
        self.refusal = refusal
        super().__init__(
            Fault(
                code="RATE_LIMITED" if refusal.is_retryable else server_rule(refusal.code).code,
                message=f"{refusal.code}: {refusal.message}",
                details={"suggestion": refusal.suggestion, "serverCode": refusal.code},
                recoverable=refusal.is_retryable,
                retry_after_ms=refusal.after_ms,
            )
        )


class RunClient(Protocol):
    """What a driver does with a run. The server's client does it at once, a draft keeps it until later."""

    async def start(self, options: StartOptions) -> Position:
        """See `WorkflowClient.start`."""
        ...

    async def find(self, run: str) -> Position:
        """See `WorkflowClient.find`."""
        ...

    async def look(self, position: Position) -> Position:
        """See `WorkflowClient.look`."""
        ...

    async def report(self, position: Position, evidence: Evidence) -> Position:
        """See `WorkflowClient.report`."""
        ...

    async def save(self, position: Position, evidence: Evidence) -> Position:
        """See `WorkflowClient.save`."""
        ...

    async def history(self, position: Position) -> RunHistory:
        """See `WorkflowClient.history`."""
        ...


class WorkflowClient:
    """Starts, continues and reads runs through the server's tools."""

    def __init__(self, caller: ToolCaller) -> None:
        self._caller = caller

    async def start(self, options: StartOptions) -> Position:
        """Begin a run.

        Raises:
            TurnError: The server refused the call, or cannot be reached.
        """
        arguments: dict[str, Json] = {"workflowId": options.workflow_id}
        if options.goal is not None:
            arguments["goal"] = options.goal
        if options.context:
            arguments["context"] = dict(options.context)
        if options.autonomy is not None:
            arguments["preferences"] = {"autonomy": options.autonomy}
        if options.session is not None:
            arguments["sessionId"] = options.session
        return _parse_position(await self._call("start_workflow", arguments), None)

    async def find(self, run: str) -> Position:
        """Find a run by its id or label and return where it is.

        Raises:
            TurnError: There is no such run, several have the label, or the server refused the call.
        """
        search: dict[str, Json] = {"runId": run} if run.startswith("run_") else {"query": f"run {run}"}
        found = await self._call("resume_session", search)
        named = [cast("Mapping[str, Json]", one) for one in _list(found.get("candidates")) if _is_run(one, run)]
        if len(named) != 1:
            what = "There is no run" if not named else "There are several runs"
            message = f"{what} {run!r}. `interlock session list` shows the runs; name one by its whole id."
            raise TurnError(Fault(code="VALIDATION_ERROR", message=message))
        identity = _object(named[0].get("run"))
        arguments: dict[str, Json] = {"stateToken": named[0].get("stateToken")}
        answer = await self._call("continue_workflow", arguments)
        answer["run"] = {**identity, **_object(answer.get("run"))}
        position = _parse_position(answer, None)
        # Only the answer with which a run completes warns of its gaps: the list of runs has its status.
        return replace(position, has_gaps=named[0].get("status") == "complete_with_gaps")

    async def look(self, position: Position) -> Position:
        """Return where the run is now. Writes nothing.

        Raises:
            TurnError: The server refused the call, or cannot be reached.
        """
        return await self.find(position.run)

    async def report(self, position: Position, evidence: Evidence) -> Position:
        """Report the pending step, and return where the run is then.

        Raises:
            TurnError: The server refused the call, or cannot be reached.
        """
        assert position.tokens.ack is not None, "a pending step has a token"
        arguments: dict[str, Json] = {"ackToken": position.tokens.ack, "run": position.label}
        output = evidence.output()
        if output:
            arguments["output"] = output
        if evidence.context:
            arguments["context"] = dict(evidence.context)
        answer = await self._call("continue_workflow", arguments)
        if "ackToken" not in answer and answer.get("pending") is not None:
            answer = await self._with_all_tokens(answer)
        return _parse_position(answer, position)

    async def _with_all_tokens(self, answer: dict[str, Json]) -> dict[str, Json]:
        """Return the answer with all tokens of its step: the next step has no token for a turn's checkpoint.

        What the report itself gave stays: a read may be of a later position.
        """
        shown = await self._call("continue_workflow", {"stateToken": answer.get("stateToken")})
        tokens = {name: shown[name] for name in ("ackToken", "checkpointToken") if name in shown}
        return {**answer, **tokens, "run": {**_object(shown.get("run")), **_object(answer.get("run"))}}

    async def save(self, position: Position, evidence: Evidence) -> Position:
        """Save the record of a turn without reporting the step.

        Raises:
            TurnError: The server refused the call, another driver made this checkpoint, or no more can be made.
        """
        if position.tokens.checkpoint is None:
            message = "The step has no more checkpoints, so no turn of it can be recorded."
            raise TurnError(Fault(code="MAX_TURNS_EXCEEDED", message=message, details={"limit": "checkpoints"}))
        arguments: dict[str, Json] = {"checkpointToken": position.tokens.checkpoint, "output": evidence.output()}
        answer = await self._call("checkpoint_workflow", arguments)
        codes = [_object(one).get("code") for one in _list(answer.get("warnings"))]
        if "REPLAY_PAYLOAD_IGNORED" in codes:
            message = "Another driver works on this run: it recorded a turn at this place. Stop one of them."
            raise TurnError(Fault(code="STATE_ERROR", message=message))
        token = answer.get("checkpointToken")
        tokens = replace(position.tokens, checkpoint=token if isinstance(token, str) else None)
        return replace(position, tokens=tokens)

    async def history(self, position: Position) -> RunHistory:
        """Return the turns of the run.

        Raises:
            TurnError: The server cannot read them.
        """
        uri = f"interlock://sessions/{position.session}/runs/{position.label}/turns"
        try:
            result = await self._caller.read_resource(uri)
        except _BROKEN as error:
            raise _unreachable(error) from error
        texts = [one.text for one in result.contents if isinstance(one, types.TextResourceContents)]
        return parse_history(_object(json.loads(texts[0]) if texts else None))

    async def step_text(self, position: Position, step_id: str) -> str:
        """Return a step as an agent would receive it now, whether it is pending or not.

        Raises:
            TurnError: The server cannot read it.
        """
        uri = f"interlock://sessions/{position.session}/runs/{position.label}/steps/{step_id}"
        try:
            result = await self._caller.read_resource(uri)
        except _BROKEN as error:
            raise _unreachable(error) from error
        return "".join(one.text for one in result.contents if isinstance(one, types.TextResourceContents))

    async def run_named(self, session: str, workflow_id: str, goal: str) -> str | None:
        """Return the latest run of a session with this workflow and goal; None if there is none.

        Raises:
            TurnError: The server refused the call.
        """
        found = await self._call("resume_session", {"sessionId": session})
        runs = [_object(_object(one).get("run")) for one in _list(found.get("candidates"))]
        named = [one for one in runs if (one.get("workflowId"), one.get("goal")) == (workflow_id, goal)]
        return str(named[0].get("runId")) if named else None

    async def _call(self, tool: str, arguments: dict[str, Json]) -> dict[str, Json]:
        try:
            result = await self._caller.call_tool(tool, cast("dict[str, Any]", arguments))
        except _BROKEN as error:
            raise _unreachable(error) from error
        structure = cast("dict[str, Json]", dict(result.structured_content or {}))
        if result.is_error:
            raise RefusedError(_parse_refusal(structure))
        return structure


class Draft:
    """A client that keeps what a driver sends: its turns, and its report, with which the work ends."""

    def __init__(self) -> None:
        self.saved: list[Evidence] = []
        self.reported: Evidence | None = None

    def kept(self) -> list[Evidence]:
        """Return all that was sent, the report last."""
        return [*self.saved, *([self.reported] if self.reported is not None else [])]

    async def start(self, options: StartOptions) -> Position:
        """A draft begins no run."""
        raise AssertionError(options)

    async def find(self, run: str) -> Position:
        """A draft looks for no run."""
        raise AssertionError(run)

    async def look(self, position: Position) -> Position:
        """A draft stays where it is."""
        return position

    async def report(self, position: Position, evidence: Evidence) -> Position:
        """Keep the report; for the driver, the work ends here."""
        self.reported = evidence
        return replace(position, step=None, is_complete=True, blockers=())

    async def save(self, position: Position, evidence: Evidence) -> Position:
        """Keep a turn."""
        self.saved.append(evidence)
        return position

    async def history(self, position: Position) -> RunHistory:  # noqa: ARG002 — a draft begins without turns
        """A draft has no history."""
        return RunHistory()


def _unreachable(error: Exception) -> TurnError:
    return TurnError(Fault(code="STATE_ERROR", message=f"The workflow server did not answer: {error}"))


def _is_run(candidate: Json, run: str) -> bool:
    identity = _object(_object(candidate).get("run"))
    return run in (identity.get("runId"), identity.get("label"))


def _parse_refusal(structure: Mapping[str, Json]) -> ServerRefusal:
    retry = _object(structure.get("retry"))
    after = retry.get("afterMs")
    return ServerRefusal(
        code=str(structure.get("code", "INTERNAL_ERROR")),
        message=str(structure.get("message", "")),
        suggestion=str(structure.get("suggestion", "")),
        retry=str(retry.get("kind", "not_retryable")),
        after_ms=after if isinstance(after, int) else None,
    )


def _parse_position(answer: Mapping[str, Json], before: Position | None) -> Position:
    run, pending = _object(answer.get("run")), answer.get("pending")
    offered = _object(_object(answer.get("nextCall")).get("arguments")).get("ackToken")
    ack, checkpoint = answer.get("ackToken", None if "fork" in answer else offered), answer.get("checkpointToken")
    waiting, ended, call = answer.get("waiting"), answer.get("ended"), answer.get("nextCall")
    warnings = tuple(_object(one) for one in _list(answer.get("warnings")))
    is_unchanged = before is not None and isinstance(ack, str) and ack == before.tokens.ack
    return Position(
        session=str(run.get("sessionId") or (before.session if before is not None else "")),
        run=str(run.get("runId") or (before.run if before is not None else "")),
        label=str(run.get("label", "")),
        workflow_id=str(run.get("workflowId", "")),
        tokens=Tokens(
            state=str(answer.get("stateToken", "")),
            ack=ack if isinstance(ack, str) else None,
            checkpoint=checkpoint if isinstance(checkpoint, str) else None,
        ),
        step=_parse_step(pending, run) if isinstance(pending, dict) else None,
        is_complete=answer.get("isComplete") is True,
        ended=ended if isinstance(ended, dict) else None,
        blockers=tuple(_object(one) for one in _list(answer.get("blockers"))),
        warnings=warnings,
        waiting=waiting if isinstance(waiting, dict) else None,
        wanted=call if isinstance(call, dict) else None,
        recap=cast("str", answer["recap"]) if isinstance(answer.get("recap"), str) else None,
        goal=cast("str", run["goal"]) if isinstance(run.get("goal"), str) else None,
        unchanged=is_unchanged,
        has_gaps=any(one.get("code") == "COMPLETE_WITH_GAPS" for one in warnings),
    )


def _parse_step(pending: Mapping[str, Json], run: Mapping[str, Json]) -> PendingStep:
    place, role = _object(run.get("step")), pending.get("agentRole")
    number, total = place.get("number"), place.get("total")
    return PendingStep(
        step_id=str(pending.get("stepId", "")),
        title=str(pending.get("title", "")),
        prompt=str(pending.get("prompt", "")),
        role=role if isinstance(role, str) else None,
        number=number if isinstance(number, int) else 0,
        total=total if isinstance(total, int) else 0,
        needs_person=pending.get("requireConfirmation") is True,
        parallel_with=tuple(str(one) for one in _list(pending.get("parallelWith"))),
    )


def _object(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, dict) else {}


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []
