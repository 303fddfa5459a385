"""Errors of turns: a closed set, a strategy for each, and what the server's own codes are for a driver."""

from typing import Any, get_args

import pytest
from tests.support.drive import driving, each, profile

from interlock.drive.agent.profile import ErrorHandler, Reliability, Retry
from interlock.drive.faults import DEFAULTS, Fault, RecoveryStrategy, TurnCode, TurnError, server_rule
from interlock.drive.models.answers import parse_answer
from interlock.drive.models.protocol import InferenceRequest, InferenceResponse
from interlock.drive.recovery.retry import Recovery
from interlock.drive.run.result import EXIT_CODES
from interlock.kernel.errors import CODES, ErrorCode
from interlock.testing.harness import Harness, linear_workflow

CODES_OF_TURNS: tuple[TurnCode, ...] = get_args(TurnCode)
STATED = {
    "VALIDATION_ERROR": ("abort", 0),
    "SCHEMA_VIOLATION": ("abort", 0),
    "CONTENT_FILTERED": ("abort", 0),
    "POLICY_VIOLATION": ("abort", 0),
    "TOOL_ERROR": ("retry", 3),
    "TOOL_TIMEOUT": ("retry", 2),
    "LLM_ERROR": ("retry", 3),
    "LLM_TIMEOUT": ("retry", 2),
    "STATE_ERROR": ("abort", 0),
    "RATE_LIMITED": ("retry", 3),
    "QUOTA_EXCEEDED": ("escalate", 0),
    "CIRCUIT_OPEN": ("fallback", 0),
    "MAX_TURNS_EXCEEDED": ("escalate", 0),
    "MAX_TOKENS_EXCEEDED": ("escalate", 0),
    "DELEGATION_FAILED": ("escalate", 0),
    "ESCALATION_REQUIRED": ("escalate", 0),
}
"""The table of the specification, and what is decided for the codes that it leaves open."""
ABC = linear_workflow("test.abc", "a")


@pytest.mark.inv("FAULT-1", "FAULT-3", "FAULT-4")
def test_there_are_sixteen_codes_and_each_has_the_strategy_of_the_table() -> None:
    assert len(CODES_OF_TURNS) == 16
    assert {code: (rule.strategy, rule.retries) for code, rule in DEFAULTS.items()} == STATED
    assert {rule.strategy for rule in DEFAULTS.values()} | {"skip"} == set(get_args(RecoveryStrategy))


@pytest.mark.inv("FAULT-1")
def test_a_code_of_a_turn_is_never_printed_as_one_of_the_server() -> None:
    printed = {str(Fault(code=code, message="x").to_json()["code"]) for code in CODES_OF_TURNS}
    assert printed.isdisjoint({code.value for code in ErrorCode})


EXITS: dict[str, int] = {"abort": 1, "retry": 1, "fallback": 1, "skip": 5, "escalate": 3}


def raising(code: TurnCode) -> Any:
    def answer(_: InferenceRequest) -> InferenceResponse:
        raise TurnError(Fault(code=code, message="Raised by a test.", recoverable=True))

    return answer


@pytest.mark.inv("FAULT-4")
@pytest.mark.asyncio
@pytest.mark.parametrize("code", CODES_OF_TURNS)
async def test_each_code_of_a_model_is_repeated_and_then_ends_the_drive_as_its_strategy_says(code: TurnCode) -> None:
    strategy, retries = STATED[code]
    async with driving(Harness.in_memory(ABC), raising(code)) as drive:
        result = await drive.start()
        budget = code in ("QUOTA_EXCEEDED", "MAX_TURNS_EXCEEDED", "MAX_TOKENS_EXCEEDED")
        assert result.exit_code == (5 if budget else EXITS[strategy])
        assert len(drive.model.requests) == retries + 1
        assert result.fault is not None
        assert result.fault.code == code


@pytest.mark.inv("FAULT-4")
@pytest.mark.asyncio
@pytest.mark.parametrize("strategy", ["skip", "escalate", "abort", "retry"])
async def test_a_handler_of_the_profile_replaces_the_default(strategy: RecoveryStrategy) -> None:
    handler = {"error_codes": ["LLM_ERROR"], "strategy": strategy, "max_retries": 1, "escalation_target": "ops"}
    stated = profile(reliability={"error_handlers": [handler]})
    async with driving(Harness.in_memory(ABC), each(raising("LLM_ERROR")), stated) as drive:
        result = await drive.start()
        if strategy in ("skip", "retry"):
            assert (result.status, len(drive.model.requests)) == ("complete", 2)
        else:
            assert (result.exit_code, len(drive.model.requests)) == (EXITS[strategy], 1)
            assert result.fault is not None
            assert result.fault.escalation == "ops"


@pytest.mark.inv("FAULT-4")
def test_the_most_specific_number_of_retries_wins() -> None:
    own, shared = Retry(max_retries=7), Retry(max_retries=5)
    handler = ErrorHandler(error_codes=("TOOL_ERROR",), strategy="retry", max_retries=9)
    assert Recovery(reliability=Reliability()).retries("TOOL_ERROR", None) == 3
    assert Recovery(reliability=Reliability(retry=shared)).retries("TOOL_ERROR", None) == 5
    assert Recovery(reliability=Reliability(retry=shared)).retries("TOOL_ERROR", own) == 7
    both = Recovery(reliability=Reliability(retry=shared, error_handlers=(handler,)))
    assert both.retries("TOOL_ERROR", own) == 9
    assert both.retries("VALIDATION_ERROR", own) == 0


def test_a_pause_grows_up_to_its_limit() -> None:
    rule = Retry(initial_delay_ms=100, max_delay_ms=350, backoff_multiplier=2)
    recovery = Recovery(reliability=Reliability(retry=rule))
    fault = Fault(code="LLM_ERROR", message="x")
    assert [recovery.delay_seconds(fault, number, None) for number in (1, 2, 3)] == [0.1, 0.2, 0.35]


@pytest.mark.parametrize("code", list(CODES))
def test_every_code_of_the_server_has_a_meaning_for_a_driver(code: ErrorCode) -> None:
    rule = server_rule(code)
    assert rule.code in CODES_OF_TURNS
    if code.startswith("TOKEN_") and code is not ErrorCode.TOKEN_SESSION_LOCKED:
        assert rule.correction == "look"
    if code in (ErrorCode.RUN_ENDED, ErrorCode.STORE_READ_ONLY, ErrorCode.KEYRING_DAMAGED):
        assert (rule.code, rule.correction) == ("STATE_ERROR", "abort")


def test_every_status_has_an_exit_code_of_its_own() -> None:
    assert sorted(EXIT_CODES.values()) == [0, 1, 3, 4, 5, 6]


@pytest.mark.asyncio
@pytest.mark.inv("FAULT-2")
@pytest.mark.parametrize(
    ("stated", "after", "waits"),
    [
        ({}, 60_000, True),
        ({}, 3_600_000, False),
        ({"max_delay_ms": 100}, 60_000, False),
        ({"max_delay_ms": 10**7}, 3_600_000, True),
    ],
)
async def test_an_error_that_asks_for_a_longer_pause_than_the_agent_waits_ends_the_drive(
    stated: dict[str, Any], after: int, *, waits: bool
) -> None:
    def limited(_: InferenceRequest) -> InferenceResponse:
        raise TurnError(Fault(code="RATE_LIMITED", message="Slow.", recoverable=True, retry_after_ms=after))

    reliability = {"reliability": {"retry": stated}} if stated else {}
    async with driving(Harness.in_memory(ABC), each(limited), profile(**reliability)) as drive:
        result = await drive.start()
        assert drive.effects.slept == ([after / 1000] if waits else [])
    assert result.status == ("complete" if waits else "failed")


@pytest.mark.parametrize("code", [*CODES_OF_TURNS, "turn.LLM_TIMEOUT", "context_length_exceeded"])
def test_a_model_reports_errors_of_its_own_and_none_of_the_driver(code: str) -> None:
    """A model's own limit of turns is no limit of the run: a higher budget would not continue it."""
    with pytest.raises(TurnError) as raised:
        parse_answer({"error": {"code": code, "message": "Stopped."}}, "m")
    own = code.removeprefix("turn.")
    if own in ("LLM_ERROR", "LLM_TIMEOUT", "RATE_LIMITED", "QUOTA_EXCEEDED", "CONTENT_FILTERED"):
        assert (raised.value.fault.code, raised.value.fault.message) == (own, "Stopped.")
    else:
        assert raised.value.fault.code == "LLM_ERROR"
        assert raised.value.fault.message == f"The model reported {own}: Stopped."
