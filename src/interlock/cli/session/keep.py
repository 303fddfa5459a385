"""`interlock session keep` and `unkeep`: protect sessions from deletion by age."""

import argparse
from collections.abc import Sequence

from interlock.cli.options import add_store_options, chosen_data_dir
from interlock.cli.screen import StopError, say, say_json
from interlock.cli.session.chosen import named_sessions
from interlock.cli.store import open_chosen_reader
from interlock.cli.upkeep.failures import answered_by_upkeep, unconfirmed
from interlock.kernel.errors import ErrorCode
from interlock.kernel.ids import SessionId
from interlock.store.opening import open_retention_pins

UNCONFIRMED = (
    "The retention pins were written, but the disk did not confirm it, so a power loss may undo the change",
    "Check the disk, then run the same command again: a repeat is safe.",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of both commands."""
    add_store_options(parser)
    parser.add_argument("sessions", metavar="SESSION", nargs="+", help="session ids")


def run(options: argparse.Namespace) -> int:
    """Pin sessions, or remove their pins, and return the exit code.

    Raises:
        StopError: A session does not exist, or none had a pin to remove; the pins cannot be read, or another command
            is running.
    """
    names, is_unkeep = named_sessions(open_chosen_reader(options), options.sessions), options.action == "unkeep"
    pins = open_retention_pins(chosen_data_dir(options))
    with answered_by_upkeep(), unconfirmed(*UNCONFIRMED):
        before = pins.kept()
        after = pins.unkeep(names) if is_unkeep else pins.keep(names)
    if is_unkeep and before == after:
        message = "None of these sessions is kept; nothing was changed."
        raise StopError(
            message, "Give the ids of sessions that are kept.", exit_code=1, code=ErrorCode.SESSION_NOT_FOUND
        )
    _say(names, before, after, "no longer kept" if is_unkeep else "kept", as_json=options.as_json)
    return 0


def _say(
    names: Sequence[str], before: frozenset[SessionId], after: frozenset[SessionId], words: str, *, as_json: bool
) -> None:
    changed = before ^ after
    if as_json:
        say_json({"changed": sorted(changed), "kept": sorted(after)})
        return
    for name in dict.fromkeys(names):
        say(f"{name}: {words}{'' if name in changed else ', as before'}")
