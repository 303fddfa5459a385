"""A child process with a message on its stdin: one time limit, bounded reading, and its whole group ended (WORLD-6)."""

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from interlock.kernel.budgets import CHILD_POLL_S, CHILD_READ_BYTES

_running: dict[int, "subprocess.Popen[bytes]"] = {}
_mutex = threading.Lock()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildResult:
    """How a child ended. `code` is None if it took too long, and negative after a signal.

    `out` is the beginning of its stdout and `err` the end of its stderr, each at most as long as asked for.
    """

    code: int | None
    out: bytes
    err: bytes


def end_children() -> None:
    """End every child that still runs, with its whole process group. Called when the server ends."""
    with _mutex:
        for process in _running.values():
            _kill(process)


def run_child(
    argv: Sequence[str], message: bytes, environment: Mapping[str, str], timeout_s: float, bytes_max: int
) -> ChildResult | str:
    """Run a command with a message on its stdin and return how it ended, or why it did not start.

    Returns within the limit, even if a process that the command left behind keeps its output open.
    """
    try:
        process = subprocess.Popen(  # noqa: S603 — the argv is the user's own configuration; there is no shell
            list(argv),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(environment),
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        return f"{argv[0]}: {getattr(error, 'strerror', None) or error}"
    with _mutex:
        _running[process.pid] = process
    try:
        return _Dialogue(process, message, bytes_max).follow(time.monotonic() + timeout_s)
    finally:
        _kill(process)
        with _mutex:
            _running.pop(process.pid, None)
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


@dataclass(slots=True)
class _Dialogue:
    process: "subprocess.Popen[bytes]"
    message: bytes
    bytes_max: int
    out: bytearray = field(default_factory=bytearray)
    err: bytearray = field(default_factory=bytearray)

    def follow(self, until_s: float) -> ChildResult:
        with selectors.DefaultSelector() as selector:
            for pipe, mask in (
                (self.process.stdin, selectors.EVENT_WRITE),
                (self.process.stdout, selectors.EVENT_READ),
                (self.process.stderr, selectors.EVENT_READ),
            ):
                assert pipe is not None, "all three are pipes"
                os.set_blocking(pipe.fileno(), False)
                selector.register(pipe.fileno(), mask)
            while self.process.poll() is None:
                left = until_s - time.monotonic()
                if left <= 0:
                    return self._result(None)
                self._turn(selector, min(left, CHILD_POLL_S))
            # It has ended; what it wrote before is in the pipes, which another process may keep open.
            while selector.get_map() and time.monotonic() < until_s and self._turn(selector, 0):
                pass
        return self._result(self.process.returncode)

    def _turn(self, selector: selectors.BaseSelector, wait_s: float) -> bool:
        """Read and write what is possible; say whether anything was read."""
        if not selector.get_map():
            time.sleep(wait_s)
            return False
        has_read = False
        for key, _ in selector.select(wait_s):
            try:
                done, read = (self._write(key.fd), False) if key.events & selectors.EVENT_WRITE else self._read(key.fd)
            except OSError:
                done, read = True, False
            has_read |= read
            if done:
                selector.unregister(key.fd)
        return has_read

    def _write(self, pipe: int) -> bool:
        """Write what the pipe takes of the message; close stdin and return True when all of it is written."""
        self.message = self.message[os.write(pipe, self.message) :] if self.message else b""
        if self.message:
            return False
        assert self.process.stdin is not None, "it is a pipe"
        # Unregistering needs the descriptor no more: the selector knows it by its number.
        self.process.stdin.close()
        return True

    def _read(self, pipe: int) -> tuple[bool, bool]:
        assert self.process.stdout is not None, "it is a pipe"
        data = os.read(pipe, CHILD_READ_BYTES)
        if pipe == self.process.stdout.fileno():
            self.out += data[: max(0, self.bytes_max + 1 - len(self.out))]
        else:
            self.err += data
            del self.err[: -self.bytes_max]
        return not data, bool(data)

    def _result(self, code: int | None) -> ChildResult:
        return ChildResult(code=code, out=bytes(self.out), err=bytes(self.err))


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """End a process and all that it started; it began a process group of its own."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
