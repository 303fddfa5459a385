"""The channel `command`: an argv without a shell, the message as JSON on its stdin (WORLD-6)."""

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Mapping

from interlock.channels.channel import ChannelConfig, Message, Result
from interlock.channels.reply import parse_reply
from interlock.kernel.budgets import CHANNEL_NOTE_BYTES_MAX, CHANNEL_REPLY_BYTES_MAX
from interlock.kernel.descent import DESCENDANT
from interlock.kernel.text import one_line

_KEPT_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT")
_running: dict[int, "subprocess.Popen[bytes]"] = {}
_mutex = threading.Lock()


def child_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a child process: small, and marked as one of Interlock's."""
    return {name: environment[name] for name in _KEPT_VARIABLES if name in environment} | {DESCENDANT: "1"}


def end_children() -> None:
    """End every command that still runs, with its whole process group. Called when the server ends."""
    with _mutex:
        for process in _running.values():
            _kill(process)


class CommandChannel:
    """Runs the configured command once for each message."""

    def __init__(self, config: ChannelConfig) -> None:
        self._config = config

    def deliver(self, message: Message) -> Result:
        """See `Channel`. Exit code 0: delivered; another: refused, with the last line of stderr."""
        environment = child_environment(os.environ) | {"INTERLOCK_INTENT": message.intent_id}
        try:
            process = subprocess.Popen(  # noqa: S603 — the argv is the user's own configuration; there is no shell
                self._config.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            return Result(outcome="failed", note=f"{self._config.command[0]}: {error.strerror}")
        with _mutex:
            _running[process.pid] = process
        try:
            return self._wait(process, message.body)
        finally:
            with _mutex:
                _running.pop(process.pid, None)

    def _wait(self, process: "subprocess.Popen[bytes]", message: bytes) -> Result:
        try:
            out, err = process.communicate(message, timeout=self._config.timeout_s)
        except subprocess.TimeoutExpired:
            _kill(process)
            process.communicate()
            return Result(outcome="unknown", note=f"The command did not end within {self._config.timeout_s} s.")
        if process.returncode == 0:
            return Result(outcome="delivered", reply=parse_reply(out[:CHANNEL_REPLY_BYTES_MAX]))
        if process.returncode < 0:
            return Result(outcome="unknown", note=f"The command was ended by signal {-process.returncode}.")
        lines = err[-CHANNEL_REPLY_BYTES_MAX:].decode("utf-8", "replace").strip().splitlines()
        last = f": {one_line(lines[-1], CHANNEL_NOTE_BYTES_MAX)}" if lines else ""
        return Result(outcome="refused", note=f"The command ended with {process.returncode}{last}")


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """End a process and all that it started; it began a process group of its own."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
