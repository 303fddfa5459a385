"""The errors of a turn: a closed set of codes apart from the server's, with the strategy that each has by default."""

from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Literal, TypeAlias

from interlock.kernel.canonical import Json
from interlock.kernel.errors import ErrorCode, InterlockError, RetryKind
from interlock.kernel.frozen import frozen

TurnCode = Literal[
    "VALIDATION_ERROR",
    "SCHEMA_VIOLATION",
    "CONTENT_FILTERED",
    "POLICY_VIOLATION",
    "TOOL_ERROR",
    "TOOL_TIMEOUT",
    "LLM_ERROR",
    "LLM_TIMEOUT",
    "STATE_ERROR",
    "RATE_LIMITED",
    "QUOTA_EXCEEDED",
    "CIRCUIT_OPEN",
    "MAX_TURNS_EXCEEDED",
    "MAX_TOKENS_EXCEEDED",
    "DELEGATION_FAILED",
    "ESCALATION_REQUIRED",
]
"""Every error of a turn (FAULT-1). They are printed as `turn.CODE`, unlike the codes of the server."""

MODEL_CODES: frozenset[TurnCode] = frozenset(
    {"LLM_ERROR", "LLM_TIMEOUT", "RATE_LIMITED", "QUOTA_EXCEEDED", "CONTENT_FILTERED"}
)
"""Codes of errors that a model reports. The others are about the driver, of which a model knows nothing."""

RecoveryStrategy = Literal["retry", "fallback", "skip", "escalate", "abort"]


@frozen
class DefaultRecovery:
    """What happens on a code without a handler, and how often a call is repeated before that."""

    strategy: RecoveryStrategy
    retries: int = 0


_ABORT, _ESCALATE = DefaultRecovery(strategy="abort"), DefaultRecovery(strategy="escalate")
DEFAULTS: Mapping[TurnCode, DefaultRecovery] = MappingProxyType(
    {
        "VALIDATION_ERROR": _ABORT,
        "SCHEMA_VIOLATION": _ABORT,
        "CONTENT_FILTERED": _ABORT,
        "POLICY_VIOLATION": _ABORT,
        "TOOL_ERROR": DefaultRecovery(strategy="retry", retries=3),
        "TOOL_TIMEOUT": DefaultRecovery(strategy="retry", retries=2),
        "LLM_ERROR": DefaultRecovery(strategy="retry", retries=3),
        "LLM_TIMEOUT": DefaultRecovery(strategy="retry", retries=2),
        "STATE_ERROR": _ABORT,
        "RATE_LIMITED": DefaultRecovery(strategy="retry", retries=3),
        "QUOTA_EXCEEDED": _ESCALATE,
        "CIRCUIT_OPEN": DefaultRecovery(strategy="fallback"),
        "MAX_TURNS_EXCEEDED": _ESCALATE,
        "MAX_TOKENS_EXCEEDED": _ESCALATE,
        "DELEGATION_FAILED": _ESCALATE,
        "ESCALATION_REQUIRED": _ESCALATE,
    }
)
"""The strategy of each code (FAULT-4). A failed delegation follows the rule of the delegation, if it has one."""

BUDGET_CODES: frozenset[TurnCode] = frozenset({"MAX_TURNS_EXCEEDED", "MAX_TOKENS_EXCEEDED", "QUOTA_EXCEEDED"})
"""Codes that say that a limit of the run is used up; the run stays resumable with a higher one."""

Correction: TypeAlias = Literal["model", "look", "abort", "escalate"]


MODEL_UNAVAILABLE: Mapping[str, Json] = MappingProxyType({"model": "unavailable"})
"""The details of an error that says that a model cannot be started or reached, or does not exist."""


@frozen
class Fault:
    """An error of a turn: its code, whether the same call may succeed, when, and who is to decide (FAULT-2)."""

    code: TurnCode
    message: str
    details: Mapping[str, Json] = field(default_factory=dict[str, Json])
    recoverable: bool = False
    retry_after_ms: int | None = None
    escalation: str | None = None

    def to_json(self) -> dict[str, Json]:
        """Return the error as it is recorded and printed."""
        value: dict[str, Json] = {
            "code": f"turn.{self.code}",
            "message": self.message,
            "recoverable": self.recoverable,
        }
        if self.details:
            value["details"] = dict(self.details)
        if self.retry_after_ms is not None:
            value["retryAfterMs"] = self.retry_after_ms
        if self.escalation is not None:
            value["escalation"] = self.escalation
        return value


class TurnError(InterlockError):
    """A phase of a turn failed. `usage` is what the failed request cost, if the model said so."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(f"turn.{fault.code}: {fault.message}")
        self.fault = fault


class ToolAnswerError(TurnError):
    """A tool works and its answer is that it cannot do what was asked, such as for a file that does not exist (TOOL-6).

    The model reads it as any error of a call; it is no sign of a broken tool, so no circuit breaker counts it.
    """

    def __init__(self, message: str) -> None:
        super().__init__(Fault(code="TOOL_ERROR", message=message))


@frozen
class ServerRefusal:
    """A refusal of the workflow server, as its error envelope says it."""

    code: str
    message: str
    suggestion: str
    retry: str
    after_ms: int | None = None

    @property
    def is_retryable(self) -> bool:
        """Whether the same call may be sent again."""
        return self.retry in (RetryKind.RETRYABLE_IMMEDIATE, RetryKind.RETRYABLE_AFTER_MS)


@frozen
class ServerRule:
    """What a code of the server is for a driver: the code of the turn, and who can correct it."""

    code: TurnCode
    correction: Correction


_MODEL = ServerRule(code="VALIDATION_ERROR", correction="model")
_LOOK = ServerRule(code="STATE_ERROR", correction="look")
_STATE = ServerRule(code="STATE_ERROR", correction="abort")
_RULES: Mapping[str, ServerRule] = MappingProxyType(
    {
        ErrorCode.VALIDATION_ERROR: _MODEL,
        ErrorCode.TOKEN_INVALID_FORMAT: _LOOK,
        ErrorCode.TOKEN_BAD_SIGNATURE: _LOOK,
        ErrorCode.TOKEN_SCOPE_MISMATCH: _LOOK,
        ErrorCode.TOKEN_UNKNOWN_NODE: _LOOK,
        ErrorCode.TOKEN_UNSUPPORTED_VERSION: _LOOK,
        ErrorCode.TOKEN_WORKFLOW_HASH_MISMATCH: _LOOK,
        ErrorCode.ATTEMPT_LIMIT_REACHED: ServerRule(code="ESCALATION_REQUIRED", correction="escalate"),
        ErrorCode.STORE_READ_ONLY: _STATE,
    }
)


def server_rule(code: str) -> ServerRule:
    """Return what a refusal of the server means for a turn. A code without a rule of its own aborts the run."""
    return _RULES.get(code, _STATE)
