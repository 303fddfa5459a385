"""The commands for workflows take a plan file: they print it, check it, draw it, and copy it under another id."""

import json
from pathlib import Path

import pytest
from tests.unit.cli.conftest import Project

from interlock.testing.harness import linear_workflow

OWN = Path(".interlock/workflows")
FILE = "made.plan.json"


def export(project: Project, capsys: pytest.CaptureFixture[str], named: str = "team.made") -> str:
    assert project.run("plan", named, "--json") == 0
    return capsys.readouterr().out


def write_plan(plan: str, name: str) -> dict[str, object]:
    """Write a plan as a workflow of the project with another id, and return it."""
    value = json.loads(plan) | {"workflowId": f"team.{name}"}
    del value["workflowHash"]
    OWN.mkdir(parents=True)
    (OWN / f"{name}.plan.json").write_text(json.dumps(value))
    return value


@pytest.fixture
def plan(project: Project, capsys: pytest.CaptureFixture[str]) -> str:
    """Return the plan of a workflow of the user; the same plan is in a file outside of all sources."""
    (project.root / "user").mkdir()
    document = linear_workflow("team.made", "a", "b", description="What it is.")
    (project.root / "user" / "made.json").write_text(json.dumps(document))
    text = export(project, capsys)
    Path(FILE).write_text(text)
    return text


@pytest.mark.inv("IR-14")
def test_a_plan_exported_imported_and_exported_again_is_the_same_bytes(
    project: Project, plan: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert export(project, capsys, FILE) == plan


@pytest.mark.inv("IR-14")
def test_a_bundled_plan_can_be_printed_from_a_file(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    name = _ids(project, capsys)[0]
    assert name.startswith("wr.")
    text = export(project, capsys, name)
    Path(FILE).write_text(text)
    assert export(project, capsys, FILE) == text


def _ids(project: Project, capsys: pytest.CaptureFixture[str]) -> list[str]:
    assert project.run("list", "--json") == 0
    return [one["workflowId"] for one in json.loads(capsys.readouterr().out)["workflows"]]


@pytest.mark.inv("IR-6", "IR-14")
def test_a_plan_file_is_checked_drawn_and_shown_as_its_workflow_is(
    project: Project, plan: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert project.run("validate", FILE, "--json") == 0
    (checked,) = json.loads(capsys.readouterr().out)["files"]
    assert (checked["workflowId"], checked["workflowHash"]) == ("team.made", json.loads(plan)["workflowHash"])
    for command in ("graph", "plan"):
        assert project.run(command, "team.made") == 0
        of_document = capsys.readouterr().out
        assert project.run(command, FILE) == 0
        assert capsys.readouterr().out == of_document


@pytest.mark.inv("IR-4", "IR-14")
def test_a_broken_plan_file_is_reported_whole_with_lines(
    project: Project, plan: str, capsys: pytest.CaptureFixture[str]
) -> None:
    value = json.loads(plan)
    value["plan"]["edges"][0]["target"] = "nowhere"
    value["plan"]["nodes"][0]["title"] = ""
    Path(FILE).write_text(json.dumps(value, indent=2))
    assert project.run("validate", FILE) == 1
    out = capsys.readouterr().out
    for code in ("dangling_edge", "empty", "wrong_value"):
        assert code in out
    assert project.run("plan", FILE) == 1
    assert "dangling_edge" in capsys.readouterr().err


@pytest.mark.inv("IR-14")
def test_a_plan_file_in_the_folder_of_the_project_is_listed(
    project: Project, plan: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_plan(plan, "copy")
    assert project.run("list", "--query", "copy", "--json") == 0
    (listed,) = json.loads(capsys.readouterr().out)["workflows"]
    assert (listed["workflowId"], listed["steps"], listed["source"]) == ("team.copy", 2, "copy.plan.json")


def test_a_new_workflow_can_be_a_copy_of_a_plan(
    project: Project, plan: str, capsys: pytest.CaptureFixture[str]
) -> None:
    value = write_plan(plan, "origin")
    assert project.run("new", "team.second", "--from", "team.origin") == 0
    capsys.readouterr()
    assert json.loads(export(project, capsys, "team.second"))["plan"] == value["plan"]
