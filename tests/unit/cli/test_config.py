"""`interlock config …`: what is in effect and why, every fault of a file, and the schema; nothing is written."""

import json
from pathlib import Path

import pytest

from interlock.cli.main import main
from interlock.config.form import config_schema

PRESET = '[preferences]\npreset = "full_auto_stop_on_user_deps"\n'
LOW = "Found 1: input should be greater than or equal to 10000. Write 10000 or more."
FAULTY = "[gates]\nclaim = 'never'\n[evidence]\nartifact_bytes_max = 1\n"


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("INTERLOCK_WORKFLOWS_DIR", "/own")
    monkeypatch.setenv("INTERLOCK_DATA_DIR", str(tmp_path / "data"))
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_show_tells_value_origin_and_mark_of_every_key_and_the_hash(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(data / "config.toml", PRESET)
    assert main(["config", "show"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == str(file)
    rows = [line.split("  ") for line in lines[1:]]
    cells = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    assert cells[:12] == [
        ["key", "value", "from", "a change"],
        ["preferences.preset", "full_auto_stop_on_user_deps", "config file", "runtime-safe"],
        ["preferences.autonomy", "full_auto_stop_on_user_deps", "config file", "runtime-safe"],
        ["preferences.risk_policy", "balanced", "config file", "runtime-safe"],
        ["gates.claims", "when_client_cannot_ask", "default", "runtime-safe"],
        ["gates.apps", "as_claims", "default", "runtime-safe"],
        ["evidence.artifact_bytes_max", "1000000", "default", "runtime-safe"],
        ["observations.repo_root", "false", "default", "runtime-safe"],
        ["proofs.mode", "enforce", "default", "runtime-safe"],
        ["tokens.format", "2", "default", "runtime-safe"],
        ["workflows.user_dir", "/own", "environment", "restart-required"],
        ["retention.days", "90", "default", "runtime-safe"],
    ]
    assert [row[0] for row in cells[12:15]] == ["channels", "sources", "checks"]
    assert lines[16].startswith("appliedConfigHash sha256:")
    assert lines[17] == "Values apply when a server starts; those of retention apply when `interlock gc` runs."


def test_show_as_json_says_the_same(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "show", "--json", "--workflows-dir", "/given"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["file"], result["exists"], result["appliedAt"]) == (str(data / "config.toml"), False, "start")
    assert result["appliedConfigHash"].startswith("sha256:")
    assert result["keys"][-5] == {
        "key": "workflows.user_dir",
        "value": "/given",
        "origin": "argument",
        "restartRequired": True,
    }


@pytest.mark.parametrize("place", ["before", "after"])
def test_the_data_directory_may_be_named_before_or_after_the_command(
    data: Path, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    other = data.parent / "other"
    named = ["--data-dir", str(other)]
    assert main([*named, "config", "show"] if place == "before" else ["config", "show", *named]) == 0
    assert capsys.readouterr().out.startswith(f"{other / 'config.toml'} (this file does not exist)\n")
    assert not other.exists()


def test_show_of_a_faulty_file_names_every_fault(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(data / "config.toml", FAULTY)
    assert main(["config", "show"]) == 1
    result = capsys.readouterr()
    assert result.out == ""
    assert "gates.claim: " in result.err
    assert "evidence.artifact_bytes_max: " in result.err


@pytest.mark.inv("CFG-1")
def test_check_names_every_fault_with_its_file_and_exits_with_1(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(data / "config.toml", FAULTY)
    assert main(["config", "check"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"{file}: gates.claim: The key 'claim' is not known here. Did you mean `claims`?",
        f"{file}: evidence.artifact_bytes_max: {LOW}",
        f"{file}: 2 faults. Until they are corrected, `interlock serve` does not start.",
    ]


def test_check_counts_what_a_file_defines(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sources = "".join(f'[sources.{name}]\npublic_key = "{"A" * 43}"\nkinds = ["ci.done"]\n' for name in ("a", "b"))
    write(data / "config.toml", sources)
    assert main(["config", "check"]) == 0
    assert capsys.readouterr().out.endswith("config.toml: no faults; it sets 2 sources.\n")
    write(data / "config.toml", PRESET + sources)
    assert main(["config", "check"]) == 0
    assert capsys.readouterr().out.endswith("config.toml: no faults; it sets 1 key, 2 sources.\n")


def test_check_of_a_file_elsewhere_leaves_the_data_directory_out(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(data / "config.toml", FAULTY)
    write(data.parent / "new.toml", PRESET)
    assert main(["config", "check", "new.toml"]) == 0
    assert capsys.readouterr().out == "new.toml: no faults; it sets 1 key.\n"


def test_check_without_a_file_anywhere_is_fine(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "check"]) == 0
    assert capsys.readouterr().out == f"There is no {data / 'config.toml'}: every key has its default.\n"


def test_check_as_json_gives_the_faults(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(data / "config.toml", FAULTY)
    assert main(["config", "check", "--json"]) == 1
    result = json.loads(capsys.readouterr().out)
    assert [fault["key"] for fault in result["faults"]] == ["gates.claim", "evidence.artifact_bytes_max"]
    write(data / "config.toml", PRESET)
    assert main(["config", "check", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"file": str(data / "config.toml"), "exists": True, "faults": []}


@pytest.mark.parametrize("arguments", [["check", "none.toml"], ["check", "a", "b"], ["show", "x"], ["none"]])
@pytest.mark.usefixtures("data")
def test_a_wrong_command_line_exits_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    try:
        exit_code: object = main(["config", *arguments])
    except SystemExit as ended:
        exit_code = ended.code
    assert exit_code == 2
    result = capsys.readouterr()
    assert result.out == ""
    assert result.err


@pytest.mark.usefixtures("data")
def test_schema_prints_what_is_published(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "schema"]) == 0
    assert json.loads(capsys.readouterr().out) == config_schema()
