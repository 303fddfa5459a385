"""Where a check may run, and whether it is unchanged since the run began (CHECK-2, CHECK-5)."""

import hashlib
import os
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from interlock.channels.check import SEARCH_PATH, CheckFault, PlacedCheck
from interlock.channels.check_config import CheckConfig
from interlock.kernel.budgets.workflow import PROTECTED_BYTES_MAX, PROTECTED_FILES_MAX, SCRIPT_LINE_BYTES_MAX
from interlock.kernel.canonical import Json, digest_of
from interlock.kernel.ids import Digest
from interlock.record.world import PinnedCheck
from interlock.store.regular_file import read_regular


def place_check(config: CheckConfig, workspace: Path | None) -> PlacedCheck | CheckFault:
    """Return a check with the listed directory that holds a workspace: the innermost one."""
    if workspace is not None:
        here = Path(os.path.realpath(workspace))
        found = [Path(one) for one in config.workspaces if here.is_relative_to(one)]
        if found:
            return PlacedCheck(config=config, directory=max(found, key=lambda one: len(one.parts)))
    return CheckFault(
        why=f"the check `{config.name}` may not run in the workspace of this run",
        fix=f"Only the user can change this: start the run in one of the `workspaces` of `[checks.{config.name}]` in"
        " `config.toml`, or add the real path of its workspace there. `interlock checks list` prints them.",
    )


def pin_check(placed: PlacedCheck, data_dir: Path) -> PinnedCheck | CheckFault:
    """Return what identifies a check from the start of a run on, or why it must not run."""
    fault = start_fault(placed, data_dir)
    if fault is not None:
        return fault
    protected = protected_digest(placed) if placed.config.protect else None
    if isinstance(protected, CheckFault):
        return protected
    return PinnedCheck(name=placed.config.name, definition=definition_digest(placed), protected=protected)


def start_fault(placed: PlacedCheck, data_dir: Path) -> CheckFault | None:
    """Return why no run that has a check may start; None if it may.

    A program in the workspace need not exist yet: the run may make it, as it makes a virtual environment.
    """
    program, fault = placed.config.argv[0], _directory_fault(placed, data_dir)
    is_in_workspace = "/" in program and not program.startswith("/")
    if fault is not None or (is_in_workspace and not os.path.lexists(placed.directory / program)):
        return fault
    return _program_fault(placed)


def place_fault(placed: PlacedCheck, data_dir: Path) -> CheckFault | None:
    """Return why a check cannot begin now; None if it can."""
    return _directory_fault(placed, data_dir) or _program_fault(placed)


def _directory_fault(placed: PlacedCheck, data_dir: Path) -> CheckFault | None:
    """Return why a check must not run in its directory, whatever the run; None if it may."""
    real = Path(os.path.realpath(placed.directory))
    if real != placed.directory or not real.is_dir():
        return CheckFault(
            why=f"a path in `workspaces` of the check `{placed.config.name}` is not the real path of a directory",
            fix=f"Write the real path of a directory that exists in `workspaces` of `[checks.{placed.config.name}]`.",
        )
    if Path(os.path.realpath(data_dir)).is_relative_to(real):
        return CheckFault(
            why=f"the data directory of Interlock lies inside the workspace of the check `{placed.config.name}`,"
            " so who works there could change the records",
            fix="Move the data directory out of the workspace; name it with `--data-dir` or INTERLOCK_DATA_DIR.",
        )
    return None


def _program_fault(placed: PlacedCheck) -> CheckFault | None:
    """Return why the program that a check starts cannot be started; None if it is there.

    A program that starts in a sandbox may see other files, so only the first one of the command line is looked for.
    """
    program, name = placed.config.argv[0], placed.config.name
    # A name without a slash is looked up in the constant environment of a check, any other one from its directory on.
    places = [str(placed.directory)] if "/" in program else SEARCH_PATH.split(":")
    paths = [os.path.join(place, program) for place in places]  # noqa: PTH118 — as the system joins them
    path = next(filter(_is_program, paths), None)
    if path is not None:
        interpreter = _interpreter(path)
        if interpreter is None or _is_program(interpreter):
            return None
        found = f"its interpreter {interpreter!r} is no program that can be started"
    elif "/" in program:
        found = f"{paths[0]!r} is no program that can be started"
    else:
        found = f"it is in none of the directories that a check searches ({', '.join(places)})"
    return CheckFault(
        why=f"the program {program!r} of the check `{name}` is not found: {found}",
        fix=f"Only the user can change this: install the program, or begin the command of `[checks.{name}]` with the"
        " full path of one that exists.",
    )


def _is_program(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)  # noqa: PTH113 — no path object for each place


def _interpreter(path: str) -> str | None:
    """Return the program that starts a script; None if the file names none, or cannot be read."""
    try:
        first, _, _ = read_regular(path, SCRIPT_LINE_BYTES_MAX).partition(b"\n")
    except OSError:
        return None
    words = first.removeprefix(b"#!").split()
    return os.fsdecode(words[0]) if first.startswith(b"#!") and words else None


def definition_digest(placed: PlacedCheck) -> Digest:
    """Return the digest of everything that decides what a check runs, and where."""
    config = placed.config
    parts: dict[str, Json] = {
        "command": list(config.command),
        "sandbox": list(config.sandbox),
        "directory": os.fsencode(placed.directory).decode("utf-8", "backslashreplace"),
        "timeoutS": config.timeout_s,
        "outputKb": config.output_kb,
        "protect": list(config.protect),
    }
    return digest_of(parts)


def changed_fault(placed: PlacedCheck, pinned: PinnedCheck) -> CheckFault | None:
    """Return that protected files are not those that the run began with; None if they are."""
    if pinned.protected is None:
        return None
    found = protected_digest(placed)
    if isinstance(found, CheckFault):
        return found
    if found == pinned.protected:
        return None
    named = ", ".join(f"`{one}`" for one in placed.config.protect)
    return CheckFault(
        why=f"files that the check `{pinned.name}` protects ({named}) have changed since the run began",
        fix="Restore these files, then make the call again. If the change is wanted, tell the user: they review it and"
        " begin a new run.",
    )


def protected_digest(placed: PlacedCheck) -> Digest | CheckFault:
    """Return the digest of the names and contents of all files that a check protects."""
    entries: list[Json] = []
    size = 0
    for path in islice(_protected(placed), PROTECTED_FILES_MAX + 1):
        name = os.fsencode(path.relative_to(placed.directory)).decode("utf-8", "backslashreplace")
        try:
            data = os.fsencode(path.readlink()) if path.is_symlink() else b""
            data += read_regular(path, PROTECTED_BYTES_MAX - size)
        except OSError as error:
            return _unprotected(placed, f"`{name}` cannot be read: {error.strerror}")
        size += len(data)
        entries.append([name, hashlib.sha256(data).hexdigest()])
    if len(entries) > PROTECTED_FILES_MAX or size > PROTECTED_BYTES_MAX:
        limits = f"{PROTECTED_FILES_MAX} files and {PROTECTED_BYTES_MAX} bytes"
        return _unprotected(placed, f"its patterns match more than {limits}")
    return digest_of(entries)


def protected_state(placed: PlacedCheck) -> Digest:
    """Return a digest that differs after any change of a protected file, also after one that was undone (CHECK-8).

    It is of this machine and of now, so it is compared and never recorded. No program can set the time of change.
    """
    entries = [
        [os.fsencode(path).decode("utf-8", "backslashreplace"), _state(os.lstat, path), _state(os.stat, path)]
        for path in islice(_protected(placed), PROTECTED_FILES_MAX + 1)
    ]
    return digest_of(entries)


def _state(read: Callable[[Path], os.stat_result], path: Path) -> str:
    try:
        found = read(path)
    except OSError as error:
        return str(error.errno)
    return f"{found.st_dev} {found.st_ino} {found.st_ctime_ns}"


def _protected(placed: PlacedCheck) -> Iterator[Path]:
    found = {one for pattern in placed.config.protect for one in placed.directory.glob(pattern) if not one.is_dir()}
    yield from sorted(found)


def _unprotected(placed: PlacedCheck, found: str) -> CheckFault:
    name = placed.config.name
    return CheckFault(
        why=f"the check `{name}` cannot detect changes of its protected files: {found}",
        fix=f"Make the file readable, or narrow `protect` of `[checks.{name}]`.",
    )
