"""Committed answers, a committed data directory and committed hashes: what this code says today, byte for byte.

`INTERLOCK_WRITE_GOLDENS=1 python -m pytest tests/golden` writes them anew. Until the first tag they may change, each
time with a line in the CHANGELOG (D39); from then on a directory stays for ever, and a new format gets one beside it.
"""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interlock.config.settings import BUNDLED, Settings
from interlock.kernel.canonical import canonical_bytes, digest_of, digest_of_bytes
from interlock.kernel.ids import SessionId
from interlock.record.tokens import SigningKey
from interlock.server.app import local_ports
from interlock.service.catalog import Pinnable
from interlock.store.memory.store import MemoryStore
from interlock.testing.harness import FIXED_KEYS, Called, CounterShell, FixedKeyRing, Harness, linear_workflow

HERE = Path(__file__).parent
ANSWERS = HERE / "answers.json"
HASHES = HERE / "workflow-hashes.json"
DATA_DIR = HERE / "data-dir-1"
DATA_ANSWERS = HERE / "data-dir-1.answers.json"
IS_WRITING = os.environ.get("INTERLOCK_WRITE_GOLDENS") == "1"

WORKFLOW = linear_workflow(
    "test.golden",
    {
        "id": "look",
        "title": "Look at {{ticket.id}}",
        "promptBlocks": {"goal": "Look at {{ticket.id}} for {{goal}}.", "verify": ["You looked."]},
        "agentRole": "You look.",
        "guidance": ["Mind the gap."],
    },
    {"id": "act", "title": "Act", "prompt": "Act on {{unset.key}}.", "notes": "optional"},
    {"id": "ask", "title": "Ask", "prompt": "Ask.", "requireConfirmation": True},
    name="Golden",
    description="Uses what the language has.",
    tags=["golden"],
    guidance=["Be kind."],
    references=[
        {"id": "spec", "title": "Spec", "source": "docs/spec.md", "purpose": "Binding.", "authoritative": True}
    ],
)
LEGACY = linear_workflow("Old-One", "only")
STRUCTURE = linear_workflow(
    "test.structure",
    {
        "id": "rate",
        "title": "Rate it",
        "prompt": "Rate {{ticket.id}}.",
        "assessmentRefs": ["risk"],
        "assessmentConsequences": [
            {
                "when": {"anyEqualsLevel": "high"},
                "effect": {"kind": "require_followup", "guidance": "Lower the risk first."},
            }
        ],
        "produces": ["parts"],
        "validationCriteria": {"type": "contains", "value": "because"},
    },
    {
        "type": "choose",
        "id": "way",
        "title": "Which way",
        "choose": [
            {
                "when": {"var": "mode", "equals": "fast"},
                "steps": [{"id": "quick", "title": "Quick", "prompt": "Be quick.", "notes": "optional"}],
            }
        ],
        "otherwise": [
            {
                "type": "parallel",
                "id": "both",
                "title": "Both",
                "branches": [
                    {"steps": [{"id": "one", "title": "One", "prompt": "One."}]},
                    {"steps": [{"id": "two", "title": "Two", "prompt": "Two."}]},
                ],
            }
        ],
    },
    {
        "loopId": "each",
        "title": "Each part",
        "maxIterations": 5,
        "forEach": {"items": "parts", "itemVar": "part"},
        "body": [{"id": "part", "title": "Part {{iteration}}", "prompt": "Do {{part.name}}.", "notes": "optional"}],
    },
    {
        "loopId": "again",
        "title": "Again",
        "maxIterations": 2,
        "while": {"kind": "loop_control"},
        "body": [
            {
                "id": "decide",
                "title": "Decide",
                "prompt": "Once more?",
                "outputContract": {"contractRef": "wr.contracts.loop_control"},
            }
        ],
    },
    name="Structure",
    inputs=[
        {"key": "mode", "description": "How fast.", "type": "string", "required": True, "choices": ["fast", "slow"]},
        {"key": "parts", "description": "What there is.", "type": "list"},
    ],
    assessments=[
        {
            "id": "risk",
            "purpose": "How risky it is.",
            "dimensions": [{"id": "harm", "purpose": "What it may break.", "levels": ["low", "high"]}],
        }
    ],
)
STEERING: dict[str, Any] = {"kind": "wr.loop_control"}


def rated(level: str) -> dict[str, Any]:
    return {"kind": "wr.assessment", "assessmentId": "risk", "dimensions": {"harm": level}}


def script(harness: Harness) -> Iterator[tuple[str, Called]]:
    """Yield the answers of one scripted conversation, each with what it shows."""
    yield "list", harness.call("list_workflows")
    yield "inspect plan", harness.call("inspect_workflow", {"workflowId": "test.golden", "detail": "plan"})
    yield "inspect legacy", harness.call("inspect_workflow", {"workflowId": "Old-One"})
    context = {"ticket": {"id": "T-1"}}
    first = harness.start("test.golden", goal="the demo", context=context, preferences={"riskPolicy": "balanced"})
    yield "start", first
    blocked = harness.advance(first, None, output={"artifacts": [{"kind": "sketch"}]})
    yield "blocked", blocked
    yield "rehydrate blocked", harness.look(first)
    second = harness.advance(blocked, "Looked.", preferences={"autonomy": "full_auto_stop_on_user_deps"})
    yield "advance", second
    yield "replay with another payload", harness.advance(blocked, "Other words.")
    yield "rehydrate a passed step", harness.look(first)
    third = harness.advance(second, None, output={"notesMarkdown": "é" * 4_000, "artifacts": [{"kind": "report"}]})
    yield "notes cut, confirmation asked", third
    yield "rehydrate with recap", harness.look(third)
    last = harness.advance(third, "Asked.")
    yield "complete", last
    yield "rehydrate complete", harness.look(last)
    forked = harness.advance(harness.look(first)["fork"]["ackToken"], "Looked again.", context={"goal": "another"})
    yield "fork", forked
    yield "rehydrate where another branch is preferred", harness.look(second)
    other = harness.start("Old-One", sessionId=harness.session_of(first))
    yield "second run of the session", other
    answer = other
    for _ in range(9):
        answer = harness.advance(answer, None)
    yield "the tenth refusal", harness.advance(answer, None)
    yield "rehydrate a chain that is used up", harness.look(other)
    yield "unknown workflow", harness.start("test.goldn")
    yield "unknown argument", harness.call("continue_workflow", {"ackToken": first.ack, "outputs": {}})
    yield "no token", harness.advance("hello")
    yield "altered token", harness.advance(first.ack[:-2] + "AA")
    yield "token of the other kind", harness.advance(first.state)
    yield "tokens of two runs", harness.advance(third, stateToken=other.state)
    yield "label of another run", harness.look(first, run=other["run"]["label"])
    yield "context too large", harness.advance(forked, context={"x": "x" * 300_000})
    yield "context with a reserved key", harness.start("test.golden", context={"__proto__": 1})
    yield "look with output", harness.look(first, output={"notesMarkdown": "n"})
    yield "unknown session", harness.start("Old-One", sessionId="sess_0000000000000000000000000a")
    yield from structured(harness)


def structured(harness: Harness) -> Iterator[tuple[str, Called]]:
    """Yield the answers of a run through decisions, branches, loops and typed evidence."""
    yield "inspect structure", harness.call("inspect_workflow", {"workflowId": "test.structure", "detail": "plan"})
    yield "an input is missing", harness.start("test.structure", context={"mode": "quick"})
    first = harness.start("test.structure", context={"mode": "slow", "ticket": {"id": "T-2"}})
    yield "start structure", first
    bare = harness.advance(first, "It is so.")
    yield "rating, criterion and key are missing", bare
    risky = harness.advance(bare, None, output={"artifacts": [rated("high")]})
    yield "a rating that calls for more work", risky
    output = {"notesMarkdown": "It is so because it is.", "artifacts": [rated(" LOW")]}
    one = harness.advance(risky, None, output=output, context={"parts": [{"name": "A"}, {"name": "B"}]})
    yield "a level read otherwise, then the first of two branches", one
    two = harness.advance(one, "One is done.")
    yield "the other branch", two
    part = harness.advance(two, "Two is done.")
    yield "the first pass over items", part
    part = harness.advance(part, None)
    yield "the second pass over items", part
    decide = harness.advance(part, None)
    yield "a step that decides a loop", decide
    unsteered = harness.advance(decide, "Once more.")
    yield "the decision is missing", unsteered
    again = harness.advance(unsteered, None, output={"artifacts": [STEERING | {"decision": "continue"}]})
    yield "the second pass", again
    beyond = harness.advance(again, None, output={"artifacts": [STEERING | {"decision": "continue"}]})
    yield "beyond the bound", beyond
    yield "complete structure", harness.advance(beyond, None, output={"artifacts": [STEERING | {"decision": "stop"}]})
    fast = harness.start("test.structure", context={"mode": "fast", "parts": []})
    output = {"notesMarkdown": "Low because small.", "artifacts": [rated("low")]}
    quick = harness.advance(fast, None, output=output)
    yield "the quick way", quick
    yield "a loop without items", harness.advance(quick, None)


def told(answers: Iterator[tuple[str, Called]]) -> dict[str, Any]:
    return {name: {"isError": one.is_error, "text": one.text, "structure": one.structure} for name, one in answers}


def written(value: object) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def compare(path: Path, value: object) -> None:
    """Compare with what is committed, or commit it."""
    text = written(value)
    if IS_WRITING:
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.inv("TOK-1", "ANS-1", "ADV-5")
def test_the_scripted_run_gives_the_committed_answers_in_both_channels() -> None:
    harness = Harness.over(MemoryStore(), WORKFLOW, LEGACY, STRUCTURE, keys=FixedKeyRing())
    compare(ANSWERS, told(script(harness)))


@pytest.mark.inv("PLAN-2")
def test_every_bundled_workflow_has_its_committed_hash(tmp_path: Path) -> None:
    catalog = local_ports(Settings(data_dir=tmp_path, workspace=None, user_workflows=None)).catalog
    entries = sorted(catalog.view(None).entries.items())
    assert len(entries) == len(list(BUNDLED.rglob("*.json"))) >= 3
    golden = Harness.in_memory(WORKFLOW, STRUCTURE).ports.catalog.view(None).entries
    hashes: dict[str, str] = {}
    for name, entry in (*entries, *sorted(golden.items())):
        assert isinstance(entry.compiled, Pinnable)
        hashes[name] = entry.compiled.workflow_hash
    compare(HASHES, hashes)


def key_ring_file(path: Path) -> None:
    """Write the fixed keys as the format says; from here, not from the code that reads them."""
    import base64  # noqa: PLC0415 — this one file

    def text(key: SigningKey) -> str:
        return base64.b64encode(key).decode("ascii")

    assert FIXED_KEYS.previous is not None
    body = {"v": 1, "current": text(FIXED_KEYS.current), "previous": text(FIXED_KEYS.previous)}
    path.parent.mkdir(parents=True)
    data = canonical_bytes(body | {"check": digest_of(body)}) + b"\n"
    path.write_bytes(data)
    path.with_name("settled").write_bytes(f"{digest_of_bytes(data)}\n".encode("ascii"))


def make_data_dir(root: Path) -> dict[str, Called]:
    """Make a small session: a start, a refused attempt, two advances, a fork, a second run, a decision in a third."""
    key_ring_file(root / "keys" / "keyring.json")
    harness = Harness.on_disk(root, WORKFLOW, LEGACY, STRUCTURE, shell=CounterShell())
    first = harness.start("test.golden", goal="the demo", context={"ticket": {"id": "T-1"}})
    blocked = harness.advance(first, None)
    second = harness.advance(
        blocked, None, output={"notesMarkdown": "Looked.", "artifacts": [{"kind": "report", "n": 1}]}
    )
    third = harness.advance(second, "Acted.", preferences={"riskPolicy": "balanced"})
    forked = harness.advance(harness.look(first)["fork"]["ackToken"], "Looked again.", context={"goal": "another"})
    other = harness.start("Old-One", sessionId=harness.session_of(first))
    rate = harness.start("test.structure", sessionId=harness.session_of(first), context=STRUCTURE_CONTEXT)
    branch = harness.advance(rate, None, output=RATED)
    return {
        "first": first,
        "blocked": blocked,
        "second": second,
        "third": third,
        "forked": forked,
        "other": other,
        "rate": rate,
        "branch": branch,
    }


STRUCTURE_CONTEXT = {"mode": "slow", "ticket": {"id": "T-2"}, "parts": [{"name": "A"}]}
RATED = {"notesMarkdown": "Low because small.", "artifacts": [rated("Low")]}


def contents(root: Path) -> dict[str, bytes]:
    """Return the files that are truth: no locks, no caches, no marks of the boot in which a session was written."""
    files = {path.relative_to(root): path for path in sorted(root.rglob("*")) if path.is_file()}
    return {
        name.as_posix(): path.read_bytes()
        for name, path in files.items()
        if name.name != ".lock" and name.parent.name != "cache" and not name.match("sessions/*/settled")
    }


@pytest.mark.inv("HOUSE-6", "APP-3")
def test_the_same_calls_write_the_committed_data_directory(tmp_path: Path) -> None:
    answers = make_data_dir(tmp_path / "data")
    if IS_WRITING:
        shutil.rmtree(DATA_DIR, ignore_errors=True)
        for name, data in contents(tmp_path / "data").items():
            (DATA_DIR / name).parent.mkdir(parents=True, exist_ok=True)
            (DATA_DIR / name).write_bytes(data)
    assert contents(tmp_path / "data") == contents(DATA_DIR)
    compare(DATA_ANSWERS, {name: {"text": one.text, "structure": one.structure} for name, one in answers.items()})


@pytest.fixture
def copied(tmp_path: Path) -> Harness:
    """The committed directory in a place where it can be written to, without any workflow file."""
    shutil.copytree(DATA_DIR, tmp_path / "data")
    return Harness.on_disk(tmp_path / "data")


def committed() -> dict[str, Called]:
    answers: dict[str, Any] = json.loads(DATA_ANSWERS.read_text(encoding="utf-8"))
    return {name: Called(structure=one["structure"], text=one["text"], is_error=False) for name, one in answers.items()}


@pytest.mark.inv("HOUSE-6", "READ-6")
def test_the_committed_directory_loads_as_healthy_with_all_its_facts(copied: Harness) -> None:
    session = copied.store.load(SessionId(committed()["first"]["run"]["sessionId"]))
    assert session is not None
    assert len(session.runs) == 3
    assert sorted(node.kind for node in session.nodes.values()) == ["blocked_attempt", *["step"] * 7]
    events = copied.events(session.session)
    assert [event.event_index for event in events] == list(range(session.next_index))
    files = {path.read_bytes() for path in (DATA_DIR / "artifacts").iterdir()}
    (capture,) = [data for data in files if b'"kind":"capture"' in data]
    assert files - {capture} == {b'{"kind":"report","n":1}', canonical_bytes(rated("Low"))}
    assert [digest_of_bytes(capture)] == [one for node in session.nodes.values() for one in node.captures]
    branched = [copied.store.snapshot(node.snapshot).state for node in session.nodes.values() if node.trace]
    assert [state.edges_taken.values for state in branched] == [("way>both",)]


@pytest.mark.inv("HOUSE-6", "TOK-7", "ADV-5")
def test_every_call_that_made_the_committed_directory_replays_to_its_committed_answer(copied: Harness) -> None:
    said = committed()
    before = contents(copied.data_dir or DATA_DIR)
    fork = copied.look(said["first"])["fork"]["ackToken"]
    assert copied.advance(said["first"], None) == said["blocked"]
    sent = {"notesMarkdown": "Looked.", "artifacts": [{"n": 1, "kind": "report"}]}
    assert copied.advance(said["blocked"], None, output=sent) == said["second"]
    assert copied.advance(said["second"], "Acted.", preferences={"riskPolicy": "balanced"}) == said["third"]
    assert copied.advance(said["rate"], None, output=RATED) == said["branch"]
    assert fork not in (said["first"].ack, said["forked"].ack)
    assert contents(copied.data_dir or DATA_DIR) == before


@pytest.mark.inv("HOUSE-6", "ADV-8", "ADV-9", "PLAN-3")
def test_the_committed_directory_is_rehydrated_and_goes_on(copied: Harness) -> None:
    said = committed()
    for name in ("third", "forked", "other", "branch"):
        looked = copied.look(said[name])
        assert (looked["pending"], looked.ack) == (said[name]["pending"], said[name].ack)
    for name in ("first", "blocked", "second"):
        assert copied.look(said[name]).warnings == ["STEP_ALREADY_DONE"]
    assert copied.look(said["third"])["recap"] == (
        "`Act`:\n> Acted.\n\n`Look at T-1`:\n> Looked.\n\n**Artifacts stored on the way, newest first**\n"
        "- `report` sha256:82278effd28e\n\n**Context keys that are set**: `ticket`"
    )
    assert copied.follow(copied.follow(said["third"]))["isComplete"], "a gate that a claim opens"
    assert copied.follow(said["forked"])["pending"]["stepId"] == "ask"
    assert copied.follow(said["other"])["isComplete"]
    assert copied.follow(said["branch"])["pending"]["stepId"] == "two"
    assert Harness.on_disk(copied.data_dir or DATA_DIR).look(said["third"]).warnings == ["STEP_ALREADY_DONE"]
