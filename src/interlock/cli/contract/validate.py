"""`interlock contract validate`: check files of blocks, flows and contracts, and report every fault with its line."""

import argparse
from collections.abc import Iterable
from pathlib import Path

from interlock.cli.options import add_json
from interlock.cli.screen import StopError, fault_lines, say, say_json
from interlock.cli.workflow.places import (
    GivenFiles,
    WorkflowLocations,
    add_place_options,
    chosen_places,
    given_files,
    given_path,
    shown,
)
from interlock.cli.workflow.validate import Totals
from interlock.define.diagnostics import Diagnostics
from interlock.define.operations.definitions import Definition, Definitions, kind_of
from interlock.define.operations.files import parse_definition_file, validate_definition
from interlock.define.operations.flows import Flow
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import frozen
from interlock.plan.compile.compiler import Compiled
from interlock.plan.flows.lowering import compile_agent_flow
from interlock.service.workflows.reading import ReadDefinition, RefusedFile, Source, add_definition, read_definition
from interlock.store.workflow_files import OPERATIONS_DIR


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_place_options(parser)
    help_text = "files or directories; they may refer to each other and to the project (default: those of the project)"
    parser.add_argument("paths", metavar="PATH", nargs="*", help=help_text)
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Check files, print every fault and a summary, and return the exit code: 1 if any file has an error.

    Raises:
        StopError: A path does not exist, or no file is found.
    """
    paths: list[str] = options.paths
    places = chosen_places(options)
    roots = [given_path(path) for path in paths] or [places.workspace / OPERATIONS_DIR]
    given = _find_files(roots)
    unread = (_Checked(file=shown(path), definition=None, diagnostics=(why,)) for path, why in given.unread)
    totals, checked = Totals(), [*_check(places, given.paths), *unread]
    for one in checked:
        totals.count(one.diagnostics)
    if options.as_json:
        say_json({"files": [one.to_json() for one in checked], "summary": totals.to_json()})
        return 1 if totals.errors else 0
    for one in checked:
        if one.diagnostics:
            say("\n".join(fault_lines(one.file, one.diagnostics)))
    say(totals.in_one_line())
    return 1 if totals.errors else 0


@frozen
class _Checked:
    """A file and its faults; `definition` is None if its form is faulty."""

    file: str
    definition: Definition | None
    diagnostics: Diagnostics

    def to_json(self) -> dict[str, Json]:
        """Return the object as `--json` prints it."""
        one = self.definition
        named: dict[str, Json] = (
            {} if one is None else {"kind": kind_of(one), "id": one.id, "version": one.version, "name": one.name}
        )
        return {"file": self.file, **named, "diagnostics": [found.to_json() for found in self.diagnostics]}


def _find_files(roots: Iterable[Path]) -> GivenFiles:
    """Return the files that the paths name."""
    found = given_files(roots)
    if not found.paths and not found.unread:
        fix = "Name a directory with *.json, *.yaml or *.yml."
        raise StopError("There is no file of a block, a flow or a contract.", fix, exit_code=2)
    return found


def _check(places: WorkflowLocations, files: Iterable[Path]) -> list[_Checked]:
    """Check each file: it may refer to all of them in any order, and to the definitions of the project.

    A file of the project also has the fault that another one has its workflow id.
    """
    read = [_read(path, places) for path in files]
    named = [one for _, one in read if isinstance(one, ReadDefinition)]
    definitions, taken = Definitions(), dict[str, Diagnostics]()
    for one in places.catalog.definitions_with(places.workspace, named):
        added = add_definition(one, definitions)
        if isinstance(added, RefusedFile):
            taken[one.source.location] = added.diagnostics
    checked: list[_Checked] = []
    for source, found in read:
        definition = found.definition if isinstance(found, ReadDefinition) else None
        faults = found if isinstance(found, tuple) else taken.get(source.location)
        if faults is not None:
            definition = None
        elif definition is not None:
            faults = _judge(definition, definitions)
        stated = definition.metadata.get("workflow_id") if isinstance(definition, Flow) else None
        of_id = places.id_faults(Path(source.location), stated if isinstance(stated, str) else None)
        faults = (*(faults or ()), *of_id)
        checked.append(_Checked(file=source.ref, definition=definition, diagnostics=source.placed(faults)))
    return checked


def _read(path: Path, places: WorkflowLocations) -> tuple[Source, ReadDefinition | Diagnostics]:
    """Return the definition in a file, or its faults."""
    source = places.source_of(path)
    if isinstance(source, RefusedFile):
        return source.source, source.diagnostics
    found = read_definition(source)
    if isinstance(found, ReadDefinition):
        return source, found
    parsed = parse_definition_file(source.data, source.form)
    assert isinstance(parsed, tuple), "a file without faults is read"
    return source, parsed


def _judge(definition: Definition, definitions: Definitions) -> Diagnostics:
    """Return the faults of a definition. A flow must also be one that can run."""
    if not isinstance(definition, Flow):
        return validate_definition(definition, definitions).faults
    compiled = compile_agent_flow(definition, definitions, "project")
    return compiled.warnings if isinstance(compiled, Compiled) else compiled
