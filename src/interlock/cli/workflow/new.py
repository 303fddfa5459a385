"""`interlock workflow new`: write a new workflow file. Never overwrites a file."""

import argparse
import json
from pathlib import Path

import yaml

from interlock.cli.screen import FaultyFileError, StopError, say
from interlock.cli.workflow.places import WorkflowLocations, add_place_options, chosen_places, shown, workflow_of
from interlock.define.source.text_form import TextFormat, parse_text
from interlock.kernel.budgets import (
    FOLDED_CHARS_MAX,
)
from interlock.kernel.budgets.workflow import (
    DOCUMENT_BYTES_MAX,
)
from interlock.kernel.canonical import Json
from interlock.service.workflows.authoring import NewFile, NotWritten, copied_value
from interlock.store.regular_file import read_regular
from interlock.store.workflow_files import PROJECT_DIR, PROJECT_DIRS

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
    _check(places.author.id_fault(workflow_id))
    directory = Path(given) if given is not None else places.workspace / PROJECT_DIR
    roots = [*(places.workspace / one for one in PROJECT_DIRS), places.user_dir]
    is_read = any(directory.resolve().is_relative_to(root.resolve()) for root in roots)
    if is_read:
        _check(places.author.taken_fault(workflow_id))
    path = directory / f"{workflow_id.rpartition('.')[2]}.{form}"
    data = _text(places, workflow_id, options.origin, form).encode("utf-8")
    _check(places.author.create(NewFile(path=path, ref=shown(path), form=form, data=data)))
    say(f"Wrote {shown(path)}.")
    say(f"Edit it, then check it: interlock workflow validate {shown(path)}")
    if is_read:
        say(f"Start it: ask your agent to start `{workflow_id}`; a running server finds it immediately.")
    else:
        *others, last = map(shown, roots)
        say(f"A server reads only {', '.join(others)} and {last}: move the file to one of them.")
    return 0


def _check(fault: NotWritten | None) -> None:
    """Raise what the use case refuses."""
    if fault is None:
        return
    if fault.faults:
        raise FaultyFileError(fault.message, fault.fix, file=fault.ref, faults=fault.faults)
    raise StopError(fault.message, fault.fix, exit_code=2 if fault.is_argument else 1)


def _text(places: WorkflowLocations, workflow_id: str, origin_id: str | None, text_format: TextFormat) -> str:
    """Render the new file: the example, or a copy of the origin."""
    if origin_id is not None:
        origin, _ = workflow_of(places, origin_id)
        value = copied_value(origin, workflow_id)
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
