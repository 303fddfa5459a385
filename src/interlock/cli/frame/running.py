"""Run a command: tune garbage collection, print refusals, and report an output that cannot be written."""

import errno
import gc
import io
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from interlock.kernel.budgets import COLLECTION_VALUES_MIN

if TYPE_CHECKING:
    import argparse

    from _typeshed import ReadableBuffer

NOT_PRINTED = 1
"""The exit code of a command whose output could not be written."""


def run_command(options: "argparse.Namespace") -> int:
    """Run the command that was chosen and return its exit code. Refusals are printed, never raised."""
    from interlock.cli.screen import StopError, complain  # noqa: PLC0415 — a server does not pay for it

    _replace_unprintable(sys.stdout)
    _replace_unprintable(sys.stderr)
    # Imported code is never garbage. A command makes many short-lived values: at the default threshold, collections
    # would take a tenth of its time.
    gc.freeze()
    gc.set_threshold(COLLECTION_VALUES_MIN)
    gc.enable()
    try:
        return options.run(options)
    except StopError as stop:
        complain(stop, options.command, as_json=getattr(options, "as_json", False))
        return stop.exit_code


def _replace_unprintable(stream: object) -> None:
    """Replace a character that a terminal cannot show, instead of ending the command with an error."""
    reconfigure: Callable[..., Any] | None = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="replace")


class OutputFailedError(OSError):
    """Standard output cannot be written."""


class _Output(io.FileIO):
    """Standard output with an error class of its own, to distinguish its failures from those of other files."""

    def write(self, data: "ReadableBuffer", /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            raise OutputFailedError(error.errno, error.strerror) from error


def printing(command: Callable[[], int]) -> int:
    """Run a command that prints its result and return its exit code: `NOT_PRINTED` if the result did not get out.

    If standard output is closed, the command does not start.
    """
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison] — so it is in a process without one
        return _report_failed_output("standard output is closed")
    _watch_output()
    try:
        exit_code = command()
        sys.stdout.flush()
    except OutputFailedError as error:
        _discard_output()
        if error.errno == errno.EPIPE:
            return NOT_PRINTED  # the reader closed the pipe: it needs no more
        return _report_failed_output(error.strerror or "it failed")
    return exit_code


def _watch_output() -> None:
    """Replace standard output by one over `_Output`, unless a test or an embedding program has replaced it."""
    stream = sys.stdout
    binary: object = getattr(stream, "buffer", None)
    # With PYTHONUNBUFFERED there is no buffer between the text and the file.
    file: object = getattr(binary, "raw", binary)
    if not isinstance(stream, io.TextIOWrapper) or type(file) is not io.FileIO:
        return
    stream.flush()
    output = _Output(stream.fileno(), "w", closefd=False)
    sys.stdout = io.TextIOWrapper(
        output if file is binary else io.BufferedWriter(output),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def _report_failed_output(why: str) -> int:
    print(f"interlock: the output cannot be written: {why}. Write it to a file instead.", file=sys.stderr)
    return NOT_PRINTED


def _discard_output() -> None:
    """Redirect standard output to the null device, so that the interpreter does not fail on it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
