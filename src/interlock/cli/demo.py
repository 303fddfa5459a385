"""`interlock demo`: a real client, a real server process, a real SIGKILL, a real log. Nothing is faked.

Every claim that is printed is checked first; one that does not hold ends the demo with exit code 1.
"""

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import anyio
from mcp import Client, StdioServerParameters, types
from mcp.shared.exceptions import MCPError
from rich.console import Console

from interlock.cli.graph import draw_run
from interlock.kernel.canonical import Json
from interlock.kernel.errors import InterlockError
from interlock.kernel.ids import RunId, SessionId
from interlock.record.events import AdvanceRecordedEvent, parse_event
from interlock.service.plans import Plans
from interlock.service.words import scene_of
from interlock.store.local import layout
from interlock.store.local.store import LocalStore
from interlock.views.run_graph import leaves, run_graph

WORKFLOW = "wr.code_review"
GOAL = "Review the change to the login form"
_SHOWN_LINES = 2


class ClaimError(InterlockError):
    """What the demo says does not hold."""


def claim(holds: bool, words: str) -> None:  # noqa: FBT001 — reads as the sentence it checks
    """Go on only if a claim holds.

    Raises:
        ClaimError: It does not.
    """
    if not holds:
        raise ClaimError(words)


def run_demo(*, keep: bool) -> int:
    """Run the demo in a directory of its own and return the exit code."""
    console = Console(highlight=False)
    root = Path(tempfile.mkdtemp(prefix="interlock-demo-"))
    try:
        anyio.run(_play, _Stage(root=root, console=console))
    except ClaimError as error:
        console.print(f"[bold red]This does not hold:[/] {error}")
        return 1
    finally:
        if keep:
            console.print(f"Kept: {root}")
        else:
            shutil.rmtree(root, ignore_errors=True)
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """One answer, as data and as text."""

    structure: dict[str, Json]
    text: str

    @property
    def next_arguments(self) -> dict[str, Json]:
        """The arguments of the call that the answer says comes next."""
        return cast("dict[str, dict[str, Json]]", self.structure["nextCall"])["arguments"]

    def noted(self, notes: str) -> dict[str, Json]:
        """Return the next call with notes filled in."""
        return {**self.next_arguments, "output": {"notesMarkdown": notes}}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stage:
    """Where the demo plays."""

    root: Path
    console: Console

    @property
    def data_dir(self) -> Path:
        return self.root / "data"

    def act(self, title: str) -> None:
        self.console.print(f"\n[bold cyan]{title}[/]")

    def say(self, words: str) -> None:
        self.console.print(f"  {words}", soft_wrap=True)

    def show(self, heard: Heard) -> None:
        for line in heard.text.split("\n\n")[:_SHOWN_LINES]:
            self.console.print(f"  [dim]│ {line.splitlines()[0][:150]}[/]", soft_wrap=True, markup=True)

    @asynccontextmanager
    async def server(self) -> AsyncGenerator["_Server"]:
        """Start a server process of our own and know its id: the shell says its id and becomes the server."""
        pid_file = self.root / "server.pid"
        pid_file.unlink(missing_ok=True)
        serve = [sys.executable, "-m", "interlock", "serve", "--data-dir", str(self.data_dir)]
        parameters = StdioServerParameters(
            command="sh",
            args=["-c", 'echo $$ > "$0" && exec "$@"', str(pid_file), *serve],
            env=os.environ
            | {"INTERLOCK_WORKFLOWS_DIR": str(self.root / "none"), "INTERLOCK_WORKSPACE": str(self.root)},
            cwd=self.root,
        )
        with anyio.fail_after(60):
            async with Client(parameters) as client:
                yield _Server(client=client, process_id=int(pid_file.read_text(encoding="ascii")))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Server:
    """A running server process and the client that talks to it."""

    client: Client
    process_id: int

    async def call(self, tool: str, arguments: dict[str, Json]) -> Heard:
        result = await self.client.call_tool(tool, arguments)
        text = "\n".join(block.text for block in result.content if isinstance(block, types.TextContent))
        claim(not result.is_error, text)
        return Heard(structure=cast("dict[str, Json]", result.structured_content or {}), text=text)

    async def ack(self, arguments: dict[str, Json]) -> Heard:
        return await self.call("continue_workflow", arguments)


async def _play(stage: _Stage) -> None:
    first, lost = await _work_until_killed(stage)
    last = await _go_on_after_the_crash(stage, lost)
    await _fork(stage, first)
    _verify(stage, first, last)


async def _work_until_killed(stage: _Stage) -> tuple[Heard, dict[str, Json]]:
    """Start, advance twice, and lose the third answer to a SIGKILL; return the first answer and the lost call."""
    async with stage.server() as server:
        stage.act("1  An agent starts a workflow")
        first = await server.call("start_workflow", {"workflowId": WORKFLOW, "goal": GOAL})
        stage.say(f"start_workflow {WORKFLOW}, server process {server.process_id}")
        stage.show(first)
        stage.act("2  It works: each step comes back with notes, each answer brings the next step")
        heard = first
        for notes in ("Base 4f3c2a1, head 9d8e7f6; 3 files, 120 lines.", "It adds a lock-out after five failures."):
            call = heard.noted(notes)
            heard = await server.ack(call)
            stage.say(f"continue_workflow, notes: {notes!r}")
            stage.show(heard)
        again = await server.ack(call)
        claim(again == heard, "a repeated call is answered as the first time")
        stage.say("The same call once more: the same answer, byte for byte, and nothing is written.")
        lost = heard.noted("Found: the counter is not reset on success (login.py:41).")
        stage.act("3  kill -9, in the middle of a call")
        is_answered = await _killed_in_a_call(server, lost)
        stage.say(f"SIGKILL to process {server.process_id}; the answer was {'late' if is_answered else 'lost'}.")
    return first, lost


async def _killed_in_a_call(server: _Server, arguments: dict[str, Json]) -> bool:
    """Send a call and kill the server while it works on it; say whether an answer came all the same."""
    is_answered = False

    async def ask() -> None:
        nonlocal is_answered
        try:
            await server.ack(arguments)
        except MCPError:
            return
        is_answered = True

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await anyio.sleep(0.002)
        _kill(server.process_id)
    return is_answered


def _kill(process_id: int) -> None:
    # Fails unless the process is a child of ours that nobody has waited for: no other can be hit.
    os.waitid(os.P_PID, process_id, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    os.kill(process_id, signal.SIGKILL)


async def _go_on_after_the_crash(stage: _Stage, lost: dict[str, Json]) -> Heard:
    async with stage.server() as server:
        stage.act("4  A new process goes on: the agent just sends its last call again")
        heard = await server.ack(lost)
        stage.say(f"server process {server.process_id}, the same arguments")
        stage.show(heard)
        again = await server.ack(lost)
        claim(again == heard, "whatever the crash left, the call counts once")
        looked = await server.ack({"stateToken": heard.structure["stateToken"]})
        claim("counter is not reset" in str(looked.structure.get("recap")), "the notes of the killed call are kept")
        stage.say("Looking back with the stateToken shows the notes of the call that was cut off.")
        stage.act("5  Weak evidence is refused, and told how to mend")
        refused = await server.ack({"ackToken": heard.structure["ackToken"]})
        claim(refused.structure["kind"] == "blocked", "a step without notes is refused")
        blocker = cast("list[dict[str, Json]]", refused.structure["blockers"])[0]
        stage.say(f"[yellow]{blocker['code']}[/] {blocker['message']}")
        stage.act("6  On to the end")
        heard = refused
        while heard.structure["nextCall"] is not None:
            heard = await server.ack(heard.noted("Done as asked; see the branch."))
            stage.say(heard.text.splitlines()[0][:150])
        claim(heard.structure["isComplete"] is True, "the run is complete")
    return heard


async def _fork(stage: _Stage, first: Heard) -> None:
    async with stage.server() as server:
        stage.act("7  An old step is redone, on a branch of its own")
        looked = await server.ack({"stateToken": first.structure["stateToken"]})
        claim("ackToken" not in looked.structure, "a step that is done hands out no ordinary token")
        fork = cast("dict[str, str]", looked.structure["fork"])
        stage.say(f"The first step is done already; its answer offers: {fork['note']}")
        branch = await server.ack({"ackToken": fork["ackToken"], "output": {"notesMarkdown": "Another base: 1a2b3c4."}})
        stage.show(branch)


def _verify(stage: _Stage, first: Heard, last: Heard) -> None:
    """Read the whole log again from disk, with nothing remembered, and draw what it says."""
    stage.act("8  The log, read again from disk and verified")
    run = cast("dict[str, str]", first.structure["run"])
    session_id, run_id = SessionId(run["sessionId"]), RunId(run["runId"])
    store = LocalStore(stage.data_dir)
    session = store.load(session_id)
    claim(session is not None, "the session verifies")
    assert session is not None, "as just claimed"
    segments = sorted((stage.data_dir / layout.events_dir(session_id)).glob("*.jsonl"))
    events = [parse_event(line) for path in segments for line in path.read_bytes().splitlines()]
    advances = [event.dedupe_key for event in events if isinstance(event, AdvanceRecordedEvent)]
    claim(len(advances) == len(set(advances)), "no attempt is recorded twice")
    claim(len(events) == session.next_index, "every event is accounted for")
    stage.say(f"{len(segments)} segments, {len(events)} events, each digest as attested, no attempt recorded twice.")
    scene = scene_of(session, session.runs[run_id], Plans(store))
    graph = run_graph(session, run_id)
    claim(sum(1 for _ in leaves(graph)) == 2, "the fork made a second branch")  # noqa: PLR2004 — the end and the fork
    stage.console.print()
    stage.console.print(draw_run(graph, f"{scene.workflow.name} · run {run['label']} · {GOAL}", scene.title_of()))
    claim(last.structure["nextCall"] is None, "the first branch stays complete")
