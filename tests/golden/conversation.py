"""The scripted calls whose answers and records are committed, and the workflows they run."""

import base64
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from interlock.kernel.canonical import canonical_bytes, digest_of, digest_of_bytes
from interlock.kernel.ids import SigningKey
from interlock.store.memory.store import MemoryStore
from interlock.store.ports.keys import KeyRing
from interlock.testing.harness import FIXED_KEYS, CounterClock, FixedKeyRing, Harness, ToolResult, linear_workflow

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
    return {"kind": "wr.assessment", "assessmentId": "risk", "dimensions": {"harm": level}, "summary": "Why."}


def scripted(workflow: Mapping[str, object] = WORKFLOW, ring: KeyRing = FIXED_KEYS) -> dict[str, ToolResult]:
    """Return the answers of one scripted conversation in memory, by what each shows."""
    harness = Harness.over(MemoryStore(), workflow, LEGACY, STRUCTURE, keys=FixedKeyRing(ring))
    return dict(script(harness))


def script(harness: Harness) -> Iterator[tuple[str, ToolResult]]:
    """Yield the answers of one scripted conversation, each with what it shows."""
    yield "list", harness.call("list_workflows")
    yield "inspect plan", harness.call("inspect_workflow", {"workflowId": "test.golden", "detail": "plan"})
    yield "inspect legacy", harness.call("inspect_workflow", {"workflowId": "Old-One"})
    context = {"ticket": {"id": "T-1"}}
    first = harness.start("test.golden", goal="the demo", context=context, preferences={"riskPolicy": "balanced"})
    yield "start", first
    blocked = harness.advance(first, None, output={"artifacts": [{"kind": "sketch"}]})
    yield "blocked", blocked
    yield "rehydrate blocked", harness.rehydrate(first)
    second = harness.advance(blocked, "Looked.", preferences={"autonomy": "full_auto_stop_on_user_deps"})
    yield "advance", second
    yield "replay with another payload", harness.advance(blocked, "Other words.")
    yield "rehydrate a passed step", harness.rehydrate(first)
    third = harness.advance(second, None, output={"notesMarkdown": "é" * 4_000, "artifacts": [{"kind": "report"}]})
    yield "notes cut, confirmation asked", third
    yield "rehydrate with recap", harness.rehydrate(third)
    last = harness.advance(third, "Asked.")
    yield "complete", last
    yield "rehydrate complete", harness.rehydrate(last)
    forked = harness.advance(harness.rehydrate(first)["fork"]["ackToken"], "Looked again.", context={"way": "another"})
    yield "fork", forked
    yield "rehydrate where another branch is preferred", harness.rehydrate(second)
    other = harness.start("Old-One", sessionId=harness.session_of(first))
    yield "second run of the session", other
    answer = other
    for _ in range(9):
        answer = harness.advance(answer, None)
    yield "the tenth refusal", harness.advance(answer, None)
    yield "rehydrate a chain that is used up", harness.rehydrate(other)
    yield "unknown workflow", harness.start("test.goldn")
    yield "unknown argument", harness.call("continue_workflow", {"ackToken": first.ack, "outputs": {}})
    yield "no token", harness.advance("hello")
    yield "altered token", harness.advance(first.ack[:-2] + "AA")
    yield "token of the other kind", harness.advance(first.state)
    yield "tokens of two runs", harness.advance(third, stateToken=other.state)
    yield "label of another run", harness.rehydrate(first, run=other["run"]["label"])
    yield "context too large", harness.advance(forked, context={"x": "x" * 300_000})
    yield "context with a reserved key", harness.start("test.golden", context={"__proto__": 1})
    yield "look with output", harness.rehydrate(first, output={"notesMarkdown": "n"})
    yield "unknown session", harness.start("Old-One", sessionId="sess_0000000000000000000000000a")
    yield from structured(harness)


def structured(harness: Harness) -> Iterator[tuple[str, ToolResult]]:
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
    yield (
        "complete structure",
        harness.advance(beyond, None, output={"artifacts": [STEERING | {"decision": "stop", "summary": "Done."}]}),
    )
    fast = harness.start("test.structure", context={"mode": "fast", "parts": []})
    output = {"notesMarkdown": "Low because small.", "artifacts": [rated("low")]}
    quick = harness.advance(fast, None, output=output)
    yield "the quick way", quick
    yield "a loop without items", harness.advance(quick, None)


def key_ring_file(path: Path) -> None:
    """Write the fixed keys as the format says; from here, not from the code that reads them."""

    def text(key: SigningKey) -> str:
        return base64.b64encode(key).decode("ascii")

    assert FIXED_KEYS.previous is not None
    body = {"v": 1, "current": text(FIXED_KEYS.current), "previous": text(FIXED_KEYS.previous)}
    path.parent.mkdir(parents=True)
    data = canonical_bytes(body | {"check": digest_of(body)}) + b"\n"
    path.write_bytes(data)
    path.with_name("settled").write_bytes(f"{digest_of_bytes(data)}\n".encode("ascii"))


def make_data_dir(root: Path) -> dict[str, ToolResult]:
    """Make a small session: a start, a refused attempt, two advances, a fork, a second run, a decision in a third."""
    key_ring_file(root / "keys" / "keyring.json")
    harness = Harness.on_disk(root, WORKFLOW, LEGACY, STRUCTURE, clock=CounterClock())
    first = harness.start("test.golden", goal="the demo", context={"ticket": {"id": "T-1"}})
    blocked = harness.advance(first, None)
    second = harness.advance(
        blocked, None, output={"notesMarkdown": "Looked.", "artifacts": [{"kind": "report", "n": 1}]}
    )
    third = harness.advance(second, "Acted.", preferences={"riskPolicy": "balanced"})
    forked = harness.advance(harness.rehydrate(first)["fork"]["ackToken"], "Looked again.", context={"way": "another"})
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
