"""Real load on real servers: agents that work through runs over SDK clients while their servers are disturbed.

A `Post` is a place where a server process runs behind an SDK client; killed or terminated, it starts the next one; a
server may also be stopped for a moment in whatever it does. An `Agent` starts runs and works through them, sending a
call that got no answer again until one comes. What agents sent and the answers they got are in a `Journal`, to be
compared with the log afterwards.
"""

import json
import os
import random
import signal
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, cast

import anyio
from mcp import Client, StdioServerParameters, types
from mcp.shared.exceptions import MCPError
from tests.support.words import fresh_notes

from interlock.kernel.canonical import Json
from interlock.kernel.errors import ErrorCode, InterlockError

Era = Literal["auto", "legacy"]
"""The SDK client's mode: `auto` speaks to us without a handshake (2026-07-28), `legacy` with one (2025-11-25)."""

NOTES = "- did what the step asks and checked it\n- produced: src/login.py, 14 lines\n- left out: nothing\n"
"""Evidence of ordinary size."""


def linear_workflow(workflow_id: str, steps: int) -> dict[str, Json]:
    """Return a workflow document of that many plain steps, each with a prompt of ordinary size."""
    prompt = "Read what the last step left, do this step's share of the work, check it, and say what came of it. " * 4
    return {
        "id": workflow_id,
        "name": f"{steps} steps",
        "description": "Made for a load test.",
        "steps": [
            {"id": f"step-{number}", "title": f"Step {number}", "prompt": prompt} for number in range(1, steps + 1)
        ],
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A data directory and a workspace below one temporary directory. Nothing outside it is read or written."""

    root: Path

    @property
    def data_dir(self) -> Path:
        """Where the servers keep sessions."""
        return self.root / "data"

    def add_workflow(self, document: Mapping[str, Json]) -> None:
        """Put a workflow document into the workspace's own source."""
        directory = self.root / ".interlock" / "workflows"
        directory.mkdir(parents=True, exist_ok=True)
        (directory / f"{document['id']}.json").write_text(json.dumps(document), encoding="utf-8")

    def command(self) -> list[str]:
        """Return the command that serves this site over stdio."""
        places = ["--data-dir", str(self.data_dir), "--workspace", str(self.root)]
        return [sys.executable, "-m", "interlock", "serve", *places]

    def environment(self) -> dict[str, str]:
        """Return what a server's environment must say so that it reads no workflow of the user's."""
        return {"INTERLOCK_WORKFLOWS_DIR": str(self.root / "no-workflows")}


class SendAgainError(InterlockError):
    """The same call has to be sent again: its server was killed, or its session was locked for too long."""


class UnexpectedAnswerError(InterlockError):
    """A server ended by itself, or refused a call that is lawful: a fault of ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A tool call."""

    tool: str
    arguments: Mapping[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """An answer that reached the client, in both channels."""

    call: Sent
    structure: Mapping[str, Json]
    text: str

    def next_call(self) -> Sent | None:
        """Return the call that the answer asks for, with notes filled in; None at the end of the run."""
        offered = self.structure["nextCall"]
        if not isinstance(offered, dict):
            return None
        arguments = dict(cast("dict[str, Json]", offered["arguments"]))
        if offered["fill"]:
            arguments["output"] = {"notesMarkdown": fresh_notes(NOTES)}
        return Sent(tool=str(offered["tool"]), arguments=arguments)


@dataclass(slots=True, kw_only=True)
class Journal:
    """What the agents of one load test sent, and the answers. Belongs to one event loop."""

    sent: list[Sent] = field(default_factory=list[Sent])
    heard: list[Heard] = field(default_factory=list[Heard])
    repeated: int = 0
    _awaited: tuple[int, anyio.Event] | None = None

    def note_sent(self, call: Sent) -> None:
        """Record a call that is about to be written to a server."""
        self.sent.append(call)
        if self._awaited is not None and len(self.sent) >= self._awaited[0]:
            self._awaited[1].set()

    async def await_sent(self, more: int) -> None:
        """Wait until that many further calls were sent. One waiter at a time."""
        reached = anyio.Event()
        self._awaited = (len(self.sent) + more, reached)
        await reached.wait()
        self._awaited = None


class _Life:
    """One server process: its client, its process id, and how many of its calls wait for an answer."""

    def __init__(self, client: Client, process_id: int) -> None:
        self.client = client
        self.process_id = process_id
        self.waiting = 0
        self.is_killed = False
        self.ended = anyio.Event()

    def end_when_settled(self) -> None:
        """End once every call has its answer or its loss: what was in the pipe at a kill still counts as answered."""
        if self.is_killed and not self.waiting:
            self.ended.set()


class Post:
    """A place where one server process runs behind one SDK client; after a kill, the next one."""

    def __init__(self, site: Site, era: Era, name: str) -> None:
        self._era: Era = era
        self._pid_file = site.root / f"{name}.pid"
        # The shell says its process id and becomes the server, so the id is the server's.
        say_id = 'echo $$ > "$0" && exec "$@"'
        self._parameters = StdioServerParameters(
            command="sh", args=["-c", say_id, str(self._pid_file), *site.command()], env=site.environment()
        )
        self._life: _Life | None = None
        self._up = anyio.Event()
        self._is_closed = False

    @property
    def is_up(self) -> bool:
        """Say whether a server runs that may be killed."""
        return self._life is not None

    async def serve(self) -> None:
        """Keep a server running, one after another, until `close`."""
        while not self._is_closed:
            async with Client(self._parameters, mode=self._era) as client:
                life = _Life(client, int(self._pid_file.read_text(encoding="ascii")))
                self._life = life
                self._up.set()
                await life.ended.wait()

    async def call(self, call: Sent, journal: Journal) -> Heard:
        """Send a call to the server that runs here, waiting for one if need be.

        Raises:
            SendAgainError: The server was killed before it answered; whether it recorded the call is unknown.
            UnexpectedAnswerError: The server ended by itself, or refused the call for good.
        """
        while self._life is None:
            await self._up.wait()
        life = self._life
        life.waiting += 1
        journal.note_sent(call)
        try:
            result = await life.client.call_tool(call.tool, dict(call.arguments))
        except MCPError as error:
            if error.code != types.CONNECTION_CLOSED or not life.is_killed:
                raise UnexpectedAnswerError(f"{call.tool}: {error.message}") from error
            raise SendAgainError(call.tool) from error
        finally:
            life.waiting -= 1
            life.end_when_settled()
        heard = heard_of(call, result)
        journal.heard.append(heard)
        return heard

    def end(self, by: signal.Signals) -> None:
        """End the server that runs here by a signal. Calls sent from now on wait for the next one."""
        life, self._life, self._up = self._life, None, anyio.Event()
        assert life is not None, "only a server that runs is ended"
        life.is_killed = True
        _send(life, by)
        life.end_when_settled()

    async def pause(self, seconds: float) -> None:
        """Stop the server that runs here for a moment, in whatever it is doing."""
        life = self._life
        assert life is not None, "only a server that runs is stopped"
        _send(life, signal.SIGSTOP)
        try:
            await anyio.sleep(seconds)
        finally:
            _send(life, signal.SIGCONT)

    def close(self) -> None:
        """Let the server that runs here go in peace, and start no other."""
        self._is_closed = True
        if self._life is not None:
            self._life.ended.set()


def _send(life: _Life, by: signal.Signals) -> None:
    # Fails unless the process is a child of ours that nobody has waited for: no other can be hit.
    os.waitid(os.P_PID, life.process_id, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    os.kill(life.process_id, by)


def heard_of(call: Sent, result: types.CallToolResult) -> Heard:
    """Return an execution answer as it was heard.

    Raises:
        SendAgainError: Another process held the session's lock for too long.
        UnexpectedAnswerError: It is any other refusal.
    """
    structure = cast("dict[str, Json]", result.structured_content or {})
    text = "\n".join(block.text for block in result.content if isinstance(block, types.TextContent))
    if not result.is_error:
        return Heard(call=call, structure=structure, text=text)
    if structure["code"] != ErrorCode.TOKEN_SESSION_LOCKED:
        raise UnexpectedAnswerError(f"{call.tool}: {text}")
    raise SendAgainError(text)


@dataclass(slots=True, kw_only=True)
class Habits:
    """How an agent behaves: seeded, so that its choices can be made again."""

    seed: int
    workflow_id: str
    refused_share: float = 0.15
    """How often it sends no notes and has to send them after all."""
    rehydrate_share: float = 0.1
    """How often it asks where it stands before it goes on."""
    twin_share: float = 0.2
    """How often it sends one call to two servers at once."""
    shared_session_share: float = 0.3
    """How often its next run is in a session that another agent began."""


class Agent:
    """Starts runs and works through them over whichever server is there."""

    def __init__(self, posts: Sequence[Post], journal: Journal, habits: Habits) -> None:
        self._posts = posts
        self._journal = journal
        self._habits = habits
        self._random = random.Random(habits.seed)

    async def work(self, is_enough: Callable[[], bool]) -> None:
        """Work through one run after another; the last one is finished after it is enough.

        Raises:
            UnexpectedAnswerError: See `Post.call`.
        """
        while not is_enough():
            heard = await self._ask(self._start())
            while (call := heard.next_call()) is not None:
                if self._does(self._habits.rehydrate_share):
                    looked = Sent(tool=call.tool, arguments={"stateToken": heard.structure["stateToken"]})
                    call = (await self._ask(looked)).next_call() or call
                if self._does(self._habits.refused_share):
                    bare = {name: value for name, value in call.arguments.items() if name != "output"}
                    call = (await self._ask(Sent(tool=call.tool, arguments=bare))).next_call() or call
                heard = await self._acked(call)

    def _does(self, share: float) -> bool:
        return self._random.random() < share

    def _start(self) -> Sent:
        arguments: dict[str, Json] = {"workflowId": self._habits.workflow_id, "goal": f"Load {self._habits.seed}"}
        sessions = [heard.structure["run"] for heard in self._journal.heard if heard.call.tool == "start_workflow"]
        if sessions and self._does(self._habits.shared_session_share):
            run = cast("dict[str, Json]", self._random.choice(sessions))
            arguments["sessionId"] = run["sessionId"]
        return Sent(tool="start_workflow", arguments=arguments)

    async def _acked(self, call: Sent) -> Heard:
        """Ack a step; some are sent twice at once, and both answers are the same fact."""
        if len(self._posts) == 1 or not self._does(self._habits.twin_share):
            return await self._ask(call)
        both: list[Heard] = []

        async def ask(post: Post) -> None:
            both.append(await self._ask(call, post))

        async with anyio.create_task_group() as twins:
            for post in self._random.sample(self._posts, 2):
                twins.start_soon(ask, post)
        return both[0]

    async def _ask(self, call: Sent, post: Post | None = None) -> Heard:
        """Send a call until it is answered; a repetition goes to whichever server is next."""
        while True:
            try:
                return await (post or self._random.choice(self._posts)).call(call, self._journal)
            except SendAgainError:
                self._journal.repeated += 1
                post = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Disturbances:
    """How often, how, and how long after a call was sent, a server is disturbed. Seeded."""

    seed: int
    count: int
    kinds: tuple[signal.Signals, ...] = (signal.SIGKILL, signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM)
    """Which signals, each as often as it is named; a stopped server continues after a moment."""
    sent_between: tuple[int, int] = (2, 40)
    """Fewest and most calls between two of them."""
    seconds_after: float = 0.012
    """Longest time from the last of these calls to the signal: about what a few advances take."""
    seconds_stopped: float = 0.1
    """Longest time for which a server is stopped."""


async def _nothing() -> None:
    """Do nothing after a disturbance."""


async def disturb_under_load(
    posts: Sequence[Post], journal: Journal, plan: Disturbances, after_each: Callable[[], Awaitable[None]] = _nothing
) -> Counter[signal.Signals]:
    """Disturb servers while their clients wait for answers; return how often each signal was sent."""
    chance, done = random.Random(plan.seed), Counter[signal.Signals]()
    for _ in range(plan.count):
        await journal.await_sent(chance.randint(*plan.sent_between))
        await anyio.sleep(chance.uniform(0, plan.seconds_after))
        while not (running := [post for post in posts if post.is_up]):
            await journal.await_sent(1)
        post, how = chance.choice(running), chance.choice(plan.kinds)
        if how is signal.SIGSTOP:
            await post.pause(chance.uniform(0, plan.seconds_stopped))
        else:
            post.end(how)
        done[how] += 1
        await after_each()
    return done
