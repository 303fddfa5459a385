"""The one error envelope and its closed set of codes (ANS-7, ANS-8).

An outcome that a caller can cause is a value: a `Refusal`. Damage and failed effects are exceptions, defined next to
the code that raises them; the use cases convert them into refusals with a code of this table.
"""

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from types import MappingProxyType

from interlock.kernel.blanks import Blank, Outline
from interlock.kernel.budgets import LOCK_RETRY_AFTER_MS
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import frozen


class ErrorCode(StrEnum):
    """Every error code that a caller can receive. Closed: a new code needs a decision record (ANS-8)."""

    VALIDATION_ERROR = "VALIDATION_ERROR"
    WORKFLOW_NOT_FOUND = "WORKFLOW_NOT_FOUND"
    WORKFLOW_INVALID = "WORKFLOW_INVALID"
    TOKEN_INVALID_FORMAT = "TOKEN_INVALID_FORMAT"  # noqa: S105 — a code, not a secret; so below
    TOKEN_UNSUPPORTED_VERSION = "TOKEN_UNSUPPORTED_VERSION"  # noqa: S105
    TOKEN_BAD_SIGNATURE = "TOKEN_BAD_SIGNATURE"  # noqa: S105
    TOKEN_SCOPE_MISMATCH = "TOKEN_SCOPE_MISMATCH"  # noqa: S105
    TOKEN_UNKNOWN_NODE = "TOKEN_UNKNOWN_NODE"  # noqa: S105
    TOKEN_WORKFLOW_HASH_MISMATCH = "TOKEN_WORKFLOW_HASH_MISMATCH"  # noqa: S105
    TOKEN_SESSION_LOCKED = "TOKEN_SESSION_LOCKED"  # noqa: S105
    SESSION_NOT_FOUND = "SESSION_NOT_FOUND"
    SESSION_NOT_HEALTHY = "SESSION_NOT_HEALTHY"
    SESSION_LOCKED = "SESSION_LOCKED"
    STORE_READ_ONLY = "STORE_READ_ONLY"
    STORE_FULL = "STORE_FULL"
    STORE_FAILED = "STORE_FAILED"
    KEYRING_DAMAGED = "KEYRING_DAMAGED"
    ATTEMPT_LIMIT_REACHED = "ATTEMPT_LIMIT_REACHED"
    RUN_ENDED = "RUN_ENDED"
    EFFECT_UNCOVERED = "EFFECT_UNCOVERED"
    BUNDLE_INVALID_FORMAT = "BUNDLE_INVALID_FORMAT"
    BUNDLE_UNSUPPORTED_VERSION = "BUNDLE_UNSUPPORTED_VERSION"
    BUNDLE_INTEGRITY_FAILED = "BUNDLE_INTEGRITY_FAILED"
    BUNDLE_MISSING_SNAPSHOT = "BUNDLE_MISSING_SNAPSHOT"
    BUNDLE_MISSING_PINNED_WORKFLOW = "BUNDLE_MISSING_PINNED_WORKFLOW"
    BUNDLE_EVENT_ORDER_INVALID = "BUNDLE_EVENT_ORDER_INVALID"
    BUNDLE_MANIFEST_ORDER_INVALID = "BUNDLE_MANIFEST_ORDER_INVALID"
    INTERNAL_ERROR = "INTERNAL_ERROR"


class RetryKind(StrEnum):
    """Whether a client may repeat the same call, as a code for programs (ANS-8)."""

    NOT_RETRYABLE = "not_retryable"
    RETRYABLE_IMMEDIATE = "retryable_immediate"
    RETRYABLE_AFTER_MS = "retryable_after_ms"


ENVELOPE_SCHEMA: Mapping[str, Json] = MappingProxyType(
    {
        "additionalProperties": False,
        "description": "A refused call.",
        "properties": {
            "code": {"type": "string"},
            "message": {"type": "string"},
            "retry": {
                "additionalProperties": False,
                "properties": {
                    "kind": {"enum": [kind.value for kind in RetryKind], "type": "string"},
                    "afterMs": {"type": "integer"},
                },
                "required": ["kind"],
                "type": "object",
            },
            "suggestion": {"type": "string"},
            "details": {"type": "object"},
        },
        "required": ["code", "message", "retry", "suggestion"],
        "type": "object",
    }
)
"""The JSON Schema of `Refusal.envelope`. Every tool publishes it beside the schema of its answer (SRV-4)."""


class Owner(StrEnum):
    """The surface that can return a code."""

    TOOL = "tool"
    COMMAND = "command"
    BOTH = "tool and command"


@frozen
class CodeRule:
    """What a code means, whether its caller may retry, and which surface returns it."""

    meaning: str
    owner: Owner
    retry: RetryKind = RetryKind.NOT_RETRYABLE

    @property
    def after_ms(self) -> int | None:
        """How long a caller should wait before it retries; None unless that is what `retry` says."""
        return LOCK_RETRY_AFTER_MS if self.retry is RetryKind.RETRYABLE_AFTER_MS else None


def _rule(meaning: str, owner: Owner, retry: RetryKind = RetryKind.NOT_RETRYABLE) -> CodeRule:
    return CodeRule(meaning=meaning, owner=owner, retry=retry)


_AFTER, _NOW = RetryKind.RETRYABLE_AFTER_MS, RetryKind.RETRYABLE_IMMEDIATE

CODES: Mapping[ErrorCode, CodeRule] = MappingProxyType(
    {
        ErrorCode.VALIDATION_ERROR: _rule("An argument is missing, unknown, malformed or too large.", Owner.BOTH),
        ErrorCode.WORKFLOW_NOT_FOUND: _rule("No source holds a workflow of this id.", Owner.BOTH),
        ErrorCode.WORKFLOW_INVALID: _rule("The workflow file has faults; the diagnostics name each.", Owner.BOTH),
        ErrorCode.TOKEN_INVALID_FORMAT: _rule("The text is not a token.", Owner.TOOL),
        ErrorCode.TOKEN_UNSUPPORTED_VERSION: _rule("The token is of a format this release does not know.", Owner.TOOL),
        ErrorCode.TOKEN_BAD_SIGNATURE: _rule("This data directory did not issue the token.", Owner.TOOL),
        ErrorCode.TOKEN_SCOPE_MISMATCH: _rule("The token belongs to another run, step or use.", Owner.TOOL),
        ErrorCode.TOKEN_UNKNOWN_NODE: _rule("The token names history that the log does not hold.", Owner.TOOL),
        ErrorCode.TOKEN_WORKFLOW_HASH_MISMATCH: _rule("The token and its run pin different workflows.", Owner.TOOL),
        ErrorCode.TOKEN_SESSION_LOCKED: _rule("Another process is writing to this session.", Owner.TOOL, _AFTER),
        ErrorCode.SESSION_NOT_FOUND: _rule("No session of this id is stored.", Owner.BOTH),
        ErrorCode.SESSION_NOT_HEALTHY: _rule("The session's log is damaged or newer, so it is not used.", Owner.BOTH),
        ErrorCode.SESSION_LOCKED: _rule("Another process is writing to this session.", Owner.COMMAND, _AFTER),
        ErrorCode.STORE_READ_ONLY: _rule("The data directory cannot be written.", Owner.BOTH),
        ErrorCode.STORE_FULL: _rule("The disk is full; the message says whether the call may be recorded.", Owner.BOTH),
        ErrorCode.STORE_FAILED: _rule(
            "The disk failed; the message says whether the call may be recorded.", Owner.BOTH, _NOW
        ),
        ErrorCode.KEYRING_DAMAGED: _rule("The key ring cannot be read, so no token can be checked.", Owner.BOTH),
        ErrorCode.ATTEMPT_LIMIT_REACHED: _rule("The step was refused ten times in a row.", Owner.TOOL),
        ErrorCode.RUN_ENDED: _rule("The run failed or was cancelled, so nothing more of it is recorded.", Owner.BOTH),
        ErrorCode.EFFECT_UNCOVERED: _rule(
            "The workflow sends something that no single channel of the user takes, or runs a check that may not run.",
            Owner.BOTH,
        ),
        ErrorCode.BUNDLE_INVALID_FORMAT: _rule("The file is not a bundle.", Owner.COMMAND),
        ErrorCode.BUNDLE_UNSUPPORTED_VERSION: _rule("The bundle is of an unknown version.", Owner.COMMAND),
        ErrorCode.BUNDLE_INTEGRITY_FAILED: _rule("A part of the bundle differs from its digest.", Owner.COMMAND),
        ErrorCode.BUNDLE_MISSING_SNAPSHOT: _rule("A snapshot is missing in the bundle.", Owner.COMMAND),
        ErrorCode.BUNDLE_MISSING_PINNED_WORKFLOW: _rule("A pinned workflow is missing in the bundle.", Owner.COMMAND),
        ErrorCode.BUNDLE_EVENT_ORDER_INVALID: _rule("The bundle's events are out of order.", Owner.COMMAND),
        ErrorCode.BUNDLE_MANIFEST_ORDER_INVALID: _rule("The bundle's manifest is out of order.", Owner.COMMAND),
        ErrorCode.INTERNAL_ERROR: _rule("A fault of Interlock itself; the server's log has it.", Owner.BOTH),
    }
)


@frozen
class Correction:
    """How to correct a refused call: the same call with changes, or a call of another `tool`.

    `instead` holds arguments with the value to send; None leaves the argument out. `wrong` holds the paths of arguments
    whose value only the caller knows: a blank replaces each, or it is left out. `blanks` are those of members of the
    context and of artifacts among them, by path; a member without one is left out. `understood` holds the arguments
    that the changes apply to, if they are not those that were sent, or none for another tool.
    """

    instead: Mapping[str, Outline] = field(default_factory=dict[str, Outline])
    wrong: tuple[tuple[int | str, ...], ...] = ()
    blanks: Mapping[tuple[int | str, ...], Blank] = field(default_factory=dict[tuple[int | str, ...], Blank])
    understood: Mapping[str, Json] | None = None
    tool: str | None = None


@frozen
class Refusal:
    """The result of a refused call: what is wrong, where, and what to send instead.

    The server, which knows the call, builds `details.correctedCall` from the `correction`. `retry` replaces the rule of
    the code if this call must not be repeated unchanged.
    """

    code: ErrorCode
    message: str
    suggestion: str
    details: Mapping[str, Json] = field(default_factory=dict[str, Json])
    correction: Correction | None = None
    retry: RetryKind | None = None

    def envelope(self) -> dict[str, Json]:
        """Return the error envelope that every surface shows (ANS-7)."""
        kind = self.retry or CODES[self.code].retry
        retry: dict[str, Json] = {"kind": kind.value}
        if kind is RetryKind.RETRYABLE_AFTER_MS:
            retry["afterMs"] = LOCK_RETRY_AFTER_MS
        body: dict[str, Json] = {
            "code": self.code.value,
            "message": self.message,
            "retry": retry,
            "suggestion": self.suggestion,
        }
        if self.details:
            body["details"] = dict(self.details)
        return body


class InterlockError(Exception):
    """Root of the exceptions that Interlock raises: damage, failed effects, a broken environment."""
