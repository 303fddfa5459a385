"""The one runner of child processes: a process group of its own, bounded reading, and its end (WORLD-6, CHECK-3).

Each child carries the mark of Interlock's processes (WORLD-9). None of them is started by a shell.
"""

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path

from interlock.kernel.budgets import CHILD_DRAIN_BYTES_MAX, CHILD_POLL_S, CHILD_READ_BYTES
from interlock.kernel.descent import DESCENDANT
from interlock.kernel.errors import InterlockError
from interlock.kernel.frozen import frozen

Sink = Callable[[bytes], None]
"""Receives what a child writes, piece by piece, in order."""
_KEPT_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT")
_starting: set[threading.Event] = set()
"""One event for each child that is being started: set if it has to end as soon as it has started."""
_running: dict[int, "subprocess.Popen[bytes]"] = {}
_mutex = threading.Lock()


class ChildStartError(InterlockError):
    """A command cannot be started; `why` is what the system says of it."""

    def __init__(self, *, program: str, why: str) -> None:
        super().__init__(f"{program}: {why}")
        self.program, self.why = program, why


@frozen
class Command:
    """What to start: an argv, its environment, its directory, and the descriptors that it inherits.

    `has_input`: there is a pipe to its stdin. `joins_output`: its stderr goes where its stdout goes.
    """

    argv: Sequence[str]
    environment: Mapping[str, str]
    directory: Path | None = None
    inherits: tuple[int, ...] = ()
    has_input: bool = True
    joins_output: bool = False


@frozen
class ChildResult:
    """How a child ended. `code` is None if it took too long, and negative after a signal.

    `out` is the beginning of its stdout and `err` the end of its stderr, each at most as long as asked for.
    """

    code: int | None
    out: bytes
    err: bytes


def small_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the part of an environment that a channel's command gets."""
    return {name: environment[name] for name in _KEPT_VARIABLES if name in environment}


def end_children() -> None:
    """End every child that runs or is being started, with its whole process group. Called when the server ends."""
    with _mutex:
        for must_end in _starting:
            must_end.set()
        for process in _running.values():
            _signal(process, signal.SIGKILL)


def run_child(command: Command, message: bytes, timeout_s: float, bytes_max: int) -> ChildResult:
    """Run a command with a message on its stdin and return how it ended.

    Returns within the limit, even if a process that the command left behind keeps its output open.

    Raises:
        ChildStartError: It did not start.
    """
    out, err = Kept(bytes_max + 1, keeps_end=False), Kept(bytes_max)
    with running_child(command, out.add, err.add) as child:
        child.message = message
        is_late = not child.follow(time.monotonic() + timeout_s)
        code = child.end()
    return ChildResult(code=None if is_late else code, out=out.data, err=err.data)


@contextlib.contextmanager
def running_child(command: Command, out: Sink, err: Sink | None = None) -> Generator["Child"]:
    """Start a child; at the end of the block it ends, with its whole process group.

    Raises:
        ChildStartError: It did not start.
    """
    must_end = threading.Event()
    with _mutex:
        _starting.add(must_end)
    try:
        process = subprocess.Popen(  # noqa: S603 — the argv is the user's own configuration; there is no shell
            list(command.argv),
            cwd=command.directory,
            env={**command.environment, DESCENDANT: "1"},
            stdin=subprocess.PIPE if command.has_input else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if command.joins_output else subprocess.PIPE,
            pass_fds=command.inherits,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        with _mutex:
            _starting.remove(must_end)
        why = getattr(error, "strerror", None) or str(error)
        raise ChildStartError(program=command.argv[0], why=why) from error
    with _mutex:
        _starting.remove(must_end)
        _running[process.pid] = process
        if must_end.is_set():
            _signal(process, signal.SIGKILL)
    try:
        yield Child(process, out, err)
    finally:
        _signal(process, signal.SIGKILL)
        with _mutex:
            _running.pop(process.pid, None)
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


class Child:
    """A running child: `message` is what is still to be written to its stdin."""

    def __init__(self, process: "subprocess.Popen[bytes]", out: Sink, err: Sink | None) -> None:
        self.message = b""
        self._process = process
        self._sinks: dict[int, Sink] = {}
        for pipe, sink in ((process.stdout, out), (process.stderr, err)):
            if pipe is not None and sink is not None:
                os.set_blocking(pipe.fileno(), False)
                self._sinks[pipe.fileno()] = sink
        if process.stdin is not None:
            os.set_blocking(process.stdin.fileno(), False)

    @property
    def input_pipe(self) -> int | None:
        """The descriptor of its stdin; None if it has none or it was closed."""
        stdin = self._process.stdin
        return None if stdin is None or stdin.closed else stdin.fileno()

    @property
    def output_pipes(self) -> tuple[int, ...]:
        """The descriptors of its stdout and stderr that are still open."""
        return tuple(self._sinks)

    def follow(self, until_s: float) -> bool:
        """Write the message, close stdin, and read until the child ends; return False if it did not end in time."""
        while self._process.poll() is None:
            left = until_s - time.monotonic()
            if left <= 0:
                return False
            # It may close its output, or leave it open in another process: so its end is looked for, too.
            self._turn(min(left, CHILD_POLL_S))
        return True

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal to the child and to all that it started."""
        _signal(self._process, number)

    def end(self) -> int:
        """End the child with all that it started, read what is left in the pipes, and return its exit code."""
        self.send_signal(signal.SIGKILL)
        code = self._process.wait()
        for pipe in self.output_pipes:
            left = CHILD_DRAIN_BYTES_MAX
            # A process that left the group may keep the pipe open, or fill it again and again.
            while left > 0 and (data := self.read(pipe)):
                left -= len(data)
        return code

    def read(self, pipe: int) -> bytes:
        """Read what is there and give it to the sink; empty if there is nothing, or nothing any more."""
        try:
            data = os.read(pipe, CHILD_READ_BYTES)
        except BlockingIOError:
            return b""
        except OSError:
            data = b""
        if data:
            self._sinks[pipe](data)
        else:
            del self._sinks[pipe]
        return data

    def write(self) -> None:
        """Write what the pipe takes of the message. A child that reads no more gets no more."""
        assert self.input_pipe is not None, "it has an input"
        try:
            self.message = self.message[os.write(self.input_pipe, self.message) :]
        except BlockingIOError:
            pass
        except OSError:
            self.message = b""

    def close_input(self) -> None:
        """Close its stdin, so that it reads the end of it."""
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()

    def _turn(self, wait_s: float) -> None:
        """Read and write what is possible, and wait a short time for it."""
        if not self.message:
            self.close_input()
        with selectors.DefaultSelector() as selector:
            for pipe in self.output_pipes:
                selector.register(pipe, selectors.EVENT_READ)
            if self.input_pipe is not None:
                selector.register(self.input_pipe, selectors.EVENT_WRITE)
            if not selector.get_map():
                time.sleep(wait_s)
                return
            for key, _ in selector.select(wait_s):
                if key.events & selectors.EVENT_WRITE:
                    self.write()
                else:
                    self.read(key.fd)


class Kept:
    """The part of an output that is kept: its end, or its beginning."""

    def __init__(self, bytes_max: int, *, keeps_end: bool = True) -> None:
        self.data = b""
        self._bytes_max, self._keeps_end = bytes_max, keeps_end

    def add(self, data: bytes) -> None:
        """Add a piece."""
        if self._keeps_end:
            self.data = (self.data + data)[-self._bytes_max :]
        else:
            self.data += data[: self._bytes_max - len(self.data)]


def _signal(process: "subprocess.Popen[bytes]", number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
