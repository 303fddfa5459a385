"""Progress of a long call: told once a second to a client that asked for it, never after the result."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from anyio import from_thread
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession

from interlock.kernel.budgets import PROGRESS_SECONDS

STILL_WORKING = "still working"


class Doing:
    """What a call is doing, in words. The loop reads it; the call's thread writes it."""

    def __init__(self) -> None:
        self.words = STILL_WORKING

    def read(self, done: int, total: int) -> None:
        """Take how many sessions were read, and of how many.

        Raises:
            BaseException: The call is cancelled: nobody waits for the rest, and a server that ends must not either.
        """
        from_thread.check_cancelled()
        self.words = f"reading sessions: {done} of {total}"


@asynccontextmanager
async def progress_told(context: ServerRequestContext[Any, Any]) -> AsyncGenerator[Doing]:
    """Tell the client what is done inside, as long as that takes; progress counts the seconds.

    A client that sent no progress token is told nothing: the SDK sees to that.
    """
    doing = Doing()
    telling = asyncio.create_task(_tell(context.session, doing))
    try:
        yield doing
    finally:
        telling.cancel()
        # What it is just sending goes out before the result does.
        await asyncio.wait({telling})


async def _tell(session: ServerSession, doing: Doing) -> None:
    began = time.monotonic()
    while True:
        await asyncio.sleep(PROGRESS_SECONDS)
        seconds = time.monotonic() - began
        await session.report_progress(round(seconds, 1), message=f"{doing.words} ({seconds:.0f} s)")
