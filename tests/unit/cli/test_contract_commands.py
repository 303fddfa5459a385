"""The commands about contracts, from the files of a project to goals that are met and not met."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from tests.support.history import damage
from tests.support.q3_launch import INFRASTRUCTURE, LAUNCH, all_definitions

from interlock.cli.main import main
from interlock.define.operations.files import to_file_json
from interlock.service.ports import Ports
from interlock.testing.harness import Harness, linear_workflow

IDENTITY = ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.org"]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a project with the example. It is the current directory, and its data directory is `data`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("INTERLOCK_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("INTERLOCK_WORKFLOWS_DIR", str(tmp_path / "none"))
    monkeypatch.delenv("INTERLOCK_WORKSPACE", raising=False)
    operations = tmp_path / ".interlock" / "operations"
    operations.mkdir(parents=True)
    for one in all_definitions():
        (operations / f"{one.id}.json").write_text(json.dumps(to_file_json(one)), encoding="utf-8")
    return tmp_path


def run(*words: str) -> int:
    return main(["contract", *words])


def run_json(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    capsys.readouterr()
    assert run(*words, "--json") == 0
    return json.loads(capsys.readouterr().out)


def altered(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data.replace(b"4.5", b"1.0"))
    assert path.read_bytes() != data


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def replaced_by_dangling_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


@pytest.mark.damages
@pytest.mark.inv("OPS-21", "DOC-1")
@pytest.mark.parametrize("harm", [altered, truncated, replaced_by_dangling_link])
def test_a_damaged_definition_is_not_used_and_is_named(
    project: Path, capsys: pytest.CaptureFixture[str], harm: Callable[[Path], None]
) -> None:
    assert run("publish", "Q3 Product Launch") == 0
    (file,) = (project / "data" / "definitions").glob(f"{LAUNCH.id}.1.*.json")
    good, sources = file.read_bytes(), project / ".interlock"
    harm(file)
    sources.rename(project / "aside")
    assert run("list") == 0
    assert f"definitions/{file.name} is damaged" in capsys.readouterr().out
    for version in ("", "@1"):
        assert run("start", f"{LAUNCH.id}{version}", "--goal", "Ship it") == 1
        assert f"definitions/{file.name}" in capsys.readouterr().err
    assert run("start", "Q3 Product Launch", "--goal", "Ship it") == 1
    assert "`interlock doctor` names them" in capsys.readouterr().err
    for command in (("doctor",), ("doctor", "--deep"), ("session", "verify")):
        assert main([*command]) == 1
        assert f"definitions/{file.name}" in capsys.readouterr().out
    (project / "aside").rename(sources)
    if file.is_symlink():
        file.unlink()
    assert run("publish", "Q3 Product Launch") == 0
    assert file.read_bytes() == good
    assert main(["session", "verify"]) == 0


@pytest.mark.damages
@pytest.mark.inv("OPS-21", "DOC-1")
def test_a_definition_whose_file_is_lost_is_named_by_every_view_until_it_is_published_again(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    session = run_json(capsys, "start", LAUNCH.id, "--goal", "Ship it")["session"]
    (file,) = (project / "data" / "definitions").glob(f"{LAUNCH.id}.1.*.json")
    good = file.read_bytes()
    file.unlink()
    named = f"{LAUNCH.id}, version 1"
    assert run_json(capsys, "list")["damaged"] == [named]
    for command in (("contract", "list"), ("doctor", "--deep"), ("session", "verify")):
        assert main([*command]) == (0 if command[0] == "contract" else 1)
        words = capsys.readouterr().out
        assert named in words
        assert f"its file is missing, and {session} was started with it" in words
    assert run("publish", LAUNCH.id) == 0
    assert file.read_bytes() == good
    assert main(["session", "verify"]) == 0


@pytest.mark.usefixtures("project")
@pytest.mark.inv("GOAL-8", "OPS-3")
def test_a_contract_is_checked_published_started_and_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("validate") == 0
    assert run("publish", "Infrastructure SLA") == 0
    assert "Published 5 definitions of 'Infrastructure SLA'." in capsys.readouterr().out
    listed = run_json(capsys, "list")["contracts"]
    assert [(one["name"], one["published"], one["sessions"]) for one in listed] == [
        ("Infrastructure SLA", True, []),
        ("Q3 Product Launch", False, []),
    ]
    assert run("show", LAUNCH.id) == 0
    shown = capsys.readouterr().out
    assert "  contract Infrastructure SLA, version 1" in shown
    assert "  Feature X shipped to production: assessed by Release Verification" in shown
    started = run_json(capsys, "start", f"{LAUNCH.id}@1", "--goal", "Ship it")
    assert len(started["runs"]) == 3
    assert run("status", started["session"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "Q3 Product Launch, version 1: work pending"
    status = run_json(capsys, "status", started["session"])
    assert [goal["goal"] for goal in status["goals"]] == ["not_assessed", "not_assessed"]
    assert status["sub_contracts"][0]["name"] == "Infrastructure SLA"
    listed = run_json(capsys, "list")["contracts"]
    assert [one["sessions"] for one in listed] == [[], [started["session"]]]
    assert run("list") == 0
    assert LAUNCH.id in capsys.readouterr().out


@pytest.mark.usefixtures("project")
@pytest.mark.inv("GOAL-8")
def test_an_agent_finds_the_runs_of_a_contract_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    session = run_json(capsys, "start", "Q3 Product Launch")["session"]
    harness = Harness.on_disk(Path("data"))
    assert isinstance(harness.ports, Ports)
    found = harness.resume("q3 product launch infra")
    assert {one["run"]["sessionId"] for one in found["candidates"]} == {session}
    assert "Q3 Product Launch" in found.text.splitlines()[0] + found.text


@pytest.mark.usefixtures("project")
@pytest.mark.inv("GOAL-3")
def test_an_assessment_begins_with_its_test_flows(capsys: pytest.CaptureFixture[str]) -> None:
    session = run_json(capsys, "start", "Q3 Product Launch")["session"]
    assert run("assess", session, "Feature X shipped to production") == 0
    assert capsys.readouterr().out == "Began 1 run.\nWaiting for the test flow 'Smoke Test Suite'. Then assess again.\n"
    assert run("assess", session, "world peace") == 1
    assert "Feature X shipped to production" in capsys.readouterr().err


@pytest.mark.usefixtures("project")
@pytest.mark.inv("HIS-4")
def test_a_contract_is_drawn_with_and_without_the_state_of_an_execution(capsys: pytest.CaptureFixture[str]) -> None:
    session = run_json(capsys, "start", "Q3 Product Launch")["session"]
    assert run("graph", "Q3 Product Launch") == 0
    assert capsys.readouterr().out.splitlines()[:2] == [
        "Q3 Product Launch, version 1",
        "  flow Engineering Sprint Cycle",
    ]
    assert run("graph", "Q3 Product Launch", "--format", "mermaid", "--session", session) == 0
    drawn = capsys.readouterr().out
    assert drawn.startswith("flowchart LR\n")
    assert 'c -- work --> cw0("Engineering Sprint Cycle: pending")' in drawn
    assert "Feature X shipped to production: not assessed" in drawn
    assert run("graph", "Q3 Product Launch", "--session", session) == 0
    assert "work pending" in capsys.readouterr().out
    assert run_json(capsys, "graph", "Q3 Product Launch")["flows"] == [
        {"name": "Engineering Sprint Cycle", "state": None},
        {"name": "QA Validation Pipeline", "state": None},
    ]
    shape = run_json(capsys, "graph", "Q3 Product Launch", "--format", "svg", "--session", session)
    assert [one["name"] for one in shape["parts"]] == ["Infrastructure SLA"]
    assert {one["state"] for one in shape["goals"]} == {"not_assessed"}


@pytest.mark.usefixtures("project")
@pytest.mark.inv("GOAL-6")
def test_a_picture_of_a_contract_has_both_sides_and_their_states(capsys: pytest.CaptureFixture[str]) -> None:
    session = run_json(capsys, "start", "Q3 Product Launch")["session"]
    assert run("graph", "Q3 Product Launch", "--format", "svg") == 0
    plain = texts_of_picture(capsys.readouterr().out)
    assert {"Q3 Product Launch", "Engineering Sprint Cycle", "Infrastructure SLA", "work", "goals"} <= plain
    assert run("graph", "Q3 Product Launch", "--format", "svg", "--session", session) == 0
    drawn = texts_of_picture(capsys.readouterr().out)
    assert {
        "Engineering Sprint Cycle:",
        "pending",
        "work: pending",
        "goals: 0 of 2 met",
        "99.9% uptime: not assessed",
    } <= drawn


def texts_of_picture(drawn: str) -> set[str]:
    """Return the lines of text of an SVG picture."""
    return {"".join(one.itertext()) for one in ET.fromstring(drawn).iter("{http://www.w3.org/2000/svg}text")}  # noqa: S314 — our own text


@pytest.mark.usefixtures("project")
@pytest.mark.inv("GOAL-8")
def test_an_execution_without_missing_runs_is_resumed_without_a_new_one(capsys: pytest.CaptureFixture[str]) -> None:
    session = run_json(capsys, "start", "Q3 Product Launch")["session"]
    assert run_json(capsys, "resume", session) == {"session": session, "runs": []}
    assert run("resume", session) == 0
    assert capsys.readouterr().out == "Began 0 runs of Q3 Product Launch.\n"
    assert run("resume", "sess_" + "0" * 26) == 1


@pytest.mark.usefixtures("project")
@pytest.mark.inv("OPS-3")
def test_a_changed_file_under_a_published_version_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("publish", INFRASTRUCTURE.id) == 0
    file = Path(".interlock/operations") / f"{INFRASTRUCTURE.id}.json"
    changed = json.loads(file.read_text(encoding="utf-8")) | {"description": "changed"}
    file.write_text(json.dumps(changed), encoding="utf-8")
    assert run("start", INFRASTRUCTURE.id) == 1
    refused = capsys.readouterr().err
    assert "published with other content" in refused
    printed = re.findall(r"`interlock contract ([^`]+)`", refused)
    [shown] = [one.split()[:-1] for one in printed]
    assert run_json(capsys, *shown)["contract"]["description"] == INFRASTRUCTURE.description
    assert run_json(capsys, "show", INFRASTRUCTURE.id)["contract"]["description"] == "changed"
    file.write_text(json.dumps(changed | {"version": 2}), encoding="utf-8")
    assert run("start", INFRASTRUCTURE.id) == 0
    assert run("start", f"{INFRASTRUCTURE.id}@1") == 0


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("words", "code", "expected"),
    [
        (("start", "Nothing"), 1, "No contract has the name 'Nothing'"),
        (("start", f"{LAUNCH.id}@one"), 2, "is not a version"),
        (("show", f"{LAUNCH.id}@7"), 1, "There is no contract"),
        (("show", f"{LAUNCH.id}@0"), 1, f"There is no contract {LAUNCH.id} version 0"),
        (("status", "sess_" + "0" * 26), 1, ""),
    ],
    ids=["no such name", "no version", "no such version", "version 0", "no such session"],
)
def test_what_does_not_exist_is_refused_with_what_does(
    words: tuple[str, ...], code: int, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*words) == code
    assert expected in capsys.readouterr().err
    assert not Path("data").exists()


@pytest.mark.usefixtures("project")
def test_a_session_of_another_contract_is_not_drawn_as_the_named_one(capsys: pytest.CaptureFixture[str]) -> None:
    session = run_json(capsys, "start", "Infrastructure SLA")["session"]
    assert run("graph", "Q3 Product Launch", "--session", session) == 1
    refused = capsys.readouterr().err
    assert "executes 'Infrastructure SLA', version 1: another contract" in refused
    [printed] = re.findall(r"`interlock contract ([^`]+)`", refused)
    assert run(*printed.split()) == 0


@pytest.mark.usefixtures("project")
def test_a_run_is_not_shown_at_an_event_before_it_began(capsys: pytest.CaptureFixture[str]) -> None:
    runs = run_json(capsys, "start", "Q3 Product Launch")["runs"]
    assert main(["session", "show", runs[-1], "--at", "0"]) == 1
    assert "The run had not begun at event 0." in capsys.readouterr().err


@pytest.mark.damages
@pytest.mark.inv("HIS-2")
def test_a_list_names_a_damaged_session_and_shows_the_others(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    started = run_json(capsys, "start", "Infrastructure SLA")["session"]
    harness = Harness.on_disk(project / "data", linear_workflow("team.ship", "a"))
    other = harness.session_of(harness.start("team.ship"))
    damage(project / "data", other)
    listed = run_json(capsys, "list")
    assert [one["sessions"] for one in listed["contracts"]] == [[started], []]
    assert listed["unreadable"] == [other]
    assert run("list") == 0
    assert f"1 session cannot be read: {other}" in capsys.readouterr().out


@pytest.mark.usefixtures("project")
@pytest.mark.inv("GOAL-9")
def test_a_run_of_another_execution_is_claimed(capsys: pytest.CaptureFixture[str]) -> None:
    first = run_json(capsys, "start", "Infrastructure SLA")
    second = run_json(capsys, "start", "Infrastructure SLA")
    assert run("claim", first["runs"][0], "--for", second["session"]) == 1
    assert "has not ended" in capsys.readouterr().err
    assert main(["session", "cancel", first["runs"][0], "--reason", "superseded"]) == 0
    assert run("claim", first["runs"][0], "--for", second["session"]) == 0
    assert "counts for work flow 1 of the contract" in capsys.readouterr().out
    assert run_json(capsys, "status", second["session"])["contract_execution"]["state"] == "cancelled"


@pytest.mark.inv("REC-4", "OPS-21")
def test_the_source_of_a_contracts_run_is_published_and_does_not_change(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Only in a repository is it known that the files of a run's project are visible.
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    subprocess.run([*IDENTITY, "-C", str(project), "commit", "-q", "--allow-empty", "-m", "Begin"], check=True)
    assert run("start", "Q3 Product Launch", "--goal", "Ship it") == 0
    for is_there in (True, False):
        if not is_there:
            (project / ".interlock").rename(project / "aside")
        capsys.readouterr()
        assert main(["session", "list", "--json"]) == 0
        listed = json.loads(capsys.readouterr().out)["runs"]
        assert [one["drift"] for one in listed] == [None, None, None]
        assert main(["session", "show"]) == 0
        assert "since the run began" not in capsys.readouterr().out
