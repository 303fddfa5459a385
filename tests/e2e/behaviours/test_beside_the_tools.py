"""Prompts, resources, completions and subscriptions of a real server process, in both protocol eras."""

import json

import pytest
from mcp import types
from tests.support.server import Server


@pytest.mark.inv("SRV-8")
def test_a_person_starts_by_a_slash_command_and_reads_what_was_done(server: Server) -> None:
    ref = types.PromptReference(type="ref/prompt", name="start")
    completed = server.ask("complete", ref, {"name": "workflowId", "value": "abc"}).completion
    assert completed.values == ["test.abc"]
    shown = server.ask("get_prompt", "start", {"workflowId": "test.abc", "goal": "Beside the tools"})
    call = json.loads(shown.messages[0].content.text.partition("```json\n")[2].partition("\n```")[0])
    first = server.call("start_workflow", **call)
    server.advance(first, "Read by a person.")
    uri = f"interlock://sessions/{first['run']['sessionId']}"
    assert uri in [one.uri for one in server.ask("list_resources").resources]
    record = server.ask("read_resource", uri).contents[0].text
    assert "Beside the tools" in record
    assert "Read by a person." in record
    resumed = server.ask("get_prompt", "resume", {"words": "beside"}).messages[0].content.text
    assert "Beside the tools" in resumed
