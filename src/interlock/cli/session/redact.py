"""`interlock session redact`: copy a session into a new one without a value, such as a secret."""

import argparse
import sys

from interlock.cli.options import add_store_options, printed_command
from interlock.cli.screen import RefusedError, counted, say, say_json
from interlock.cli.session.chosen import named_session
from interlock.cli.session.import_ import STDIN, restored_json, restoring, say_ways_on
from interlock.cli.store import answered_by_store, open_chosen_store
from interlock.kernel.budgets import REDACTED_BYTES_MAX
from interlock.kernel.errors import Refusal
from interlock.record.content import REDACTED
from interlock.service.transfer.redact import redact_session


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_store_options(parser)
    parser.add_argument("session", metavar="SESSION", help="the session id or a run's label")
    parser.add_argument(
        "--value", required=True, metavar="TEXT", help="the text to remove; `-` reads it from standard input"
    )


def run(options: argparse.Namespace) -> int:
    """Copy a session without the value, print how to continue its runs and how to delete the old one.

    Raises:
        StopError: The value cannot be removed, or the session does not exist or is damaged.
    """
    store = open_chosen_store(options)
    session = named_session(store, options.session)
    value = sys.stdin.read(REDACTED_BYTES_MAX).strip() if options.value == STDIN else options.value
    with answered_by_store():
        redacted = redact_session(restoring(store), session, value)
    if isinstance(redacted, Refusal):
        raise RefusedError(redacted)
    restored = redacted.restored
    if options.as_json:
        say_json({**restored_json(restored), "redactedSessionId": session, "texts": redacted.texts})
        return 0
    delete = printed_command(options, f"interlock session delete {session}")
    say(f"Copied {session} to {restored.session}: {REDACTED} is in {counted(redacted.texts, 'text')}.")
    say(f"{session} is unchanged and still contains the value. Delete it: `{delete}`")
    say("Tokens of the old session do not work in the new one.")
    say_ways_on(restored)
    return 0
