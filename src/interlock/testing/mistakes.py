"""What agents send wrong: each mistake takes the arguments of a good call and spoils them."""

import random
from collections.abc import Callable
from typing import Any, TypeAlias, cast

Arguments: TypeAlias = dict[str, Any]
Mistake: TypeAlias = Callable[[Arguments, random.Random], Arguments]

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
_HUGE_NOTES = "These notes go on and on. " * 12_000
"""Beyond what a call may bring."""
_LONG_NOTES = "These notes go on and on. " * 400
"""Beyond what is stored."""
_DEPTH = 80


def _nothing(arguments: Arguments, _: random.Random) -> Arguments:
    return {name: value for name, value in arguments.items() if name not in {"output", "context"}}


def _no_artifacts(arguments: Arguments, _: random.Random) -> Arguments:
    return arguments | ({"output": {"notesMarkdown": "I forgot the artifact."}} if "output" in arguments else {})


def _another_kind(arguments: Arguments, _: random.Random) -> Arguments:
    return _with_artifacts(arguments, lambda artifact: artifact | {"kind": "wr.something_else"})


def _another_word(arguments: Arguments, _: random.Random) -> Arguments:
    def spoiled(artifact: Arguments) -> Arguments:
        return {
            key: "perhaps" if key != "kind" and isinstance(value, str) else value for key, value in artifact.items()
        }

    return _with_artifacts(arguments, spoiled)


def _garbage_inside(arguments: Arguments, chance: random.Random) -> Arguments:
    def spoiled(artifact: Arguments) -> Arguments:
        return {key: value if key == "kind" else chance.choice(_GARBAGE) for key, value in artifact.items()}

    return _with_artifacts(arguments, spoiled)


def _garbage_beside(arguments: Arguments, chance: random.Random) -> Arguments:
    artifacts = [chance.choice(_GARBAGE), {"kind": "wr.assessment", "dimensions": chance.choice(_GARBAGE)}]
    return arguments | {"output": {"notesMarkdown": "See the artifacts.", "artifacts": artifacts}}


def _garbage_output(arguments: Arguments, chance: random.Random) -> Arguments:
    return arguments | {"output": chance.choice(_GARBAGE)}


def _empty_notes(arguments: Arguments, chance: random.Random) -> Arguments:
    return _with_notes(arguments, chance.choice(["", "   ", "\n\t"]))


def _huge_notes(arguments: Arguments, _: random.Random) -> Arguments:
    return _with_notes(arguments, _HUGE_NOTES)


def _long_notes(arguments: Arguments, _: random.Random) -> Arguments:
    return _with_notes(arguments, _LONG_NOTES)


def _wrong_context(arguments: Arguments, chance: random.Random) -> Arguments:
    context = cast("Arguments", arguments.get("context", {"surprise": 1}))
    return arguments | {"context": {key: chance.choice(_GARBAGE) for key in context}}


def _garbage_context(arguments: Arguments, chance: random.Random) -> Arguments:
    deep: object = "deep"
    for _ in range(_DEPTH):
        deep = {"deeper": deep}
    return arguments | {"context": chance.choice((*_GARBAGE, {"deep": deep}, {"__proto__": 1}, {"k" * 200: 1}))}


def _garbage_argument(arguments: Arguments, chance: random.Random) -> Arguments:
    name = chance.choice(sorted(arguments))
    return arguments | {name: chance.choice(_GARBAGE)}


def _unknown_argument(arguments: Arguments, chance: random.Random) -> Arguments:
    return arguments | {"evidence": chance.choice(_GARBAGE)}


def _altered_token(arguments: Arguments, chance: random.Random) -> Arguments:
    name = "ackToken" if "ackToken" in arguments else "workflowId"
    token = str(arguments.get(name, "x"))
    at = chance.randrange(len(token))
    return arguments | {name: token[:at] + chance.choice(["", "A", "é", " "]) + token[at + 1 :]}


def _with_artifacts(arguments: Arguments, spoil: Callable[[Arguments], Arguments]) -> Arguments:
    output = cast("Arguments", arguments.get("output", {}))
    if "artifacts" in output:
        output["artifacts"] = [spoil(artifact) for artifact in output["artifacts"]]
    return arguments


def _with_notes(arguments: Arguments, notes: str) -> Arguments:
    if "output" in arguments:
        arguments["output"]["notesMarkdown"] = notes
    return arguments


MISTAKES: tuple[Mistake, ...] = (
    _nothing,
    _no_artifacts,
    _another_kind,
    _another_word,
    _garbage_inside,
    _garbage_beside,
    _garbage_output,
    _empty_notes,
    _huge_notes,
    _long_notes,
    _wrong_context,
    _garbage_context,
    _garbage_argument,
    _unknown_argument,
    _altered_token,
)
"""Some spoil nothing where there is nothing to spoil; an agent that errs this way happens to be right."""
