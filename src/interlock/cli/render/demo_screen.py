"""The output of `interlock demo`: acts, messages sent and received, and claims that were checked."""

import json
import sys
from dataclasses import field

from rich.console import Console
from rich.text import Text

from interlock.kernel.budgets import DEMO_LINE_BYTES_MAX
from interlock.kernel.canonical import Json
from interlock.kernel.errors import InterlockError
from interlock.kernel.frozen import positional
from interlock.kernel.text import one_line

TOKEN_PREFIXES = ("ack_", "st_")


class ClaimError(InterlockError):
    """A claim of the demo is false."""


def open_console() -> Console:
    """Return a console for standard output that replaces characters that cannot be written."""
    # If the terminal cannot show the arrows, the demo prints `?` in their place.
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="replace")
    return Console(highlight=False, emoji=False)


@positional
class DemoScreen:
    """Prints the acts, the messages sent and received, and the claims that were checked."""

    console: Console
    claims: list[str] = field(default_factory=list[str])

    def act(self, title: str, about: str) -> None:
        """Print the heading of an act and what happens in it."""
        self.console.print(Text(f"\n{title}", style="bold cyan"))
        self.console.print(Text(about, style="italic dim"))

    def sent(self, tool: str, arguments: dict[str, Json]) -> None:
        """Print a call that is sent."""
        shown = ", ".join(f"{name} {_shorten(value)}" for name, value in arguments.items())
        self._line("→", "blue", f"{tool}: {shown}")

    def received(self, summary: str, *more: str) -> None:
        """Print an answer, each part cut to one line."""
        self._line("←", "magenta", summary, is_cut=True)
        for text in more:
            self._line(" ", "dim", one_line(text, DEMO_LINE_BYTES_MAX), is_cut=True)

    def note(self, words: str, mark: str = "·") -> None:
        """Print a remark."""
        self._line(mark, "yellow", words)

    def command(self, purpose: str, command: str) -> None:
        """Print what a command is for, and the command on a line of its own, as long as it is."""
        self.note(f"{purpose}:")
        self.console.print(Text(f"      {command}"), soft_wrap=True)

    def claim(self, words: str, *, holds: bool) -> None:
        """Print a claim that was checked.

        Raises:
            ClaimError: It is false.
        """
        if not holds:
            raise ClaimError(words)
        self.claims.append(words)
        self._line("✓", "green", words)

    def failed(self, fault: BaseException) -> None:
        """Print why the demo ended early."""
        prefix = "Check failed" if isinstance(fault, ClaimError) else f"Stopped by {type(fault).__name__}"
        self._line("✗", "bold red", f"{prefix}: {fault}" if str(fault) else prefix)

    def _line(self, mark: str, style: str, words: str, *, is_cut: bool = False) -> None:
        text, room = Text(words, style=style if mark in " ✗" else ""), self.console.width - 4
        if is_cut:
            text.truncate(room, overflow="ellipsis")
        for number, row in enumerate(text.wrap(self.console, room)):
            head = Text(f"  {' ' if number else mark} ", style=style)
            self.console.print(head.append_text(row), soft_wrap=True)


def _shorten(value: Json) -> str:
    """Shorten an argument: a token to its kind and its end, an output to its notes."""
    if isinstance(value, dict) and "notesMarkdown" in value:
        return _shorten(value["notesMarkdown"])
    if isinstance(value, str) and value.startswith(TOKEN_PREFIXES):
        return f"{value.partition('_')[0]}…{value[-4:]}"
    return json.dumps(value, ensure_ascii=False)
