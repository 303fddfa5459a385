"""What a store cannot give, told as a command tells it."""

from collections.abc import Generator
from contextlib import contextmanager

from interlock.cli.screen import StopError
from interlock.service.failures import EXPECTED_ERRORS, refusal_of


@contextmanager
def answered_by_store() -> Generator[None]:
    """Tell damage and failed disks in words, and end with 1.

    Raises:
        StopError: The store could not answer.
    """
    try:
        yield
    except EXPECTED_ERRORS as error:
        refusal = refusal_of(error)
        raise StopError(refusal.message, refusal.suggestion, exit_code=1) from error
