"""The blanks of a call that an answer shows: what only the caller can supply, and where it belongs (ANS-22).

An outline is the call's arguments with a `Blank` at each open place. `separate` splits it into arguments that hold no
sample text and the list of blanks with their paths, so nothing that is shown can be sent back as if it were a value.
"""

import copy
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeAlias, Union, cast

from interlock.kernel.canonical import Json, JsonScalar
from interlock.kernel.frozen import frozen


@frozen
class Blank:
    """A value that the caller must supply: the choices if they are closed, its shape if it is no text.

    `what` says what to write, unless the path says it: a small model copies whatever text stands in a value's place.
    """

    what: str | None = None
    choices: tuple[Json, ...] = ()
    shape: str | None = None


def choice_text(choice: Json) -> str:
    """Return a choice as texts show it: a text as it is, any other value as JSON."""
    return choice if isinstance(choice, str) else json.dumps(choice, ensure_ascii=False)


Outline: TypeAlias = Union[Blank, JsonScalar, "Mapping[str, Outline]", "Sequence[Outline]"]
"""A JSON value with blanks."""


@frozen
class Fill:
    """A blank with its path in the arguments, such as `output.artifacts[0].verdict`."""

    path: str
    blank: Blank


def separate(outline: Mapping[str, Outline]) -> tuple[dict[str, Json], tuple[Fill, ...]]:
    """Split an outline into the fixed arguments and the blanks, in their order.

    An object or list that holds only blanks is left out of the arguments. So is an item of a list that has a blank of
    its own: its fixed values are listed with their one choice, because a caller that finds half an item sends it as
    it is.
    """
    fills: list[Fill] = []
    fixed = {name: kept for name, value in outline.items() if (kept := _separate(value, name, fills)) is not _OPEN}
    return fixed, tuple(fills)  # pyright: ignore[reportReturnType] — what is not a blank is JSON


def fill_in(
    arguments: Mapping[str, Json], fill: Iterable[Mapping[str, Json]], supply: Callable[[Mapping[str, Json]], Json]
) -> dict[str, Json]:
    """Return a call's arguments with a value at the path of each of its blanks, as a caller fills them in.

    Args:
        arguments: The fixed arguments.
        fill: The blanks as answers carry them: `{path, what?, choices?, shape?}`.
        supply: Returns the value of a blank with more than one choice, or with none.
    """
    filled = copy.deepcopy(dict(arguments))
    for one in fill:
        names = _names_in(str(one["path"]))
        holder: Any = filled
        for name, inner in pairwise(names):
            empty: Json = [] if isinstance(inner, int) else {}
            if isinstance(name, int):
                holder += [empty] * (name == len(holder))
                holder = holder[name]
            else:
                holder = holder.setdefault(name, empty)
        choices = cast("Sequence[Json]", one.get("choices") or ())
        value = choices[0] if len(choices) == 1 else supply(one)
        if isinstance(holder, list):
            cast("list[Json]", holder).append(value)
        else:
            holder[names[-1]] = value
    return filled


def _names_in(path: str) -> list[int | str]:
    """Return the names and positions of a path."""
    found = re.finditer(r'\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]|[^.\[\]]+', path)
    return [int(one[1]) if one[1] else json.loads(one[2]) if one[2] else one[0] for one in found]


def _member_path(path: str, name: str) -> str:
    """Return the path of a member. A name that could be read as a path is quoted in brackets."""
    return f"{path}[{json.dumps(name, ensure_ascii=False)}]" if re.search(r'[.\[\]"]', name) else f"{path}.{name}"


_OPEN = object()
"""Takes the place of a part that holds only blanks."""


def _has_blank(value: Outline) -> bool:
    """Say whether a blank is in an outline."""
    if isinstance(value, Mapping):
        return any(map(_has_blank, value.values()))
    if isinstance(value, Sequence) and not isinstance(value, str):
        return any(map(_has_blank, value))
    return isinstance(value, Blank)


def _separate(value: Outline, path: str, fills: list[Fill], *, is_item: bool = False) -> object:
    """Add the blanks of a value to `fills`; return what is fixed of it, or `_OPEN` if that is nothing."""
    if isinstance(value, Blank):
        fills.append(Fill(path=path, blank=value))
        return _OPEN
    if isinstance(value, Mapping):
        is_blank_item = is_item and any(map(_has_blank, value.values()))
        kept: dict[str, object] = {}
        for key, member in value.items():
            if is_blank_item and not _has_blank(member):
                member = Blank(choices=(cast("Json", member),))  # noqa: PLW2901 — listed instead of kept
            fixed = _separate(member, _member_path(path, key), fills)
            if fixed is not _OPEN:
                kept[key] = fixed
        return kept if kept or not value else _OPEN
    if isinstance(value, Sequence) and not isinstance(value, str):
        items = [_separate(item, f"{path}[{at}]", fills, is_item=True) for at, item in enumerate(value)]
        count = max((at for at, item in enumerate(items, 1) if item is not _OPEN), default=0)
        # An open item before a fixed one keeps its place.
        return (
            [dict[str, object]() if item is _OPEN else item for item in items[:count]] if count or not items else _OPEN
        )
    return value
