"""The example contract from start to goals over stdio: a person's commands, three agents and a script of CI."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.forked_server import ForkedServer
from tests.support.q3_launch import SMOKE, all_definitions
from tests.support.server import Server, workspace_in

from interlock.cli.main import main
from interlock.define.operations.blocks import WorkBlock
from interlock.define.operations.builders import FlowBuilder, WorkBlockBuilder
from interlock.define.operations.files import to_file_json
from interlock.kernel.canonical import Json
from interlock.operations import CommandAdapter, InMemoryEventStore
from interlock.testing.harness import ToolResult, linear_workflow

MET = {
    "kind": "wr.gate_verdict",
    "version": 1,
    "verdict": "approved",
    "confidence": "high",
    "rationale": "All checks passed.",
}
NOT_MET = {"kind": "wr.decision", "conditionId": "csat", "result": False, "rationale": "The score is 4.1."}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    operations = tmp_path / "project" / ".interlock" / "operations"
    operations.mkdir(parents=True)
    for one in all_definitions():
        (operations / f"{one.id}.json").write_text(json.dumps(to_file_json(one)), encoding="utf-8")
    return tmp_path / "project"


class Person:
    """Types commands in a project, in this process: only what the agents and the script do goes over stdio."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def command(self, *words: str) -> Any:
        """Run a command and return what it prints as JSON."""
        self._capsys.readouterr()
        code = main([*words, "--json"])
        printed = self._capsys.readouterr()
        assert code == 0, printed.out + printed.err
        return json.loads(printed.out)


@pytest.fixture
def person(project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Person:
    monkeypatch.chdir(project)
    monkeypatch.setenv("INTERLOCK_DATA_DIR", str(project.parent / "data"))
    monkeypatch.setenv("INTERLOCK_WORKFLOWS_DIR", str(project / "none"))
    monkeypatch.delenv("INTERLOCK_WORKSPACE", raising=False)
    return Person(capsys)


def next_run(agent: Server, words: str) -> ToolResult | None:
    """Return the first run that an agent finds by a query and that it can continue; None if there is none."""
    found = agent.call("resume_session", query=words)
    assert not found.is_error, found.text
    for candidate in found["candidates"]:
        if words.lower() in candidate["run"]["workflowName"].lower():
            shown = agent.rehydrate(candidate["nextCall"]["arguments"]["stateToken"])
            assert "WORKFLOW_SOURCE_REMOVED" not in shown.warnings, "its definitions are published"
            return shown
    return None


def work(agent: Server, words: str, *more: dict[str, Any]) -> list[str]:
    """Let an agent find a run by the name of its flow and do every step of it; return the steps."""
    answer = next_run(agent, words)
    assert answer is not None, words
    done: list[str] = []
    while not answer["isComplete"]:
        done.append(answer["pending"]["stepId"])
        ports = {"route": "fast-track", "verdict": "approved", "passed": True}
        outputs = dict.fromkeys(required(answer), "made by an agent") | {
            port: value for port, value in ports.items() if port in required(answer)
        }
        answer = agent.report(answer, {"kind": "wr.block_outputs", "outputs": outputs}, *more)
        assert answer["kind"] == "ok", answer.text
    return done


def required(answer: ToolResult) -> Iterator[str]:
    """Yield the ports that the prompt of a step lists as its outputs, without the optional ones."""
    listed = answer["pending"]["prompt"].partition("**Outputs**, by port\n")[2].partition("\n\n")[0]
    return iter(
        [line.split("`")[1] for line in listed.splitlines() if line.startswith("- `") and "(optional)" not in line]
    )


def run_smoke_tests(ci: Server) -> str:
    """Let a script find the run of the smoke tests, run their command, and report what it printed; return the run."""
    answer = next_run(ci, SMOKE.name)
    assert answer is not None
    (slot,) = SMOKE.nodes
    (block,) = (one for one in all_definitions() if isinstance(one, WorkBlock) and one.id == slot.target_id)
    smoke = [sys.executable, "-c", "import json; print(json.dumps({'passed': True}))"]
    adapter, events = CommandAdapter({"ci": smoke}, name="ci", seconds_max=60), InMemoryEventStore()
    execution = adapter.execute_block(block, slot, {}, events)
    outcomes: list[Json] = [one.payload for one in events.get_events(execution) if one.event_type == "outcome_produced"]
    answer = ci.report(answer, {"kind": "wr.block_outputs", "outputs": outcomes[0]})
    assert answer["isComplete"], answer.text
    return answer["run"]["label"]


@pytest.mark.inv("GOAL-3", "GOAL-6", "GOAL-8", "EXE-13", "ADPT-4", "SRV-13")
def test_three_agents_and_a_script_complete_the_work_and_one_goal_is_met_and_one_is_not(
    project: Path, person: Person
) -> None:
    data = project.parent / "data"
    session = person.command("contract", "start", "Q3 Product Launch", "--goal", "Launch X")["session"]
    with ForkedServer(data, project) as one, ForkedServer(data, project) as two, ForkedServer(data, project) as three:
        assert work(one, "Engineering Sprint Cycle") == ["triage", "fast-track", "review"]
        assert work(two, "QA Validation Pipeline") == ["only"]
        assert work(three, "Infra BAU") == ["only"]
        status = person.command("contract", "status", session)
        assert status["contract_execution"]["state"] == "completed"
        assert {goal["goal"] for goal in status["goals"]} == {"not_assessed"}
        assert len(person.command("contract", "assess", session)["runs"]) == 3
        assert work(one, "Uptime Monitor Assessment") == ["only"]
        with ForkedServer(data, project, declared={"interlock/system": {}}) as ci:
            smoke = run_smoke_tests(ci)
        assert work(three, "Survey Collection") == ["only"]
        assert len(person.command("contract", "assess", session)["runs"]) == 2
        assert work(one, "Release Verification", MET) == ["status", "smoke", "verdict"]
        assert work(two, "CSAT Evaluator", NOT_MET) == ["only"]
    status = person.command("contract", "status", session)
    assert status["contract_execution"]["state"] == "completed"
    assert [goal["goal"] for goal in status["goals"]] == ["met", "not_met"]
    assert [goal["goal"] for goal in status["sub_contracts"][0]["goals"]] == ["verdict"]
    assert len(status["contract_execution"]["assessment_executions"]) == 2
    (block,) = person.command("session", "executions", smoke)["block_executions"]
    assert {one["executor"]["type"] for one in block["events"] if one["event_type"] == "completed"} == {"system"}


@pytest.mark.inv("OPS-16")
def test_a_flow_and_the_workflow_that_says_the_same_run_alike_over_stdio(tmp_path: Path) -> None:
    """Two slots that nothing connects, and one that waits for both: in parallel branches as a workflow."""
    block = WorkBlockBuilder("Work").description("Do it.").output("go").build()
    builder = FlowBuilder("Same").entry("a").entry("b").edge("a", "c").edge("b", "c")
    for alias in "abc":
        builder.add_block(block, alias=alias)
    flow = builder.metadata({"workflow_id": "test.flow"}).build()
    branches = [{"steps": [{"id": name, "title": "Work", "prompt": "Do it."}]} for name in "ab"]
    both = {"type": "parallel", "id": "p", "title": "Both", "branches": branches}
    space = workspace_in(tmp_path, twin=linear_workflow("test.twin", both, "c"))
    operations = space / ".interlock" / "operations"
    operations.mkdir()
    for one in (block, flow):
        (operations / f"{one.id}.json").write_text(json.dumps(to_file_json(one)), encoding="utf-8")
    sent = {"test.flow": {"kind": "wr.block_outputs", "outputs": {"go": 1}}, "test.twin": {"kind": "note", "text": "x"}}
    seen: dict[str, list[tuple[str, int, int]]] = {}
    with ForkedServer(tmp_path / "data", space) as agent:
        for workflow, artifact in sent.items():
            answer, steps = agent.start(workflow), list[tuple[str, int, int]]()
            while not answer["isComplete"]:
                place = answer["run"]["step"]
                steps.append((answer["pending"]["stepId"], place["number"], place["total"]))
                answer = agent.report(answer, artifact, notes="It was done with care, and no work is left.")
                assert answer["kind"] == "ok", answer.text
            seen[workflow] = steps
    assert seen["test.flow"] == seen["test.twin"] == [("a", 1, 3), ("b", 2, 3), ("c", 3, 3)]
