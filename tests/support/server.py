"""Servers behind the SDK's client, as tests call them: in a process of their own, or in memory.

What holds of every answer (both channels stand alone, the run is named first, the schema is kept, nothing leaks) is
checked of every answer that goes through here. The client runs on an event loop of its own, so that a test reads from
top to bottom.
"""

import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Self, TypeAlias

from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, StdioServerParameters
from mcp.client import advertise
from mcp.server.lowlevel import Server as LowLevelServer
from tests.support.shown import shown_calls

from interlock.kernel.errors import ErrorCode
from interlock.server.app import build_server
from interlock.testing.harness import Era, Harness, ToolResult, call_through, filled_in, linear_workflow

BOOT = """
import ctypes, os, sys
pid_file, is_mortal, *command = sys.argv[1:]
with open(pid_file, "w") as file:
    file.write(str(os.getpid()))
if is_mortal:
    # Root passes over modes by two capabilities; out of the bounding set, they are gone with the next exec.
    for capability in (1, 2):
        ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)
os.execv(sys.executable, [sys.executable, *command])
"""
TRACE = "decision_trace_appended"
Declared: TypeAlias = Mapping[str, dict[str, Any]]
"""The extensions that a client declares, with their settings."""
NOTHING: Declared = {}
SHOWS_PAGES: Declared = {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}
"""What a host declares that shows pages in the chat."""
NUMBERS = itertools.count()
CALL_SECONDS_MAX = 300
"""How long a test waits for an answer: far longer than any call takes on a machine with much else to do."""
LEAKS = re.compile(
    r"Traceback|File \"|site-packages|pydantic|jsonschema|errors\.pydantic|\bhttps?://|\.py\b|NoneType|/tmp/|/home/|"
    + re.escape(f"{Path(__file__).resolve().parents[3]}/")
)
ABC = linear_workflow("test.abc", "a", "b", "c", tags=["demo"])
OPTIONAL = linear_workflow(
    "test.optional", "a", {"id": "b", "title": "Step b", "prompt": "Do b.", "notes": "optional"}, "c"
)
FAULTY = linear_workflow("test.faulty", {"id": "a", "titel": "A", "prompt": "Do a."})
SHADOW = linear_workflow("wr.code_review", "a", name="Not the real one")


class Served:
    """A server and a client that is connected to it. Every answer is checked for what holds of all."""

    def __init__(
        self, server: StdioServerParameters | LowLevelServer[Any], era: Era, declared: Declared = NOTHING
    ) -> None:
        self.era = era
        self._extensions = [advertise(name, settings) for name, settings in declared.items()]
        self._server = server
        self._exits = ExitStack()
        self._portal: BlockingPortal | None = None
        self.client: Client | None = None

    def __enter__(self) -> Self:
        self._portal = self._exits.enter_context(start_blocking_portal())
        connection = self._portal.wrap_async_context_manager(
            Client(self._server, mode=self.era, extensions=self._extensions)
        )
        self.client = self._exits.enter_context(connection)
        return self

    def __exit__(self, *_: object) -> None:
        self._exits.close()

    def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run a coroutine function on the client's loop."""
        assert self._portal is not None
        return self._portal.call(function, *arguments)

    def ask(self, method: str, *arguments: Any) -> Any:
        """Return what a method of the SDK's client gives."""
        return self.run(getattr(self.client, method), *arguments)

    def soon(self, tool: str, arguments: dict[str, Any]) -> "Future[ToolResult]":
        """Begin a call and return at once."""
        assert self._portal is not None
        assert self.client is not None
        return self._portal.start_task_soon(call_through, self.client, tool, arguments)

    def call(self, tool: str, **arguments: Any) -> ToolResult:
        return checked(tool, self.soon(tool, arguments).result(CALL_SECONDS_MAX))

    def start(self, workflow_id: str = "test.abc", **arguments: Any) -> ToolResult:
        return self.call("start_workflow", workflowId=workflow_id, **arguments)

    def advance(self, answer: ToolResult | str, notes: str | None = "Done.", **arguments: Any) -> ToolResult:
        """Ack an answer, or an `ackToken`, with notes; without any if they are None."""
        output = {} if notes is None else {"output": {"notesMarkdown": notes}}
        token = answer if isinstance(answer, str) else answer.ack
        return self.call("continue_workflow", ackToken=token, **(output | arguments))

    def report(
        self, answer: ToolResult | str, *artifacts: object, notes: str | None = None, **arguments: Any
    ) -> ToolResult:
        """Ack an answer, or an `ackToken`, with artifacts."""
        output = {"artifacts": list(artifacts)} | ({} if notes is None else {"notesMarkdown": notes})
        return self.advance(answer, None, output=output, **arguments)

    def rehydrate(self, answer: ToolResult | str, **arguments: Any) -> ToolResult:
        token = answer if isinstance(answer, str) else answer.state
        return self.call("continue_workflow", stateToken=token, **arguments)

    def follow(self, answer: ToolResult, notes: str = "Done.") -> ToolResult:
        return self.call(answer["nextCall"]["tool"], **filled_in(answer, notes))

    def fork(self, answer: ToolResult, notes: str = "Otherwise.", **arguments: Any) -> ToolResult:
        """Redo a step that is done, with the token that looking at it offers."""
        return self.advance(self.rehydrate(answer)["fork"]["ackToken"], notes, **arguments)


class Server(Served):
    """A server in a process of its own, over stdio."""

    def __init__(
        self,
        data_dir: Path,
        workspace: Path,
        era: Era = "auto",
        *,
        is_mortal: bool = False,
        environment: Mapping[str, str] | None = None,
        declared: Declared = NOTHING,
    ) -> None:
        self.data_dir = data_dir
        self._pid_file = workspace.parent / f"server-{next(NUMBERS)}.pid"
        boot = [str(self._pid_file), "mortal" if is_mortal else "", "-m", "interlock"]
        arguments = [*boot, "--data-dir", str(data_dir), "--workspace", str(workspace)]
        own = {"INTERLOCK_WORKFLOWS_DIR": str(workspace / "none"), "INTERLOCK_LOG_LEVEL": "CRITICAL"}
        parameters = StdioServerParameters(
            command=sys.executable,
            args=["-c", BOOT, *arguments],
            env={**own, **(environment or {})},
            cwd=str(workspace),
        )
        super().__init__(parameters, era, declared)

    def __exit__(self, *arguments: object) -> None:
        # A killed process leaves a client that may complain of it while it closes.
        with suppress(Exception):
            super().__exit__(*arguments)
        self._pid_file.unlink(missing_ok=True)

    @property
    def pid(self) -> int:
        """The id of the server's process."""
        return int(self._pid_file.read_text())

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


class InMemory(Served):
    """The real server over a store in memory, without a wire between it and its client."""

    def __init__(self, *documents: Mapping[str, object], era: Era = "auto") -> None:
        self.harness = Harness.in_memory(*documents)
        super().__init__(build_server(self.harness.ports, None), era)

    def events(self, answer: ToolResult) -> list[dict[str, Any]]:
        """Return the events of the session that a start or a look names, oldest first."""
        return [event.to_json() for event in self.harness.events(self.harness.session_of(answer))]

    def trace(self, answer: ToolResult) -> list[list[str]]:
        """Return why the run went its way: for each recorded trace, what its entries are."""
        traces = [event["data"]["entries"] for event in self.events(answer) if event["kind"] == TRACE]
        return [[entry["kind"] for entry in entries] for entries in traces]


def serving(harness: Harness, era: Era = "auto", declared: Declared = NOTHING) -> Served:
    """Return the real server over a harness's ports, in memory, to be entered."""
    return Served(build_server(harness.ports, None), era, declared)


def step_of(answer: ToolResult) -> str | None:
    """Return the id of the step that an answer hands out; None where the run is complete."""
    return answer["pending"]["stepId"] if answer["pending"] else None


def blockers_of(answer: ToolResult) -> list[tuple[str, str]]:
    """Return an answer's blockers: each code, with the contract or the context key that it points at."""
    assert answer["kind"] == "blocked", answer.text
    pointers = [(one["code"], one["pointer"]) for one in answer["blockers"]]
    return [(code, pointer.get("contractRef") or pointer["key"]) for code, pointer in pointers]


def checked(tool: str, called: ToolResult) -> ToolResult:
    """Hold an answer to what holds of all answers, whoever asked."""
    outcome = json.dumps(dict(called.structure), ensure_ascii=False)
    if called.is_error:
        assert set(called.structure) <= {"code", "message", "retry", "suggestion", "details"}
        assert called["retry"]["kind"] in ("not_retryable", "retryable_immediate", "retryable_after_ms")
        for words in (called["code"], called["message"], called["suggestion"]):
            assert words in called.text
        assert (called["retry"]["kind"] in called.text) == (called["retry"]["kind"] != "not_retryable")
        assert called.code is not ErrorCode.INTERNAL_ERROR
        assert LEAKS.search(called.text + outcome) is None
        assert len(called.text) < 10_000
    elif tool in ("start_workflow", "continue_workflow"):
        _check_channels(called, outcome)
    return called


def _check_channels(called: ToolResult, outcome: str) -> None:
    first_line = called.text.partition("\n")[0]
    run = called["run"]
    for words in (run.get("workflowId", ""), f"`{run['label']}`", run.get("goal", "")):
        assert words in first_line
    keys = [key for key in called.structure if key != "waiting"]
    assert keys[:4] == ["kind", "run", "nextCall", "stateToken"]
    assert keys[-1] == "pending"
    pending, call, fork = called["pending"], called["nextCall"], called.structure.get("fork")
    if pending is not None:
        assert f"step {run['step']['number']} of {run['step']['total']}" in first_line
        assert pending["prompt"] in called.text
        assert pending["title"] in called.text
    for token in filter(None, (called["stateToken"], called.structure.get("ackToken"))):
        assert token in outcome
    if fork is not None:
        assert fork["ackToken"] in called.text
    if call is not None:
        tool, arguments, fill = shown_calls(called.text)[-1]
        assert (tool, arguments) == (call["tool"], call["arguments"])
        assert [blank["path"] for blank in fill] == [blank["path"] for blank in call["fill"]]
        assert call["arguments"]["run"] == run["label"]
    for warned in called.structure.get("warnings", ()):
        assert warned["message"] in called.text
    for blocker in called.structure.get("blockers", ()):
        assert blocker["message"] in called.text
        assert blocker["suggestedFix"] in called.text
    assert len(called.text.encode()) < 10_000
    assert len(outcome.encode()) < 10_000


def workspace_in(directory: Path, **documents: object) -> Path:
    """Make a project with workflow files; each name is the file's, and `.json` when its value is a document."""
    workflows = directory / "space" / ".interlock" / "workflows"
    workflows.mkdir(parents=True)
    for name, document in documents.items():
        text = document if isinstance(document, str) else json.dumps(document)
        (workflows / (f"{name}.yaml" if isinstance(document, str) else f"{name}.json")).write_text(text)
    return directory / "space"


def events_of(server: Server, answer: ToolResult) -> list[dict[str, Any]]:
    return events_in(server.data_dir, answer)


def events_in(data_dir: Path, answer: ToolResult) -> list[dict[str, Any]]:
    """Return the events of the session that an answer names, as the files of a data directory have them."""
    directory = data_dir / "sessions" / answer["run"]["sessionId"] / "events"
    lines = [line for path in sorted(directory.glob("*.jsonl")) for line in path.read_text().splitlines()]
    return [json.loads(line) for line in lines]


def count_of(server: Server, answer: ToolResult, kind: str = "advance_recorded") -> int:
    return [event["kind"] for event in events_of(server, answer)].count(kind)


def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds, at most half a minute."""
    for _ in range(600):
        if holds():
            return
        time.sleep(0.05)
    raise AssertionError("it never came about")


def tree(root: Path) -> dict[str, tuple[int, ...] | bytes]:
    found: dict[str, tuple[int, ...] | bytes] = {}
    for path in sorted([root, *root.rglob("*")]):
        # A temporary file may be gone by now: then it is not in the tree.
        with suppress(FileNotFoundError):
            stat = path.stat()
            found[f"{path} times"] = (stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size, stat.st_ino)
            if path.is_file():
                found[str(path)] = path.read_bytes()
    return found


def settled_tree(root: Path) -> dict[str, tuple[int, ...] | bytes]:
    """Return the tree as soon as nothing changes: summaries are cached up to a second after an append (RES-12)."""
    before, now = {}, tree(root)
    while before != now:
        time.sleep(1.2)
        before, now = now, tree(root)
    return now


def writes_where_modes_forbid(directory: Path) -> bool:
    """Say whether a process may write into a read-only directory even without the powers that `BOOT` drops."""
    locked = directory / "locked"
    locked.mkdir(mode=0o500)
    attempt = "import pathlib, sys; pathlib.Path(sys.argv[1], 'x').touch()"
    boot = [sys.executable, "-c", BOOT, str(directory / "attempt.pid"), "mortal", "-c", attempt, str(locked)]
    return subprocess.run(boot, stderr=subprocess.DEVNULL, check=False).returncode == 0
