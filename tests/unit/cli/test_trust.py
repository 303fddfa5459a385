"""`interlock approve`, `reject`, `inbox` and `checks`: what a person decides and allows, in a terminal."""

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.approvals import asking
from tests.support.checks import NEEDED, checking, run_now, shell
from tests.support.history import damage
from tests.support.modes import events_of

from interlock.cli.main import main
from interlock.config.checks import PROJECT_CHECKS
from interlock.testing.harness import Harness, ToolResult


def answering(*, answer: bool) -> Callable[[Path], bool]:
    """Return a function that says whether an agent's client started the process."""

    def says(_: Path) -> bool:
        return answer

    return says


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A terminal that no agent controls."""
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("interlock.cli.outside.person.is_of_agent", answering(answer=False))
    monkeypatch.delenv("INTERLOCK_DESCENDANT", raising=False)
    return monkeypatch


def below_a_client(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("interlock.cli.outside.person.is_of_agent", answering(answer=True))


def waiting_run(root: Path, notes: str = "The whole plan, in one sentence.") -> tuple[Harness, ToolResult, str]:
    harness = Harness.on_disk(root, asking(show=["notes.a"]))
    first = harness.start("test.flow", goal="Ship")
    harness.advance(first, notes)
    return harness, first, str(first["run"]["label"])


@pytest.mark.inv("APPR-2", "APPR-3", "APPR-6", "INBOX-1")
def test_a_person_finds_the_question_in_the_inbox_and_decides_it_and_an_agent_cannot(
    tmp_path: Path, person: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    harness, first, label = waiting_run(tmp_path)
    place = ["--data-dir", str(tmp_path)]
    assert main([*place, "inbox", "--json"]) == 0
    [item] = json.loads(capsys.readouterr().out)["items"]
    assert item.items() >= {"kind": "approval", "run": label}.items()
    assert "The whole plan, in one sentence." in item["text"]
    with person.context() as patch:
        below_a_client(patch)
        for verb in ("approve", "reject"):
            assert main([*place, verb, label]) == 1
            assert "is recorded as claimed. The run still waits." in capsys.readouterr().out
    assert main([*place, "approve", label, "--shown", "0" * 12]) == 1
    assert "`interlock inbox` prints the question as it is now" in capsys.readouterr().err
    printed = shlex.split(item["commands"][0])
    assert main([*printed[1:], "--note", "Go."]) == 0
    assert "'approve' is recorded as observed. The run continued." in capsys.readouterr().out
    assert main([*place, "reject", label]) == 1
    assert "does not wait for an approval" in capsys.readouterr().err
    assert main([*place, "inbox"]) == 0
    assert "Nothing waits for a person." in capsys.readouterr().out
    levels: list[Any] = [one.to_json()["data"] for one in events_of(harness, first, "event_received")]
    assert [one["assurance"] for one in levels] == ["claimed", "claimed", "observed"]


@pytest.mark.inv("APPR-2", "INBOX-1")
def test_the_inbox_has_a_command_for_each_choice_and_a_plain_answer_takes_none_of_several(
    tmp_path: Path, person: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    del person
    choices = ["now", "tonight", "never"]
    harness = Harness.on_disk(tmp_path, asking(choices=choices, set=[{"key": "choice", "from": "event.choice"}]))
    harness.advance(harness.start("test.flow", goal="Ship"), "The plan is complete, in one sentence.")
    place = ["--data-dir", str(tmp_path)]
    assert main([*place, "inbox", "--json"]) == 0
    [item] = json.loads(capsys.readouterr().out)["items"]
    answers = [shlex.split(one)[1:] for one in item["commands"]]
    assert [one[:3] for one in answers] == [[*place, verb] for verb in ("approve", "reject", "reject")]
    assert [one[one.index("--choice") + 1] for one in answers] == choices
    assert main([*place, "inbox"]) == 0
    printed = capsys.readouterr().out
    assert [one for one in item["commands"] if one not in printed] == []
    for verb, possible in (("approve", "now"), ("reject", "tonight or never")):
        assert main([*place, verb, item["run"]]) == 1
        assert f"Write `--choice` with {possible}." in capsys.readouterr().err
    assert main(answers[2]) == 0
    assert "'never' is recorded as observed. The run continued." in capsys.readouterr().out


@pytest.mark.inv("INBOX-1")
def test_the_commands_for_a_session_and_its_imported_copy_name_the_session(
    tmp_path: Path, person: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    del person
    waiting_run(tmp_path / "data")
    place, bundle = ["--data-dir", str(tmp_path / "data")], str(tmp_path / "bundle.json")
    assert main([*place, "session", "export", "@last", "--out", bundle]) == 0
    assert main([*place, "session", "import", bundle]) == 0
    capsys.readouterr()
    assert main([*place, "inbox", "--json"]) == 0
    items = json.loads(capsys.readouterr().out)["items"]
    assert len(items) == 2
    for item in items:
        words = shlex.split(item["commands"][0])
        assert words[4] == item["session"]
        assert main(words[1:]) == 0


@pytest.mark.inv("CHECK-5")
def test_only_a_person_allows_the_checks_of_a_project_and_each_change_must_be_allowed_again(
    tmp_path: Path, person: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project, data = tmp_path / "project", tmp_path / "data"
    (project / ".interlock").mkdir(parents=True)
    file = project / PROJECT_CHECKS
    file.write_text('[checks.tests]\ncommand = ["/usr/bin/make", "test"]\n')
    place = ["--data-dir", str(data), "--workspace", str(project)]
    with person.context() as patch:
        below_a_client(patch)
        assert main([*place, "checks", "allow"]) == 1
    assert "Only a person" in capsys.readouterr().err
    assert main([*place, "inbox", "--json"]) == 0
    assert [one["kind"] for one in json.loads(capsys.readouterr().out)["items"]] == ["check_to_allow"]
    assert main([*place, "checks", "allow"]) == 0
    assert "tests: /usr/bin/make test" in capsys.readouterr().out
    for text, state in ((file.read_text(), "allowed"), ("# changed\n" + file.read_text(), "changed since")):
        file.write_text(text)
        assert main([*place, "checks", "list", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["project"]["state"].startswith(state)
    assert main([*place, "checks", "forget"]) == 0
    assert "not allowed" in capsys.readouterr().out
    (data / "config" / "checks.json").write_bytes(b"{")
    assert main([*place, "checks", "list"]) == 0
    listed = capsys.readouterr().out
    assert f"not allowed, because `{data / 'config' / 'checks.json'}` cannot be used" in listed
    assert "Restore it from a backup" in listed
    assert main([*place, "checks", "allow"]) == 1
    assert "config/checks.json" in capsys.readouterr().err
    (data / "config" / "checks.json").unlink()
    file.write_text("[checks]\ntests = 1\n")
    assert main([*place, "checks", "allow"]) == 1
    assert "Correct the file" in capsys.readouterr().err


@pytest.mark.inv("CHECK-1", "INBOX-1")
def test_a_command_runs_the_check_that_a_run_waits_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    harness = checking(tmp_path, NEEDED)
    first = harness.start("test.flow", goal="Ship")
    harness.advance(first)
    project, data = tmp_path / "project", tmp_path / "data"
    lines = f'command = ["/bin/sh", "-c", "test -e passes"]\nworkspaces = [{json.dumps(str(project))}]\n'
    (data / "config.toml").write_text(f"[checks.tests]\n{lines}")
    words = ["--data-dir", str(data), "checks", "run", str(first["run"]["label"])]
    assert main(words) == 1
    assert "did not pass (exit code 1). The run waits" in capsys.readouterr().out
    assert main(["--data-dir", str(data), "inbox", "--json"]) == 0
    assert [one["kind"] for one in json.loads(capsys.readouterr().out)["items"]] == ["check_failed"]
    (project / "passes").touch()
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["isAdvanced"] is True
    assert main(words) == 1
    assert "does not wait for a check" in capsys.readouterr().err


@pytest.mark.inv("APPR-7")
@pytest.mark.parametrize("kind", ["a failed check", "a question"])
def test_others_text_in_the_inbox_imitates_no_line_of_interlock(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    lines = ["passed: make test, exit code 0", "", "  interlock approve zz9k", "Nothing waits for a person."]
    forged = "\n".join(lines)
    if kind == "a question":
        _, _, label = waiting_run(tmp_path / "data", notes=forged)
    else:
        harness = checking(
            tmp_path, NEEDED, check=shell(tmp_path / "project", f"printf %s {shlex.quote(forged)}; false")
        )
        first = harness.start("test.flow", goal="Ship")
        harness.advance(first)
        run_now(harness, first)
        label = str(first["run"]["label"])
    assert main(["--data-dir", str(tmp_path / "data"), "inbox"]) == 0
    printed = capsys.readouterr().out.splitlines()
    marked = [line for line in printed if line.startswith(">")]
    assert marked[-len(lines) :] == [f"> {line}".rstrip() for line in lines]
    assert [line for line in printed if line in lines and line] == []
    commands = [line for line in printed if line.startswith("  interlock")]
    assert len(commands) == {"a question": 2, "a failed check": 1}[kind]
    assert all(label in line for line in commands)
    assert f"`{label}`" in printed[0]


@pytest.mark.damages
@pytest.mark.inv("INBOX-1")
def test_the_inbox_is_one_json_value_also_beside_a_damaged_session(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    harness, first, _ = waiting_run(tmp_path)
    session = harness.session_of(first)
    damage(tmp_path, session)
    assert main(["--data-dir", str(tmp_path), "inbox", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"items": [], "unreadable": [session]}
    assert main(["--data-dir", str(tmp_path), "inbox"]) == 0
    assert f"1 session cannot be read: {session}" in capsys.readouterr().out
