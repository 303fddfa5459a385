"""The one catalogue of what agents send wrong: each fault spoils one thing about a good call.

Slips are what agents do by oversight; garbage is what no oversight explains, and a server has to refuse all the same.
"""

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias, cast

Arguments: TypeAlias = dict[str, Any]

TOKENS = ("ackToken", "stateToken", "checkpointToken")
LOST_ANSWER = "repeats a call whose answer was lost"
LOST_MEMORY = "loses all memory and resumes by words"

_GARBAGE: tuple[Any, ...] = (
    None,
    True,
    -1,
    1.5,
    "",
    "text",
    "\u0000\u202e💥",
    list[Any](),
    [1, [2, "x"], None],
    dict[str, Any](),
    {"a": {"b": [None]}},
    {"kind": 5},
)
_SENTENCE = "These notes go on and on. "
_TOO_LONG_TO_SEND, _TOO_LONG_TO_STORE = 12_000, 400
_DEPTH = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """What an agent remembers apart from the call: older tokens of the same run, and the tokens of other runs."""

    older: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


Fault: TypeAlias = Callable[[Arguments, Remembered, random.Random], Arguments | None]
"""Spoils a call; None if there is nothing to spoil."""


def drop_argument(arguments: Arguments, _: Remembered, chance: random.Random) -> Arguments | None:
    names = _spoilable(arguments)
    if not names:
        return None
    dropped = chance.choice(names)
    return {name: value for name, value in arguments.items() if name != dropped}


def reuse_token(arguments: Arguments, known: Remembered, chance: random.Random) -> Arguments | None:
    if "ackToken" not in arguments or not known.older:
        return None
    return arguments | {"ackToken": chance.choice(known.older)}


def swap_token(arguments: Arguments, known: Remembered, chance: random.Random) -> Arguments | None:
    if "ackToken" not in arguments or not known.others:
        return None
    return arguments | {"ackToken": chance.choice(known.others)}


def truncate_token(arguments: Arguments, _: Remembered, chance: random.Random) -> Arguments | None:
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
    output: Arguments = arguments.get("output") or {}
    if "notesMarkdown" not in output:
        return None
    rest = {name: value for name, value in output.items() if name != "notesMarkdown"}
    return arguments | {"output": rest | ({"notesMarkdown": "  "} if chance.random() < 1 / 2 else {})}


def wrong_artifact(arguments: Arguments, _: Remembered, chance: random.Random) -> Arguments | None:
    """Send no artifact, one of another kind, or one with a value that it does not accept."""
    output: Arguments = arguments.get("output") or {}
    artifacts = cast("list[Arguments]", output.get("artifacts", []))
    if not artifacts:
        return None
    another = [{**artifacts[0], "kind": "wr.something_else"}, *artifacts[1:]]
    invalid = [{key: value if key == "kind" else "perhaps" for key, value in artifacts[0].items()}, *artifacts[1:]]
    sent = chance.choice([[], another, invalid])
    rest = {name: value for name, value in output.items() if name != "artifacts"}
    return arguments | {"output": rest | ({"artifacts": sent} if sent else {})}


def mistype_name(arguments: Arguments, _: Remembered, chance: random.Random) -> Arguments | None:
    name = arguments.get("workflowId")
    if name is None:
        return None
    at = chance.randrange(len(name) - 3, len(name) - 1)
    return arguments | {"workflowId": name[:at] + name[at + 1 :]}


def report_nothing(arguments: Arguments, _: Remembered, __: random.Random) -> Arguments | None:
    return {name: value for name, value in arguments.items() if name not in {"output", "context"}}


def garbage_in_artifact(arguments: Arguments, _: Remembered, chance: random.Random) -> Arguments | None:
    output: Arguments = arguments.get("output") or {}
    artifacts = [
        {key: value if key == "kind" else chance.choice(_GARBAGE) for key, value in artifact.items()}
        for artifact in cast("list[Arguments]", output.get("artifacts", []))
    ]
    return arguments | {"output": output | {"artifacts": artifacts}} if artifacts else None


def garbage_artifacts(arguments: Arguments, _: Remembered, chance: random.Random) -> Arguments | None:
    artifacts = [chance.choice(_GARBAGE), {"kind": "wr.assessment", "dimensions": chance.choice(_GARBAGE)}]
    return arguments | {"output": {"notesMarkdown": "See the artifacts.", "artifacts": artifacts}}


def garbage_output(arguments: Arguments, _: Remembered, chance: random.Random) -> Arguments | None:
    return arguments | {"output": chance.choice(_GARBAGE)}


def endless_notes(arguments: Arguments, _: Remembered, chance: random.Random) -> Arguments | None:
    """Send notes that are too long to be stored, or too long to be sent."""
    if "output" not in arguments:
        return None
    notes = _SENTENCE * chance.choice([_TOO_LONG_TO_SEND, _TOO_LONG_TO_STORE])
    return arguments | {"output": arguments["output"] | {"notesMarkdown": notes}}


def wrong_context(arguments: Arguments, _: Remembered, chance: random.Random) -> Arguments | None:
    context = cast("Arguments", arguments.get("context", {"surprise": 1}))
    return arguments | {"context": {key: chance.choice(_GARBAGE) for key in context}}


def garbage_context(arguments: Arguments, _: Remembered, chance: random.Random) -> Arguments | None:
    deep: object = "deep"
    for _level in range(_DEPTH):
        deep = {"deeper": deep}
    return arguments | {"context": chance.choice((*_GARBAGE, {"deep": deep}, {"__proto__": 1}, {"k" * 200: 1}))}


def garbage_argument(arguments: Arguments, _: Remembered, chance: random.Random) -> Arguments | None:
    names = _spoilable(arguments)
    return arguments | {chance.choice(names): chance.choice(_GARBAGE)} if names else None


def unknown_argument(arguments: Arguments, _: Remembered, chance: random.Random) -> Arguments | None:
    return arguments | {"evidence": chance.choice(_GARBAGE)}


SLIPS: Mapping[str, Fault] = MappingProxyType(
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
"""What is wrong with a call, as an observer would say it."""

FAULTS: Mapping[str, Fault] = MappingProxyType(
    {
        **SLIPS,
        "reports nothing": report_nothing,
        "fills an artifact with garbage": garbage_in_artifact,
        "sends garbage as artifacts": garbage_artifacts,
        "sends garbage as output": garbage_output,
        "sends endless notes": endless_notes,
        "sets context keys to garbage": wrong_context,
        "sends garbage as context": garbage_context,
        "sends garbage as an argument": garbage_argument,
        "adds an argument": unknown_argument,
    }
)
"""The slips, and garbage."""


def spoil(name: str, arguments: Mapping[str, Any], known: Remembered, chance: random.Random) -> Arguments | None:
    """Return a call with one fault; None if that fault changes nothing."""
    good: Arguments = json.loads(json.dumps(arguments))
    spoilt = FAULTS[name](json.loads(json.dumps(arguments)), known, chance)
    return spoilt if spoilt != good else None


def _spoilable(arguments: Arguments) -> list[str]:
    """Return the names of arguments but the goal: those are the user's words, by which a run is found again."""
    return sorted(arguments.keys() - {"goal"})


def _with_token(arguments: Arguments, change: Callable[[str], str]) -> Arguments | None:
    name = next((name for name in TOKENS if name in arguments), None)
    return None if name is None else arguments | {name: change(str(arguments[name]))}
