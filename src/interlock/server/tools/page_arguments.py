"""The argument that every tool of the page in a chat has: the token of the run."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from interlock.record.short_tokens import decode_token
from interlock.server.tools.contract import Arguments, Caller, Fault
from interlock.service.tokens.resolve import SentTokens


class PageArguments(Arguments):
    """The run that the page shows."""

    state_token: Annotated[str, Field(description="The `stateToken` of an answer of the run.")]

    def faults(self, caller: Caller) -> Iterator[Fault]:  # noqa: ARG002 — no argument can be at fault beyond its type
        """See `Arguments.faults`."""
        yield from ()

    def tokens(self) -> SentTokens:
        """Return the token that names the run."""
        return SentTokens(argument="stateToken", token=decode_token(self.state_token))
