"""`interlock workflow builtins`: what workflows can refer to, from the definitions that the compiler uses."""

import argparse
from dataclasses import asdict
from typing import cast, get_args

from interlock.cli.options import add_json
from interlock.cli.screen import say, say_json, say_table
from interlock.define.parts import CapabilityName
from interlock.kernel.canonical import Json
from interlock.plan.builtins.features import FEATURES
from interlock.plan.builtins.pack_schemas import PACK_SCHEMAS
from interlock.plan.builtins.packs import PACKS
from interlock.plan.builtins.references import SNIPPETS
from interlock.plan.builtins.templates import TEMPLATES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Print the built-in contracts, routines, features, texts and capabilities; return the exit code."""
    if options.as_json:
        say_json(registry())
        return 0
    say("Contracts (`outputContract`): what an artifact must be")
    say_table(("ID", "KIND", "WHAT IT IS"), ((one.contract_ref, one.kind or "-", one.title) for one in PACKS.values()))
    say("\nRoutines (`templateCall`): steps that are unfolded in place")
    say_table(("ID", "STEPS", "WHAT IT IS"), ((k, str(len(one.steps)), one.title) for k, one in TEMPLATES.items()))
    say("\nFeatures (`features`): lines that are added to every step")
    say_table(("ID", "WHAT IT IS"), ((key, one.title) for key, one in FEATURES.items()))
    say("\nTexts (`wr.refs.*`): inlined where they are named")
    say_table(("ID", "WHAT IT IS"), ((key, one.title) for key, one in SNIPPETS.items()))
    say(f"\nCapabilities (`capabilities`): {', '.join(get_args(CapabilityName))}")
    return 0


def registry() -> dict[str, Json]:
    """Return every built-in with all that the compiler knows of it."""
    contracts: list[Json] = [{**_json(one), "schema": PACK_SCHEMAS.get(ref)} for ref, one in PACKS.items()]
    return {
        "contracts": contracts,
        "routines": [_json(one) for one in TEMPLATES.values()],
        "features": [_json(one) for one in FEATURES.values()],
        "references": [_json(one) for one in SNIPPETS.values()],
        "capabilities": [{"id": name} for name in get_args(CapabilityName)],
    }


def _json(value: object) -> dict[str, Json]:
    """Return a definition as JSON, with the names of its fields as they are in workflow files."""
    return {_camel(name): _plain(member) for name, member in asdict(value).items()}  # pyright: ignore[reportArgumentType] — a frozen dataclass


def _plain(value: object) -> Json:
    if isinstance(value, dict):
        return {_camel(name): _plain(member) for name, member in cast("dict[str, object]", value).items()}
    if isinstance(value, tuple | list):
        return [_plain(one) for one in cast("list[object]", value)]
    assert value is None or isinstance(value, str | int | bool), "definitions hold plain values"
    return value


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(one.capitalize() for one in others)
