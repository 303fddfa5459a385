"""The guides work as they are written: commands are run, files are put in place, outputs are compared."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from tests.support.forkserver import forking_python

DOCS = Path(__file__).parents[3] / "docs"
SHOWN_ONLY = {"sh", "json client"}


def blocks(page: str) -> list[tuple[str, str]]:
    text = (DOCS / page).read_text(encoding="utf-8")
    found = re.findall(r"^```([^\n]+)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert found
    return found


def environment(home: Path) -> dict[str, str]:
    """Return what a shell of somebody has who never heard of Interlock, with its command on the path."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("INTERLOCK_", "CLAUDE_"))}
    return {
        **kept,
        "PATH": f"{Path(forking_python()).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(home),
        "PYTHONUTF8": "1",
    }


def run(script: str, place: Path, home: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-e", "-c", script],
        cwd=place,
        env=environment(home),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


def as_pattern(shown: str) -> str:
    """Return a pattern for an output of the guide; an omission is written as `…` at the end of a line."""
    return "\n".join(
        re.escape(line.removesuffix("…")) + (".*" if line.endswith("…") else "") for line in shown.splitlines()
    )


@pytest.mark.parametrize("page", ["guide.md", pytest.param("losing-nothing.md", marks=pytest.mark.damages)])
def test_every_command_and_file_of_a_guide_does_in_this_order_what_the_guide_says(tmp_path: Path, page: str) -> None:
    place, home = tmp_path / "project", tmp_path / "home"
    place.mkdir()
    home.mkdir()
    said = ""
    for info, text in blocks(page):
        match info.split():
            case ["sh", "run", *codes]:
                done = run(text, place, home)
                said = done.stdout
                assert done.returncode == int(codes[0] if codes else 0), f"{text}\n{said}"
            case ["text", "output"]:
                assert re.fullmatch(as_pattern(text), said.rstrip("\n")), f"shown:\n{text}\nfound:\n{said}"
            case [_, "file", path]:
                (place / path).parent.mkdir(parents=True, exist_ok=True)
                (place / path).write_text(text, encoding="utf-8")
            case _:
                assert info in SHOWN_ONLY, info


def test_the_shown_configuration_of_a_client_is_json_that_names_the_server() -> None:
    shown = [json.loads(text) for info, text in blocks("guide.md") if info == "json client"]
    assert [set(one["mcpServers"]) for one in shown] == [{"interlock"}]
