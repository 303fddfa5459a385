"""The MCP Inspector: its strict lint of the tools' schemas, and a person who answers at a gate, in both eras."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.clients.installed import Clients, Finished

from interlock.server.tools import TOOLS

PACKAGE = "@modelcontextprotocol/inspector"
ERAS = ["legacy", "modern"]


class Conversation:
    """One connection of `mcpdo`, which a process of its own keeps open between commands."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients

    def _do(self, *arguments: str) -> Finished:
        ended = self._clients.run(PACKAGE, "mcpdo", "--format", "json", *arguments)
        assert ended.code == 0, ended.output
        return ended

    def connect(self, era: str) -> None:
        self._do("connect", "interlock", "--config", str(self._clients.put_servers()), "--era", era)

    def call(self, tool: str, **given: Any) -> dict[str, Any]:
        pairs = [f"{name}:={json.dumps(value)}" for name, value in given.items()]
        return json.loads(self._do("@interlock", "tools/call", tool, *pairs).out)

    def advance(self, token: str, decision: str) -> dict[str, Any]:
        """Ack a step at whose gate a person is asked, and decide in the person's place."""
        asked = self.call("continue_workflow", ackToken=token, output={"notesMarkdown": "Done."})
        question = asked["elicitationPending"]["elicitationId"]
        answered = self._do("elicitation/respond", question, f"decision:={decision}")
        return json.loads(answered.out)["structuredContent"]

    def end(self) -> None:
        self._do("daemon", "stop")


@pytest.fixture
def conversation(clients: Clients) -> Iterator[Conversation]:
    clients.wanted(PACKAGE)
    conversation = Conversation(clients)
    try:
        yield conversation
    finally:
        conversation.end()


@pytest.mark.inv("SRV-2")
@pytest.mark.parametrize("era", ERAS)
def test_the_strict_lint_finds_no_schema_that_some_client_cannot_read(clients: Clients, era: str) -> None:
    wanted = ["--method", "tools/list", "--strict", "--format", "json", "--protocol-era", era]
    ended = clients.run(PACKAGE, "mcp-inspector", "--cli", *clients.server(), *wanted)
    assert ended.code == 0, ended.output
    assert "Warning" not in ended.err, ended.err
    assert [tool["name"] for tool in json.loads(ended.out)["result"]["tools"]] == [tool.name for tool in TOOLS]


@pytest.mark.parametrize("era", ERAS)
def test_a_person_is_asked_at_a_gate_and_only_a_yes_opens_it(conversation: Conversation, era: str) -> None:
    conversation.connect(era)
    first = conversation.call("start_workflow", workflowId="test.gated")["structuredContent"]
    refused = conversation.advance(first["ackToken"], "decline")
    assert (refused["kind"], refused["pending"]["stepId"]) == ("blocked", "gate")
    passed = conversation.advance(refused["nextCall"]["arguments"]["ackToken"], "confirm")
    assert (passed["kind"], passed["pending"]["stepId"]) == ("ok", "after")
