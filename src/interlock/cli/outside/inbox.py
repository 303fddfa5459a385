"""`interlock inbox`: everything that waits for a person, oldest first, each with the commands that answer it."""

import argparse

from interlock.cli.options import add_store_options, printed_command
from interlock.cli.outside.writing import command_settings
from interlock.cli.screen import counted, printable_line, say, say_json
from interlock.cli.session.chosen import listing, say_unreadable
from interlock.cli.store import answered_by_store, open_chosen_reader
from interlock.config.checks import LocalChecks
from interlock.config.project_checks import checks_to_allow
from interlock.kernel.frozen import replace
from interlock.kernel.text import flat
from interlock.service.clock import SystemClock
from interlock.service.run.plans import Plans
from interlock.service.trust.inbox import InboxNow, inbox_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_store_options(parser)
    parser.add_argument("--workspace", default=argparse.SUPPRESS, help="directory of the project (INTERLOCK_WORKSPACE)")


def run(options: argparse.Namespace) -> int:
    """Print what waits for a person and return the exit code.

    Raises:
        StopError: The configuration has faults, or the store failed.
    """
    settings, store = command_settings(options), open_chosen_reader(options)
    checks = LocalChecks(data_dir=settings.data_dir, configured=settings.config.checks)
    keys = frozenset((one.name, one.public_key) for one in settings.config.sources)
    now = InboxNow(channels=settings.config.channels, checks=checks, keys=keys, now_ms=SystemClock().unix_ms())
    with answered_by_store():
        plans = Plans(store)
        found = listing(store, plans)
        items = [*checks_to_allow(settings), *inbox_of(store, plans, found, now)]
    items = [replace(one, commands=tuple(printed_command(options, line) for line in one.commands)) for one in items]
    if options.as_json:
        unreadable = [one.session for one in found.unreadable]
        say_json({"items": [one.to_json() for one in items], "unreadable": unreadable})
        return 0
    say_unreadable(found.unreadable)
    for one in items:
        text = f"{one.marked_text()}\n" if one.text else ""
        commands = "\n".join(f"  {printable_line(command)}" for command in one.commands)
        say(f"{flat(one.title)}\n{text}{commands}\n")
    say(f"{counted(len(items), 'thing')} waiting for a person." if items else "Nothing waits for a person.")
    return 0
