"""`interlock session import`: create a session from a bundle."""

import argparse
import json
import sys

from interlock.cli.options import add_store_options
from interlock.cli.screen import RefusedError, StopError, printable_line, say, say_json
from interlock.cli.store import answered_by_store, open_chosen_store
from interlock.kernel.budgets import BUNDLE_BYTES_MAX
from interlock.kernel.canonical import Json
from interlock.kernel.errors import Refusal
from interlock.record.bundle import SalvageBanner
from interlock.service.clock import SystemClock
from interlock.service.ports import ReadPorts
from interlock.service.transfer.import_ import Imported, import_session
from interlock.service.transfer.restore import Restored, Restoring
from interlock.service.transfer.salvage import left_out_words
from interlock.store.ports.store import Store
from interlock.store.regular_file import read_regular

STDIN = "-"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_store_options(parser)
    parser.add_argument("file", metavar="FILE", help="the file to import, `-` for standard input")


def run(options: argparse.Namespace) -> int:
    """Import a bundle, print how to continue its runs, and return the exit code.

    Raises:
        StopError: The file cannot be read, or the import is refused.
    """
    store = open_chosen_store(options)
    data = read_bundle(options.file)
    with answered_by_store():
        imported = import_session(restoring(store), data)
    if isinstance(imported, Refusal):
        raise RefusedError(imported)
    if options.as_json:
        say_json(_json(imported))
    else:
        _report(imported)
    return 0


def restoring(store: Store) -> Restoring:
    """Return the ports that restore a session in a data directory."""
    return Restoring(read=ReadPorts.over(store, store), writer=store, key_ring=store, clock=SystemClock())


def say_ways_on(restored: Restored) -> None:
    """Print how to continue each run of a restored session."""
    for way in restored.ways_on:
        run = way.run
        status = way.status.replace("_", " ")
        say(f"Run `{run.label}` ({run.workflow_id}), {status}. Your agent reads its state with this call:")
        say(f"  {way.next_call.tool} {json.dumps(way.next_call.arguments)}")


def restored_json(restored: Restored) -> dict[str, Json]:
    """Return a restored session as `--json` prints it."""
    return {
        "sessionId": restored.session,
        "events": restored.events,
        "groups": restored.groups,
        "runs": [way.to_json() for way in restored.ways_on],
    }


def salvage_words(banner: SalvageBanner) -> str:
    """Return in words that a bundle is not the whole session, and what is missing."""
    return (
        f"{banner.code}: the bundle contains only the intact beginning of a damaged session;"
        f" what followed it is unknown. Left out: {left_out_words(banner)}."
    )


def read_bundle(file: str) -> bytes:
    """Read a bundle file. Of a file over the limit, only one byte more than the limit is read.

    Raises:
        StopError: The file cannot be read.
    """
    try:
        if file == STDIN:
            return sys.stdin.buffer.read(BUNDLE_BYTES_MAX + 1)
        return read_regular(file, BUNDLE_BYTES_MAX)
    except OSError as error:
        message = f"{printable_line(file)} cannot be read: {error.strerror}."
        fix = "Name a file that `interlock session export` wrote, or `-` to read one from a pipe."
        raise StopError(message, fix, exit_code=1) from None
    except MemoryError:
        message = f"{printable_line(file)} cannot be read: there is not enough memory. Nothing was stored."
        raise StopError(message, "End other programs, then run this command again.", exit_code=1) from None


def _json(imported: Imported) -> dict[str, Json]:
    fields: dict[str, Json] = {**restored_json(imported.restored), "bundledSessionId": imported.source}
    if imported.banner is not None:
        fields["salvage"] = imported.banner.to_json()
    return fields


def _report(imported: Imported) -> None:
    restored = imported.restored
    if imported.banner is not None:
        say(salvage_words(imported.banner))
    say(f"Imported {restored.events} events as {restored.session}.")
    if restored.session != imported.source:
        say(f"The session id in the bundle, {imported.source}, exists here already, so this session has a new id.")
    say_ways_on(restored)
