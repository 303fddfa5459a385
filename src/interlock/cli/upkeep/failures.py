"""What upkeep cannot do, reported in words."""

from collections.abc import Generator
from contextlib import contextmanager

from interlock.cli.screen import StopError
from interlock.kernel.budgets import KEEP_MARKS_MAX
from interlock.service.failures import EXPECTED_ERRORS, refusal_of
from interlock.store.ports import UpkeepBusyError
from interlock.store.retention import KeepMarksDamagedError, TooManyMarksError


@contextmanager
def answered_by_upkeep() -> Generator[None]:
    """Tell in words what the store could not do, and end with 1.

    Raises:
        StopError: It could not.
    """
    try:
        yield
    except EXPECTED_ERRORS as error:
        refusal = refusal_of(error)
        raise StopError(refusal.message, refusal.suggestion, exit_code=1) from error
    except UpkeepBusyError as error:
        message = f"Another command collects, sets keep marks or rotates keys; waited {error.waited_ms} ms."
        raise StopError(message, "Run this again when it is done.", exit_code=1) from error
    except KeepMarksDamagedError as error:
        message = f"The keep marks, config/keep.json of the data directory, cannot be read: {error.found}."
        fix = "Restore the file from a backup, or remove it and set the marks again. Until then nothing is collected."
        raise StopError(message, fix, exit_code=1) from error
    except TooManyMarksError as error:
        message = f"{error.count} sessions would be kept; at most {KEEP_MARKS_MAX} can be. Nothing was changed."
        fix = "Unkeep some, or let all sessions stay longer: `retention.days` in config.toml."
        raise StopError(message, fix, exit_code=1) from error
