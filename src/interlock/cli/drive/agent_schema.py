"""`interlock agent schema`: the JSON Schema of profiles, for editors."""

import argparse

from interlock.cli.screen import say_json
from interlock.drive.agent.profile import Profile

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command has no arguments."""
    del parser


def run(options: argparse.Namespace) -> int:
    """Print the schema. It names each field in one spelling; the other one is read as well."""
    del options
    say_json({"$schema": _DIALECT, "title": "Profile of an agent", **Profile.model_json_schema(mode="validation")})
    return 0
