"""Runs a command as if nothing were between it and its terminal, and keeps a digest of its output (PROOF-1).

Where the output is a terminal, the command gets one too. Its input, its process group and its directory are those of
this process, so keys that interrupt or suspend reach it directly.
"""

import contextlib
import fcntl
import os
import selectors
import signal
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import field
from types import FrameType

from interlock.channels.kept_output import KeptOutput
from interlock.kernel.budgets import (
    CHILD_POLL_S,
    CHILD_READ_BYTES,
)
from interlock.kernel.budgets.workflow import (
    RECEIPT_OUTPUT_BYTES_MAX,
)
from interlock.kernel.frozen import mutable

_OUT, _ERR = 1, 2
_FLAGS = 1
_FORWARDED = (signal.SIGTERM, signal.SIGHUP)
_DIRECT = (signal.SIGINT, signal.SIGQUIT)
"""A terminal sends these to its whole foreground group: the command gets them without help."""


@mutable
class RunningCommand:
    """A command that runs. `sinks` maps what is read to the descriptor that it is passed on to."""

    process: "subprocess.Popen[bytes]"
    sinks: dict[int, int]
    began: float
    kept: KeptOutput = field(default_factory=lambda: KeptOutput(RECEIPT_OUTPUT_BYTES_MAX))
    seconds: float = 0.0
    _threads: tuple[threading.Thread, ...] = ()

    def start(self) -> None:
        """Pass its output on and note when it ends, in other threads, whatever this one does meanwhile."""
        self._threads = tuple(threading.Thread(target=one, daemon=True) for one in (self._pass_on, self._note_end))
        for thread in self._threads:
            thread.start()

    def wait(self) -> int:
        """Return its exit code, negative after a signal, when it has ended and its output was passed on."""
        for thread in self._threads:
            thread.join()
        return self.process.wait()

    def _note_end(self) -> None:
        self.process.wait()
        self.seconds = round(time.monotonic() - self.began, 3)

    def _pass_on(self) -> None:
        with selectors.DefaultSelector() as selector:
            for source in self.sinks:
                os.set_blocking(source, False)
                selector.register(source, selectors.EVENT_READ)
            while selector.get_map():
                # A process that the command left behind may keep the output open.
                has_ended = self.process.poll() is not None
                ready = selector.select(CHILD_POLL_S)
                if has_ended and not ready:
                    break
                for key, _ in ready:
                    if not self._copy(key.fd):
                        selector.unregister(key.fd)
                        os.close(key.fd)
                        del self.sinks[key.fd]

    def _copy(self, source: int) -> bool:
        """Pass on what is there; return False at the end of the output, or if nobody reads it any more."""
        try:
            data = os.read(source, CHILD_READ_BYTES)
            self.kept.add(data)
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(self.sinks[source], rest) :]
        except BlockingIOError:
            return True
        except OSError:
            # A terminal whose other side is closed gives an error and no end; a broken pipe ends the command.
            return False
        return bool(data)


def start_command(argv: list[str]) -> RunningCommand:
    """Start a command with the input, environment and directory of this process.

    Raises:
        OSError: It cannot be started.
    """
    sys.stdout.flush()
    with contextlib.ExitStack() as opened:
        ends: dict[int, int] = {}
        sinks: dict[int, int] = {}
        terminal: tuple[int, int] | None = None
        for sink in (_OUT, _ERR):
            if not os.isatty(sink):
                read, write = os.pipe()
                ends[sink], sinks[read] = write, sink
                opened.callback(os.close, write)
                continue
            if terminal is None:
                terminal = _terminal_like(sink)
                sinks[terminal[0]] = sink
                opened.callback(os.close, terminal[1])
            ends[sink] = terminal[1]
        began = time.monotonic()
        try:
            process = subprocess.Popen(argv, stdout=ends[_OUT], stderr=ends[_ERR])  # noqa: S603 — the user's command
        except OSError:
            for source in sinks:
                os.close(source)
            raise
    return RunningCommand(process=process, sinks=sinks, began=began)


def _terminal_like(real: int) -> tuple[int, int]:
    """Return both sides of a new terminal of the same size; the real one alone changes line ends."""
    near, far = os.openpty()
    settings = termios.tcgetattr(far)
    settings[_FLAGS] &= ~termios.OPOST
    termios.tcsetattr(far, termios.TCSANOW, settings)
    _copy_size(real, near)
    return near, far


def _copy_size(real: int, near: int) -> None:
    with contextlib.suppress(OSError):
        size = fcntl.ioctl(real, termios.TIOCGWINSZ, b"\0" * 8)
        fcntl.ioctl(near, termios.TIOCSWINSZ, size)


@contextmanager
def signals_passed_to(command: RunningCommand) -> Generator[None]:
    """Pass the signals that end this process on to a command; it ends by itself when the command has."""

    def forward(number: int, _: FrameType | None) -> None:
        command.process.send_signal(number)

    def resize(_: int, __: FrameType | None) -> None:
        for near, real in list(command.sinks.items()):
            if os.isatty(real):
                _copy_size(real, near)

    def ignore(_: int, __: FrameType | None) -> None:
        """Do nothing: the command gets the signal, too."""

    wanted = {**dict.fromkeys(_FORWARDED, forward), **dict.fromkeys(_DIRECT, ignore), signal.SIGWINCH: resize}
    before = {number: signal.signal(number, handler) for number, handler in wanted.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
