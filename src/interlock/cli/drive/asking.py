"""Asks the person at the terminal."""

import sys

import anyio.to_thread

from interlock.cli.screen import printable_line


async def ask_in_terminal(question: str) -> bool:
    """Ask a question on stderr and return whether the answer is yes. The end of the input is a no."""
    sys.stderr.write(f"{printable_line(question)} [y/N] ")
    sys.stderr.flush()
    answer = await anyio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True)
    return answer.strip().casefold() in ("y", "yes")
