"""Reads chunks from the client, one at a time: the next one is read only after the last was taken."""

import asyncio
import os
import stat
import threading
from collections.abc import Callable
from typing import Protocol, TypeAlias

from interlock.kernel.budgets import READ_BYTES_MAX

Take: TypeAlias = Callable[[bytes], None]
"""Called on the event loop with a chunk; an empty one is the end of the stream."""


class Input(Protocol):
    """A source of chunks. All methods are called on the event loop."""

    def next(self) -> None:
        """Read one more chunk when there is one, and call `take` with it."""
        ...

    def stop(self) -> None:
        """Read no more: what has not been read stays in the pipe."""
        ...


def open_input(descriptor: int, take: Take) -> Input:
    """Return what reads a descriptor: the event loop itself where it can watch it, else a thread."""
    return LoopInput(descriptor, take) if _can_be_watched(descriptor) else ThreadInput(descriptor, take)


class LoopInput:
    """Reads in the thread of the event loop, which saves two changes of thread for each message.

    If another process reads the same pipe, a read may have to wait, and the loop waits with it.
    """

    def __init__(self, descriptor: int, take: Take) -> None:
        self._loop = asyncio.get_running_loop()
        self._descriptor = descriptor
        self._take = take
        self._is_watched = False
        self._is_wanted = False

    def next(self) -> None:
        """See `Input`."""
        self._is_wanted = True
        if not self._is_watched:
            self._loop.add_reader(self._descriptor, self._read)
            self._is_watched = True

    def stop(self) -> None:
        """See `Input`."""
        self._is_wanted = False
        if self._is_watched:
            self._loop.remove_reader(self._descriptor)
            self._is_watched = False

    def _read(self) -> None:
        self._is_wanted = False
        try:
            self._take(_read_chunk(self._descriptor))
        finally:
            # Usually the next one is wanted at once, and the descriptor stays watched.
            if not self._is_wanted:
                self.stop()


class ThreadInput:
    """Reads in a thread of its own: for files, and for systems whose event loop cannot watch a pipe."""

    def __init__(self, descriptor: int, take: Take) -> None:
        self._loop = asyncio.get_running_loop()
        self._descriptor = descriptor
        self._take = take
        self._turn = threading.Semaphore(0)
        self._is_stopped = False
        threading.Thread(target=self._read, name="stdin", daemon=True).start()

    def next(self) -> None:
        """See `Input`."""
        self._turn.release()

    def stop(self) -> None:
        """See `Input`. A chunk that the thread is waiting for is dropped when it comes."""
        self._is_stopped = True

    def _read(self) -> None:
        chunk = b"."
        while chunk:
            self._turn.acquire()
            chunk = _read_chunk(self._descriptor)
            try:
                self._loop.call_soon_threadsafe(self._pass_on, chunk)
            except RuntimeError:
                return  # the loop is closed, because the server has ended

    def _pass_on(self, chunk: bytes) -> None:
        if not self._is_stopped:
            self._take(chunk)


def _can_be_watched(descriptor: int) -> bool:
    """Say whether the event loop can wait for a descriptor: a pipe or a socket, and not on Windows."""
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:
        return False
    return os.name == "posix" and (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode))


def _read_chunk(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, READ_BYTES_MAX)
    except OSError:
        # A terminal that hung up reads as a failure; like the end of a pipe, nothing more will come.
        return b""
