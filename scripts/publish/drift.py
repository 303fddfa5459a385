"""Where generated files, a built wheel or a running server differ from what the code generates."""

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import unified_diff
from itertools import islice
from pathlib import Path
from typing import TypeAlias, cast

from interlock.kernel.canonical import Json
from publish.files import DIRECTORIES, WHEEL_TOOLS

Files: TypeAlias = Mapping[str, str]
"""The generated text of each file, by its path in the checkout."""

ERAS = ("2025-11-25", "2026-07-28")
"""The revisions of the protocol: with a handshake, and without."""

_SHOWN_MAX = 10
_SHOWN_CHARS_MAX = 200
"""How much is shown of a line: a log of CI shows no more, and some generated files have lines of many thousands."""
_CLIENT: dict[str, Json] = {"name": "verify", "version": "1"}


def stale_files(root: Path, fresh: Files) -> list[str]:
    """Return the files in the directories of generated files that are not generated any more."""
    found = [path for directory in DIRECTORIES for path in (root / directory).rglob("*") if path.is_file()]
    return sorted({path.relative_to(root).as_posix() for path in found} - fresh.keys())


def file_drift(root: Path, fresh: Files) -> Iterator[str]:
    """Yield each difference between a checkout's generated files and a fresh generation, byte for byte."""
    for name, text in fresh.items():
        path = root / name
        yield from _byte_drift(name, path.read_bytes() if path.is_file() else None, text)
    yield from (f"{name}: is not generated any more" for name in stale_files(root, fresh))


def wheel_drift(wheel: Path, fresh: Files) -> Iterator[str]:
    """Yield each difference between the generated files in a wheel and a fresh generation, byte for byte."""
    with zipfile.ZipFile(wheel) as archive:
        members = set(archive.namelist())
        for name, text in fresh.items():
            if name.startswith("src/"):
                member = name.removeprefix("src/")
                yield from _byte_drift(f"wheel: {member}", archive.read(member) if member in members else None, text)


def server_drift(command: Sequence[str], environment: Mapping[str, str], fresh: Files) -> Iterator[str]:
    """Yield each difference between the `tools/list` of a server and a fresh generation, in both protocol eras."""
    expected = cast("Json", json.loads(fresh[WHEEL_TOOLS]))
    for era in ERAS:
        listed = _listed_tools(command, environment, era)
        if listed != expected:
            yield from _lines_apart(f"tools/list ({era}).json", json.dumps(listed), json.dumps(expected))


def build_wheel(root: Path, directory: Path) -> Path:
    """Build the wheel of a checkout, without network, and return its path.

    Raises:
        CalledProcessError: The build failed.
    """
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*pip, "--wheel-dir", str(directory), str(root)], check=True)
    (wheel,) = directory.glob("*.whl")
    return wheel


def installed_server(wheel: Path, directory: Path) -> tuple[list[str], dict[str, str]]:
    """Unpack a wheel and return the command and the environment that serve from it, with data in the directory."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(directory / "unpacked")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("INTERLOCK_")}
    own = {"PYTHONPATH": str(directory / "unpacked"), "INTERLOCK_WORKFLOWS_DIR": str(directory / "none")}
    places = ["--data-dir", str(directory / "data"), "--workspace", str(directory)]
    return [sys.executable, "-m", "interlock", "serve", *places], kept | own


def _byte_drift(name: str, found: bytes | None, text: str) -> Iterator[str]:
    if found is None:
        yield f"{name}: is missing"
    elif found != text.encode():
        yield from _lines_apart(name, found.decode(errors="replace"), text)


def _lines_apart(name: str, found: str, expected: str) -> Iterator[str]:
    """Yield the first lines that differ; two values of JSON are laid out alike before."""
    if name.endswith(".json"):
        with suppress(json.JSONDecodeError):
            values = json.loads(found), json.loads(expected)
            if values[0] != values[1]:
                found, expected = (json.dumps(value, indent=1, ensure_ascii=False) for value in values)
    changed = unified_diff(found.split("\n"), expected.split("\n"), name, "generated", lineterm="", n=0)
    yield from (f"{name}: {line}" for line in _cut_lines([*islice(changed, 2, 2 + _SHOWN_MAX)]))


def _cut_lines(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a difference; of a long one, only the part around the first character that differs."""
    sides = {sign: [line for line in lines if line.startswith(sign)] for sign in "-+"}
    apart = {
        line: next((at for at, pair in enumerate(zip(removed, added, strict=False)) if at and len({*pair}) > 1), 0)
        for removed, added in zip(*sides.values(), strict=False)
        for line in (removed, added)
    }
    for line in lines:
        start = max(1, apart.get(line, 0) - _SHOWN_CHARS_MAX // 4)
        end = start + _SHOWN_CHARS_MAX
        is_long = len(line) > end or (start > 1 and len(line) > _SHOWN_CHARS_MAX)
        cut = f"{line[0]}{'…' if start > 1 else ''}{line[start:end]}{'…' if len(line) > end else ''}"
        yield cut if is_long else line


def _listed_tools(command: Sequence[str], environment: Mapping[str, str], era: str) -> Json:
    """Return the tools that a server lists over stdio, as parsed JSON."""
    listing: dict[str, Json] = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    hello: list[dict[str, Json]] = []
    if era == ERAS[0]:
        params: dict[str, Json] = {"protocolVersion": era, "capabilities": {}, "clientInfo": _CLIENT}
        hello = [
            {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params},
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
        ]
    else:
        prefix = "io.modelcontextprotocol"
        envelope: dict[str, Json] = {f"{prefix}/protocolVersion": era, f"{prefix}/clientInfo": _CLIENT}
        listing["params"] = {"_meta": {**envelope, f"{prefix}/clientCapabilities": {}}}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=dict(environment)) as server:
        assert server.stdin is not None and server.stdout is not None, "both were asked for"  # noqa: PT018
        server.stdin.writelines(json.dumps(message).encode() + b"\n" for message in [*hello, listing])
        server.stdin.flush()
        answers = (json.loads(line) for line in server.stdout)
        answer = next(answer for answer in answers if answer.get("id") == listing["id"])
        server.stdin.close()
    return cast("Json", answer["result"]["tools"])
