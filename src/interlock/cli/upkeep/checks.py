"""The checks of `interlock doctor` except sessions: the program, the data directory, the configuration, the keys."""

import os
import platform
from collections.abc import Iterable, Iterator
from pathlib import Path

from interlock.channels.check import PlacedCheck
from interlock.channels.check_place import start_fault
from interlock.cli.screen import in_units
from interlock.cli.upkeep.finding import Finding, attention, fine, note
from interlock.cli.upkeep.keys import MISSING, UNFINISHED, age_words, is_private_ring, is_ring_missing, loose_words
from interlock.cli.upkeep.place import (
    free_bytes,
    loose_mode,
    network_file_system,
    synchronised_directory,
)
from interlock.config.data_dir import Origin, SettingsError, check_data_dir, is_there
from interlock.config.file import read_config
from interlock.config.model import FaultyConfig
from interlock.config.places import CONFIG_FILE
from interlock.kernel.budgets import FREE_BYTES_MIN
from interlock.service.failures import refusal_of
from interlock.service.workflows.catalog import unread_fault
from interlock.store.ports.errors import KeyRingDamagedError
from interlock.store.ports.keys import KeyRingMaintenance
from interlock.store.ports.store import StoreReader
from interlock.store.workflow_files import WorkflowFile
from interlock.version import VERSION

_ORIGINS: dict[Origin, str] = {
    "argument": "named by --data-dir",
    "environment": "named by INTERLOCK_DATA_DIR",
    "default": "the platform's default",
}


def check_program() -> Iterator[Finding]:
    """Report the version and the platform."""
    yield fine("program", f"interlock {VERSION}, Python {platform.python_version()} on {platform.system()}")
    if os.name == "nt":
        yield note("program", "Windows is untested: file modes have no effect, and locks were never tried.")


def check_data_directory(path: Path, origin: Origin) -> Iterator[Finding]:
    """Check the data directory: its file system, its permissions and its free space."""
    check, named = "data directory", f"{path}, {_ORIGINS[origin]}"
    try:
        check_data_dir(path)
    except SettingsError as error:
        yield attention(check, error.message, error.fix)
        return
    if not is_there(path):
        yield note(check, f"{named}, does not exist yet: the first run creates it.")
    else:
        yield fine(check, named)
        yield from _check_access(check, path)
    free = free_bytes(path)
    if free < FREE_BYTES_MIN:
        yield attention(check, f"Its disk has only {in_units(free)} free.", "Free some space: a full disk stops runs.")
    else:
        yield fine(check, f"{in_units(free)} are free.")
    yield from _check_file_system(check, path)


def _check_access(check: str, path: Path) -> Iterator[Finding]:
    mode = loose_mode(path)
    if mode is not None:
        message = f"Other users of this machine can access it: its mode is {mode:04o}."
        yield attention(check, message, f"Run `chmod 700 '{path}'`: it holds goals, notes and keys unencrypted.")
    elif os.name != "nt":
        yield fine(check, "Only you can access it (0700).")
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        yield attention(check, "You cannot write to it.", "Let the user who runs Interlock own it, or name another.")


def _check_file_system(check: str, path: Path) -> Iterator[Finding]:
    fix = "Move it to a local disk, and name the new path with --data-dir or INTERLOCK_DATA_DIR."
    network, synchronised = network_file_system(path), synchronised_directory(path)
    if network is not None:
        yield attention(
            check, f"It is on a network file system ({network}): locks and syncs are not reliable there.", fix
        )
    if synchronised is not None:
        message = f"{synchronised} seems to be synchronised with other machines; this damages sessions."
        yield attention(check, message, fix)


def check_configuration(data_dir: Path) -> Iterator[Finding]:
    """Check config.toml, and whether each check that it defines can run."""
    found = read_config(data_dir / CONFIG_FILE)
    if isinstance(found, FaultyConfig):
        yield attention("configuration", "\n".join(found.lines()), "Correct the file: a server does not start with it.")
    elif found.said:
        yield fine("configuration", f"{CONFIG_FILE} sets {', '.join(sorted(found.said))}.")
    else:
        yield fine("configuration", "Every key has its default.")
    if not isinstance(found, FaultyConfig):
        placed = (PlacedCheck(config=one, directory=Path(where)) for one in found.checks for where in one.workspaces)
        faults = filter(None, (start_fault(one, data_dir) for one in placed))
        yield from (attention("checks", f"A run cannot start: {one.why}.", one.fix) for one in dict.fromkeys(faults))


def check_workflow_files(files: Iterable[WorkflowFile]) -> Iterator[Finding]:
    """Report each directory of workflows that has more files than are read."""
    for file in files:
        if file.left_out or file.is_outside:
            found = unread_fault(file)
            yield attention("workflows", f"{file.location}: {found.message}", found.fix)


def check_key_ring(ring: KeyRingMaintenance, reader: StoreReader) -> Iterator[Finding]:
    """Check the keys that sign tokens. No key is printed.

    Raises:
        StoreFailureError: The disk failed.
    """
    try:
        status, is_missing = ring.key_ring_status(), is_ring_missing(ring, reader)
    except KeyRingDamagedError as error:
        refusal = refusal_of(error)
        yield attention("keys", refusal.message, refusal.suggestion)
        return
    if is_missing:
        yield attention("keys", *MISSING)
    elif status is None:
        yield fine("keys", "There are no keys yet: the first run creates one.")
    elif is_private_ring(status):
        count = "One key" if status.keys == 1 else "Two keys"
        yield fine("keys", f"{count}, private to you; the newest was created {age_words(status)}.")
    else:
        yield attention("keys", *loose_words(status))
    if status is not None and status.has_unfinished_rotation:
        yield attention("keys", *UNFINISHED)
