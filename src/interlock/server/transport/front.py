"""Answers a client while the server is being imported (FRONT-1).

The front reads stdin in the main thread and answers from prepared bytes, until the first message that only the server
can answer. From then on it reads no more. Every line that it read, answered or not, is handed over in order: the SDK
receives the client's own bytes, negotiates with them, and answers them again; the transport drops each answer that
the front has sent. Imports next to nothing, and nothing at all while another thread imports the server.
"""

import os
import select
import signal

from interlock.kernel.budgets import FRONT_ANSWER_BYTES_MAX, READ_BYTES_MAX
from interlock.server.transport.descriptors import claim_descriptors, pipe_bytes
from interlock.server.transport.prepared import Prepared

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

_ALLOWED, _READY, _SIGNALLED = b"a", b"r", b"s"
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Front:
    """Reads stdin until the server is ready. Afterwards its fields say what the server has to continue with."""

    def __init__(self, *, may_answer: bool) -> None:
        self._prepared = Prepared()
        self._may_answer = may_answer
        self._is_asked = False
        self._wake_source, self._wake_sink = os.pipe()
        os.set_blocking(self._wake_sink, False)
        self.source, self.sink = claim_descriptors()
        self._room = min(FRONT_ANSWER_BYTES_MAX, pipe_bytes(self.sink) or FRONT_ANSWER_BYTES_MAX)
        self.lines: list[bytes] = []
        """Every whole line that was read, without its newline."""
        self.rest = b""
        """The beginning of a line."""
        self.answered: dict[int | str, bytes] = {}
        """The lines that were sent, by the ids of their requests."""
        self.is_ended = False
        """Whether no further line may be read: the input ended, or a signal came."""
        self.is_stopped = False
        """Whether a signal came."""

    def allow(self) -> None:
        """Let it answer: the settings are valid. Called by the thread that imports."""
        os.write(self._wake_sink, _ALLOWED)

    def finish(self) -> None:
        """End `serve`: the server is ready, or will never be. Called by the thread that imports."""
        os.write(self._wake_sink, _READY)

    def serve(self) -> None:
        """Answer what needs no state until `finish` is called. Signals are handled from here on."""
        for number in _SIGNALS:
            signal.signal(number, self._on_signal)
        while True:
            is_reading = self._may_answer and not self._is_asked and not self.is_ended
            watched = [self._wake_source, self.source] if is_reading else [self._wake_source]
            readable, _, _ = select.select(watched, [], [])
            if self._wake_source in readable:
                woken = os.read(self._wake_source, READ_BYTES_MAX)
                self._may_answer = self._may_answer or _ALLOWED in woken
                if _READY in woken:
                    return
            if self.source in readable and not self.is_ended:
                self._read()

    def _read(self) -> None:
        try:
            chunk = os.read(self.source, READ_BYTES_MAX)
        except OSError:
            # A terminal that hung up reads as a failure; like the end of a pipe, nothing more will come.
            chunk = b""
        if not chunk:
            self.is_ended = True
            return
        *lines, self.rest = (self.rest + chunk).split(b"\n")
        for line in lines:
            self.lines.append(line)
            if not self._is_asked:
                self._take(line)
        self._is_asked = self._is_asked or len(self.rest) > READ_BYTES_MAX

    def _take(self, line: bytes) -> None:
        """Answer a line, or note that the server has to."""
        found = self._prepared.answer(line)
        if found is None or found[0] in self.answered or len(found[1]) > self._room:
            self._is_asked = True
            return
        identity, answer = found
        if not answer:
            return
        unwritten = answer
        try:
            while unwritten:
                unwritten = unwritten[os.write(self.sink, unwritten) :]
        except OSError:
            # The server answers it again, and reports why that fails.
            self._is_asked = True
            return
        self.answered[identity] = answer
        self._room -= len(answer)

    def _on_signal(self, number: int, _frame: "FrameType | None") -> None:
        """End the process if nothing was read yet, and at the second signal; else let the server answer what was."""
        if not self.lines and not self.rest:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        if self.is_stopped:
            os._exit(128 + number)
        self.is_stopped = self.is_ended = True
        self.rest = b""
        os.write(self._wake_sink, _SIGNALLED)
