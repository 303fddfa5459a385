"""Parses YAML restricted to what JSON can represent: no aliases, no tags, no duplicate keys, decimal numbers."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple, Protocol, cast

import yaml

from interlock.define.source.unreadable import Culprit, find_false_space, find_merge_marker
from interlock.kernel.budgets import (
    NUMBER_DIGITS_MAX,
)
from interlock.kernel.budgets.workflow import (
    DOCUMENT_DEPTH_MAX,
    DOCUMENT_VALUES_MAX,
    FOUND_CHARS_MAX,
    GUESSED_NAME_CHARS_MAX,
    YAML_DIRECTIVES_MAX,
)
from interlock.kernel.frozen import frozen

_DIRECTIVE = re.compile(r"(?:^|[\r\n\x85\u2028\u2029])%TAG")
_TOO_DEEP = "exceeded maximum nesting depth"
_PLACEHOLDER_FIRST = re.compile(r"(?:^|[:\-\[,])\s*\{\{")
_FIX_QUOTE = "Put a string that begins with `{{` in quotes. Without quotes, `{` begins an object."
_COLON_IN_TEXT = re.compile(r"\s*(?:- +)*([A-Za-z_][\w.-]*): +([^\s\"'|>\[{&*!#][^#]*?:(?: [^#]*?)?)(?:\s+#.*)?")
"""A line with an unquoted text that contains a colon: its key, and the text."""
_NUMBER_START = frozenset("-+.0123456789")
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NAMED_SCALARS: dict[str, bool | None] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
}


class YamlParser(Protocol):
    """Reads a text event by event. PyYAML has one parser in C and one in Python."""

    def get_event(self) -> yaml.Event | None:
        """Return the next event, or None after the last."""
        ...


ParserFactory = Callable[[str], YamlParser]
FASTEST = cast("ParserFactory", getattr(yaml, "CSafeLoader", yaml.SafeLoader))
"""The C parser is ten times faster. If an installation lacks it, the Python parser is used. They differ only in texts
that YAML leaves ambiguous, such as a tab after a colon; our own refusals are the same."""


FaultCode = Literal["not_yaml", "duplicate_key", "too_deep", "too_large"]


@frozen
class YamlFault:
    """Why a text is refused. `reversed_path` is the path of a faulty key, from its last part to its first.

    `line` and `column`, counted from 1, are set if there is no path to the place.
    """

    code: FaultCode
    message: str
    fix: str
    reversed_path: tuple[str | int, ...] = ()
    line: int | None = None
    column: int | None = None


@frozen
class YamlValue:
    """The value of a text."""

    value: object


class YamlToken(NamedTuple):
    """One element of a text's structure. `at` is its offset in characters."""

    kind: Literal["scalar", "mapping", "sequence", "end"]
    text: str
    at: int


class UnreadableYamlError(ValueError):
    """A text is not YAML, or uses something that is refused."""

    def __init__(self, code: FaultCode, message: str, fix: str, mark: yaml.Mark | None = None) -> None:
        super().__init__(message)
        self.code: FaultCode = code
        self.message = message
        self.fix = fix
        self.mark = mark


class _MisplacedKeyError(Exception):
    """A mapping has a duplicate key or a key that is not a string.

    Each container adds its part to the path while the error passes through it. Building a path for every value would be
    slow.
    """

    def __init__(self, code: FaultCode, message: str, fix: str, mark: yaml.Mark | None = None) -> None:
        super().__init__(message)
        self.code: FaultCode = code
        self.message = message
        self.fix = fix
        self.mark = mark
        self.reversed_path: list[str | int] = []


def load_yaml(text: str, make_parser: ParserFactory = FASTEST) -> YamlValue | YamlFault:
    """Parse a text. Aliases are refused, because a short text with aliases can have a huge value."""
    events = _read_events(text, make_parser)
    try:
        try:
            return YamlValue(value=_build_document(events))
        except _MisplacedKeyError as error:
            # Read to the end: a fault that makes the whole text unreadable takes precedence over a fault of one key.
            for _ in events:
                pass
            return _to_fault(error, tuple(error.reversed_path))
    except UnreadableYamlError as error:
        return _to_fault(error)


def _to_fault(
    error: "UnreadableYamlError | _MisplacedKeyError", reversed_path: tuple[str | int, ...] = ()
) -> YamlFault:
    line, column = (error.mark.line + 1, error.mark.column + 1) if error.mark is not None else (None, None)
    return YamlFault(
        code=error.code, message=error.message, fix=error.fix, reversed_path=reversed_path, line=line, column=column
    )


def read_yaml_tokens(text: str, make_parser: ParserFactory = FASTEST) -> Iterator[YamlToken]:
    """Yield the elements of a document's structure in text order.

    Raises:
        UnreadableYamlError: The text cannot be read further. Raised only when reading reaches the fault.
    """
    for event in _read_events(text, make_parser):
        at: int = event.start_mark.index
        if isinstance(event, yaml.ScalarEvent):
            text_of: str = event.value
            yield YamlToken("scalar", text_of, at)
        elif isinstance(event, yaml.MappingStartEvent):
            yield YamlToken("mapping", "", at)
        elif isinstance(event, yaml.SequenceStartEvent):
            yield YamlToken("sequence", "", at)
        elif isinstance(event, yaml.CollectionEndEvent):
            yield YamlToken("end", "", at)


def _read_events(text: str, make_parser: ParserFactory) -> Iterator[yaml.Event]:
    """Yield the parser's events. Refuse a faulty one when it is read, so that the text after it costs no time."""
    if text.count("%TAG") > YAML_DIRECTIVES_MAX and len(_DIRECTIVE.findall(text)) > YAML_DIRECTIVES_MAX:
        raise _not_yaml("The text begins with too many `%TAG` lines.", "Remove them: tags are refused.")
    depth = documents = nodes = 0
    try:
        next_event = make_parser(text).get_event
        while (event := next_event()) is not None:
            if isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            elif isinstance(event, yaml.NodeEvent):
                _refuse_anchors_and_tags(event)
                nodes += 1
                depth += isinstance(event, yaml.CollectionStartEvent)
            elif isinstance(event, yaml.DocumentStartEvent):
                documents += 1
            if depth > DOCUMENT_DEPTH_MAX or documents > 1 or nodes > DOCUMENT_VALUES_MAX:
                raise _report_excess(event, depth)
            yield event
    except yaml.YAMLError as error:
        raise _report_unreadable(text, error) from None


def _report_unreadable(text: str, error: yaml.YAMLError) -> UnreadableYamlError:
    """Return what makes a text unreadable, with its place and the fix."""
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return UnreadableYamlError("not_yaml", "The text is not YAML.", "Correct the YAML.")
    mark, problem = error.problem_mark, str(error.problem)
    if problem == _TOO_DEEP:
        # The scanner reads ahead, and has a limit of its own.
        return _too_deep(mark)
    culprit = find_merge_marker(text) or _find_false_space(text, error, mark)
    if culprit is not None:
        return UnreadableYamlError("not_yaml", culprit.message, culprit.fix, _mark_at(text, culprit.at))
    fix = _FIX_QUOTE if _begins_with_placeholder(text, error) else _choose_fix(text, mark, problem)
    return UnreadableYamlError("not_yaml", f"Line {mark.line + 1}, column {mark.column + 1}: {problem}.", fix, mark)


def _find_false_space(text: str, error: yaml.MarkedYAMLError, mark: yaml.Mark) -> Culprit | None:
    """Return the false space near an unreadable place, from the line before it to the end of its own line."""
    context: int = error.context_mark.index if error.context_mark is not None else mark.index
    before = text.rfind("\n", 0, text.rfind("\n", 0, min(context, mark.index)))
    end = text.find("\n", mark.index)
    return find_false_space(text, before + 1, end if end >= 0 else len(text))


def _begins_with_placeholder(text: str, error: yaml.MarkedYAMLError) -> bool:
    """Return whether an unreadable line has an unquoted string that begins with `{{`."""
    marks = (error.context_mark, error.problem_mark)
    lines = text.splitlines()
    return any(
        _PLACEHOLDER_FIRST.search(lines[mark.line]) for mark in marks if mark is not None and mark.line < len(lines)
    )


def _choose_fix(text: str, mark: yaml.Mark, problem: str) -> str:
    """Return the fix of an unreadable text: of the usual mistakes, exactly what to write instead."""
    lines = text.splitlines()
    if mark.line >= len(lines):
        return "Correct the YAML."
    line = lines[mark.line]
    found = line[mark.column : mark.column + 1]
    if found == "\t":
        return "Indent by spaces: YAML allows no tab here."
    if "mapping values are not allowed" in problem:
        colon = _COLON_IN_TEXT.fullmatch(line) if len(line) <= GUESSED_NAME_CHARS_MAX else None
        if colon is None:
            return "Begin the keys of one object in the same column, or put a text that contains a colon in quotes."
        quoted = json.dumps(colon[2], ensure_ascii=False)
        shown = f": `{colon[1]}: {quoted}`" if len(quoted) <= FOUND_CHARS_MAX else ""
        return f"Put the text in quotes, because it contains a colon{shown}."
    if found and "cannot start any token" in problem:
        return f"Put the text in quotes, because it begins with {found!r}."
    return "Correct the YAML."


def _refuse_anchors_and_tags(event: yaml.NodeEvent) -> None:
    """Refuse anchors, aliases and tags. For the parser, an alias is a node with an anchor and nothing else."""
    if event.anchor:
        raise _not_yaml(f"Line {_line(event)} uses an anchor or alias.", "Write the value out.", event)
    if getattr(event, "tag", None):
        raise _not_yaml(f"Line {_line(event)} uses a tag.", "Remove the tag.", event)


def _report_excess(event: yaml.Event, depth: int) -> UnreadableYamlError:
    if isinstance(event, yaml.DocumentStartEvent):
        return _not_yaml(f"Line {_line(event)} begins another document.", "Keep one document in a file.", event)
    if depth <= DOCUMENT_DEPTH_MAX:
        message = f"The file has more than {DOCUMENT_VALUES_MAX} values, keys included."
        return UnreadableYamlError("too_large", message, "Move some of the steps to another workflow.", _mark(event))
    return _too_deep(_mark(event))


def _too_deep(mark: yaml.Mark) -> UnreadableYamlError:
    message = f"Line {mark.line + 1} nests deeper than {DOCUMENT_DEPTH_MAX} levels."
    return UnreadableYamlError("too_deep", message, "Use fewer objects and lists inside each other.", mark)


def _not_yaml(message: str, fix: str, event: yaml.Event | None = None) -> UnreadableYamlError:
    return UnreadableYamlError("not_yaml", message, fix, _mark(event) if event is not None else None)


def _mark(event: yaml.Event) -> yaml.Mark:
    return cast("yaml.Mark", event.start_mark)


def _mark_at(text: str, at: int) -> yaml.Mark:
    """Return the mark of an offset."""
    line = text.count("\n", 0, at)
    return yaml.Mark("", at, line, at - text.rfind("\n", 0, at) - 1, None, 0)


def _line(event: yaml.Event) -> int:
    return _mark(event).line + 1


def _build_document(events: Iterator[yaml.Event]) -> object:
    value: object = None
    for event in events:
        if isinstance(event, yaml.NodeEvent):
            value = _build_value(event, events)
    return value


def _build_value(event: yaml.Event, events: Iterator[yaml.Event]) -> object:
    """Build the value that an event begins, and consume the events inside it."""
    if isinstance(event, yaml.ScalarEvent):
        text: str = event.value
        is_plain: bool = event.implicit[0]
        try:
            return _parse_plain(text) if is_plain else text
        except ValueError:
            message = f"A number has more than {NUMBER_DIGITS_MAX} digits."
            raise _MisplacedKeyError(
                "not_yaml", message, "Write the number as text, in quotes.", _mark(event)
            ) from None
    if isinstance(event, yaml.MappingStartEvent):
        return _build_mapping(events)
    return _build_sequence(events)


def _build_sequence(events: Iterator[yaml.Event]) -> list[object]:
    items: list[object] = []
    try:
        while not isinstance(event := next(events), yaml.SequenceEndEvent):
            items.append(_build_value(event, events))
    except _MisplacedKeyError as error:
        error.reversed_path.append(len(items))
        raise
    return items


def _build_mapping(events: Iterator[yaml.Event]) -> dict[str, object]:
    members: dict[str, object] = {}
    while not isinstance(event := next(events), yaml.MappingEndEvent):
        key = _read_key(event, members)
        try:
            members[key] = _build_value(next(events), events)
        except _MisplacedKeyError as error:
            error.reversed_path.append(key)
            raise
    return members


def _read_key(event: yaml.Event, members: dict[str, object]) -> str:
    if not isinstance(event, yaml.ScalarEvent):
        is_placeholder = isinstance(event, yaml.MappingStartEvent) and bool(event.flow_style)
        fix = _FIX_QUOTE if is_placeholder else "Use a string as key."
        raise _MisplacedKeyError("not_yaml", "A key is not a string.", fix, _mark(event))
    key: str = event.value
    if key in members:
        error = _MisplacedKeyError("duplicate_key", f"The key {key!r} occurs twice.", "Remove one of the two.")
        error.reversed_path.append(key)
        raise error
    return key


def _parse_plain(text: str) -> object:
    """Return the value of a scalar without quotes. Only the constants of YAML 1.2 and decimal numbers are not text."""
    if text in _NAMED_SCALARS:
        return _NAMED_SCALARS[text]
    if text[0] not in _NUMBER_START:
        return text
    is_whole = _INTEGER.fullmatch(text) is not None
    if not is_whole and _FLOAT.fullmatch(text) is None:
        return text
    if len(text) > NUMBER_DIGITS_MAX:
        raise ValueError
    return int(text) if is_whole else float(text)
