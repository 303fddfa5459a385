"""From an empty home directory to the first finished step, by the unchanged commands of the install page."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from mcp import StdioServerParameters
from tests.support.server import Served, step_of

ROOT = Path(__file__).parents[2]
PASTES_MAX = 6
NEEDED = ("bash", "git", "make")
RECORDING = """#!/bin/sh
printf '%s\\n' "$@" > "$HOME/claude-was-called-with"
"""


def pastes() -> list[str]:
    """Return what a newcomer pastes, in order: lines of a shell, and words to an agent, which begin with `> `."""
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    section = page.split("## The first step\n")[1].split("\n## ")[0]
    found = re.findall(r"^( *)```sh first[^\n]*\n(.*?)^\1```$|^ *(> [^\n]+)$", section, re.DOTALL | re.MULTILINE)
    return [line for _, block, words in found for line in (words or textwrap.dedent(block)).splitlines() if line]


@dataclass(slots=True, kw_only=True)
class Newcomer:
    """Somebody with an empty home directory, Python, git and make. There is no network.

    So two things are brought instead of fetched: the checkout is cloned from a copy of this working tree, and what
    `make` would download is linked from the environment that runs this test. Everything else happens as it stands.
    """

    home: Path
    place: Path = field(init=False)
    path: str = field(init=False)
    """The search path for commands, which a pasted line may extend for the lines after it."""

    def __post_init__(self) -> None:
        self.place = self.home
        self.path = f"{self.home.parent / 'programs'}:/usr/local/bin:/usr/bin:/bin"
        programs = self.home.parent / "programs"
        programs.mkdir()
        (programs / "claude").write_text(RECORDING, encoding="utf-8")
        (programs / "claude").chmod(0o755)
        (programs / "python3").symlink_to(Path(sys.executable).resolve())

    def environment(self) -> dict[str, str]:
        offline = {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        return {"HOME": str(self.home), "PATH": self.path, "LANG": "C.UTF-8", **offline}

    def paste(self, line: str) -> str:
        """Run a line in the directory and with the search path that the line before left, and return its output."""
        where = self.home.parent / "where"
        done = subprocess.run(
            ["bash", "-e", "-c", f"{line}\nprintf '%s\\n' \"$PWD\" \"$PATH\" > '{where}'"],
            cwd=self.place,
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}"
        place, self.path = where.read_text(encoding="utf-8").splitlines()
        self.place = Path(place)
        return done.stdout

    def link_what_make_would_download(self) -> None:
        site = self.place / ".venv" / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages"
        site.mkdir(parents=True)
        for path in Path(sysconfig.get_path("purelib")).iterdir():
            if path.suffix != ".pth" and not path.name.startswith(("pip", "interlock", "_interlock", "__")):
                (site / path.name).symlink_to(path)

    def registered(self) -> list[str]:
        """Return the command that the client is to start."""
        words = (self.home / "claude-was-called-with").read_text(encoding="utf-8").splitlines()
        assert words[:6] == ["mcp", "add", "--scope", "user", "interlock", "--"]
        return words[6:]


@pytest.fixture(name="address")
def repository(tmp_path: Path) -> Path:
    """Return a repository with this working tree as its one commit."""
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if missing:
        pytest.skip(f"the first step needs {', '.join(missing)}: install them and run this test again")
    origin = tmp_path / "origin"
    shutil.copytree(ROOT, origin, ignore=shutil.ignore_patterns(".git", ".venv", ".*_cache", ".hypothesis", "tests"))
    author = ["-c", "user.name=Somebody", "-c", "user.email=somebody@example.org"]
    for command in (["init", "-q"], ["add", "-A"], [*author, "commit", "-qm", "All of it"]):
        subprocess.run(["git", *command], cwd=origin, check=True)
    return origin


def test_a_newcomer_has_finished_a_step_and_found_it_again_after_six_pastes(tmp_path: Path, address: Path) -> None:
    lines = pastes()
    assert 0 < len(lines) <= PASTES_MAX
    newcomer = Newcomer(home=make(tmp_path / "home"))
    said = ""
    for line in lines:
        if line.startswith("> "):
            work_on(line.removeprefix("> "), newcomer, make(tmp_path / "project"))
            continue
        if line.startswith("make"):
            newcomer.link_what_make_would_download()
        said = newcomer.paste(line.replace("ADDRESS", str(address)))
    assert "Add a line about the tests" in said, "the list shows what the step before began"
    assert "wr.quick_task" in said


def make(path: Path) -> Path:
    path.mkdir()
    return path


def work_on(words: str, newcomer: Newcomer, project: Path) -> None:
    """Play the agent that a client starts with its server, and that hears these words: find the workflow, do a step."""
    goal, workflow = re.fullmatch(r"(.+), with the (.+) workflow\.", words).groups()  # pyright: ignore[reportOptionalMemberAccess] — else it fails here
    command = newcomer.registered()
    assert Path(command[0]) == newcomer.home / "interlock" / ".venv" / "bin" / "interlock"
    printed = json.loads(newcomer.paste(".venv/bin/interlock doctor --client claude-code --json"))
    assert printed["command"] == command
    server = json.loads(printed["block"])["mcpServers"]["interlock"]
    bare = ["-i", f"HOME={newcomer.home}", "PATH=/usr/bin:/bin", server["command"], *server["args"]]
    with Served(StdioServerParameters(command="/usr/bin/env", args=bare, cwd=str(project)), "auto") as served:
        found = served.call("list_workflows", query=workflow)["workflows"][0]
        first = served.start(found["workflowId"], goal=goal)
        second = served.follow(
            first,
            "README.md:12 now says that `make test` runs the tests: a reader of the README sees it. Only that line was"
            " changed; the place was my choice. Noticed and left alone: nothing.",
        )
        assert step_of(second) != step_of(first)
