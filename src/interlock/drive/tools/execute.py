"""Executes the calls of a model: judged first, then called in order, retried, timed out, filtered (TOOL-4)."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence

import anyio

from interlock.drive.agent.profile import Retry
from interlock.drive.conversation.filtering import Filter
from interlock.drive.conversation.messages import ToolCall, carried
from interlock.drive.effects import Effects, timestamp
from interlock.drive.faults import Fault, ToolAnswerError, TurnError
from interlock.drive.record import PROGRESS_TOOL, REPORT_TOOL, ToolExecution
from interlock.drive.recovery.breaker import Breakers
from interlock.drive.recovery.retry import Recovery, run_with_retries
from interlock.drive.tools.tool import ResolvedTool, ToolContext
from interlock.drive.tools.toolbox import input_fault
from interlock.kernel.budgets.drive import TOOL_ARGUMENTS_BYTES_MAX, TOOL_OUTPUT_CHARS_MAX
from interlock.kernel.canonical import Json, canonical_bytes
from interlock.kernel.frozen import frozen, replace

Ask = Callable[[str], Awaitable[bool]]
"""Asks the person at the terminal a question that is answered by yes or no."""

_NO_RETRY = Retry(max_retries=0)


@frozen
class JudgedCall:
    """A call that was judged before anything is called: the tool, or why there is no call."""

    call: ToolCall
    tool: ResolvedTool | None
    refusal: Fault | None

    @property
    def has_side_effects(self) -> bool:
        """Whether the call will be made and must not be made twice."""
        return self.refusal is None and self.tool is not None and not self.tool.hints.may_repeat


@frozen
class Executor:
    """Calls tools by the rules of one agent. `ask` is None if no person can be asked."""

    recovery: Recovery
    breakers: Breakers
    output_filter: Filter
    effects: Effects
    ask: Ask | None = None

    async def judge(self, calls: Sequence[ToolCall], tools: Mapping[str, ResolvedTool]) -> list[JudgedCall]:
        """Judge each call: is there such a tool, do its arguments fit, is it permitted (TOOL-3)?"""
        return [await self._judge(call, tools) for call in calls]

    async def _judge(self, call: ToolCall, tools: Mapping[str, ResolvedTool]) -> JudgedCall:
        tool = tools.get(call.name)
        if tool is None:
            known = ", ".join((REPORT_TOOL, PROGRESS_TOOL, *tools))
            message = f"There is no tool {call.name!r}. The tools are: {known}."
            return JudgedCall(call=call, tool=None, refusal=Fault(code="VALIDATION_ERROR", message=message))
        size = len(canonical_bytes(call.arguments))
        if size > TOOL_ARGUMENTS_BYTES_MAX:
            message = f"The arguments have {size} bytes; at most {TOOL_ARGUMENTS_BYTES_MAX} are allowed."
            return JudgedCall(call=call, tool=tool, refusal=Fault(code="VALIDATION_ERROR", message=message))
        fault = input_fault(tool.input_schema, call.arguments)
        if fault is not None:
            refusal = Fault(code="SCHEMA_VIOLATION", message=f"The arguments do not fit the schema: {fault}")
            return JudgedCall(call=call, tool=tool, refusal=refusal)
        return JudgedCall(call=call, tool=tool, refusal=await self._policy_fault(call, tool))

    async def _policy_fault(self, call: ToolCall, tool: ResolvedTool) -> Fault | None:
        if tool.permission == "allow":
            return None
        if self.ask is not None:
            arguments = canonical_bytes(call.arguments).decode()
            if await self.ask(f"May the agent call {call.name} with {arguments}?"):
                return None
            return Fault(code="POLICY_VIOLATION", message=f"The user did not allow the call of {call.name!r}.")
        message = (
            f"The tool {call.name!r} needs a person's permission, and no person is here. Do without it; the profile"
            " can allow it by `permission: allow`."
        )
        return Fault(code="POLICY_VIOLATION", message=message)

    async def execute(self, judged: Sequence[JudgedCall], context: ToolContext) -> list[ToolExecution]:
        """Make the calls; the results are in the order of the request (TOOL-4).

        Adjacent calls of tools that allow it run at the same time.

        Raises:
            TurnError: An error whose strategy is to abort or to escalate.
        """
        results: list[ToolExecution] = []
        group: list[JudgedCall] = []
        for one in judged:
            is_parallel = one.tool is not None and one.tool.is_parallel
            if group and not is_parallel:
                results += await self._together(group, context)
                group = []
            if is_parallel:
                group.append(one)
            else:
                results.append(await self._one(one, context))
        return results + await self._together(group, context)

    async def _together(self, group: Sequence[JudgedCall], context: ToolContext) -> list[ToolExecution]:
        done: dict[int, ToolExecution] = {}
        failed: dict[int, TurnError] = {}

        async def run(at: int) -> None:
            try:
                done[at] = await self._one(group[at], context)
            except TurnError as error:
                failed[at] = error

        async with anyio.create_task_group() as tasks:
            for at in range(len(group)):
                tasks.start_soon(run, at)
        if failed:
            raise failed[min(failed)]
        return [done[at] for at in range(len(group))]

    async def _one(self, judged: JudgedCall, context: ToolContext) -> ToolExecution:
        started = self._now()
        call = judged.call
        blank = ToolExecution(
            call_id=call.call_id,
            tool_name=call.name,
            arguments=call.arguments,
            started_at=started,
            completed_at=started,
            status="error",
            error=judged.refusal,
        )
        if judged.refusal is not None or judged.tool is None:
            return blank
        tries = 0

        async def attempt() -> Json:
            nonlocal tries
            tries += 1
            return await self._attempt(judged, context)

        try:
            output, _ = await run_with_retries(attempt, self._recovery_of(judged.tool), judged.tool.retry, self._sleep)
        except TurnError as error:
            return self._failed(replace(blank, completed_at=self._now(), retries=max(tries - 1, 0)), judged.tool, error)
        return replace(blank, completed_at=self._now(), status="success", output=output, error=None, retries=tries - 1)

    def _recovery_of(self, tool: ResolvedTool) -> Recovery:
        """Return the rules of a tool: one with side effects is repeated only if its own entry says so."""
        if tool.hints.may_repeat or tool.retry is not None:
            return self.recovery
        handlers = tuple(one for one in self.recovery.reliability.error_handlers if one.strategy != "retry")
        once = self.recovery.reliability.model_copy(
            update={"retry": _NO_RETRY, "error_handlers": handlers},
        )
        return Recovery(reliability=once)

    def _failed(self, execution: ToolExecution, tool: ResolvedTool, error: TurnError) -> ToolExecution:
        """Decide what a failure that was not repaired is: a result for the model, a fallback, or the end of the turn.

        Raises:
            TurnError: The strategy is to abort or to escalate.
        """
        fault = error.fault
        handler = self.recovery.handler(fault.code)
        strategy = self.recovery.strategy(fault.code)
        if strategy == "fallback":
            value = handler.fallback_value if handler is not None else tool.fallback
            if value is not None:
                return replace(execution, status="success", output=value, error=None)
            message = f"{fault.message} No fallback is configured for it."
            raise TurnError(replace(fault, message=message))
        if handler is not None and strategy in ("abort", "escalate"):
            raise TurnError(replace(fault, escalation=handler.escalation_target))
        if fault.code == "STATE_ERROR":
            raise error
        return replace(execution, status="timeout" if fault.code == "TOOL_TIMEOUT" else "error", error=fault)

    async def _attempt(self, judged: JudgedCall, context: ToolContext) -> Json:
        tool = judged.tool
        assert tool is not None, "as judged"
        if not self.breakers.begin(tool.name, self.effects.monotonic()):
            message = f"The tool {tool.name!r} failed too often; its circuit breaker is open."
            raise TurnError(Fault(code="CIRCUIT_OPEN", message=message))
        try:
            output = await self._timed(tool, judged.call, context)
        except TurnError as error:
            # A policy, an argument or an answer is no sign of a broken tool.
            is_broken = error.fault.code in ("TOOL_ERROR", "TOOL_TIMEOUT") and not isinstance(error, ToolAnswerError)
            self.breakers.end(tool.name, "failed" if is_broken else "succeeded", self.effects.monotonic())
            raise
        except BaseException:
            self.breakers.end(tool.name, "failed", self.effects.monotonic())
            raise
        self.breakers.end(tool.name, "succeeded", self.effects.monotonic())
        return output

    async def _timed(self, tool: ResolvedTool, call: ToolCall, context: ToolContext) -> Json:
        arguments = call.arguments if isinstance(call.arguments, dict) else {}
        try:
            with anyio.fail_after(tool.timeout_ms / 1000):
                raw = await tool.invoke(arguments, context)
        except TimeoutError as error:
            message = f"The tool {tool.name!r} took longer than {tool.timeout_ms} ms and was cancelled."
            raise TurnError(Fault(code="TOOL_TIMEOUT", message=message, recoverable=True)) from error
        except TurnError:
            raise
        except Exception as error:  # a tool is foreign code, and its failure is data for the model
            message = f"The tool {tool.name!r} failed: {type(error).__name__}: {error}"
            raise TurnError(Fault(code="TOOL_ERROR", message=message, recoverable=True)) from error
        return self._output(tool, raw)

    def _output(self, tool: ResolvedTool, raw: object) -> Json:
        """Return the output as JSON, filtered and within its budget (TOOL-7)."""
        try:
            json.dumps(raw, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            message = f"The tool {tool.name!r} returned what is no JSON: {error}."
            raise TurnError(Fault(code="TOOL_ERROR", message=message)) from error
        output = self.output_filter.value(carried(raw))
        size = len(canonical_bytes(output))
        if size <= TOOL_OUTPUT_CHARS_MAX:
            return output
        text = canonical_bytes(output).decode()[:TOOL_OUTPUT_CHARS_MAX]
        return {"text": text, "isCut": True, "bytes": size}

    async def _sleep(self, seconds: float) -> None:
        await self.effects.sleep(seconds)

    def _now(self) -> str:
        return timestamp(self.effects.unix_ms())
