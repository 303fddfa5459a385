"""Agents as scripts: a generator that yields calls and is sent their answers, so that any client can play it."""

from collections.abc import Awaitable, Callable, Generator, Mapping
from typing import Any, TypeAlias

from interlock.testing.harness import Called

Call: TypeAlias = Callable[[str, Mapping[str, object]], Called]
AsyncCall: TypeAlias = Callable[[str, Mapping[str, object]], Awaitable[Called]]
Script: TypeAlias = Generator[tuple[str, dict[str, Any]], Called, None]


def play(script: Script, call: Call) -> None:
    """Make each call of a script, until it ends."""
    try:
        tool, arguments = next(script)
        while True:
            tool, arguments = script.send(call(tool, arguments))
    except StopIteration:
        return


async def play_async(script: Script, call: AsyncCall) -> None:
    """Make each call of a script through a client that is awaited, until it ends."""
    try:
        tool, arguments = next(script)
        while True:
            answer = await call(tool, arguments)
            tool, arguments = script.send(answer)
    except StopIteration:
        return
