"""The channel `command`: an argv without a shell, the message as JSON on its stdin (WORLD-6)."""

import os
from collections.abc import Mapping

from interlock.channels.channel import ChannelConfig, Message, Result
from interlock.channels.child import run_child
from interlock.channels.reply import parse_reply
from interlock.kernel.budgets import CHANNEL_NOTE_BYTES_MAX, CHANNEL_REPLY_BYTES_MAX
from interlock.kernel.descent import DESCENDANT
from interlock.kernel.text import one_line

_KEPT_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT")


def child_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a child process: small, and marked as one of Interlock's."""
    return {name: environment[name] for name in _KEPT_VARIABLES if name in environment} | {DESCENDANT: "1"}


class CommandChannel:
    """Runs the configured command once for each message."""

    def __init__(self, config: ChannelConfig) -> None:
        self._config = config

    def deliver(self, message: Message) -> Result:
        """See `Channel`. Exit code 0: delivered; another: refused, with the last line of stderr."""
        environment = child_environment(os.environ) | {"INTERLOCK_INTENT": message.intent_id}
        timeout_s = self._config.timeout_s
        ended = run_child(self._config.command, message.body, environment, timeout_s, CHANNEL_REPLY_BYTES_MAX)
        if isinstance(ended, str):
            return Result(outcome="failed", note=one_line(ended, CHANNEL_NOTE_BYTES_MAX))
        if ended.code is None:
            return Result(outcome="unknown", note=f"The command did not end within {timeout_s} s.")
        if ended.code == 0:
            return Result(outcome="delivered", reply=parse_reply(ended.out))
        if ended.code < 0:
            return Result(outcome="unknown", note=f"The command was ended by signal {-ended.code}.")
        lines = ended.err.decode("utf-8", "replace").strip().splitlines()
        last = f": {one_line(lines[-1], CHANNEL_NOTE_BYTES_MAX)}" if lines else ""
        return Result(outcome="refused", note=f"The command ended with {ended.code}{last}")
