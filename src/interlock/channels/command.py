"""The channel `command`: an argv without a shell, the message as JSON on its stdin (WORLD-6)."""

import os

from interlock.channels.channel import ChannelConfig, Message, Result
from interlock.channels.child import ChildStartError, Command, run_child, small_environment
from interlock.channels.reply import parse_reply
from interlock.kernel.budgets import CHANNEL_NOTE_BYTES_MAX, CHANNEL_REPLY_BYTES_MAX
from interlock.kernel.text import one_line


class CommandChannel:
    """Runs the configured command once for each message."""

    def __init__(self, config: ChannelConfig) -> None:
        self._config = config

    def deliver(self, message: Message) -> Result:
        """See `Channel`. Exit code 0: delivered; another: refused, with the last line of stderr."""
        environment = small_environment(os.environ) | {"INTERLOCK_INTENT": message.intent_id}
        timeout_s = self._config.timeout_s
        command = Command(argv=self._config.command, environment=environment)
        try:
            ended = run_child(command, message.body, timeout_s, CHANNEL_REPLY_BYTES_MAX)
        except ChildStartError as error:
            return Result(outcome="failed", note=one_line(str(error), CHANNEL_NOTE_BYTES_MAX))
        if ended.code is None:
            return Result(outcome="unknown", note=f"The command did not end within {timeout_s} s.")
        if ended.code == 0:
            return Result(outcome="delivered", reply=parse_reply(ended.out))
        if ended.code < 0:
            return Result(outcome="unknown", note=f"The command was ended by signal {-ended.code}.")
        lines = ended.err.decode("utf-8", "replace").strip().splitlines()
        last = f": {one_line(lines[-1], CHANNEL_NOTE_BYTES_MAX)}" if lines else ""
        return Result(outcome="refused", note=f"The command ended with {ended.code}{last}")
