"""Each kind of channel: what it sends, and what it says of the outcome."""

import gzip
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.support.receiver import Receiver, receiving

from interlock.channels.channel import ChannelConfig, Message
from interlock.channels.child import Command, end_children, run_child
from interlock.channels.opening import open_channel
from interlock.kernel.budgets import CHANNEL_REPLY_BYTES_MAX
from interlock.kernel.descent import DESCENDANT

MESSAGE = Message(intent_id="intent_1", body=b'{"kind":"team.notify","v":1}')


def channel(kind: Any, **fields: Any) -> Any:
    return open_channel(ChannelConfig(name="one", kind=kind, accepts=("team.notify",), **fields))


def python(code: str, **fields: Any) -> Any:
    return channel("command", command=(sys.executable, "-c", code), **fields)


# command


def test_a_command_gets_the_message_on_stdin_and_a_small_marked_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_USER", "hunter2")
    code = f"import json,os,sys; json.dump([sys.stdin.read(), dict(os.environ)], open({str(tmp_path / 'got')!r}, 'w'))"
    assert python(code).deliver(MESSAGE).outcome == "delivered"
    given, environment = json.loads((tmp_path / "got").read_text())
    assert given == MESSAGE.body.decode()
    assert environment[DESCENDANT] == "1"
    assert environment["INTERLOCK_INTENT"] == "intent_1"
    assert "SECRET_OF_THE_USER" not in environment


def test_there_is_no_shell(tmp_path: Path) -> None:
    done = channel("command", command=("echo", f"$(touch {tmp_path / 'made'})", ";", "touch", str(tmp_path / "made")))
    assert done.deliver(MESSAGE).outcome == "delivered"
    assert not (tmp_path / "made").exists()


def test_another_exit_code_is_refused_with_the_last_line_of_stderr() -> None:
    result = python("import sys; print('one', file=sys.stderr); sys.exit('the room is closed')").deliver(MESSAGE)
    assert (result.outcome, result.note) == ("refused", "The command ended with 1: the room is closed")


def test_a_command_that_is_missing_has_failed() -> None:
    assert channel("command", command=("/nonexistent/program",)).deliver(MESSAGE).outcome == "failed"


def test_a_command_that_ends_by_a_signal_has_an_unknown_outcome() -> None:
    assert python("import os; os.kill(os.getpid(), 9)").deliver(MESSAGE).outcome == "unknown"


def test_a_command_that_hangs_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    code = (
        "import signal, subprocess, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']);"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(child.pid)); time.sleep(60)"
    )
    result = python(code, timeout_s=2).deliver(MESSAGE)
    assert result.outcome == "unknown"
    assert is_gone(int((tmp_path / "pid").read_text()))


def test_a_command_that_runs_when_the_server_ends_is_ended(tmp_path: Path) -> None:
    started = tmp_path / "started"
    code = f"import time; open({str(started)!r}, 'w').close(); time.sleep(60)"
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(python(code, timeout_s=60).deliver(MESSAGE)))
    thread.start()
    until(started.exists)
    end_children()
    thread.join(10)
    assert [one.outcome for one in results] == ["unknown"]


def test_a_command_that_is_being_started_when_the_server_ends_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    start: Any = subprocess.Popen

    def started(*args: Any, **options: Any) -> Any:
        process = start(*args, **options)
        end_children()
        return process

    monkeypatch.setattr(subprocess, "Popen", started)
    assert python("import time; time.sleep(5)", timeout_s=60).deliver(MESSAGE).outcome == "unknown"
    monkeypatch.undo()
    assert python("print('{}')").deliver(MESSAGE).outcome == "delivered", "a later one is not"


def test_a_command_answers_with_a_json_object_or_with_nothing_that_counts() -> None:
    assert python('print(\'{"kind": "wr.event"}\')').deliver(MESSAGE).reply == {"kind": "wr.event"}
    for printed in ("", "hello", "[1]", "{" * 10_000, '{"a": "' + "x" * CHANNEL_REPLY_BYTES_MAX + '"}'):
        result = python(f"import sys; sys.stdout.write({printed!r})").deliver(MESSAGE)
        assert (result.outcome, result.reply) == ("delivered", None)


def test_a_process_that_left_the_group_and_keeps_the_output_open_does_not_hold_the_try() -> None:
    code = "import subprocess, sys; subprocess.Popen(['sleep', '30'], start_new_session=True); print('{}')"
    began = time.perf_counter()
    result = python(code, timeout_s=20).deliver(MESSAGE)
    assert (result.outcome, result.reply) == ("delivered", {})
    assert time.perf_counter() - began < 10


def test_of_a_long_output_only_the_allowed_bytes_are_kept() -> None:
    code = "import sys; sys.stderr.write('x' * 1_000_000 + 'end'); sys.stdout.write('y' * 1_000_000)"
    ended = run_child(Command(argv=(sys.executable, "-c", code), environment={}), b"", 20, 1_000)
    assert (ended.code, len(ended.out), len(ended.err), ended.err[-3:]) == (0, 1_001, 1_000, b"end")


def test_a_nul_in_a_command_has_failed() -> None:
    assert channel("command", command=("echo", "a\0b")).deliver(MESSAGE).outcome == "failed"


# http


@contextmanager
def answering(write: Callable[[socket.socket], None]) -> Generator[str]:
    """Listen on the loopback interface, and write an answer by hand."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with suppress(OSError):
                connection, _ = server.accept()
                with connection:
                    connection.recv(65_536)
                    write(connection)

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/"


@pytest.mark.parametrize("where", [b"x-a: 1\r\n", b"content-length: 9000\r\n\r\n"], ids=["head", "body"])
def test_an_answer_that_trickles_ends_at_the_limit_of_the_whole_try(where: bytes) -> None:
    def trickle(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n" + where)
        while True:
            connection.sendall(b"x-a: 1\r\n")
            time.sleep(0.2)

    began = time.perf_counter()
    with answering(trickle) as url:
        result = channel("http", url=url, timeout_s=1).deliver(MESSAGE)
    assert (result.outcome, result.note) == ("unknown", "There was no whole answer within 1 s.")
    assert time.perf_counter() - began < 5


def test_a_compressed_answer_is_not_decoded() -> None:
    data = gzip.compress(b"\0" * 50_000_000)

    def bomb(connection: socket.socket) -> None:
        head = f"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {len(data)}\r\n\r\n"
        connection.sendall(head.encode() + data)

    with answering(bomb) as url:
        result = channel("http", url=url, timeout_s=5).deliver(MESSAGE)
    assert (result.outcome, result.reply) == ("delivered", None)


def test_a_malformed_host_has_failed() -> None:
    assert channel("http", url="http://a..b/").deliver(MESSAGE).outcome == "failed"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


@pytest.mark.parametrize(
    ("status", "outcome"),
    [(200, "delivered"), (204, "delivered"), (302, "unknown"), (303, "unknown"), (404, "refused"), (503, "unknown")],
)
def test_a_post_is_sent_once_and_its_status_is_the_outcome(receiver: Receiver, status: int, outcome: str) -> None:
    receiver.status = status
    result = channel("http", url=receiver.url).deliver(MESSAGE)
    assert result.outcome == outcome
    assert result.note is None or result.note.startswith(f"HTTP {status}: ")
    assert receiver.received == [{"kind": "team.notify", "v": 1}]
    assert receiver.keys == {"intent_1": 1}


def test_an_answer_of_the_receiver_is_its_reply(receiver: Receiver) -> None:
    receiver.reply = {"kind": "wr.event", "event": "team.seen"}
    assert channel("http", url=receiver.url).deliver(MESSAGE).reply == receiver.reply


def test_a_receiver_that_hangs_or_closes_has_an_unknown_outcome(receiver: Receiver) -> None:
    receiver.closes = True
    assert channel("http", url=receiver.url).deliver(MESSAGE).outcome == "unknown"
    receiver.closes, receiver.hangs = False, True
    assert channel("http", url=receiver.url, timeout_s=1).deliver(MESSAGE).outcome == "unknown"


def test_where_nobody_listens_the_post_has_failed() -> None:
    assert channel("http", url="http://127.0.0.1:1/hook").deliver(MESSAGE).outcome == "failed"


# file


def test_a_file_gets_one_line_for_each_message_and_is_private(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    into = channel("file", path=str(path))
    assert [into.deliver(MESSAGE).outcome for _ in range(2)] == ["delivered", "delivered"]
    assert path.read_bytes() == (MESSAGE.body + b"\n") * 2
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("kind", ["directory", "missing directory", "pipe"])
def test_what_is_no_file_has_failed_and_nothing_waits(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "it"
    if kind == "directory":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path = path / "inner"
    assert channel("file", path=str(path)).deliver(MESSAGE).outcome == "failed"


# mcp

SERVER = """
import sys
from mcp.server.mcpserver import MCPServer
server = MCPServer("other")
@server.tool()
def notify(kind: str, v: int) -> dict:
    if sys.argv[1] == "refuses":
        raise ValueError("the room is closed")
    return {"kind": "wr.event", "event": "team.seen", "id": kind}
server.run("stdio")
"""


@pytest.mark.parametrize(("mode", "outcome"), [("takes", "delivered"), ("refuses", "refused")])
def test_a_tool_of_another_server_gets_the_message_as_its_arguments(tmp_path: Path, mode: str, outcome: str) -> None:
    script = tmp_path / "server.py"
    script.write_text(SERVER)
    result = channel("mcp", command=(sys.executable, str(script), mode), tool="notify", timeout_s=30).deliver(MESSAGE)
    assert result.outcome == outcome, result.note
    if outcome == "delivered":
        assert result.reply == {"kind": "wr.event", "event": "team.seen", "id": "team.notify"}


def mcp(code: str, **fields: Any) -> Any:
    return channel("mcp", command=(sys.executable, "-c", code), tool="notify", **fields)


def test_a_server_that_does_not_start_has_failed_and_its_last_words_are_noted() -> None:
    result = mcp("raise SystemExit('no licence')", timeout_s=10).deliver(MESSAGE)
    assert result.outcome == "failed"
    assert "no licence" in result.note
    missing = channel("mcp", command=("/nonexistent/server",), tool="notify").deliver(MESSAGE)
    assert (missing.outcome, missing.note) == ("failed", "/nonexistent/server: No such file or directory")


SCRIPTED = """
import json, sys
def answer(asked):
    name = asked["method"]
    if name == "initialize":
        return {"protocolVersion": asked["params"]["protocolVersion"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "other", "version": "1"}}
    if name == "tools/list":
        tools = sys.argv[1].split(",")
        return {"tools": [{"name": one, "inputSchema": {"type": "object"}, "outputSchema": {"type": "object",
                "required": ["never"]}} for one in tools]}
    exec(sys.argv[2])
    return {"content": [], "structuredContent": {"done": True}}
for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answer(asked)}), flush=True)
"""


def scripted(tools: str, called: str = "pass", **fields: Any) -> Any:
    """Return a channel to a server with these tools, which runs some code when one is called."""
    return channel("mcp", command=(sys.executable, "-c", SCRIPTED, tools, called), tool="notify", **fields)


def test_a_tool_that_the_server_does_not_have_is_named_with_those_that_it_has() -> None:
    result = scripted("notifi,post").deliver(MESSAGE)
    assert (result.outcome, result.note) == ("failed", "The server has no tool `notify`. It has `notifi`, `post`.")


def test_a_result_that_breaks_the_schema_of_its_own_server_was_delivered() -> None:
    result = scripted("notify").deliver(MESSAGE)
    assert (result.outcome, result.reply) == ("delivered", {"done": True})


@pytest.mark.parametrize(
    "writes", ["sys.stdout.write('x' * 9_000_000)", "[print('{}') for _ in range(3_000_000)]"], ids=["one line", "many"]
)
def test_a_server_that_writes_without_end_is_ended_at_the_bound(writes: str) -> None:
    began = time.perf_counter()
    result = scripted("notify", writes, timeout_s=30).deliver(MESSAGE)
    assert (result.outcome, result.note) == ("unknown", "The server wrote more than 1048576 bytes or 2000 lines.")
    assert time.perf_counter() - began < 20


def test_a_server_that_hangs_is_ended_at_the_limit_or_with_this_process(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    hangs = f"import os, signal, time; open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    result = scripted("notify", hangs, timeout_s=1).deliver(MESSAGE)
    assert (result.outcome, result.note) == ("unknown", "There was no whole answer within 1 s.")
    assert is_gone(int(pid.read_text()))
    assert mcp("import time; time.sleep(60)", timeout_s=1).deliver(MESSAGE).outcome == "failed"
    pid.unlink()
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(scripted("notify", hangs, timeout_s=60).deliver(MESSAGE)))
    thread.start()
    until(lambda: pid.exists() and pid.read_text())
    end_children()
    thread.join(10)
    assert [one.outcome for one in results] == ["unknown"]


def is_gone(pid: int) -> bool:
    """Say whether a process has ended; one that its parent has not waited for has ended, too."""

    def check() -> bool:
        try:
            return "Z" in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True

    return until(check)


def until(check: Any) -> bool:
    """Wait until something holds, at most ten seconds."""
    for _ in range(1_000):
        if check():
            return True
        time.sleep(0.01)
    return False
