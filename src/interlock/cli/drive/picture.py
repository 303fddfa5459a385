"""The live picture of a drive: one line that is replaced on a terminal, plain lines anywhere else."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

from interlock.drive.run.driver import Progress
from interlock.kernel.budgets import ECHO_BYTES_MAX
from interlock.kernel.text import flat, one_line

_ERASE = "\r\x1b[K"


@contextmanager
def shown_drive(*, is_json: bool) -> Generator[Callable[[Progress], None]]:
    """Yield a callback that shows where the drive is: on stderr, so that standard output holds the result alone."""
    if sys.stderr is None or is_json:  # pyright: ignore[reportUnnecessaryComparison] — it may be closed
        yield lambda _: None
        return
    is_terminal = sys.stderr.isatty()

    def show(progress: Progress) -> None:
        line = progress_line(progress)
        sys.stderr.write(f"{_ERASE}{line}" if is_terminal else f"{line}\n")
        sys.stderr.flush()

    try:
        yield show
    finally:
        if is_terminal:
            sys.stderr.write(_ERASE)
            sys.stderr.flush()


def progress_line(progress: Progress) -> str:
    """Return step, turn, tools, tokens, money and time on one line."""
    step, usage = progress.position.step, progress.usage
    place = f"step {step.number}/{step.total} {flat(step.title)}" if step is not None else "complete"
    tools = f" · {one_line(', '.join(progress.tools), ECHO_BYTES_MAX)}" if progress.tools else ""
    cost = f" · {usage.cost:.4f}" if usage.cost else ""
    return f"{place} · turn {progress.turn}{tools} · {usage.tokens} tokens{cost} · {progress.seconds:.0f} s"
