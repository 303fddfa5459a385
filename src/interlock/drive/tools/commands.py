"""Runs a command in the workspace, below the user's sandbox if the profile states one."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from typing import cast

import anyio
from anyio.abc import ByteReceiveStream, Process

from interlock.drive.faults import Fault, TurnError
from interlock.drive.tools.tool import Invoke, ToolContext
from interlock.kernel.budgets.drive import TOOL_OUTPUT_CHARS_MAX
from interlock.kernel.canonical import Json
from interlock.kernel.descent import DESCENDANT

_PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "USER")


def in_sandbox(sandbox: Sequence[str]) -> Invoke:
    """Return the tool `run_command` with an argv that precedes each command."""

    async def invoke(arguments: Mapping[str, Json], context: ToolContext) -> object:
        return await _run([*sandbox, *_argv(arguments)], context)

    return invoke


async def run_command(arguments: Mapping[str, Json], context: ToolContext) -> object:
    """Run a command, and return its exit code and the end of its output. A cancelled call ends its processes.

    Raises:
        TurnError: It cannot be started.
    """
    return await _run(_argv(arguments), context)


def _argv(arguments: Mapping[str, Json]) -> list[str]:
    return [str(one) for one in cast("list[Json]", arguments.get("argv", []))]


async def _run(argv: list[str], context: ToolContext) -> object:
    environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ} | {DESCENDANT: "1"}
    if context.trace is not None:
        environment["TRACEPARENT"] = context.trace
    try:
        process = await anyio.open_process(
            argv,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            cwd=context.workspace.root,
            env=environment,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise TurnError(Fault(code="TOOL_ERROR", message=f"The command cannot be started: {error}.")) from error
    assert process.stdout is not None, "as opened"
    try:
        output = await _last_output(process.stdout)
        exit_code = await process.wait()
    finally:
        _end_group(process)
        with anyio.CancelScope(shield=True):
            await process.aclose()
    return {"exitCode": exit_code, "output": output.decode("utf-8", "replace")}


async def _last_output(stream: ByteReceiveStream) -> bytes:
    """Read all output and keep its end, which holds the result of most commands."""
    kept = b""
    async for chunk in stream:
        kept = (kept + chunk)[-TOOL_OUTPUT_CHARS_MAX:]
    return kept


def _end_group(process: Process) -> None:
    """End what the command started and left running."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return
