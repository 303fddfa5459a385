"""Recorded sessions as people look at them: a data directory with a clock that moves, and the commands over it."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from interlock.cli.commands import SESSION
from interlock.cli.main import main
from interlock.kernel.canonical import digest_of_bytes
from interlock.kernel.ids import AttemptId, OutputId, RunId, derived_id, node_of_attempt
from interlock.record import payloads as data
from interlock.record.append_plan import AppendPlan, EventDraft, PlannedEdge, Stamps
from interlock.record.events import Actor
from interlock.service.clock import mint_event, recorded_at
from interlock.store.git import GitAnchors
from interlock.testing.harness import FIXED_UNIX_MS, CounterClock, Harness, ToolResult
from interlock.views.session import Node, Run

MINUTE = 60_000
READ_ONLY_COMMANDS = {command.name for command in SESSION.commands} - {
    *(
        "verify",
        "explain",
        "export",
        "import",
        "repair",
        "redact",
        "cancel",
        "fail",
        "keep",
        "unkeep",
        "delete",
        "turns",
    ),
}
"""The commands that show what was recorded. A new one is among them, unless it is named here."""
HOSTILE = (
    "\x1b]0;owned\x07\x1b[31mred \u202egpj.exe\u202c <script>alert(1)</script> <img src=x onerror=y> "
    '![p](http://x.test/p.png) [l](javascript:y) @everyone #1 ```` ``` ` ``` "] end --> n1; click n1 \\ | **b** &lt;'
)
"""What acts in a terminal, in Markdown, in HTML or in a chart, on one line."""


class MovingClock(CounterClock):
    """A counter whose clock a test moves."""

    def __init__(self, first: int = 1) -> None:
        super().__init__(first)
        self.now_ms = FIXED_UNIX_MS

    def unix_ms(self) -> int:
        return self.now_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a command printed, and how it ended."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A data directory, what writes to it, and the commands that look at it."""

    root: Path
    clock: MovingClock
    capsys: pytest.CaptureFixture[str]

    def serving(self, *documents: Mapping[str, object]) -> Harness:
        return Harness.on_disk(self.root, *documents, clock=self.clock)

    def later(self, minutes: int) -> None:
        self.clock.now_ms += minutes * MINUTE

    def run(self, action: str, *arguments: str) -> Told:
        """Run `interlock session …` over the directory."""
        self.capsys.readouterr()
        code = main(["session", action, *arguments, "--data-dir", str(self.root)])
        printed = self.capsys.readouterr()
        return Told(code=code, out=printed.out, err=printed.err)


def label_of(answer: ToolResult) -> str:
    return str(answer["run"]["label"])


def redone(harness: Harness, at: ToolResult, notes: str = "Done otherwise.", **arguments: object) -> ToolResult:
    """Redo a step that is done, on a branch of its own."""
    return harness.advance(str(harness.rehydrate(at)["fork"]["ackToken"]), notes, **arguments)


def begun_at(harness: Harness, anchors: GitAnchors) -> Harness:
    """Return the same server in a workspace that stands there in git."""

    def anchored(_workspace: Path | None) -> GitAnchors:
        return anchors

    read = replace(harness.ports.read, anchors=anchored, anchors_again=anchored)
    return replace(harness, ports=replace(harness.ports, read=read, keeps_repo_root=True))


def tip_of(harness: Harness, start: ToolResult) -> tuple[Run, Node]:
    """Return a run as it stands and its preferred tip."""
    session = harness.store.load(harness.session_of(start))
    assert session is not None
    run = session.runs[RunId(start["run"]["runId"])]
    assert run.tip is not None
    return run, session.nodes[run.tip]


def appended(
    harness: Harness,
    start: ToolResult,
    *drafts: EventDraft,
    client: str = "a client",
    artifacts: tuple[bytes, ...] = (),
) -> None:
    """Make drafts true that no call of ours makes, or not yet."""
    session, clock = harness.session_of(start), harness.ports.clock
    stamps = Stamps(
        mint_event_id=lambda: mint_event(clock),
        recorded_at=recorded_at(clock),
        actor=Actor(type="agent", identifier=client),
    )
    files = tuple((digest_of_bytes(one), one) for one in artifacts)
    with harness.store.hold(session) as lock:
        harness.store.append(lock, AppendPlan(session=session, drafts=drafts, artifacts=files), stamps)


def checkpointed(harness: Harness, start: ToolResult, notes: str, client: str = "a client") -> None:
    """Record a checkpoint of the node that a run's preferred tip is, as whoever keeps one records it."""
    run, node = tip_of(harness, start)
    attempt = AttemptId(derived_id("att", node.node, "checkpoint", node.checkpoints))
    child = node_of_attempt(attempt)
    created = data.NodeCreated(
        node_kind="checkpoint",
        parent_node_id=node.node,
        workflow_hash=run.workflow_hash,
        snapshot_ref=node.snapshot,
    )
    edge = PlannedEdge(
        edge_kind="checkpoint", from_node=node.node, to_node=child, cause="checkpoint_created", cause_position=0
    )
    kept = data.NodeOutputAppended(
        output_id=OutputId(derived_id("out", attempt, "notes")),
        output_channel="recap",
        payload=data.NotesPayload(notes_markdown=notes),
    )
    drafts = (
        EventDraft(data=created, run=run.run, node=child),
        EventDraft(data=edge, run=run.run),
        EventDraft(data=kept, run=run.run, node=node.node),
    )
    appended(harness, start, *drafts, client=client)


def damage(root: Path, session: str) -> None:
    """Flip a bit in a session's last segment and leave no cached summary."""
    directory = root / "sessions" / session
    path = max((directory / "events").glob("*.jsonl"))
    raw = path.read_bytes()
    path.write_bytes(raw[:-20] + bytes([raw[-20] ^ 1]) + raw[-19:])
    for cached in directory.glob("cache/*"):
        cached.unlink()


def shown_commands(page: Path) -> list[tuple[str, str]]:
    """Return each command of a page with the output that follows it."""
    text = page.read_text(encoding="utf-8")
    return re.findall(r"^```sh run\n(.*?)\n```\n+```text output\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
