"""Where in a workflow file a document path stands: the line and column that an editor jumps to."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from interlock.define.source.text_form import FORMAT_BYTES_MAX, TextFormat
from interlock.kernel.budgets import DOCUMENT_DEPTH_MAX, PATH_BYTES_MAX

_PATH_CHARS_MAX = 8 * PATH_BYTES_MAX
"""How much of a path is followed: diagnostics cut theirs far before."""
_PART_END = re.compile(r"[.\[]|$")
_INDEX = re.compile(r"\[(0|[1-9][0-9]{0,8})\]")
_SPACE = re.compile(r"[ \t\n\r]*")
_decode_value = json.JSONDecoder().raw_decode

_Token: TypeAlias = tuple[str, str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """A place in a text. Both count from 1, and columns count characters."""

    line: int
    column: int


def find_position(data: bytes, form: TextFormat, path: str) -> Position | None:
    """Return where in a file a document path such as `steps[3].title` stands, or None if the file cannot be read.

    A member stands where its key does, an item where its value does. What does not exist stands where the
    nearest thing around it does. Of a key that stands twice it is the second, the one too many.
    """
    return find_positions(data, form, [path]).get(path)


def find_positions(data: bytes, form: TextFormat, paths: Iterable[str]) -> dict[str, Position]:
    """Return where each document path stands, as `find_position` does; nothing if the file cannot be read."""
    if len(data) > FORMAT_BYTES_MAX[form]:
        return {}
    sought = [_Target(path=path) for path in dict.fromkeys(paths)]
    try:
        text = data.decode("utf-8-sig")
        if form == "json":
            _scan_json(text, _build_trails(sought))
        else:
            _scan_yaml(text, _build_trails(sought))
    except (ValueError, RecursionError):
        # The diagnostic of a text that is no JSON or YAML says its line itself.
        return {}
    return {one.path: _to_position(text, one.at) for one in sought}


@dataclass(slots=True, kw_only=True)
class _Target:
    """A path with the best place found for it so far: the whole document, until a part of it is met."""

    path: str
    at: int = 0
    rank: tuple[int, int] = field(default=(-_PATH_CHARS_MAX - 2, 0))

    def offer(self, at: int, left: str, depth: int) -> None:
        """Take a place if it leaves less of the path, or as much through fewer and longer keys, or is a later one."""
        rank = (-len(left), -depth)
        if rank >= self.rank:
            self.at, self.rank = at, rank


_Trail: TypeAlias = tuple[_Target, str]
"""A path and what is left of it inside a container: `.title` or `[3].title`."""


def _build_trails(sought: Iterable[_Target]) -> list[_Trail]:
    trails: list[_Trail] = []
    for one in sought:
        path = one.path[:_PATH_CHARS_MAX]
        trails.extend((one, left) for left in (f".{path}", path if path.startswith("[") else "") if path and left)
    return trails


class _Container:
    """What is sought inside one container, by the key or index that leads to it.

    A key may hold dots and brackets, so that a path can be cut into keys in several ways: all are followed.
    """

    def __init__(self, trails: Sequence[_Trail], depth: int) -> None:
        self._depth = depth
        self._by_part: dict[str | int, list[_Trail]] = {}
        self._entered: set[str | int] = set()
        for one, left in trails:
            for part, rest in _iter_splits(left):
                self._by_part.setdefault(part, []).append((one, rest))

    def enter(self, part: str | int, at: int) -> Sequence[_Trail]:
        """Note that a member or item stands here, and return what is sought inside it."""
        trails = self._by_part.get(part, ())
        if trails:
            for one, left in trails:
                one.offer(at, left, self._depth)
            # A key is followed twice, because the second is the one too many; more of them could only cost.
            if part in self._entered:
                del self._by_part[part]
            self._entered.add(part)
        return trails


def _iter_splits(left: str) -> Iterator[tuple[str | int, str]]:
    """Yield every way to take the first part off the rest of a path."""
    index = _INDEX.match(left)
    if index:
        yield int(index[1]), left[index.end() :]
    if left.startswith("."):
        for end in _PART_END.finditer(left, 1):
            yield left[1 : end.start()], left[end.start() :]


def _scan_json(text: str, trails: Sequence[_Trail]) -> None:
    end = _scan_json_value(text, _skip_space(text, 0), trails, 0)
    if _skip_space(text, end) != len(text):
        raise ValueError("something stands behind the value")


def _scan_json_value(text: str, at: int, trails: Sequence[_Trail], depth: int) -> int:
    """Go through the value that stands here and return where it ends. What holds nothing sought is passed at once."""
    if trails and depth < DOCUMENT_DEPTH_MAX:
        if text.startswith("{", at):
            return _scan_json_object(text, at, _Container(trails, depth), depth)
        if text.startswith("[", at):
            return _scan_json_array(text, at, _Container(trails, depth), depth)
    return _decode_value(text, at)[1]


def _scan_json_object(text: str, at: int, inside: _Container, depth: int) -> int:
    at = _skip_space(text, at + 1)
    if text.startswith("}", at):
        return at + 1
    while True:
        key, colon = _decode_value(text, at)
        colon = _skip_space(text, colon)
        if not isinstance(key, str) or not text.startswith(":", colon):
            raise ValueError("a member does not begin with its key")
        trails = inside.enter(key, at)
        at = _skip_space(text, _scan_json_value(text, _skip_space(text, colon + 1), trails, depth + 1))
        if text.startswith("}", at):
            return at + 1
        at = _skip_comma(text, at)


def _scan_json_array(text: str, at: int, inside: _Container, depth: int) -> int:
    at = _skip_space(text, at + 1)
    if text.startswith("]", at):
        return at + 1
    index = 0
    while True:
        trails = inside.enter(index, at)
        at = _skip_space(text, _scan_json_value(text, at, trails, depth + 1) if trails else _decode_value(text, at)[1])
        if text.startswith("]", at):
            return at + 1
        at = _skip_comma(text, at)
        index += 1


def _skip_comma(text: str, at: int) -> int:
    if not text.startswith(",", at):
        raise ValueError("nothing divides two members")
    return _skip_space(text, at + 1)


def _skip_space(text: str, at: int) -> int:
    if text[at : at + 1] > " ":
        return at
    space = _SPACE.match(text, at)
    assert space is not None, "no space is space too"
    return space.end()


def _scan_yaml(text: str, trails: Sequence[_Trail]) -> None:
    from interlock.define.source.yaml_form import read_yaml_tokens  # noqa: PLC0415 — JSON files do not pay for YAML

    tokens = read_yaml_tokens(text)
    for token in tokens:
        _scan_yaml_value(token, tokens, trails, 0)


def _scan_yaml_value(token: _Token, tokens: Iterator[_Token], trails: Sequence[_Trail], depth: int) -> None:
    """Go through the value that a token begins; the tokens of what stands inside it are taken."""
    if token[0] == "scalar":
        return
    if not trails:
        _skip_container(tokens)
        return
    inside = _Container(trails, depth)
    if token[0] == "mapping":
        for key in _iter_until_end(tokens):
            if key[0] != "scalar":
                _skip_container(tokens)
            found = inside.enter(key[1], key[2]) if key[0] == "scalar" else ()
            _scan_yaml_value(next(tokens), tokens, found, depth + 1)
    else:
        for index, item in enumerate(_iter_until_end(tokens)):
            _scan_yaml_value(item, tokens, inside.enter(index, item[2]), depth + 1)


def _iter_until_end(tokens: Iterator[_Token]) -> Iterator[_Token]:
    """Yield each token that follows until a container ends; who takes one takes what stands inside it."""
    for token in tokens:
        if token[0] == "end":
            return
        yield token


def _skip_container(tokens: Iterator[_Token]) -> None:
    """Take the tokens up to the end of the container that was just opened."""
    opened = 1
    for kind, _, _ in tokens:
        opened += (kind != "scalar") - 2 * (kind == "end")
        if not opened:
            return


def _to_position(text: str, at: int) -> Position:
    return Position(line=text.count("\n", 0, at) + 1, column=at - text.rfind("\n", 0, at))
