"""The front over real pipes: what a client gets while the server is being imported, and what the server makes of it.

The servers here import the SDK only when their gate opens, so whatever they answer before comes from the front.
"""

import contextlib
import json
import os
import signal
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from tests.e2e.test_stdio_transport import ENVELOPE, ERAS, HELLO, PATIENCE_S, Json, Served, call, in_era, serving
from tests.support.server import SHOWS_PAGES, Server, workspace_in

from interlock.testing.harness import Era

pytestmark = pytest.mark.skipif(os.name != "posix", reason="only there a start has a front")

GATED = """
import os, sys
class Gate:
    def find_spec(self, name, path=None, target=None):
        if name == "mcp":
            sys.meta_path.remove(self)
            os.read(int(os.environ["GATE"]), 1)
sys.meta_path.insert(0, Gate())
sys.argv = ["interlock", *sys.argv[1:]]
from interlock.__main__ import main
sys.exit(main())
"""
PREPARED = {
    "modern": ("server/discover", "tools/list", "prompts/list", "resources/templates/list"),
    "legacy": ("ping", "tools/list", "prompts/list", "resources/templates/list"),
}


class Gated:
    """A server behind a front whose import waits for `open`."""

    def __init__(self, server: Served, gate: int) -> None:
        self.server, self._gate = server, gate

    def open(self) -> None:
        os.write(self._gate, b"x")


@contextlib.contextmanager
def gated(root: Path) -> Generator[Gated]:
    source, sink = os.pipe()
    place = ["serve", "--data-dir", str(root / "data"), "--workspace", str(root)]
    command = ["env", f"GATE={source}", f"INTERLOCK_WORKFLOWS_DIR={root / 'none'}", sys.executable, "-c", GATED, *place]
    with serving(command=command, pass_fds=(source,)) as server:
        try:
            yield Gated(server, sink)
        finally:
            os.close(source)
            os.close(sink)


def requests(era: str) -> list[Json]:
    """Return the requests that a front answers, after the handshake if the era has one."""
    listed = [
        {"jsonrpc": "2.0", "id": number, "method": method, "params": {"_meta": ENVELOPE}}
        for number, method in enumerate(PREPARED[era], start=10)
    ]
    return [in_era(era, one) for one in listed]


@pytest.mark.inv("FRONT-1", "FRONT-2", "SRV-6")
@pytest.mark.parametrize("era", ERAS)
def test_before_the_sdk_is_imported_lists_are_answered_and_afterwards_nothing_is_answered_twice(
    tmp_path: Path, era: str
) -> None:
    asked = requests(era)
    with gated(tmp_path) as front:
        server = front.server
        server.open(era)
        server.send(*asked)
        assert [server.answer()["id"] for _ in asked] == [one["id"] for one in asked]
        # The answer was sent already, so the cancellation of its request alters nothing.
        server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 11}})
        server.send(in_era(era, call(50, "list_workflows")), *[one | {"id": f"again {one['id']}"} for one in asked])
        front.open()
        later = [server.answer() for _ in range(1 + len(asked))]
        assert {str(one["id"]) for one in later} == {"50", *(f"again {one['id']}" for one in asked)}
        assert all("result" in one for one in later)
        server.end("end of input")
        assert server.exit_code() == 0
        assert server.answers.rest() == b"", "each request has one answer"
        assert b"otherwise than the server" not in server.errors.rest()


@pytest.mark.inv("FRONT-1", "SRV-7")
@pytest.mark.parametrize("end", ["end of input", signal.SIGTERM], ids=str)
def test_what_was_read_before_the_end_is_answered_when_the_server_is_ready(
    tmp_path: Path, end: str | signal.Signals
) -> None:
    with gated(tmp_path) as front:
        server = front.server
        server.open("legacy")
        ping = requests("legacy")[0]
        # One write, one read: the answer of the first shows that the others were read.
        server.send(ping, in_era("legacy", call(7, "list_workflows")), ping | {"id": 11})
        assert server.answer()["id"] == ping["id"]
        server.end(end)
        front.open()
        assert server.exit_code() == 0
        assert {json.loads(line)["id"] for line in server.answers.rest().splitlines()} == {7, 11}


@pytest.mark.inv("FRONT-1")
def test_a_faulty_configuration_answers_nothing(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "config.toml").write_text("[gates]\nclaims = 7\n", encoding="utf-8")
    with gated(tmp_path) as front:
        front.server.send({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO})
        assert front.server.process.wait(PATIENCE_S) == 2
        assert front.server.answers.rest() == b""


@pytest.mark.inv("FRONT-1", "CHAT-1")
@pytest.mark.parametrize("era", ["auto", "legacy"])
def test_only_a_host_that_shows_pages_receives_the_tools_of_the_page(tmp_path: Path, era: Era) -> None:
    workspace = workspace_in(tmp_path)
    with (
        Server(tmp_path / "data", workspace, era) as client,
        Server(tmp_path / "data", workspace, era, declared=SHOWS_PAGES) as host,
    ):
        usual, all_of_them = ([tool.name for tool in one.ask("list_tools").tools] for one in (client, host))
        assert all_of_them == [*usual, "show_run", "answer_question"]
