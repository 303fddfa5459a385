"""Runs a command in the workspace, below the user's sandbox if the profile states one."""

import os
from collections.abc import Mapping, Sequence
from typing import cast

from interlock.drive import child
from interlock.drive.faults import Fault, ToolAnswerError, TurnError
from interlock.drive.tools.tool import Invoke, ToolContext
from interlock.kernel.budgets.drive import TOOL_OUTPUT_CHARS_MAX
from interlock.kernel.canonical import Json

_OF_COMMAND = (FileNotFoundError, PermissionError, ValueError)
"""How a program that does not exist, is none, or has a name that no program has fails to start."""
_PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "USER")


def in_sandbox(sandbox: Sequence[str]) -> Invoke:
    """Return the tool `run_command` with an argv that precedes each command."""

    async def invoke(arguments: Mapping[str, Json], context: ToolContext) -> object:
        return await _run([*sandbox, *_argv(arguments)], context, is_own=False)

    return invoke


async def run_command(arguments: Mapping[str, Json], context: ToolContext) -> object:
    """Run a command, and return its exit code and the end of its output. A cancelled call ends its processes.

    Raises:
        TurnError: It cannot be started.
    """
    return await _run(_argv(arguments), context, is_own=True)


def _argv(arguments: Mapping[str, Json]) -> list[str]:
    return [str(one) for one in cast("list[Json]", arguments.get("argv", []))]


async def _run(argv: list[str], context: ToolContext, *, is_own: bool) -> object:
    """Run a command. `is_own` says that the model named the program to start, not the profile."""
    environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    if context.trace is not None:
        environment["TRACEPARENT"] = context.trace
    output = b""

    def keep_end(chunk: bytes) -> None:
        """Keep the end of the output, which holds the result of most commands."""
        nonlocal output
        output = (output + chunk)[-TOOL_OUTPUT_CHARS_MAX:]

    command = child.Command(argv=argv, environment=environment, directory=context.workspace.root)
    try:
        exit_code = await child.run_command(command, keep_end)
    except (OSError, ValueError) as error:
        message = f"The command cannot be started: {error}."
        if is_own and context.workspace.root.is_dir() and isinstance(error, _OF_COMMAND):
            raise ToolAnswerError(message) from error
        raise TurnError(Fault(code="TOOL_ERROR", message=message)) from error
    return {"exitCode": exit_code, "output": output.decode("utf-8", "replace")}
