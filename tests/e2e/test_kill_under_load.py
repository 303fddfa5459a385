"""Servers killed, stopped and terminated at random moments under the load of real clients, and what the log says."""

import json
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import anyio
import pytest
from tests.lab.independent_reader import Reading, files_of, node_tag, read_data_dir, session_files
from tests.lab.processes import tokens_in
from tests.support.load import (
    Agent,
    Disturbances,
    Era,
    Habits,
    Heard,
    Journal,
    Post,
    Site,
    disturb_under_load,
    linear_workflow,
)
from tests.support.receiver import receiving

from interlock.kernel.ids import SessionId
from interlock.record.outcome import AdvancedTo
from interlock.record.short_tokens import ShortRef, decode_token
from interlock.record.tokens import AttemptRef, StateRef, TokenRef
from interlock.service.audit.verify import verify_session
from interlock.service.run.plans import Plans
from interlock.service.tokens.resolve import whole_reference
from interlock.store.local.store import LocalStore

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sends signals")

STEPS = 4
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True)
class Plan:
    """How many servers share the data directory, how many agents work, how often a server is disturbed."""

    seed: int
    era: Era
    servers: int
    agents: int
    count: int

    def __str__(self) -> str:
        return f"{self.count} disturbances, {self.servers} servers, {self.era}"


ERAS: tuple[Era, Era] = ("auto", "legacy")
QUICK = [Plan(7, "auto", servers=1, agents=3, count=5), Plan(11, "legacy", servers=2, agents=3, count=7)]
LONG = [Plan(101, era, servers=servers, agents=4, count=125) for era in ERAS for servers in (1, 2)]


@pytest.mark.inv("CRASH-8", "ADV-5", "ADV-6", "TOK-7")
@pytest.mark.asyncio
@pytest.mark.parametrize("plan", [*QUICK, *(pytest.param(plan, marks=pytest.mark.soak) for plan in LONG)], ids=str)
async def test_no_kill_stop_or_end_loses_an_acknowledged_advance_or_applies_one_twice(
    plan: Plan, tmp_path: Path
) -> None:
    site, journal = Site(root=tmp_path), Journal()
    for number in range(plan.agents):
        site.add_workflow(linear_workflow(f"load.agent{number}", STEPS))
    done = await work_under_disturbances(plan, site, journal)
    assert journal.repeated >= done[signal.SIGKILL] // 2, "kills met calls that waited for an answer"
    sys.stdout.write(f"{plan}: {counts(done, journal)}\n")
    assert signal.SIGKILL in done if plan in QUICK else done.keys() == {signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM}
    await replayed_answers_equal_the_first(site, plan.era, journal)
    assert_heard_is_recorded(site, journal.heard)
    assert read_data_dir(files_of(site.data_dir), boot=boot_id()).flaws == []
    Log(site).says_what_was_heard(journal)


OUTBOX_QUICK = [Plan(13, "auto", servers=2, agents=3, count=6)]
OUTBOX_LONG = [Plan(301 + number, "auto", servers=2, agents=4, count=125) for number in range(8)]


@pytest.mark.inv("WORLD-6", "EFF-7")
@pytest.mark.asyncio
@pytest.mark.parametrize(
    "plan", [*OUTBOX_QUICK, *(pytest.param(plan, marks=pytest.mark.soak) for plan in OUTBOX_LONG)], ids=str
)
async def test_no_kill_stop_or_end_sends_an_intent_twice_and_what_did_not_arrive_is_listed(
    plan: Plan, tmp_path: Path
) -> None:
    site, journal = Site(root=tmp_path), Journal()
    with receiving() as receiver:
        site.data_dir.mkdir()
        (site.data_dir / "config.toml").write_text(
            f'[channels.hook]\nkind = "http"\naccepts = ["load.sent"]\nsources = ["project"]\nurl = "{receiver.url}"\n'
        )
        for number in range(plan.agents):
            document = linear_workflow(f"load.agent{number}", STEPS)
            for one in cast("list[dict[str, Any]]", document["steps"]):
                one["emit"] = [{"kind": "load.sent", "fields": {"step": {"value": one["id"]}}}]
            site.add_workflow(document)
        done = await work_under_disturbances(plan, site, journal)
        shown = listed_intents(site.data_dir)
        states = Counter(shown.values())
        sys.stdout.write(f"{plan}: {counts(done, journal)}; {len(receiver.received)} arrived, {dict(states)}\n")
        assert set(receiver.keys.values()) == {1}, "no intent arrives twice"
        assert set(shown) == recorded_intents(site.data_dir), "what the log attests is listed, and nothing else"
        assert set(receiver.keys) <= set(shown), "only what is recorded is sent"
        assert {one for one, state in shown.items() if state == "delivered"} <= set(receiver.keys)
        assert {shown[one] for one in receiver.keys} <= {"delivered", "unknown"}
        assert states.keys() <= {"delivered", "unknown", "undelivered"}
        undelivered = {one for one, state in shown.items() if state != "delivered"}
        assert set(listed_intents(site.data_dir, "--undelivered")) == undelivered
        before = Counter(receiver.keys)
        store = LocalStore(site.data_dir)
        assert [found for name in store.sessions() for found in verify_session(store, Plans(store), name)] == []
        # The receiver still listens: a request would arrive.
        assert receiver.keys == before, "verification makes no request"


def listed_intents(data_dir: Path, *options: str) -> dict[str, str]:
    """Return the state of each intent that the command lists."""
    command = [sys.executable, "-m", "interlock", "intent", "list", *options, "--json", "--data-dir", str(data_dir)]
    done = subprocess.run(command, capture_output=True, check=True, stdin=subprocess.DEVNULL, timeout=120)
    return {one["intent"]: one["state"] for one in json.loads(done.stdout)["intents"]}


def recorded_intents(data_dir: Path) -> set[str]:
    """Return the intents in the segments that the manifests attest, read past our own fold."""
    events = (event for home in (data_dir / "sessions").iterdir() for event in attested_events(home))
    return {event["data"]["intentId"] for event in events if event["kind"] == "intent_recorded"}


def attested_events(home: Path) -> list[dict[str, Any]]:
    """Return the events of a session in the segments that its manifest attests."""
    manifest = home / "manifest.jsonl"
    closed = [one for one in (lines_of(manifest) if manifest.exists() else []) if one["kind"] == "segment_closed"]
    return [event for one in closed for event in lines_of(home / one["segmentRelPath"])]


def counts(done: Counter[signal.Signals], journal: Journal) -> str:
    """Return how often servers were disturbed, and what the agents sent and received."""
    signals = ", ".join(f"{number} {what.name}" for what, number in done.most_common())
    return f"{signals}; {len(journal.sent)} calls sent, {journal.repeated} again, {len(journal.heard)} answered"


async def work_under_disturbances(plan: Plan, site: Site, journal: Journal) -> Counter[signal.Signals]:
    """Let agents work until all disturbances are over and each agent has finished a run after that."""
    posts = [Post(site, plan.era, f"server{number}") for number in range(plan.servers)]
    is_enough, done = False, Counter[signal.Signals]()

    judged = 0

    async def judge() -> None:
        """Judge what was heard since the last disturbance; in the end all of it is judged once more."""
        nonlocal judged
        fresh = journal.heard[judged:]
        judged += len(fresh)
        await anyio.to_thread.run_sync(assert_heard_is_recorded, site, fresh)

    async with anyio.create_task_group() as servers:
        for post in posts:
            servers.start_soon(post.serve)
        async with anyio.create_task_group() as agents:
            for number in range(plan.agents):
                habits = Habits(seed=plan.seed + number, workflow_id=f"load.agent{number}")
                agents.start_soon(Agent(posts, journal, habits).work, lambda: is_enough)
            done = await disturb_under_load(posts, journal, Disturbances(seed=plan.seed, count=plan.count), judge)
            is_enough = True
        for post in posts:
            post.close()
    return done


def assert_heard_is_recorded(site: Site, heard: list[Heard]) -> None:
    """Assert that the independent reader finds once what each of these answers names. Servers write meanwhile."""
    named = {node_tag(token) for one in heard for token in tokens_in(one.structure)}
    reading = reading_of(site, {session for session, _ in named})
    assert reading.flaws == []
    assert len(reading.advances) == len(set(reading.advances))
    assert len(reading.runs) == len(set(reading.runs))
    found = {(name, node[-8:]) for name, one in reading.sessions.items() for node in one.nodes}
    assert named - found == set()


def reading_of(site: Site, sessions: set[str]) -> Reading:
    return read_data_dir(session_files(site.data_dir, sessions), boot=boot_id())


def boot_id() -> str:
    return BOOT_ID.read_text(encoding="ascii").strip() if BOOT_ID.exists() else ""


async def replayed_answers_equal_the_first(site: Site, era: Era, journal: Journal) -> None:
    """Send every ack that was answered once more, to a server that has seen none of them."""
    post, again = Post(site, era, "replay"), Journal()
    async with anyio.create_task_group() as servers:
        servers.start_soon(post.serve)
        for heard in acks(journal):
            replayed = await post.call(heard.call, again)
            assert (replayed.structure, replayed.text) == (heard.structure, heard.text)
        post.close()


class Log:
    """The data directory, read by a store that has seen nothing of it before."""

    def __init__(self, site: Site) -> None:
        self._store = LocalStore(site.data_dir)
        self._directory = site.data_dir / "sessions"
        self._keys = ring.keys() if (ring := self._store.keys()) else ()
        names = [SessionId(path.name) for path in self._directory.iterdir()]
        # A directory whose first append was cut holds no session.
        self._sessions = {name: session for name in names if (session := self._store.load(name)) is not None}

    def says_what_was_heard(self, journal: Journal) -> None:
        """Compare it with what the agents sent and what they were answered."""
        counts = Counter(key for name in self._sessions for key in self._recorded(name))
        assert set(counts.values()) == {1}, "no advance is recorded twice"
        folded = [advance for session in self._sessions.values() for advance in session.advances.values()]
        assert set(counts) == {(advance.node, advance.attempt) for advance in folded}
        sent = [self._attempt(call.arguments["ackToken"]) for call in journal.sent if "ackToken" in call.arguments]
        assert set(counts) <= {(attempt.node, attempt.attempt) for attempt in sent}
        assert acks(journal) != []
        for heard in acks(journal):
            self._holds(heard)
        self._holds_starts(journal)

    def _recorded(self, session: SessionId) -> list[tuple[str, str]]:
        """Return the advances in the segments that the manifest attests, read past our own fold."""
        recorded = [
            event for event in attested_events(self._directory / session) if event["kind"] == "advance_recorded"
        ]
        return [(event["scope"]["nodeId"], event["data"]["attemptId"]) for event in recorded]

    def _holds(self, heard: Heard) -> None:
        """Assert that the log has the advance that was acknowledged, with the outcome that was answered."""
        attempt = self._attempt(heard.call.arguments["ackToken"])
        recorded = self._sessions[attempt.session].advance(attempt.node, attempt.attempt)
        assert recorded is not None, "an acknowledged advance is in the log"
        assert isinstance(recorded.outcome, AdvancedTo) == (heard.structure["kind"] == "ok")
        if isinstance(recorded.outcome, AdvancedTo):
            result = self._token(heard.structure["stateToken"])
            assert isinstance(result, StateRef)
            assert result.node == recorded.outcome.to_node_id

    def _holds_starts(self, journal: Journal) -> None:
        """Assert that every run that was answered is there, and none that nobody asked for."""
        sent = [call for call in journal.sent if call.tool == "start_workflow"]
        result = [heard for heard in journal.heard if heard.call.tool == "start_workflow"]
        runs = {run for session in self._sessions.values() for run in session.runs}
        assert {self._token(heard.structure["stateToken"]).run for heard in result} <= runs
        assert len(result) <= len(runs) <= len(sent)

    def _token(self, text: object) -> TokenRef:
        found = decode_token(str(text)).verify(self._keys)
        if isinstance(found, ShortRef):
            found = whole_reference(self._sessions[found.session], found)
        assert isinstance(found, StateRef | AttemptRef), f"{text} is a token of this data directory"
        return found

    def _attempt(self, text: object) -> AttemptRef:
        found = self._token(text)
        assert isinstance(found, AttemptRef)
        return found


def acks(journal: Journal) -> list[Heard]:
    return [heard for heard in journal.heard if "ackToken" in heard.call.arguments]


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]
