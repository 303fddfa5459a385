"""The guide works as it is written: its commands are run, its files are put in place, its outputs are compared."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

GUIDE = Path(__file__).parents[3] / "docs" / "guide.md"
BIN = Path(sys.executable).parent
SHOWN_ONLY = {"sh", "json client"}


def blocks() -> list[tuple[str, str]]:
    found = re.findall(r"^```([^\n]+)\n(.*?)^```$", GUIDE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert found
    return found


def environment(home: Path) -> dict[str, str]:
    """Return what a shell of somebody has who never heard of Interlock, with its command on the path."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("INTERLOCK_", "CLAUDE_"))}
    return {**kept, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "HOME": str(home), "PYTHONUTF8": "1"}


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
    """Return a pattern for an output of the guide; what it leaves out stands there as `…` at the end of a line."""
    return "\n".join(
        re.escape(line.removesuffix("…")) + (".*" if line.endswith("…") else "") for line in shown.splitlines()
    )


def test_every_command_and_file_of_the_guide_does_in_this_order_what_the_guide_says(tmp_path: Path) -> None:
    place, home = tmp_path / "project", tmp_path / "home"
    place.mkdir()
    home.mkdir()
    said = ""
    for info, text in blocks():
        match info.split():
            case ["sh", "run", *codes]:
                done = run(text, place, home)
                said = done.stdout
                assert done.returncode == int(codes[0] if codes else 0), f"{text}\n{said}"
            case ["text", "output"]:
                assert re.fullmatch(as_pattern(text), said.rstrip("\n")), f"shown:\n{text}\nfound:\n{said}"
            case [_, "file", path]:
                (place / path).write_text(text, encoding="utf-8")
            case _:
                assert info in SHOWN_ONLY, info


def test_the_shown_configuration_of_a_client_is_json_that_names_the_server() -> None:
    shown = [json.loads(text) for info, text in blocks() if info == "json client"]
    assert [set(one["mcpServers"]) for one in shown] == [{"interlock"}]
