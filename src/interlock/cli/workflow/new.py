"""`interlock workflow new`: a file for an author to begin with. Never overwrites one."""

import argparse
import json
from pathlib import Path

import yaml

from interlock.cli.screen import StopError, say
from interlock.cli.workflow.places import Places, add_place_options, chosen_places, shown, workflow_of
from interlock.define.diagnostics import has_errors
from interlock.define.source.text_form import TextFormat, parse_text
from interlock.define.workflow_ids import ID_CHARS_MAX, classify_id, is_reserved, suggest_id
from interlock.kernel.canonical import Json
from interlock.service.catalog import Entry, RefusedFile, Source
from interlock.store.workflow_files import PROJECT_DIR

_LINE_CHARS = 100
_EXAMPLE = """\
# A workflow for Interlock. `interlock workflow schema` prints every key there is.
id: {id}
name: "{name}"
description: Say in a sentence or two what this workflow is for, and what it is not for.
tags: [example]

# Sentences that a person might say when this workflow is meant.
examples:
  - Do the thing that {id} is for

# Who the agent is, and the rules that hold in every step.
agentRole: You do careful work and prove what you claim.
guidance:
  - Write notes from which someone with nothing but the notes can carry on.

# What a run may be started with, beside the goal. Conditions may read it.
inputs:
  - key: size
    description: How large the task is. Left out, the first step judges it.
    type: string
    choices: [small, large]

steps:
  - id: understand
    title: Understand the task
    # In a prompt {{{{goal}}}} stands for the goal, and {{{{name}}}} for any other key of the context.
    prompt: >-
      The task: {{{{goal}}}}. Say what will be different when it is done, and how anyone will be able to tell.
      Send `size` in the context: "small" if one obvious change does it, else "large".
    # What later conditions read must come from an input or from an earlier step.
    produces: [size]

  - id: plan
    title: Agree on a plan
    # A step that a person must confirm, and that small tasks leave out.
    when: {{not: {{var: size, equals: small}}}}
    requireConfirmation: true
    prompt: Write a plan in numbered steps and show it to the user. Change nothing before it is agreed.

  # A loop needs a bound. It goes on while the last step of its body says so.
  - type: loop
    loopId: work
    title: Work in slices
    while: {{kind: loop_control}}
    maxIterations: 5
    body:
      - id: slice
        title: One slice of the work
        prompt: Do the next piece of the work, and check that it does what it should.
        # The notes must hold this word, or the step is not done.
        validationCriteria: {{type: contains, value: "Checked:", message: Say what you checked and what came of it.}}
      - id: more
        title: Is there more?
        prompt: Decide whether another slice is needed.
        outputContract: {{contractRef: wr.contracts.loop_control}}

  - id: verify
    title: Verify the whole
    prompt: Run every check you have, once more and over everything. Report each with what shows its result.
    # Structured evidence, checked against the schema of its contract.
    outputContract: {{contractRef: wr.contracts.verification_report}}
"""
"""Shows what most workflows use; the JSON form is made from it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_place_options(parser)
    parser.add_argument("workflow_id", metavar="ID", help="namespace.name, such as team.release_notes")
    parser.add_argument("--from", dest="origin", metavar="WORKFLOW_ID", help="copy this workflow instead of an example")
    parser.add_argument("--dir", dest="directory", help="where to write it (default: .interlock/workflows)")
    parser.add_argument("--yaml", dest="is_yaml", action="store_true", help="write YAML with comments instead of JSON")


def run(options: argparse.Namespace) -> int:
    """Write a new workflow file, say what to do next, and return the exit code.

    Raises:
        StopError: The id is none or taken, the origin cannot be copied, or the file exists.
    """
    places, workflow_id, given = chosen_places(options), str(options.workflow_id), options.directory
    form: TextFormat = "yaml" if options.is_yaml else "json"
    _check_id(workflow_id)
    own = places.workspace / PROJECT_DIR
    directory = Path(given) if given is not None else own
    if given is None:
        _check_free(places, workflow_id)
    path = directory / f"{workflow_id.rpartition('.')[2]}.{form}"
    data = _text(places, workflow_id, options.origin, form).encode("utf-8")
    _check_valid(places, Source(kind="project", ref=shown(path), form=form, data=data))
    _write(path, data)
    say(f"Wrote {shown(path)}.")
    say(f"Edit it, then check it: interlock workflow validate {shown(path)}")
    if directory.resolve() in (own.resolve(), places.user_dir.resolve()):
        say(f"Start it: ask your agent to start `{workflow_id}`; a running server sees it at once.")
    else:
        say(f"A server reads it once it lies in {shown(own)} or in {shown(places.user_dir)}.")
    return 0


def _check_id(workflow_id: str) -> None:
    """Refuse an id that a project's file cannot have."""
    if is_reserved(workflow_id):
        message = f"{workflow_id!r} lies in `wr.*`, which is reserved for what ships with Interlock."
    elif len(workflow_id) > ID_CHARS_MAX:
        message = f"The id has {len(workflow_id)} characters, at most {ID_CHARS_MAX}."
        raise StopError(message, "Shorten it.", exit_code=2)
    elif classify_id(workflow_id) != "namespaced":
        message = f"{workflow_id!r} is not `namespace.name` in lower-case letters, digits, `_` and `-`."
    else:
        return
    raise StopError(message, f"Use for example {suggest_id(workflow_id, 'project')}.", exit_code=2)


def _check_free(places: Places, workflow_id: str) -> None:
    view = places.catalog.view(places.workspace)
    taken = view.entries.get(workflow_id) or view.refused_of(workflow_id)
    if taken is not None:
        message = f"{taken.source.ref} of the {taken.source.kind} source has the id {workflow_id!r} already."
        raise StopError(message, "Nothing was written. Edit that file, or choose another id.", exit_code=1)


def _text(places: Places, workflow_id: str, origin_id: str | None, form: TextFormat) -> str:
    """Return the text of the new file: an example, or a copy of the origin."""
    if origin_id is not None:
        origin, _ = workflow_of(places, origin_id)
        value = {**origin.value, "id": workflow_id}
    else:
        name = workflow_id.rpartition(".")[2].replace("_", " ").replace("-", " ").strip().capitalize()
        text = _EXAMPLE.format(id=workflow_id, name=name)
        if form == "yaml":
            return text
        value = parse_text(text.encode("utf-8"), "yaml")
        assert isinstance(value, dict), "the example is a document"
    return _as_yaml(value) if form == "yaml" else json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _as_yaml(value: dict[str, Json]) -> str:
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=_LINE_CHARS)


def _check_valid(places: Places, source: Source) -> None:
    """Refuse to write what could not be started: what runs where it ships may not run under another id."""
    found = places.entry_in(source)
    compiled = found.compiled if isinstance(found, Entry) else found
    diagnostics = compiled.diagnostics if isinstance(compiled, RefusedFile) else compiled.warnings
    if has_errors(diagnostics):
        message, fix = "A project's file would have faults.", "Nothing was written. Copy another workflow."
        raise StopError(message, fix, exit_code=1, file=source.ref, faults=diagnostics)


def _write(path: Path, data: bytes) -> None:
    """Write a file that does not exist yet."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        message = f"{shown(path.parent)} is not a directory, or lies below a file."
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
    fix = "Choose another --dir, or make room and correct its permissions."
    return StopError(f"{shown(path)} cannot be written: {error.strerror}.", fix, exit_code=1)
