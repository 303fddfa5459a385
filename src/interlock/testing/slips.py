"""The slips of forgetful agents: each takes a good call and what is remembered, and spoils one thing about the call."""

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias, cast

Arguments: TypeAlias = dict[str, Any]

TOKENS = ("ackToken", "stateToken", "checkpointToken")


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """What an agent has in mind beside the call: older tokens of the same run, and the tokens of other runs."""

    older: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


Slip: TypeAlias = Callable[[Arguments, Remembered, random.Random], Arguments | None]
"""Spoils a call; None where there is nothing to spoil."""


def drop_argument(arguments: Arguments, _: Remembered, chance: random.Random) -> Arguments | None:
    """Leave an argument out, but not the goal: those are the user's words, by which a run is found again."""
    names = sorted(arguments.keys() - {"goal"})
    if not names:
        return None
    gone = chance.choice(names)
    return {name: value for name, value in arguments.items() if name != gone}


def reuse_token(arguments: Arguments, known: Remembered, chance: random.Random) -> Arguments | None:
    """Send a token of an earlier answer."""
    if "ackToken" not in arguments or not known.older:
        return None
    return arguments | {"ackToken": chance.choice(known.older)}


def swap_token(arguments: Arguments, known: Remembered, chance: random.Random) -> Arguments | None:
    """Send the token of another run."""
    if "ackToken" not in arguments or not known.others:
        return None
    return arguments | {"ackToken": chance.choice(known.others)}


def truncate_token(arguments: Arguments, _: Remembered, chance: random.Random) -> Arguments | None:
    """Lose the end of a token."""
    return _with_token(arguments, lambda token: token[: -chance.randint(1, 12)])


def retype_token(arguments: Arguments, _: Remembered, chance: random.Random) -> Arguments | None:
    """Type a token instead of copying it: a character wrong, missing, doubled or swapped, or all in one case."""

    def retyped(token: str) -> str:
        at = chance.randrange(1, len(token) - 1)
        before, here, after = token[:at], token[at], token[at + 1 :]
        wrong = chance.choice([char for char in "abcXYZ019_-" if char != here])
        swapped = f"{before}{after[0]}{here}{after[1:]}"
        spelled = [f"{before}{wrong}{after}", f"{before}{after}", f"{before}{here}{here}{after}", token.lower()]
        return chance.choice([*spelled, swapped] if swapped != token else spelled)

    return _with_token(arguments, retyped)


def forget_notes(arguments: Arguments, _: Remembered, chance: random.Random) -> Arguments | None:
    """Report a step without a word."""
    output = arguments.get("output", {})
    if "notesMarkdown" not in output:
        return None
    rest = {name: value for name, value in output.items() if name != "notesMarkdown"}
    return arguments | {"output": rest | ({"notesMarkdown": "  "} if chance.random() < 1 / 2 else {})}


def wrong_artifact(arguments: Arguments, _: Remembered, chance: random.Random) -> Arguments | None:
    """Bring no artifact, one of another kind, or one with a word in it that it does not take."""
    output = arguments.get("output", {})
    artifacts = cast("list[Arguments]", output.get("artifacts", []))
    if not artifacts:
        return None
    another = [{**artifacts[0], "kind": "wr.something_else"}, *artifacts[1:]]
    unfit = [{key: value if key == "kind" else "perhaps" for key, value in artifacts[0].items()}, *artifacts[1:]]
    brought = chance.choice([[], another, unfit])
    rest = {name: value for name, value in output.items() if name != "artifacts"}
    return arguments | {"output": rest | ({"artifacts": brought} if brought else {})}


def mistype_name(arguments: Arguments, _: Remembered, chance: random.Random) -> Arguments | None:
    """Misspell the id of a workflow."""
    name = arguments.get("workflowId")
    if name is None:
        return None
    at = chance.randrange(len(name) - 3, len(name) - 1)
    return arguments | {"workflowId": name[:at] + name[at + 1 :]}


SLIPS: Mapping[str, Slip] = MappingProxyType(
    {
        "drops an argument": drop_argument,
        "reuses an old token": reuse_token,
        "swaps tokens of two runs": swap_token,
        "truncates a token": truncate_token,
        "retypes a token": retype_token,
        "forgets the notes": forget_notes,
        "brings a wrong artifact": wrong_artifact,
        "misspells a name": mistype_name,
    }
)
"""What is wrong with a call, by what an onlooker would say of it."""

LOST_ANSWER = "repeats a call whose answer was lost"
LOST_MEMORY = "loses all memory and resumes by words"


def slipped(name: str, arguments: Mapping[str, Any], known: Remembered, chance: random.Random) -> Arguments | None:
    """Return a call spoilt in one way; None where that way spoils nothing."""
    good: Arguments = json.loads(json.dumps(arguments))
    spoilt = SLIPS[name](json.loads(json.dumps(arguments)), known, chance)
    return spoilt if spoilt != good else None


def _with_token(arguments: Arguments, spoil: Callable[[str], str]) -> Arguments | None:
    name = next((name for name in TOKENS if name in arguments), None)
    return None if name is None else arguments | {name: spoil(str(arguments[name]))}
