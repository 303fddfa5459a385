"""The transport over real pipes. Nothing here sleeps: tests wait for lines, connections and exits."""

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from tests.support.forkserver import forking_python

from interlock.kernel.budgets import DRAIN_SECONDS_MAX, LINE_BYTES_MAX, UNANSWERED_MAX, UNREAD_LINES_MAX

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="waits on pipes with select, sends signals")

PATIENCE_S = 30.0
IDLE_EXIT_S = 20.0
ECHO = str(Path(__file__).with_name("echo_server.py"))
COMMAND = [sys.executable, ECHO]
"""A server in an interpreter of its own; most tests take one that is forked, which imports nothing."""
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
SIGNALS = (signal.SIGINT, signal.SIGTERM)
ERAS = ("modern", "legacy")
ENDS = ("end of input", *SIGNALS)
Json = dict[str, Any]


def call(identity: int, tool: str, **arguments: object) -> Json:
    """Return a tool call that stands alone: it carries the envelope of the modern era."""
    params = {"name": tool, "arguments": arguments, "_meta": ENVELOPE}
    return {"jsonrpc": "2.0", "id": identity, "method": "tools/call", "params": params}


def in_era(era: str, message: Json) -> Json:
    kept = {key: value for key, value in message["params"].items() if era == "modern" or key != "_meta"}
    return message | {"params": kept}


def bytes_of(*messages: Json | bytes) -> bytes:
    lines = [item if isinstance(item, bytes) else json.dumps(item).encode() for item in messages]
    return b"".join(line + b"\n" for line in lines)


def text_of(answer: Json) -> str:
    return answer["result"]["content"][0]["text"]


class Pipe:
    """Reads a pipe with a deadline."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._unread = b""

    def line(self) -> bytes:
        while b"\n" not in self._unread:
            chunk = self._chunk()
            assert chunk, f"the pipe ended after {self._unread!r}"
            self._unread += chunk
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def rest(self) -> bytes:
        while chunk := self._chunk():
            self._unread += chunk
        rest, self._unread = self._unread, b""
        return rest

    def has_more_within(self, seconds: float) -> bool:
        """Wait for bytes for a time; return whether there are any."""
        return b"\n" in self._unread or bool(select.select([self._descriptor], [], [], seconds)[0])

    def _chunk(self) -> bytes:
        ready, _, _ = select.select([self._descriptor], [], [], PATIENCE_S)
        assert ready, f"nothing came in {PATIENCE_S} s"
        return os.read(self._descriptor, 1 << 16)


class Served:
    """A server process and its three pipes."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self.process, self.stdin, self.stdout = process, process.stdin, process.stdout
        self.answers, self.errors = Pipe(process.stdout.fileno()), Pipe(process.stderr.fileno())

    def send(self, *messages: Json | bytes) -> None:
        self.stdin.write(bytes_of(*messages))
        self.stdin.flush()

    def open(self, era: str) -> None:
        """Shake hands, if the era does."""
        if era == "legacy":
            self.send({"jsonrpc": "2.0", "id": 90, "method": "initialize", "params": HELLO})
            assert self.answer()["result"]["protocolVersion"] == HELLO["protocolVersion"]
            self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def accept(self, era: str, calls: int) -> None:
        """Let the server answer a number of calls, after which it knows this client."""
        for at in range(100, 100 + calls):
            self.send(in_era(era, call(at, "echo", text="before")))
            assert self.answer()["id"] == at

    def answer(self) -> Json:
        return json.loads(self.answers.line())

    def end(self, how: str | signal.Signals) -> None:
        if isinstance(how, signal.Signals):
            self.process.send_signal(how)
        else:
            self.stdin.close()

    def exit_code(self) -> int:
        return self.process.wait(PATIENCE_S)


@contextlib.contextmanager
def serving(
    *arguments: str, command: list[str] | None = None, pass_fds: tuple[int, ...] = ()
) -> Generator[Served, None, None]:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    # Stray prints are to wait in a buffer, as they do by default: its last flush must miss the wire too.
    environment = os.environ | {"PYTHONUNBUFFERED": ""}
    run = command or [forking_python(), ECHO]
    with subprocess.Popen([*run, *arguments], env=environment, pass_fds=pass_fds, **pipes) as process:  # type: ignore[call-overload]
        try:
            yield Served(process)
        finally:
            process.kill()
            # A test that broke the pipe has left bytes that closing would try to write.
            with contextlib.suppress(BrokenPipeError, ValueError):
                process.stdin.close()  # pyright: ignore[reportOptionalMemberAccess]


@pytest.fixture
def served() -> Iterator[Served]:
    with serving("--say-closing") as server:
        yield server


class Gate:
    """The place where a `slow` call waits in its worker thread until the test lets it on."""

    def __init__(self, directory: Path) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(PATIENCE_S)
        self._waiting: socket.socket | None = None
        self.marker = directory / "marker"

    def call(self, identity: int, gates: int = 1) -> Json:
        port = self._listener.getsockname()[1]
        return call(identity, "slow", port=port, marker=str(self.marker), gates=gates)

    def await_arrival(self) -> None:
        self._waiting, _ = self._listener.accept()

    def open(self) -> None:
        if self._waiting is not None:
            self._waiting.close()

    def close(self) -> None:
        self.open()
        self._listener.close()


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    gate = Gate(tmp_path)
    yield gate
    gate.close()


@pytest.mark.asyncio
@pytest.mark.parametrize(("mode", "version"), [("auto", "2026-07-28"), ("legacy", "2025-11-25")])
async def test_the_sdk_client_is_served_in_both_eras(mode: str, version: str) -> None:
    parameters = StdioServerParameters(command=COMMAND[0], args=COMMAND[1:])
    async with Client(parameters, mode=mode) as client:
        assert client.protocol_version == version
        assert [tool.name for tool in (await client.list_tools()).tools] == ["echo", "slow", "park", "report"]
        for text in ("a", "ä\u2028\N{GRINNING FACE}", "long " * 100_000):
            result = await client.call_tool("echo", {"text": text})
            assert [block.model_dump()["text"] for block in result.content] == [text]


BAD_LINES: list[bytes] = [
    b"{",
    b"\xff",
    b"[]",
    b"  ",
    b'{"jsonrpc":"2.0","id":91,"method":"ping","params":{"a":"\\ud800"}}',
    b'{"jsonrpc":"2.0","id":93.5,"method":"ping"}',
    b"[" * 100_000,
]
BAD_ANSWERS = [
    (-32700, None),
    (-32700, None),
    (-32600, None),
    (-32600, 91),
    (-32600, None),
    (-32600, None),
]


@pytest.mark.parametrize("era", ERAS)
def test_malformed_lines_are_answered_and_do_not_disturb_the_calls_between_them(served: Served, era: str) -> None:
    served.send(*BAD_LINES)
    assert len([served.answer() for _ in BAD_ANSWERS]) == len(BAD_ANSWERS)
    served.open(era)
    calls = [in_era(era, call(at, "echo", text=f"text {at}")) for at in range(len(BAD_LINES))]
    served.send(*(line for pair in zip(calls, BAD_LINES, strict=True) for line in pair))
    answers = [served.answer() for _ in (*calls, *BAD_ANSWERS)]
    echoed = {answer["id"]: text_of(answer) for answer in answers if "result" in answer}
    assert echoed == {at: f"text {at}" for at in range(len(calls))}
    refused = [(answer["error"]["code"], answer["id"]) for answer in answers if "error" in answer]
    assert refused == BAD_ANSWERS
    served.end("end of input")
    assert (served.exit_code(), served.answers.rest(), served.errors.rest()) == (0, b"", b"closing\n")


def test_a_line_over_the_limit_is_refused_and_the_next_one_is_served(served: Served) -> None:
    served.send(call(1, "echo", text="x" * LINE_BYTES_MAX), call(2, "echo", text="next"))
    refusal, answer = served.answer(), served.answer()
    assert (refusal["id"], refusal["error"]["code"]) == (1, -32700)
    assert (answer["id"], text_of(answer)) == (2, "next")


def test_large_texts_come_back_whole(served: Served) -> None:
    texts = ["äx" * 1_000_000, '\\"\n' * 500_000, "end"]
    served.send(*(call(at, "echo", text=text) for at, text in enumerate(texts)))
    answers = {answer["id"]: text_of(answer) for answer in (served.answer() for _ in texts)}
    assert answers == dict(enumerate(texts))


@pytest.mark.inv("SRV-6")
def test_stray_output_of_handlers_and_children_never_reaches_the_client(served: Served) -> None:
    served.send(call(1, "echo", text="clean", how="noisily"))
    assert text_of(served.answer()) == "clean"
    served.end("end of input")
    assert (served.exit_code(), served.answers.rest()) == (0, b"")
    strays = served.errors.rest().splitlines()
    assert sorted(strays) == [b"closing", b"stray child 0", b"stray print", b"stray write"]


@pytest.mark.inv("SRV-6")
def test_stray_output_does_not_reach_the_client_when_stderr_is_closed_from_the_start() -> None:
    with serving(command=["sh", "-c", 'exec "$0" "$@" 2>&-', *COMMAND]) as server:
        server.send(call(1, "echo", text="clean", how="noisily"))
        assert text_of(server.answer()) == "clean"
        server.end("end of input")
        assert (server.exit_code(), server.answers.rest()) == (0, b"")


def test_an_answer_that_json_cannot_carry_is_an_error_and_not_the_end(served: Served) -> None:
    served.send(call(1, "echo", text="", how="unsendably"))
    answer = served.answer()
    assert (answer["id"], answer["error"]["code"]) == (1, -32603)
    served.send(call(2, "echo", text="on"))
    assert text_of(served.answer()) == "on"


@pytest.mark.parametrize(
    "first", [call(1, "echo", text="a"), b"{"], ids=["a client has called", "no client was ever understood"]
)
@pytest.mark.parametrize("end", ENDS)
def test_an_idle_server_ends_at_once_and_quietly(
    served: Served, end: str | signal.Signals, first: Json | bytes
) -> None:
    served.send(first)
    assert served.answer()["jsonrpc"] == "2.0"
    begun = time.perf_counter()
    served.end(end)
    assert served.exit_code() == 0
    assert time.perf_counter() - begun < IDLE_EXIT_S
    assert (served.answers.rest(), served.errors.rest()) == (b"", b"closing\n")


@pytest.mark.parametrize("before", [0, 1])
@pytest.mark.parametrize("end", ENDS)
def test_a_call_in_a_worker_thread_finishes_and_is_answered(
    served: Served, gate: Gate, end: str | signal.Signals, before: int
) -> None:
    served.accept("modern", before)
    served.send(gate.call(1, gates=2))
    gate.await_arrival()
    served.end(end)
    assert served.errors.line() == b"closing"
    gate.open()
    gate.await_arrival()
    gate.open()
    assert text_of(served.answer()) == "through"
    assert served.exit_code() == 0
    assert gate.marker.exists()
    assert (served.answers.rest(), served.errors.rest()) == (b"", b"")


@pytest.mark.parametrize(("era", "before"), [("modern", 0), ("legacy", 0), ("modern", 1), ("legacy", 1)])
@pytest.mark.parametrize("end", ENDS)
def test_a_call_in_a_worker_thread_outlives_the_patience_for_those_that_wait(
    served: Served, gate: Gate, end: str | signal.Signals, era: str, before: int
) -> None:
    served.open(era)
    served.accept(era, before)
    served.send(in_era(era, gate.call(1)), in_era(era, call(2, "park")))
    gate.await_arrival()
    served.end(end)
    given_up = served.answer()
    assert (given_up["id"], given_up["error"]["code"]) == (2, -32000)
    assert not gate.marker.exists()
    gate.open()
    answer = served.answer()
    assert (answer["id"], text_of(answer)) == (1, "through")
    assert served.exit_code() == 0
    assert gate.marker.exists()
    assert (served.answers.rest(), served.errors.rest()) == (b"", b"closing\n")


@pytest.mark.inv("SRV-7")
@pytest.mark.parametrize("before", [0, 1])
def test_answers_do_not_extend_the_end_without_limit(gate: Gate, before: int) -> None:
    calls = 20
    with serving("--soon") as served:
        served.accept("modern", before)
        served.send(*(gate.call(at) for at in range(calls)), call(calls, "park"))
        gate.await_arrival()
        served.end(signal.SIGTERM)
        answered = list[int]()
        while calls not in answered:
            # A call is answered within the patience for those that wait, until the one that waits is given up.
            if not served.answers.has_more_within(DRAIN_SECONDS_MAX / 2):
                gate.open()
                answered.append(served.answer()["id"])
                gate.await_arrival()
            else:
                answered.append(served.answer()["id"])
        assert 1 < len(answered) < calls / 2
        for _ in range(calls + 1 - len(answered)):
            gate.open()
            answered.append(served.answer()["id"])
            if len(answered) <= calls:
                gate.await_arrival()
        assert sorted(answered) == list(range(calls + 1))
        assert served.exit_code() == 0


@pytest.mark.inv("SRV-7")
@pytest.mark.parametrize("end", ENDS)
def test_a_later_call_that_waits_is_given_up_while_the_sdk_waits_for_its_thread(
    served: Served, gate: Gate, end: str | signal.Signals
) -> None:
    served.accept("modern", 1)
    through_the_sdk = gate.call(1)
    through_the_sdk["params"]["unknown"] = True
    served.send(through_the_sdk)
    gate.await_arrival()
    served.send(call(2, "park"))
    served.send(call(3, "echo", text="taken"))
    assert served.answer()["id"] == 3
    served.end(end)
    given_up = served.answer()
    assert (given_up["id"], given_up["error"]["code"]) == (2, -32000)
    assert not gate.marker.exists()
    gate.open()
    assert served.answer()["id"] == 1
    assert served.exit_code() == 0


@pytest.mark.parametrize("number", SIGNALS)
def test_no_line_is_taken_after_a_signal(served: Served, gate: Gate, number: signal.Signals) -> None:
    served.send(gate.call(1))
    gate.await_arrival()
    served.end(number)
    assert served.errors.line() == b"closing"
    served.send(call(2, "echo", text="late"), b"{")
    gate.open()
    assert served.answer()["id"] == 1
    assert (served.exit_code(), served.answers.rest()) == (0, b"")


@pytest.mark.parametrize("second", SIGNALS)
def test_a_second_signal_ends_the_process_at_once(served: Served, gate: Gate, second: signal.Signals) -> None:
    served.send(gate.call(1))
    gate.await_arrival()
    served.end(signal.SIGINT)
    assert served.errors.line() == b"closing"
    served.end(second)
    assert served.exit_code() == 128 + second
    assert not gate.marker.exists()
    assert (served.answers.rest(), served.errors.rest()) == (b"", b"")


def test_open_subscriptions_count_as_answered(served: Served) -> None:
    params = {"notifications": {"toolsListChanged": True}, "_meta": ENVELOPE}
    for at in range(UNANSWERED_MAX):
        served.send({"jsonrpc": "2.0", "id": at, "method": "subscriptions/listen", "params": params})
        assert served.answer()["method"] == "notifications/subscriptions/acknowledged"
    served.send(call(-1, "echo", text="a"))
    assert served.answer()["id"] == -1
    served.end(signal.SIGTERM)
    assert (served.exit_code(), served.errors.rest()) == (0, b"closing\n")


@pytest.mark.parametrize("before", [0, 1])
def test_cancelled_calls_are_not_answered_and_count_as_answered(served: Served, before: int) -> None:
    served.accept("modern", before)
    for at in range(UNANSWERED_MAX):
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": at}}
        served.send(call(at, "park"), cancelled)
    served.send(call(-1, "echo", text="a"))
    assert served.answer()["id"] == -1
    served.end("end of input")
    assert (served.exit_code(), served.answers.rest()) == (0, b"")


@pytest.mark.parametrize("identity", [[1], {}, 1.5, None, True])
@pytest.mark.parametrize("before", [0, 1])
def test_a_cancellation_of_nothing_changes_nothing(served: Served, before: int, identity: object) -> None:
    served.accept("modern", before)
    served.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": identity}})
    served.send({"jsonrpc": "2.0", "method": "notifications/cancelled"}, call(1, "echo", text="on"))
    assert text_of(served.answer()) == "on"


@pytest.mark.parametrize("last_newline", [b"\n", b""])
def test_all_lines_that_came_before_the_end_of_input_are_answered(last_newline: bytes) -> None:
    """The calls outnumber every queue, and the client reads while it writes, as clients do."""
    count = 2 * max(UNANSWERED_MAX, UNREAD_LINES_MAX)
    lines = bytes_of(*(call(at, "echo", text="a") for at in range(count)))
    bad = b"{\n" * count
    finished = subprocess.run(
        COMMAND, input=bad + lines[:-1] + last_newline, capture_output=True, timeout=2 * PATIENCE_S, check=True
    )
    answers = [json.loads(line) for line in finished.stdout.splitlines()]
    assert sorted(answer["id"] for answer in answers if "result" in answer) == list(range(count))
    assert sum(answer["id"] is None for answer in answers) == count
    assert len(answers) == 2 * count
    assert finished.stderr == b""


def test_a_client_may_write_much_before_it_reads(served: Served) -> None:
    """Both pipes hold 64 KiB: a server that waited for its reader would stop reading, and both would hang."""
    count, text = 300, "x" * 10_000
    served.send(*(call(at, "echo", text=text) for at in range(count)))
    assert sorted(served.answer()["id"] for _ in range(count)) == list(range(count))


def test_a_client_that_closed_its_end_is_not_an_error(served: Served) -> None:
    served.send(call(1, "echo", text="a"))
    assert served.answer()["id"] == 1
    served.stdout.close()
    served.send(call(2, "echo", text="b"))
    assert (served.exit_code(), served.errors.rest()) == (0, b"closing\n")


def test_a_client_that_does_not_read_cannot_hold_the_server(served: Served) -> None:
    served.send(*(call(at, "echo", text="x" * 10_000) for at in range(50)))
    served.end("end of input")
    assert (served.exit_code(), served.errors.rest()) == (0, b"closing\n")


def test_descriptors_that_came_non_blocking_are_waited_on() -> None:
    theirs, ours = os.pipe(), os.pipe()
    for descriptor in (theirs[0], ours[1]):
        os.set_blocking(descriptor, False)
    with subprocess.Popen(COMMAND, stdin=theirs[0], stdout=ours[1]) as process:
        os.close(theirs[0])
        os.close(ours[1])
        text = "x" * 1_000_000
        with os.fdopen(theirs[1], "wb") as stdin:
            stdin.write(bytes_of(call(1, "echo", text=text)))
        with os.fdopen(ours[0], "rb") as stdout:
            assert text_of(json.loads(stdout.readline())) == text
        assert process.wait(PATIENCE_S) == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_behind_stdout_is_reported_and_ends_the_server() -> None:
    command = ["sh", "-c", 'exec "$0" "$@" >/dev/full', *COMMAND]
    with serving(command=command) as server:
        server.send(call(1, "echo", text="a"))
        assert server.exit_code() == 1
        assert b"stdout cannot be written" in server.errors.rest()
