"""The product itself over real pipes: how it ends in the middle of its work, and what it writes where."""

import contextlib
import json
import os
import pty
import select
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.test_stdio_transport import ENVELOPE, ERAS, HELLO, PATIENCE_S, Json, Served, call, in_era, serving
from tests.support.forkserver import forking_python
from tests.support.server import ABC, workspace_in
from tests.support.shares import IS_WHOLE
from tests.support.verify import unsound_below

from interlock.kernel.budgets import LINE_BYTES_MAX

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="waits on pipes with select, sends signals")

MOMENTS = ("sent", "parse", "load", "decide", "append", "render")
MOMENTS_OF_A_SHARE = ("sent", "append", "render")
"""When a call is met: as soon as it is sent, or when the server reported that a part of it is done."""
CLOSED_STDOUT = "closed stdout"
ENDS = ("end of input", signal.SIGTERM, signal.SIGINT, signal.SIGKILL, CLOSED_STDOUT)


def command(root: Path, *, python: str | None = None, **environment: str) -> list[str]:
    given = [f"{name}={value}" for name, value in environment.items()]
    place = ["--data-dir", str(root / "data"), "--workspace", str(root / "space")]
    return ["env", *given, python or forking_python(), "-m", "interlock", *place]


@contextlib.contextmanager
def product(root: Path, *, python: str | None = None, **environment: str) -> Generator[Served]:
    with serving(command=command(root, python=python, **environment)) as server:
        yield server


@pytest.fixture
def root(tmp_path: Path) -> Path:
    workspace_in(tmp_path, abc=ABC)
    return tmp_path


def ask(server: Served, request: Json) -> Json:
    server.send(request)
    return server.answer()


def structure(answer: Json) -> Json:
    assert not answer["result"].get("isError"), answer
    return answer["result"]["structuredContent"]


def await_span(server: Served, name: str) -> None:
    while json.loads(server.errors.line())["span"] != name:
        pass


def end(server: Served, how: str | signal.Signals) -> None:
    if how == CLOSED_STDOUT:
        server.stdout.close()
        server.send({"jsonrpc": "2.0", "id": 99, "method": "tools/list", "params": {"_meta": ENVELOPE}})
    else:
        server.end(how)


def advances(root: Path, session: str) -> int:
    segments = (root / "data" / "sessions" / session / "events").glob("*.jsonl")
    events = [json.loads(line) for path in segments for line in path.read_text().splitlines()]
    return [event["kind"] for event in events].count("advance_recorded")


def said_of(server: Served) -> list[Json]:
    """Return what a server that ended had written: whole lines, each a message."""
    rest = server.answers.rest()
    assert rest.endswith(b"\n") or not rest, "the last line is torn"
    return [json.loads(line) for line in rest.splitlines()]


@pytest.mark.exhaustive
@pytest.mark.inv("SRV-7", "CRASH-8")
@pytest.mark.parametrize("how", ENDS, ids=str)
def test_whenever_the_end_meets_an_advance_it_is_whole_or_not_begun_and_repeating_it_is_one_advance(
    root: Path, how: str | signal.Signals
) -> None:
    met: list[tuple[str, Json, list[Json]]] = []
    # A launcher that is killed takes its process with it a moment later: too late for what is tried here.
    python = sys.executable if how is signal.SIGKILL else None
    for moment in MOMENTS if IS_WHOLE or how is signal.SIGKILL else MOMENTS_OF_A_SHARE:
        with product(root, python=python, INTERLOCK_TRACE="1") as server:
            first = structure(ask(server, call(1, "start_workflow", workflowId="test.abc")))
            await_span(server, "render")
            sent = call(2, "continue_workflow", ackToken=first["ackToken"], output={"notesMarkdown": "Done."})
            server.send(sent)
            if moment != "sent":
                await_span(server, moment)
            end(server, how)
            assert server.exit_code() == (-signal.SIGKILL if how is signal.SIGKILL else 0)
            answers = [] if how in (CLOSED_STDOUT, signal.SIGKILL) else said_of(server)
            assert b"Traceback" not in server.errors.rest()
        if moment not in ("sent", "parse", "load") and how not in (CLOSED_STDOUT, signal.SIGKILL):
            assert [answer["id"] for answer in answers] == [2], "what had begun is answered"
        met.append((first["run"]["sessionId"], sent, answers))
    assert unsound_below(root) == []
    verify = [forking_python(), "-m", "interlock", "session", "verify", "--data-dir", str(root / "data")]
    assert subprocess.run(verify, capture_output=True, check=False).returncode == 0
    with product(root) as server:
        for session, sent, answers in met:
            again = ask(server, sent)
            assert structure(again)["pending"]["stepId"] == "b"
            assert all(answer["result"] == again["result"] for answer in answers)
            assert advances(root, session) == 1


@pytest.mark.inv("SRV-5", "SRV-6")
@pytest.mark.parametrize("era", ERAS)
def test_nonsense_and_huge_lines_are_answered_and_what_follows_is_served(root: Path, era: str) -> None:
    with product(root, INTERLOCK_LOG_LEVEL="debug", INTERLOCK_TRACE="1") as server:
        server.send(b"{", b"[]", b'"' + b"x" * LINE_BYTES_MAX + b'"')
        assert [server.answer()["error"]["code"] for _ in range(3)] == [-32700, -32600, -32700]
        server.open(era)
        assert structure(ask(server, in_era(era, call(4, "list_workflows"))))["workflows"]
        server.end("end of input")
        assert (server.exit_code(), said_of(server)) == (0, [])
        assert b"INFO:" in server.errors.rest()


@pytest.mark.inv("SRV-6")
def test_a_slow_reader_gets_every_large_answer_whole_and_one_that_leaves_ends_the_server(root: Path) -> None:
    count, params = 200, {"uri": "interlock://workflows/wr.coding_task/plan", "_meta": ENVELOPE}
    asked = [{"jsonrpc": "2.0", "id": at, "method": "resources/read", "params": params} for at in range(count)]
    with product(root) as server:
        server.send(*asked)
        answers = {answer["id"]: answer["result"]["contents"][0]["text"] for answer in map(_answer, [server] * count)}
        assert set(answers) == set(range(count))
        assert len(set(answers.values())) == 1
        assert len(answers[0]) > 1_000
        server.send(*asked)
        assert server.answer()["id"] in answers
        server.stdout.close()
        assert (server.exit_code(), server.errors.rest()) == (0, b"")


def _answer(server: Served) -> Any:
    return server.answer()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_in_a_terminal_it_says_what_it_waits_for_and_ends_quietly_at_a_signal(
    root: Path, number: signal.Signals
) -> None:
    leader, terminal = pty.openpty()
    with subprocess.Popen(
        [*command(root), "serve"], stdin=terminal, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        os.close(terminal)
        assert process.stderr is not None
        assert process.stdout is not None
        ready, _, _ = select.select([process.stderr], [], [], PATIENCE_S)
        assert ready, "nothing was said"
        assert b"waiting for an MCP client" in process.stderr.readline()
        process.send_signal(number)
        # Where the signal overtakes the handler it ends the process as it ends others.
        assert process.wait(PATIENCE_S) in (0, -number)
        assert (process.stdout.read(), process.stderr.read()) == (b"", b"")
    os.close(leader)


def test_a_signal_that_comes_while_the_server_is_being_imported_leaves_no_traceback(root: Path) -> None:
    """Its own import hook says when the SDK is being imported: in the middle of the start."""
    script = (
        "import builtins, os, signal, sys\n"
        "before = builtins.__import__\n"
        "def watched(name, *rest, **more):\n"
        "    if name.startswith('mcp'):\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "    return before(name, *rest, **more)\n"
        "builtins.__import__ = watched\n"
        "from interlock.cli.main import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    outcome = subprocess.run(
        [sys.executable, "-c", script, "--data-dir", str(root / "data"), "serve"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (-signal.SIGINT, b"", b"")


@pytest.mark.inv("SRV-21")
def test_a_request_before_the_handshake_and_a_faulty_handshake_say_what_to_send(root: Path) -> None:
    early: Json = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    with product(root) as server:
        cases: tuple[tuple[Json, str], ...] = (
            (early, "`tools/list` came before `initialize`"),
            (in_era("legacy", call(2, "list_workflows")), "`tools/call` came before `initialize`"),
            ({**early, "method": "initialize", "params": {"capabilities": {}}}, "lacks protocolVersion, clientInfo"),
        )
        for request, found in cases:
            error = ask(server, request)["error"]
            assert error["code"] == -32602
            assert found in error["message"]
            assert "First send `initialize`" in error["message"]
        assert ask(server, {**early, "method": "initialize", "params": HELLO})["result"]["serverInfo"]
        server.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert ask(server, early)["result"]["tools"]
