"""A new workflow is valid from the first line on, goes where a server reads it, and never overwrites a file."""

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator, ValidationError
from tests.unit.cli.conftest import Project

from interlock.cli.main import main
from interlock.cli.workflow.places import BUNDLED, WorkflowLocations, chosen_workflow
from interlock.define.source.text_form import TextFormat
from interlock.service.workflows.catalog import Entry, Pinnable
from interlock.testing.harness import linear_workflow

OWN = Path(".interlock/workflows")


def new(
    project: Project,
    workflow_id: str,
    origin: str | None = None,
    directory: str | None = None,
    form: TextFormat = "json",
) -> int:
    copied = [] if origin is None else ["--from", origin]
    placed = [] if directory is None else ["--dir", directory]
    return project.run("new", workflow_id, *copied, *placed, *(["--yaml"] if form == "yaml" else []))


def written(project: Project, path: str) -> tuple[Entry, Pinnable]:
    """Return what a file that was written comes to."""
    return chosen_workflow(
        WorkflowLocations(workspace=project.root, user_dir=project.root / "user", core_source=None), path
    )


def test_a_new_workflow_is_fine_and_the_author_is_reported_what_to_do_next(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    assert new(project, "team.release_notes") == 0
    assert capsys.readouterr().out.splitlines() == [
        "Wrote .interlock/workflows/release_notes.json.",
        "Edit it, then check it: interlock workflow validate .interlock/workflows/release_notes.json",
        "Start it: ask your agent to start `team.release_notes`; a running server finds it immediately.",
    ]
    assert project.run("validate") == 0
    assert capsys.readouterr().out.startswith("1 file: 1 fine")


def test_both_forms_of_the_example_are_the_same_workflow_and_only_yaml_has_comments(project: Project) -> None:
    new(project, "team.abc", directory="j")
    new(project, "team.abc", directory="y", form="yaml")
    in_json, in_yaml = (written(project, path)[1] for path in ("j/abc.json", "y/abc.yaml"))
    assert in_json.workflow_hash == in_yaml.workflow_hash
    assert "# The notes must hold this word" in Path("y/abc.yaml").read_text()


@pytest.mark.parametrize("workflow_id", ["team.null", "team.yes", "team.w-1_x", "true.false"])
def test_an_id_that_reads_like_another_value_is_still_a_text(project: Project, workflow_id: str) -> None:
    new(project, workflow_id, directory="d", form="yaml")
    entry, _ = written(project, f"d/{workflow_id.partition('.')[2]}.yaml")
    assert entry.workflow_id == workflow_id


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_a_copy_of_each_bundled_workflow_differs_in_its_id_alone(project: Project, form: TextFormat) -> None:
    for path in sorted(BUNDLED.glob("*.json")):
        new(project, f"team.{path.stem}", f"wr.{path.stem}", "copies", form)
        entry, _ = written(project, f"copies/{path.stem}.{form}")
        assert entry.document.value == json.loads(path.read_text()) | {"id": f"team.{path.stem}"}


@pytest.mark.parametrize(
    ("workflow_id", "suggestion"),
    [("wr.abc", "project.abc"), ("abc", "project.abc"), ("Team.Abc-Def", "project.abc_def"), ("a.b.c", "project.c")],
)
def test_an_id_that_a_project_cannot_have_is_a_wrong_command_line(
    project: Project, capsys: pytest.CaptureFixture[str], workflow_id: str, suggestion: str
) -> None:
    assert new(project, workflow_id) == 2
    assert suggestion in capsys.readouterr().err
    assert not OWN.exists()


def test_a_file_that_exists_is_never_overwritten(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    OWN.mkdir(parents=True)
    (OWN / "abc.json").write_text("mine")
    assert new(project, "team.abc") == 1
    assert "exists already" in capsys.readouterr().err
    assert (OWN / "abc.json").read_text() == "mine"


def test_an_id_that_another_file_has_is_refused_where_both_would_be_read(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    OWN.mkdir(parents=True)
    (OWN / "other.json").write_text(json.dumps(linear_workflow("team.abc", "a")))
    assert new(project, "team.abc") == 1
    assert "other.json of the project source" in capsys.readouterr().err
    assert new(project, "team.abc", directory="elsewhere") == 0


def test_an_unknown_origin_is_answered_with_the_one_that_was_meant(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    assert new(project, "team.abc", "wr.code_reveiw") == 1
    assert "Did you mean wr.code_review?" in capsys.readouterr().err
    assert not OWN.exists()


def test_a_directory_that_cannot_be_made_is_reported(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    Path("file").write_text("")
    assert new(project, "team.abc", None, "file/below") == 1
    assert "file/below is not a directory, or a part of its path is a file" in capsys.readouterr().err


def test_a_file_outside_of_every_source_is_said_to_be_read_by_no_server(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    new(project, "team.abc", directory="elsewhere")
    said = "A server reads only .interlock/workflows, .interlock/operations and user: move the file to one of them."
    assert said in capsys.readouterr().out


@pytest.mark.parametrize("directory", [".interlock/operations", ".interlock/workflows/sub", "user/sub"])
def test_a_file_in_or_below_a_directory_of_a_source_is_said_to_be_read(
    project: Project, capsys: pytest.CaptureFixture[str], directory: str
) -> None:
    assert new(project, "team.abc", directory=directory) == 0
    assert "Start it: ask your agent to start `team.abc`" in capsys.readouterr().out
    assert new(project, "team.abc", directory=f"{directory}/other") == 1
    assert "has the id 'team.abc' already" in capsys.readouterr().err


def test_the_schema_is_the_published_one(capsys: pytest.CaptureFixture[str]) -> None:
    published = Path(__file__).parents[3] / "tool-schemas" / "workflow-document.json"
    assert main(["workflow", "schema"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["title"] == "WorkflowForm"
    if published.exists():
        assert result == json.loads(published.read_text())


@pytest.mark.inv("IR-18")
def test_the_schema_of_plan_files_is_printed_and_an_exported_plan_has_it(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["workflow", "schema", "--plan"]) == 0
    schema = json.loads(capsys.readouterr().out)
    assert schema["required"] == ["schemaVersion", "workflowId", "name", "plan"]
    assert project.run("plan", "wr.quick_task", "--json") == 0
    plan = json.loads(capsys.readouterr().out)
    Draft202012Validator(schema).validate(plan)
    with pytest.raises(ValidationError):
        Draft202012Validator(schema).validate(plan | {"steps": []})
