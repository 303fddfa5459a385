"""Runs calls in worker threads of their own, and the reads of resources, prompts and completions in anyio's.

A hand-over to one of anyio's threads takes twice the time, which calls notice and the rare reads do not.
"""

import asyncio
import logging
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar, cast

import anyio.lowlevel
import anyio.to_thread
from mcp import types
from mcp.shared.exceptions import MCPError

from interlock.kernel.budgets.threads import WORKER_IDLE_S, WORKER_THREADS_MAX
from interlock.kernel.turns import TURNS
from interlock.service.failures import EXPECTED_ERRORS, refusal_of

_Found = TypeVar("_Found")
_log = logging.getLogger(__name__)


class Workers:
    """Up to `WORKER_THREADS_MAX` threads, each begun when all others are busy. Used by one event loop.

    The most recently freed thread is used first, because what it needs is still in the processor's caches. A
    thread ends when it has had no work for `WORKER_IDLE_S`, or with this object.
    """

    def __init__(self) -> None:
        self._places = asyncio.Semaphore(WORKER_THREADS_MAX)
        self._free = list[_Thread]()
        weakref.finalize(self, _end, self._free)

    async def run(self, work: Callable[[], _Found], on_cancelled: Callable[[], None]) -> _Found:
        """Return what `work` returns in a thread, or raise what it raises, when a thread is free.

        If the caller is cancelled before, `work` is not begun. Afterwards it is never abandoned: `on_cancelled` is
        called at once, and the result is returned when it is there (SRV-7). Work that stops then raises a
        `CancelledError`.
        """
        await anyio.lowlevel.checkpoint_if_cancelled()
        async with self._places:
            job = _Job(work, self._free)
            _free_thread(self._free).put(job)
            try:
                await job.wait()
            except asyncio.CancelledError:
                on_cancelled()
                with anyio.CancelScope(shield=True):
                    await job.wait()
                if job.has_stopped():
                    raise  # this error, because a cancel scope catches no other
        return job.result()


class _Job(Generic[_Found]):
    """Work for a thread, which returns to `free` afterwards."""

    def __init__(self, work: Callable[[], _Found], free: "list[_Thread]") -> None:
        self._work = work
        self._free = free
        self._loop = asyncio.get_running_loop()
        self._is_done = False
        self._waiter: asyncio.Future[None] | None = None
        self._found: _Found | None = None
        self._error: BaseException | None = None

    def run(self, thread: "_Thread") -> None:
        """Do the work in this thread."""
        try:
            self._found = self._work()
        except BaseException as error:  # noqa: BLE001 — raised where the result is awaited
            self._error = error
        with suppress(RuntimeError):  # the loop has ended, so no one waits
            self._loop.call_soon_threadsafe(self._finish, thread)

    def _finish(self, thread: "_Thread") -> None:
        self._is_done = True
        self._free.append(thread)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def wait(self) -> None:
        """Wait until the work is done. May be called again after it was cancelled."""
        if not self._is_done:
            self._waiter = self._loop.create_future()
            await self._waiter

    def has_stopped(self) -> bool:
        """Say whether the work stopped because it was cancelled."""
        return isinstance(self._error, asyncio.CancelledError)

    def result(self) -> _Found:
        """Return what the work returned, or raise what it raised."""
        if self._error is not None:
            raise self._error
        return cast("_Found", self._found)


_Thread = SimpleQueue[_Job[Any] | None]
"""A thread, as the queue from which it takes its next job; None ends it."""


def _free_thread(free: list[_Thread]) -> _Thread:
    """Return a thread without work, the most recently freed one if there are several."""
    try:
        return free.pop()
    except IndexError:  # there is none, or the last one has just ended
        jobs: _Thread = SimpleQueue()
        threading.Thread(target=_serve, args=(jobs, free), name="call", daemon=True).start()
        return jobs


def _serve(jobs: _Thread, free: list[_Thread]) -> None:
    while True:
        try:
            job = jobs.get(timeout=WORKER_IDLE_S)
        except Empty:
            if _is_removed(free, jobs):
                return
            job = jobs.get()
        if job is None:
            return
        job.run(jobs)
        del job  # while it waits for the next one, the thread keeps nothing


def _is_removed(free: list[_Thread], thread: _Thread) -> bool:
    """Remove a thread that ends; return False if it was given a job in the same moment."""
    try:
        free.remove(thread)
    except ValueError:
        return False
    return True


def _end(free: list[_Thread]) -> None:
    for thread in free:
        thread.put(None)


async def run_read(read: Callable[[], _Found]) -> _Found:
    """Return the result of a read that runs in a worker thread.

    Raises:
        MCPError: The read raised one, or it failed: then with the reason, but without the text of the exception.
    """
    try:
        return await anyio.to_thread.run_sync(_in_turn, read)
    except MCPError:
        raise
    except EXPECTED_ERRORS as error:
        _log.warning("%s", error)
        refusal = refusal_of(error)
        raise MCPError(types.INTERNAL_ERROR, f"{refusal.message} {refusal.suggestion}") from error
    except Exception as error:
        _log.exception("a read failed")
        raise MCPError(
            types.INTERNAL_ERROR,
            "This failed because of a bug in Interlock. The server's log (stderr) has the details.",
        ) from error


def _in_turn(read: Callable[[], _Found]) -> _Found:
    with TURNS.computing():
        return read()
