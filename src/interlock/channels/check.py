"""A check: a command of the user that Interlock runs itself, in a process group that it ends (CHECK-1, CHECK-3).

The environment is the same whoever starts it, so the caller's `PATH` and variables decide nothing.
"""

import contextlib
import os
import selectors
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from interlock.channels.kept_output import KeptOutput
from interlock.kernel.budgets import CHECK_GRACE_S, CHECK_OUTPUT_KIB, CHECK_READ_BYTES, CHECK_TIMEOUT_S, KIB
from interlock.kernel.descent import DESCENDANT
from interlock.kernel.ids import Digest

Ended = Literal["exit", "signal", "timeout", "changed"]
"""How a check ended: by itself, by a signal, because it took too long, or while its protected files were changed."""
SEARCH_PATH = "/usr/local/bin:/opt/homebrew/bin:/usr/bin:/bin:/usr/sbin:/sbin"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckConfig:
    """A check as the user configured it: an argv without a shell, and the directories that it may run in.

    `sandbox` is an argv before that of the command. `protect` are patterns of files that a run must not change.
    """

    name: str
    command: tuple[str, ...]
    workspaces: tuple[str, ...]
    timeout_s: int = CHECK_TIMEOUT_S
    output_kb: int = CHECK_OUTPUT_KIB
    sandbox: tuple[str, ...] = ()
    protect: tuple[str, ...] = ()

    @property
    def argv(self) -> tuple[str, ...]:
        """The whole command line."""
        return (*self.sandbox, *self.command)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedCheck:
    """A check with the directory that it runs in."""

    config: CheckConfig
    directory: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckFault:
    """Why a check does not run, and what to do."""

    why: str
    fix: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """What became of a check. `exit` is negative after a signal; `digest` is that of the whole output."""

    ended: Ended
    exit: int
    seconds: float
    output: str
    digest: Digest

    @property
    def is_passed(self) -> bool:
        """Whether the command ended by itself with 0."""
        return self.ended == "exit" and self.exit == 0


def check_environment() -> dict[str, str]:
    """Return the environment of a check: always the same, so that who starts it decides nothing. It has no `HOME`."""
    return {
        "PATH": SEARCH_PATH,
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        DESCENDANT: "1",
    }


def run_command(placed: PlacedCheck, lock: int) -> CheckResult | CheckFault:
    """Run a check to its end and return the result; a command that cannot be started gives a fault.

    The command inherits the descriptor `lock`: if this process is killed, the lock stays held until the command ends.
    """
    config, began = placed.config, time.monotonic()
    try:
        process = subprocess.Popen(  # noqa: S603 — the argv is the user's own configuration; there is no shell
            config.argv,
            cwd=placed.directory,
            env=check_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=(lock,),
            start_new_session=True,
        )
    except OSError as error:
        return CheckFault(
            why=f"the command {config.argv[0]!r} cannot be started: {error.strerror}",
            fix="Tell the user: `command` must begin with the path of a program, or with one that all users have.",
        )
    assert process.stdout is not None, "it is a pipe"
    output = KeptOutput(config.output_kb * KIB)
    with process.stdout as stream:
        is_late = not _follow(process, stream.fileno(), output, began + config.timeout_s)
        if is_late:
            _signal(process, signal.SIGTERM)
            _follow(process, stream.fileno(), output, time.monotonic() + CHECK_GRACE_S)
        # Whatever the command has started and left behind ends with it.
        _signal(process, signal.SIGKILL)
        code = process.wait()
        _drain(stream.fileno(), output)
    ended: Ended = "timeout" if is_late else "signal" if code < 0 else "exit"
    return CheckResult(
        ended=ended, exit=code, seconds=round(time.monotonic() - began, 3), output=output.text(), digest=output.digest()
    )


def _follow(process: "subprocess.Popen[bytes]", stream: int, output: KeptOutput, until_s: float) -> bool:
    """Read the output until the command ends; return False if it did not end in time."""
    os.set_blocking(stream, False)
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while process.poll() is None:
            left = until_s - time.monotonic()
            if left <= 0:
                return False
            # A command may close its output, or leave it open in another process: so its end is looked for, too.
            if not selector.select(min(left, 0.05)):
                continue
            if not _read(stream, output):
                time.sleep(min(left, 0.01))
    return True


def _signal(process: "subprocess.Popen[bytes]", number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _read(stream: int, output: KeptOutput) -> bool:
    """Read what is there; return False at the end of the output."""
    data = os.read(stream, CHECK_READ_BYTES)
    output.add(data)
    return bool(data)


def _drain(stream: int, output: KeptOutput) -> None:
    """Read what is left in the pipe, without waiting for more."""
    with contextlib.suppress(BlockingIOError):
        while _read(stream, output):
            pass
