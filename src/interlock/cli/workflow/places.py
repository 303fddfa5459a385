"""Find the workflow that a command names: in the sources of a server with the same settings, or in a file."""

import argparse
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from interlock.cli.options import checked_settings, place_arguments
from interlock.cli.screen import FaultyFileError, StopError, printable_line
from interlock.config.data_dir import PlaceArguments
from interlock.config.model import FaultyConfig
from interlock.config.settings import BUNDLED, read_settings
from interlock.define.diagnostics import Diagnostic, Diagnostics, fault
from interlock.define.document import WorkflowDocument
from interlock.define.operations.definitions import kind_of
from interlock.kernel.budgets.workflow import (
    DOCUMENT_BYTES_MAX,
)
from interlock.kernel.canonical import Json
from interlock.kernel.errors import ErrorCode
from interlock.kernel.frozen import frozen, replace
from interlock.kernel.ids import SourceKind
from interlock.plan.compile.routines import Routine, RoutineLibrary, builtin_routines, routine_of
from interlock.service.workflows.authoring import WorkflowAuthor
from interlock.service.workflows.catalog import Catalog, CatalogView, Entry, Pinnable, bindings_of, unread_fault
from interlock.service.workflows.reading import (
    FLOW_ID_PATH,
    ReadDefinition,
    ReadFile,
    RefusedFile,
    Source,
    read_definition,
    read_source,
)
from interlock.store.regular_file import read_regular
from interlock.store.workflow_files import BINDINGS_FILE, FORMS, LocalWorkflowFiles

ROUTINE_MARK = b"routine-"
"""A part of the id of every file that defines a routine."""


@dataclass(frozen=True, kw_only=True)
class WorkflowLocations:
    """The directories from which a server with the same arguments and environment reads workflows; absolute paths.

    `named` are the definitions in files that a command names: they may refer to each other.
    """

    workspace: Path
    user_dir: Path
    core_source: Path | None
    named: tuple[ReadDefinition, ...] = ()

    @property
    def core_dirs(self) -> tuple[Path, ...]:
        """The built-in workflows, then the directory added as core."""
        return (BUNDLED,) if self.core_source is None else (BUNDLED, self.core_source)

    @cached_property
    def files(self) -> LocalWorkflowFiles:
        """The files of all sources."""
        return LocalWorkflowFiles(core_dirs=self.core_dirs, user_dir=self.user_dir)

    @cached_property
    def catalog(self) -> Catalog:
        """All sources, read and checked. A command lists once, so its list checks every file."""
        return Catalog(self.files, checked_bytes_max=None)

    @cached_property
    def author(self) -> WorkflowAuthor:
        """Writes files of the workspace."""
        return WorkflowAuthor(workspace=self.workspace, files=self.files, catalog=self.catalog, entry_in=self.entry_in)

    @cached_property
    def _bindings(self) -> Mapping[str, Json]:
        return self.files.bindings(self.workspace)

    @cached_property
    def _routines(self) -> Mapping[str, Routine]:
        """The routines that every workflow may call: built in, or defined by a file of core."""
        core = LocalWorkflowFiles(core_dirs=self.core_dirs, user_dir=None)
        found: dict[str, Routine] = {}
        for file in (one for one in core.files(None) if not (one.left_out or one.is_outside)):
            try:
                data = core.read(file)
            except OSError:
                continue
            if ROUTINE_MARK not in data:
                continue
            parsed = read_source(Source(kind="bundled", ref=file.ref, form=file.form, data=data))
            content = None if isinstance(parsed, RefusedFile) else parsed.read().content
            routine = routine_of(content) if isinstance(content, WorkflowDocument) else None
            if routine is not None:
                found[routine.template_id] = routine
        return {**builtin_routines(), **found}

    def id_faults(self, path: Path, workflow_id: str | None) -> Diagnostics:
        """Return why a server does not start the workflow of a file of its sources: another file has its id."""
        taken = self._taken_ids.get(os.path.realpath(path), ())
        is_shared = workflow_id is not None and len(self._view.candidates.get(workflow_id, ())) > 1
        return taken if is_shared else ()

    @cached_property
    def _view(self) -> CatalogView:
        """The workflows as a server finds them: a command that checks files looks once."""
        return self.catalog.view(self.workspace)

    @cached_property
    def _taken_ids(self) -> Mapping[str, Diagnostics]:
        """The refused files by their real paths, each with the fault that another file has its id, if it has it."""
        return {
            os.path.realpath(one.source.location): tuple(each for each in one.diagnostics if each.code == "id_taken")
            for one in self._view.refused
        }

    def kind_of(self, path: Path) -> SourceKind:
        """Return the source of a file by its directory; a file outside of all sources counts as one of the project."""
        real = Path(os.path.realpath(path))
        if any(real.is_relative_to(core_dir.resolve()) for core_dir in self.core_dirs):
            return "bundled"
        return "user" if real.is_relative_to(self.user_dir.resolve()) else "project"

    def naming(self, paths: Iterable[Path]) -> "WorkflowLocations":
        """Return the same locations for a command that names files, which may refer to each other."""
        read = (read_definition(one) for one in map(self.source_of, paths) if isinstance(one, Source))
        return replace(self, named=tuple(one for one in read if isinstance(one, ReadDefinition)))

    def source_of(self, path: Path) -> Source | RefusedFile:
        """Read one file."""
        kind, ref = self.kind_of(path), shown(path)
        try:
            data = read_regular(path, DOCUMENT_BYTES_MAX)
        except OSError as error:
            source = Source(kind=kind, ref=ref, form="json", data=b"")
            unreadable = fault(
                "", "not_utf8", f"The file cannot be read: {error.strerror}.", "Check the permissions of the file."
            )
            return RefusedFile(source=source, workflow_id=None, diagnostics=(unreadable,))
        return Source(kind=kind, ref=ref, form=FORMS[path.suffix], data=data, location=str(path))

    def entry_of(self, path: Path) -> Entry | RefusedFile:
        """Read and check one file, with the library that a server would use for it."""
        source = self.source_of(path)
        return source if isinstance(source, RefusedFile) else self.entry_in(source)

    def entry_in(self, source: Source) -> Entry | RefusedFile:
        """Read and check bytes as if they were a file of a source.

        If only the namespace of the id is wrong, the result is still an entry: compiling it reports its other faults.
        """
        parsed, placement = self._read(source), None
        if isinstance(parsed, RefusedFile) and {one.code for one in parsed.diagnostics} == {"reserved_namespace"}:
            placement = parsed.diagnostics
            parsed = self._read(replace(source, kind="bundled"))
        if isinstance(parsed, RefusedFile):
            return parsed
        bindings = bindings_of(self._bindings, parsed.listing.workflow_id)
        return Entry(
            file=replace(parsed, source=source),
            library=RoutineLibrary(routines=self._routines, bindings=bindings),
            placement=parsed.placement if placement is None else placement,
        )

    def _read(self, source: Source) -> ReadFile | RefusedFile:
        """Read a workflow; the blocks of a flow are those of the workspace."""
        read = read_definition(source)
        if not isinstance(read, ReadDefinition):
            return read or read_source(source)
        found = self.catalog.lower(self.workspace, read, self.named)
        if found is not None:
            return found
        message = f"No agent starts this {kind_of(read.definition)}: only a flow with `{FLOW_ID_PATH}` is a workflow."
        other = fault("kind", "wrong_value", message, "Check it with `interlock contract validate`.")
        return RefusedFile(source=source, workflow_id=None, diagnostics=source.placed((other,)))


def add_place_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for the directories of workflows."""
    # A default here would overwrite a value that was given before the command.
    parser.add_argument("--workspace", default=argparse.SUPPRESS, help="directory of the project (INTERLOCK_WORKSPACE)")
    parser.add_argument("--data-dir", default=argparse.SUPPRESS, help="directory of config.toml (INTERLOCK_DATA_DIR)")
    parser.add_argument(
        "--workflows-dir",
        default=argparse.SUPPRESS,
        help="directory of your own workflow files (INTERLOCK_WORKFLOWS_DIR)",
    )
    parser.add_argument(
        "--core-source", default=argparse.SUPPRESS, help="add a directory of core workflows (for packagers)"
    )


def chosen_places(options: argparse.Namespace) -> WorkflowLocations:
    """Return the places that the command line, the environment and the configuration name.

    Raises:
        StopError: See `places_of`.
    """
    return places_of(os.environ, place_arguments(options))


def places_of(environment: Mapping[str, str], arguments: PlaceArguments) -> WorkflowLocations:
    """Return the places that a server with the same arguments and environment would read.

    Raises:
        StopError: See `settings_from`, or the configuration has faults.
    """
    with checked_settings():
        settings = read_settings(environment, arguments)
    if isinstance(settings, FaultyConfig):
        raise StopError("The configuration file has faults.", "\n".join(settings.lines()), exit_code=2)
    assert settings.workspace is not None and settings.user_workflows is not None, "both have a default"  # noqa: PT018
    return WorkflowLocations(
        workspace=settings.workspace, user_dir=settings.user_workflows, core_source=settings.core_source
    )


def shown(path: Path) -> str:
    """Render a path: relative if it is below the current directory, else as given."""
    normal = Path(os.path.normpath(path))
    try:
        here = Path.cwd()
    except FileNotFoundError:
        return printable_line(str(normal))
    return printable_line(str(normal.relative_to(here) if normal.is_relative_to(here) else normal))


@frozen
class GivenFiles:
    """The files that paths name, each once; `unread` are those below a directory that no source reads, with why."""

    paths: tuple[Path, ...]
    unread: tuple[tuple[Path, Diagnostic], ...]


def given_files(roots: Iterable[Path]) -> GivenFiles:
    """Return the files that paths name, in the order of the paths: of a directory, those that a source would read.

    Raises:
        StopError: There is no such path, or a file does not have the name of a workflow file.
    """
    found: dict[str, Path] = {}
    unread: dict[Path, Diagnostic] = {}
    for root in roots:
        if root.is_dir():
            for file in LocalWorkflowFiles(core_dirs=(), user_dir=root).files(None):
                if file.left_out or file.is_outside:
                    unread[file.path] = unread_fault(file)
                elif file.path.parts[-2:] != BINDINGS_FILE.parts:
                    found.setdefault(os.path.realpath(file.path), file.path)
        elif root.is_file():
            found.setdefault(os.path.realpath(root), checked_file(root))
        else:
            raise StopError(f"There is no file or directory {shown(root)}.", "Name one that exists.", exit_code=2)
    return GivenFiles(paths=tuple(found.values()), unread=tuple(unread.items()))


def given_path(text: str) -> Path:
    """Return the path that an argument names.

    Raises:
        StopError: The argument is empty, for example from an unset variable; as a path it would be this directory.
    """
    if not text.strip():
        raise StopError("An argument is empty.", "Name a workflow file or a directory.", exit_code=2)
    return Path(text)


def read_given(path: Path, bytes_max: int) -> bytes:
    """Return the bytes of a file that an argument names, at most `bytes_max` and one more, as `read_regular` does.

    Raises:
        StopError: It cannot be read.
    """
    try:
        return read_regular(path, bytes_max)
    except OSError as error:
        fix = "Name a file that you can read."
        raise StopError(f"{shown(path)} cannot be read: {error.strerror}.", fix, exit_code=2) from error


def checked_file(path: Path) -> Path:
    """Check the name of a workflow file.

    Raises:
        StopError: Sources do not read files with this name.
    """
    if path.suffix not in FORMS:
        raise StopError(
            f"{shown(path)} does not have the name of a workflow file.",
            f"Use a name that ends in {', '.join(FORMS)}.",
            exit_code=2,
        )
    return path


def chosen_workflow(places: WorkflowLocations, workflow: str) -> tuple[Entry, Pinnable]:
    """Return the workflow of an id or of a file, compiled. A file may be in a directory where its id is not allowed.

    Raises:
        StopError: It does not exist, or it has faults; the error lists all of them.
    """
    path = given_path(workflow)
    if path.is_file():
        found = places.entry_of(checked_file(path))
        return _compiled(found, found.source.ref)
    if path.is_dir():
        raise StopError(f"{shown(path)} is a directory.", "Name a file in it, or an id without `/`.", exit_code=2)
    if "/" in workflow or path.suffix in FORMS:
        raise StopError(
            f"There is no file {shown(path)}.",
            "Name a workflow file, or an id without `/`.",
            exit_code=2,
            code=ErrorCode.WORKFLOW_NOT_FOUND,
        )
    return workflow_of(places, workflow)


def workflow_of(places: WorkflowLocations, workflow_id: str) -> tuple[Entry, Pinnable]:
    """Return the workflow of an id, compiled.

    Raises:
        StopError: See `chosen_workflow`.
    """
    view = places.catalog.view(places.workspace)
    found = view.found(workflow_id)
    if found is None:
        guess = view.nearest(workflow_id)
        meant = f"Did you mean {guess}? " if guess else ""
        message = f"There is no workflow {workflow_id!r}."
        raise StopError(
            message,
            f"{meant}`interlock workflow list` lists all workflows.",
            exit_code=1,
            code=ErrorCode.WORKFLOW_NOT_FOUND,
        )
    return _compiled(found, f"{found.source.ref} ({found.source.kind})")


def _compiled(found: Entry | RefusedFile, file: str) -> tuple[Entry, Pinnable]:
    compiled = found.compiled if isinstance(found, Entry) else found
    if isinstance(compiled, RefusedFile):
        message = f"{file} contains no workflow that can run."
        raise FaultyFileError(message, "Correct each fault listed here.", file=file, faults=compiled.faults)
    assert isinstance(found, Entry), "what compiled is an entry"
    return found, compiled
