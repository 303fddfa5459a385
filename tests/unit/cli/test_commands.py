"""The table of commands and its modules agree, and a command line imports the commands that it names."""

import argparse
import subprocess
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import cast

import pytest
from tests.support.history import Place

from interlock.cli.commands import COMMANDS, Command, Group, command_line
from interlock.cli.main import main
from interlock.testing.harness import linear_workflow
from interlock.version import VERSION

CLI = Path(__file__).parents[3] / "src" / "interlock" / "cli"
ROWS = [
    (row.name if isinstance(row, Group) else "", command)
    for row in COMMANDS
    for command in (row.commands if isinstance(row, Group) else (row,))
]


LISTED = """
import sys
from interlock.cli.commands import command_line
command_line(sys.argv[1:])
modules = {name: vars(module) for name, module in sys.modules.items() if name.startswith("interlock.cli.")}
print(*(name for name, members in modules.items() if {"add_arguments", "run"} <= set(members)))
"""
HEAVY = """
import sys
from interlock.cli.commands import command_line
command_line(["serve"])
print(*sorted({name.partition(".")[0] for name in sys.modules} & {"mcp", "anyio", "rich", "yaml"}))
"""
LISTING = """
import sys
from importlib import import_module
for name in ("list", "status", "open_gaps", "evidence.search"):
    import_module(f"interlock.cli.session.{name}")
print(*sorted({"pydantic", "rpds", "re2", "interlock.record.base", "interlock.engine"} & set(sys.modules)))
"""

LOOKING = """
import sys
from interlock.cli.main import main
main(sys.argv[1:])
print("READ WITH", *sorted({"pydantic", "pydantic_core"} & set(sys.modules)))
"""


def ended(words: list[str]) -> int:
    """Run a command line and return its exit code; argparse ends the process for some."""
    try:
        return main(words)
    except SystemExit as end:
        return int(end.code or 0)


def imported_commands(*words: str) -> set[str]:
    """Return the modules of commands that a process imports for a command line."""
    done = subprocess.run([sys.executable, "-c", LISTED, *words], capture_output=True, text=True, check=True)
    return {name.removeprefix("interlock.cli.") for name in done.stdout.split()}


@pytest.mark.parametrize(("group", "command"), ROWS, ids=[f"{group} {command.name}".strip() for group, command in ROWS])
def test_every_row_names_a_module_that_is_a_command(group: str, command: Command) -> None:
    if command.name == "version":
        assert not command.module
        return
    module = import_module(f"interlock.cli.{command.module}")
    assert callable(module.add_arguments)
    assert callable(module.run)
    assert not group or any(part.startswith(group) for part in command.module.split("."))


def test_every_module_that_is_a_command_has_a_row() -> None:
    found = {
        ".".join(path.relative_to(CLI).with_suffix("").parts)
        for path in CLI.rglob("*.py")
        if "\ndef add_arguments(" in path.read_text(encoding="utf-8")
    }
    assert found == {command.module for _, command in ROWS if command.module}


@pytest.mark.parametrize(
    ("words", "modules"),
    [
        ("", ""),
        ("--help", ""),
        ("version", ""),
        ("session --help", ""),
        ("session status --json", "session.status"),
        ("session unkeep x", "session.keep"),
        ("workflow schema", "workflow.schema"),
        ("show", ""),
        ("serve", "top.serve"),
        ("keys status", "upkeep.keys"),
        ("help", "top.help"),
    ],
)
def test_only_the_commands_that_are_named_are_imported(words: str, modules: str) -> None:
    assert imported_commands(*words.split()) == set(modules.split())


def test_a_server_that_is_chosen_has_not_imported_the_protocol_yet() -> None:
    """Importing it takes half a second, in which Ctrl-C must end the process quietly: `run` sees to that first."""
    done = subprocess.run([sys.executable, "-c", HEAVY], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"


@pytest.mark.parametrize(
    "words",
    [
        *("session list --data-dir d", "session keep x --data-dir d", "gc --data-dir d", "keys status --data-dir d"),
        *("doctor --data-dir d", "doctor --client json", "config show", "config check --data-dir d", "workflow list"),
    ],
)
def test_in_a_directory_that_is_gone_a_command_says_so_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: str
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.setenv("INTERLOCK_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert main(words.split()) == 2
    printed = capsys.readouterr().err
    assert printed.startswith(
        f"interlock {words.split(maxsplit=1)[0]}: The current directory does not exist any more.\nChange to"
    )


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_the_version_is_an_option_too(capsys: pytest.CaptureFixture[str], flag: str) -> None:
    assert ended([flag]) == 0
    assert capsys.readouterr().out == f"interlock {VERSION}\n"


@pytest.mark.parametrize("words", ["", "session", "session list", "keys rotate", "serve", "help"])
def test_help_prints_what_the_option_prints(capsys: pytest.CaptureFixture[str], words: str) -> None:
    assert ended(["help", *words.split()]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"usage: interlock {words}".strip())
    assert ended([*words.split(), "--help"]) == 0
    assert capsys.readouterr().out == printed


def test_help_for_an_unknown_command_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(["help", "sesion"]) == 2
    assert "Did you mean session?" in capsys.readouterr().err


@pytest.mark.parametrize("group", [row.name for row in COMMANDS if isinstance(row, Group)])
def test_a_group_without_an_action_prints_its_help(capsys: pytest.CaptureFixture[str], group: str) -> None:
    assert ended([group]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert ended([group, "--help"]) == 0
    assert capsys.readouterr().out == printed.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("workflw list", "There is no command 'workflw'. Did you mean workflow? `interlock --help` lists"),
        ("session lst", "There is no command 'lst'. Did you mean list? `interlock session --help` lists"),
        ("keys rotat", "There is no command 'rotat'. Did you mean rotate? `interlock keys --help` lists"),
        ("zzz", "There is no command 'zzz'. `interlock --help` lists"),
        ("\x1b[31m", "There is no command '\\x1b[31m'. `interlock --help` lists"),
        (
            "session report --output x",
            "interlock session report: error: Unknown arguments: '--output'. Did you mean --out?",
        ),
        (
            "session list --limt=3",
            "Unknown arguments: '--limt=3'. Did you mean --limit? `interlock session list --help` lists",
        ),
        ("version \x1b[31m", "Unknown arguments: '\\x1b[31m'. `interlock version --help` lists the arguments."),
        ("--zzz session list", "Unknown arguments: '--zzz'. `interlock --help` lists"),
    ],
)
def test_a_mistyped_command_or_option_gets_a_suggestion(
    capsys: pytest.CaptureFixture[str], words: str, message: str
) -> None:
    assert ended(words.split()) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert message in printed.err


def test_commands_that_list_start_without_the_models_of_records() -> None:
    done = subprocess.run([sys.executable, "-c", LISTING], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.parametrize(
    "words",
    [
        *("session list", "session status @last", "session show @last", "session show @last --json"),
        *("session timeline @last", "session report @last", "session verify", "session lifecycle @last"),
        *("inbox", "checks list", "keys status"),
    ],
)
def test_commands_that_look_run_without_pydantic(place: Place, words: str) -> None:
    harness = place.serving(linear_workflow("test.linear", "a", "b"))
    harness.advance(harness.start("test.linear").ack, "Done, as it was asked.")
    command = [*words.split(), "--data-dir", str(place.root)]
    done = subprocess.run([sys.executable, "-c", LOOKING, *command], capture_output=True, text=True, check=True)
    assert "READ WITH" in done.stdout
    assert done.stdout.partition("READ WITH")[2].split() == []


def test_the_line_of_help_of_each_command_can_be_checked_as_newer_versions_of_python_do() -> None:
    """`add_parser` expands it with the formatter of the parser, which for most commands is not built."""
    for words in ([], ["session"]):
        found, waiting = list[str](), [command_line(words)]
        while waiting:
            for action in getattr(waiting.pop(), "_actions", ()):
                named = cast("Mapping[str, argparse.ArgumentParser]", action.choices or {})
                for line in action._get_subactions() if named else ():
                    assert named[line.dest]._get_formatter()._expand_help(line) == line.help
                    found.append(line.dest)
                waiting += named.values()
        assert {"serve", "session"} <= set(found)
        assert ("verify" in found) == bool(words)
