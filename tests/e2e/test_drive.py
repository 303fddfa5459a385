"""The command `interlock drive` with the real server over stdio: models by script, command and address."""

import json
import os
import select
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.chat_model import reporting
from tests.support.forkserver import forking_python
from tests.support.outside import AWAIT, STATUS
from tests.support.server import Server, workspace_in

from interlock.testing.chat_server import ChatAnswer, ChatServer, chat_server, scripted
from interlock.testing.harness import linear_workflow

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
PATIENCE_S = 120
TERMINAL_SECONDS = 60
ABC = linear_workflow("test.abc", "a", "b", "c")
BUNDLED = ("wr.quick_task", "wr.documentation", "wr.code_review")
PRODUCED: dict[str, Any] = {"kind": "guide"}
"""Values of context keys that these workflows ask for without saying their type."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    workspace_in(tmp_path, abc=ABC)
    return tmp_path


def run(root: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command on the data directory of a test."""
    return subprocess.run(
        command(root, *arguments),
        env=surroundings(root, **environment),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def sessions_of(root: Path) -> list[Path]:
    """Return the directories of all sessions."""
    return list((root / "data" / "sessions").glob("sess_*"))


def command(root: Path, *arguments: str, python: str | None = None) -> list[str]:
    """Return a command that is forked, unless it names its interpreter: then its server gets one too."""
    places = ["--data-dir", str(root / "data")]
    if arguments[0] == "drive":
        places += ["--workspace", str(root / "space"), "--workflows-dir", str(root / "none")]
    return [python or forking_python(), "-m", "interlock", *arguments, *places]


def surroundings(root: Path, **environment: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    return {**kept, "HOME": str(root), "INTERLOCK_LOG_LEVEL": "critical", **environment}


def agent(root: Path, **members: Any) -> str:
    path = root / "agent.json"
    path.write_text(json.dumps({"role": "You are a test.", **members}))
    return str(path)


def script(root: Path, value: object) -> str:
    (root / "script.json").write_text(json.dumps(value))
    return f"script:{root / 'script.json'}"


def notes(step: str) -> dict[str, Any]:
    text = f"The step {step} was worked on: file {step}.py was read, {step} was decided, and nothing of it is open."
    return {"toolCalls": [{"name": "report_step", "arguments": {"notes": text}}]}


STEPS = {"steps": {step: [notes(step)] for step in "abc"}}


def turns(root: Path) -> dict[str, Any]:
    (session,) = (path.name for path in (root / "data" / "sessions").iterdir())
    (found,) = json.loads(run(root, "session", "turns", session, "--json").stdout)["runs"]
    return found


@pytest.mark.inv("DRIVE-11", "TURN-8")
def test_a_script_drives_a_run_to_its_end_and_its_turns_are_listed(root: Path) -> None:
    done = run(root, "drive", "test.abc", "--agent", agent(root), "--model", script(root, STEPS), "--json")
    result = json.loads(done.stdout)
    assert (done.returncode, result["status"], result["turns"]) == (0, "complete", 3), done.stderr
    assert turns(root)["totals"]["turns"] == 3
    listed = run(root, "session", "turns", result["session"])
    assert f"run {result['label']}: 3 turns" in listed.stdout
    assert run(root, "session", "verify").returncode == 0


@pytest.mark.inv("DRIVE-12")
def test_a_model_that_is_a_command_reads_the_request_and_prints_the_answer(root: Path) -> None:
    model = root / "model.py"
    model.write_text(
        "import json, sys\n"
        "request = json.load(sys.stdin)\n"
        "assert 'ack_' not in json.dumps(request)\n"
        f"print(json.dumps({STEPS!r}['steps'][request['step']][0]))\n"
    )
    name = f"cmd:{sys.executable} {model}"
    done = run(root, "drive", "test.abc", "--agent", agent(root, llm={"model": name}), "--json")
    assert json.loads(done.stdout)["status"] == "complete", done.stderr


@pytest.mark.parametrize(
    ("answer", "code"),
    [("print('no json')", "LLM_ERROR"), ("raise SystemExit(3)", "LLM_ERROR"), ("print('[]')", "LLM_ERROR")],
)
def test_a_command_that_answers_nonsense_fails_the_drive_and_the_run_stays_at_its_step(
    root: Path, answer: str, code: str
) -> None:
    (root / "model.py").write_text(answer)
    stated = agent(root, reliability={"retry": {"max_retries": 1, "initial_delay_ms": 1}})
    done = run(
        root, "drive", "test.abc", "--agent", stated, "--model", f"cmd:{sys.executable} {root / 'model.py'}", "--json"
    )
    result = json.loads(done.stdout)
    assert (done.returncode, result["error"]["code"], result["step"]) == (1, f"turn.{code}", "a")


DETACHED = """
import os, pty, subprocess, sys
reader, writer = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        master, terminal = pty.openpty()
        done = subprocess.run(sys.argv[1:], stdin=terminal, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        os.write(writer, done.stdout)
    os._exit(0)
os.close(writer)
while chunk := os.read(reader, 4096):
    os.write(1, chunk)
"""
"""Runs a command that has a terminal and does not descend from its caller, and prints what it printed."""


def sending(root: Path, session: str, event_id: str) -> list[str]:
    """Return a detached command that sends an event to the only run of a session."""
    sent = ["event", "send", "ci.finished", "--run", session, "--id", event_id, "--fields", '{"status": "green"}']
    return [sys.executable, "-c", DETACHED, *command(root, *sent, python=sys.executable)]


@pytest.mark.inv("WORLD-9")
@pytest.mark.skipif(sys.platform != "linux", reason="reads the ancestry of processes")
def test_what_a_child_process_of_a_driven_model_sends_is_claimed_whatever_it_hides(root: Path) -> None:
    space = workspace_in(root / "ci", ship=linear_workflow("team.ship", "a", AWAIT, inputs=[STATUS]))
    with Server(root / "data", space) as client:
        names = client.start("team.ship")["run"]
    session = names["sessionId"]
    person = subprocess.run(sending(root, session, "1"), env=surroundings(root), capture_output=True, check=True)
    call = {"name": "run_command", "arguments": {"argv": sending(root, session, "2")}}
    model = script(root, {"steps": {"a": [{"toolCalls": [call]}, notes("a")], "ci": [notes("ci")]}})
    stated = agent(root, tools=[{"name": "run_command", "permission": "allow"}])
    drive = command(
        root, "drive", "--resume", names["label"], "--agent", stated, "--model", model, python=sys.executable
    )
    subprocess.run(drive, env=surroundings(root), capture_output=True, check=False, timeout=PATIENCE_S)
    files = sorted((root / "data" / "sessions" / session / "events").glob("*.jsonl"))
    events = [json.loads(line) for path in files for line in path.read_text().splitlines()]
    received = [event for event in events if event["kind"] == "event_received"]
    levels = [(one["data"]["sentId"], one["data"]["assurance"], one["actor"]["type"]) for one in received]
    assert levels == [("1", "observed", "human"), ("2", "claimed", "system")], person.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["drive", "--agent", "AGENT"],
        ["drive", "test.abc", "--resume", "x", "--agent", "AGENT"],
        ["drive", "test.abc", "--agent", "/nonexistent"],
        ["drive", "test.abc", "--agent", "AGENT", "--max-turns", "0"],
        ["drive", "test.abc", "--agent", "AGENT", "--context", "novalue"],
        ["drive", "test.abc", "--agent", "AGENT", "--ask"],
        ["drive", "test.abc", "--agent", "AGENT"],
        ["drive", "test.abc", "--agent", "AGENT", "--model", "cmd:'unbalanced"],
        ["drive", "test.abc", "--agent", "AGENT", "--model", "cmd:true", "--lost-calls", "happened"],
        ["drive", "--resume", "x", "--agent", "AGENT", "--model", "cmd:true", "--goal", "Finish."],
        ["drive", "--resume", "x", "--agent", "AGENT", "--model", "cmd:true", "--context", "a=b"],
    ],
    ids=[
        "nothing",
        "both",
        "no profile",
        "no turns",
        "no value",
        "no terminal",
        "no model",
        "open quote",
        "calls",
        "goal",
        "context",
    ],
)
def test_a_wrong_command_line_is_refused_with_2_and_nothing_is_written(root: Path, arguments: list[str]) -> None:
    named = [agent(root) if one == "AGENT" else one for one in arguments]
    done = run(root, *named)
    assert (done.returncode, done.stdout) == (2, "")
    assert not (root / "data").exists()


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("--model", ["test.abc", "--agent", "AGENT", "--model", ""]),
        ("--goal", ["test.abc", "--agent", "AGENT", "--goal", " "]),
        ("--goal", ["--resume", "x", "--agent", "AGENT", "--goal", ""]),
        ("--resume", ["--agent", "AGENT", "--resume", ""]),
        ("--agent", ["test.abc", "--agent", ""]),
        ("WORKFLOW", ["--agent", "AGENT", ""]),
    ],
)
def test_an_empty_argument_is_refused_by_its_name_and_does_not_count_as_left_out(
    root: Path, name: str, arguments: list[str]
) -> None:
    """A script states an empty one if its variable is not set."""
    stated = agent(root, llm={"model": "cmd:true"})
    done = run(root, "drive", *[stated if one == "AGENT" else one for one in arguments])
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{name} is empty." in done.stderr
    assert not (root / "data").exists()


@pytest.mark.inv("DRIVE-18")
def test_the_command_that_continues_a_drive_is_complete_as_it_is_printed(root: Path) -> None:
    done = run(root, "drive", "test.abc", "--agent", agent(root), "--model", script(root, STEPS), "--max-turns", "1")
    assert done.returncode == 5, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("To continue: ")]
    arguments = shlex.split(line)
    for name, place in (("--data-dir", "data"), ("--workspace", "space"), ("--workflows-dir", "none")):
        assert arguments[arguments.index(name) + 1] == str(root / place)
    assert arguments[arguments.index("--max-turns") + 1] == "2"
    again = sent_as_printed(root, line)
    assert (again.returncode, again.stdout.count("MAX_TURNS_EXCEEDED")) == (5, 1), again.stderr
    (line,) = [line for line in again.stdout.splitlines() if line.startswith("To continue: ")]
    again = sent_as_printed(root, line)
    assert again.returncode == 0, again.stderr


@pytest.mark.inv("DRIVE-18")
def test_a_run_that_no_resume_continues_is_named_so_and_keeps_its_status_and_exit_code(root: Path) -> None:
    proof = {"command": {"value": "make test"}, "assurance": "claimed"}
    step = {"id": "a", "title": "A", "prompt": "Do a.", "proof": [proof]}
    (root / "space" / ".interlock" / "workflows" / "proof.json").write_text(
        json.dumps(linear_workflow("test.proof", step))
    )
    model = script(root, {"steps": {"a": [notes(f"a{number}") for number in range(11)]}})
    done = run(root, "drive", "test.proof", "--agent", agent(root), "--model", model)
    assert (done.returncode, "ATTEMPT_LIMIT_REACHED" in done.stdout) == (3, True), done.stdout
    assert "To continue" not in done.stdout
    assert "No `--resume` continues this run." in done.stdout
    again = run(root, "drive", "--resume", "@last", "--agent", agent(root), "--model", model, "--json")
    result = json.loads(again.stdout)
    assert (again.returncode, result["exitCode"], result["status"]) == (3, 3, "person_needed")
    assert "`make test`" in result["error"]["message"]


def sent_as_printed(root: Path, line: str) -> subprocess.CompletedProcess[str]:
    """Send the command that a line names after its first colon."""
    program, *arguments = shlex.split(line.partition(": ")[2])
    assert program == "interlock"
    return subprocess.run(
        [forking_python(), "-m", "interlock", *arguments],
        env=surroundings(root),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )


def test_a_run_is_continued_by_the_names_that_other_commands_take(root: Path) -> None:
    options = ["--agent", agent(root), "--model", script(root, STEPS), "--json"]
    first = run(root, "drive", "test.abc", *options, "--max-turns", "1")
    assert run(root, "drive", "--resume", "@latest", *options).returncode == 2
    done = run(root, "drive", "--resume", "@last", *options)
    result = json.loads(done.stdout)
    assert (done.returncode, result["run"]) == (0, json.loads(first.stdout)["run"]), done.stderr


def test_a_workflow_or_run_that_does_not_exist_is_refused_with_1(root: Path) -> None:
    model = script(root, STEPS)
    for arguments in (["drive", "test.nothing"], ["drive", "--resume", "zzzz"]):
        done = run(root, *arguments, "--agent", agent(root), "--model", model)
        assert done.returncode == 1, done.stderr
        assert "Traceback" not in done.stderr
    near = run(root, "drive", "test.abcd", "--agent", agent(root), "--model", model)
    assert near.stderr.splitlines()[-1] == "Did you mean `test.abc`? `interlock workflow list` lists all workflows."


def test_a_delegation_to_an_agent_that_cannot_be_read_is_refused_with_2_before_the_run_begins(root: Path) -> None:
    rule = {"type": "handoff", "target_agent": "nobody.json", "steps": ["b"]}
    done = run(root, "drive", "test.abc", "--agent", agent(root, delegation=[rule]), "--model", script(root, STEPS))
    assert (done.returncode, done.stdout) == (2, "")
    assert "nobody.json cannot be read" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (root / "data").exists()


@pytest.mark.parametrize("is_delegated", [False, True])
def test_tools_that_write_are_refused_where_the_log_is(root: Path, *, is_delegated: bool) -> None:
    stated = agent(root, tools=[{"name": "write_file", "permission": "allow"}])
    if is_delegated:
        Path(stated).rename(root / "writer.json")
        stated = agent(root, delegation=[{"type": "handoff", "target_agent": "writer.json", "steps": ["b"]}])
    model = script(root, STEPS)
    places = ["--data-dir", str(root / "space" / "d"), "--workspace", str(root / "space")]
    done = subprocess.run(
        [forking_python(), "-m", "interlock", "drive", "test.abc", "--agent", stated, "--model", model, *places],
        env=surroundings(root),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 2
    assert "could change the log" in done.stderr


_HEED = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"
INTERRUPTIBLE = (sys.executable, "-c", _HEED)
"""Runs a command that ends on SIGINT, also where the tests run in the background of a shell, which ignores it."""


class Terminal:
    """A drive in a terminal of its own, and the person who sits there."""

    def __init__(self, root: Path, *arguments: str) -> None:
        self._master, terminal = os.openpty()
        self.process = subprocess.Popen(
            [*INTERRUPTIBLE, *command(root, "drive", *arguments, "--ask")],
            env=surroundings(root, TERM="xterm"),
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            start_new_session=True,
        )
        os.close(terminal)
        self.shown = ""

    def answer(self, prompt: str, words: str) -> None:
        """Wait until something is asked, and type an answer."""
        self.read_until(prompt)
        os.write(self._master, f"{words}\n".encode(errors="surrogateescape"))

    def end(self) -> int:
        """Wait for the end of the drive, and return its exit code."""
        self.read_until(None)
        os.close(self._master)
        return self.process.wait(PATIENCE_S)

    def read_until(self, prompt: str | None) -> None:
        """Wait until something is asked, or until the end of the drive."""
        start = len(self.shown)
        while prompt is None or prompt not in self.shown[start:]:
            is_ready, _, _ = select.select([self._master], [], [], TERMINAL_SECONDS)
            assert is_ready, f"nothing was shown for {TERMINAL_SECONDS} s after: {self.shown[-2000:]}"
            try:
                chunk = os.read(self._master, 4096)
            except OSError:  # how Linux says that the other side is closed
                chunk = b""
            if not chunk:
                assert prompt is None, f"it ended before {prompt!r}: {self.shown[-2000:]}"
                return
            self.shown += chunk.decode("utf-8", "replace")


@pytest.mark.inv("DRIVE-12")
def test_a_person_at_a_terminal_allows_a_call_and_confirms_a_step(root: Path) -> None:
    confirmed = {"id": "a", "title": "Plan", "prompt": "Do a.", "requireConfirmation": True}
    workflow = linear_workflow("test.ask", confirmed, "b")
    (root / "space" / ".interlock" / "workflows" / "ask.json").write_text(json.dumps(workflow))
    write = {"name": "write_file", "arguments": {"path": "seen.txt", "content": "x"}}
    model = script(root, {"steps": {"a": [{"toolCalls": [write]}, notes("a")], "b": [notes("b")]}})
    stated = agent(root, tools=[{"name": "write_file", "permission": "ask"}])
    terminal = Terminal(root, "test.ask", "--agent", stated, "--model", model)
    terminal.answer("Decision (confirm | decline): ", "confirm")
    terminal.answer("Comment: ", "")
    assert "May this run work with the autonomy" in terminal.shown
    terminal.answer("[y/N] ", "y")
    terminal.answer("Decision (confirm | decline): ", "confirm")
    terminal.answer("Comment: ", "Seen by Ada.\udcff")  # a byte of another encoding
    assert terminal.end() == 0, terminal.shown
    assert (root / "space" / "seen.txt").read_text() == "x"
    (session,) = (path.name for path in (root / "data" / "sessions").iterdir())
    assert "Seen by Ada." in run(root, "session", "export", session, "--out", "-").stdout


ASKS = linear_workflow("test.asks", "a", {"type": "approve", "id": "ok", "title": "Agree", "question": "OK?"}, "b")


@pytest.mark.inv("DRIVE-17")
def test_a_question_ends_a_drive_with_3_and_after_its_answer_the_printed_command_continues_it(root: Path) -> None:
    (root / "space" / ".interlock" / "workflows" / "asks.json").write_text(json.dumps(ASKS))
    done = run(root, "drive", "test.asks", "--agent", agent(root), "--model", script(root, STEPS))
    assert done.returncode == 3, done.stdout
    assert "The step 'Agree' asks a person: OK? `interlock inbox` shows the question." in done.stdout
    inbox, *_ = [line for line in done.stdout.splitlines() if line.startswith("To see the question: ")]
    assert "OK?" in sent_as_printed(root, inbox).stdout
    label = done.stdout.split()[1]
    with_terminal = command(root, "approve", label, python=sys.executable)
    subprocess.run([sys.executable, "-c", DETACHED, *with_terminal], env=surroundings(root), check=True)
    continuing, *_ = [line for line in done.stdout.splitlines() if line.startswith("To continue after the answer: ")]
    assert sent_as_printed(root, continuing).returncode == 0


@pytest.mark.inv("DRIVE-17")
def test_a_person_at_a_terminal_answers_the_question_of_a_step(root: Path) -> None:
    (root / "space" / ".interlock" / "workflows" / "asks.json").write_text(json.dumps(ASKS))
    terminal = Terminal(root, "test.asks", "--agent", agent(root), "--model", script(root, STEPS))
    terminal.answer("Decision (confirm | decline): ", "confirm")
    terminal.answer("Comment: ", "")
    terminal.answer("Decision (confirm | decline): ", "confirm")
    terminal.answer("Comment: ", "")
    assert terminal.end() == 0, terminal.shown


BARRED = """
import os, socket

def barred(name):
    connect = getattr(socket.socket, name)

    def checked(self, address):
        if self.family == socket.AF_UNIX:
            return connect(self, address)
        place = f"{address[0]}:{address[1]}"
        with open(os.environ["INTERLOCK_TEST_CONNECTIONS"], "a") as log:
            log.write(place + "\\n")
        if place != os.environ["INTERLOCK_TEST_ALLOWED"]:
            raise OSError("barred")
        return connect(self, address)

    setattr(socket.socket, name, checked)

barred("connect")
barred("connect_ex")
names = socket.getaddrinfo

def resolve(host, *more, **named):
    if host not in ("127.0.0.1", b"127.0.0.1"):
        with open(os.environ["INTERLOCK_TEST_CONNECTIONS"], "a") as log:
            log.write(f"name {host}\\n")
        raise OSError("barred")
    return names(host, *more, **named)

socket.getaddrinfo = resolve
"""
"""Read by every Python process of a drive at its start: it connects to the allowed place alone, and notes each try."""


def guarded(root: Path, allowed: str) -> dict[str, str]:
    """Return the environment of a drive whose processes can connect to one place alone."""
    directory = root / "barred"
    directory.mkdir(exist_ok=True)
    (directory / "sitecustomize.py").write_text(BARRED)
    path = os.pathsep.join([str(directory), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {
        "PYTHONPATH": path,
        "INTERLOCK_TEST_ALLOWED": allowed,
        "INTERLOCK_TEST_CONNECTIONS": str(root / "connections.txt"),
    }


def connections(root: Path) -> set[str]:
    """Return where the processes of a drive connected to, or tried to."""
    log = root / "connections.txt"
    return set(log.read_text().splitlines()) if log.exists() else set()


def through(root: Path, server: ChatServer, workflow: str, provider: str = "openai", **members: Any) -> dict[str, Any]:
    """Drive a workflow with the model of a loopback server, which is all that the driver and its server connect to."""
    address = server.address if provider == "openai" else server.address.removesuffix("/v1")
    llm = {"model": f"{provider}:tester", "base_url": address}
    stated = agent(root, llm=llm, constraints={"max_turns": 200}, **members)
    place = address.removeprefix("http://").partition("/")[0]
    done = run(root, "drive", workflow, "--agent", stated, "--json", **guarded(root, place))
    assert done.stdout, done.stderr
    assert connections(root) == {place}
    return json.loads(done.stdout)


@pytest.mark.inv("DRIVE-7", "TURN-8")
@pytest.mark.parametrize("workflow", BUNDLED)
def test_bundled_workflows_are_driven_to_their_end_and_the_turns_sum_to_what_the_server_counted(
    root: Path, workflow: str
) -> None:
    with chat_server(reporting(PRODUCED)) as server:
        result = through(root, server, workflow)
    assert result["status"] in ("complete", "complete_with_gaps"), result
    totals = turns(root)["totals"]
    assert (totals["inputTokens"], totals["outputTokens"]) == (server.input_tokens, server.output_tokens)
    assert totals["turns"] == len(server.requests) == result["turns"]
    assert run(root, "session", "verify").returncode == 0


def test_a_model_of_the_messages_shape_drives_a_bundled_workflow_to_its_end(root: Path) -> None:
    with chat_server(reporting(PRODUCED)) as server:
        result = through(root, server, BUNDLED[0], "anthropic")
    assert result["status"] in ("complete", "complete_with_gaps"), result
    assert result["turns"] == len(server.requests) == turns(root)["totals"]["turns"]
    assert server.requests[0]["system"]


@pytest.mark.inv("FAULT-2")
def test_failures_of_a_provider_are_typed_and_repeated_as_it_says(root: Path) -> None:
    limited = ChatAnswer(status=429, headers={"retry-after": "0"})
    model, answers = reporting(), [limited, ChatAnswer(status=503, headers={"retry-after": "0"})]
    with chat_server(lambda body: answers.pop(0) if answers else model(body)) as server:
        result = through(root, server, "test.abc")
    assert (result["status"], len(server.requests)) == ("complete", 5)
    first = turns(root)["turns"][0]["turn"]
    assert [one["code"] for one in first["errors"]] == ["turn.RATE_LIMITED", "turn.LLM_ERROR"]


@pytest.mark.inv("TURN-8", "TURN-2")
def test_the_turns_of_a_run_sum_to_what_the_model_counted_also_if_some_of_them_failed(root: Path) -> None:
    """An answer that the provider cuts off fails its turn, which is left out; its tokens are in the next record."""
    filtered = ChatAnswer(text="x", finish_reason="content_filter", input_tokens=1_000, output_tokens=100)
    model, answers = reporting(), [filtered, filtered]
    skip = {"error_handlers": [{"error_codes": ["CONTENT_FILTERED"], "strategy": "skip"}]}
    with chat_server(lambda body: answers.pop(0) if answers else model(body)) as server:
        result = through(root, server, "test.abc", reliability=skip)
    assert (result["status"], result["turns"], len(server.requests)) == ("complete", 3, 5)
    listed = turns(root)
    assert listed["turns"][0]["turn"]["usageOfFailedTurns"]["inputTokens"] == 2_000
    found = [listed["totals"], result["usage"]]
    counted = (server.input_tokens, server.output_tokens)
    assert [(one["inputTokens"], one["outputTokens"]) for one in found] == [counted, counted]


def test_a_provider_that_refuses_the_key_is_asked_once(root: Path) -> None:
    with chat_server(scripted([ChatAnswer(status=401)])) as server:
        result = through(root, server, "test.abc")
    assert (result["status"], result["error"]["code"], len(server.requests)) == ("failed", "turn.LLM_ERROR", 1)
    assert (result["run"], sessions_of(root)) == (None, [])


@pytest.mark.inv("DRIVE-19")
@pytest.mark.parametrize("model", ["cmd:no-such-program", "openai:nobody"])
def test_a_model_that_cannot_be_started_leaves_no_run_behind(root: Path, model: str) -> None:
    llm = {"model": model, "base_url": "http://127.0.0.1:9"}
    stated = agent(root, llm=llm, reliability={"retry": {"max_retries": 0}})
    done = run(root, "drive", "test.abc", "--agent", stated)
    assert (done.returncode, sessions_of(root)) == (1, []), done.stderr
    assert done.stdout.splitlines()[-1] == "No run was left behind. Correct the model, then run the command again."


@pytest.mark.inv("DRIVE-19")
def test_a_model_that_is_lost_after_a_turn_leaves_its_run(root: Path) -> None:
    first = ChatAnswer(calls=[("note_progress", {"notes": "Begun."})])
    with chat_server(scripted([first, ChatAnswer(status=401)])) as server:
        result = through(root, server, "test.abc")
    assert (result["status"], result["turns"], len(sessions_of(root))) == ("failed", 1, 1)


def test_a_driver_with_a_script_connects_to_nothing(root: Path) -> None:
    model = script(root, STEPS)
    done = run(root, "drive", "test.abc", "--agent", agent(root), "--model", model, **guarded(root, "nowhere"))
    assert (done.returncode, connections(root)) == (0, set()), done.stderr


def test_a_place_that_is_not_allowed_is_noted_and_barred(root: Path) -> None:
    """The check itself can fail: a model elsewhere is noted, and the drive fails."""
    with chat_server(reporting()) as server:
        place = server.address.removeprefix("http://").partition("/")[0]
        stated = agent(
            root,
            llm={"model": "openai:tester", "base_url": server.address},
            reliability={"retry": {"max_retries": 0}},
        )
        done = run(root, "drive", "test.abc", "--agent", stated, "--json", **guarded(root, "nowhere"))
    assert (json.loads(done.stdout)["status"], connections(root), server.requests) == ("failed", {place}, [])
