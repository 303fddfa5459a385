"""`interlock workflow validate`: report every fault of every file with its place and its fix. Writes nothing."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import field
from itertools import chain
from pathlib import Path

from interlock.cli.options import add_json
from interlock.cli.screen import StopError, counted, fault_lines, say, say_json
from interlock.cli.workflow.places import (
    GivenFiles,
    WorkflowLocations,
    add_place_options,
    chosen_places,
    given_files,
    given_path,
    shown,
)
from interlock.define.diagnostics import Diagnostic, Diagnostics, fault, has_errors
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import frozen, mutable
from interlock.service.workflows.catalog import Entry, Pinnable
from interlock.store.workflow_files import PROJECT_DIR

_BAR_WIDTH = 30


@frozen
class Checked:
    """The result of checking one file."""

    file: str
    workflow_id: str | None
    workflow_hash: str | None
    diagnostics: Diagnostics

    def to_json(self) -> dict[str, Json]:
        """Return the object as `--json` prints it."""
        fields: dict[str, Json] = {"file": self.file, "workflowId": self.workflow_id}
        if self.workflow_hash is not None:
            fields["workflowHash"] = self.workflow_hash
        fields["diagnostics"] = [one.to_json() for one in self.diagnostics]
        return fields


@mutable
class Totals:
    """Counts of files by result, and of faults."""

    fine: int = 0
    warned: int = 0
    refused: int = 0
    errors: int = 0
    warnings: int = 0

    def count(self, diagnostics: Diagnostics) -> None:
        """Add the result of one file."""
        errors = sum(one.severity == "error" for one in diagnostics)
        self.errors += errors
        self.warnings += len(diagnostics) - errors
        if errors:
            self.refused += 1
        elif diagnostics:
            self.warned += 1
        else:
            self.fine += 1

    def to_json(self) -> dict[str, Json]:
        """Return the object as `--json` prints it."""
        return {
            "files": self.fine + self.warned + self.refused,
            "fine": self.fine,
            "withWarnings": self.warned,
            "refused": self.refused,
            "errors": self.errors,
            "warnings": self.warnings,
        }

    def in_one_line(self) -> str:
        """Return the counts as one line of text."""
        files = self.fine + self.warned + self.refused
        faults = f"({counted(self.errors, 'error')}, {counted(self.warnings, 'warning')})"
        counts = f"{self.fine} fine, {self.warned} with warnings, {self.refused} refused {faults}"
        return f"{counted(files, 'file')}: {counts}"


@mutable
class _Progress:
    """A progress bar on stderr, drawn only on a terminal."""

    total: int
    is_shown: bool
    done: int = field(default=0)

    def draw(self) -> None:
        if self.is_shown:
            filled = _BAR_WIDTH * self.done // self.total
            bar = "#" * filled + "." * (_BAR_WIDTH - filled)
            print(f"\r[{bar}] {self.done}/{self.total}", end="", file=sys.stderr, flush=True)
        self.done += 1

    def clear(self) -> None:
        if self.is_shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_place_options(parser)
    parser.add_argument("paths", metavar="PATH", nargs="*", help="files or directories (default: those of the project)")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Check files, print every fault and a summary, and return the exit code: 1 if any file has an error.

    Raises:
        StopError: A path does not exist, or no workflow file is found.
    """
    places, as_json = chosen_places(options), bool(options.as_json)
    paths: list[str] = options.paths
    given = _files(places, paths)
    files = given.paths
    has_directory = not paths or any(Path(path).is_dir() for path in paths)
    progress = _Progress(total=len(files), is_shown=has_directory and len(files) > 1 and sys.stderr.isatty())
    totals, results = Totals(), list[dict[str, Json]]()
    unread = (_report_unread(path, why) for path, why in given.unread)
    for checked in chain(_checked(places.naming(files), files, progress), unread):
        totals.count(checked.diagnostics)
        if as_json:
            results.append(checked.to_json())
        elif checked.diagnostics:
            progress.clear()
            say("\n".join(fault_lines(checked.file, checked.diagnostics)))
    progress.clear()
    if as_json:
        say_json({"files": results, "summary": totals.to_json()})
    else:
        say(totals.in_one_line())
    return 1 if totals.errors else 0


def _files(places: WorkflowLocations, paths: Sequence[str]) -> GivenFiles:
    """Return the files that the paths name, or those of the project."""
    found = given_files(map(given_path, paths) if paths else [_own_directory(places)])
    if not found.paths and not found.unread:
        where = ", ".join(map(shown, map(Path, paths))) or shown(places.workspace / PROJECT_DIR)
        message = f"There is no workflow file in {where}."
        raise StopError(message, "Name a directory with *.json, *.yaml or *.yml, or write a new one.", exit_code=2)
    return found


def _own_directory(places: WorkflowLocations) -> Path:
    """Return the project's own directory, relative to the current directory if it is below it."""
    own = places.workspace / PROJECT_DIR
    if not own.is_dir():
        fix = "Name files or directories, or create a file with `interlock workflow new team.example`."
        raise StopError(f"The project has no directory {shown(own)}.", fix, exit_code=2)
    return own


def _report_unread(path: Path, why: Diagnostic) -> Checked:
    """Return the result of a file that no source reads, as a list of the source has it."""
    return Checked(file=shown(path), workflow_id=None, workflow_hash=None, diagnostics=(why,))


def _checked(places: WorkflowLocations, files: Sequence[Path], progress: _Progress) -> Iterator[Checked]:
    """Check each file and yield its result.

    If two files have the same id, the one gets a fault that a server does not start, or else the later one.
    """
    owners: dict[str, str] = {}
    for path in files:
        progress.draw()
        found = places.entry_of(path)
        compiled = found.compiled if isinstance(found, Entry) else found
        pinned = compiled if isinstance(compiled, Pinnable) else None
        diagnostics = compiled.warnings if isinstance(compiled, Pinnable) else compiled.diagnostics
        workflow_id, file = found.workflow_id, shown(path)
        of_id = places.id_faults(path, workflow_id)
        diagnostics = (*diagnostics, *found.source.placed(of_id))
        if not of_id and workflow_id is not None and owners.setdefault(workflow_id, file) != file:
            message = f"{workflow_id!r} is the id of {owners[workflow_id]} already."
            at = found.file.id_path if isinstance(found, Entry) else "id"
            taken = fault(at, "id_taken", message, "Give one of the two another id.")
            diagnostics = (*diagnostics, *found.source.placed((taken,)))
        yield Checked(
            file=file,
            workflow_id=workflow_id,
            workflow_hash=pinned.workflow_hash if pinned is not None and not has_errors(diagnostics) else None,
            diagnostics=diagnostics,
        )
