"""`interlock workflow …` as processes of their own: exit codes, what goes where, and documents that mean harm."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.forkserver import forking_python

from interlock.testing.harness import linear_workflow

OWN = Path(".interlock/workflows")


class Shell:
    """Runs the command in a directory of its own, with nothing of this machine's configuration."""

    def __init__(self, root: Path, python: str) -> None:
        self.root = root
        self.python = python
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(root / "home"),
            "INTERLOCK_WORKFLOWS_DIR": str(root / "user"),
            "PYTHONUTF8": "1",
        }

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.python, "-m", "interlock", "workflow", *arguments],
            cwd=self.root,
            env=self.environment | environment,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=60,
            check=False,
        )

    def write(self, path: str, content: object) -> str:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return path

    def all_files(self) -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in self.root.rglob("*") if path.is_file()}


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path, forking_python())


def test_the_way_from_an_empty_directory_to_a_drawn_workflow(tmp_path: Path) -> None:
    shell = Shell(tmp_path, sys.executable)
    assert shell.run("new", "team.abc", "--yaml").returncode == 0
    checked = shell.run("validate")
    assert (checked.returncode, checked.stdout.count("\n")) == (0, 1)
    assert "team.abc" in shell.run("list", "--query", "abc").stdout
    for arguments in (["inspect", "team.abc"], ["plan", "team.abc"], ["graph", "team.abc"]):
        shown = shell.run(*arguments)
        assert shown.returncode == 0
        assert "Verify the whole" in shown.stdout
        assert shown.stderr == ""
    again = shell.run("new", "team.abc", "--yaml")
    assert again.returncode == 1
    assert "Nothing was written" in again.stderr


def test_looking_and_checking_write_nothing(shell: Shell) -> None:
    shell.write(f"{OWN}/a.json", linear_workflow("team.abc", "a"))
    before = shell.all_files()
    for arguments in (
        ["list"],
        ["validate"],
        ["inspect", "team.abc", "--detail", "plan"],
        ["plan", "team.abc"],
        ["graph", f"{OWN}/a.json", "--format", "dot"],
        ["schema"],
    ):
        assert shell.run(*arguments).returncode == 0
    assert shell.all_files() == before


@pytest.mark.parametrize(
    "arguments",
    [
        ["unknown"],
        ["validate"],
        ["validate", "none.json"],
        ["graph"],
        ["graph", "none/a.json"],
        ["graph", "wr.code_review", "--format", "png"],
        ["new", "wr.abc"],
        ["new", "abc"],
        ["list", "--workspace", "none"],
    ],
)
def test_a_wrong_command_line_exits_with_2_and_says_so_on_stderr(shell: Shell, arguments: list[str]) -> None:
    result = shell.run(*arguments)
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr
    assert "Traceback" not in result.stderr


def test_an_unknown_workflow_exits_with_1_and_names_the_one_that_was_meant(shell: Shell) -> None:
    result = shell.run("plan", "wr.code_reveiw")
    assert (result.returncode, result.stdout) == (1, "")
    assert "Did you mean wr.code_review?" in result.stderr


def test_the_workspace_may_be_named_before_or_after_the_command(shell: Shell) -> None:
    shell.write(f"sub/{OWN}/a.json", linear_workflow("team.abc", "a"))
    assert shell.run("inspect", "team.abc").returncode == 1
    assert shell.run("inspect", "team.abc", "--workspace", "sub").returncode == 0
    before = subprocess.run(
        [forking_python(), "-m", "interlock", "--workspace", "sub", "workflow", "inspect", "team.abc"],
        cwd=shell.root,
        env=shell.environment,
        capture_output=True,
        check=False,
    )
    assert before.returncode == 0


def test_core_source_makes_a_directory_core(shell: Shell) -> None:
    path = shell.write("core/a.json", linear_workflow("wr.abc", "a"))
    refused = shell.run("validate", path)
    assert refused.returncode == 1
    assert "core/a.json:1:2: error reserved_namespace id: " in refused.stdout
    assert "`project.abc`" in refused.stdout
    assert shell.run("validate", path, "--core-source", "core").returncode == 0
    assert "wr.abc" in shell.run("list", "--core-source", "core").stdout


def test_a_terminal_is_drawn_for_and_a_pipe_is_not(shell: Shell) -> None:
    mine, theirs = pty.openpty()
    with os.fdopen(mine, "rb", buffering=0) as screen:
        process = subprocess.Popen(
            [forking_python(), "-m", "interlock", "workflow", "list", "--query", "code review"],
            cwd=shell.root,
            env=shell.environment | {"TERM": "xterm-256color", "COLUMNS": "100"},
            stdout=theirs,
        )
        os.close(theirs)
        drawn = b""
        while True:
            try:
                chunk = screen.read(65536)
            except OSError:
                break
            if not chunk:
                break
            drawn += chunk
        assert process.wait(60) == 0
    assert b"\x1b[" in drawn
    assert "─" in drawn.decode()
    assert "\x1b" not in shell.run("list").stdout


def test_a_reader_that_leaves_early_leaves_no_traceback(shell: Shell) -> None:
    command = f'"{forking_python()}" -m interlock workflow schema | head -c 10'
    result = subprocess.run(
        ["sh", "-c", command], cwd=shell.root, env=shell.environment, capture_output=True, text=True, check=False
    )
    assert result.stdout == '{\n  "$defs'
    assert result.stderr == ""


def test_a_terminal_that_cannot_show_a_character_shows_a_mark(shell: Shell) -> None:
    result = shell.run("graph", "wr.code_review", PYTHONUTF8="0", PYTHONIOENCODING="ascii")
    assert result.returncode == 0
    assert "Code review" in result.stdout


def test_checking_imports_neither_the_protocol_nor_what_draws(shell: Shell) -> None:
    shell.write("a.json", linear_workflow("team.abc", "a"))
    program = (
        "import sys; from interlock.cli.main import main\n"
        "code = main(['workflow', 'validate', 'a.json'])\n"
        "heavy = {'mcp', 'rich', 'anyio', 'cryptography', 'jsonschema', 'yaml'} & set(sys.modules)\n"
        "sys.exit(code or ', '.join(sorted(heavy)) or 0)"
    )
    result = subprocess.run(
        [sys.executable, "-c", program],
        cwd=shell.root,
        env=shell.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, "")


def _step(number: int, **more: object) -> dict[str, object]:
    return {"id": f"s{number}", "title": "S", "prompt": "Do."} | more


def _conditions() -> dict[str, object]:
    def ref(number: int) -> dict[str, object]:
        return {"kind": "condition_ref", "conditionId": f"c{number}"}

    conditions: dict[str, object] = {f"c{at}": {"and": [ref(at + 1), ref(at + 1)]} for at in range(40)}
    return {"conditions": conditions | {"c40": {"var": "a", "exists": True}}, "steps": [_step(1, when=ref(0))]}


def _loops() -> list[object]:
    body: list[object] = [_step(0)]
    for at in range(15):
        body = [
            {"type": "loop", "loopId": f"l{at}", "title": "L", "maxIterations": 9, "for": {"count": 9}, "body": body}
        ]
    return body


def _bomb() -> str:
    rows = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    rows += [f"{chr(at + 1)}: &{chr(at + 1)} [{', '.join([f'*{chr(at)}'] * 9)}]" for at in range(ord("a"), ord("u"))]
    return "\n".join(rows)


def _document(**more: object) -> str:
    return json.dumps(linear_workflow("team.x", "a") | more)


HOSTILE = {
    "nested_lists.json": ("[" * 100_000, "too_deep"),
    "nested_lists.yaml": ("[" * 100_000, "too_deep"),
    "nested_objects.json": ('{"a":' * 100_000, "too_deep"),
    "aliases.yaml": (_bomb(), "not_yaml"),
    "tag.yaml": ("id: !!python/object/apply:os.system ['touch owned']\n", "not_yaml"),
    "large.json": (_document(description="x" * 1_100_000), "too_large"),
    "half.json": ('{"id": "team.x", "na', "not_json"),
    "no_number.json": ('{"id": "team.x", "a": NaN}', "not_json"),
    "digits.json": ('{"a": ' + "9" * 500_000 + "}", "not_json"),
    "twice.json": ('{"id": "team.x",\n "id": "team.y"}', "duplicate_key"),
    "empty.yaml": ("", "not_an_object"),
    "many_steps.json": (_document(steps=[_step(at) for at in range(18_000)]), "too_many"),
    "many_keys.json": (_document(**{f"k{at}": 1 for at in range(20_000)}), "unknown_key"),
    "loops.json": (_document(steps=_loops()), "too_many"),
    "conditions.json": (_document(**_conditions()), "too_deep"),
    "pattern.json": (
        _document(steps=[_step(1, validationCriteria={"type": "regex", "pattern": "((a{1,100}){1,100}){1,100}"})]),
        "bad_pattern",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_document_is_refused_in_words(shell: Shell, name: str) -> None:
    content, code = HOSTILE[name]
    result = shell.run("validate", shell.write(name, content))
    assert result.returncode == 1
    assert result.stderr == ""
    *faults, summary = result.stdout.splitlines()
    assert any(f": error {code} " in line for line in faults)
    assert all(line.startswith(f"{name}:") and len(line) < 2_000 for line in faults)
    assert summary.startswith("1 file: 0 fine, 0 with warnings, 1 refused (")
    assert list(shell.all_files()) == [str(shell.root / name)]


def test_words_of_a_document_cannot_steer_the_terminal(shell: Shell) -> None:
    evil = "\x1b]0;owned\x07\x9b31m\u202e"
    faulty = shell.write("faulty.json", linear_workflow("team.faulty", _step(1) | {evil: 1}))
    fine = shell.write(f"{OWN}/fine.json", linear_workflow("team.fine", _step(1, title=f"T{evil}"), name=f"N{evil}"))
    for arguments in (
        ["validate", faulty],
        ["list"],
        ["inspect", "team.fine"],
        ["plan", fine],
        ["graph", fine],
        ["graph", fine, "--format", "mermaid"],
        ["graph", fine, "--format", "dot"],
        ["graph", faulty],
        ["inspect", "team.fine", "--json"],
    ):
        result = shell.run(*arguments)
        assert not set(evil) & set("\x1b\x07\x9b\u202e") & set(result.stdout + result.stderr)


def test_one_bad_file_among_many_hides_none(shell: Shell) -> None:
    shell.write("all/a.json", linear_workflow("team.a", "a"))
    shell.write("all/b.json", "{")
    shell.write("all/c.json", linear_workflow("team.a", "a"))
    result = shell.run("validate", "all")
    assert result.returncode == 1
    assert [line.split()[:3] for line in result.stdout.splitlines()] == [
        ["all/b.json:1:2:", "error", "not_json"],
        ["all/c.json:1:2:", "error", "id_taken"],
        ["3", "files:", "1"],
    ]
