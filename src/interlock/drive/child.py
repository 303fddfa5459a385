"""Commands of a driver: a process group of their own, bounded reading, and their end.

Unlike those of a server, they run in the event loop, so that a cancelled call ends them.
"""

import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

import anyio
from anyio.abc import ByteReceiveStream, Process

from interlock.kernel.budgets.drive import OUTPUT_GRACE_S
from interlock.kernel.descent import DESCENDANT
from interlock.kernel.errors import InterlockError
from interlock.kernel.frozen import frozen

Sink = Callable[[bytes], None]
"""Receives what a command writes, piece by piece, in order. It may raise an `InterlockError` to end the command."""


@frozen
class Command:
    """What to start: an argv, all that it receives of the environment, a file for its stdin, and its directory."""

    argv: Sequence[str]
    environment: Mapping[str, str]
    message: IO[bytes] | None = None
    directory: Path | None = None


async def run_command(command: Command, out: Sink, err: Sink | None = None) -> int:
    """Run a command without a shell and return its exit code. Its whole process group ends with it.

    A process that left the group may keep the output open; what it writes later is not read.

    Without `err`, its stderr goes to `out`.

    Raises:
        OSError, ValueError: It cannot be started.
    """
    process = await anyio.open_process(
        list(command.argv),
        stdin=subprocess.DEVNULL if command.message is None else command.message,
        stderr=subprocess.STDOUT if err is None else subprocess.PIPE,
        cwd=command.directory,
        env={**command.environment, DESCENDANT: "1"},
        start_new_session=True,
    )
    failed: list[InterlockError] = []
    code = 0
    try:
        async with anyio.create_task_group() as tasks:
            for stream, sink in ((process.stdout, out), (process.stderr, err)):
                if stream is not None and sink is not None:
                    tasks.start_soon(_pass_on, stream, sink, failed, tasks.cancel_scope.cancel)
            code = await process.wait()
            # A process that the command left behind would keep its output open.
            _end_group(process)
            tasks.cancel_scope.deadline = anyio.current_time() + OUTPUT_GRACE_S
    finally:
        _end_group(process)
        with anyio.CancelScope(shield=True):
            await process.aclose()
    if failed:
        raise failed[0]
    return code


async def _pass_on(
    stream: ByteReceiveStream, sink: Sink, failed: list[InterlockError], end: Callable[[], None]
) -> None:
    async for chunk in stream:
        try:
            sink(chunk)
        except InterlockError as error:  # raised again outside of the task group, which would wrap it
            failed.append(error)
            end()
            return


def _end_group(process: Process) -> None:
    """End what the command started and left running."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return
