"""A model for the loopback server: it reads only what a driver shows it, and reports each step with good evidence."""

import json
import re
from collections.abc import Mapping
from typing import Any, cast

from interlock.kernel.blanks import fill_in
from interlock.kernel.canonical import Json
from interlock.testing.chat_server import Answer, Body, ChatAnswer
from interlock.testing.harness import good_value

_FIXED = re.compile(r"^fixed: (.*)$", re.MULTILINE)
_BLANK = re.compile(r"^- `([^`]+)`(?: \((.*?)\))?(?:: (.*))?$", re.MULTILINE)
NOTES = (
    "At 14:05 the command `run` failed in 3 of 20 runs on a1b2c3d4e5f6; the first wrong value is set in src/app.py:12. "
    "Observation number {number}: case {number} gave {number} rows, and file{number}.py line {number} holds its cause. "
)


def texts_of(body: Body) -> list[str]:
    """Return the texts of all messages of a request, of either shape."""
    found: list[str] = []
    for message in cast("list[dict[str, Any]]", body["messages"]):
        content: str | list[dict[str, Any]] | None = message.get("content")
        if isinstance(content, str):
            found.append(content)
        for part in content if isinstance(content, list) else []:
            inner: str | list[dict[str, Any]] | None = part.get("text", part.get("content"))
            found += [inner] if isinstance(inner, str) else [one["text"] for one in inner or [] if "text" in one]
    return found


def reporting(context: Mapping[str, Json] | None = None) -> Answer:
    """Return a model that reports each step with what its outline asks for; `context` states values of keys."""
    number = 0

    def answer(body: Body) -> ChatAnswer:
        nonlocal number
        number += 1
        shown = next(text for text in reversed(texts_of(body)) if "report_step" in text)
        return ChatAnswer(calls=[("report_step", _evidence(shown, number, context or {}))], input_tokens=number)

    return answer


def _evidence(shown: str, number: int, context: Mapping[str, Json]) -> dict[str, Any]:
    fixed = _FIXED.search(shown)
    arguments: dict[str, Any] = json.loads(fixed[1]) if fixed is not None else {}
    blanks = [{"path": path, "what": what, **_kind(kind), **_only(what)} for path, kind, what in _BLANK.findall(shown)]

    def supply(blank: Mapping[str, Json]) -> Json:
        path = str(blank["path"])
        if path == "notes":
            return NOTES.format(number=number) * 2
        key = path.removeprefix("context.")
        return context[key] if path.startswith("context.") and key in context else good_value(blank)

    return fill_in(arguments, blanks, supply)


def _only(what: str) -> dict[str, Json]:
    """Return the one choice of a value that must be sent exactly."""
    only = re.fullmatch("exactly `(.*)`", what)
    return {"choices": [json.loads(only[1])]} if only is not None else {}


def _kind(kind: str) -> dict[str, Json]:
    if not kind:
        return {}
    choices = [choice.strip() for choice in kind.split(" | ")]
    is_choice = len(choices) > 1 and not kind.startswith(("list", "{"))
    values: list[Json] = [{"true": True, "false": False}.get(one, one) for one in choices]
    return {"choices": values} if is_choice else {"shape": kind}
