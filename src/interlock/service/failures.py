"""Turns expected exceptions (damage, disk failures) into refusals with an error code (ANS-7, ANS-8).

No text of an exception that could contain a path or a library name reaches the caller.
"""

from interlock.kernel.canonical import Json
from interlock.kernel.errors import Correction, ErrorCode, Refusal, RetryKind
from interlock.kernel.frozen import frozen, replace
from interlock.kernel.ids import SessionId
from interlock.record.errors import UnknownVersionError
from interlock.service.run.advice import advise_by_health
from interlock.service.unanswered import UnansweredError
from interlock.store.ports.errors import (
    ContentDamagedError,
    ContentUnreadableError,
    DefinitionDamagedError,
    FailureKind,
    Health,
    KeyRingDamagedError,
    KeyRingMissingError,
    SessionBusyError,
    SessionUnhealthyError,
    SessionUnreadableError,
    StoreFailureError,
)


@frozen
class _Cause:
    """A kind of disk failure: its error code, its description, and what the user can do.

    `retry` replaces the rule of the code.
    """

    code: ErrorCode
    what: str
    fix: str
    retry: RetryKind | None = None


_CAUSES = {
    FailureKind.UNREADABLE: _Cause(
        code=ErrorCode.STORE_FAILED,
        what="A file or directory of the data directory cannot be read",
        fix="Ask the user to check its permissions and its disk (`interlock doctor`).",
    ),
    FailureKind.READ_ONLY: _Cause(
        code=ErrorCode.STORE_READ_ONLY,
        what="The data directory cannot be written",
        fix="Ask the user to make the data directory writable, or to name another for new runs (`--data-dir`).",
    ),
    FailureKind.FULL: _Cause(
        code=ErrorCode.STORE_FULL,
        what="The disk that holds the data directory is full",
        fix="Ask the user to free space.",
    ),
    FailureKind.NO_DIRECTORY: _Cause(
        code=ErrorCode.STORE_FAILED,
        what="The data directory is not a directory, or lies below a file",
        fix="Ask the user to name a directory (`--data-dir`) or to move the file away.",
    ),
    FailureKind.TOO_LARGE: _Cause(
        code=ErrorCode.STORE_FAILED,
        what="The list of projects whose checks are allowed would become larger than Interlock reads",
        fix="Forget projects that no longer need it (`interlock checks forget`).",
    ),
    FailureKind.NO_LOCKS: _Cause(
        code=ErrorCode.STORE_FAILED,
        what="The file system that holds the data directory has no locks, as some network mounts",
        fix="Ask the user to name a data directory on a local disk (`--data-dir`), or to mount this one with locks.",
        retry=RetryKind.NOT_RETRYABLE,
    ),
    FailureKind.OPEN_FILES: _Cause(
        code=ErrorCode.STORE_FAILED,
        what="Interlock or the system has too many open files, so no further one can be opened",
        fix="Ask the user to end other programs, or to start Interlock with a higher limit (`ulimit -n`).",
    ),
    FailureKind.OTHER_DISK: _Cause(
        code=ErrorCode.STORE_FAILED,
        what="A part of the data directory is on another file system, so a file cannot be moved into its place",
        fix="Ask the user to keep all of the data directory on one file system, without a mount or a link in it.",
        retry=RetryKind.NOT_RETRYABLE,
    ),
    FailureKind.NO_MEMORY: _Cause(
        code=ErrorCode.STORE_FAILED,
        what="There is not enough memory for what has to be read",
        fix="Ask the user to end other programs, or to give Interlock more memory.",
    ),
    FailureKind.FAILED: _Cause(
        code=ErrorCode.STORE_FAILED,
        what="The disk that holds the data directory failed",
        fix="If it fails again, ask the user to check the disk and to restart Interlock.",
    ),
}


EXPECTED_ERRORS = (
    StoreFailureError,
    SessionUnhealthyError,
    ContentDamagedError,
    DefinitionDamagedError,
    UnknownVersionError,
    KeyRingDamagedError,
    SessionBusyError,
    UnansweredError,
)
"""The exceptions that a use case may raise and that become an answer; any other one is a bug of Interlock."""


def refusal_of(error: Exception) -> Refusal:
    """Return the refusal that reports an exception of `EXPECTED_ERRORS`."""
    match error:
        case StoreFailureError():
            return _not_stored(error)
        case UnansweredError():
            return _unanswered(error)
        case SessionBusyError():
            refusal = Refusal(
                code=ErrorCode.TOKEN_SESSION_LOCKED,
                message=f"Another process is writing to this session; waited {error.waited_ms} ms.",
                suggestion="Send the same call again in a second. If this error persists, another Interlock process"
                " hangs: ask the user to end that process.",
                details={"sessionId": error.session},
            )
            return _name_run(refusal, error.label)
        case SessionUnreadableError():
            return _name_run(_unreadable(error), error.label)
        case SessionUnhealthyError():
            refusal = _not_healthy(error.health.value, error.where, error.found, session=error.session)
            return _name_run(refusal, error.label)
        case ContentDamagedError() | DefinitionDamagedError():
            return _content_damaged(error) if isinstance(error, ContentDamagedError) else _definition_damaged(error)
        case UnknownVersionError():
            return _not_healthy("unknown_version", error.what, error.found)
        case _:
            is_missing = isinstance(error, KeyRingMissingError)
            found, remove = ("missing", "") if is_missing else ("damaged", "remove the file and ")
            return Refusal(
                code=ErrorCode.KEYRING_DAMAGED,
                message=f"The key ring that signs tokens is {found}, so no token can be checked or issued.",
                suggestion="Ask the user to restore `keys/keyring.json` of the data directory from a backup. Without"
                f" a backup, {remove}run `interlock keys rotate`, which makes a new key ring. Sessions remain; tokens"
                " issued so far become invalid.",
            )


def fix_of_cause(error: Exception) -> str:
    """Return what to do about the cause of an expected error, for a call that is not repeated; or nothing."""
    if isinstance(error, StoreFailureError):
        return _CAUSES[error.kind].fix
    return "" if isinstance(error, SessionBusyError) else command_refusal(error).suggestion


def _name_run(refusal: Refusal, label: str | None) -> Refusal:
    """Add the run that the call was about, if that is known (LOCK-9)."""
    if label is None:
        return refusal
    details: dict[str, Json] = {**refusal.details, "run": {"label": label}}
    return replace(refusal, message=f"Run `{label}`: {refusal.message}", details=details)


def _not_stored(failure: StoreFailureError) -> Refusal:
    """Report a disk failure, and whether the call may be recorded. Repeating the call is safe: it is recorded once."""
    cause = _CAUSES[failure.kind]
    if failure.may_be_recorded:
        recorded = "the call may be recorded, but its answer is lost"
        repeat = "Send the same call again: it is recorded only once, and you get its answer."
    else:
        recorded, repeat = "nothing was recorded this time", "Send the same call again: that is safe."
    what = cause.what if failure.where is None else f"`{failure.where}` of the data directory cannot be read"
    return Refusal(
        code=cause.code,
        message=f"{what}; {recorded}.",
        suggestion=f"{repeat} {cause.fix}" if failure.kind is FailureKind.FAILED else f"{cause.fix} {repeat}",
        details={"cause": failure.found, "mayBeRecorded": failure.may_be_recorded},
        retry=cause.retry,
    )


def _unreadable(error: SessionUnreadableError) -> Refusal:
    """Name the session that cannot be read, and the file. Other sessions are not affected."""
    cause = _CAUSES[FailureKind.UNREADABLE]
    return Refusal(
        code=cause.code,
        message=f"Session {error.session} cannot be read (`{error.where}` of the data directory); nothing was recorded"
        " this time.",
        suggestion=f"{cause.fix} Send the same call again: that is safe.",
        details={"cause": error.found, "mayBeRecorded": False, "sessionId": error.session, "where": error.where},
    )


def _unanswered(error: UnansweredError) -> Refusal:
    """Name the session or run that a call may have recorded, and how to find out (FAIL-2, FAIL-3)."""
    from interlock.engine.answer.model import RESUME_TOOL  # noqa: PLC0415 — see `_damaged`

    cause = _CAUSES[error.failure.kind]
    details: dict[str, Json] = {"cause": error.failure.found, "mayBeRecorded": True, "sessionId": error.session}
    if error.run is None:
        return Refusal(
            code=cause.code,
            message=f"{cause.what}; the session may be recorded, as {error.session}.",
            suggestion=f"Run `interlock session show {error.session}` first. If it shows the session, stop: the session"
            " is complete, and another run of this command would make a second copy. If there is no such session, run"
            f" this command again. {cause.fix}",
            details=details,
            retry=RetryKind.NOT_RETRYABLE,
        )
    return Refusal(
        code=cause.code,
        message=f"{cause.what}; the run may be recorded, but its answer is lost.",
        suggestion="Call `resume_session` as below. If the run is found, continue it. If not, send the same call"
        f" again: this server process starts no second run for it. {cause.fix}",
        details={**details, "runId": error.run},
        correction=Correction(tool=RESUME_TOOL, instead={"sessionId": error.session, "runId": error.run}),
    )


def _not_healthy(health: str, where: str, found: str, session: SessionId | None = None) -> Refusal:
    """Refuse to use a session whose log does not verify. `session` is None if only a record of it is known."""
    details: dict[str, Json] = {"health": health, "where": where, "found": found}
    if session is not None:
        details["sessionId"] = session
    if health == Health.UNKNOWN_VERSION:
        return Refusal(
            code=ErrorCode.SESSION_NOT_HEALTHY,
            message="This session was written by a newer Interlock, so this version does not use it.",
            suggestion="Ask the user to start the newer Interlock again.",
            details=details,
        )
    assert session is not None, "damage of a log names its session"
    return _damaged(where, found, f"{advise_by_health(session, health)} `interlock doctor` examines all.", details)


def _content_damaged(error: ContentDamagedError) -> Refusal:
    """Refuse to use content that is missing, damaged or unreadable; other sessions may refer to it."""
    if isinstance(error, ContentUnreadableError):
        return _not_stored(StoreFailureError(FailureKind.UNREADABLE, error.cause, where=error.where))
    details: dict[str, Json] = {"health": Health.CORRUPT_TAIL, "where": error.what, "found": error.found}
    fix = "Other sessions may refer to the same content: `interlock doctor --deep` names the file and these sessions."
    if error.session is not None:
        fix += (
            f" If what was recorded before it is intact, `interlock session repair {error.session}` copies that into a"
            " new session."
        )
    return _damaged(error.what, error.found, fix, details)


def _definition_damaged(error: DefinitionDamagedError) -> Refusal:
    return Refusal(
        code=ErrorCode.STORE_FAILED,
        message=f"The published definition `{error.name}` of the data directory is damaged ({error.found}); nothing was"
        " recorded.",
        suggestion="Ask the user to restore the file from a backup, or to publish it again from its sources"
        " (`interlock contract publish`). A directory in its place must be moved elsewhere before.",
        retry=RetryKind.NOT_RETRYABLE,
    )


def _damaged(where: str, found: str, fix: str, details: dict[str, Json]) -> Refusal:
    from interlock.engine.judge.reasons import corrupted  # noqa: PLC0415 — a command that does not fail needs no judge
    from interlock.engine.judge.violations import blockers_of  # noqa: PLC0415 — see above

    return Refusal(
        code=ErrorCode.SESSION_NOT_HEALTHY,
        message=f"The stored session is damaged ({where}: {found}), so it cannot be used.",
        suggestion=f"Report this to the user. {fix} Nothing was overwritten. To do the work without what was recorded,"
        " begin a new run with `start_workflow`.",
        details={**details, "blockers": [blocker.to_json() for blocker in blockers_of([corrupted(where, found)])]},
    )


def command_refusal(error: Exception) -> Refusal:
    """Return the refusal of an expected error for a person: a locked session that no token named has another code."""
    refusal = refusal_of(error)
    if refusal.code is not ErrorCode.TOKEN_SESSION_LOCKED:
        return refusal
    fix = "Try again in a second. If the error repeats, another Interlock process is stuck: end that process."
    return replace(refusal, code=ErrorCode.SESSION_LOCKED, suggestion=fix)
