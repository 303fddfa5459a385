"""Repeats a failed call as often and as late as the most specific rule says."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar, cast

from tenacity import AsyncRetrying, RetryCallState

from interlock.drive.agent.profile import ErrorHandler, Reliability, Retry
from interlock.drive.faults import DEFAULTS, Fault, RecoveryStrategy, TurnCode, TurnError
from interlock.kernel.budgets.drive import RETRY_AFTER_MS_MAX
from interlock.kernel.frozen import frozen

Result = TypeVar("Result")
Sleep = Callable[[float], Awaitable[None]]


@frozen
class Recovery:
    """The rules of recovery of one agent. The most specific one wins: handler, tool, agent, table (FAULT-4)."""

    reliability: Reliability

    def handler(self, code: TurnCode) -> ErrorHandler | None:
        """Return the first handler that names a code."""
        return next((one for one in self.reliability.error_handlers if code in one.error_codes), None)

    def strategy(self, code: TurnCode) -> RecoveryStrategy:
        """Return what to do about a code."""
        handler = self.handler(code)
        return DEFAULTS[code].strategy if handler is None else handler.strategy

    def retries(self, code: TurnCode, own: Retry | None) -> int:
        """Return how often a call that failed with a code is repeated. `own` is the rule of the tool."""
        if self.strategy(code) != "retry":
            return 0
        handler = self.handler(code)
        stated = (
            handler.max_retries if handler is not None else None,
            own.max_retries if own is not None else None,
            self.reliability.retry.max_retries if self.reliability.retry is not None else None,
        )
        return next((one for one in stated if one is not None), DEFAULTS[code].retries)

    def delay_seconds(self, fault: Fault, retry_number: int, own: Retry | None) -> float:
        """Return the pause before a retry, counted from 1: what the error asks for, else a growing one."""
        if fault.retry_after_ms is not None:
            return fault.retry_after_ms / 1000
        rule = self._rule(own)
        return min(rule.initial_delay_ms * rule.backoff_multiplier ** (retry_number - 1), rule.max_delay_ms) / 1000

    def waits_for(self, fault: Fault, own: Retry | None) -> bool:
        """Say whether the pause that an error asks for, if any, is no longer than the agent waits."""
        rule = self._rule(own)
        longest = rule.max_delay_ms if "max_delay_ms" in rule.model_fields_set else RETRY_AFTER_MS_MAX
        return fault.retry_after_ms is None or fault.retry_after_ms <= longest

    def _rule(self, own: Retry | None) -> Retry:
        return own or self.reliability.retry or Retry()


@frozen
class Retried:
    """What repeating a call came to: its result or its last error, and how often it was repeated."""

    retries: int
    errors: Sequence[Fault]


async def run_with_retries(
    call: Callable[[], Awaitable[Result]], recovery: Recovery, own: Retry | None, sleep: Sleep
) -> tuple[Result, Retried]:
    """Make a call, and repeat it while its error allows that. A recovered call lists the errors before it.

    Raises:
        TurnError: The error of the last try.
    """
    errors: list[Fault] = []

    def may_repeat(state: RetryCallState) -> bool:
        error = state.outcome.exception() if state.outcome is not None else None
        if not isinstance(error, TurnError):
            return False
        fault = error.fault
        errors.append(fault)
        is_left = state.attempt_number <= recovery.retries(fault.code, own)
        return fault.recoverable and is_left and recovery.waits_for(fault, own)

    def wait(state: RetryCallState) -> float:
        return recovery.delay_seconds(errors[-1], state.attempt_number, own)

    async def attempt() -> Result:
        return await call()

    retrying = AsyncRetrying(sleep=sleep, wait=wait, retry=may_repeat, reraise=True)
    result = cast("Result", await retrying(attempt))  # the library types its result for plain functions alone
    return result, Retried(retries=len(errors), errors=tuple(errors))
