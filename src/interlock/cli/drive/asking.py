"""Asks the person at the terminal: yes or no about a call, and the questions of a step that only a person answers."""

import sys
from collections.abc import Mapping
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

    A field that is required and left out cancels the whole answer: nobody's silence is a yes.
    """
    if not isinstance(params, types.ElicitRequestFormParams):
        return types.ElicitResult(action="cancel")
    sys.stderr.write("\n")
    for line in params.message.splitlines():
        sys.stderr.write(f"{printable_line(line)}\n")
    schema = cast("Mapping[str, Any]", params.requested_schema)
    content: dict[str, str | int | float | bool | list[str] | None] = {}
    for name, field in cast("Mapping[str, Mapping[str, Any]]", schema.get("properties", {})).items():
        answer = (await _read(_prompt(name, field))).strip()
        if answer:
            content[name] = _value(field, answer)
        elif name in schema.get("required", ()):
            return types.ElicitResult(action="cancel")
    return types.ElicitResult(action="accept", content=content)


def _prompt(name: str, field: Mapping[str, Any]) -> str:
    choices = [str(one) for one in field.get("enum", ())]
    choices += [str(one.get("const")) for one in field.get("oneOf", ())]
    kind = "yes | no" if field.get("type") == "boolean" else " | ".join(choices)
    title = printable_line(str(field.get("title") or name))
    return f"{title}{f' ({printable_line(kind)})' if kind else ''}: "


def _value(field: Mapping[str, Any], answer: str) -> str | int | float | bool:
    match field.get("type"):
        case "boolean":
            return answer.casefold() in ("y", "yes", "true")
        case "integer" | "number":
            return float(answer) if "." in answer else int(answer)
        case _:
            return answer


async def _read(prompt: str) -> str:
    """Return the line that is typed, without a thread: one that reads cannot be ended, and would hold up Ctrl-C.

    A terminal is readable as soon as a whole line is there. What is typed may be text of no encoding.
    """
    sys.stderr.write(prompt)
    sys.stderr.flush()
    await anyio.wait_readable(sys.stdin)
    return sys.stdin.buffer.readline().decode(sys.stdin.encoding, "replace")
