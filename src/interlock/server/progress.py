"""Progress of a long call: reported once a second to a client that asked for it, never after the result."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession

from interlock.kernel.budgets import PROGRESS_SECONDS

STILL_WORKING = "still working"


class Activity:
    """What a call is doing, in words. The call's thread writes it and the event loop reads it."""

    def __init__(self) -> None:
        self.words = STILL_WORKING
        self._is_cancelled = False

    def cancel(self) -> None:
        """Note that the call was cancelled."""
        self._is_cancelled = True

    def read(self, done: int, total: int) -> None:
        """Note how many sessions were read, and how many there are.

        Raises:
            BaseException: The call was cancelled. The read stops, so a server that shuts down does not wait.
        """
        if self._is_cancelled:
            raise asyncio.CancelledError
        self.words = f"reading sessions: {done} of {total}"


@asynccontextmanager
async def report_progress_while(context: ServerRequestContext[Any, Any]) -> AsyncGenerator[Activity]:
    """Report to the client what the block is doing until it ends. The progress value is the time in seconds.

    The SDK sends nothing to a client without a progress token.
    """
    activity, began = Activity(), time.monotonic()
    reporters = list[asyncio.Task[None]]()

    def begin() -> None:
        reporters.append(asyncio.create_task(_report(context.session, activity, began)))

    # Most calls end before the first report, and need no task for it.
    first = asyncio.get_running_loop().call_later(PROGRESS_SECONDS, begin)
    try:
        yield activity
    finally:
        first.cancel()
        for reporter in reporters:
            reporter.cancel()
            # A report that is being sent must reach the client before the result, which a cancelled call has, too.
            with anyio.CancelScope(shield=True):
                await asyncio.wait({reporter})


async def _report(session: ServerSession, activity: Activity, began: float) -> None:
    while True:
        seconds = time.monotonic() - began
        await session.report_progress(round(seconds, 1), message=f"{activity.words} ({seconds:.0f} s)")
        await asyncio.sleep(PROGRESS_SECONDS)
