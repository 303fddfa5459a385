"""The example contract from start to goals: commands of a person, and three agents over stdio that find their runs."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.q3_launch import all_definitions
from tests.support.server import Server

from interlock.define.operations.files import to_file_json
from interlock.testing.harness import ToolResult

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


def command(project: Path, *words: str) -> Any:
    """Run a command about contracts as a person would, and return what it prints as JSON."""
    own = {"INTERLOCK_DATA_DIR": str(project.parent / "data"), "INTERLOCK_WORKFLOWS_DIR": str(project / "none")}
    done = subprocess.run(
        [sys.executable, "-m", "interlock", "contract", *words, "--json"],
        cwd=project,
        env={**os.environ, **own},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def next_run(agent: Server, words: str) -> ToolResult | None:
    """Return the first run that an agent finds by a query and that it can continue; None if there is none."""
    found = agent.call("resume_session", query=words)
    assert not found.is_error, found.text
    for candidate in found["candidates"]:
        if words.lower() in candidate["run"]["workflowName"].lower():
            return agent.rehydrate(candidate["nextCall"]["arguments"]["stateToken"])
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


@pytest.mark.inv("GOAL-3", "GOAL-6", "GOAL-8", "EXE-13")
def test_three_agents_complete_the_work_and_one_goal_is_met_and_one_is_not(project: Path) -> None:
    data = project.parent / "data"
    session = command(project, "start", "Q3 Product Launch", "--goal", "Launch X")["session"]
    with Server(data, project) as one, Server(data, project) as two, Server(data, project) as three:
        assert work(one, "Engineering Sprint Cycle") == ["triage", "fast-track", "review"]
        assert work(two, "QA Validation Pipeline") == ["only"]
        assert work(three, "Infra BAU") == ["only"]
        status = command(project, "status", session)
        assert status["contract_execution"]["state"] == "completed"
        assert {goal["goal"] for goal in status["goals"]} == {"not_assessed"}
        assert len(command(project, "assess", session)["runs"]) == 3
        assert work(one, "Uptime Monitor Assessment") == ["only"]
        assert work(two, "Smoke Test Suite") == ["only"]
        assert work(three, "Survey Collection") == ["only"]
        assert len(command(project, "assess", session)["runs"]) == 2
        assert work(one, "Release Verification", MET) == ["status", "smoke", "verdict"]
        assert work(two, "CSAT Evaluator", NOT_MET) == ["only"]
    status = command(project, "status", session)
    assert status["contract_execution"]["state"] == "completed"
    assert [goal["goal"] for goal in status["goals"]] == ["met", "not_met"]
    assert [goal["goal"] for goal in status["sub_contracts"][0]["goals"]] == ["verdict"]
    assert len(status["contract_execution"]["assessment_executions"]) == 2
