"""How well it is known that a person gave an answer: one rule for every way in (WORLD-9)."""

from typing import Literal, TypeAlias

from interlock.record.events import Actor
from interlock.service.outside.receive import Arrival
from interlock.version import VERSION

Way: TypeAlias = Literal["command", "console", "elicitation", "app"]
"""The ways in which people answer: a command, the console, a form of the client, a page in a chat."""


def arrival_of(way: Way, *, is_by_person: bool, is_of_agent: bool | None) -> Arrival:
    """Return how an answer arrived, and how well it is known that a person gave it.

    `is_by_person` is what the way itself shows: a command has a terminal, a person admitted the browser, the client
    showed a form. `is_of_agent` says whether an agent started the process through which the answer came, which is the
    client of a server for a form; None if that cannot be known.
    """
    return Arrival(via=way, assurance="observed" if is_by_person and is_of_agent is False else "claimed")


def actor_of(how: Arrival, identifier: str) -> Actor:
    """Return who gave an answer: a human only if that is observed."""
    return Actor(
        type="human" if how.assurance == "observed" else "system",
        identifier=identifier,
        metadata={"version": VERSION},
    )
