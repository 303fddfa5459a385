"""What an agent fills into a call: notes, artifacts and context values that meet what an answer asks for."""

import ast
import json
import random
import re
from collections.abc import Callable, Mapping
from re import _parser  # pyright: ignore[reportAttributeAccessIssue, reportPrivateUsage, reportUnknownVariableType]
from typing import Any, cast

from tests.agents.reading import Reading

from interlock.testing.harness import filled_out

_OF_CATEGORY = {"CATEGORY_DIGIT": "7", "CATEGORY_WORD": "w", "CATEGORY_SPACE": " "}
PASSES = 3
"""After so many passes the agent leaves a loop."""

_QUOTED = r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
_IN_BLOCKER = re.compile(rf"{_QUOTED} in `context`(?:, whole and including {_QUOTED})?(?: \(([^)]+)\))?")
_IN_START = re.compile(r"^- `([^`]+)` \((\w+)\): .*Found [^\n]*?(?:; use (one of \[.*\]))?\.$", re.MULTILINE)
_AT_START = re.compile(rf"{_QUOTED}, [^\n]*?; it needs (.+?)\.")

_MUST_STOP = '"decision": "stop"} in `output.artifacts`, and say'
"""What the refusal says when the passes of a loop are used up."""


def notes_for(wanted: str, sentence: str) -> str:
    """Return a sentence as notes, extended by what lines such as "Your notes must contain 'x'" ask for."""
    forbidden = [_unquoted(found) for found in re.findall(rf"not contain {_QUOTED}", wanted)]
    texts = [_unquoted(found) for found in re.findall(rf"(?<!not )contain {_QUOTED}", wanted)]
    texts += map(shortest_match, re.findall(r"match the pattern `([^`]*)`", wanted))
    least = max(map(int, re.findall(r"at least (\d+)(?=[^;.]* characters)", wanted)), default=0)
    most = min(map(int, re.findall(r"at most (\d+) characters", wanted)), default=None)
    required = " ".join(dict.fromkeys(texts))
    for text in forbidden:
        sentence = sentence.replace(text, "…")
    notes = f"{required}\n{sentence}" if required else sentence
    while len(notes) < least:
        notes += f" {sentence}"
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


def artifact_for(example: Mapping[str, Any], reading: Reading, seed: str) -> dict[str, Any]:
    """Return an example with the agent's decision or ratings, the same however often it is asked at one place."""
    made = cast("dict[str, Any]", filled_out(dict(example)))
    chance = random.Random(f"{seed} {reading.place or (0, 1)}")
    if made.get("kind") == "wr.loop_control":
        passes = (reading.place[1] if reading.place else None) or 1
        goes_on = chance.random() < 1 / 2 and passes < PASSES and _MUST_STOP not in reading.refusal
        made["decision"] = "continue" if goes_on else "stop"
    rated = made.get("dimensions")
    # A corrected call may repeat what was garbage.
    if made.get("kind") == "wr.assessment" and isinstance(rated, dict) and not reading.refusal:
        levels = _levels_in(reading.prompt)
        rated = cast("Mapping[str, Any]", rated)
        made["dimensions"] = {
            name: chance.choice(levels[name]) if name in levels else level for name, level in rated.items()
        }
    return made


class ContextValues:
    """The values that an agent has given for context keys, and how it chooses more.

    `known` is what it can say for a key: one of the values is taken. For other keys it makes something up.
    """

    def __init__(self, known: Mapping[str, tuple[object, ...]], chance: random.Random) -> None:
        self._known = known
        self._chance = chance
        self._values: dict[str, Any] = {}

    def for_start(self, shown: Mapping[str, Any], refusal: str) -> dict[str, Any]:
        """Return the context of a start: all values so far, with what a refused start asks for."""
        asked = _keys_asked(refusal)
        offered = [key for key, value in shown.items() if is_placeholder(value)] if refusal else self._known
        for key in offered:
            if key not in asked and self._chance.random() < 1 / 2:
                asked[key] = _kind_in(shown.get(key))
        self._choose(asked)
        return json.loads(json.dumps(self._values))

    def for_report(self, shown: Mapping[str, Any], refusal: str) -> dict[str, Any]:
        """Return the context of a report: what the call shows and has room for, sometimes with something known."""
        asked = _keys_asked(refusal)
        inner = {path.partition(".")[0] for path in asked}
        is_open = {key: value is None or is_placeholder(value) for key, value in shown.items()}
        asked |= {key: _kind_in(shown[key]) for key in shown if is_open[key] and key not in inner}
        if not refusal:
            # A value may have changed, and agents say more than they are asked.
            offered = (*self._known, *shown)
            asked |= {key: None for key in offered if key not in asked and self._chance.random() < 1 / 4}
        self._choose(asked)
        sent = {path.partition(".")[0] for path in asked}
        given = {key: value for key, value in shown.items() if not is_open[key]}
        return given | json.loads(json.dumps({key: self._values[key] for key in sorted(sent)}))

    def _choose(self, asked: Mapping[str, str | None]) -> None:
        """Choose a value for each path; a dotted one leads into an object."""
        for path, kind in asked.items():
            *outer, last = path.split(".")
            place = self._values
            for part in outer:
                if not isinstance(place.get(part), dict):
                    place[part] = {}
                place = place[part]
            place[last] = self._chosen(path, kind)

    def _chosen(self, path: str, kind: str | None) -> object:
        if kind is not None and kind.startswith("one of ["):
            return self._chance.choice(cast("list[object]", json.loads(kind.removeprefix("one of "))))
        known = [value for value in self._known.get(path, ()) if kind is None or _is_of_kind(value, kind)]
        if known:
            return self._chance.choice(known)
        make = _KINDS.get((kind or "").removeprefix("a ").removeprefix("an "))
        return make(self._chance) if make is not None else f"What there is to say about {path}"


def is_placeholder(value: object) -> bool:
    """Say whether a value of a shown call only says what belongs there."""
    return isinstance(value, str) and value.startswith("<")


def _keys_asked(refusal: str) -> dict[str, str | None]:
    """Return the context paths that a refusal asks for, each with the kind of value if it says one."""
    asked: dict[str, str | None] = {key: choices or kind for key, kind, choices in _IN_START.findall(refusal)}
    asked |= {_unquoted(path): kind for path, kind in _AT_START.findall(refusal)}
    for key, member, kind in cast("list[tuple[str, str, str]]", _IN_BLOCKER.findall(refusal)):
        path = _unquoted(key) + (f".{_unquoted(member)}" if member else "")
        asked[path] = kind or asked.get(path)
    return asked


def _kind_in(shown: object) -> str | None:
    """Return the kind that a placeholder such as `<number: what it is>` names."""
    return shown[1:].partition(":")[0] if isinstance(shown, str) and is_placeholder(shown) else None


def _unquoted(text: str) -> str:
    try:
        return str(ast.literal_eval(text))
    except (SyntaxError, ValueError):
        return text[1:-1]


def _levels_in(prompt: str) -> dict[str, list[str]]:
    """Return the levels that the evidence lines of a prompt name, by dimension."""
    lines = [line for line in prompt.splitlines() if "`wr.assessment`" in line]
    found = [pair for line in lines for pair in re.findall(r"`([^`]+)` \(([^()]*\|[^()]*)\):", line)]
    return {name: levels.removesuffix(", optional").split(" | ") for name, levels in found}


_KINDS: Mapping[str, Callable[[random.Random], object]] = {
    "list": lambda _: [{"name": "one"}, {"name": "two"}],
    "number": lambda chance: chance.randint(0, 3),
    "whole number": lambda chance: chance.randint(0, 3),
    "boolean": lambda chance: chance.random() < 1 / 2,
    "object": lambda _: {"name": "one"},
}


def _is_of_kind(value: object, kind: str) -> bool:
    make = _KINDS.get(kind.removeprefix("a ").removeprefix("an "))
    return type(value) is type(make(random.Random(0)) if make is not None else "") or kind == "a value"
