"""How to install: the lines and blocks of the page are what `interlock doctor` prints, and they start a server."""

import json
import os
import re
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from mcp import StdioServerParameters
from tests.support.server import Served

from interlock.cli.upkeep.clients import PLACES
from interlock.config.data_dir import PlaceArguments, data_dir_of
from interlock.kernel.budgets import RETENTION_DAYS
from interlock.server.tools import TOOLS
from interlock.testing.harness import Era

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTED = "/absolute/path/to/.venv/bin/interlock"
PROGRAM = "PROGRAM"
ODD = "a b 'c' Ü $HOME"
"""The name of a checkout's directory."""

every_client = pytest.mark.parametrize("client", list(PLACES))


def fenced(page: str) -> list[tuple[list[str], str]]:
    """Return each fenced block with the words of its opening line; a block may be in a list."""
    found = re.findall(r"^( *)```([^\n]+)\n(.*?)^\1```$", page, re.DOTALL | re.MULTILINE)
    assert found
    return [(info.split(), textwrap.dedent(text)) for _, info, text in found]


def lines_for(client: str) -> list[str]:
    """Return every line of a shell that the documents give for a client."""
    return [text for page in (PAGE, README) for info, text in fenced(page) if info[0] == "sh" and info[-1] == client]


def block_for(client: str) -> str:
    (block,) = (text for info, text in fenced(PAGE) if info[0] in {"json", "toml"} and info[1:] == [client])
    return block


def read(client: str, block: str) -> dict[str, Any]:
    return tomllib.loads(block) if client == "codex" else json.loads(block)


def with_program(value: Any, program: str, other: str) -> Any:
    """Return a value of a configuration or a line with another program."""
    return json.loads(json.dumps(value).replace(json.dumps(program)[1:-1], json.dumps(other)[1:-1]))


@cache
def doctor_output(client: str, home: Path) -> dict[str, Any]:
    command = ["env", "-i", f"HOME={home}", sys.executable, "-m", "interlock", "doctor", "--client", client, "--json"]
    printed: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return printed


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(name="doctor_prints", scope="module")
def doctor(home: Path) -> Callable[[str], dict[str, Any]]:
    return lambda client: doctor_output(client, home)


def read_by_a_shell(line: str, place: Path) -> list[str]:
    """Return the words that a shell reads in a line, in a directory; no program is run."""
    script = f"printf '%s\\0' {line}"
    printed = subprocess.run(["bash", "-c", script], cwd=place, capture_output=True, encoding="utf-8", check=True)
    return printed.stdout.split("\0")[:-1]


def words_with_json(words: list[str]) -> list[Any]:
    """Return words, those that are JSON as values: their spaces say nothing."""
    return [json.loads(word) if word.startswith("{") else word for word in words]


@pytest.mark.inv("DOC-3")
@every_client
def test_a_block_of_the_page_is_what_doctor_prints(client: str, doctor_prints: Callable[[str], dict[str, Any]]) -> None:
    printed = doctor_prints(client)
    shown = read(client, block_for(client))
    assert with_program(shown, DOCUMENTED, PROGRAM) == with_program(
        read(client, printed["block"]), printed["command"][0], PROGRAM
    )
    assert set(shown) == {{"codex": "mcp_servers", "vscode": "servers"}.get(client, "mcpServers")}


@pytest.mark.inv("DOC-3")
@every_client
def test_a_line_of_the_documents_is_what_doctor_prints_wherever_the_checkout_lies(
    client: str, doctor_prints: Callable[[str], dict[str, Any]], tmp_path: Path
) -> None:
    place, printed = tmp_path / ODD, doctor_prints(client)
    place.mkdir()
    lines = lines_for(client)
    assert bool(lines) is ("add" in printed)
    for line in lines:
        shown = words_with_json(read_by_a_shell(line, place))
        expected = words_with_json(read_by_a_shell(printed["add"], place))
        assert with_program(shown, f"{place}/.venv/bin/interlock", PROGRAM) == with_program(
            expected, printed["command"][0], PROGRAM
        )


def test_the_lines_that_take_it_out_are_what_doctor_prints(
    doctor_prints: Callable[[str], dict[str, Any]], tmp_path: Path
) -> None:
    (shown,) = (text.splitlines() for info, text in fenced(PAGE) if info == ["sh", "remove"])
    assert shown == [words for words in (doctor_prints(client).get("remove") for client in PLACES) if words]
    assert [read_by_a_shell(line, tmp_path)[-1] for line in shown] == ["interlock"] * len(shown)


@pytest.mark.inv("DOC-3")
@every_client
def test_a_block_of_the_page_starts_a_server_from_anywhere(
    client: str, doctor_prints: Callable[[str], dict[str, Any]], home: Path
) -> None:
    (servers,) = read(client, block_for(client)).values()
    server = with_program(servers["interlock"], DOCUMENTED, doctor_prints(client)["command"][0])
    assert listed_tools(home, server["command"], *server["args"]) == [tool.name for tool in TOOLS]


@cache
def listed_tools(home: Path, *command: str) -> list[str]:
    """Return what a server lists that is started from anywhere: once for all clients that start it alike."""
    bare = ["-i", f"HOME={home}", "PATH=/usr/bin:/bin", *command]
    with Served(StdioServerParameters(command="/usr/bin/env", args=bare, cwd="/"), "auto") as served:
        assert served.client is not None
        listed = served.run(served.client.list_tools)
    return [tool.name for tool in listed.tools]


@pytest.mark.parametrize(("era", "at"), [("legacy", 0), ("auto", 1)])
def test_the_page_names_the_protocol_revisions_that_are_spoken(era: Era, at: int, tmp_path: Path) -> None:
    named = re.search(r"protocol revisions (\S+) and (\S+), over stdio", PAGE)
    assert named is not None
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "interlock", "serve", "--data-dir", str(tmp_path / "data")]
    )
    with Served(command, era) as served:
        assert served.client is not None
        assert served.client.protocol_version == named.groups()[at]


def test_the_names_of_the_clients_are_those_that_doctor_takes() -> None:
    for page in (PAGE, README):
        named = re.search(r"NAME is (.*?)[;.]\s", page, re.DOTALL)
        assert named is not None
        assert re.findall(r"`([a-z-]+)`", named[1]) == list(PLACES)


def test_the_container_is_started_alike_by_line_and_block(tmp_path: Path) -> None:
    (line,) = (text for info, text in fenced(PAGE) if info == ["sh", "docker-run"])
    (build,) = (text for info, text in fenced(PAGE) if info == ["sh", "docker-build"])
    server = json.loads(block_for("docker"))["mcpServers"]["interlock"]
    assert read_by_a_shell(line, tmp_path) == [server["command"], *server["args"]]
    words = read_by_a_shell(build, tmp_path)
    assert words[words.index("-t") + 1] == server["args"][-1], "the image that is built is the image that is run"
    assert (ROOT / words[words.index("-f") + 1]).is_file()


def test_the_digest_of_the_base_image_is_read_from_what_was_pulled_and_given_to_the_build(tmp_path: Path) -> None:
    (base,) = (text for info, text in fenced(PAGE) if info == ["sh", "docker-base"])
    (build,) = (text for info, text in fenced(PAGE) if info == ["sh", "docker-build"])
    digest = f"sha256:{'0123456789abcdef' * 4}"
    engine = tmp_path / "docker"
    engine.write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\ncase "$1" in image) echo "python@{digest}";; esac\n',
        encoding="utf-8",
    )
    engine.chmod(0o700)
    search = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(["sh", "-e", "-c", f"{base}\n{build}"], env={"PATH": search}, cwd=tmp_path, check=True)
    pulled, inspected, built = (tmp_path / "calls").read_text(encoding="utf-8").splitlines()
    assert f"--build-arg BASE_DIGEST={digest} ." in built
    dockerfile = (ROOT / "packaging" / "Dockerfile").read_text(encoding="utf-8")
    tag = pulled.removeprefix("pull ")
    assert inspected.endswith(f" {tag}")
    assert dockerfile.count(f"\nFROM {tag}@${{BASE_DIGEST}}") == 2


def test_the_inspector_is_given_the_command_that_serves(
    doctor_prints: Callable[[str], dict[str, Any]], tmp_path: Path
) -> None:
    (line,) = (text for info, text in fenced(PAGE) if info == ["sh", "inspector"])
    words = read_by_a_shell(line, tmp_path)
    command = words[words.index("--cli") + 1 : words.index("--method")]
    assert command == [f"{tmp_path}/.venv/bin/interlock", *doctor_prints("json")["command"][1:]]


def test_the_page_says_where_state_lies_and_for_how_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    place = data_dir_of({}, PlaceArguments())
    assert f"`~/{place.relative_to('/home/somebody')}`" in PAGE
    assert f"{RETENTION_DAYS} days" in PAGE


def test_every_fence_of_the_page_is_one_that_is_tested() -> None:
    kinds = {tuple(info) for info, _ in fenced(PAGE)}
    tested = {("sh", kind) for kind in ("docker-base", "docker-build", "docker-run", "inspector", "remove", "first")}
    tested |= {("sh", client) for client in PLACES} | {("sh", "first", client) for client in PLACES}
    tested |= {(form, client) for form in ("json", "toml") for client in (*PLACES, "docker")}
    assert kinds <= tested
