"""`interlock keys source new`: a key with which a source signs its events."""

import argparse
import json
import os
from pathlib import Path

from interlock.cli.options import add_json
from interlock.cli.render.out_file import write_out
from interlock.cli.screen import StopError, printable_line, say, say_json
from interlock.service.outside.signatures import new_source


def add_source_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_json(parser)
    parser.add_argument("what", choices=["new"], help="`new`: make a key")
    parser.add_argument("name", metavar="NAME", help="the name of the source, as `config.toml` names it")
    parser.add_argument("--out", required=True, metavar="KEYFILE", help="the file for the private key")


def make_source(options: argparse.Namespace) -> int:
    """Write the private key, print the public key, and return the exit code.

    Raises:
        StopError: The name cannot be one of a source, or the file exists or cannot be written.
    """
    from interlock.config.form import SOURCE_NAME  # noqa: PLC0415 — the status of the keys needs no forms

    if not SOURCE_NAME.fullmatch(options.name):
        fix = "Use letters, digits, `_`, `-` and `.`, such as `ci`."
        raise StopError(f"{options.name!r} is no name of a source.", fix, exit_code=2)
    private, public = new_source()
    text = json.dumps({"source": options.name, "privateKey": private, "publicKey": public}) + "\n"
    path = Path(options.out)
    if os.path.lexists(path):
        fix = "Name a file that does not exist, in a directory that you can write."
        raise StopError(f"{printable_line(options.out)} exists already.", fix, exit_code=1)
    write_out(path, text.encode("utf-8"), is_forced=False)
    if options.as_json:
        say_json({"source": options.name, "publicKey": public, "file": options.out})
        return 0
    say(f"{options.out} holds the private key: only the source may read it. In `config.toml`:")
    # In TOML a bare name with a dot would be two tables.
    table = f'"{options.name}"' if "." in options.name else options.name
    say(f'[sources.{table}]\npublic_key = "{public}"')
    return 0
