"""Checking files: every fault of every file with its place, one summary, and an exit code that a script can trust."""

import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cli.conftest import Project

from interlock.cli.main import main
from interlock.config.settings import BUNDLED
from interlock.testing.harness import linear_workflow


def write(path: str, workflow_id: str, *steps: Any, **more: object) -> str:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(json.dumps(linear_workflow(workflow_id, *(steps or ("a",)), **more), indent=2))
    return path


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


def test_a_fine_file_is_counted_and_nothing_else_is_said(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    assert project.run("validate", write("a.json", "team.abc")) == 0
    assert lines(capsys) == ["1 file: 1 fine, 0 with warnings, 0 refused (0 errors, 0 warnings)"]


def test_every_fault_of_a_file_stands_together_with_its_place(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    faulty = write("sub/a.json", "team.abc", {"id": "a", "titel": "A", "prompt": "Do."}, "b", tags="none")
    assert project.run("validate", faulty, write("b.json", "team.b")) == 1
    *faults, summary = lines(capsys)
    assert all(re.match(r"sub/a\.json:\d+:\d+: error [a-z_]+ \S+: .+", fault) for fault in faults)
    assert "error unknown_key steps[0].titel: " in "\n".join(faults)
    assert summary.startswith("2 files: 1 fine, 0 with warnings, 1 refused (")


def test_a_loop_of_links_is_a_fault_of_its_files_alone(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    write("all/ok.json", "team.ok")
    for name, target in (("a.json", "b.json"), ("b.json", "a.json")):
        (Path("all") / name).symlink_to(target)
    assert project.run("validate", "all") == 1
    assert lines(capsys)[-1].startswith("3 files: 1 fine, 0 with warnings, 2 refused (")


@pytest.mark.inv("SRC-11")
def test_a_link_that_leads_out_of_a_directory_is_refused_with_the_reason(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    elsewhere, own = project.root / "elsewhere", project.root / "own"
    own.mkdir()
    elsewhere.mkdir()
    (elsewhere / "shared.json").write_text(json.dumps(linear_workflow("team.shared", "a", description="What.")))
    (own / "linked.json").symlink_to(elsewhere / "shared.json")
    reason = "It is a link that leads out of its source, so it is not read."
    for group in ("workflow", "contract"):
        assert main([group, "validate", "own"]) == 1
        said = capsys.readouterr().out
        assert f"linked.json:1:1: error wrong_value (document): {reason}" in said
        assert said.endswith("1 file: 0 fine, 0 with warnings, 1 refused (1 error, 0 warnings)\n")
    assert project.run("validate", "own", "elsewhere", "--json") == 1
    files = json.loads(capsys.readouterr().out)["files"]
    assert [(Path(one["file"]).name, len(one["diagnostics"])) for one in files] == [
        ("shared.json", 0),
        ("linked.json", 1),
    ]


def test_a_warning_does_not_refuse(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    assert project.run("validate", write("a.json", "abc")) == 0
    warning, summary = lines(capsys)
    assert warning.startswith("a.json:2:3: warning legacy_id id: ")
    assert "`project.abc`" in warning
    assert summary == "1 file: 0 fine, 1 with warnings, 0 refused (0 errors, 1 warning)"


def test_the_reserved_namespace_is_refused_outside_of_core_and_fine_inside(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    assert project.run("validate", write("a.json", "wr.abc")) == 1
    assert "error reserved_namespace id: " in lines(capsys)[0]
    assert project.run("validate", "a.json", core=Path.cwd()) == 0


def test_a_user_file_is_suggested_an_id_of_the_user(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    assert project.run("validate", write("user/a.json", "wr.abc")) == 1
    assert "`user.abc`" in lines(capsys)[0]


def test_the_later_of_two_files_with_one_id_is_refused(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    files = [write("a.json", "team.abc"), write("b.json", "team.abc"), write("c.json", "team.c")]
    assert project.run("validate", *files) == 1
    taken, summary = lines(capsys)
    assert taken.startswith("b.json:2:3: error id_taken id: 'team.abc' is the id of a.json already.")
    assert summary == "3 files: 2 fine, 0 with warnings, 1 refused (1 error, 0 warnings)"


def test_a_file_that_is_named_twice_is_looked_at_once(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    Path("link.json").symlink_to("a.json")
    assert project.run("validate", write("a.json", "team.abc"), ".", "link.json") == 0
    assert lines(capsys)[-1].startswith("1 file: 1 fine")


def test_a_directory_is_searched_for_every_form_and_bindings_are_no_workflow(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    write(".interlock/workflows/deep/a.json", "team.a")
    for name in ("b.yaml", "c.yml"):
        path = Path(".interlock/workflows", name)
        path.write_text(f"id: team.{path.stem}\nname: N\nsteps: [{{id: a, title: A, prompt: Do.}}]\n")
    Path(".interlock/bindings.json").write_text("{}")
    Path(".interlock/notes.txt").write_text("no workflow")
    assert project.run("validate", ".") == 0
    assert lines(capsys) == ["3 files: 3 fine, 0 with warnings, 0 refused (0 errors, 0 warnings)"]
    assert project.run("validate") == 0
    assert lines(capsys)[0].startswith("3 files: 3 fine")


def test_what_ships_is_fine(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    assert project.run("validate", str(BUNDLED)) == 0
    assert "0 with warnings, 0 refused" in lines(capsys)[-1]


@pytest.mark.parametrize(
    ("paths", "words"),
    [
        (["none.json"], "There is no file or directory none.json."),
        ([], "The project has no directory .interlock/workflows."),
        (["empty"], "There is no workflow file in empty."),
        (["a.txt"], "a.txt does not have the name of a workflow file."),
    ],
)
def test_nothing_to_check_is_a_wrong_command_line(
    project: Project, capsys: pytest.CaptureFixture[str], paths: list[str], words: str
) -> None:
    Path("empty").mkdir()
    Path("a.txt").write_text("{}")
    assert project.run("validate", *paths) == 2
    assert capsys.readouterr().err.startswith(f"interlock workflow: {words}\n")


def test_json_holds_each_file_with_its_id_hash_and_faults(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    Path("broken.json").write_text("{")
    files = [write("a.json", "team.abc"), "broken.json", write("b.json", "wr.b")]
    assert project.run("validate", *files, "--json") == 1
    result = json.loads(capsys.readouterr().out)
    fine, broken, reserved = result["files"]
    assert fine["file"] == "a.json"
    assert fine["workflowId"] == "team.abc"
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", fine["workflowHash"])
    assert fine["diagnostics"] == []
    assert broken["workflowId"] is None
    assert broken["diagnostics"][0]["code"] == "not_json"
    assert "workflowHash" not in reserved
    assert reserved["diagnostics"][0] | {"message": "", "fix": ""} == {
        "path": "id",
        "code": "reserved_namespace",
        "severity": "error",
        "message": "",
        "fix": "",
        "line": 2,
        "column": 3,
    }
    assert result["summary"] == {"files": 3, "fine": 1, "withWarnings": 0, "refused": 2, "errors": 2, "warnings": 0}


def test_a_slot_is_bound_as_the_project_binds_it(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    call = {"type": "template", "id": "t", "title": "T", "templateCall": {"slotId": "work"}}
    slot = {"slotId": "work", "purpose": "Do it", "default": "wr.templates.routine.none"}
    path = write(".interlock/workflows/a.json", "team.abc", call, extensionPoints=[slot])
    assert project.run("validate", path) == 1
    Path(".interlock/bindings.json").write_text('{"work": "wr.templates.routine.other"}')
    assert project.run("validate", path) == 1
    assert "wr.templates.routine.other" in capsys.readouterr().out


class Screen(io.StringIO):
    """A terminal that somebody looks at."""

    def isatty(self) -> bool:
        return True


def test_progress_is_drawn_for_directories_where_somebody_looks(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("all/a.json", "team.a")
    write("all/b.json", "team.b")
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    project.run("validate", "all/a.json", "all/b.json")
    assert screen.getvalue() == ""
    project.run("validate", "all")
    assert "1/2" in screen.getvalue()
    assert screen.getvalue().endswith("\r\x1b[K")
