"""`session lifecycle | state | conformance`: one branch, its events in three forms, and a file of events."""

import json
from pathlib import Path

import pytest
from tests.support.history import MovingClock, Place, label_of

from interlock.cli.main import main
from interlock.testing.harness import Harness, linear_workflow

DOCUMENT = linear_workflow("team.release", "collect", "write")


@pytest.fixture
def place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Place:
    return Place(root=tmp_path / "data", clock=MovingClock(), capsys=capsys)


@pytest.fixture
def harness(place: Place) -> Harness:
    return place.serving(DOCUMENT)


def written(tmp_path: Path, name: str, text: str) -> str:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.inv("LIFE-1", "LIFE-9")
def test_an_exported_lifecycle_conforms_to_the_plan_it_was_made_by(
    place: Place, harness: Harness, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    harness.advance(harness.start("team.release"))
    assert place.run("lifecycle", "--jsonl", "--json").code == 2
    lines = place.run("lifecycle", "--jsonl").out
    assert [json.loads(line)["seq"] for line in lines.splitlines()] == list(range(7))
    source = written(tmp_path, "release.json", json.dumps(DOCUMENT))
    assert main(["workflow", "plan", source, "--json"]) == 0
    plan = written(tmp_path, "release.plan.json", capsys.readouterr().out)
    for given in (source, plan):
        found = place.run("conformance", "--file", written(tmp_path, "e.jsonl", lines), "--plan", given)
        assert (found.code, "conforms" in found.out) == (0, True)
    faulty = written(tmp_path, "f.jsonl", lines.replace('"attempt":1', '"attempt":2', 1) + "no JSON\n")
    found = place.run("conformance", "--file", faulty, "--plan", plan, "--json")
    assert found.code == 1
    (checked,) = found.json()["checked"]
    assert [(fault["code"], fault["event"]) for fault in checked["faults"]] == [
        ("attempt_out_of_order", 2),
        ("not_an_identifier", 7),
    ]
    assert found.json()["conforms"] is False


@pytest.mark.parametrize(
    "arguments",
    [("--file", "e.jsonl"), ("--plan", "p"), ("--file", "e", "--plan", "p", "abcd"), ("--file", "", "--plan", "p")],
)
def test_a_wrong_command_line_is_refused_with_the_right_one(place: Place, arguments: tuple[str, ...]) -> None:
    assert place.run("conformance", *arguments).code == 2


def test_a_file_that_is_not_there_is_named(place: Place, tmp_path: Path) -> None:
    plan = written(tmp_path, "release.json", json.dumps(DOCUMENT))
    found = place.run("conformance", "--file", str(tmp_path / "none.jsonl"), "--plan", plan)
    assert (found.code, "none.jsonl cannot be read" in found.err) == (2, True)


def test_the_branch_is_named_by_a_node_or_a_token_and_must_be_of_the_run(place: Place, harness: Harness) -> None:
    first = harness.start("team.release")
    second = harness.advance(first)
    other = harness.start("team.release", sessionId=first["run"]["sessionId"])
    label = label_of(first)
    assert "completed" not in place.run("lifecycle", label, "--tip", first.state).out
    assert "completed" in place.run("lifecycle", label, "--tip", second.state).out
    wrong = place.run("lifecycle", label, "--tip", other.state)
    assert (wrong.code, "names no node of run" in wrong.err) == (1, True)
    assert place.run("lifecycle", label, "--tip", "st_broken").code == 1
    both = place.run("state", first["run"]["sessionId"])
    assert (both.code, label in both.err) == (2, True)
    shown = place.run("state", label, "--json").json()
    assert shown["resume"]["lastCompleted"] == "collect"
    assert shown["resume"]["isSafe"] is True
