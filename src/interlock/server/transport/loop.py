"""The event loop of a server: its thread and those of the calls compute by turns (SRV-18)."""

import asyncio
import os
import selectors

from interlock.kernel.turns import TURNS

_Ready = list[tuple[selectors.SelectorKey, int]]


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Return a loop whose thread computes in its turn; on Windows, where a loop has no selector, an ordinary one."""
    return asyncio.new_event_loop() if os.name == "nt" else asyncio.SelectorEventLoop(_GivingSelector())


class _GivingSelector(selectors.DefaultSelector):
    """Lets calls compute while the loop waits, and takes the turn for what the loop does then."""

    def select(self, timeout: float | None = None) -> _Ready:
        """Wait without the turn. A loop that only looks what came meanwhile, because it has more to do, keeps it."""
        if timeout == 0:
            return super().select(timeout)
        TURNS.give()
        try:
            return super().select(timeout)
        finally:
            TURNS.take()

    def close(self) -> None:
        """Let others compute when the loop has ended."""
        TURNS.give()
        super().close()
