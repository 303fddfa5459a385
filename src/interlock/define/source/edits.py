"""Turns the correction of a diagnostic into an edit of the text, for a page that applies it (CON-13)."""

import json
import re
from collections.abc import Iterable

from interlock.define.diagnostics import Diagnostic, Replacement
from interlock.define.source.positions import Position, find_positions
from interlock.define.source.text_form import TextFormat
from interlock.kernel.frozen import frozen

_AFTER_KEY = re.compile(r"[ \t]*:[ \t]+")
_AFTER_NAME = re.compile(r"\s*:\s*")
_COMMA_AFTER = re.compile(r"\s*,\s*")
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")
_PLAIN = re.compile(r"[A-Za-z][\w.-]*")
"""A word that YAML and people read alike without quotes."""
_ENDS_JSON = re.compile(r"\s*[,}\]]")
_ENDS_KEY = re.compile(r"[ \t]*:(\s|$)")
_ENDS_PLAIN = re.compile(r"[ \t]*($|\n|#)")
_OWN_LINE = re.compile(
    r"""
    (?P<key>[A-Za-z][\w.-]*):
    (?: [ \t]+ (?: "[^"\\\n]*" | '[^'\n]*' | \[[^]\n]*\] | \{[^}\n]*\} | [^"'\[{\s][^\n]* ) )?
    [ \t]* (?:\#[^\n]*)? (?:\n|$)
    """,
    re.VERBOSE,
)
"""The first line of a member in YAML, of which a quoted text or a list in brackets ends on the line."""
_ANCHOR = re.compile(r"\s[&*][A-Za-z]")
_DERIVED_FROM = {"id": "title", "title": "id", "name": "id"}
"""A member that is missing, and the one beside it that its value is derived from. All else is the author's choice."""
_WORDS = re.compile(r"[a-z0-9]+")
_decode_value = json.JSONDecoder().raw_decode


@frozen
class TextEdit:
    """Characters of a text, from `start` up to `end`, and what to write instead."""

    start: int
    end: int
    write: str


def text_edits(text: str, text_format: TextFormat, diagnostics: Iterable[Diagnostic]) -> list[TextEdit | None]:
    """Return the edit of each diagnostic; None if it has no correction, or its place in the text is not certain.

    Text that is not exactly what the diagnostic found is never replaced: a fold, an anchor or an escape of YAML is
    left to its author.
    """
    listed = list(diagnostics)
    siblings = {one.path: sibling for one in listed if (sibling := _sibling_of(one, listed)) is not None}
    places = [*(one.path for one in listed), *siblings.values()]
    at = find_positions(text.encode("utf-8", "surrogatepass"), text_format, places)
    begins = _line_begins(text)
    edits: list[TextEdit | None] = []
    for one in listed:
        if one.replacement is not None and one.path in at:
            edits.append(_edit_at(text, text_format, _offset(begins, at[one.path]), one.replacement))
        elif one.path in siblings and siblings[one.path] in at:
            place = _offset(begins, at[siblings[one.path]])
            edits.append(_added(text, text_format, place, (_key_of(one.path), _key_of(siblings[one.path]))))
        else:
            edits.append(None)
    return edits


def _key_of(path: str) -> str:
    return path.rpartition(".")[2]


def _sibling_of(one: Diagnostic, listed: Iterable[Diagnostic]) -> str | None:
    """Return the path of the member that a missing one can be derived from; None if there is none.

    A key that is there with another spelling is renamed instead.
    """
    parent, dot, key = one.path.rpartition(".")
    if one.code != "missing_key" or key not in _DERIVED_FROM:
        return None
    renamed = (other.replacement.write for other in listed if other.replacement and other.replacement.is_key)
    return None if key in renamed else f"{parent}{dot}{_DERIVED_FROM[key]}"


def _added(text: str, text_format: TextFormat, at: int, keys: tuple[str, str]) -> TextEdit | None:
    """Return the edit that adds a member before the one from which its value is derived; a name is made of an id."""
    key, sibling = keys
    named = re.compile(rf"""["']?{sibling}["']?\s*:\s*(?P<value>"[^"\\\n]*"|[\w .-]+)""").match(text, at)
    if named is None or (text_format == "json" and not named["value"].startswith('"')):
        return None
    value = _derived(key, named["value"].strip('" '))
    if value is None:
        return None
    before = text[text.rfind("\n", 0, at) + 1 : at]
    is_block = text_format == "yaml" and not before.strip(" -")
    if is_block:
        return TextEdit(start=at, end=at, write=f"{key}: {json.dumps(value, ensure_ascii=False)}\n{' ' * len(before)}")
    name = json.dumps(key) if text_format == "json" else key
    return TextEdit(start=at, end=at, write=f"{name}: {json.dumps(value, ensure_ascii=False)}, ")


def _derived(key: str, value: str) -> str | None:
    if key == "id":
        return "-".join(_WORDS.findall(value.lower())) or None
    words = " ".join(re.findall(r"\w+", value.rpartition(".")[2].replace("_", " ")))
    return words[:1].upper() + words[1:] or None


def _line_begins(text: str) -> list[int]:
    return [0, *(one.end() for one in re.finditer("\n", text))]


def _offset(begins: list[int], position: Position) -> int:
    return begins[position.line - 1] + position.column - 1


def _edit_at(text: str, text_format: TextFormat, at: int, wanted: Replacement) -> TextEdit | None:
    if wanted.write is None:
        return _removed(text, text_format, at, wanted.found)
    # The position of a member is that of its key, and that of an item is its value.
    begin = at if wanted.is_key else _value_at(text, text_format, at)
    return _replaced(text, text_format, begin, wanted)


def _value_at(text: str, text_format: TextFormat, at: int) -> int:
    """Return where the value begins of a member whose key is at a position; the position itself of an item."""
    end = _string_end(text, at)
    if end is None and text_format == "yaml":
        plain = re.compile(r"[^\s:#'\"\[\]{},&*!|>%@`-][^\n:#]*?(?=[ \t]*:)").match(text, at)
        end = plain.end() if plain is not None else None
    if end is None:
        return at
    after = (_AFTER_KEY if text_format == "yaml" else _AFTER_NAME).match(text, end)
    return after.end() if after is not None else at


def _replaced(text: str, text_format: TextFormat, at: int, wanted: Replacement) -> TextEdit | None:
    found, write, end = wanted.found, wanted.write, _string_end(text, at)
    assert write is not None, "what is removed is not replaced"
    if end is not None and json.loads(text[at:end]) == found:
        return TextEdit(start=at, end=end, write=json.dumps(write, ensure_ascii=False))
    if not text.startswith(found, at):
        return None
    end = at + len(found)
    is_number = _NUMBER.fullmatch(found) and _NUMBER.fullmatch(write) and not wanted.is_key
    if text_format == "json":
        is_exact = is_number and _ENDS_JSON.match(text, end)
    else:
        is_plain = is_number or (_PLAIN.fullmatch(found) and _PLAIN.fullmatch(write))
        is_exact = is_plain and (_ENDS_KEY if wanted.is_key else _ENDS_PLAIN).match(text, end)
    return TextEdit(start=at, end=end, write=write) if is_exact else None


def _removed(text: str, text_format: TextFormat, at: int, key: str) -> TextEdit | None:
    """Return the edit that removes a member, whose key is at a position, with its value and one comma or its lines."""
    return (_removed_json if text_format == "json" else _removed_yaml)(text, at, key)


def _removed_json(text: str, at: int, key: str) -> TextEdit | None:
    end = _string_end(text, at)
    if end is None or json.loads(text[at:end]) != key or (after := _AFTER_NAME.match(text, end)) is None:
        return None
    _, end = _decode_value(text, after.end())
    if (comma := _COMMA_AFTER.match(text, end)) is not None:
        # The next member takes its place.
        return TextEdit(start=at, end=comma.end(), write="")
    begin = len(text[:at].rstrip())
    if text[begin - 1] == ",":
        return TextEdit(start=begin - 1, end=end, write="")
    return TextEdit(start=begin, end=end, write="")


def _removed_yaml(text: str, at: int, key: str) -> TextEdit | None:
    """See `_removed`. Only a member on lines of its own is removed: the first of a list item shares its line."""
    begin = text.rfind("\n", 0, at) + 1
    indent = text[begin:at]
    first = _OWN_LINE.match(text, at)
    if indent.strip(" ") or first is None or first["key"] != key:
        return None
    end = here = first.end()
    for line in text[here:].splitlines(keepends=True):
        here += len(line)
        if line.strip():
            if not line.startswith((f"{indent} ", f"{indent}- ")):
                break
            end = here
    return None if _ANCHOR.search(text, at, end) else TextEdit(start=begin, end=end, write="")


def _string_end(text: str, at: int) -> int | None:
    """Return where a string in double quotes ends that begins at a position; None if none does."""
    if not text.startswith('"', at):
        return None
    try:
        return _decode_value(text, at)[1]
    except ValueError:
        return None
