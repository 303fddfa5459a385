"""The commands read what a server with the same arguments would read, and judge a file by where it lies."""

import json
from pathlib import Path

import pytest

from interlock.cli.screen import StopError
from interlock.cli.workflow.places import BUNDLED, WorkflowLocations, chosen_workflow, places_of, shown, workflow_of
from interlock.config import settings as served
from interlock.service.workflows.catalog import Entry, RefusedFile
from interlock.testing.harness import linear_workflow


@pytest.fixture
def places(tmp_path: Path) -> WorkflowLocations:
    for name in ("project/.interlock/workflows", "user", "core"):
        (tmp_path / name).mkdir(parents=True)
    return WorkflowLocations(workspace=tmp_path / "project", user_dir=tmp_path / "user", core_source=tmp_path / "core")


def write(path: Path, workflow_id: str = "team.abc", **more: object) -> Path:
    path.write_text(json.dumps(linear_workflow(workflow_id, "a", **more)), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("environment", "workspace"),
    [
        ({"INTERLOCK_WORKSPACE": "/somewhere", "INTERLOCK_WORKFLOWS_DIR": "own"}, None),
        ({"CLAUDE_PROJECT_DIR": "/elsewhere"}, None),
        ({"INTERLOCK_WORKSPACE": "/somewhere"}, "given"),
        ({}, None),
    ],
)
def test_arguments_and_environment_mean_what_they_mean_to_a_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], workspace: str | None
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "given").mkdir()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "config.toml").write_text(f'[workflows]\nuser_dir = "{tmp_path}/configured"')
    environment = environment | {"INTERLOCK_DATA_DIR": str(tmp_path / "data")}
    arguments = served.PlaceArguments(workspace=workspace, core_source="given")
    places = places_of(environment, arguments)
    settings = served.read_settings(environment, arguments)
    assert isinstance(settings, served.Settings)
    assert places.workspace == settings.workspace
    assert places.user_dir == settings.user_workflows
    assert places.core_source == settings.core_source
    assert BUNDLED == served.BUNDLED


def test_a_faulty_configuration_stops_a_command_as_it_stops_a_server(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[gates]\nclaim = 'never'")
    with pytest.raises(StopError, match=r"config\.toml: gates\.claim: .* Did you mean `claims`\?") as stopped:
        places_of({}, served.PlaceArguments(data_dir=str(tmp_path)))
    assert stopped.value.exit_code == 2


def test_a_directory_that_is_none_is_a_wrong_command_line(tmp_path: Path) -> None:
    with pytest.raises(StopError, match="--core-source: there is no directory") as stopped:
        places_of({}, served.PlaceArguments(core_source=str(tmp_path / "none")))
    assert stopped.value.exit_code == 2


def test_a_file_belongs_to_the_source_it_lies_in_and_elsewhere_to_a_project(
    places: WorkflowLocations, tmp_path: Path
) -> None:
    assert places.kind_of(BUNDLED / "code_review.json") == "bundled"
    assert places.kind_of(tmp_path / "core" / "deep" / "a.json") == "bundled"
    assert places.kind_of(tmp_path / "user" / "a.json") == "user"
    assert places.kind_of(tmp_path / "a.json") == "project"


def test_a_link_belongs_where_it_leads(places: WorkflowLocations, tmp_path: Path) -> None:
    (tmp_path / "link.json").symlink_to(tmp_path / "core" / "a.json")
    assert places.kind_of(tmp_path / "link.json") == "bundled"


def test_a_reserved_id_is_reported_together_with_what_else_is_wrong(places: WorkflowLocations, tmp_path: Path) -> None:
    step = {"id": "t", "type": "template", "title": "T", "templateCall": {"templateId": "wr.templates.none"}}
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"id": "wr.abc", "name": "Abc", "steps": [step]}))
    found = places.entry_of(path)
    assert isinstance(found, Entry)
    assert isinstance(found.compiled, RefusedFile)
    assert {one.code for one in found.compiled.diagnostics} == {"unknown_template", "reserved_namespace"}


def test_a_file_may_call_a_routine_that_a_file_of_core_defines(places: WorkflowLocations, tmp_path: Path) -> None:
    call = {"id": "t", "type": "template", "title": "T", "templateCall": {"templateId": "wr.templates.routine.extra"}}
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"id": "team.abc", "name": "Abc", "steps": [call]}))
    with pytest.raises(StopError, match="unknown_template"):
        chosen_workflow(places, str(path))
    write(tmp_path / "core" / "extra.json", "routine-extra")
    with_core = WorkflowLocations(workspace=places.workspace, user_dir=places.user_dir, core_source=places.core_source)
    _, pinned = chosen_workflow(with_core, str(path))
    assert list(pinned.workflow.steps) == ["t--a"]


def test_a_path_is_shown_relative_where_it_lies_below_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert shown(tmp_path / "a" / "b.json") == "a/b.json"
    assert shown(Path("a/../b.json")) == "b.json"
    assert shown(Path("/elsewhere/b.json")) == "/elsewhere/b.json"


def test_a_path_that_exists_is_a_file_and_anything_else_an_id(places: WorkflowLocations, tmp_path: Path) -> None:
    write(tmp_path / "project/.interlock/workflows/abc.json")
    by_id, _ = chosen_workflow(places, "team.abc")
    by_file, _ = chosen_workflow(places, str(write(tmp_path / "other.json", "team.other")))
    assert (by_id.workflow_id, by_file.workflow_id) == ("team.abc", "team.other")


@pytest.mark.parametrize("missing", ["nowhere/abc", "abc.json", "abc.yaml"])
def test_what_looks_like_a_path_and_is_none_is_a_wrong_command_line(places: WorkflowLocations, missing: str) -> None:
    with pytest.raises(StopError, match="There is no file") as stopped:
        chosen_workflow(places, missing)
    assert stopped.value.exit_code == 2


def test_a_file_that_no_source_would_read_is_a_wrong_command_line(places: WorkflowLocations, tmp_path: Path) -> None:
    with pytest.raises(StopError, match=r"ends in \.json, \.yaml, \.yml") as stopped:
        chosen_workflow(places, str(write(tmp_path / "abc.txt")))
    assert stopped.value.exit_code == 2


def test_an_unknown_id_is_answered_with_the_one_that_was_meant(places: WorkflowLocations) -> None:
    with pytest.raises(StopError, match=r"Did you mean wr\.code_review\?") as stopped:
        workflow_of(places, "wr.code_reveiw")
    assert stopped.value.exit_code == 1


def test_a_refused_file_is_reported_by_its_id_with_every_error(places: WorkflowLocations, tmp_path: Path) -> None:
    path = tmp_path / "project/.interlock/workflows/abc.json"
    path.write_text(json.dumps({"id": "team.abc", "name": "", "steps": [{"id": "a"}]}))
    with pytest.raises(StopError) as stopped:
        workflow_of(places, "team.abc")
    assert str(stopped.value).count("abc.json (project):1:") >= 2


def test_a_file_without_permission_is_a_fault_of_the_file(places: WorkflowLocations, tmp_path: Path) -> None:
    found = places.entry_of(tmp_path / "gone.json")
    assert isinstance(found, RefusedFile)
    assert "cannot be read: No such file" in found.diagnostics[0].message
