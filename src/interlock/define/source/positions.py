"""Finds the line and column of a document path in a workflow file, for editors."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from typing import TypeAlias

from interlock.define.source.text_form import FORMAT_BYTES_MAX, TextFormat
from interlock.kernel.budgets.workflow import (
    DOCUMENT_DEPTH_MAX,
    PATH_CHARS_MATCHED_MAX,
)
from interlock.kernel.frozen import frozen, mutable

_PART_END = re.compile(r"[.\[]|$")
_INDEX = re.compile(r"\[(0|[1-9][0-9]{0,8})\]")
_SPACE = re.compile(r"[ \t\n\r]*")
_decode_value = json.JSONDecoder().raw_decode

_Token: TypeAlias = tuple[str, str, int]


@frozen
class Position:
    """A place in a text. Line and column are counted from 1; columns count characters."""

    line: int
    column: int


def find_positions(data: bytes, text_format: TextFormat, paths: Iterable[str]) -> dict[str, Position]:
    """Return the position of each document path, such as `steps[3].title`. Empty if the file cannot be parsed.

    The position of a member is that of its key; the position of an item is that of its value. A path that does not
    exist gets the position of the nearest container that exists. Of a duplicate key, the second one is returned.
    """
    if len(data) > FORMAT_BYTES_MAX[text_format]:
        return {}
    targets = [_Target(path=path) for path in dict.fromkeys(paths)]
    try:
        text = data.decode("utf-8-sig")
        if text_format == "json":
            _scan_json(text, _build_trails(targets))
        else:
            _scan_yaml(text, _build_trails(targets))
    except (ValueError, RecursionError):
        # If a text is not JSON or YAML, its diagnostic already has a line.
        return {}
    return {one.path: _to_position(text, one.at) for one in targets}


@mutable
class _Target:
    """A path with its best position so far. At first that is the start of the document."""

    path: str
    at: int = 0
    rank: tuple[int, int] = field(default=(-PATH_CHARS_MATCHED_MAX - 2, 0))

    def offer(self, at: int, left: str, depth: int) -> None:
        """Accept a position that is better than the current one, or as good and later in the text.

        Better: less of the path is left; or equally much is left, and the position is less deep.
        """
        rank = (-len(left), -depth)
        if rank >= self.rank:
            self.at, self.rank = at, rank


_Trail: TypeAlias = tuple[_Target, str]
"""A path and the rest of it inside a container: `.title` or `[3].title`."""


def _build_trails(targets: Iterable[_Target]) -> list[_Trail]:
    trails: list[_Trail] = []
    for one in targets:
        path = one.path[:PATH_CHARS_MATCHED_MAX]
        trails.extend((one, left) for left in (f".{path}", path if path.startswith("[") else "") if path and left)
    return trails


class _Container:
    """The paths to find inside one container, by the key or index that they begin with.

    A key may contain dots and brackets, so a path can be split into keys in several ways. All are tried.
    """

    def __init__(self, trails: Sequence[_Trail], depth: int) -> None:
        self._depth = depth
        self._by_part: dict[str | int, list[_Trail]] = {}
        self._entered: set[str | int] = set()
        for one, left in trails:
            for part, rest in _iter_splits(left):
                self._by_part.setdefault(part, []).append((one, rest))

    def enter(self, part: str | int, at: int) -> Sequence[_Trail]:
        """Record the position of a member or item, and return the paths to find inside it."""
        trails = self._by_part.get(part, ())
        if trails:
            for one, left in trails:
                one.offer(at, left, self._depth)
            # A key is entered at most twice: the second is the duplicate to report, more would only cost time.
            if part in self._entered:
                del self._by_part[part]
            self._entered.add(part)
        return trails


def _iter_splits(left: str) -> Iterator[tuple[str | int, str]]:
    """Yield every way to split off the first part of a path."""
    index = _INDEX.match(left)
    if index:
        yield int(index[1]), left[index.end() :]
    if left.startswith("."):
        for end in _PART_END.finditer(left, 1):
            yield left[1 : end.start()], left[end.start() :]


def _scan_json(text: str, trails: Sequence[_Trail]) -> None:
    end = _scan_json_value(text, _skip_space(text, 0), trails, 0)
    if _skip_space(text, end) != len(text):
        raise ValueError("text after the value")


def _scan_json_value(text: str, at: int, trails: Sequence[_Trail], depth: int) -> int:
    """Scan the value at a position and return where it ends. A value without any path to find is decoded at once."""
    if trails and depth < DOCUMENT_DEPTH_MAX:
        if text.startswith("{", at):
            return _scan_json_object(text, at, _Container(trails, depth), depth)
        if text.startswith("[", at):
            return _scan_json_array(text, at, _Container(trails, depth), depth)
    return _decode_value(text, at)[1]


def _scan_json_object(text: str, at: int, container: _Container, depth: int) -> int:
    at = _skip_space(text, at + 1)
    if text.startswith("}", at):
        return at + 1
    while True:
        key, colon = _decode_value(text, at)
        colon = _skip_space(text, colon)
        if not isinstance(key, str) or not text.startswith(":", colon):
            raise ValueError("a member without a key")
        trails = container.enter(key, at)
        at = _skip_space(text, _scan_json_value(text, _skip_space(text, colon + 1), trails, depth + 1))
        if text.startswith("}", at):
            return at + 1
        at = _skip_comma(text, at)


def _scan_json_array(text: str, at: int, container: _Container, depth: int) -> int:
    at = _skip_space(text, at + 1)
    if text.startswith("]", at):
        return at + 1
    index = 0
    while True:
        trails = container.enter(index, at)
        at = _skip_space(text, _scan_json_value(text, at, trails, depth + 1) if trails else _decode_value(text, at)[1])
        if text.startswith("]", at):
            return at + 1
        at = _skip_comma(text, at)
        index += 1


def _skip_comma(text: str, at: int) -> int:
    if not text.startswith(",", at):
        raise ValueError("no comma between two members")
    return _skip_space(text, at + 1)


def _skip_space(text: str, at: int) -> int:
    if text[at : at + 1] > " ":
        return at
    space = _SPACE.match(text, at)
    assert space is not None, "the pattern also matches no space"
    return space.end()


def _scan_yaml(text: str, trails: Sequence[_Trail]) -> None:
    from interlock.define.source.yaml_form import read_yaml_tokens  # noqa: PLC0415 — JSON files do not pay for YAML

    tokens = read_yaml_tokens(text)
    for token in tokens:
        _scan_yaml_value(token, tokens, trails, 0)


def _scan_yaml_value(token: _Token, tokens: Iterator[_Token], trails: Sequence[_Trail], depth: int) -> None:
    """Scan the value that a token begins, and consume the tokens inside it."""
    if token[0] == "scalar":
        return
    if not trails:
        _skip_container(tokens)
        return
    container = _Container(trails, depth)
    if token[0] == "mapping":
        for key in _iter_until_end(tokens):
            if key[0] != "scalar":
                _skip_container(tokens)
            found = container.enter(key[1], key[2]) if key[0] == "scalar" else ()
            _scan_yaml_value(next(tokens), tokens, found, depth + 1)
    else:
        for index, item in enumerate(_iter_until_end(tokens)):
            _scan_yaml_value(item, tokens, container.enter(index, item[2]), depth + 1)


def _iter_until_end(tokens: Iterator[_Token]) -> Iterator[_Token]:
    """Yield the tokens of a container's members until it ends. The caller consumes the tokens inside each member."""
    for token in tokens:
        if token[0] == "end":
            return
        yield token


def _skip_container(tokens: Iterator[_Token]) -> None:
    """Consume the tokens up to the end of the container that was just opened."""
    opened = 1
    for kind, _, _ in tokens:
        opened += (kind != "scalar") - 2 * (kind == "end")
        if not opened:
            return


def _to_position(text: str, at: int) -> Position:
    return Position(line=text.count("\n", 0, at) + 1, column=at - text.rfind("\n", 0, at))
