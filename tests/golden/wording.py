"""An answer taken apart: its facts in full, and its words as messages in which names replace the facts.

Facts are the structure without its prose. Words are the text and that prose, cut into lines and sentences: each
distinct one is a message with a key, and an answer lists keys. So a changed fact leaves the words alone, and a changed
wording is one line of one file. Prose that is compiled into a plan is a fact, since the plan's hash covers it.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, TypeAlias, TypedDict

from interlock.kernel.canonical import Json
from interlock.testing.harness import ToolResult

Place: TypeAlias = tuple[str | int, ...]
"""The path of a value in a structure; empty for the text."""
Value: TypeAlias = tuple[Place, Json]

PROSE = "(words)"
"""What replaces prose among the facts."""
_OF_BLANKS = frozenset({"fill", "path", "shape", "choices"})
"""Members of blanks: short words that messages use for other things, too."""
_PROSE_KEYS = frozenset(
    {"message", "suggestedFix", "suggestion", "note", "fix", "recap", "found", "method", "then", "what"}
)
_LONG = 8
"""A value of so many characters is recognised anywhere; a shorter one only between quotes or on a line of its own."""
_ID = r"(?:st|ack|chk)_[0-9a-z]{4}[\w-]{52}|(?:sess|run)_[0-9a-z]{26}|sha256:[0-9a-f]{12,64}"
_BEGIN, _END = "\x02", "\x03"
_HOLE = re.compile(f"{_BEGIN}(.*?){_END}")
_SEPARATOR = re.compile(rf"(\n| · |(?<=\D[.?!]) (?=[A-Z`{_BEGIN}]))")
_JOINS = {"": "", "\n": " ", " · ": "·", " ": "+"}
"""How a list of keys spells what separates two messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A message in its place. `items` are the items of lists that it names, as `[1]`; empty for the first."""

    separator: str
    template: str
    items: str


class Words(TypedDict):
    """What is committed: each message once, and by answer and place the keys, one text for each paragraph."""

    messages: dict[str, str]
    answers: dict[str, dict[str, list[str]]]


Pieces: TypeAlias = dict[str, dict[str, list[Piece]]]
"""The words of answers, by answer and place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Apart:
    """The facts and the words of answers, by answer."""

    facts: dict[str, Any]
    words: Pieces


def take_apart(answers: Mapping[str, ToolResult]) -> Apart:
    """Take the answers of one conversation apart.

    An answer may name its workflow and its step without repeating them in its structure: what the run's earlier answers
    said is known.
    """
    known: dict[str, dict[Place, Json]] = defaultdict(dict[Place, Json])
    apart = Apart(facts={}, words={})
    for name, answer in answers.items():
        values = dict(_values(dict(answer.structure)))
        label = str(values.get(("run", "label"), values.get(("details", "run", "label"))))
        known[label] |= {
            place: values[place] for place in (("run", "workflowName"), ("pending", "title")) if place in values
        }
        ids: list[str] = []
        apart.words[name] = _words(answer, list((known[label] | values).items()), ids)
        facts = {"isError": answer.is_error, "structure": without_prose(dict(answer.structure))}
        # An id that only the words hold is a fact all the same.
        apart.facts[name] = facts | ({"idsInWords": ids} if ids else {})
    return apart


def without_prose(value: Json, place: Place = ()) -> Json:
    """Return a structure with a mark in place of each text that is prose."""
    match value:
        case dict():
            return {key: without_prose(one, (*place, key)) for key, one in value.items()}
        case list():
            return [without_prose(one, (*place, at)) for at, one in enumerate(value)]
        case str() if _is_prose(place):
            return PROSE
        case _:
            return value


def words_of(found: Pieces, committed: Words) -> Words:
    """Return what to commit for these words. It equals what is committed exactly if they are the same.

    A message keeps its key while its words stay, and a new message takes over the key of the one that it replaces. So
    a rewording changes one message and no list of keys.
    """
    present = dict.fromkeys(
        piece.template for places in found.values() for pieces in places.values() for piece in pieces if piece.template
    )
    keys = {template: key for key, template in committed["messages"].items() if template in present}
    for answer, places in found.items():
        for place, pieces in places.items():
            listed = committed["answers"].get(answer, {}).get(place, [])
            for key, template in _replaced(_keys(listed), pieces, committed["messages"]):
                if template not in keys and key not in keys.values():
                    keys[template] = key
    for template in present:
        if template not in keys:
            keys[template] = _new_key(template, {*keys.values(), *committed["messages"]})
    return Words(
        messages={keys[template]: template for template in present},
        answers={
            answer: {place: _listed(pieces, keys) for place, pieces in places.items()}
            for answer, places in found.items()
        },
    )


def written_words(words: Words) -> str:
    """Return the committed form: a line for each message, and one for each place of an answer."""

    def members(lines: Mapping[str, object], indent: str) -> str:
        return ",\n".join(f"{indent}{json.dumps(key)}: {_json(one)}" for key, one in lines.items())

    answers = ",\n".join(
        f"  {_json(answer)}: {{\n{members(places, '   ')}\n  }}" for answer, places in words["answers"].items()
    )
    return f'{{\n "messages": {{\n{members(words["messages"], "  ")}\n }},\n "answers": {{\n{answers}\n }}\n}}\n'


def _words(answer: ToolResult, values: list[Value], ids: list[str]) -> dict[str, list[Piece]]:
    prose = [(place, str(value)) for place, value in _values(dict(answer.structure)) if _is_prose(place)]
    texts: list[tuple[Place, str]] = [((), answer.text), *prose]
    return {".".join(map(str, place)) or "text": _Names(place, values).pieces(text, ids) for place, text in texts}


def _is_prose(place: Place) -> bool:
    if not place or "arguments" in place or "plan" in place:
        return False
    return place[-1] in _PROSE_KEYS or place[-2:] == ("pending", "prompt")


def _values(value: Json, place: Place = ()) -> Iterator[Value]:
    """Yield each value that words may name, outermost first. A plan repeats what the rest of its answer says."""
    if place == ("plan",):
        return
    if place and not isinstance(value, bool) and value not in ("", None, [], {}) and place[-1] not in _OF_BLANKS:
        yield place, value
    match value:
        case dict():
            for key, one in value.items():
                yield from _values(one, (*place, key))
        case list():
            for at, one in enumerate(value):
                yield from _values(one, (*place, at))
        case _:
            pass


class _Names:
    """The names of an answer's values in one of its texts: the nearest value first, then the outermost."""

    def __init__(self, place: Place, values: Iterable[Value]) -> None:
        self._places: dict[str, list[Place]] = defaultdict(list)
        self._used: Counter[Place] = Counter()
        patterns: dict[str, str] = {}
        for other, value in sorted(values, key=lambda one: (-_shared(one[0], place), len(one[0]))):
            if other == place or (_is_prose(other) and place and len(str(value)) < _LONG):
                continue
            for spelled, pattern in _spellings(value):
                patterns[spelled] = pattern
                self._places[spelled].append(other)
        longest = [patterns[spelled] for spelled in sorted(patterns, key=len, reverse=True)]
        self._every = re.compile("|".join([*longest, f"(?P<id>{_ID})"]))

    def pieces(self, text: str, ids: list[str]) -> list[Piece]:
        """Return a text as pieces that name what they hold; `ids` receives the ids that no value holds."""

        def named(match: re.Match[str]) -> str:
            if match["id"]:
                ids.append(match["id"])
                return "{id}"
            return f"{_BEGIN}{'.'.join(map(str, self._name(match[0])))}{_END}"

        parts = ["", *_SEPARATOR.split(self._every.sub(named, text))]
        return [_piece(separator, part) for separator, part in zip(parts[::2], parts[1::2], strict=True)]

    def _name(self, spelled: str) -> Place:
        """Return the place to name: of equal numbers the least used, of equal texts the first, item by item."""
        places = self._places[spelled]
        if spelled.isdigit() and not spelled.startswith("0"):
            firsts: dict[str | int, Place] = {}
            places = [place for place in places if firsts.setdefault(place[-1], place) == place]
        else:
            places = [place for place in places if _general(place) == _general(places[0])]
        place = min(places, key=lambda one: self._used[one])
        self._used[place] += 1
        return place


def _spellings(value: Json) -> Iterator[tuple[str, str]]:
    """Yield how a text may spell a value, each with the pattern that finds it there."""
    match value:
        case dict() | list():
            for spelled in (_json(value), json.dumps(value, ensure_ascii=False, separators=(",", ":"))):
                yield spelled, re.escape(spelled)
        case int():
            yield str(value), rf"(?<![\w.'\"`-]){value}(?![\w.'\"`-])"
        case _ if len(str(value)) >= _LONG:
            yield str(value), rf"(?<!\w){re.escape(str(value))}(?!\w)"
        case _:
            yield str(value), rf"(?:(?<=[`'\"*\n])|(?<=\n- )|\A){re.escape(str(value))}(?=[`'\"*\n]|\Z)"


def _shared(one: Place, other: Place) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _general(place: Place) -> Place:
    return tuple("#" if isinstance(part, int) else part for part in place)


def _piece(separator: str, text: str) -> Piece:
    items = dict.fromkeys(part for hole in _HOLE.findall(text) for part in hole.split(".") if part.isdigit())
    template = _HOLE.sub(lambda hole: "{" + re.sub(r"\b\d+\b", "#", hole[1]) + "}", text)
    template = re.sub(r"(.)\1{19,}", lambda run: f"{{{len(run[0])} times {run[1]}}}", template)
    return Piece(separator=separator, template=template, items=f"[{','.join(items)}]" if items.keys() - {"0"} else "")


def _listed(pieces: list[Piece], keys: Mapping[str, str]) -> list[str]:
    listed = "".join(_JOINS[piece.separator] + keys.get(piece.template, "") + piece.items for piece in pieces)
    return listed.split("  ")


def _keys(listed: list[str]) -> list[str]:
    return [key.partition("[")[0] for key in re.split("[ ·+]", "  ".join(listed))]


def _replaced(keys: list[str], pieces: list[Piece], messages: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each key whose message is not in its place any more, with the message that replaces it."""
    old, new = [messages.get(key, "") for key in keys], [piece.template for piece in pieces]
    for kind, start, stop, new_start, new_stop in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "replace":
            replaced = zip(keys[start:stop], new[new_start:new_stop], strict=False)
            yield from ((key, template) for key, template in replaced if key and template)


def _new_key(template: str, taken: set[str]) -> str:
    words = re.findall(r"[a-z0-9]+", re.sub(r"\{[\w.#]+\}", " ", template).lower())
    key = "-".join(words[:6] or re.findall(r"[a-z]+", template.lower()) or ["line"])
    return next(one for one in (key, *(f"{key}-{number}" for number in range(2, 10_000))) if one not in taken)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
