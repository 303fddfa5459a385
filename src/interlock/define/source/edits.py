"""Turns the correction of a diagnostic into an edit of the text, for a page that applies it (CON-13)."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

from interlock.define.diagnostics import Diagnostic, Replacement
from interlock.define.source.positions import Position, find_positions
from interlock.define.source.text_form import TextFormat

_AFTER_KEY = re.compile(r"[ \t]*:[ \t]+")
_decode_value = json.JSONDecoder().raw_decode


@dataclass(frozen=True, slots=True, kw_only=True)
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
    at = find_positions(text.encode("utf-8", "surrogatepass"), text_format, [one.path for one in listed])
    begins = _line_begins(text)
    return [
        _edit_at(text, text_format, _offset(begins, at[one.path]), one.replacement)
        if one.replacement is not None and one.path in at
        else None
        for one in listed
    ]


def _line_begins(text: str) -> list[int]:
    return [0, *(one.end() for one in re.finditer("\n", text))]


def _offset(begins: list[int], position: Position) -> int:
    return begins[position.line - 1] + position.column - 1


def _edit_at(text: str, text_format: TextFormat, at: int, wanted: Replacement) -> TextEdit | None:
    if wanted.is_key:
        return _replaced(text, text_format, at, wanted)
    # The position of a member is that of its key, and that of an item is its value.
    return _replaced(text, text_format, _value_at(text, text_format, at), wanted)


def _value_at(text: str, text_format: TextFormat, at: int) -> int:
    """Return where the value begins of a member whose key is at a position; the position itself of an item."""
    end = _string_end(text, at)
    if end is None and text_format == "yaml":
        plain = re.compile(r"[^\s:#'\"\[\]{},&*!|>%@`-][^\n:#]*?(?=[ \t]*:)").match(text, at)
        end = plain.end() if plain is not None else None
    if end is None:
        return at
    after = (_AFTER_KEY if text_format == "yaml" else re.compile(r"\s*:\s*")).match(text, end)
    return after.end() if after is not None else at


def _replaced(text: str, text_format: TextFormat, at: int, wanted: Replacement) -> TextEdit | None:
    end = _string_end(text, at)
    if end is not None and json.loads(text[at:end]) == wanted.found:
        return TextEdit(start=at, end=end, write=json.dumps(wanted.write, ensure_ascii=False))
    end = at + len(wanted.found)
    is_plain = re.fullmatch(r"[A-Za-z][\w.-]*", wanted.found) and re.fullmatch(r"[A-Za-z][\w.-]*", wanted.write)
    ends_here = re.compile(r"[ \t]*:(\s|$)" if wanted.is_key else r"[ \t]*($|\n|#)").match(text, end)
    if text_format == "yaml" and is_plain and text.startswith(wanted.found, at) and ends_here:
        return TextEdit(start=at, end=end, write=wanted.write)
    return None


def _string_end(text: str, at: int) -> int | None:
    """Return where a string in double quotes ends that begins at a position; None if none does."""
    if not text.startswith('"', at):
        return None
    try:
        return _decode_value(text, at)[1]
    except ValueError:
        return None
