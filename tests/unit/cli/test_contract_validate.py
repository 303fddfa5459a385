"""Checking files of blocks, flows and contracts: they may refer to each other, and every fault has its place."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from tests.support.definitions import BLOCK, CONTRACT, FLOW, edge, sound_definitions

from interlock.cli.main import main
from interlock.define.operations.files import to_file_json
from interlock.kernel.canonical import Json
from interlock.testing.harness import linear_workflow

HOME = ".interlock/operations"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a project whose operations are all sound. It is the current directory."""
    monkeypatch.chdir(tmp_path)
    for key in ("HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(key, str(tmp_path / "home"))
    for name in ("INTERLOCK_DATA_DIR", "INTERLOCK_WORKSPACE", "INTERLOCK_WORKFLOWS_DIR"):
        monkeypatch.delenv(name, raising=False)
    for one in sound_definitions():
        if one.name not in {"no end", "ring", "outer ring"}:
            write(f"{HOME}/{one.name}.json", to_file_json(one))
    write(f"{HOME}/deep/contract.json", CONTRACT)
    return tmp_path


def write(path: str, value: Mapping[str, object]) -> str:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(json.dumps(value, indent=1), encoding="utf-8")
    return path


def validate(*arguments: str) -> int:
    return main(["contract", "validate", *arguments])


@pytest.mark.usefixtures("project")
@pytest.mark.inv("OPS-12")
def test_the_files_of_a_project_may_refer_to_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    assert validate() == 0
    assert capsys.readouterr().out == "6 files: 6 fine, 0 with warnings, 0 refused (0 errors, 0 warnings)\n"


@pytest.mark.usefixtures("project")
@pytest.mark.inv("OPS-12")
def test_every_fault_is_reported_with_its_line_code_and_path(capsys: pytest.CaptureFixture[str]) -> None:
    write(f"{HOME}/flow.json", {**FLOW, "edges": [edge(None, "one"), edge("one", "three", ("nothing", "x"))]})
    assert validate() == 1
    *faults, summary = capsys.readouterr().out.splitlines()
    assert [line.split(" ")[1:3] for line in faults] == [
        ["error", "dangling_edge"],
        ["error", "invalid_port_mapping"],
    ]
    assert faults[0].startswith(f"{HOME}/flow.json:")
    assert "edges[1].target_id" in faults[0]
    assert summary.endswith("1 refused (2 errors, 0 warnings)")


@pytest.mark.usefixtures("project")
@pytest.mark.inv("OPS-16")
def test_a_flow_that_cannot_run_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    write(f"{HOME}/flow.json", {**FLOW, "edges": [edge("one", "two")]})
    assert validate() == 1
    assert "error missing_entry edges" in capsys.readouterr().out


@pytest.mark.usefixtures("project")
@pytest.mark.inv("OPS-16", "SRC-1", "SRC-3")
@pytest.mark.parametrize(("stated", "code"), [("wr.mine", "reserved_namespace"), ("Bad Id", "bad_id"), (7, "bad_id")])
def test_the_id_by_which_agents_start_a_flow_is_checked_as_the_list_checks_it(
    stated: Json, code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write(f"{HOME}/flow.json", {**FLOW, "metadata": {"workflow_id": stated}})
    assert validate() == 1
    assert f"error {code} metadata.workflow_id" in capsys.readouterr().out
    assert main(["workflow", "list"]) == 0
    printed = capsys.readouterr().out
    assert "metadata.workflow_id" in printed
    assert "`interlock contract validate`" in " ".join(printed.split())


@pytest.mark.usefixtures("project")
@pytest.mark.inv("OPS-3")
def test_two_files_with_other_content_under_one_version_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    write("a.json", BLOCK)
    write("b.json", {**BLOCK, "description": "changed"})
    write("c.json", {**BLOCK, "description": ""})
    assert validate("a.json", "b.json", "c.json") == 1
    first, summary = capsys.readouterr().out.splitlines()
    assert first.startswith("b.json:")
    assert "version_taken version" in first
    assert "Give the changed definition version 2." in first
    assert summary.startswith("3 files: 2 fine")


@pytest.mark.usefixtures("project")
def test_the_result_as_json_names_each_definition(capsys: pytest.CaptureFixture[str]) -> None:
    faulty = write("b.yaml", {"kind": "block"})
    assert validate(write("a.json", BLOCK), faulty, "--json") == 1
    result = json.loads(capsys.readouterr().out)
    assert result["files"][0] == {
        "file": "a.json",
        "kind": "block",
        "id": BLOCK["id"],
        "version": 1,
        "name": "block",
        "diagnostics": [],
    }
    assert result["files"][1]["file"] == "b.yaml"
    assert {one["code"] for one in result["files"][1]["diagnostics"]} == {"missing_key"}
    assert result["summary"]["errors"] == 3


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("arguments", [["nowhere"], ["empty"], ["notes.txt"]])
def test_a_path_without_definitions_ends_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    Path("empty").mkdir()
    Path("notes.txt").write_text("notes", encoding="utf-8")
    assert validate(*arguments) == 2
    assert capsys.readouterr().err


@pytest.mark.usefixtures("project")
def test_a_project_without_operations_ends_with_2(tmp_path: Path) -> None:
    assert validate("--workspace", str(tmp_path / "home")) == 2


@pytest.mark.usefixtures("project")
def test_a_definition_is_no_broken_workflow(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["workflow", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert HOME not in json.dumps(listed)


@pytest.mark.inv("OPS-12")
def test_the_schema_for_editors_accepts_sound_files_and_refuses_broken_forms(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["contract", "schema"]) == 0
    schema = Draft202012Validator(json.loads(capsys.readouterr().out))
    for value in (BLOCK, FLOW, CONTRACT, *map(to_file_json, sound_definitions())):
        assert schema.is_valid(value)
    assert not schema.is_valid({**BLOCK, "kind": "flow"})
    assert not schema.is_valid({**BLOCK, "version": 0})
    assert not schema.is_valid({**BLOCK, "executor": "Ann"})


@pytest.mark.usefixtures("project")
@pytest.mark.inv("OPS-12")
def test_a_file_that_is_named_may_refer_to_the_definitions_of_the_project(capsys: pytest.CaptureFixture[str]) -> None:
    assert validate(f"{HOME}/flow.json", write("new/flow.json", {**FLOW, "version": 2})) == 0
    assert capsys.readouterr().out.startswith("2 files: 2 fine")


@pytest.mark.usefixtures("project")
@pytest.mark.inv("OPS-12")
def test_a_file_that_is_named_counts_before_the_version_that_the_project_has(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert validate(write("new/flow.json", {**FLOW, "description": "changed"})) == 0
    assert capsys.readouterr().out.startswith("1 file: 1 fine")


@pytest.mark.usefixtures("project")
@pytest.mark.inv("SRC-3")
@pytest.mark.parametrize("paths", [(), (f"{HOME}/flow.json",)], ids=["all", "one"])
def test_a_flow_whose_id_another_file_has_is_refused_at_its_id(
    paths: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    write(f"{HOME}/flow.json", {**FLOW, "metadata": {"workflow_id": "team.ship"}})
    write(".interlock/workflows/ship.json", linear_workflow("team.ship", "a"))
    line = 1 + Path(f"{HOME}/flow.json").read_text().splitlines().index('  "workflow_id": "team.ship"')
    assert validate(*paths) == 1
    assert f"{HOME}/flow.json:{line}:3: error id_taken metadata.workflow_id" in capsys.readouterr().out


@pytest.mark.usefixtures("project")
@pytest.mark.inv("OPS-16")
def test_a_flow_is_a_workflow_for_every_command_that_names_its_file(capsys: pytest.CaptureFixture[str]) -> None:
    flow = write(f"{HOME}/flow.json", {**FLOW, "metadata": {"workflow_id": "team.ship"}})
    assert main(["workflow", "validate", flow]) == 0
    assert capsys.readouterr().out.startswith("1 file: 1 fine")
    assert main(["workflow", "plan", flow]) == 0
    capsys.readouterr()
    write(flow, {**FLOW, "metadata": {"workflow_id": "wr.ship"}})
    assert main(["workflow", "validate", flow]) == 1
    fault, _ = capsys.readouterr().out.splitlines()
    assert "error reserved_namespace metadata.workflow_id" in fault
    write(flow, {**FLOW, "edges": [edge("one", "two")], "metadata": {"workflow_id": "team.ship"}})
    capsys.readouterr()
    assert main(["workflow", "validate", flow]) == 1
    assert "error missing_entry edges" in capsys.readouterr().out


@pytest.mark.usefixtures("project")
@pytest.mark.inv("OPS-16")
@pytest.mark.parametrize("name", ["build", "flow"])
def test_a_definition_that_no_agent_starts_is_no_workflow_and_the_other_command_is_named(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["workflow", "validate", f"{HOME}/{name}.json"]) == 1
    fault, _ = capsys.readouterr().out.splitlines()
    assert "error wrong_value kind: No agent starts this" in fault
    assert "`interlock contract validate`" in fault


@pytest.mark.usefixtures("project")
@pytest.mark.inv("OPS-3", "OPS-16")
def test_the_copy_of_a_flow_is_another_definition_with_its_own_id(capsys: pytest.CaptureFixture[str]) -> None:
    write(f"{HOME}/flow.json", {**FLOW, "metadata": {"workflow_id": "team.ship", "note": "kept"}})
    assert main(["workflow", "new", "team.mine", "--from", "team.ship"]) == 0
    copied = json.loads(Path(".interlock/workflows/mine.json").read_text())
    assert copied["metadata"] == {"workflow_id": "team.mine", "note": "kept"}
    assert copied["id"] != FLOW["id"]
    assert {**FLOW, **copied} == {**copied, "nodes": FLOW["nodes"], "edges": FLOW["edges"]}
    capsys.readouterr()
    assert main(["workflow", "validate"]) == 0
    assert main(["workflow", "list", "--query", "flow", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out.partition("\n")[2])
    assert {one["workflowId"] for one in listed["workflows"]} >= {"team.ship", "team.mine"}
    assert listed["refused"] == []


def both(capsys: pytest.CaptureFixture[str], *paths: str) -> list[set[tuple[str, str]]]:
    """Return the file and code of each fault that the two commands name, first the one about workflows."""
    named = list[set[tuple[str, str]]]()
    for group in ("workflow", "contract"):
        main([group, "validate", *paths, "--json"])
        files = json.loads(capsys.readouterr().out)["files"]
        named.append({(one["file"], found["code"]) for one in files for found in one["diagnostics"]})
    return named


STARTED = {**FLOW, "metadata": {"workflow_id": "team.ship"}}


@pytest.mark.usefixtures("project")
@pytest.mark.inv("OPS-12", "OPS-16")
def test_both_commands_let_named_files_refer_to_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    flow, block = write("new/flow.json", STARTED), f"{HOME}/build.json"
    moved = write("new/build.json", json.loads(Path(block).read_text()))
    Path(block).unlink()
    assert both(capsys, flow) == [{(flow, "unknown_definition")}] * 2
    of_workflows, of_contracts = both(capsys, flow, moved)
    assert (of_workflows, of_contracts) == ({(moved, "wrong_value")}, set())
    other = write("new/other.json", {**STARTED, "description": "changed"})
    assert [(flow, "version_taken") in found for found in both(capsys, other, flow)] == [True, True]


@pytest.mark.usefixtures("project")
@pytest.mark.inv("OPS-3", "OPS-16")
def test_both_commands_refuse_the_file_of_a_project_whose_version_the_server_refuses(
    capsys: pytest.CaptureFixture[str],
) -> None:
    own = write(f"{HOME}/flow.json", STARTED)
    changed = {**STARTED, "description": "changed", "metadata": {"workflow_id": "team.other"}}
    assert both(capsys, write("elsewhere/flow.json", changed)) == [set(), set()], "a file that is named counts"
    earlier = write(".interlock/workflows/flow.json", changed)
    assert both(capsys, own) == [{(own, "version_taken")}] * 2
    assert both(capsys, earlier) == [set(), set()]
    assert main(["workflow", "list", "--query", "flow", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [one["workflowId"] for one in listed["workflows"] if one["workflowId"].startswith("team.")] == ["team.other"]
    assert len(listed["refused"]) == 1


@pytest.mark.usefixtures("project")
@pytest.mark.inv("SRC-3", "OPS-16")
def test_both_commands_refuse_a_file_of_a_project_whose_id_a_server_starts_from_another_file(
    capsys: pytest.CaptureFixture[str],
) -> None:
    refused = write(f"{HOME}/ship.json", {**STARTED, "version": 2})
    started = write(".interlock/workflows/a.json", linear_workflow("team.ship", "a"))
    assert both(capsys, refused) == [{(refused, "id_taken")}] * 2
    assert both(capsys, started)[0] == set()
    for paths in ((refused, started), (started, refused)):
        assert both(capsys, *paths)[0] == {(refused, "id_taken")}
    copy = write("new/ship.json", linear_workflow("team.ship", "b"))
    assert both(capsys, copy)[0] == set()
    assert both(capsys, started, copy)[0] == {(copy, "id_taken")}
