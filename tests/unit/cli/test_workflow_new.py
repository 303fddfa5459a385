"""A new workflow is valid from the first line on, goes where a server reads it, and never overwrites a file."""

import json
from pathlib import Path

import pytest

from interlock.cli.screen import StopError
from interlock.cli.workflow.new import NewWorkflow, run_new, run_schema
from interlock.cli.workflow.places import BUNDLED, Places, chosen_workflow
from interlock.cli.workflow.validate import run_validate
from interlock.define.text_form import Form
from interlock.testing.harness import linear_workflow

OWN = Path(".interlock/workflows")


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    monkeypatch.chdir(tmp_path)
    return Places(workspace=tmp_path, user_dir=tmp_path / "user", core_source=None)


def new(
    places: Places, workflow_id: str, origin: str | None = None, directory: str | None = None, form: Form = "json"
) -> int:
    return run_new(places, NewWorkflow(workflow_id=workflow_id, origin=origin, directory=directory, form=form))


def refusal(places: Places, workflow_id: str, origin: str | None = None, directory: str | None = None) -> StopError:
    with pytest.raises(StopError) as stopped:
        new(places, workflow_id, origin, directory)
    return stopped.value


def test_a_new_workflow_is_fine_and_the_author_is_told_what_to_do_next(
    places: Places, capsys: pytest.CaptureFixture[str]
) -> None:
    assert new(places, "team.release_notes") == 0
    assert capsys.readouterr().out.splitlines() == [
        "Wrote .interlock/workflows/release_notes.json.",
        "Edit it, then check it: interlock workflow validate .interlock/workflows/release_notes.json",
        "Start it: ask your agent to start `team.release_notes`; a running server sees it at once.",
    ]
    assert run_validate(places, [], as_json=False) == 0
    assert capsys.readouterr().out.startswith("1 file: 1 fine")


def test_both_forms_of_the_example_are_the_same_workflow_and_only_yaml_has_comments(places: Places) -> None:
    new(places, "team.abc", directory="j")
    new(places, "team.abc", directory="y", form="yaml")
    in_json, in_yaml = (chosen_workflow(places, path)[1] for path in ("j/abc.json", "y/abc.yaml"))
    assert in_json.workflow_hash == in_yaml.workflow_hash
    assert "# The notes must hold this word" in Path("y/abc.yaml").read_text()


@pytest.mark.parametrize("workflow_id", ["team.null", "team.yes", "team.w-1_x", "true.false"])
def test_an_id_that_reads_like_another_value_is_still_a_text(places: Places, workflow_id: str) -> None:
    new(places, workflow_id, directory="d", form="yaml")
    entry, _ = chosen_workflow(places, f"d/{workflow_id.partition('.')[2]}.yaml")
    assert entry.workflow_id == workflow_id


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_a_copy_of_each_bundled_workflow_differs_in_its_id_alone(places: Places, form: Form) -> None:
    for path in sorted(BUNDLED.glob("*.json")):
        new(places, f"team.{path.stem}", f"wr.{path.stem}", "copies", form)
        entry, _ = chosen_workflow(places, f"copies/{path.stem}.{form}")
        assert entry.value == json.loads(path.read_text()) | {"id": f"team.{path.stem}"}


@pytest.mark.parametrize(
    ("workflow_id", "suggestion"),
    [("wr.abc", "project.abc"), ("abc", "project.abc"), ("Team.Abc-Def", "project.abc_def"), ("a.b.c", "project.c")],
)
def test_an_id_that_a_project_cannot_have_is_a_wrong_command_line(
    places: Places, workflow_id: str, suggestion: str
) -> None:
    stopped = refusal(places, workflow_id)
    assert stopped.exit_code == 2
    assert suggestion in stopped.fix
    assert not OWN.exists()


def test_a_file_that_exists_is_never_overwritten(places: Places) -> None:
    OWN.mkdir(parents=True)
    (OWN / "abc.json").write_text("mine")
    stopped = refusal(places, "team.abc")
    assert stopped.exit_code == 1
    assert "exists already" in stopped.message
    assert (OWN / "abc.json").read_text() == "mine"


def test_an_id_that_another_file_has_is_refused_where_both_would_be_read(places: Places) -> None:
    OWN.mkdir(parents=True)
    (OWN / "other.json").write_text(json.dumps(linear_workflow("team.abc", "a")))
    assert "other.json of the project source" in refusal(places, "team.abc").message
    assert new(places, "team.abc", directory="elsewhere") == 0


def test_an_unknown_origin_is_answered_with_the_one_that_was_meant(places: Places) -> None:
    assert "wr.code_review" in refusal(places, "team.abc", "wr.code_reveiw").fix
    assert not OWN.exists()


def test_a_directory_that_cannot_be_made_is_told(places: Places) -> None:
    Path("file").write_text("")
    stopped = refusal(places, "team.abc", None, "file/below")
    assert stopped.exit_code == 1
    assert "file/below is not a directory, or lies below a file" in stopped.message


def test_a_file_outside_of_every_source_is_said_to_be_read_by_no_server(
    places: Places, capsys: pytest.CaptureFixture[str]
) -> None:
    new(places, "team.abc", directory="elsewhere")
    assert "A server reads it once it lies in .interlock/workflows or in user." in capsys.readouterr().out


def test_the_schema_is_the_published_one(capsys: pytest.CaptureFixture[str]) -> None:
    published = Path(__file__).parents[3] / "tool-schemas" / "workflow-document.json"
    assert run_schema() == 0
    told = json.loads(capsys.readouterr().out)
    assert told["title"] == "WorkflowForm"
    if published.exists():
        assert told == json.loads(published.read_text())
