"""`interlock agent`: check, show and create the profile of an agent."""

import argparse
import json
from pathlib import Path

from interlock.cli.drive.files import read_agent
from interlock.cli.options import add_json
from interlock.cli.screen import StopError, say, say_json, say_table
from interlock.define.source.text_form import parse_text
from interlock.drive.agent.manifest import LoadedProfile
from interlock.kernel.budgets.drive import PROFILE_BYTES_MAX
from interlock.kernel.canonical import Json
from interlock.store.regular_file import read_regular

_EXAMPLE = Path(__file__).with_name("agent.yaml")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("file", metavar="FILE", help="the path of a profile")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Run the command of the group and return the exit code.

    Raises:
        StopError: The file cannot be read, has a fault, or exists already.
    """
    match options.action:
        case "new":
            return _new(Path(options.file), is_json=options.as_json)
        case "show":
            say_json(read_agent(options.file).profile.model_dump(mode="json"))
            return 0
        case _:
            return _validate(read_agent(options.file), is_json=options.as_json)


def _validate(loaded: LoadedProfile, *, is_json: bool) -> int:
    """List each field as used, ignored or unknown. A manifest with such fields is valid all the same."""
    fields: list[Json] = [one.to_json() for one in loaded.fields]
    if is_json:
        say_json({"isManifest": loaded.is_manifest, "fields": fields})
        return 0
    say_table(("FIELD", "IS"), [(one.path, one.fate) for one in loaded.fields])
    return 0


def _new(path: Path, *, is_json: bool) -> int:
    text = read_regular(_EXAMPLE, PROFILE_BYTES_MAX).decode()
    if path.suffix == ".json":
        text = json.dumps(parse_text(text.encode(), "yaml"), indent=2, ensure_ascii=False) + "\n"
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        fix = "Choose another name; the command overwrites no file."
        raise StopError(f"{path} exists already.", fix, exit_code=1) from error
    except OSError as error:
        fix = "Name a file in a directory that exists and that you can write to."
        raise StopError(f"{path} cannot be written: {error.strerror}.", fix, exit_code=1) from error
    if is_json:
        say_json({"file": str(path)})
    else:
        say(f"Written: {path}. Check it with `interlock agent validate {path}`.")
    return 0
