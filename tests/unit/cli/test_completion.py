"""`interlock completion`: the script of a shell completes every command and action."""

import shutil
import subprocess

import pytest

from interlock.cli.commands import COMMANDS, SESSION
from interlock.cli.main import main


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_command_and_action_is_in_the_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = set(script(shell, capsys).replace('"', " ").replace("'", " ").split())
    assert {row.name for row in COMMANDS} <= words
    assert {command.name for command in SESSION.commands} <= words


def completed(text: str, *words: str) -> list[str]:
    """Return what bash offers for the last of these words."""
    bash = shutil.which("bash")
    assert bash is not None
    typed = " ".join(f"'{word}'" for word in words)
    asked = (
        f"{text}\nCOMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}; _interlock; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    )
    done = subprocess.run([bash, "-c", asked], capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_bash_completes_commands_and_then_their_actions(capsys: pytest.CaptureFixture[str]) -> None:
    text = script("bash", capsys)
    assert completed(text, "interlock", "ses") == ["session"]
    assert completed(text, "interlock", "session", "sho") == ["show"]
    assert completed(text, "interlock", "doctor", "x") == []


def test_an_unknown_shell_is_refused_with_those_that_are_known(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["completion", "tcsh"])
    assert end.value.code == 2
    assert "bash" in capsys.readouterr().err
