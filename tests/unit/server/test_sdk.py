"""A server imports the SDK without what it does not use, and a channel that is a client still finds it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import json, sys
from interlock.server.transport.sdk import defer_packages
defer_packages()
import mcp.server.lowlevel
from mcp import types
before = sorted(name for name in sys.modules if name.startswith(("mcp.client", "mcp.server.mcpserver")))
from mcp import ClientSession
from mcp.server import Server
try:
    mcp.server.nothing
    found = True
except AttributeError:
    found = False
same = [Server is mcp.server.lowlevel.Server, types is mcp.types, ClientSession is mcp.client.session.ClientSession]
print(json.dumps({"before": before, "same": same, "found": found}))
"""


def run(program: str) -> dict[str, object]:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    return json.loads(done.stdout)


@pytest.mark.inv("FRONT-3")
def test_what_only_clients_use_is_imported_when_it_is_asked_for() -> None:
    assert run(PROGRAM) == {"before": [], "same": [True, True, True], "found": False}


@pytest.mark.inv("FRONT-3")
def test_an_sdk_that_is_imported_already_stays_as_it_is() -> None:
    program = f"import mcp\n{PROGRAM}"
    assert "mcp.client.session" in str(run(program)["before"])


@pytest.mark.inv("FRONT-3")
def test_a_server_that_is_ready_has_not_imported_what_only_clients_or_people_use(tmp_path: Path) -> None:
    program = f"""
import json, sys
from interlock.cli.top.serve import check, load, places_of
load(check(places_of({{"--data-dir": {str(tmp_path)!r}}})))
names = ("mcp.client.client", "mcp.server.mcpserver", "interlock.server.resources", "interlock.views.picture.layout")
print(json.dumps({{"found": [name for name in names if name in sys.modules]}}))
"""
    assert run(program) == {"found": []}
