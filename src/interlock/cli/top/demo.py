"""`interlock demo`: a real client, a real server process, a real SIGKILL, a real log. It simulates nothing.

An arrow precedes a message that was sent or received. A tick precedes a claim that was checked at that moment. The
first false claim ends the demo with exit code 1.
"""

import argparse
import os
import shlex
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import field
from pathlib import Path
from typing import cast

import anyio
from mcp import Client, MCPError, StdioServerParameters, types

from interlock.cli.frame.edge import INTERRUPTED
from interlock.cli.render.demo_screen import ClaimError, DemoScreen, open_console
from interlock.cli.render.run_tree import LEGEND, draw_run
from interlock.cli.upkeep.clients import installed_command
from interlock.kernel.blanks import fill_in
from interlock.kernel.budgets import DEMO_SECONDS_MAX
from interlock.kernel.canonical import Json, digest_of_bytes
from interlock.kernel.descent import ISOLATED
from interlock.kernel.errors import InterlockError
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import Digest, RunId, SessionId
from interlock.record.events import AdvanceRecordedEvent, Event, parse_event
from interlock.record.manifest import SegmentClosed
from interlock.record.outcome import Blocked
from interlock.service.run.context import load_run_context
from interlock.service.run.plans import Plans
from interlock.store.opening import open_session_files, open_store
from interlock.store.ports.errors import SessionUnhealthyError
from interlock.views.run_graph import leaves, run_graph
from interlock.views.session import Session

WORKFLOW = "wr.code_review"
GOAL = "Review the change to the login form"
NOTES = {
    "scope": "Base 4f3c2a1, head 9d8e7f6 (`git diff 4f3c2a1 9d8e7f6`): 3 files, 120 lines, none left out."
    " The build and its 214 tests pass on both. Everything could be run here.",
    "intent": "Passwords can be guessed without a limit; the change locks an account after five failed logins. Before,"
    " each login checks the password. After, a locked account is refused. Invariant: a success resets the counter.",
    "correctness": "C1: login.py:41 does not reset the counter after a successful login. Trigger: four failures, one"
    " login, one failure. Expected: not locked; actual: locked. Read only.",
    "tests_and_risks": "Lock after five failures: `test_lock`. T1: no test of this change logs in after a failure."
    " One deliberate break, login.py:38: caught. Rollback: one flag.",
    "abuse": "S1: who knows a name can lock its owner out with five wrong passwords. No other surface.",
    "refute": "C1: refuted, session.py:12 resets the counter on every success. Ran: four failures, one login, 0 left."
    " T1: confirmed, nit. S1: question for the author.",
    "verdict": "Clean, valid for 9d8e7f6: no finding blocks the merge. A test of the reset would be welcome (T1)."
    " Question: is a lock by a stranger acceptable (S1)? Everything was read.",
}
"""The notes of the demo's agent, by step: as long as the workflow demands."""
VERDICT: dict[str, Json] = {"confidence": "high", "verdict": "clean", "findings": []}
"""What the agent of the demo writes into the artifact of the last step, besides its summary."""
OTHER_NOTES = (
    "Another base: 1a2b3c4, head 9d8e7f6 (`git diff 1a2b3c4 9d8e7f6`): 5 files, 190 lines. The change is larger than it"
    " seemed. The build and its 214 tests pass on both."
)

_EXPECTED = (InterlockError, MCPError, OSError, LookupError)
_BOOT = """
import os, runpy, sys
with open(sys.argv[1], "w") as file:
    file.write(str(os.getpid()))
sys.argv[:] = ["interlock", *sys.argv[2:]]
runpy.run_module("interlock", run_name="__main__", alter_sys=True)
"""
"""Writes the process id of the server to a file, then runs `python -m interlock`."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("--keep", action="store_true", help="keep the data directory of the demo and print its path")


def run(options: argparse.Namespace) -> int:
    """Run the demo in a directory of its own and return the exit code: 0 only if every claim was checked and holds."""
    screen = DemoScreen(open_console())
    root = Path(tempfile.mkdtemp(prefix="interlock-demo-"))
    stage = _Stage(root=root, data_dir=root / "data", screen=screen)
    exit_code, faults = 0, list[BaseException]()
    try:
        anyio.run(_play, stage)
    except* _EXPECTED as group:
        faults = _flatten(group)
    except* KeyboardInterrupt:
        exit_code = INTERRUPTED
        screen.note("Interrupted.")
    except* SystemExit:
        exit_code = 1  # rich exits when the reader closed the pipe
    finally:
        if not options.keep:
            shutil.rmtree(root, ignore_errors=True)
    for fault in faults:
        screen.failed(fault)
    if options.keep:
        screen.note(f"The data directory is kept: {stage.data_dir}")
        screen.command("Read the run", _command("--data-dir", str(stage.data_dir), "session", "report"))
    elif not faults and exit_code == 0:
        screen.command("Keep the run of a demo, and print how to read it", _command("demo", "--keep"))
    return 1 if faults else exit_code


def _command(*arguments: str) -> str:
    """Return a command of this Interlock, which needs no path if the terminal finds it by its name."""
    found, program = shutil.which("interlock"), installed_command()
    is_named = found is not None and [str(Path(found).absolute())] == program
    return shlex.join(["interlock" if is_named else program[0], *program[1:], *arguments])


def _flatten(error: BaseException) -> list[BaseException]:
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    return [single for part in cast("tuple[BaseException, ...]", error.exceptions) for single in _flatten(part)]


@frozen
class Response:
    """One answer as data and as text, with the arguments of its call."""

    sent: dict[str, Json]
    structure: dict[str, Json]
    text: str

    def __getitem__(self, name: str) -> Json:
        return self.structure[name]

    def part(self, name: str) -> dict[str, Json]:
        """Return an object of the answer."""
        return cast("dict[str, Json]", self.structure[name])

    @property
    def ack(self) -> Json:
        """The `ackToken` of the next call."""
        return cast("dict[str, Json]", self.part("nextCall")["arguments"])["ackToken"]

    def next_call(self) -> dict[str, Json]:
        """Return the arguments of `nextCall` with the notes of the pending step filled in."""
        notes = NOTES.get(str(self.part("pending")["stepId"]), "Done as asked.")
        call = self.part("nextCall")
        arguments, fill = cast("dict[str, Json]", call["arguments"]), cast("list[dict[str, Json]]", call["fill"])
        return fill_in(arguments, fill, lambda blank: VERDICT.get(str(blank["path"]).rpartition(".")[2], notes))

    def summary(self) -> str:
        """Return the kind of the answer and the current step."""
        return f"{self['kind']} · {self.place()}"

    def place(self) -> str:
        """Return the current step of the run, or `complete`."""
        if self["isComplete"] is True:
            return "complete"
        step = cast("dict[str, Json]", self.part("run")["step"])
        return f"step {step['number']} of {step['total']}: {self.part('pending')['title']}"


@frozen
class _Stage:
    """The directory of the demo: the workspace of the server, with its data directory inside."""

    root: Path
    data_dir: Path
    screen: DemoScreen
    acked: set[str] = field(default_factory=set[str])
    """Every ackToken that was sent. Each makes one attempt, however often it is sent."""

    def files(self) -> dict[str, bytes]:
        """Return the bytes of every recorded file. Settled marks and live servers hold no record."""
        without_records = {"settled", "live"}
        files = (path for path in self.data_dir.rglob("*") if path.is_file())
        return {str(path): path.read_bytes() for path in files if without_records.isdisjoint(path.parts)}

    @asynccontextmanager
    async def server(self) -> AsyncGenerator["_Server"]:
        """Start a server process and connect the SDK's client to it."""
        pid_file = self.root / "server.pid"
        own = {name: value for name, value in os.environ.items() if not name.startswith("INTERLOCK_")}
        parameters = StdioServerParameters(
            command=sys.executable,
            args=[ISOLATED, "-c", _BOOT, str(pid_file), "serve", "--data-dir", str(self.data_dir)],
            env=own | {"INTERLOCK_WORKFLOWS_DIR": str(self.root / "none"), "INTERLOCK_WORKSPACE": str(self.root)},
            cwd=self.root,
        )
        with anyio.fail_after(DEMO_SECONDS_MAX):
            async with Client(parameters) as client:
                yield _Server(client=client, process_id=int(pid_file.read_text()), stage=self)


@frozen
class _Server:
    """A running server process and the client that talks to it."""

    client: Client
    process_id: int
    stage: _Stage

    async def call(self, tool: str, arguments: dict[str, Json]) -> Response:
        """Print a call, send it, and return its answer."""
        self.stage.screen.sent(tool, arguments)
        if "ackToken" in arguments:
            self.stage.acked.add(str(arguments["ackToken"]))
        result = await self.client.call_tool(tool, arguments)
        text = "\n".join(block.text for block in result.content if isinstance(block, types.TextContent))
        if result.is_error:
            raise ClaimError(f"{tool} returned an error: {text}")
        structure = cast("dict[str, Json]", result.structured_content or {})
        return Response(sent=arguments, structure=structure, text=text)

    async def continue_run(self, arguments: dict[str, Json]) -> Response:
        return await self.call("continue_workflow", arguments)

    def kill(self) -> None:
        """Send SIGKILL to the server, and to nothing else."""
        if hasattr(os, "waitid"):
            # Raises if the process is not our child any more: its id may then belong to another process.
            os.waitid(os.P_PID, self.process_id, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        os.kill(self.process_id, signal.SIGKILL)


@frozen
class _Log:
    """A session read from disk and verified by a new store, with the bytes of its segments."""

    session: Session
    segments: list[tuple[SegmentClosed, bytes]]
    events: list[Event]
    attempts: int


def _read_log(data_dir: Path, session_id: SessionId) -> _Log:
    """Read a session from disk."""
    session = open_store(data_dir).load(session_id)
    if session is None:
        raise ClaimError("the session is on disk")
    segments = [(record, path.read_bytes()) for record, path in open_session_files(data_dir, session_id).segments()]
    events = [parse_event(line) for _, data in segments for line in data.splitlines()]
    attempts = sum(isinstance(event, AdvanceRecordedEvent) for event in events)
    return _Log(session=session, segments=segments, events=events, attempts=attempts)


@frozen
class _Killed:
    """State at the kill of the first server: the answers received, and a call whose answer may be lost."""

    session: SessionId
    run: RunId
    first: Response
    last: Response
    lost: dict[str, Json]
    late: Response | None
    is_recorded: bool


async def _play(stage: _Stage) -> None:
    began = time.monotonic()
    killed = await _work_until_killed(stage)
    async with stage.server() as server:
        here = await _repeat_the_lost_call(stage, server, killed)
        await _read_state(stage, server, here)
        end = await _send_weak_evidence_and_finish(stage, server, killed, here)
        branch = await _fork(stage, server, killed, end)
    _draw_run(stage, killed, _verify(stage, killed), branch)
    claims, seconds = len(stage.screen.claims), time.monotonic() - began
    stage.screen.note(f"{claims} claims checked, all of them hold. It took {seconds:.1f} s.")
    register = _command("doctor", "--client", "claude-code")
    stage.screen.command("Next, print how to register the server in a client", register)


async def _work_until_killed(stage: _Stage) -> _Killed:
    screen = stage.screen
    async with stage.server() as server:
        screen.act(
            "1  An agent starts a workflow", "The answer contains the first step and the exact call to send next."
        )
        first = await server.call("start_workflow", {"workflowId": WORKFLOW, "goal": GOAL})
        _show_step(screen, first)
        screen.claim("the answer contains the first step", holds=first.place().startswith("step 1 "))
        screen.act("2  The agent reports steps", "Each report contains notes; each answer contains the next step.")
        second = await server.continue_run(first.next_call())
        _show_step(screen, second)
        third = await server.continue_run(second.next_call())
        _show_step(screen, third)
        session, run = SessionId(str(first.part("run")["sessionId"])), RunId(str(first.part("run")["runId"]))
        attempts = _read_log(stage.data_dir, session).attempts
        screen.claim("the log on disk contains both reports, each once", holds=attempts == len(stage.acked))
        screen.act("3  kill -9, in the middle of a call", "SIGKILL is sent as the record of the call reaches the log.")
        lost = third.next_call()
        late = await _kill_in_a_call(server, session, lost)
    screen.claim(f"process {server.process_id} is gone", holds=_is_gone(server.process_id))
    is_recorded = _read_log(stage.data_dir, session).attempts > attempts
    where = (
        "the complete report of the killed call"
        if is_recorded
        else "everything before the killed call, and nothing of it"
    )
    screen.note(f"The log, read again from disk, contains {where}.")
    return _Killed(session=session, run=run, first=first, last=third, lost=lost, late=late, is_recorded=is_recorded)


def _show_step(screen: DemoScreen, response: Response) -> None:
    _check_accepted(response)
    screen.received(response.summary(), str(response.part("pending")["prompt"]).partition("\n")[0])


def _check_accepted(response: Response) -> None:
    """Stop at a report that was refused: the notes of the demo do not fit the workflow.

    Raises:
        ClaimError: It was refused.
    """
    if response["kind"] != "ok":
        raise ClaimError(f"the report is accepted; instead: {response['blockers']}")


async def _kill_in_a_call(server: _Server, session: SessionId, arguments: dict[str, Json]) -> Response | None:
    """Send a call and kill the server when the log grows; return the answer only if it was faster."""
    files, screen = open_session_files(server.stage.data_dir, session), server.stage.screen
    before = files.log_bytes()
    answers: list[Response] = []

    async def ask() -> None:
        try:
            answers.append(await server.continue_run(arguments))
        except MCPError as error:
            if error.code != types.CONNECTION_CLOSED:
                raise
            screen.note(f"no answer: {error.message}", mark="✗")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        while files.log_bytes() == before:
            await anyio.lowlevel.checkpoint()
        server.kill()
        screen.note(f"SIGKILL to server process {server.process_id}", mark="✗")
    for answer in answers:
        screen.received(answer.summary(), "This answer came just before the server died.")
    return answers[0] if answers else None


def _is_gone(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return True
    return False


async def _repeat_the_lost_call(stage: _Stage, server: _Server, killed: _Killed) -> Response:
    """Send the lost call twice, then a call whose answer was received before the crash."""
    screen = stage.screen
    screen.act("4  A new server continues", f"Process {server.process_id}. The agent sends the same call again.")
    before = stage.files()
    response = await server.continue_run(killed.lost)
    _show_step(screen, response)
    is_unchanged = stage.files() == before
    if killed.is_recorded:
        screen.claim("the answer is the recorded one: no byte on disk changed", holds=is_unchanged)
    else:
        screen.claim("the call was not recorded; now it is", holds=not is_unchanged)
    if killed.late is not None:
        screen.claim("the answer equals the answer from before the kill", holds=response == killed.late)
    again = await server.continue_run(killed.lost)
    screen.claim("the same call again: the answer is identical", holds=again == response)
    older = await server.continue_run(killed.last.sent)
    screen.received(older.summary())
    screen.claim("an older call: the answer is the one of the killed server", holds=older == killed.last)
    attempts, sent = _read_log(stage.data_dir, killed.session).attempts, len(stage.acked)
    screen.claim(f"{sent} steps reported, {attempts} recorded: none lost, none recorded twice", holds=attempts == sent)
    return response


async def _read_state(stage: _Stage, server: _Server, here: Response) -> None:
    """Rehydrate: read the state of the run with only a stateToken, as a new chat does."""
    screen = stage.screen
    screen.act(
        "5  A new chat reads the state", "It has only a stateToken. The answer reports what was done; nothing changes."
    )
    before = stage.files()
    state = await server.continue_run({"stateToken": here["stateToken"]})
    recap = str(state["recap"])
    screen.received(state.summary(), *(line for line in recap.splitlines() if line))
    steps = [cast("dict[str, Json]", answer["pending"]) for answer in (state, here)]
    calls = [cast("dict[str, Json]", answer["nextCall"]) for answer in (state, here)]
    is_same = steps[0]["prompt"] == steps[1]["prompt"] and all(
        calls[0][member] == calls[1][member] for member in ("tool", "arguments")
    )
    screen.claim("the answer has the same step and the same next call", holds=is_same)
    notes = [NOTES[step] for step in ("scope", "intent", "correctness")]
    screen.claim(
        "the recap contains all notes, also those of the killed call", holds=all(note in recap for note in notes)
    )
    again = await server.continue_run(state.sent)
    screen.claim(
        "a second read gives the same answer; both wrote nothing", holds=again == state and stage.files() == before
    )


async def _send_weak_evidence_and_finish(stage: _Stage, server: _Server, killed: _Killed, here: Response) -> Response:
    screen = stage.screen
    screen.act("6  Weak evidence is refused", "A report without notes. The answer says what is missing.")
    refused = await server.continue_run({"ackToken": here.ack, "run": here.part("run")["label"]})
    screen.received(refused.summary())
    blockers = cast("list[dict[str, Json]]", refused["blockers"])
    for blocker in blockers:
        screen.note(f"{blocker['code']}: {blocker['message']} {blocker['suggestedFix']}", mark="!")
    steps = [cast("dict[str, Json]", answer["pending"])["stepId"] for answer in (refused, here)]
    is_kept = refused["kind"] == "blocked" and steps[0] == steps[1]
    screen.claim("the attempt is refused, the pending step is the same", holds=is_kept)
    advances = _read_log(stage.data_dir, killed.session).session.advances.values()
    refusals = [one.outcome.blockers.to_json()["blockers"] for one in advances if isinstance(one.outcome, Blocked)]
    screen.claim("the refusal is recorded with the same reasons", holds=refusals == [blockers])
    screen.act(
        "7  The agent completes the run", "Each call is the `nextCall` of the last answer, with the notes filled in."
    )
    response = refused
    while response["nextCall"] is not None:
        response = await server.continue_run(response.next_call())
        _check_accepted(response)
        screen.received(response.summary())
    screen.claim("the run is complete", holds=response["isComplete"] is True)
    return response


async def _fork(stage: _Stage, server: _Server, killed: _Killed, end: Response) -> Response:
    """Redo the first step on a branch, continue there, and return the last answer of the branch."""
    screen = stage.screen
    screen.act(
        "8  The agent redoes an old step",
        "It sends the first stateToken. The answer reports the state and offers a fork.",
    )
    state = await server.continue_run({"stateToken": killed.first["stateToken"]})
    screen.received(
        state.summary(), state.text.partition("\n")[0].rpartition(" · ")[2], str(state.part("fork")["note"])
    )
    screen.claim("the answer for a finished step has no ordinary ackToken", holds="ackToken" not in state.structure)
    branch = await server.continue_run(
        {"ackToken": state.part("fork")["ackToken"], "output": {"notesMarkdown": OTHER_NOTES}}
    )
    _show_step(screen, branch)
    branch = await server.continue_run(branch.next_call())
    _show_step(screen, branch)
    recap = str((await server.continue_run({"stateToken": branch["stateToken"]}))["recap"])
    is_own = OTHER_NOTES in recap and NOTES["scope"] not in recap
    screen.claim("the branch contains the new notes of that step, not the old ones", holds=is_own)
    untouched = await server.continue_run({"stateToken": end["stateToken"]})
    screen.received(untouched.summary())
    is_untouched = untouched["isComplete"] is True and NOTES["scope"] in str(untouched["recap"])
    screen.claim("the other branch is still complete, with its own notes", holds=is_untouched)
    return branch


def _verify(stage: _Stage, killed: _Killed) -> _Log:
    """Read the log from disk and verify it, then show that a changed bit is detected."""
    screen, log = stage.screen, _read_log(stage.data_dir, killed.session)
    screen.act("9  The log, verified from disk", "A new reader, no server. It reads and hashes every file again.")
    is_hashed, count = all(digest_of_bytes(data) == record.sha256 for record, data in log.segments), len(log.segments)
    screen.claim(f"{count} segments, {count} groups of manifest lines: every sha256 is right", holds=is_hashed)
    numbers = [event.event_index for event in log.events]
    is_gapless = numbers == list(range(len(numbers))) and log.session.next_index == len(numbers)
    is_single = len({event.dedupe_key for event in log.events}) == len(numbers)
    screen.claim(f"{len(numbers)} events: no gap in their numbers, no dedupe key twice", holds=is_gapless and is_single)
    is_counted = log.attempts == len(stage.acked)
    screen.claim(f"{log.attempts} attempts recorded, one for every ackToken that was sent", holds=is_counted)
    files, pinned = open_session_files(stage.data_dir, killed.session), log.session.runs[killed.run].workflow_hash
    refs: dict[Path, Digest] = {files.snapshot(node.snapshot): node.snapshot for node in log.session.nodes.values()}
    refs[files.pinned_workflow(pinned)] = pinned
    is_named = all(digest_of_bytes(path.read_bytes()) == ref for path, ref in refs.items())
    screen.claim(f"{len(refs) - 1} snapshots and the pinned workflow: each is named by its sha256", holds=is_named)
    screen.claim(f"a copy with one bit flipped is refused: {_check_flipped_bit(stage, killed)}", holds=True)
    return log


def _check_flipped_bit(stage: _Stage, killed: _Killed) -> str:
    """Flip one bit in a copy of the data, and return the error of reading it."""
    copy = stage.root / "flipped"
    shutil.copytree(stage.data_dir, copy)
    _, path = open_session_files(copy, killed.session).segments()[1]
    data = path.read_bytes()
    at = len(data) // 2
    path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    try:
        _read_log(copy, killed.session)
    except SessionUnhealthyError as error:
        return f"{error.health.value}, {error.where}: {error.found}"
    finally:
        shutil.rmtree(copy)
    raise ClaimError("a copy with one bit flipped is refused")


def _draw_run(stage: _Stage, killed: _Killed, log: _Log, branch: Response) -> None:
    screen = stage.screen
    screen.act("10  The run, drawn from the log", LEGEND)
    graph = run_graph(log.session, killed.run)
    run_context = load_run_context(log.session, log.session.runs[killed.run], Plans(open_store(stage.data_dir)))
    title = f"{run_context.workflow.name} · run {run_context.view().label} · {GOAL}"
    screen.console.print(draw_run(graph, title, run_context.title))
    ends = [(run_context.title(leaf.node), leaf.is_tip) for leaf in leaves(graph)]
    expected = {("Complete", False), (str(branch.part("pending")["title"]), True)}
    screen.claim("two branches; the run prefers the branch with the latest step", holds=set(ends) == expected)
