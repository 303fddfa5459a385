"""Whether a person runs a command in a terminal of their own, or an agent may have started it (WORLD-9)."""

import argparse
import os
import sys

from interlock.cli.options import chosen_data_dir
from interlock.cli.screen import StopError
from interlock.kernel.descent import DESCENDANT
from interlock.record.events import Actor
from interlock.service.outside.receive import Arrival
from interlock.store.opening import descends_from_client
from interlock.version import VERSION


def is_person(options: argparse.Namespace) -> bool:
    """Say whether the word of this command is one of a person: it has a terminal, and no agent's client started it."""
    if not sys.stdin.isatty() or os.environ.get(DESCENDANT):
        return False
    return descends_from_client(chosen_data_dir(options)) is False


def arrival_of(options: argparse.Namespace) -> tuple[Arrival, Actor]:
    """Return how well the word of this command counts, and its actor."""
    known = is_person(options)
    actor = Actor(type="human" if known else "system", identifier="command line", metadata={"version": VERSION})
    return Arrival(via="command", assurance="observed" if known else "claimed"), actor


def require_person(options: argparse.Namespace, what: str) -> None:
    """End the command unless a person runs it.

    Raises:
        StopError: It has no terminal, or a process of an agent's client may have started it.
    """
    if not is_person(options):
        message = f"Only a person {what}; this command was not started in a terminal of a person."
        fix = (
            "Run it in a terminal that no agent controls. Interlock cannot tell on platforms without /proc, and while "
            "the directory `live` of the data directory cannot be read."
        )
        raise StopError(message, fix, exit_code=1)
