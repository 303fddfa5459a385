"""The clients of the TypeScript SDK, on which most hosts are built, play a workflow through a gate to its end.

They hold every structured answer against the tool's published output schema, and refuse it where it differs.
"""

import json
import sys
from pathlib import Path

import pytest
from tests.clients.installed import Clients, Finished

from interlock.server.tools import TOOLS

PACKAGES = {"sdk_v1.mjs": "@modelcontextprotocol/sdk", "sdk_v2.mjs": "@modelcontextprotocol/client"}
LYING = [sys.executable, str(Path(__file__).with_name("lying_server.py"))]

by_each_client = pytest.mark.parametrize(
    ("script", "era", "revision"),
    [
        ("sdk_v1.mjs", "legacy", "2025-11-25"),
        ("sdk_v2.mjs", "legacy", "2025-11-25"),
        ("sdk_v2.mjs", "auto", "2026-07-28"),
    ],
)


def played(clients: Clients, script: str, era: str, server: list[str]) -> Finished:
    path = str(Path(__file__).with_name(script))
    return clients.run(PACKAGES[script], "node", path, str(clients.installed), era, "test.gated", *server)


@pytest.mark.inv("SRV-4")
@by_each_client
def test_a_refusal_is_read_and_a_workflow_is_played_to_its_end_with_a_person_at_the_gate(
    clients: Clients, script: str, era: str, revision: str
) -> None:
    ended = played(clients, script, era, clients.server())
    assert ended.code == 0, ended.output
    reported = json.loads(ended.out)
    assert reported["revision"] == revision
    assert reported["tools"] == [tool.name for tool in TOOLS]
    refused = reported["refused"]
    assert (refused["isError"], refused["code"]) == (True, "WORKFLOW_NOT_FOUND")
    assert refused["details"]["correctedCall"]["arguments"] == {"workflowId": "test.gated"}
    first, second, last = reported["answers"]
    assert (first["pending"]["stepId"], second["pending"]["stepId"], last["isComplete"]) == ("gate", "after", True)
    assert len(reported["asked"]) == 1
    assert second["answered"]["client"] == script.removesuffix(".mjs").replace("_", "-")


@by_each_client
def test_an_answer_that_breaks_its_published_schema_is_refused(
    clients: Clients, script: str, era: str, revision: str
) -> None:
    """Else the test above would show nothing of our schemas."""
    ended = played(clients, script, era, LYING)
    assert ended.code == 1, (revision, ended.output)
    assert "Structured content does not match" in ended.err
