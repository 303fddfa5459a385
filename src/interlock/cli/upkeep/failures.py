"""Failures of upkeep commands as messages."""

from collections.abc import Generator
from contextlib import contextmanager

from interlock.cli.screen import RefusedError, StopError
from interlock.kernel.budgets import RETENTION_PINS_MAX
from interlock.kernel.errors import ErrorCode, RetryKind
from interlock.service.failures import EXPECTED_ERRORS, command_refusal
from interlock.store.ports.errors import (
    FailureKind,
    PinsDamagedError,
    SessionsMissingError,
    StoreFailureError,
    TooManyPinsError,
    UpkeepBusyError,
)

READ_FIX = "Give the user who runs Interlock access to all of the data directory, and check its disk; then try again."


@contextmanager
def answered_by_upkeep() -> Generator[None]:
    """Report a failure of the store as a message, and end with 1.

    Raises:
        StopError: The store failed.
    """
    try:
        yield
    except EXPECTED_ERRORS as error:
        if isinstance(error, StoreFailureError) and error.kind is FailureKind.READ_ONLY:
            message = f"A part of the data directory cannot be read or written ({error.found})."
            raise StopError(message, READ_FIX, exit_code=1, code=ErrorCode.STORE_READ_ONLY) from error
        raise RefusedError(command_refusal(error)) from error
    except UpkeepBusyError as error:
        message = f"Another gc, keep, unkeep, keys or contract command is running; waited {error.waited_ms} ms."
        fix = "Run this command again when that one is done."
        raise StopError(message, fix, exit_code=1, code=ErrorCode.SESSION_LOCKED) from error
    except PinsDamagedError as error:
        message = f"The retention pins, config/keep.json of the data directory, cannot be read: {error.found}."
        fix = f"Restore the file from a backup. {error.fix} Until then, gc deletes nothing."
        code, retry = ErrorCode.STORE_FAILED, RetryKind.NOT_RETRYABLE
        raise StopError(message, fix, exit_code=1, code=code, retry=retry) from error
    except SessionsMissingError as error:
        message = f"There is no session {error.sessions[0]!r} in this data directory; nothing was changed."
        fix = "`interlock session list` lists the sessions."
        raise StopError(message, fix, exit_code=1, code=ErrorCode.SESSION_NOT_FOUND) from error
    except TooManyPinsError as error:
        message = f"{error.count} sessions would be kept; at most {RETENTION_PINS_MAX} can be. Nothing was changed."
        fix = "Unkeep some, or raise `retention.days` in config.toml to keep all sessions longer."
        raise StopError(message, fix, exit_code=1) from error


@contextmanager
def unconfirmed(message: str, fix: str) -> Generator[None]:
    """Report a change whose result is unknown because the disk failed, and end with 1.

    Raises:
        StopError: The change may have been made.
    """
    try:
        yield
    except StoreFailureError as failure:
        if not failure.may_be_recorded:
            raise
        raise StopError(f"{message} ({failure.found}).", fix, exit_code=1, code=ErrorCode.STORE_FAILED) from failure
