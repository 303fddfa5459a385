"""Drives a run to its end, one turn at a time. It changes nothing but by the tools of the server."""

from collections.abc import Callable, Mapping
from typing import Literal

from interlock.drive.client import Evidence, Position, StartOptions, evidence_of
from interlock.drive.conversation.messages import Message
from interlock.drive.faults import Fault, TurnCode, TurnError
from interlock.drive.instructions import CUT_OFF, UNREPORTED, refusal_message, step_message
from interlock.drive.models.protocol import Usage
from interlock.drive.record import PastTurn, RunHistory, error_messages, report_of
from interlock.drive.recovery.retry import run_with_retries
from interlock.drive.run.result import DriveResult, DriveStatus, status_of
from interlock.drive.run.waiting import (
    NOT_PASSED,
    Repair,
    failed_result,
    failed_run,
    fixes,
    needs_person,
    not_come,
    waits_for,
)
from interlock.drive.turn import DELEGATION, Equipment, Input, Turn, TurnOutcome, TurnTask
from interlock.kernel.budgets import CHECKPOINTS_PER_NODE_MAX
from interlock.kernel.budgets.drive import (
    CHECKPOINTS_RESERVED,
    REPAIR_TURNS_MAX,
    WAIT_PAUSE_S_MAX,
    WAIT_PAUSE_S_MIN,
)
from interlock.kernel.canonical import Json, canonical_bytes
from interlock.kernel.errors import ErrorCode
from interlock.kernel.frozen import frozen, replace

Settled = Literal["happened", "not_happened"]
"""What a person says of a call that was about to be made when its driver ended."""
_LOST_REPORT = "The report was not sent, because the driver ended. Send it again."
_HAPPENED: Json = "A person says that the call took place. Its output is lost."


@frozen
class Progress:
    """Where a drive is, for a live picture."""

    position: Position
    turn: int
    usage: Usage
    seconds: float
    tools: tuple[str, ...] = ()


def any_step(_: str) -> bool:
    """Say that an agent works on every step."""
    return True


@frozen
class Scope:
    """Which steps of a run a driver works on, and what its agent receives of the run.

    `may_work` says which steps are the agent's. `brief` is an input of its first turn. Without `include_history`, the
    conversation holds its own turns alone; without `include_state`, its state begins empty. `delegated_by` is the
    trace of the turn after which it was delegated. `began` is when the whole drive began, on the clock of the driver.
    `turns_before` are those of the run, for a driver that does not read its history.
    """

    may_work: Callable[[str], bool] = any_step
    brief: str | None = None
    include_history: bool = True
    include_state: bool = True
    delegated_by: Mapping[str, Json] | None = None
    began: float | None = None
    turns_before: int = 0


class _WaitingError(TurnError):
    """What the step waits for did not come in time."""


class Driver:
    """Drives one run. `on_progress` is called before and after each turn."""

    def __init__(
        self,
        equipment: Equipment,
        *,
        on_progress: Callable[[Progress], None] | None = None,
        scope: Scope | None = None,
    ) -> None:
        self._with = equipment
        self._scope = scope or Scope()
        self._brief = self._scope.brief
        self._on_progress = on_progress
        self._began = equipment.effects.monotonic() if self._scope.began is None else self._scope.began
        self._history = RunHistory()
        self._previous: Mapping[str, Json] | None = None
        self._answer: str | None = None
        self._chain_id, self._chain_turns, self._refused_turns = equipment.effects.new_id(), 0, 0
        self._position: Position | None = None
        self._repair = Repair()
        self._answered, self._same_answers = b"", 0

    async def start(self, options: StartOptions) -> DriveResult:
        """Begin a run and drive it.

        Raises:
            TurnError: The run cannot be started.
        """
        position = await self._with.client.start(options)
        self._with.account.begin_run(position.run, Usage())
        return await self._drive(position, settled=None)

    async def continue_at(self, position: Position) -> DriveResult:
        """Drive from a position whose turns are not known or do not matter."""
        return await self._drive(position, settled=None)

    async def resume(self, run: str, settled: Settled | None = None) -> DriveResult:
        """Continue a run where it is, in the middle of its step if turns of it are recorded.

        Args:
            run: The id or the label of the run.
            settled: What a person says of calls whose result was lost.

        Raises:
            TurnError: The run cannot be found or read.
        """
        position = await self._with.client.find(run)
        self._history = await self._with.client.history(position)
        self._with.account.begin_run(position.run, self._history.usage)
        mode = self._with.profile.state.mode
        if mode != "none" and self._scope.include_state:
            self._with.store.apply(self._history.changes())
        if position.blockers:
            self._answer = refusal_message(position.blockers, position)
        return await self._drive(position, settled=settled)

    async def _drive(self, position: Position, *, settled: Settled | None) -> DriveResult:
        self._position = position
        # What failed before this drive may be corrected by now: the check runs first.
        self._repair.seen = failed_run(position)
        try:
            await self._with.toolbox.resolve()
            await self._settle_marks(settled)
            while not self._is_over():
                await self._step_on()
        except TurnError as error:
            return await self._stopped(error)
        position = self._position
        if position.ended is not None:
            message = f"The run has ended: {position.ended.get('status')}, {position.ended.get('reason')}."
            return self._result("failed", Fault(code="STATE_ERROR", message=message))
        if not position.is_complete:
            return self._result("person_needed", None)
        return self._result("complete_with_gaps" if position.has_gaps else "complete", None)

    def _is_over(self) -> bool:
        position = self._at
        is_handed_over = position.step is not None and not self._scope.may_work(position.step.step_id)
        return position.is_complete or position.ended is not None or is_handed_over

    @property
    def _at(self) -> Position:
        assert self._position is not None, "a drive has a position"
        return self._position

    async def _step_on(self) -> None:
        """Do one turn, or wait for what the step waits for."""
        position = self._at
        if failed_run(position) > self._repair.seen:
            position = self._show_failure(position)
        last = self._history.of_step[-1] if self._history.of_step else None
        is_reported = last is not None and last.status == "waiting"
        if (position.waiting is not None and not self._repair.is_open) or is_reported:
            evidence = evidence_of(report_of(last))[0] if last is not None and is_reported else Evidence()
            moved = await self._wait(position, evidence)
            if not moved.unchanged:
                self._move(moved)
            return
        self._refuse_stuck(position)
        self._check_limits()
        await self._confirm()
        self._report_progress(())
        turn = Turn(self._with, self._task())
        outcome = await self._run(turn)
        if outcome is not None:
            self._take(outcome)

    async def _run(self, turn: Turn) -> TurnOutcome | None:
        """Run a turn; None if an error is to be skipped: then nothing of the turn was kept."""
        try:
            return await turn.run()
        except TurnError as error:
            if self._with.recovery.strategy(error.fault.code) != "skip":
                raise
            self._chain_turns += 1
            return None

    def _show_failure(self, position: Position) -> Position:
        """Let the model correct the cause of a check that failed. Its report runs the check again (DRIVE-16).

        Raises:
            TurnError: The check failed in the same way after each of the latest reports.
        """
        self._repair.begin(position)
        last = self._history.of_step[-1] if self._history.of_step else None
        if last is not None and last.status == "waiting":
            self._history = self._history.with_turn({**last.artifact, "status": "done"}, 0)
            self._answer, self._previous = NOT_PASSED, {"answer": NOT_PASSED}
        self._position = replace(position, unchanged=False)
        return self._position

    def _refuse_stuck(self, position: Position) -> None:
        """Raise if the run needs a person.

        Raises:
            TurnError: `ESCALATION_REQUIRED` or `STATE_ERROR`.
        """
        if position.tokens.ack is None:
            message = f"The step was refused as often as it may be. {fixes(position)}".strip()
            details: dict[str, Json] = {"serverCode": ErrorCode.ATTEMPT_LIMIT_REACHED.value}
            raise TurnError(Fault(code="ESCALATION_REQUIRED", message=message, details=details))
        codes = {str(one.get("code")) for one in position.blockers}
        if "STORAGE_CORRUPTION_DETECTED" in codes:
            raise TurnError(Fault(code="STATE_ERROR", message=fixes(position)))
        if codes == {"USER_ONLY_DEPENDENCY"}:
            raise TurnError(Fault(code="ESCALATION_REQUIRED", message=fixes(position)))

    def _check_limits(self) -> None:
        """Raise if a limit of the run, of the chain or of the step is used up (DRIVE-8, DRIVE-9).

        Raises:
            TurnError: One of the codes of budgets.
        """
        profile, usage = self._with.profile, self._with.account.total
        turns = self._scope.turns_before + self._history.number
        seconds = self._with.effects.monotonic() - self._began
        chain = profile.turn_chain
        most = profile.constraints.max_turns
        if turns >= most:
            message = f"The run has had {turns} turns; {most} are allowed."
            raise _used_up("MAX_TURNS_EXCEEDED", message, "constraints.max_turns", used=turns, allowed=most)
        if self._chain_turns >= (chain.max_tool_turns if chain.continue_on_tool_use else 1):
            message = f"The model called tools in {self._chain_turns} turns in a row without reporting the step."
            raise _used_up("MAX_TURNS_EXCEEDED", message, "turn_chain")
        if self._history.checkpoints >= CHECKPOINTS_PER_NODE_MAX - CHECKPOINTS_RESERVED:
            message = f"The step has {self._history.checkpoints} recorded turns, which is the limit of a step."
            raise _used_up("MAX_TURNS_EXCEEDED", message, "checkpoints")
        if profile.budget.max_cost is not None and usage.cost >= profile.budget.max_cost:
            message = f"The run has cost {usage.cost:.6f}; {profile.budget.max_cost} is allowed."
            raise _used_up("QUOTA_EXCEEDED", message, "budget.max_cost")
        if profile.budget.max_seconds is not None and seconds >= profile.budget.max_seconds:
            message = f"The drive took {seconds:.1f} s; {profile.budget.max_seconds} s are allowed."
            raise _used_up("QUOTA_EXCEEDED", message, "budget.max_seconds")
        if self._same_answers >= REPAIR_TURNS_MAX:
            raise TurnError(Fault(code="VALIDATION_ERROR", message=self._same_answer_message()))
        if self._refused_turns >= REPAIR_TURNS_MAX:
            reasons = error_messages(self._history.turns[-1])
            message = f"All calls of the model were refused in {self._refused_turns} turns in a row. Last: {reasons}"
            raise TurnError(Fault(code="VALIDATION_ERROR", message=message))

    async def _confirm(self) -> None:
        """Ask before a turn that follows another one, if the profile says so (DRIVE-9).

        Raises:
            TurnError: No person can be asked, or the answer is no.
        """
        if not self._with.profile.turn_chain.confirm_between_turns or not self._history.turns:
            return
        ask, number = self._with.executor.ask, self._history.number + 1
        if ask is None or not await ask(f"Continue with turn {number}?"):
            message = f"Turn {number} needs a person's confirmation: `turn_chain.confirm_between_turns`."
            raise TurnError(Fault(code="ESCALATION_REQUIRED", message=message))

    def _task(self) -> TurnTask:
        history, position = self._history, self._at
        return TurnTask(
            position=position,
            conversation=history.conversation(
                self._answer, only_of=None if self._scope.include_history else self._with.profile.identity.id
            ),
            inputs=self._inputs(),
            number=history.number + 1,
            number_of_step=len(history.of_step) + 1,
            chain_id=self._chain_id,
            pinned=_pinned(history),
            delegated_by=self._scope.delegated_by,
            previous=self._previous,
        )

    def _inputs(self) -> list[Input]:
        """Return the new inputs: the step if it is new, else a reminder if the model called nothing."""
        position, turns = self._at, self._history.of_step
        brief = [] if self._brief is None else [(DELEGATION, self._brief)]
        failed = [] if self._repair.message is None else [("check_result", self._repair.message)]
        self._brief = self._repair.message = None
        if not turns or brief:
            assert position.step is not None, "a turn works on a step"
            recap = [("recap", position.recap)] if position.recap is not None and not self._history.turns else []
            return [*recap, *brief, ("workflow_step", step_message(position, position.step)), *failed]
        if failed:
            return failed
        response = turns[-1].response
        if response is None or response.calls:
            return []
        model = turns[-1].artifact.get("model")
        is_cut = isinstance(model, dict) and model.get("finishReason") == "length"
        return [("reminder", CUT_OFF if is_cut else UNREPORTED)]

    def _take(self, outcome: TurnOutcome) -> None:
        """Take over what a turn came to."""
        checkpoints = 0 if outcome.is_accepted else 1
        checkpoints += bool(outcome.artifact.get("aboutToCall"))
        self._history = self._history.with_turn(outcome.artifact, checkpoints)
        self._previous, self._answer = outcome.closing, outcome.answer
        self._refused_turns = self._refused_turns + 1 if outcome.refused else 0
        self._count_same_answer(outcome)
        is_same_step = not outcome.is_accepted
        if outcome.has_calls and is_same_step and not outcome.reported:
            self._chain_turns += 1
        else:
            self._chain_id, self._chain_turns = self._with.effects.new_id(), 0
        self._position = outcome.position
        if outcome.position.unchanged:
            self._repair.is_open = False
        if outcome.is_accepted:
            self._history, self._repair = self._history.at_next_step(), Repair()
        self._report_progress(tuple(call.name for call in self._history.turns[-1].calls))

    def _count_same_answer(self, outcome: TurnOutcome) -> None:
        """Count equal answers in a row that did not end the step: refused reports that lacked the same, and texts.

        Turns between them that only call tools do not matter.
        """
        last = self._history.turns[-1]
        if outcome.has_calls and not outcome.reported:
            return
        if not outcome.has_calls:
            answered = canonical_bytes({"text": _text_of(last).strip()})
        elif last.report is not None and outcome.position.blockers:
            answered = canonical_bytes({"sent": last.report.arguments, "lacks": fixes(outcome.position)})
        else:
            self._answered, self._same_answers = b"", 0
            return
        self._same_answers = self._same_answers + 1 if answered == self._answered else 1
        self._answered = answered

    def _same_answer_message(self) -> str:
        count, last = self._same_answers, self._history.turns[-1]
        if last.calls:
            return f"The model sent the same report {count} times, and each was refused: {fixes(self._at)}"
        kind = "the same text" if _text_of(last).strip() else "an empty answer"
        return f"The model gave {kind} {count} times and called no tool, so the step was not reported."

    def _move(self, position: Position) -> None:
        """Go to where the run is after what a step waited for arrived, or after its report was refused."""
        self._position = position
        if position.blockers:
            self._answer = refusal_message(position.blockers, position)
            last = self._history.of_step[-1] if self._history.of_step else None
            if last is not None:
                self._history = self._history.with_turn({**last.artifact, "status": "done"}, 0)
        else:
            self._history, self._repair = self._history.at_next_step(), Repair()
        self._previous = {"answer": self._answer} if self._answer is not None else None

    async def _wait(self, position: Position, evidence: Evidence) -> Position:
        """Ask again with a growing pause until what the step waits for is there, its check failed, or the time is over.

        Raises:
            TurnError: A person is needed, or the time is over.
        """
        effects = self._with.effects
        until, pause = effects.monotonic() + self._with.profile.max_wait_seconds, WAIT_PAUSE_S_MIN
        while True:
            if waits_for(position) == "check":
                # A call runs a failed check again, so look first whether it has failed or passed since.
                now = await self._with.client.look(position)
                if now.tokens.ack != position.tokens.ack:
                    return now
                if failed_run(now) > self._repair.seen:
                    self._position = replace(now, unchanged=True)
                    return self._position
            asked = position
            position, _ = await run_with_retries(
                lambda asked=asked: self._with.client.report(asked, evidence), self._with.recovery, None, effects.sleep
            )
            if not position.unchanged:
                return position
            if position.tokens.checkpoint is None:
                position = replace(position, tokens=replace(position.tokens, checkpoint=asked.tokens.checkpoint))
            self._position = position
            if position.waiting is None or waits_for(position) == "approval":
                raise TurnError(Fault(code="ESCALATION_REQUIRED", message=needs_person(position)))
            if failed_run(position) > self._repair.seen:
                return position
            if effects.monotonic() >= until:
                message = not_come(position, self._with.profile.max_wait_seconds)
                raise _WaitingError(Fault(code="ESCALATION_REQUIRED", message=message))
            await effects.sleep(min(pause, max(until - effects.monotonic(), 0.0)))
            pause = min(2 * pause, WAIT_PAUSE_S_MAX)

    async def _settle_marks(self, settled: Settled | None) -> None:
        """Settle calls that were about to be made when a driver ended: they are never repeated (DRIVE-13).

        Raises:
            TurnError: Nobody said what became of them.
        """
        last = self._history.of_step[-1] if self._history.of_step else None
        if last is None or last.status != "about_to_call":
            return
        lost = [call for call in last.about_to_call if call not in last.results]
        names = ", ".join(one.name for one in last.calls if one.call_id in lost)
        question = f"A driver ended while it called {names}. Did the call take place?"
        if settled is None and self._with.executor.ask is not None:
            settled = "happened" if await self._with.executor.ask(question) else "not_happened"
        if settled is None:
            message = f"{question} Look, then resume with `--lost-calls happened` or `--lost-calls not-happened`."
            raise TurnError(Fault(code="ESCALATION_REQUIRED", message=message, details={"calls": list(lost)}))
        artifact = _settled_artifact(last, lost, settled)
        self._position = await self._with.client.save(self._at, Evidence(record=artifact))
        self._history = self._history.with_turn(artifact, 1)
        self._answer = self._answer or _LOST_REPORT
        self._previous = {"turn": last.number, "answer": self._answer}

    async def _stopped(self, error: TurnError) -> DriveResult:
        if isinstance(error, _WaitingError):
            return self._result("waiting", error.fault)
        strategy = self._with.recovery.strategy(error.fault.code)
        handler = self._with.recovery.handler(error.fault.code)
        target = handler.escalation_target if handler is not None else None
        fault = error.fault if target is None else replace(error.fault, escalation=target)
        result = failed_result(self._at)
        if result and result not in fault.message:
            fault = replace(fault, message=f"{fault.message} {result}")
        return self._result(status_of(fault, strategy), fault)

    def _result(
        self,
        status: DriveStatus,
        fault: Fault | None,
    ) -> DriveResult:
        recorded = [turn.artifact.get("warnings") for turn in self._history.turns]
        texts = [str(one) for found in recorded if isinstance(found, list) for one in found]
        return DriveResult(
            status=status,
            position=self._at,
            turns=self._history.number,
            usage=self._with.account.total,
            fault=fault,
            warnings=tuple(dict.fromkeys(texts)),
        )

    def _report_progress(self, tools: tuple[str, ...]) -> None:
        if self._on_progress is not None:
            seconds = self._with.effects.monotonic() - self._began
            turn, usage = self._history.number, self._with.account.total
            self._on_progress(Progress(position=self._at, turn=turn, usage=usage, seconds=seconds, tools=tools))


def _pinned(history: RunHistory) -> Message | None:
    """Return the message of the pending step."""
    inputs = (one for turn in history.of_step for one in turn.inputs)
    return next((one for one in inputs if one.origin.original_format == "workflow_step"), None)


def _text_of(turn: PastTurn) -> str:
    return "" if turn.response is None else turn.response.text()


def _used_up(code: TurnCode, message: str, limit: str, **counts: int) -> TurnError:
    """Return the error of a limit that is used up, which its details name."""
    return TurnError(Fault(code=code, message=message, details={"limit": limit, **counts}))


def _settled_artifact(turn: PastTurn, lost: list[str], settled: Settled) -> dict[str, Json]:
    """Return the record of a turn with results for the calls whose own were lost."""
    calls = {one.call_id: one for one in turn.calls}
    result: Json = {"status": "success", "output": _HAPPENED}
    if settled == "not_happened":
        error: Json = {"code": "turn.TOOL_ERROR", "message": "A person says that the call did not take place."}
        result = {"status": "error", "error": error}
    tools = turn.artifact.get("tools")
    settled_calls: list[Json] = [
        {"callId": one, "toolName": calls[one].name, "input": calls[one].arguments, "result": result, "retries": 0}
        for one in lost
        if one in calls
    ]
    known = tools if isinstance(tools, list) else []
    return {**turn.artifact, "status": "done", "tools": [*known, *settled_calls]}
