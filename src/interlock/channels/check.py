"""A check: a command of the user that Interlock runs itself, in a process group that it ends (CHECK-1, CHECK-3).

The environment is the same whoever starts it, so the caller's `PATH` and variables decide nothing.
"""

import signal
import time
from pathlib import Path
from typing import Literal

from interlock.channels.check_config import CheckConfig
from interlock.channels.child import ChildStartError, Command, running_child
from interlock.channels.kept_output import KeptOutput
from interlock.kernel.budgets import CHECK_GRACE_S, KIB
from interlock.kernel.canonical import digest_of_bytes
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import Digest
from interlock.record.world import EXIT_UNKNOWN, LOST

Ended = Literal["exit", "signal", "timeout", "changed", "lost"]
"""How a check ended: by itself, by a signal, because it took too long, or while its protected files were changed; or
that the process which ran it ended without a result."""
_NOT_STARTED = 126
"""The exit code of a command whose program exists and does not start."""
SEARCH_PATH = "/usr/local/bin:/opt/homebrew/bin:/usr/bin:/bin:/usr/sbin:/sbin"


@frozen
class PlacedCheck:
    """A check with the directory that it runs in.

    `protected_state` is that of its protected files at a moment of this process (`protected_state`); None before that.
    """

    config: CheckConfig
    directory: Path
    protected_state: Digest | None = None


@frozen
class CheckFault:
    """Why a check does not run, and what to do."""

    why: str
    fix: str


@frozen
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


def lost_result(code: int | None) -> CheckResult:
    """Return the result of a check whose process ended without one, with its exit code if that is known (CHECK-7)."""
    ended = EXIT_UNKNOWN if code is None else code
    return CheckResult(ended=LOST, exit=ended, seconds=0.0, output="", digest=digest_of_bytes(b""))


def check_environment() -> dict[str, str]:
    """Return the environment of a check: always the same, so that who starts it decides nothing. It has no `HOME`."""
    return {"PATH": SEARCH_PATH, "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}


def run_command(placed: PlacedCheck, lock: int) -> CheckResult:
    """Run a check to its end and return the result. A program that does not start gives 126, as in a shell.

    The command inherits the descriptor `lock`: if this process is killed, the lock stays held until the command ends.
    """
    config, began = placed.config, time.monotonic()
    command = Command(
        argv=config.argv,
        environment=check_environment(),
        directory=placed.directory,
        inherits=(lock,),
        has_input=False,
        joins_output=True,
    )
    output = KeptOutput(config.output_kb * KIB)
    try:
        with running_child(command, output.add) as child:
            is_late = not child.follow(began + config.timeout_s)
            if is_late:
                child.send_signal(signal.SIGTERM)
                child.follow(time.monotonic() + CHECK_GRACE_S)
            # Whatever the command has started and left behind ends with it.
            code = child.end()
    except ChildStartError as error:
        # It is there, but the system refuses it: a script without a first line `#!`, or made for another processor.
        output.add(f"{error.program!r} cannot be started: {error.why}\n".encode())
        is_late, code = False, _NOT_STARTED
    ended: Ended = "timeout" if is_late else "signal" if code < 0 else "exit"
    return CheckResult(
        ended=ended, exit=code, seconds=round(time.monotonic() - began, 3), output=output.text(), digest=output.digest()
    )
