"""One turn: seven phases in order, whose record is kept by one call of the server, whole or not at all (DRIVE-1).

Phase 6 is that call: it reports the step if the model reported it, and saves a checkpoint otherwise.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from typing import cast

import anyio

from interlock.drive.account import Account
from interlock.drive.agent.profile import Profile
from interlock.drive.client import Evidence, Position, RefusedError, RunClient, Tokens, evidence_of
from interlock.drive.conversation.filtering import Filter
from interlock.drive.conversation.memory import select_window, summary_source
from interlock.drive.conversation.messages import Message, Origin, ToolCall, carried, carried_text
from interlock.drive.effects import Effects, timestamp
from interlock.drive.faults import Fault, TurnError, server_rule
from interlock.drive.instructions import (
    PROGRESS,
    REPORT,
    TOO_LARGE_TO_WAIT,
    few_shots,
    refusal_message,
    system_prompt,
)
from interlock.drive.models.protocol import InferenceRequest, InferenceResponse, Model, Place, Usage
from interlock.drive.record import (
    PROGRESS_TOOL,
    REPORT_TOOL,
    Phase,
    PhaseName,
    PhaseStatus,
    ToolExecution,
    TurnIds,
    TurnRecord,
    TurnStatus,
)
from interlock.drive.recovery.breaker import Breakers
from interlock.drive.recovery.retry import Recovery, run_with_retries
from interlock.drive.state import StateStore, TurnState
from interlock.drive.telemetry.emission import Emission, Telemetry, traceparent
from interlock.drive.tools.execute import Executor, JudgedCall
from interlock.drive.tools.tool import ResolvedTool, ToolContext
from interlock.drive.tools.toolbox import Toolbox, input_fault
from interlock.drive.tools.workspace import Workspace
from interlock.kernel.budgets.drive import MODEL_TEXT_CHARS_MAX, TOKENS_PER_PRICE
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import frozen, replace

Input = tuple[str, str]
"""What a turn receives in addition to the results of calls: its format, and its text."""
DELEGATION = "delegation"
"""The format of what one agent passes on to another."""
_OWN = {REPORT.name: REPORT, PROGRESS.name: PROGRESS}
_REFUSED = frozenset({"VALIDATION_ERROR", "SCHEMA_VIOLATION", "POLICY_VIOLATION"})
"""Errors of a call that the model can correct by another one."""
_ACCEPTED = "Accepted. The step is done."
_SAVED = "Saved. The step is still pending."


@frozen
class Equipment:
    """What all turns of a driver share."""

    profile: Profile
    model: Model
    client: RunClient
    toolbox: Toolbox
    workspace: Workspace
    store: StateStore
    effects: Effects
    telemetry: Telemetry
    executor: Executor
    breakers: Breakers
    recovery: Recovery
    content_filter: Filter
    instance_id: str
    summaries: dict[int, Message] = field(default_factory=dict[int, Message])
    account: Account = field(default_factory=Account)


@frozen
class TurnTask:
    """What one turn is about: where the run is, the conversation so far, and the new inputs.

    `pinned` is the message of the step: a request holds it however long the conversation is. `previous`
    says how the last two phases of the turn before went, and what was answered to its report.
    """

    position: Position
    conversation: tuple[Message, ...]
    inputs: Sequence[Input]
    number: int
    number_of_step: int
    chain_id: str
    pinned: Message | None = None
    delegated_by: Mapping[str, Json] | None = None
    previous: Mapping[str, Json] | None = None


@frozen
class TurnOutcome:
    """What a turn came to: where the run is, the artifact that was kept, and how its last phases went.

    `answer` is what the server said to the report; `refused` counts a turn none of whose calls could be made.
    """

    position: Position
    artifact: Mapping[str, Json]
    closing: Mapping[str, Json]
    answer: str | None
    refused: bool
    has_calls: bool
    reported: bool
    is_accepted: bool


class Turn:
    """Runs one turn."""

    def __init__(self, equipment: Equipment, task: TurnTask) -> None:
        self._with, self._task = equipment, task
        step = task.position.step
        assert step is not None, "a turn works on a step"
        self._step = step
        effects = equipment.effects
        self._record = TurnRecord(
            ids=TurnIds(
                interaction_id=effects.new_id(),
                session_id=task.position.run,
                instance_id=equipment.instance_id,
                chain_id=task.chain_id,
            ),
            number=task.number,
            number_of_step=task.number_of_step,
            step_id=step.step_id,
            started_at=timestamp(effects.unix_ms()),
            agent=equipment.profile.identity.id,
            delegated_by=task.delegated_by,
            previous=task.previous,
            unrecorded=equipment.account.unrecorded,
        )
        self._state: TurnState = equipment.store.begin(equipment.profile.state.isolation_level)
        self._messages: tuple[Message, ...] = ()
        self._tools: Mapping[str, ResolvedTool] = {}
        self._response: InferenceResponse | None = None
        self._notes: list[str] = []
        self._report: ToolCall | None = None
        self._position = task.position
        self._artifact: Mapping[str, Json] = {}
        self._answer: str | None = None

    async def run(self) -> TurnOutcome:
        """Run the phases. The last one runs whatever happened, and then an error is raised.

        Raises:
            TurnError: A phase failed and its strategy ends the turn, which is not recorded.
        """
        emission = self._with.telemetry.begin_turn(self._record)
        self._record.trace = emission.trace
        error: BaseException | None = None
        try:
            await self._phase("init", self._init)
            await self._phase("normalize", self._normalize)
            await self._phase("resolve", self._resolve)
            await self._phase("infer", self._infer)
            await self._phase("execute", self._execute)
            await self._phase("persist", self._persist)
            self._with.account.close_record()
            self._state.commit()
        except BaseException as caught:
            error = caught
            self._state.discard()
            raise
        finally:
            self._emit(emission, error)
        return self._outcome()

    def _outcome(self) -> TurnOutcome:
        calls = self._response.calls if self._response is not None else ()
        codes = [one.error.code for one in self._record.executions if one.error is not None]
        is_refused = bool(calls) and sum(code in _REFUSED for code in codes) == len(calls)
        is_rejected_report = self._report is not None and self._position.tokens.ack == self._task.position.tokens.ack
        return TurnOutcome(
            position=self._position,
            artifact=self._artifact,
            closing={
                "turn": self._record.number,
                "phases": [one.to_json() for one in self._record.phases[-2:]],
                **({} if self._answer is None else {"answer": self._answer}),
            },
            answer=self._answer,
            refused=is_refused or (is_rejected_report and not self._position.unchanged),
            has_calls=bool(calls),
            reported=self._report is not None,
            is_accepted=self._answer == _ACCEPTED,
        )

    async def _phase(self, name: PhaseName, run: Callable[[], Awaitable[None]]) -> None:
        start, status = self._now(), cast("PhaseStatus", "failed")
        try:
            await run()
            status = "ok"
        finally:
            self._record.phases.append(Phase(name=name, start=start, end=self._now(), status=status))

    async def _init(self) -> None:
        """Phase 1. The ids and the time exist since the turn does; here it is checked that it may begin."""
        limits, used = self._with.profile.constraints, self._with.account.total
        if limits.max_tokens is not None and used.tokens >= limits.max_tokens:
            message = f"The run has used {used.tokens} tokens; {limits.max_tokens} are allowed."
            details: dict[str, Json] = {"limit": "constraints.max_tokens"}
            raise TurnError(Fault(code="MAX_TOKENS_EXCEEDED", message=message, details=details))

    async def _normalize(self) -> None:
        """Phase 2: every input becomes a message, filtered (DRIVE-4, DRIVE-6)."""
        now = self._now()
        inputs = [
            Message(
                role="user",
                content=str(carried(text)),
                origin=Origin(
                    source="delegation" if original == DELEGATION else "api",
                    original_format=original,
                    normalized_at=now,
                ),
            )
            for original, text in self._task.inputs
        ]
        kept = self._with.content_filter
        self._record.inputs = tuple(kept.message(one) for one in inputs)
        self._messages = (*(kept.message(one) for one in self._task.conversation), *self._record.inputs)

    async def _resolve(self) -> None:
        """Phase 3: the tools of the turn."""
        resolution = await self._with.toolbox.resolve()
        self._tools = {name: tool for name, tool in resolution.tools.items() if name not in _OWN}
        if self._task.number == 1:
            self._record.warnings += resolution.warnings

    async def _infer(self) -> None:
        """Phase 4: one request, repeated while its error allows that."""
        request = await self._request()
        self._record.model = {"requested": request.model or self._with.model.name}
        response, retried = await run_with_retries(
            lambda: self._ask_model(request), self._with.recovery, None, self._with.effects.sleep
        )
        self._record.errors += retried.errors
        if response.finish_reason == "content_filter":
            raise TurnError(Fault(code="CONTENT_FILTERED", message="The model's provider blocked the answer."))
        calls = tuple(self._identified(call, number) for number, call in enumerate(response.calls, start=1))
        self._response = replace(response, calls=calls)
        self._record.model = {
            **self._record.model,
            "actual": response.model,
            "finishReason": response.finish_reason,
        }
        content = carried_text(response.content or "")
        if len(content) > MODEL_TEXT_CHARS_MAX:
            self._record.warnings.append(f"The answer has {len(content)} characters; the rest was dropped.")
        self._record.response = Message(
            role="assistant",
            content=self._with.content_filter.text(content[:MODEL_TEXT_CHARS_MAX]),
            origin=Origin(source="api", original_format="model_response", normalized_at=self._now()),
            calls=calls,
        )

    def _identified(self, call: ToolCall, number: int) -> ToolCall:
        """Return a call with an id that is unique in the run, as JSON can carry it (TOOL-5)."""
        call_id = f"{self._record.ids.interaction_id.replace('-', '')}_{number}"
        return ToolCall(call_id=call_id, name=carried_text(call.name), arguments=carried(call.arguments))

    async def _ask_model(self, request: InferenceRequest) -> InferenceResponse:
        """Ask the model once, within its time.

        Raises:
            TurnError: The model failed, took too long, or its breaker is open.
        """
        name, breakers, effects = f"model {self._with.model.name}", self._with.breakers, self._with.effects
        seconds = self._with.profile.constraints.timeout_seconds
        if not breakers.begin(name, effects.monotonic()):
            raise TurnError(Fault(code="CIRCUIT_OPEN", message="The model failed too often; its breaker is open."))
        outcome = "failed"
        try:
            with anyio.fail_after(seconds):
                response = await self._with.model.infer(request)
            # Every answer counts, whatever becomes of it.
            used = self._priced(response.usage)
            self._record.usage += used
            self._with.account.add(used)
            if (fault := response.fault()) is not None:
                raise TurnError(fault)
            outcome = "succeeded"
        except TimeoutError as error:
            message = f"The model took longer than {seconds} s and was cancelled."
            raise TurnError(Fault(code="LLM_TIMEOUT", message=message, recoverable=True)) from error
        finally:
            breakers.end(name, "succeeded" if outcome == "succeeded" else "failed", effects.monotonic())
        return response

    async def _request(self) -> InferenceRequest:
        profile = self._with.profile
        window = select_window(self._messages, profile.memory)
        messages = window.kept
        pinned = self._task.pinned
        if pinned is not None and pinned not in messages:
            fewer = profile.memory.model_copy(update={"window_size": profile.memory.window_size - 1})
            window = select_window(self._messages, fewer)
            messages = (self._with.content_filter.message(pinned), *window.kept)
        if window.left_out and profile.memory.summarization == "summarize":
            messages = (await self._summary(window.left_out), *messages)
        parameters = dict(profile.llm.parameters)
        stated = parameters.get("max_tokens")
        # The limit of the run is no limit of an answer: a provider refuses one that is above its model's.
        if profile.constraints.max_tokens is not None and isinstance(stated, int):
            parameters["max_tokens"] = min(profile.constraints.max_tokens - self._with.account.total.tokens, stated)
        return InferenceRequest(
            model=profile.llm.model,
            system_prompt=system_prompt(profile),
            messages=(*few_shots(profile, self._record.started_at), *messages),
            tools=(*_OWN.values(), *(tool.spec() for tool in self._tools.values())),
            parameters=parameters,
            place=Place(step_id=self._step.step_id, turn=self._record.number, turn_of_step=self._record.number_of_step),
        )

    async def _summary(self, left_out: Sequence[Message]) -> Message:
        """Return a summary of older messages, by one more request without tools. It is made once."""
        known = self._with.summaries.get(len(left_out))
        if known is not None:
            return known
        profile = self._with.profile
        text = summary_source(left_out, profile.memory.max_history_tokens)
        origin = Origin(source="api", original_format="summary", normalized_at=self._now())
        request = InferenceRequest(
            model=profile.llm.model,
            system_prompt="Summarise this conversation for the one who continues it: facts, decisions, open points.",
            messages=(Message(role="user", content=text, origin=origin),),
            tools=(),
            parameters=profile.llm.parameters,
            place=Place(step_id=self._step.step_id, turn=self._record.number, turn_of_step=self._record.number_of_step),
        )
        response, _ = await run_with_retries(
            lambda: self._ask_model(request), self._with.recovery, None, self._with.effects.sleep
        )
        content = f"Summary of the earlier conversation:\n{(response.content or '')[:MODEL_TEXT_CHARS_MAX]}"
        summary = Message(role="user", content=content, origin=origin)
        self._with.summaries[len(left_out)] = summary
        return summary

    def _priced(self, usage: Usage) -> Usage:
        prices = self._with.profile.budget
        cost = usage.input_tokens * prices.input_price + usage.output_tokens * prices.output_price
        return replace(usage, cost=cost / TOKENS_PER_PRICE)

    async def _execute(self) -> None:
        """Phase 5: the calls, in order. The driver's own two are answered in the next phase."""
        assert self._response is not None, "the phase before succeeded"
        others: list[ToolCall] = []
        for call in self._response.calls:
            if call.name in _OWN:
                self._take_own(call)
            else:
                others.append(call)
        judged = await self._with.executor.judge(others, self._tools)
        await self._mark(judged)
        context = ToolContext(state=self._state, workspace=self._with.workspace, trace=traceparent(self._record.trace))
        done = await self._with.executor.execute(judged, context)
        self._record.errors += [one.error for one in done if one.error is not None]
        by_id = {one.call_id: one for one in (*self._record.executions, *done)}
        order = [call.call_id for call in self._response.calls]
        self._record.executions = [by_id[one] for one in order if one in by_id]

    def _take_own(self, call: ToolCall) -> None:
        """Take a report or notes; what does not fit its schema is answered with the reason."""
        fault = input_fault(_OWN[call.name].input_schema, call.arguments)
        now = self._now()
        execution = ToolExecution(
            call_id=call.call_id,
            tool_name=call.name,
            arguments=None,
            started_at=now,
            completed_at=now,
            status="success",
            output=_SAVED,
        )
        if fault is not None or (call.name == REPORT_TOOL and self._report is not None):
            message = fault or "The step was already reported in this turn."
            error = Fault(code="SCHEMA_VIOLATION", message=message)
            self._record.errors.append(error)
            execution = replace(execution, status="error", output=None, error=error)
        elif call.name == PROGRESS_TOOL:
            self._notes.append(str(cast("Mapping[str, Json]", call.arguments)["notes"]))
        else:
            self._report = call
            execution = replace(execution, output=_ACCEPTED)
        self._record.executions.append(execution)

    async def _mark(self, judged: Sequence[JudgedCall]) -> None:
        """Keep "about to call" before calls that must not be made twice (DRIVE-13)."""
        marked = tuple(one.call.call_id for one in judged if one.has_side_effects)
        if not marked:
            return
        self._record.about_to_call = marked
        evidence = Evidence(record=self._record.to_artifact("about_to_call"))
        self._position = await self._send(lambda: self._with.client.save(self._position, evidence))
        self._with.account.close_record()

    async def _persist(self) -> None:
        """Phase 6: one call that keeps the whole turn (TURN-1)."""
        mode = self._with.profile.state.mode
        self._record.changes = () if mode == "none" else self._state.changes()
        if self._report is None or self._task.position.waiting is not None:
            # A check that passes ends its step by itself, so the turn is kept before the call that runs it (DRIVE-16).
            self._position = replace(self._position, unchanged=self._report is not None)
            await self._save("done" if self._report is None else "waiting")
            return
        evidence = self._evidence(cast("Mapping[str, Json]", self._report.arguments or {}))
        self._artifact = self._record.to_artifact("done")
        try:
            position = await self._send(lambda: self._report_step(replace(evidence, record=self._artifact)))
        except RefusedError as refused:
            if server_rule(refused.refusal.code).correction != "model":
                raise
            answer = f"{refused.refusal.code}: {refused.refusal.message} {refused.refusal.suggestion}"
            await self._refuse(answer, refused.fault)
            return
        self._position = replace(position, tokens=self._kept_tokens(position))
        if position.unchanged and self._record.holds(self._report):
            await self._save("waiting")
        elif position.unchanged:
            self._position = replace(self._position, unchanged=False, waiting=None, blockers=())
            await self._refuse(TOO_LARGE_TO_WAIT, Fault(code="VALIDATION_ERROR", message=TOO_LARGE_TO_WAIT))
        elif position.blockers:
            self._answer = refusal_message(position.blockers, position)
        else:
            self._answer = _ACCEPTED

    async def _refuse(self, answer: str, fault: Fault) -> None:
        """Keep the turn without its report. The model reads the answer."""
        self._answer = answer
        self._record.errors.append(fault)
        await self._save("done")

    def _kept_tokens(self, position: Position) -> Tokens:
        """Return the tokens for the next call: an answer that recorded nothing names none for a checkpoint."""
        if position.unchanged and position.tokens.checkpoint is None:
            return replace(position.tokens, checkpoint=self._position.tokens.checkpoint)
        return position.tokens

    async def _save(self, status: TurnStatus) -> None:
        self._artifact = self._record.to_artifact(status)
        evidence = Evidence(notes="\n\n".join(self._notes) or None, record=self._artifact)
        self._position = await self._send(lambda: self._with.client.save(self._position, evidence))

    async def _report_step(self, evidence: Evidence) -> Position:
        """Report the step. With a token that is not known, look once where the run is, and report there."""
        client = self._with.client
        try:
            return await client.report(self._position, evidence)
        except RefusedError as refused:
            if server_rule(refused.refusal.code).correction != "look":
                raise
            now = await client.look(self._position)
            is_same = now.step is not None and now.step.step_id == self._step.step_id and now.tokens.ack is not None
            if not is_same:
                raise
            self._position = now
            return await client.report(now, evidence)

    async def _send(self, call: Callable[[], Awaitable[Position]]) -> Position:
        position, retried = await run_with_retries(call, self._with.recovery, None, self._with.effects.sleep)
        self._record.errors += retried.errors
        return position

    def _evidence(self, arguments: Mapping[str, Json]) -> Evidence:
        """Return the evidence of a report, without what only a person may say (DRIVE-12)."""
        evidence, dropped = evidence_of(arguments, self._notes)
        if dropped:
            self._record.warnings.append(f"Dropped from the report, because a model may not send it: {dropped}.")
        return evidence

    def _emit(self, emission: Emission, error: BaseException | None) -> None:
        """Phase 7: telemetry. It changes no result, so its own failure is a warning (TEL-4)."""
        start = self._now()
        fault = error.fault if isinstance(error, TurnError) else None
        if error is not None and fault is None:
            fault = Fault(code="STATE_ERROR", message=f"The turn was interrupted: {type(error).__name__}.")
        status: PhaseStatus = "ok" if emission.end(self._record, fault) else "failed"
        self._record.phases.append(Phase(name="emit", start=start, end=self._now(), status=status))

    def _now(self) -> str:
        return timestamp(self._with.effects.unix_ms())
