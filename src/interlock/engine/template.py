"""`{{key.path}}` in authored text: rendered with the node's context when an agent receives the step (PLAN-6).

Callers set the values. None of them can pass for the author's or Interlock's words by its lines, or hide in them.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import cast

from interlock.kernel.budgets import HEADER_TITLE_BYTES_MAX, TITLES_KEPT_MAX
from interlock.kernel.budgets.workflow import INSERTED_BYTES_MAX, TITLE_VALUES_BYTES_MAX
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import mutable
from interlock.kernel.text import (
    TRUNCATION_MARKER,
    flat,
    in_code,
    one_line,
    printable,
    quoted,
    truncated,
    utf8_bytes,
)
from interlock.plan.graph import Graphs
from interlock.record.context import Context
from interlock.record.snapshot import ListFrame, LoopFrame

_HOLE = re.compile(r"\{\{\s*([A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*)\s*\}\}")
_LIKE_OURS = re.compile(r"\n|\*\*.+\*\*|^ {0,3}(?:#|```|~~~|---)")
"""A value that could pass for the structure of an answer: several lines, bold text, a heading, a fence, a rule."""


@mutable
class ValueRoom:
    """The bytes of values that texts which are shown together may still insert, before the values are quoted."""

    left: int = INSERTED_BYTES_MAX

    def take(self, value: object) -> str:
        """Return a value as text, cut with the marker to what is left. Without room, it is not rendered."""
        if self.left <= 0:
            return TRUNCATION_MARKER
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        taken = truncated(text, max(self.left, len(TRUNCATION_MARKER)))
        self.left -= utf8_bytes(taken)
        return taken


def has_placeholders(template: str) -> bool:
    """Say whether a text may contain placeholders: if not, it is the same with every context."""
    return "{{" in template


def rendered(template: str, context: Mapping[str, Json], room: ValueRoom | None = None) -> str:
    """Return the text with each placeholder replaced by its value; an object as compact JSON, an unset key as a mark.

    A value of several lines, or with bold text or a heading in it as answers have them, becomes a quote on lines of its
    own. Values beyond `room` are cut (PLAN-24).
    """
    return _rendered(template, context, room or ValueRoom(), _inserted)


def rendered_line(template: str, context: Mapping[str, Json], room: ValueRoom | None = None) -> str:
    """Return a title or a question as `rendered` does, with each value on one line; without `room`, that of a title."""
    return _rendered(template, context, room or ValueRoom(TITLE_VALUES_BYTES_MAX), flat)


@lru_cache(maxsize=TITLES_KEPT_MAX)
def title_in_code(title: str) -> str:
    """Return a step's title on one line, in code: it may contain text that an earlier agent put into the context."""
    return in_code(one_line(title, HEADER_TITLE_BYTES_MAX))


def unfilled_line(template: str) -> str:
    """Return a title whose values are not known, with `…` in the place of each."""
    return _HOLE.sub("…", template)


def _rendered(template: str, context: Mapping[str, Json], room: ValueRoom, shown: Callable[[str], str]) -> str:
    if not has_placeholders(template):
        return template
    return _HOLE.sub(lambda hole: _filled(hole.group(1), context, room, shown), template)


def _filled(path: str, context: Mapping[str, Json], room: ValueRoom, shown: Callable[[str], str]) -> str:
    value: object = context
    for part in path.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return f"[context key not set: {path}]"
        value = cast("Mapping[str, object]", value)[part]
    return shown(room.take(value))


def _inserted(value: str) -> str:
    text = printable(value).strip("\n")
    return f"\n\n{quoted(text)}\n\n" if _LIKE_OURS.search(text) else text


def with_loop_variables(graphs: Graphs, context: Context, frames: Iterable[LoopFrame]) -> Context:
    """Return the context with the variables of the loops around a step: passes from 1, indexes from 0, items."""
    seen: dict[str, Json] | None = None
    for frame in frames:
        loop = graphs.loops[frame.loop_id]
        seen = dict(context) if seen is None else seen
        seen[loop.iteration_var] = frame.iteration + 1
        seen[loop.index_var] = frame.iteration
        if loop.item_var is not None and isinstance(frame, ListFrame):
            seen[loop.item_var] = frame.items[frame.iteration]
    return context if seen is None else seen
