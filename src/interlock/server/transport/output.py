"""Writes lines to the client: never blocks the caller, and keeps their order."""

import array
import errno
import os
import queue
import select
import stat
import sys
import threading
from collections.abc import Callable

from interlock.kernel.budgets import FLUSH_SECONDS_MAX, UNREAD_LINES_MAX
from interlock.server.transport.descriptors import pipe_bytes


class Output:
    """Writes whole lines, in order, from a thread of its own, or at once where that cannot wait.

    A line that a pipe has room for is written by the caller, which saves waking the thread. After the client has closed
    the pipe, further lines are dropped.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lines: queue.Queue[memoryview | None] = queue.Queue()
        self._thread: threading.Thread | None = None
        self._order = threading.Lock()
        self._room = _room_of_pipe(descriptor)
        self._on_broken: Callable[[], None] | None = None
        self._on_drained: Callable[[], None] | None = None
        self._is_broken = False
        self._is_awaited = False
        self.failure: OSError | None = None
        """Why stdout failed, unless the client merely closed it."""

    def start(self, *, on_broken: Callable[[], None], on_drained: Callable[[], None] | None = None) -> None:
        """Start writing. Both callbacks must be safe in any thread.

        `on_broken` is called once, when nothing can be written any more; `on_drained` when the client has read its
        backlog after `is_congested` was true.
        """
        self._on_broken, self._on_drained = on_broken, on_drained
        self._thread = threading.Thread(target=self._write_lines, name="stdout", daemon=True)
        self._thread.start()

    def put(self, line: bytes) -> None:
        """Write one line if that cannot wait, else queue it; never blocks."""
        unwritten = memoryview(line)
        with self._order:
            # While a queued line is written, it is unfinished. So never two threads write.
            if self._room is not None and not self._lines.unfinished_tasks:
                while unwritten and (room := self._room.bytes_for(len(unwritten))):
                    unwritten = unwritten[self._write(unwritten[:room]) :]
            if unwritten:
                self._lines.put(unwritten)

    def is_congested(self) -> bool:
        """Say whether the client has to read its backlog first. If so, `on_drained` will be called."""
        with self._order:
            self._is_awaited = self._lines.qsize() > UNREAD_LINES_MAX
            return self._is_awaited

    def finish(self) -> None:
        """Wait, but not for ever, until every line is written."""
        assert self._thread is not None, "finish comes after start"
        self._lines.put(None)
        self._thread.join(FLUSH_SECONDS_MAX)

    def _write_lines(self) -> None:
        while (unwritten := self._lines.get()) is not None:
            while unwritten:
                unwritten = unwritten[self._write(unwritten) :]
            self._lines.task_done()
            with self._order:
                is_drained = self._is_awaited and not self._lines.unfinished_tasks
                self._is_awaited = self._is_awaited and not is_drained
            if is_drained and self._on_drained is not None:
                self._on_drained()

    def _write(self, unwritten: memoryview) -> int:
        """Write once; return how many bytes need not be written again: all of them once the pipe is broken."""
        if self._is_broken:
            return len(unwritten)
        try:
            return os.write(self._descriptor, unwritten)
        except OSError as error:
            self._is_broken = True
            self.failure = None if _is_hang_up(error) else error
            assert self._on_broken is not None, "writing comes after start"
            self._on_broken()
            return len(unwritten)


class _PipeRoom:
    """Says how much a pipe takes without a wait.

    If another process writes to the same pipe, its bytes may come in between; then a write may wait for the client.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLOUT)

    def bytes_for(self, wanted: int) -> int:
        """Return how many bytes may be written now, if so many are wanted; 0 if none."""
        if not self._poll.poll(0):
            return 0
        # A pipe that is ready has room for `PIPE_BUF` bytes, and one that is empty for as much as it holds.
        size = pipe_bytes(self._descriptor) if wanted > select.PIPE_BUF and self._is_empty() else None
        return size or select.PIPE_BUF

    def _is_empty(self) -> bool:
        import fcntl  # noqa: PLC0415 — POSIX only
        import termios  # noqa: PLC0415 — POSIX only

        unread = array.array("i", [0])
        fcntl.ioctl(self._descriptor, termios.FIONREAD, unread)
        return unread[0] == 0


def _room_of_pipe(descriptor: int) -> _PipeRoom | None:
    """Return what says how much room a pipe has; None for anything else, and where it cannot say."""
    try:
        is_pipe = stat.S_ISFIFO(os.fstat(descriptor).st_mode)
    except OSError:
        return None
    return _PipeRoom(descriptor) if is_pipe and sys.platform == "linux" else None


def _is_hang_up(error: OSError) -> bool:
    # Windows reports a closed pipe as an invalid argument.
    return isinstance(error, ConnectionError) or error.errno == errno.EINVAL
