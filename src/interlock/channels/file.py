"""The channel `file`: one line of JSON at the end of a file (WORLD-6)."""

import os
import stat

from interlock.channels.channel import ChannelConfig, Message, Result


class FileChannel:
    """Appends each message as one line. The file is created if it is missing; its directory is not."""

    def __init__(self, config: ChannelConfig) -> None:
        self._config = config

    def deliver(self, message: Message) -> Result:
        """See `Channel`. A line that is written only in part has an unknown outcome."""
        assert self._config.path is not None, "the configuration was checked"
        line = message.body + b"\n"
        try:
            # Without O_NONBLOCK, opening a pipe that nobody reads would wait for ever.
            handle = os.open(self._config.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK, 0o600)
        except OSError as error:
            return Result(outcome="failed", note=f"{self._config.path}: {error.strerror}")
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                return Result(outcome="failed", note=f"{self._config.path} is not a file.")
            return self._write(handle, line)
        finally:
            os.close(handle)

    def _write(self, handle: int, line: bytes) -> Result:
        written = 0
        try:
            written = os.write(handle, line)
            os.fsync(handle)
        except OSError as error:
            return Result(outcome="unknown" if written else "failed", note=f"{self._config.path}: {error.strerror}")
        if written < len(line):
            return Result(outcome="unknown", note=f"{self._config.path}: only {written} of {len(line)} bytes.")
        return Result(outcome="delivered")
