"""The outer edge of the command line: a failed file operation or Ctrl-C ends a command here, without a traceback."""

import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, TypeAlias, cast

from interlock.cli.frame.running import printing

if TYPE_CHECKING:
    import argparse

    from _typeshed import ReadableBuffer

    _Options: TypeAlias = argparse.Namespace | SimpleNamespace

FAILED = 1
INTERRUPTED = 130
"""The exit code of a command that Ctrl-C ended: 128 and the number of the signal."""


def run_at_edge(command: Callable[[], int], options: "_Options") -> int:
    """Run a command and return its exit code: `FAILED` after a message if a file operation failed.

    Args:
        command: The command. It handles every failure about which it can say more.
        options: The options that were parsed before the command failed. The message names its `command`.
            With `as_json` the error is printed as JSON on standard output, too.
    """
    _ensure_stderr()
    try:
        return command()
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:
        return printing(partial(_report, error, options))


def _interrupt(_number: int, _frame: object) -> None:
    # A shell script lets its background commands ignore SIGINT, so raising it would have no effect in them.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        raise KeyboardInterrupt
    signal.raise_signal(signal.SIGINT)


@contextmanager
def ending_as_interrupted() -> Generator[None, None, None]:
    """Let SIGTERM and SIGHUP end a command as Ctrl-C does, so that what it started ends with it.

    A signal that is ignored, as below `nohup`, stays so. SIGTERM ends a command that ignores Ctrl-C, too.
    """
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    is_main = threading.current_thread() is threading.main_thread()
    taken = [one for one in numbers if is_main and signal.getsignal(one) is signal.SIG_DFL]
    for number in taken:
        signal.signal(number, _interrupt)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


def _report(error: OSError, options: "_Options") -> int:
    from interlock.cli.screen import StopError, complain, printable_line  # noqa: PLC0415 — a server does not pay for it
    from interlock.kernel.errors import ErrorCode, RetryKind  # noqa: PLC0415 — see above

    path = cast("str | bytes | os.PathLike[str] | int | None", error.filename)
    what = "A file operation"
    if path is not None and not isinstance(path, int):
        # Only the last name: the rest of the path is not always what the user typed.
        what = printable_line(Path(os.fsdecode(path)).name) or what
    fix = "The command stopped there. Check permissions and the disk; `interlock doctor` checks the data directory."
    stop = StopError(
        f"{what}: {error.strerror or 'it failed'}.",
        fix,
        exit_code=FAILED,
        code=ErrorCode.STORE_FAILED,
        retry=RetryKind.NOT_RETRYABLE,
    )
    complain(stop, getattr(options, "command", None) or "command line", as_json=getattr(options, "as_json", False))
    return FAILED


def ensure_stdin() -> None:
    """Replace a standard input that is closed by an empty one, which no command has to tell from another."""
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison] — so it is in a process without one
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: PTH123, SIM115 — as long as the process lives


class _Stderr(io.FileIO):
    """The standard error output, whose failure changes no result: what a full disk or a closed pipe refuses is lost."""

    def write(self, data: "ReadableBuffer", /) -> int:
        """Write, and say that all of it was written if it cannot be."""
        written: int | None = None
        with suppress(OSError):
            written = super().write(data)
        return memoryview(data).nbytes if written is None else written


def _ensure_stderr() -> None:
    """Replace the standard error output by one that never fails.

    If it is closed, no message goes to standard output instead. What a program put in its place stays.
    """
    if sys.stderr is None:  # pyright: ignore[reportUnnecessaryComparison] — so it is in a process without one
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 — as long as the process lives
    elif sys.stderr is sys.__stderr__ and isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr.flush()
        stream = io.BufferedWriter(_Stderr(sys.stderr.fileno(), "wb", closefd=False))
        encoding, errors = sys.stderr.encoding, sys.stderr.errors
        sys.stderr = io.TextIOWrapper(stream, encoding, errors, line_buffering=True, write_through=True)
