"""Whether a person runs a command in a terminal of their own, or an agent may have started it (WORLD-9)."""

import argparse
import sys

from interlock.cli.options import chosen_data_dir
from interlock.cli.screen import StopError
from interlock.record.events import Actor
from interlock.service.outside.receive import Arrival
from interlock.service.trust.word import actor_of, arrival_of
from interlock.store.opening import is_of_agent


def is_person(options: argparse.Namespace) -> bool:
    """Say whether the word of this command is one of a person: it has a terminal, and no agent started it."""
    return word_of_command(options)[0].assurance == "observed"


def started_by_agent(options: argparse.Namespace) -> bool | None:
    """Say whether an agent started this command; None if that is not known, as it is not without a terminal."""
    return is_of_agent(chosen_data_dir(options)) if sys.stdin.isatty() else None


def word_of_command(options: argparse.Namespace) -> tuple[Arrival, Actor]:
    """Return how well the word of this command counts, and its actor."""
    how = arrival_of("command", is_by_person=sys.stdin.isatty(), is_of_agent=started_by_agent(options))
    return how, actor_of(how, "command line")


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
