"""Looking at workflows: everything that can be started and everything that cannot, and the plan of each, whole."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from interlock.cli.workflow.inspect import run_inspect
from interlock.cli.workflow.list import run_list
from interlock.cli.workflow.places import Places
from interlock.cli.workflow.plan import run_plan
from interlock.service.inspect_workflow import InspectCommand, inspect_workflow, plan_text
from interlock.testing.harness import linear_workflow

OWN = Path(".interlock/workflows")


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    monkeypatch.chdir(tmp_path)
    OWN.mkdir(parents=True)
    return Places(workspace=tmp_path, user_dir=tmp_path / "user", core_source=None)


def write(name: str, *steps: str | Mapping[str, object], **more: object) -> None:
    (OWN / f"{name}.json").write_text(json.dumps(linear_workflow(f"team.{name}", *steps, **more)))


UNFOLDED = {"id": "t", "type": "template", "title": "T", "templateCall": {"templateId": "wr.templates.none"}}


def test_a_list_shows_what_can_be_started_and_what_cannot(places: Places, capsys: pytest.CaptureFixture[str]) -> None:
    write("fine", "a", "b", tags=["demo"])
    write("faulty", {"id": "a", "prompt": "Do."})
    write("uncompiled", UNFOLDED)
    assert run_list(places, tag=None, query="team", as_json=False) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[1].split()[:4] == ["team.fine", "2", "project", "demo"]
    refused = told[told.index("Cannot be started:") :]
    assert [row.split()[0] for row in refused[2:4]] == ["faulty.json", "uncompiled.json"]
    assert "steps[0].title" in refused[2]
    assert "wr.templates.none" in refused[3]


def test_a_list_is_complete_however_many_there_are(places: Places, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(40):
        write(f"w{number}", "a", tags=["many"])
    assert run_list(places, tag="many", query=None, as_json=True) == 0
    told = json.loads(capsys.readouterr().out)
    assert len(told["workflows"]) == 40
    assert told["refused"] == []


def test_a_list_as_json_tells_the_same_of_each(places: Places, capsys: pytest.CaptureFixture[str]) -> None:
    write("fine", "a", tags=["demo"], description="What it is.")
    write("uncompiled", UNFOLDED)
    run_list(places, tag=None, query="team", as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert told["workflows"] == [
        {
            "workflowId": "team.fine",
            "name": "Workflow team.fine",
            "description": "What it is.",
            "tags": ["demo"],
            "steps": 1,
            "sourceKind": "project",
            "source": "fine.json",
            "idStatus": "namespaced",
        }
    ]
    (refused,) = told["refused"]
    assert (refused["source"], refused["workflowId"]) == ("uncompiled.json", "team.uncompiled")
    assert refused["diagnostic"]["code"] == "unknown_template"


def test_an_empty_list_says_how_to_see_more(places: Places, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_list(places, tag="none", query=None, as_json=False) == 0
    assert "Leave out --tag and --query" in capsys.readouterr().out


@pytest.mark.parametrize("detail", ["summary", "source"])
def test_an_inspection_says_what_an_agent_is_told(
    places: Places, capsys: pytest.CaptureFixture[str], detail: str
) -> None:
    write("fine", "a")
    command = InspectCommand(
        workflow_id="team.fine", workspace=places.workspace, detail="source" if detail == "source" else "summary"
    )
    told = inspect_workflow(places.catalog, command)
    assert run_inspect(places, "team.fine", command.detail, as_json=False) == 0
    assert capsys.readouterr().out == f"{getattr(told, 'text', None)}\n"
    assert run_inspect(places, "team.fine", command.detail, as_json=True) == 0
    assert json.loads(capsys.readouterr().out) == getattr(told, "structure", None)


def test_an_inspected_plan_is_whole_however_long_it_is(places: Places, capsys: pytest.CaptureFixture[str]) -> None:
    write("long", *({"id": f"s{at}", "title": f"S{at}", "prompt": "Do it. " * 200} for at in range(40)))
    assert run_inspect(places, "team.long", "plan", as_json=False) == 0
    assert capsys.readouterr().out == f"{plan_text(places.catalog, 'team.long', places.workspace)}\n"
    assert run_inspect(places, "team.long", "plan", as_json=True) == 0
    assert len(json.loads(capsys.readouterr().out)["plan"]["nodes"]) == 41


def test_a_plan_is_told_with_its_nodes_owners_schemas_and_loops(
    places: Places, capsys: pytest.CaptureFixture[str]
) -> None:
    body = [{"id": "b", "title": "B", "prompt": "Do b."}]
    loop = {"type": "loop", "loopId": "l", "title": "L", "maxIterations": 3, "for": {"count": 2}, "body": body}
    write("loops", "a", loop)
    assert run_plan(places, str(OWN / "loops.json"), as_json=False) == 0
    told = capsys.readouterr().out
    assert "plan version 1" in told
    rows = [line.split() for line in told.splitlines()]
    assert ["a", "task", "agent", "wr.contracts.step_input", "wr.contracts.notes", "-", "authored", "l"] in rows
    assert ["l", "loop", "harness", "-", "-", "-", "authored", "--end"] in rows
    assert ["l", "2", "passes,", "at", "most", "3", "passes"] in [row[:7] for row in rows]


def test_a_plan_tells_which_context_keys_its_steps_set(places: Places, capsys: pytest.CaptureFixture[str]) -> None:
    keys = [{"key": key, "type": "string", "description": f"The {key}."} for key in ("mode", "outcome")]
    write("sets", {"id": "a", "title": "A", "prompt": "Do.", "set": [{"key": "outcome", "value": "x"}]}, inputs=keys)
    assert run_plan(places, str(OWN / "sets.json"), as_json=False) == 0
    told = capsys.readouterr().out
    assert "- start with `context.mode` (string): The mode." in told
    assert "- `context.outcome` (string) is set by `a`, no need to send it: The outcome." in told


def test_a_plan_as_json_holds_all_of_it_and_what_it_hashes_to(
    places: Places, capsys: pytest.CaptureFixture[str]
) -> None:
    write("fine", "a")
    assert run_plan(places, "team.fine", as_json=True) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["workflowId"] == "team.fine"
    assert told["workflowHash"].startswith("sha256:")
    assert told["schemaVersion"] == 1
    assert [node["nodeId"] for node in told["plan"]["nodes"]] == ["a", "--end"]
    assert set(told["plan"]) == {"v", "nodes", "edges", "loops", "conditions"}


def test_looking_writes_nothing(places: Places) -> None:
    write("fine", "a")
    before = {path: path.stat().st_mtime_ns for path in Path().rglob("*")}
    run_list(places, tag=None, query=None, as_json=False)
    run_inspect(places, "team.fine", "plan", as_json=False)
    run_plan(places, "team.fine", as_json=False)
    assert {path: path.stat().st_mtime_ns for path in Path().rglob("*")} == before
