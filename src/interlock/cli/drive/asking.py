"""Asks the person at the terminal: yes or no about a call, and the questions of a step that only a person answers."""

import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, cast

import anyio
from mcp import types

from interlock.cli.screen import printable_line


async def ask_in_terminal(question: str) -> bool:
    """Ask a question on stderr and return whether the answer is yes. The end of the input is a no."""
    answer = await _read(f"{printable_line(question)} [y/N] ")
    return answer.strip().casefold() in ("y", "yes")


async def answer_form(context: object, params: types.ElicitRequestParams) -> types.ElicitResult:  # noqa: ARG001 — the SDK names it
    """Show a question of the server field by field, and return the person's answer. An empty answer leaves a field out.

    A field whose answer is none of its choices is asked again. One that is required and left out cancels the whole
    answer: nobody's silence is a yes.
    """
    if not isinstance(params, types.ElicitRequestFormParams):
        return types.ElicitResult(action="cancel")
    sys.stderr.write("\n")
    for line in params.message.splitlines():
        sys.stderr.write(f"{printable_line(line)}\n")
    schema = cast("Mapping[str, Any]", params.requested_schema)
    content: dict[str, str | int | float | bool | list[str] | None] = {}
    for name, field in cast("Mapping[str, Mapping[str, Any]]", schema.get("properties", {})).items():
        value = await _answer_field(name, field)
        if value is not None:
            content[name] = value
        elif name in schema.get("required", ()):
            return types.ElicitResult(action="cancel")
    return types.ElicitResult(action="accept", content=content)


async def _answer_field(name: str, field: Mapping[str, Any]) -> str | float | bool | None:
    """Ask for one field until there is a value of it; None for an empty answer, and at the end of the input."""
    title, kind = printable_line(str(field.get("title") or name)), printable_line(_kind(field))
    while answer := (await _read(f"{title}{f' ({kind})' if kind else ''}: ")).strip():
        value = _value(field, answer)
        if value is not None:
            return value
        sys.stderr.write(
            f"{printable_line(answer)!r} is not an answer here. Type {kind}, or nothing to leave it out.\n"
        )
    return None


def _choices(field: Mapping[str, Any]) -> list[str]:
    return [*map(str, field.get("enum", ())), *(str(one.get("const")) for one in field.get("oneOf", ()))]


def _kind(field: Mapping[str, Any]) -> str:
    match field.get("type"):
        case "boolean":
            return "yes | no"
        case "integer" | "number":
            return "a number"
        case _:
            return " | ".join(_choices(field))


def _value(field: Mapping[str, Any], answer: str) -> str | float | bool | None:
    """Return the value that an answer means; None if it is none of the field's."""
    match field.get("type"):
        case "boolean":
            return {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}.get(
                answer.casefold()
            )
        case "integer" | "number":
            with suppress(ValueError):
                return float(answer) if "." in answer else int(answer)
            return None
        case _:
            choices = _choices(field)
            meant = {one.casefold(): one for one in choices}
            return meant.get(answer.casefold()) if choices else answer


async def _read(prompt: str) -> str:
    """Return the line that is typed, without a thread: one that reads cannot be ended, and would hold up Ctrl-C.

    A terminal is readable as soon as a whole line is there. What is typed may be text of no encoding.
    """
    sys.stderr.write(prompt)
    sys.stderr.flush()
    await anyio.wait_readable(sys.stdin)
    return sys.stdin.buffer.readline().decode(sys.stdin.encoding, "replace")
