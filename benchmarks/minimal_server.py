"""The floor of an advance: the smallest durable server on the SDK. It checks nothing, and it recovers nothing.

One call verifies two message authentication codes; writes one content-addressed file and one segment, each to a
temporary file that is synced and renamed before its directory is synced; appends to the manifest and syncs it; and
mints three tokens. Its answer is as long as one of Interlock's.
"""

import hashlib
import hmac
import os
import sys
from pathlib import Path
from typing import cast

import anyio
from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

Context = ServerRequestContext[object, object]
_KEY = b"k" * 32
_ANSWER = "Read what the last step left, do this step's share of the work, check it, and say what came of it. " * 8


class MinimalLog:
    """Records calls of one session durably: content and segment, their directories, then the manifest."""

    def __init__(self, root: Path) -> None:
        self._content, self._events = str(root / "content"), str(root / "events")
        for directory in (self._content, self._events):
            Path(directory).mkdir(parents=True)
        self._manifest = str(root / "manifest")
        Path(self._manifest).touch()
        self._count = 0

    def append(self, data: bytes) -> str:
        """Record one call with five syncs; return the digest of its content."""
        self._count += 1
        digest = hashlib.sha256(data + str(self._count).encode()).hexdigest()
        _write_durably(self._content, digest, data)
        segment = data * 2
        _write_durably(self._events, f"{self._count:08d}.jsonl", segment)
        line = f"{self._count} {hashlib.sha256(segment).hexdigest()} {digest}\n".encode()
        handle = os.open(self._manifest, os.O_WRONLY | os.O_APPEND)
        os.write(handle, line)
        os.fsync(handle)
        os.close(handle)
        return digest


def _write_durably(directory: str, name: str, data: bytes) -> None:
    temporary = f"{directory}/.{name}.tmp"
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    os.write(handle, data)
    os.fsync(handle)
    os.close(handle)
    os.rename(temporary, f"{directory}/{name}")  # noqa: PTH104 — Path costs more than the call
    handle = os.open(directory, os.O_RDONLY)
    os.fsync(handle)
    os.close(handle)


def token(text: str) -> str:
    """Return a token over a text."""
    return f"{text}.{hmac.digest(_KEY, text.encode(), 'sha256').hex()[:32]}"


def is_valid(given: str) -> bool:
    """Say whether `token` made this."""
    return hmac.compare_digest(token(given.rpartition(".")[0]), given)


class Sessions:
    """The logs of this server, by session, and the calls over them."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._logs: dict[str, MinimalLog] = {}

    async def call_tool(self, _context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        """Record the notes of a call in a thread and answer with the tokens of the next one."""
        arguments = params.arguments or {}
        session = str(arguments["session"])
        if session not in self._logs:
            self._logs[session] = MinimalLog(self._root / session)
        return await anyio.to_thread.run_sync(self._advance, session, str(arguments["notes"]), arguments.get("tokens"))

    def _advance(self, session: str, notes: str, tokens: object) -> types.CallToolResult:
        given = [str(one) for one in cast("list[object]", tokens or [])]
        if not all(map(is_valid, given)):
            return types.CallToolResult(content=[types.TextContent(text="bad token")], is_error=True)
        digest = self._logs[session].append(notes.encode())
        minted = [token(f"{kind}:{digest}") for kind in ("state", "ack", "checkpoint")]
        structure = {"session": session, "tokens": minted[:2], "checkpoint": minted[2], "prompt": _ANSWER}
        return types.CallToolResult(
            content=[types.TextContent(text=_ANSWER + " ".join(minted))], structured_content=structure
        )


async def main() -> None:
    """Serve until the client leaves; the one argument is the directory of the sessions."""
    server = Server("minimal", on_call_tool=Sessions(Path(sys.argv[1])).call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main)
