"""Standard output that is closed, full or read no further: told in one line, never as a traceback."""

import os
import sys
from collections.abc import Callable

NOT_PRINTED = 1
"""The exit code of a command whose output could not be written."""


def printing(command: Callable[[], int]) -> int:
    """Run a command that prints its result and return its exit code: `NOT_PRINTED` if the result did not get out.

    A command that has nowhere to print to is not begun.
    """
    if sys.stderr is None:  # pyright: ignore[reportUnnecessaryComparison] — so it is in a process without one
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 — as long as the process lives
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison] — see above
        return _lost("standard output is closed")
    try:
        exit_code = command()
        sys.stdout.flush()
    except BrokenPipeError:
        _print_no_more()
        return NOT_PRINTED  # whoever read has seen enough
    except OSError as error:
        if error.filename is not None:
            raise
        _print_no_more()
        return _lost(error.strerror or str(error))
    return exit_code


def _lost(why: str) -> int:
    print(f"interlock: the output cannot be written: {why}. Send it where it can be, such as a file.", file=sys.stderr)
    return NOT_PRINTED


def _print_no_more() -> None:
    """See that the interpreter does not stumble over the same output when it leaves."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
