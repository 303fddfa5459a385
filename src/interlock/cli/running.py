"""How a command is run: with what it imported settled, and plain about faults and about an output that is closed."""

import argparse
import errno
import gc
import io
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from interlock.kernel.budgets import COLLECTION_VALUES_MIN

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

NOT_PRINTED = 1
"""The exit code of a command whose output could not be written."""


def run_command(options: argparse.Namespace) -> int:
    """Run the command that was chosen and return its exit code. Refusals are printed, never raised."""
    from interlock.cli.screen import StopError, complain  # noqa: PLC0415 — a server does not pay for it

    _make_bearable(sys.stdout)
    _make_bearable(sys.stderr)
    # Imported code stays. A command makes many values and keeps few, so that a collection after every few hundred of
    # them would take a tenth of its time.
    gc.freeze()
    gc.set_threshold(COLLECTION_VALUES_MIN)
    gc.enable()
    try:
        return options.run(options)
    except StopError as stop:
        complain(stop, options.command, as_json=getattr(options, "as_json", False))
        return stop.exit_code


def _make_bearable(stream: object) -> None:
    """Let a terminal that cannot show a character show a mark instead of ending the command."""
    reconfigure: Callable[..., Any] | None = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="replace")


class OutputFailedError(OSError):
    """Standard output does not take what is written to it."""


class _Output(io.FileIO):
    """Standard output whose failures cannot be mistaken for those of another file."""

    def write(self, data: "ReadableBuffer", /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            raise OutputFailedError(error.errno, error.strerror) from error


def printing(command: Callable[[], int]) -> int:
    """Run a command that prints its result and return its exit code: `NOT_PRINTED` if the result did not get out.

    A command that has nowhere to print to is not begun.
    """
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison] — so it is in a process without one
        return _lost("standard output is closed")
    _watch_output()
    try:
        exit_code = command()
        sys.stdout.flush()
    except OutputFailedError as error:
        _print_no_more()
        if error.errno == errno.EPIPE:
            return NOT_PRINTED  # whoever read has seen enough
        return _lost(error.strerror or "it failed")
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


def _lost(why: str) -> int:
    print(f"interlock: the output cannot be written: {why}. Write it to a file instead.", file=sys.stderr)
    return NOT_PRINTED


def _print_no_more() -> None:
    """See that the interpreter does not stumble over the same output when it leaves."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
