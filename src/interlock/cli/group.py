"""One command of a group, run as a person's command: imported when chosen, plain about faults."""

import gc
import sys
from collections.abc import Callable
from typing import Any, TypeAlias

_VALUES_BEFORE_A_LOOK = 100_000
Command: TypeAlias = Callable[[], int]
"""A command with its arguments; it returns its exit code."""


def run_in_group(group: str, chosen: Callable[[], Command], *, as_json: bool = False) -> int:
    """Import a command by `chosen`, run it, and return its exit code."""
    # What is imported stands for good; looking for garbage in it takes a tenth of the time.
    gc.disable()
    from interlock.cli.screen import StopError, complain  # noqa: PLC0415 — a server does not pay for it

    _make_bearable(sys.stdout)
    _make_bearable(sys.stderr)
    try:
        command = chosen()
        gc.freeze()
        # A command makes much and keeps little; looking for cycles every few hundred values takes a tenth of its time.
        gc.set_threshold(_VALUES_BEFORE_A_LOOK)
        gc.enable()
        return command()
    except StopError as stop:
        complain(stop, group, as_json=as_json)
        return stop.exit_code
    finally:
        gc.enable()


def _make_bearable(stream: object) -> None:
    """Let a terminal that cannot show a character show a mark instead of ending the command."""
    reconfigure: Callable[..., Any] | None = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="replace")
