"""What a use case refuses and what a store cannot give, told as a command tells it."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace

from interlock.cli.screen import StopError
from interlock.kernel.canonical import Json
from interlock.kernel.errors import ErrorCode, Refusal
from interlock.service.failures import EXPECTED_ERRORS, refusal_of


class RefusedError(StopError):
    """A refusal ends the command with 1: its code stands before the words, and `--json` prints the whole envelope."""

    def __init__(self, refusal: Refusal) -> None:
        self.refusal = refusal
        super().__init__(f"{refusal.code}: {refusal.message}", refusal.suggestion, exit_code=1)

    def to_json(self) -> dict[str, Json]:
        """Return it as `--json` prints it."""
        return {"error": {**self.refusal.envelope(), "fix": self.fix}}


@contextmanager
def answered_by_store() -> Generator[None]:
    """Tell damage and failed disks in words, and end with 1.

    Raises:
        RefusedError: The store could not answer.
    """
    try:
        yield
    except EXPECTED_ERRORS as error:
        raise RefusedError(_of_commands(refusal_of(error))) from error


def _of_commands(refusal: Refusal) -> Refusal:
    """Return a refusal as a command gives it: a lock that was not met through a token has a code of its own."""
    if refusal.code is not ErrorCode.TOKEN_SESSION_LOCKED:
        return refusal
    fix = "Run the command again in a second. If this persists, another Interlock process hangs: end it."
    return replace(refusal, code=ErrorCode.SESSION_LOCKED, suggestion=fix)
