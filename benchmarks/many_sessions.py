"""A data directory of many sessions, made as a server makes them but without waiting for the disk."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, cast

from tests.support.load import NOTES, linear_workflow

from interlock.engine.answer.model import Answer, HumanInputRequired
from interlock.engine.request import Request
from interlock.kernel.canonical import Json
from interlock.kernel.errors import Refusal
from interlock.kernel.ids import SessionId
from interlock.record.short_tokens import decode_token
from interlock.service.clock import SystemClock
from interlock.service.ports import Ports, ReadPorts
from interlock.service.tokens.resolve import SentTokens
from interlock.service.tools.continue_workflow import ContinueCommand, continue_workflow
from interlock.service.tools.start_workflow import StartCommand, start_workflow
from interlock.service.workflows.catalog import Catalog
from interlock.store.local.files import OpenedFile, OsFiles
from interlock.store.local.store import LocalStore
from interlock.testing.harness import InlineWorkflows

SESSIONS = 2_000
ADVANCES = 10
FIRST_UNIX_MS = 1_750_000_000_000
"""When the first session begins."""
APART_MS = 3_600_000
"""Between the beginnings of two sessions."""
STEP_MS = 60_000
"""Between two calls of a session."""
COMPLETE, IN_PROGRESS = "bench.complete", "bench.in_progress"
"""Sessions run these workflows by turns: the first is through after its advances, the second is not."""

_PARTS = ("login form", "search index", "billing export", "release notes", "cache layer", "mail gateway", "audit log")
_VERBS = ("Repair", "Extend", "Review", "Measure", "Rewrite")


_LOOP_STEPS = 25
"""Steps of a loop: with 1,000 passes, which are the limit, more than any benchmark needs."""
Workflow: TypeAlias = Callable[[str, int], dict[str, Json]]


class UnsyncedFiles(OsFiles):
    """The real disk, of which nothing is made durable: only for directories that a crash may take."""

    def sync(self, path: str, *, full: bool = False, opened: OpenedFile | None = None) -> None:
        """Make nothing durable."""

    def sync_dir(self, path: str, *, full: bool = False) -> None:
        """Make nothing durable."""


class SteppingClock:
    """A clock that is set, and entropy that counts: two data directories made alike hold the same bytes but keys."""

    def __init__(self, unix_ms: int) -> None:
        self.now_ms = unix_ms
        self._entropy = itertools.count(1)

    def unix_ms(self) -> int:
        """See `Clock.unix_ms`."""
        return self.now_ms

    def entropy(self) -> bytes:
        """See `Clock.entropy`."""
        return next(self._entropy).to_bytes(10, "big")


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A session as it was left: `answer` is the last one its agent heard."""

    session: SessionId
    goal: str
    answer: Answer


def make_sessions(
    data_dir: Path,
    *,
    sessions: int = SESSIONS,
    advances: int = ADVANCES,
    is_loop: bool = False,
    ends_now: bool = False,
) -> list[Made]:
    """Fill a data directory with sessions of one run each, every one advanced so many times; return them in order.

    `is_loop`: the steps are those of a loop, as a document of so many steps would be too large.

    `ends_now`: the last session has the times of the system clock, as the latest of a real data directory.

    Goals, notes and one artifact of each session are its own; every second run is complete. Recorded times begin at
    `FIRST_UNIX_MS`; the files are as old as they are.
    """
    clock = SteppingClock(FIRST_UNIX_MS)
    ports = _ports(data_dir, _looped if is_loop else linear_workflow, advances, clock)
    made: list[Made] = []
    for number in range(sessions):
        is_now = ends_now and number == sessions - 1
        clock.now_ms = SystemClock().unix_ms() if is_now else FIRST_UNIX_MS + number * APART_MS
        made.append(_session(ports, clock, number, advances))
    return made


def goal_of(number: int) -> str:
    """Return the goal of the session of this number, from 0."""
    return f"{_VERBS[number % len(_VERBS)]} the {_PARTS[number % len(_PARTS)]}, part {number}"


def _session(ports: Ports, clock: SteppingClock, number: int, advances: int) -> Made:
    workflow_id, goal = (COMPLETE, IN_PROGRESS)[number % 2], goal_of(number)
    started = StartCommand(workflow_id=workflow_id, workspace=None, request=Request(context={"goal": goal}))
    answer = _answer(start_workflow(ports, started))
    session = SessionId(str(_member(answer, "run", "sessionId")))
    for step in range(advances):
        clock.now_ms += STEP_MS
        report: dict[str, Json] = {"kind": "report", "session": number, "found": [goal, step]}
        evidence = Request(notes=f"{NOTES}- of {goal}, step {step}\n", artifacts=(report,) if step == 0 else ())
        token = decode_token(_ack_token(answer))
        acked = ContinueCommand(tokens=SentTokens(argument="ackToken", token=token), request=evidence)
        answer = _answer(continue_workflow(ports, acked))
    return Made(session=session, goal=goal, answer=answer)


def _ports(data_dir: Path, workflow: Workflow, advances: int, clock: SteppingClock) -> Ports:
    store = LocalStore(data_dir, files=UnsyncedFiles(data_dir))
    workflows = InlineWorkflows(workflow(COMPLETE, advances), workflow(IN_PROGRESS, advances + 2))
    read = ReadPorts.over(store, store)
    return Ports(read=read, writer=store, key_ring=store, catalog=Catalog(workflows), clock=clock)


def _looped(workflow_id: str, steps: int) -> dict[str, Json]:
    """Return a workflow of a loop with at least a pass more than so many steps."""
    made = linear_workflow(workflow_id, _LOOP_STEPS)
    passes = -(-steps // _LOOP_STEPS) + 1
    loop: dict[str, Json] = {"type": "loop", "loopId": "again", "title": "Again", "body": made["steps"]}
    return {**made, "steps": [{**loop, "maxIterations": passes, "for": {"count": passes}}]}


def _member(answer: Answer, name: str, key: str) -> object:
    value = answer.structure[name]
    assert isinstance(value, dict), f"an answer's {name} is an object"
    return value[key]


def _ack_token(answer: Answer) -> str:
    """Return the token that reports the step: the answer with the next step has it in its `nextCall` alone."""
    found = answer.structure.get("ackToken")
    if found is not None:
        return str(found)
    arguments = _member(answer, "nextCall", "arguments")
    assert isinstance(arguments, dict), "a call has arguments"
    return str(cast("dict[str, Json]", arguments)["ackToken"])


def _answer(outcome: Answer | Refusal | HumanInputRequired) -> Answer:
    if not isinstance(outcome, Answer):
        raise RuntimeError(f"a lawful call was not answered: {outcome}")  # noqa: TRY004 — no caller's type is wrong
    return outcome
