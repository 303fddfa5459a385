"""What an agent fills into a call: notes, artifacts and context values that meet what an answer asks for."""

import ast
import json
import random
import re
from collections.abc import Callable, Mapping
from re import _parser  # pyright: ignore[reportAttributeAccessIssue, reportPrivateUsage, reportUnknownVariableType]
from typing import Any, cast

from tests.agents.reading import Reading

from interlock.testing.harness import good_value

_OF_CATEGORY = {"CATEGORY_DIGIT": "7", "CATEGORY_WORD": "w", "CATEGORY_SPACE": " "}
PASSES = 3
"""After so many passes the agent leaves a loop."""

_QUOTED = r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
_MUST_STOP = '"decision": "stop"} in `output.artifacts`, and say'
"""What the refusal says when the passes of a loop are used up."""


def notes_for(wanted: str, sentence: str) -> str:
    """Return a sentence as notes, extended by what lines such as "Your notes must contain 'x'" ask for.

    Notes that must be longer list details, each of its own.
    """
    forbidden = [_unquoted(found) for found in re.findall(rf"not contain {_QUOTED}", wanted)]
    texts = [_unquoted(found) for found in re.findall(rf"(?<!not )contain {_QUOTED}", wanted)]
    texts += map(shortest_match, re.findall(r"match the pattern `([^`]*)`", wanted))
    least = max(map(int, re.findall(r"at least (\d+)(?=[^;.]* characters)", wanted)), default=0)
    most = min(map(int, re.findall(r"at most (\d+) characters", wanted)), default=None)
    required = " ".join(dict.fromkeys(texts))
    for text in forbidden:
        sentence = sentence.replace(text, "…")
    notes = f"{required}\n{sentence}" if required else sentence
    detail = 0
    while len(notes) < least:
        detail += 1
        notes += f" Detail-{detail}: case-{detail} gave result-{detail}."
    return notes[: most if most is not None and most >= len(required) else None]


def shortest_match(pattern: str) -> str:
    """Return the shortest text that a pattern matches, without anything that it only allows."""
    return "".join(_match_of(part) for part in cast("list[tuple[Any, Any]]", _parser.parse(pattern)))


def _match_of(part: tuple[Any, Any]) -> str:
    kind, value = part
    match str(kind):
        case "LITERAL":
            return chr(value)
        case "RANGE":
            return chr(value[0])
        case "CATEGORY":
            return _OF_CATEGORY[str(value)]
        case "IN" | "BRANCH":
            first = value[0] if str(kind) == "IN" else value[1][0]
            return _match_of(first) if str(kind) == "IN" else "".join(map(_match_of, first))
        case "SUBPATTERN":
            return "".join(map(_match_of, value[-1]))
        case "MAX_REPEAT" | "MIN_REPEAT":
            return "".join(map(_match_of, value[2])) * value[0]
        case "ANY":
            return "x"
        case _:
            return ""


class Filling:
    """The values that an agent gives for the blanks of its calls.

    `known` is what it can say for a context key: one of the values is taken, and a key without values is left out.
    For other keys it makes something up.
    """

    def __init__(self, known: Mapping[str, tuple[object, ...]], chance: random.Random) -> None:
        self._known = known
        self._chance = chance
        self._values: dict[str, Any] = {}

    def for_start(self, fill: tuple[Mapping[str, Any], ...], *, is_refused: bool) -> dict[str, Any]:
        """Return the context of a start: all values so far, with what a refused start asks for."""
        for key, blank in _keys(fill).items():
            if self._known.get(key) != ():
                self._values[key] = self._chosen(key, blank)
        if not is_refused:
            for key in (key for key, values in self._known.items() if values):
                if self._chance.random() < 1 / 2:
                    self._values[key] = self._chosen(key, {})
        return json.loads(json.dumps(self._values))

    def for_report(self, fill: tuple[Mapping[str, Any], ...], *, is_refused: bool) -> dict[str, Any]:
        """Return the context of a report: what the call asks for, sometimes with something known."""
        asked = _keys(fill)
        if not is_refused:
            # A value may have changed, and agents say more than they are asked.
            asked |= {
                key: {}
                for key, values in self._known.items()
                if values and key not in asked and self._chance.random() < 1 / 4
            }
        for key, blank in asked.items():
            self._values[key] = self._chosen(key, blank)
        return json.loads(json.dumps({key: self._values[key] for key in sorted(asked)}))

    def _chosen(self, key: str, blank: Mapping[str, Any]) -> object:
        """Return a value for a key; one whose member is asked for is an object with that member."""
        shape = str(blank.get("shape") or "")
        member = re.search(r"with its member (\S+)$", str(blank.get("what", "")))
        if member is not None:
            held = self._values.get(key)
            value: object = _of_kind(shape, self._chance)
            for part in reversed(member[1].split(".")):
                value = {part: value}
            whole = cast("dict[str, Any]", held) if isinstance(held, dict) else {}
            return _merged(whole, cast("dict[str, Any]", value))
        if blank.get("choices"):
            return self._chance.choice(blank["choices"])
        if shape.startswith("list of "):
            return good_value(blank)
        known = [value for value in self._known.get(key, ()) if not shape or _is_of_kind(value, shape)]
        if known:
            return self._chance.choice(known)
        return _of_kind(shape, self._chance) if shape else f"What there is to say about {key}"


def artifact_values(reading: Reading, seed: str) -> Callable[[Mapping[str, Any]], Any]:
    """Return how the agent fills artifacts: the same however often it is asked at one place."""
    chance = random.Random(f"{seed} {reading.place or (0, 1)}")
    passes = (reading.place[1] if reading.place else None) or 1
    goes_on = chance.random() < 1 / 2 and passes < PASSES and _MUST_STOP not in reading.refusal

    avoided = [_unquoted(level) for level in re.findall(rf"has the level {_QUOTED}", reading.refusal)]

    def supply(blank: Mapping[str, Any]) -> Any:
        choices = list(blank.get("choices", ()))
        if {*choices} == {"continue", "stop"}:
            return "continue" if goes_on else "stop"
        if ".dimensions." in blank["path"]:
            fine = [choice for choice in choices if choice not in avoided]
            return chance.choice(choices) if not reading.refusal else (fine or choices)[0]
        return good_value(blank)

    return supply


def _keys(fill: tuple[Mapping[str, Any], ...]) -> dict[str, Mapping[str, Any]]:
    return {blank["path"].removeprefix("context."): blank for blank in fill if blank["path"].startswith("context.")}


def _merged(held: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Return `held` with the members of `more`, one level into another."""
    both = {**held, **more}
    for name, value in more.items():
        if isinstance(value, dict) and isinstance(held.get(name), dict):
            both[name] = _merged(held[name], cast("dict[str, Any]", value))
    return both


def _unquoted(text: str) -> str:
    try:
        return str(ast.literal_eval(text))
    except (SyntaxError, ValueError):
        return text[1:-1]


_KINDS: Mapping[str, Callable[[random.Random], object]] = {
    "list": lambda _: [{"name": "one"}, {"name": "two"}],
    "number": lambda chance: chance.randint(0, 3),
    "whole number": lambda chance: chance.randint(0, 3),
    "boolean": lambda chance: chance.random() < 1 / 2,
    "object": lambda _: {"name": "one"},
}


def _of_kind(kind: str, chance: random.Random) -> object:
    if kind.startswith("one of ["):
        return chance.choice(cast("list[object]", json.loads(kind.removeprefix("one of "))))
    if member := re.match(r"a list whose items all have '([^']+)', (.+)", kind):
        return [{member[1]: _of_kind(member[2], chance)}]
    make = _KINDS.get(kind.removeprefix("a ").removeprefix("an "))
    return make(chance) if make is not None else "Something to say"


def _is_of_kind(value: object, kind: str) -> bool:
    return type(value) is type(_of_kind(kind, random.Random(0))) or kind == "a value"
