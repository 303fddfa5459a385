"""Printing for commands: text without terminal control characters, tables, faults with their places."""

import json
import re
import sys
import textwrap
from collections.abc import Collection, Iterable, Sequence

from interlock.define.diagnostics import Diagnostic, Diagnostics
from interlock.kernel.budgets import CELL_CHARS_MIN, TERMINAL_CHARS_MIN
from interlock.kernel.canonical import Json
from interlock.kernel.errors import ErrorCode, InterlockError, Refusal, RetryKind
from interlock.kernel.frozen import replace
from interlock.kernel.text import flat, printable

_PLACE_IN_MESSAGE = re.compile(r"Line (\d+)(?:, column (\d+))?")
"""The place in the message of a fault that has no document path: the file is not valid JSON or YAML."""
_UNIT_STEP = 1000
_GAP = "  "
"""Between two columns of a table."""
_UNITS = ("kB", "MB", "GB", "TB")


class StopError(InterlockError):
    """A command cannot continue: what is wrong, how to fix it, and the exit code (1 refused, 2 wrong command line).

    With `--json` it is the envelope of all errors (ANS-17). If a file has faults, they are printed between the message
    and the fix.
    """

    def __init__(
        self,
        message: str,
        fix: str,
        *,
        exit_code: int,
        code: ErrorCode = ErrorCode.VALIDATION_ERROR,
        retry: RetryKind | None = None,
    ) -> None:
        self.refusal = Refusal(code=code, message=message, suggestion=fix, retry=retry)
        self.message, self.fix, self.exit_code = message, fix, exit_code
        super().__init__(self.in_lines())

    def in_lines(self) -> str:
        """Return the message and the fix."""
        return f"{self.message}\n{self.fix}"

    def to_json(self) -> dict[str, Json]:
        """Return the object as `--json` prints it."""
        return {"error": self.refusal.envelope()}


class FaultyFileError(StopError):
    """A workflow file has faults: each is printed on its own line, between the message and the fix."""

    def __init__(self, message: str, fix: str, *, file: str, faults: Diagnostics) -> None:
        self.file, self.faults = file, faults
        super().__init__(message, fix, exit_code=1, code=ErrorCode.WORKFLOW_INVALID)
        diagnostics: list[Json] = [one.to_json() for one in faults]
        self.refusal = replace(self.refusal, details={"file": file, "diagnostics": diagnostics})

    def in_lines(self) -> str:
        """Return the message, each fault on its own line, and the fix."""
        return "\n".join([self.message, *fault_lines(self.file, self.faults), self.fix])


_ENDED_FIX = "To do the work after all, begin a new run. `interlock session show` shows what was done in this one."


class RefusedError(StopError):
    """A refusal of a use case. It ends the command with 1, and its code precedes the message."""

    def __init__(self, refusal: Refusal) -> None:
        is_of_ended = refusal.code is ErrorCode.RUN_ENDED and "ended" in refusal.details
        # The suggestion of the tools is what an agent does: it tells its user.
        refusal = replace(refusal, suggestion=_ENDED_FIX) if is_of_ended else refusal
        super().__init__(f"{refusal.code}: {refusal.message}", refusal.suggestion, exit_code=1)
        self.refusal = refusal


def say(text: str) -> None:
    """Print text with its terminal control characters escaped."""
    print(printable(text))


def say_json(value: object) -> None:
    """Print a JSON value in ASCII, which every terminal and pipe passes on unchanged."""
    print(json.dumps(value, indent=2))


def complain(stop: StopError, group: str, *, as_json: bool = False) -> None:
    """Print an error on stderr, and with `--json` on stdout too."""
    print(printable(f"interlock {group}: {stop.in_lines()}"), file=sys.stderr)
    if as_json:
        say_json(stop.to_json())


def printable_line(text: str) -> str:
    """Escape text as `printable` does, and line breaks too: names of files may contain any character."""
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def fault_lines(file: str, diagnostics: Diagnostics) -> list[str]:
    """Render the faults of a file in the order of their places, each as `file:line:column: …`, which editors open."""
    placed = sorted(((_place(one), one) for one in diagnostics), key=lambda pair: pair[0])
    return [
        f"{file}:{line}:{column}: {one.severity} {one.code} {one.path or '(document)'}: {one.message} {one.fix}"
        for (line, column), one in placed
    ]


def _place(diagnostic: Diagnostic) -> tuple[int, int]:
    if diagnostic.line is not None:
        return diagnostic.line, diagnostic.column or 1
    match = _PLACE_IN_MESSAGE.match(diagnostic.message)
    return (int(match[1]), int(match[2] or 1)) if match else (1, 1)


def counted(number: int, noun: str) -> str:
    """Render a number with its noun, in the plural unless the number is one."""
    plural = "es" if noun.endswith("h") else "s"
    return f"{number} {noun}{'' if number == 1 else plural}"


def in_units(size: int) -> str:
    """Render a number of bytes in the largest unit that gives at least 1.0, with one decimal."""
    if size < _UNIT_STEP:
        return f"{size} B"
    power = 1
    while power < len(_UNITS) and round(size / _UNIT_STEP**power, 1) >= _UNIT_STEP:
        power += 1
    return f"{size / _UNIT_STEP**power:.1f} {_UNITS[power - 1]}"


def say_table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, ids: Collection[str] = ()) -> None:
    """Print a table: with borders on a terminal, as columns of plain text into a pipe or a file.

    Args:
        heads: The title of each column.
        rows: The cells of each row.
        ids: Titles of columns whose cells are never broken, because they are copied.
    """
    cells = [[flat(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _draw_table(heads, cells, ids)
        return
    widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
    for row in (heads, *cells):
        print(_GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _draw_table(heads: Sequence[str], rows: Sequence[Sequence[str]], ids: Collection[str]) -> None:
    """Draw a table in the terminal's width, or its rows as blocks of lines if its columns would be too narrow."""
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415 — only a terminal pays for it
    from rich.cells import cell_len  # noqa: PLC0415 — only a table needs it
    from rich.console import Console  # noqa: PLC0415 — only a table needs it
    from rich.table import Table  # noqa: PLC0415 — only a table needs it
    from rich.text import Text  # noqa: PLC0415 — only a table needs it

    console = Console(highlight=False, emoji=False)
    widths = [max(map(cell_len, column)) for column in zip(heads, *rows, strict=True)]
    least = [
        width if head in ids else min(width, max(len(head), CELL_CHARS_MIN))
        for head, width in zip(heads, widths, strict=True)
    ]
    room = console.width - len(_GAP) * (len(heads) - 1)
    if sum(least) > room:
        _say_blocks(heads, rows, console.width)
        return
    while sum(widths) > room:
        _, widest = max((width, at) for at, width in enumerate(widths) if width > least[at])
        widths[widest] -= 1
    # The divider of the box is one blank, the padding the other.
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, len(_GAP) - 1, 0, 0))
    for number, (head, width) in enumerate(zip(heads, widths, strict=True)):
        table.add_column(head, overflow="fold", width=width, style="bold" if number == 0 else "")
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)


def _say_blocks(heads: Sequence[str], rows: Iterable[Sequence[str]], width: int) -> None:
    """Print each row as a line with its first cell and, indented, a line for each other cell that is not empty."""
    for title, *others in rows:
        print(title)
        for head, cell in zip(heads[1:], others, strict=True):
            first = f"  {head}: "
            lines = textwrap.wrap(
                cell, max(width - len(first), TERMINAL_CHARS_MIN), break_long_words=False, break_on_hyphens=False
            )
            if lines:
                print(first + f"\n{' ' * len(first)}".join(lines))
