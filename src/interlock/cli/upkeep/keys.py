"""`interlock keys`: the keys that sign tokens, and those with which sources sign events. No private key is printed."""

import argparse
import os
import time
from pathlib import Path

from interlock.cli.options import add_store_options, checked_settings, chosen_data_dir
from interlock.cli.screen import StopError, say, say_json
from interlock.cli.upkeep.failures import answered_by_upkeep, unconfirmed
from interlock.cli.upkeep.source import add_source_arguments, make_source
from interlock.config.data_dir import check_data_dir
from interlock.kernel.budgets import DAY_S
from interlock.kernel.canonical import Json
from interlock.store.opening import open_store
from interlock.store.ports.keys import KeyRingMaintenance, KeyRingStatus
from interlock.store.ports.store import StoreReader

PRIVATE_FILE, PRIVATE_DIRECTORY = 0o600, 0o700
"""Modes that leave the key ring to its user."""
UNFINISHED = (
    "A rotation is not finished: the disk did not confirm the new key, so the previous key still signs.",
    "Run `interlock keys rotate`: it finishes that rotation and creates no other key.",
)
MISSING = (
    "Sessions are stored, but the key ring is missing: no token can be checked, and `resume_session` answers an error.",
    "Restore keys/keyring.json from a backup. Without one, run `interlock keys rotate`: it makes a new key ring.",
)
_UNCONFIRMED_FIX = """Check the disk, then run `interlock keys rotate` again: it finishes this rotation and creates no
other key. `interlock keys status` reports whether this is still necessary."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of one of the commands."""
    if parser.prog.endswith(" source"):
        add_source_arguments(parser)
    else:
        add_store_options(parser)


def run(options: argparse.Namespace) -> int:
    """Run the chosen command and return its exit code.

    Raises:
        StopError: The data directory is none; or see `_status`, `rotate_and_report` and `make_source`.
    """
    if options.action == "source":
        return make_source(options)
    data_dir, as_json = chosen_data_dir(options), bool(options.as_json)
    with checked_settings():
        check_data_dir(data_dir)
    store = open_store(data_dir)
    chosen = rotate_and_report if options.action == "rotate" else _status
    return chosen(store, store, as_json=as_json)


def is_ring_missing(ring: KeyRingMaintenance, reader: StoreReader) -> bool:
    """Say whether sessions are stored without a key ring, so no token of theirs can be checked or issued.

    Raises:
        KeyRingDamagedError, StoreFailureError: See `service.failures`.
    """
    return ring.key_ring_status() is None and bool(reader.names())


def _status(ring: KeyRingMaintenance, reader: StoreReader, *, as_json: bool) -> int:
    """Print the number, age and permissions of the keys. Return the exit code: 1 if something is to do.

    Raises:
        StopError: The ring cannot be used.
    """
    with answered_by_upkeep():
        status, is_missing = ring.key_ring_status(), is_ring_missing(ring, reader)
    is_private = status is None or is_private_ring(status)
    if as_json:
        say_json(_to_json(status))
    elif is_missing:
        say("\n".join(MISSING))
    elif status is None:
        say("There are no keys yet: the first `start_workflow` creates one.")
    else:
        say(_render_status(status))
        say("Only you can read them." if is_private else "\n".join(loose_words(status)))
        if status.has_unfinished_rotation:
            say("\n".join(UNFINISHED))
    is_fine = is_private and not is_missing and not (status and status.has_unfinished_rotation)
    return 0 if is_fine else 1


def rotate_and_report(ring: KeyRingMaintenance, reader: StoreReader, *, as_json: bool) -> int:
    """Rotate the keys, or replace a missing key ring; print which tokens still verify, and return the exit code.

    Raises:
        StopError: There is no ring to rotate, it cannot be used, or another command is at work.
    """
    message = "The new key was written, but the disk did not confirm it. Until it does, the previous key signs tokens"
    with answered_by_upkeep(), unconfirmed(message, _UNCONFIRMED_FIX):
        before = ring.key_ring_status()
        if is_ring_missing(ring, reader):
            ring.rotate()
            return _say_made(as_json=as_json)
        if before is None:
            message = "There are no keys to rotate yet; nothing was changed."
            raise StopError(message, "The first `start_workflow` creates the key ring.", exit_code=1)
        ring.rotate()
    is_finish = before.has_unfinished_rotation
    has_dropped = before.keys > 1 and not is_finish
    if as_json:
        say_json({"rotated": True, "keys": 2, "previousKeyDropped": has_dropped, "finishedEarlierRotation": is_finish})
        return 0
    say("Rotated: new tokens are signed with a new key, also by servers that are running.")
    if is_finish:
        say("This finished an earlier rotation; no other key was created.")
    say("Older tokens work until the next rotation.")
    if has_dropped:
        say(
            "Tokens from before the last rotation no longer work: they answer TOKEN_BAD_SIGNATURE. Sessions are"
            " unchanged; an agent with such a token finds its run with `resume_session`."
        )
    else:
        say("The next rotation makes them invalid; it does not change sessions.")
    return 0


def _say_made(*, as_json: bool) -> int:
    if as_json:
        say_json({"rotated": False, "keys": 2, "created": True})
        return 0
    say("The key ring was missing. A new one was made, and servers that are running use it.")
    say(
        "Tokens issued before no longer work: they answer TOKEN_BAD_SIGNATURE. Sessions are unchanged; an agent with"
        " such a token finds its run with `resume_session`."
    )
    return 0


def is_private_ring(status: KeyRingStatus) -> bool:
    """Say whether only its user can read the ring. Without file modes (Windows), the answer is yes."""
    loose = (status.mode & ~PRIVATE_FILE) | (status.directory_mode & ~PRIVATE_DIRECTORY)
    return os.name == "nt" or not loose & 0o077


def loose_words(status: KeyRingStatus) -> tuple[str, str]:
    """Return the problem of a ring that others can read, and the fix."""
    modes = f"keys/keyring.json has mode {status.mode:04o}, keys/ {status.directory_mode:04o}"
    return (
        f"Other users can access them: {modes}.",
        "Run `chmod 700 keys; chmod 600 keys/keyring.json` in the data directory, then `interlock keys rotate` twice.",
    )


def age_words(status: KeyRingStatus) -> str:
    """Render the time since the ring was created or rotated."""
    days = _age_days(status)
    return "today" if days < 1 else "a day ago" if days == 1 else f"{days} days ago"


def _render_status(status: KeyRingStatus) -> str:
    if status.keys == 1:
        return f"One key, created {age_words(status)}. It was never rotated; every token it signed works."
    return f"Two keys, rotated {age_words(status)}. Tokens of both work until the next rotation drops the older key."


def read_key_ring_json(data_dir: Path) -> dict[str, Json]:
    """Return the status of the key ring of a data directory as `--json` prints it.

    Raises:
        KeyRingDamagedError, StoreFailureError: See `service.failures`.
    """
    return _to_json(open_store(data_dir).key_ring_status())


def _to_json(status: KeyRingStatus | None) -> dict[str, Json]:
    """Return the status of a key ring as `--json` prints it; None: there is none."""
    if status is None:
        return {"keys": 0}
    return {
        "keys": status.keys,
        "ageDays": _age_days(status),
        "mode": f"{status.mode:04o}",
        "directoryMode": f"{status.directory_mode:04o}",
        "isPrivate": is_private_ring(status),
        "hasUnfinishedRotation": status.has_unfinished_rotation,
    }


def _age_days(status: KeyRingStatus) -> int:
    return max(int((time.time() - status.changed_s) // DAY_S), 0)
