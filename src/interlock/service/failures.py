"""From exceptions to the envelope: damage and failed effects become refusals with a code (locks 12, D16, D38).

Nothing of an exception's text leaves that could name a path or a library.
"""

from dataclasses import replace

from interlock.engine.findings import blockers_of
from interlock.engine.reasons import corrupted
from interlock.kernel.canonical import Json
from interlock.kernel.errors import ErrorCode, Refusal
from interlock.record.base import UnknownVersionError
from interlock.store.ports import (
    ContentDamagedError,
    FailureKind,
    KeyRingDamagedError,
    SessionBusyError,
    SessionUnhealthyError,
    StoreFailureError,
)

_STORE_WORDS = {
    FailureKind.UNREADABLE: (
        ErrorCode.STORE_FAILED,
        "A file or directory of the data directory cannot be read; nothing was recorded.",
        "Ask the user to check its permissions and its disk (`interlock doctor`), then repeat the call.",
    ),
    FailureKind.READ_ONLY: (
        ErrorCode.STORE_READ_ONLY,
        "The data directory cannot be written; nothing was recorded.",
        "Ask the user to make the data directory writable or to choose another (`--data-dir`), then repeat the call.",
    ),
    FailureKind.FULL: (
        ErrorCode.STORE_FULL,
        "The disk that holds the data directory is full; nothing was recorded.",
        "Ask the user to free space, then send the same call again: it is safe to repeat.",
    ),
    FailureKind.NO_DIRECTORY: (
        ErrorCode.STORE_FAILED,
        "The data directory is not a directory, or lies below a file; nothing was recorded.",
        "Ask the user to name a directory (`--data-dir`) or to move the file away, then repeat the call.",
    ),
    FailureKind.FAILED: (
        ErrorCode.STORE_FAILED,
        "The disk did not take the write; nothing was recorded.",
        "Repeat the call: that is safe. If it fails again, ask the user to check the disk and to restart Interlock.",
    ),
}

EXPECTED_ERRORS = (
    StoreFailureError,
    SessionUnhealthyError,
    ContentDamagedError,
    UnknownVersionError,
    KeyRingDamagedError,
    SessionBusyError,
)
"""What a use case may meet and answer; everything else is a fault of ours."""


def refusal_of(error: Exception) -> Refusal:
    """Return what a caller is told of an exception of `EXPECTED_ERRORS`."""
    match error:
        case StoreFailureError():
            code, message, suggestion = _STORE_WORDS[error.kind]
            return Refusal(code=code, message=message, suggestion=suggestion, details={"cause": error.found})
        case SessionBusyError():
            return Refusal(
                code=ErrorCode.TOKEN_SESSION_LOCKED,
                message=f"Another process is writing to this session; waited {error.waited_ms} ms.",
                suggestion="Send the same call again in a second. If this persists, another Interlock process hangs:"
                " ask the user to end it.",
            )
        case SessionUnhealthyError():
            refusal = _not_healthy(error.health.value, error.where, error.found, session=error.session)
            if error.label is None:
                return refusal
            return replace(refusal, message=f"Run `{error.label}`: {refusal.message}")
        case ContentDamagedError():
            return _not_healthy("corrupt_tail", error.what, error.found)
        case UnknownVersionError():
            return _not_healthy("unknown_version", error.what, error.found)
        case _:
            return Refusal(
                code=ErrorCode.KEYRING_DAMAGED,
                message="The key ring that signs tokens is damaged, so no token can be checked or issued.",
                suggestion="Ask the user to restore `keys/keyring.json` of the data directory from a backup. Without"
                " one, removing the file makes a new ring: sessions stay, tokens issued so far do not verify.",
            )


def _not_healthy(health: str, where: str, found: str, session: str | None = None) -> Refusal:
    details: dict[str, Json] = {"health": health, "where": where, "found": found}
    if session is not None:
        details["sessionId"] = session
    newer = health == "unknown_version"
    if not newer:
        details["blockers"] = [blocker.to_json() for blocker in blockers_of([corrupted(where, found)])]
    return Refusal(
        code=ErrorCode.SESSION_NOT_HEALTHY,
        message="This session was written by a newer Interlock, so it is not touched."
        if newer
        else f"The stored session is damaged ({where}: {found}), so nothing is built on it. Other sessions are fine.",
        suggestion="Ask the user to start the newer Interlock again."
        if newer
        else "Tell the user; what was verified is still on disk and nothing was overwritten. To go on with the work,"
        " begin a new run with `start_workflow`.",
        details=details,
    )
