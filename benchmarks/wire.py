"""A client with next to no cost of its own: JSON lines on the pipes of a server process, in both protocol eras.

The SDK's client takes a millisecond a call, more than some of what is measured; where it matters, both are listed.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Literal, Self, cast

from tests.support.clients import clients_directory
from tests.support.load import Heard, Sent, Site

from interlock.kernel.canonical import Json

Era = Literal["2026-07-28", "2025-11-25"]
ERAS: tuple[Era, Era] = ("2026-07-28", "2025-11-25")
"""Without a handshake, and with one."""

_CLIENT: dict[str, Json] = {"name": "benchmark", "version": "1"}
_ENVELOPE: dict[str, Json] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": _CLIENT,
    "io.modelcontextprotocol/clientCapabilities": {},
}
_HELLO: dict[str, Json] = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": _CLIENT}
MINIMAL_NOTES = "- did what the step asks and checked it " * 20
SYNC_MS = "BENCHMARK_SYNC_MS"
"""The environment variable that slows every sync of the measured servers, and of the floors."""
_BYTECODE = Path(tempfile.gettempdir()) / f"interlock-benchmarks-{os.getuid()}"
ECHO = [sys.executable, str(Path(__file__).with_name("echo_server.py"))]
BARE = [sys.executable, str(Path(__file__).with_name("bare_echo.py"))]
MINIMAL = [sys.executable, str(Path(__file__).with_name("minimal_server.py"))]
"""The servers of the floors: the SDK's echo, one without the SDK, and the smallest durable one."""


def typescript_echo() -> list[str] | None:
    """Return the command of the TypeScript SDK's echo, or None where `make clients` has not installed that SDK."""
    installed = clients_directory()
    packages = installed / "node_modules"
    node, server = packages / ".bin" / "node", packages / "@modelcontextprotocol" / "server"
    if not (node.exists() and server.is_dir()):
        return None
    return [str(node), str(Path(__file__).with_name("echo_server.mjs")), str(installed)]


def environment() -> dict[str, str]:
    """Return an environment in which servers find byte code, and leave it where they do not.

    The byte code is kept apart from the installation, so that it is used even where Python is set to write none;
    whoever times a spawn spawns once before.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("INTERLOCK_")}
    # An empty value is the interpreter's word for "not set".
    kept |= {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(_BYTECODE)}
    if not kept.get(SYNC_MS):
        return kept
    return kept | {"PYTHONPATH": str(Path(__file__).with_name("slow_sync"))}


class Wire:
    """A server process and its two pipes. Ends with its `with` block."""

    def __init__(self, command: Sequence[str], *, era: Era = "2026-07-28", extra: dict[str, str] | None = None) -> None:
        self._era: Era = era
        self._identity = 0
        self.begun = time.perf_counter()
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment() | (extra or {})
        )
        assert self._process.stdin is not None, "it was asked for"
        assert self._process.stdout is not None, "it was asked for"
        self._to, self._from = self._process.stdin, self._process.stdout

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._to.close()
        self._from.close()
        self._process.wait()

    def hello(self) -> dict[str, Json]:
        """Open the connection as the era does, with the request that a client sends first; return the result of it."""
        if self._era == "2026-07-28":
            return self.request("server/discover", {})
        result = self.request("initialize", _HELLO)
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return result

    def request(self, method: str, params: dict[str, Json]) -> dict[str, Json]:
        """Send a request and return its result.

        Raises:
            RuntimeError: The server refused it, or ended.
        """
        identity = self.send(method, params)
        answered, result = self.receive()
        assert answered == identity, "one request waits at a time"
        if result.get("isError"):
            raise RuntimeError(json.dumps(result)[:400])
        return result

    def send(self, method: str, params: dict[str, Json]) -> int:
        """Send a request without waiting; return its id."""
        self._identity += 1
        if self._era == "2026-07-28":
            params = {**params, "_meta": _ENVELOPE}
        self._write({"jsonrpc": "2.0", "id": self._identity, "method": method, "params": params})
        return self._identity

    def send_bytes(self, chunks: Iterable[bytes]) -> None:
        """Send bytes as they are."""
        self._to.writelines(chunks)
        self._to.flush()

    def receive_line(self) -> bytes:
        """Return the next line as it is; nothing if the server ended."""
        return self._from.readline()

    def receive(self) -> tuple[int, dict[str, Json]]:
        """Return the id and the result of the next answer.

        Raises:
            RuntimeError: The server ended.
            TypeError: It has no result.
        """
        line = self._from.readline()
        if not line:
            raise RuntimeError("the server ended")
        answer = cast("dict[str, Json]", json.loads(line))
        result = answer.get("result")
        if not isinstance(result, dict):
            raise TypeError(line.decode()[:400])
        return cast("int", answer["id"]), result

    def call(self, call: Sent) -> Heard:
        """Call a tool."""
        return heard(call, self.request("tools/call", call_params(call)))

    def advance_minimal(self, session: str, tokens: Json = None) -> Json:
        """Call the minimal server's only tool as an advance would; return the tokens of its next call."""
        notes = f"{MINIMAL_NOTES}{self._identity}"
        arguments: dict[str, Json] = {"session": session, "notes": notes, "tokens": tokens}
        result = self.request("tools/call", {"name": "advance", "arguments": arguments})
        return cast("dict[str, Json]", result["structuredContent"])["tokens"]

    def memory_kib(self, field: Literal["VmHWM", "VmRSS"]) -> int:
        """Return the process's memory: its peak, or what it holds now. Zero where there is no /proc."""
        try:
            lines = Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii").splitlines()
        except FileNotFoundError:
            return 0
        return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))

    def cpu_seconds(self) -> float:
        """Return the processor time the process has used. Zero where there is no /proc."""
        try:
            text = Path(f"/proc/{self._process.pid}/stat").read_text(encoding="ascii")
        except FileNotFoundError:
            return 0.0
        fields = text.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _write(self, message: Mapping[str, object]) -> None:
        self._to.write(json.dumps(message).encode() + b"\n")
        self._to.flush()


def call_params(call: Sent) -> dict[str, Json]:
    """Return the parameters of `tools/call`."""
    return {"name": call.tool, "arguments": dict(call.arguments)}


def heard(call: Sent, result: dict[str, Json]) -> Heard:
    """Return a result of `tools/call` as it was heard."""
    return Heard(call=call, structure=cast("dict[str, Json]", result["structuredContent"]), text="")


def start(workflow_id: str, session: str | None = None) -> Sent:
    """Return the call that starts a run, in a session of its own or in one that exists."""
    arguments: dict[str, Json] = {"workflowId": workflow_id, "goal": "Measure"}
    return Sent(tool="start_workflow", arguments=arguments | ({"sessionId": session} if session else {}))


def session_of(answer: Heard) -> str:
    """Return the session that a start answered with."""
    return str(cast("dict[str, Json]", answer.structure["run"])["sessionId"])


@cache
def _sites() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix="interlock-benchmark-")


@contextmanager
def temporary_site() -> Generator[Site, None, None]:
    """Yield a site of its own, on the disk that TMPDIR names. It is removed when the process ends.

    For some seconds after files were deleted, ext4 searches for an inode that was not theirs: a new file then costs up
    to twenty times as much, for the server that happens to be measured next.
    """
    yield Site(root=Path(tempfile.mkdtemp(dir=_sites().name)))


def serving(site: Site, *, era: Era = "2026-07-28") -> Wire:
    """Return Interlock over a site, greeted."""
    wire = Wire(site.command(), era=era, extra=site.environment())
    wire.hello()
    return wire
