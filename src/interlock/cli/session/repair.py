"""`interlock session repair`: copy the intact part of a damaged session into a new session."""

import argparse

from interlock.cli.options import add_store_options
from interlock.cli.screen import RefusedError, say, say_json
from interlock.cli.session.chosen import named_session
from interlock.cli.session.import_ import restored_json, restoring, say_ways_on
from interlock.cli.store import answered_by_store, open_chosen_store
from interlock.kernel.errors import Refusal
from interlock.service.transfer.repair import Settled, repair_session
from interlock.service.transfer.salvage import left_out_words
from interlock.store.ports.errors import Health


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_store_options(parser)
    parser.add_argument("session", metavar="SESSION", help="the damaged session's id")


def run(options: argparse.Namespace) -> int:
    """Copy the intact beginning of a damaged session into a new one, print what was left out, return the exit code.

    A session of which only the settled mark is damaged is settled instead.

    Raises:
        StopError: The session needs no repair, or no part of it is intact.
    """
    store = open_chosen_store(options)
    session = named_session(store, options.session)
    with answered_by_store():
        repaired = repair_session(restoring(store), session)
    if isinstance(repaired, Refusal):
        raise RefusedError(repaired)
    if isinstance(repaired, Settled):
        if options.as_json:
            say_json({"settledSessionId": session, "events": repaired.events})
        else:
            say(f"{session} has {repaired.events} events: its last append counts, and its mark was written again.")
        return 0
    restored, banner = repaired.restored, repaired.banner
    if options.as_json:
        fields = {**restored_json(restored), "repairedSessionId": session, "salvage": banner.to_json()}
        say_json(fields)
        return 0
    say(f"{banner.code}: copied {restored.events} events in {restored.groups} appends into {restored.session}.")
    say(f"Left out: {left_out_words(banner)}.")
    say(f"{session} is unchanged.")
    if banner.health == Health.HEALTHY:
        say("Its log is intact: steps that do not need the missing content still work in it.")
    say_ways_on(restored)
    return 0
