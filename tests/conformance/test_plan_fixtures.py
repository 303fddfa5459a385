"""Broken plans are refused before anything runs; sound plans run as written, always in the same way."""

import ast
import json
import socket
from collections.abc import Callable, Mapping
from importlib.metadata import requires
from pathlib import Path
from typing import Any

import pytest
from tests.agents.agent import Agent, Task

import interlock
from interlock.define.document import WorkflowDocument
from interlock.define.front import parse_workflow
from interlock.engine.request import Request
from interlock.engine.start import Start, plan_start, root_node
from interlock.kernel.canonical import canonical_bytes, digest_of_bytes
from interlock.kernel.errors import ErrorCode
from interlock.kernel.ids import EventId, WorkflowHash, derived_id
from interlock.plan.builtins.packs import PACKS
from interlock.plan.check.validate import validate_plan
from interlock.plan.compile.compiler import Compiled, compile_workflow
from interlock.plan.compiled import CompiledWorkflow, parse_compiled, pinned_bytes
from interlock.plan.records import NOTES_CONTRACT, STEP_INPUT, Plan
from interlock.record.append_plan import AppendPlan, Stamps
from interlock.record.errors import UnknownVersionError
from interlock.service.clock import SystemClock, mint_run, mint_session
from interlock.service.tokens.mint import Mint
from interlock.testing.harness import ERAS, FIXED_KEYS, Era, Harness, call_through, linear_workflow
from interlock.views.session import BASELINE

Document = dict[str, Any]
Parts = dict[str, list[Document]]
Break = Callable[[Parts], object]

SRC = Path(interlock.__file__).parent
PURE_ROOMS = ("plan", "decide", "record", "engine", "views")
IMPURE = frozenset(
    {"os", "io", "pathlib", "time", "datetime", "random", "secrets", "uuid", "logging", "asyncio", "anyio"}
    | {"tempfile", "socket", "subprocess", "mcp"}
)
WORKFLOW_SDKS = (
    "temporal",
    "prefect",
    "airflow",
    "dagster",
    "luigi",
    "langgraph",
    "agent-framework",
    "autogen",
    "celery",
)


# A sound plan: a, then a decision between b and c, then d, then a loop around e.


def sound() -> Parts:
    return {
        "nodes": [
            task("a"),
            node("which", "decision"),
            task("b"),
            task("c"),
            task("d"),
            node("again", "loop"),
            task("e"),
            node("again--end", "terminal"),
            node("--end", "terminal"),
        ],
        "edges": [
            edge("a", "which"),
            edge("which", "b", kind="conditional", conditionId="is-left"),
            edge("which", "c"),
            edge("b", "d"),
            edge("c", "d"),
            edge("d", "again"),
            edge("e", "again--end", kind="terminal"),
            edge("again", "--end", kind="terminal"),
        ],
        "loops": [
            {
                "loopId": "again",
                "kind": "for",
                "maxIterations": 3,
                "onLimit": "exit",
                "body": ("e", "again--end"),
                "count": 2,
                "iterationVar": "iteration",
                "indexVar": "index",
            }
        ],
        "conditions": [
            {"conditionId": "is-left", "condition": {"op": "equals", "var": "side", "value": "left"}},
        ],
    }


def node(node_id: str, kind: str, **more: Any) -> Document:
    return {
        "nodeId": node_id,
        "kind": kind,
        "owner": "harness",
        "title": node_id,
        "provenance": {"source": "authored"},
    } | more


def task(node_id: str) -> Document:
    evidence = {"artifactRequired": False, "notes": "required"}
    return node(node_id, "task", owner="agent", task={"prompt": "Do it.", "evidence": evidence}) | {
        "inputSchemaRef": STEP_INPUT,
        "evidenceSchemaRef": NOTES_CONTRACT,
    }


def edge(source: str, target: str, **more: Any) -> Document:
    return {"edgeId": f"{source}>{target}", "kind": "direct", "source": source, "target": target} | more


def faults_of(parts: Parts) -> list[tuple[str, str]]:
    """Return the code and the place of each fault of a plan."""
    plan = Plan.of_json({"v": 1} | {name: tuple(listed) for name, listed in parts.items()})
    return [(one.code, one.path) for one in validate_plan(plan, PACKS)]


def the(listed: list[Document], name: str) -> Document:
    """Return the node or edge of an id."""
    return next(one for one in listed if name in (one.get("nodeId"), one.get("edgeId"), one.get("loopId")))


def without(listed: list[Document], name: str) -> None:
    listed.remove(the(listed, name))


def test_the_sound_plan_has_no_fault() -> None:
    assert faults_of(sound()) == []


# 1 and 2: what a plan says, and the diagnostics of a broken one.


@pytest.mark.inv("IR-2", "IR-6")
def test_an_inspected_plan_names_nodes_edges_owners_schemas_and_its_version_and_writes_nothing(tmp_path: Path) -> None:
    harness = Harness.on_disk(tmp_path / "data", CHOICE)
    plan = harness.call("inspect_workflow", {"workflowId": "test.choice", "detail": "plan"})["plan"]
    assert plan["v"] == 1
    tasks = [one for one in plan["nodes"] if one["kind"] == "task"]
    assert [one["nodeId"] for one in tasks] == ["before", "left", "right", "after"]
    assert {(one["owner"], one["inputSchemaRef"], one["evidenceSchemaRef"]) for one in tasks} == {
        ("agent", STEP_INPUT, NOTES_CONTRACT)
    }
    assert all(one["owner"] for one in plan["nodes"])
    assert {"edgeId": "before>which", "kind": "direct", "source": "before", "target": "which"} in plan["edges"]
    assert not (tmp_path / "data").exists()


BROKEN: Mapping[str, tuple[Break, str, str]] = {
    "dangling edge": (
        lambda parts: parts["edges"].append(edge("d", "nowhere")),
        "dangling_edge",
        "plan.edges[d>nowhere]",
    ),
    "duplicate node": (
        lambda parts: parts["nodes"].insert(1, task("a")),
        "duplicate_node_id",
        "plan.nodes[a]",
    ),
    "duplicate edge": (
        lambda parts: parts["edges"].append(edge("a", "which")),
        "duplicate_edge_id",
        "plan.edges[a>which]",
    ),
    "self-loop": (
        lambda parts: parts["edges"].append(edge("d", "d")),
        "self_loop",
        "plan.edges[d>d]",
    ),
    "no terminal": (
        lambda parts: [
            without(parts["nodes"], "again--end"),
            without(parts["edges"], "e>again--end"),
            the(parts["loops"], "again").update(body=("e",)),
        ],
        "no_terminal_node",
        "plan.loops[again]",
    ),
    "unreachable terminal": (
        lambda parts: (
            parts["nodes"].insert(7, node("aside", "terminal")),
            the(parts["loops"], "again").update(body=("e", "aside", "again--end")),
        ),
        "unreachable_terminal",
        "plan.nodes[aside]",
    ),
    "missing evidence schema": (
        lambda parts: the(parts["nodes"], "b").pop("evidenceSchemaRef"),
        "missing_evidence_schema",
        "plan.nodes[b]",
    ),
    "missing input schema": (
        lambda parts: the(parts["nodes"], "c").pop("inputSchemaRef"),
        "missing_input_schema",
        "plan.nodes[c]",
    ),
    "conditional without condition": (
        lambda parts: the(parts["edges"], "which>b").pop("conditionId"),
        "missing_condition",
        "plan.edges[which>b]",
    ),
    "unknown contract": (
        lambda parts: the(parts["nodes"], "b").update(evidenceSchemaRef="wr.contracts.none"),
        "unknown_contract_ref",
        "plan.nodes[b]",
    ),
    "unreachable node": (
        lambda parts: parts["nodes"].insert(1, task("island")) or parts["edges"].append(edge("island", "d")),
        "unreachable_node",
        "plan.nodes[island]",
    ),
}


@pytest.mark.inv("IR-4")
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_plan_is_reported_by_exactly_its_code_and_place(name: str) -> None:
    damage, code, place = BROKEN[name]
    parts = sound()
    damage(parts)
    assert faults_of(parts) == [(code, place)]


# 3 and 4: all faults at once, and before anything begins.

THREE_FAULTS: Document = {
    "id": "test.broken",
    "name": "Broken",
    "steps": [
        {"id": "a", "title": "A", "prompt": "A.", "outputContract": {"contractRef": "wr.contracts.lop_control"}},
        {"id": "b", "title": "B", "prompt": "B.", "assessmentRefs": ["nobody"]},
        {"type": "choose", "id": "c", "title": "C", "choose": [{"when": {"var": "goal", "equals": "x"}, "steps": [
            {"id": "d", "title": "D", "prompt": "D."}]}]},
    ],
}  # fmt: skip


@pytest.mark.inv("IR-4")
def test_three_independent_faults_are_all_reported_in_one_answer() -> None:
    answer = Harness.in_memory(THREE_FAULTS).start("test.broken")
    assert answer.code is ErrorCode.WORKFLOW_INVALID
    found = {(one["code"], one["path"]) for one in answer["details"]["diagnostics"]}
    assert found == {
        ("unknown_contract_ref", "steps[0].outputContract.contractRef"),
        ("unknown_assessment", "steps[1].assessmentRefs[0]"),
        ("no_default_branch", "steps[2]"),
    }


@pytest.mark.inv("IR-5")
@pytest.mark.asyncio
@pytest.mark.parametrize("era", ERAS)
async def test_a_broken_workflow_starts_nothing(tmp_path: Path, era: Era) -> None:
    async with Harness.on_disk(tmp_path / "data", THREE_FAULTS).client(era) as client:
        answer = await call_through(client, "start_workflow", {"workflowId": "test.broken"})
    assert answer.code is ErrorCode.WORKFLOW_INVALID
    assert "ackToken" not in json.dumps(dict(answer.structure))
    assert not (tmp_path / "data").exists(), "no session, no event, not even a key"


# 5 and 6: what would never end, and what would have no way out.


def test_a_way_back_is_an_unbounded_loop() -> None:
    parts = sound()
    parts["edges"].append(edge("d", "a"))
    assert ("unbounded_loop", "plan.edges[d>a]") in faults_of(parts)


def test_a_loop_without_body_and_bound_is_unbounded() -> None:
    parts = sound()
    parts["nodes"].insert(5, node("endless", "loop"))
    parts["edges"] += [edge("d", "endless"), edge("endless", "again")]
    assert faults_of(parts) == [("unbounded_loop", "plan.nodes[endless]")]


def test_a_loop_that_asks_nobody_is_an_automatic_cycle() -> None:
    parts = sound()
    the(parts["nodes"], "e").update(kind="fan_in", owner="harness", task=None)
    assert faults_of(parts) == [("automatic_cycle", "plan.loops[again]")]


def test_a_decision_whose_conditions_may_all_be_false_has_no_default_branch() -> None:
    parts = sound()
    the(parts["edges"], "which>c").update(kind="conditional", conditionId="is-left")
    assert faults_of(parts) == [("no_default_branch", "plan.nodes[which]")]


# 7 and 8: merges and barriers.


def step(name: str) -> Document:
    return {"id": name, "title": name.title(), "prompt": f"Do {name}."}


CHOICE: Document = {
    "id": "test.choice",
    "name": "Choice",
    "inputs": [{"key": "side", "description": "Which side.", "type": "string", "required": True}],
    "steps": [
        step("before"),
        {
            "type": "choose",
            "id": "which",
            "title": "Which side",
            "choose": [{"when": {"var": "side", "equals": "left"}, "steps": [step("left")]}],
            "otherwise": [step("right")],
        },
        step("after"),
    ],
}
BARRIER: Document = {
    "id": "test.barrier",
    "name": "Barrier",
    "steps": [
        {
            "type": "parallel",
            "id": "both",
            "title": "Both",
            "branches": [{"steps": [step("a1"), step("a2")]}, {"steps": [step("b1")]}],
        },
        step("join"),
    ],
}


@pytest.mark.parametrize(("side", "other"), [("left", "right"), ("right", "left")])
def test_after_one_side_of_a_choice_comes_the_merge_and_the_other_side_is_skipped(side: str, other: str) -> None:
    harness = Harness.in_memory(CHOICE)
    first = harness.start("test.choice", context={"side": side})
    second = harness.advance(first)
    third = harness.advance(second)
    assert [answer["pending"]["stepId"] for answer in (first, second, third)] == ["before", side, "after"]
    assert harness.advance(third)["isComplete"]
    last = harness.ports.read.reader.load(harness.session_of(first))
    assert last is not None
    run = last.runs[first["run"]["runId"]]
    assert run.tip is not None
    state = harness.ports.read.plans.snapshot(last.nodes[run.tip].snapshot, run.workflow_hash).state
    assert state.skipped.values == (other,)
    assert state.completed.values == tuple(sorted(("before", "which", side, "after")))


@pytest.mark.inv("IR-3")
def test_a_barrier_waits_for_all_branches_which_are_handed_out_in_plan_order_and_marked_parallel() -> None:
    played = Agent((Task("test.barrier"),)).work(Harness.in_memory(BARRIER).call)
    assert [
        (answer["pending"]["stepId"], answer["pending"].get("parallelWith", [])) for answer in played.presented
    ] == [
        ("a1", ["b1"]),
        ("a2", ["b1"]),
        ("b1", []),
        ("join", []),
    ]


# 9 and 10: determinism, and no plan is stuck. Random plans are in tests/property.


def compiled(document: Document) -> CompiledWorkflow:
    parsed = parse_workflow(json.loads(json.dumps(document)))
    assert isinstance(parsed, WorkflowDocument)
    found = compile_workflow(parsed)
    assert isinstance(found, Compiled)
    return found.workflow


def hash_of(document: Document) -> str:
    return pinned_bytes(compiled(document))[0]


@pytest.mark.inv("IR-7")
def test_the_same_source_is_the_same_plan_and_one_changed_character_another() -> None:
    turned = dict(reversed(CHOICE.items())) | {"steps": [dict(reversed(one.items())) for one in CHOICE["steps"]]}
    assert hash_of(turned) == hash_of(CHOICE) == hash_of(CHOICE)
    changed = json.loads(json.dumps(CHOICE).replace("Do after.", "Do after!"))
    assert hash_of(changed) != hash_of(CHOICE)


def test_a_run_is_the_same_to_the_byte_wherever_and_whenever_it_is_played() -> None:
    one, other = (Agent((Task("test.barrier"),), seed=3).work(Harness.in_memory(BARRIER).call) for _ in range(2))
    assert [answer.text for answer in one.answers] == [answer.text for answer in other.answers]


@pytest.mark.parametrize("seed", range(8))
def test_every_run_of_a_plan_with_choices_ends_complete(seed: int) -> None:
    document = CHOICE | {"steps": [*CHOICE["steps"], *BARRIER["steps"]]}
    agent = Agent((Task("test.choice"),), seed=seed, fault_rate=0.3, known={"side": ("left", "right")})
    assert agent.work(Harness.in_memory(document).call).is_complete


# 20 to 22: the rule of this directory, the pure rooms, and plans of another time.


@pytest.mark.inv("IR-10")
def test_nothing_here_can_open_a_socket_or_read_the_clock() -> None:
    with pytest.raises(AssertionError, match="socket"):
        socket.create_connection(("127.0.0.1", 9))
    with pytest.raises(AssertionError, match="CounterClock"):
        SystemClock().unix_ms()


@pytest.mark.inv("IR-9")
@pytest.mark.parametrize("room", PURE_ROOMS)
def test_a_pure_room_imports_no_input_no_output_no_clock_and_no_chance(room: str) -> None:
    modules = sorted((SRC / room).rglob("*.py"))
    assert modules
    found = {(path.name, name) for path in modules for name in imported(path) if name.partition(".")[0] in IMPURE}
    assert found == set()


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for found in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(found, ast.Import):
            names |= {alias.name for alias in found.names}
        elif isinstance(found, ast.ImportFrom) and found.module:
            names.add(found.module)
    return names


@pytest.mark.inv("IR-8")
def test_no_workflow_sdk_is_among_the_dependencies() -> None:
    needed = [line.lower() for line in requires("interlock") or [] if "extra ==" not in line]
    assert needed
    assert [line for line in needed for sdk in WORKFLOW_SDKS if line.startswith(sdk)] == []


NEWER = linear_workflow("test.newer", "a")


def newer_bytes() -> bytes:
    """Return a compiled workflow as a later Interlock may pin it."""
    return canonical_bytes(compiled(NEWER).to_json() | {"schemaVersion": 2})


@pytest.mark.inv("IR-1")
def test_a_plan_of_an_unknown_version_is_refused_when_it_is_read() -> None:
    with pytest.raises(UnknownVersionError, match="newer"):
        parse_compiled(newer_bytes())


@pytest.mark.inv("IR-1")
@pytest.mark.damages
def test_a_run_whose_plan_a_newer_release_pinned_is_left_alone_and_says_so() -> None:
    harness, data = Harness.in_memory(), newer_bytes()
    clock = harness.ports.clock
    start = Start(
        session=mint_session(clock),
        is_new_session=True,
        run=mint_run(clock),
        workflow=compiled(NEWER),
        workflow_hash=WorkflowHash(digest_of_bytes(data)),
        workflow_bytes=data,
        source_kind="project",
        source_ref="newer.json",
        request=Request(),
        baseline=BASELINE,
    )
    plan = plan_start(start)
    assert isinstance(plan, AppendPlan)
    numbers = iter(range(100))
    stamps = Stamps(
        mint_event_id=lambda: EventId(derived_id("evt", next(numbers))), recorded_at="2026-01-01T00:00:00.000Z"
    )
    with harness.ports.writer.hold(start.session) as lock:
        session = harness.ports.writer.append(lock, plan, stamps)
    mint = Mint(ring=FIXED_KEYS, session=session, run=session.runs[start.run])
    answer = harness.rehydrate(mint.state(root_node(start.run)))
    assert answer.code is ErrorCode.SESSION_NOT_HEALTHY
    assert answer["details"]["health"] == "unknown_version"
