"""What the commands print: words that cannot steer a terminal, tables, faults with their places."""

import json
import re
import sys
import textwrap
from collections.abc import Collection, Iterable, Sequence

from interlock.define.diagnostics import Diagnostic, Diagnostics
from interlock.kernel.budgets import CELL_CHARS_MIN, TERMINAL_CHARS_MIN
from interlock.kernel.canonical import Json
from interlock.kernel.errors import InterlockError
from interlock.kernel.text import flat, printable

_SAID_PLACE = re.compile(r"Line (\d+)(?:, column (\d+))?")
"""A file that cannot be read as JSON or YAML has no document path; its fault says where the text breaks off."""
_UNIT_STEP = 1000
_GAP = "  "
"""Between two columns of a table."""
_UNITS = ("kB", "MB", "GB", "TB")


class StopError(InterlockError):
    """A command cannot go on: what is wrong, what to do, and how it exits (1 refused, 2 wrong command line).

    Where a file's faults are why, they are told between the two.
    """

    def __init__(self, message: str, fix: str, *, exit_code: int, file: str = "", faults: Diagnostics = ()) -> None:
        self.message, self.fix, self.exit_code = message, fix, exit_code
        self.file, self.faults = file, faults
        super().__init__(self.in_lines())

    def in_lines(self) -> str:
        """Return it in words: what is wrong, each fault on a line of its own, what to do."""
        return "\n".join([self.message, *fault_lines(self.file, self.faults), self.fix])

    def to_json(self) -> dict[str, Json]:
        """Return it as `--json` prints it."""
        told: dict[str, Json] = {"message": self.message, "fix": self.fix}
        if self.faults:
            told |= {"file": self.file, "diagnostics": [one.to_json() for one in self.faults]}
        return {"error": told}


def say(text: str) -> None:
    """Print text. What it holds of others' words cannot steer the terminal."""
    print(printable(text))


def say_json(value: object) -> None:
    """Print a JSON value, in ASCII: every terminal and pipe carries it unchanged."""
    print(json.dumps(value, indent=2))


def complain(stop: StopError, group: str, *, as_json: bool = False) -> None:
    """Print why a command cannot go on, and what to do, on stderr; for a program that reads JSON, on stdout too."""
    print(printable(f"interlock {group}: {stop.in_lines()}"), file=sys.stderr)
    if as_json:
        say_json(stop.to_json())


def printable_line(text: str) -> str:
    """Return text as `printable` does, on one line: for names of files, which may hold anything."""
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def fault_lines(file: str, diagnostics: Diagnostics) -> list[str]:
    """Return a file's faults in the order of their places, each on one line that editors and terminals can follow."""
    placed = sorted(((_place(one), one) for one in diagnostics), key=lambda pair: pair[0])
    return [
        f"{file}:{line}:{column}: {one.severity} {one.code} {one.path or '(document)'}: {one.message} {one.fix}"
        for (line, column), one in placed
    ]


def _place(diagnostic: Diagnostic) -> tuple[int, int]:
    if diagnostic.line is not None:
        return diagnostic.line, diagnostic.column or 1
    said = _SAID_PLACE.match(diagnostic.message)
    return (int(said[1]), int(said[2] or 1)) if said else (1, 1)


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is one."""
    plural = "es" if noun.endswith("h") else "s"
    return f"{number} {noun}{'' if number == 1 else plural}"


def in_units(size: int) -> str:
    """Return a number of bytes in the largest unit of which there is one, with one decimal."""
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
