"""`interlock workflow new`: write a new workflow file. Never overwrites a file."""

import argparse
import json
from pathlib import Path

import yaml

from interlock.cli.screen import FaultyFileError, StopError, say
from interlock.cli.workflow.places import WorkflowLocations, add_place_options, chosen_places, shown, workflow_of
from interlock.define.diagnostics import has_errors
from interlock.define.source.text_form import TextFormat, parse_text
from interlock.define.workflow_ids import classify_id, is_reserved, suggest_id
from interlock.kernel.budgets import (
    FOLDED_CHARS_MAX,
)
from interlock.kernel.canonical import Json
from interlock.kernel.workflow_budgets import (
    DOCUMENT_BYTES_MAX,
    WORKFLOW_ID_CHARS_MAX,
)
from interlock.plan.check.plan_file import HASH_KEY
from interlock.plan.compiled import CompiledWorkflow
from interlock.service.catalog import Entry, RefusedFile, Source
from interlock.store.regular_file import read_regular
from interlock.store.workflow_files import PROJECT_DIR

_EXAMPLE = Path(__file__).with_name("example.yaml")
"""An example with the features that most workflows use; the JSON example is converted from it."""
_EXAMPLE_ID, _EXAMPLE_NAME = "team.example", "An example"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_place_options(parser)
    parser.add_argument("workflow_id", metavar="ID", help="namespace.name, such as team.release_notes")
    parser.add_argument(
        "--from", dest="origin", metavar="WORKFLOW_ID", help="copy this workflow instead of the example"
    )
    parser.add_argument("--dir", dest="directory", help="the directory of the new file (default: .interlock/workflows)")
    parser.add_argument("--yaml", dest="is_yaml", action="store_true", help="write YAML with comments instead of JSON")


def run(options: argparse.Namespace) -> int:
    """Write a new workflow file, say what to do next, and return the exit code.

    Raises:
        StopError: The id is invalid or taken, the origin cannot be copied, or the file exists.
    """
    places, workflow_id, given = chosen_places(options), str(options.workflow_id), options.directory
    form: TextFormat = "yaml" if options.is_yaml else "json"
    _check_id(workflow_id)
    own = places.workspace / PROJECT_DIR
    directory = Path(given) if given is not None else own
    if given is None:
        _check_free(places, workflow_id)
    path = directory / f"{workflow_id.rpartition('.')[2]}.{form}"
    _write_checked(places, path, _text(places, workflow_id, options.origin, form), form)
    say(f"Wrote {shown(path)}.")
    say(f"Edit it, then check it: interlock workflow validate {shown(path)}")
    if directory.resolve() in (own.resolve(), places.user_dir.resolve()):
        say(f"Start it: ask your agent to start `{workflow_id}`; a running server finds it immediately.")
    else:
        say(f"A server reads only {shown(own)} and {shown(places.user_dir)}: move the file there.")
    return 0


def write_copy(places: WorkflowLocations, workflow_id: str, origin_id: str) -> None:
    """Write a copy of a workflow under another id into the project, as JSON.

    Raises:
        StopError: The id is invalid or taken, the origin cannot be copied, or the file exists.
    """
    _check_id(workflow_id)
    _check_free(places, workflow_id)
    path = places.workspace / PROJECT_DIR / f"{workflow_id.rpartition('.')[2]}.json"
    _write_checked(places, path, _text(places, workflow_id, origin_id, "json"), "json")


def _write_checked(places: WorkflowLocations, path: Path, text: str, form: TextFormat) -> None:
    data = text.encode("utf-8")
    _check_valid(places, Source(kind="project", ref=shown(path), form=form, data=data))
    _write(path, data)


def _check_id(workflow_id: str) -> None:
    """Refuse an id that is not valid in a project."""
    if is_reserved(workflow_id):
        message = f"{workflow_id!r} is in `wr.*`, which is reserved for built-in workflows."
    elif len(workflow_id) > WORKFLOW_ID_CHARS_MAX:
        message = f"The id has {len(workflow_id)} characters; the limit is {WORKFLOW_ID_CHARS_MAX}."
        raise StopError(message, "Choose a shorter id.", exit_code=2)
    elif classify_id(workflow_id) != "namespaced":
        message = f"{workflow_id!r} is not `namespace.name` in lower-case letters, digits, `_` and `-`."
    else:
        return
    raise StopError(message, f"Use for example {suggest_id(workflow_id, 'project')}.", exit_code=2)


def _check_free(places: WorkflowLocations, workflow_id: str) -> None:
    view = places.catalog.view(places.workspace)
    taken = view.entries.get(workflow_id) or view.refused_of(workflow_id)
    if taken is not None:
        message = f"{taken.source.ref} of the {taken.source.kind} source has the id {workflow_id!r} already."
        raise StopError(message, "Nothing was written. Edit that file, or choose another id.", exit_code=1)


def _text(places: WorkflowLocations, workflow_id: str, origin_id: str | None, text_format: TextFormat) -> str:
    """Render the new file: the example, or a copy of the origin."""
    if origin_id is not None:
        origin, _ = workflow_of(places, origin_id)
        key = "workflowId" if isinstance(origin.content, CompiledWorkflow) else "id"
        value = {name: member for name, member in origin.value.items() if name != HASH_KEY} | {key: workflow_id}
    else:
        name = workflow_id.rpartition(".")[2].replace("_", " ").replace("-", " ").strip().capitalize()
        example = read_regular(_EXAMPLE, DOCUMENT_BYTES_MAX).decode()
        text = example.replace(_EXAMPLE_ID, workflow_id).replace(_EXAMPLE_NAME, name)
        if text_format == "yaml":
            return text
        value = parse_text(text.encode("utf-8"), "yaml")
        assert isinstance(value, dict), "the example is a document"
    return _as_yaml(value) if text_format == "yaml" else json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _as_yaml(value: dict[str, Json]) -> str:
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=FOLDED_CHARS_MAX)


def _check_valid(places: WorkflowLocations, source: Source) -> None:
    """Refuse to write a workflow that cannot run: a copied built-in may be invalid under another id."""
    found = places.entry_in(source)
    compiled = found.compiled if isinstance(found, Entry) else found
    diagnostics = compiled.diagnostics if isinstance(compiled, RefusedFile) else compiled.warnings
    if has_errors(diagnostics):
        message, fix = "The new file would have faults.", "Nothing was written. Copy another workflow."
        raise FaultyFileError(message, fix, file=source.ref, faults=diagnostics)


def _write(path: Path, data: bytes) -> None:
    """Write a file that does not exist yet."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        message = f"{shown(path.parent)} is not a directory, or a part of its path is a file."
        raise StopError(message, "Nothing was written. Choose another --dir.", exit_code=1) from None
    except OSError as error:
        raise _unwritable(path, error) from None
    try:
        with path.open("xb") as stream:
            stream.write(data)
    except FileExistsError:
        fix = "Nothing was overwritten. Choose another id or another --dir."
        raise StopError(f"{shown(path)} exists already.", fix, exit_code=1) from None
    except OSError as error:
        raise _unwritable(path, error) from None


def _unwritable(path: Path, error: OSError) -> StopError:
    fix = "Choose another --dir, or free disk space and correct the permissions."
    return StopError(f"{shown(path)} cannot be written: {error.strerror}.", fix, exit_code=1)
