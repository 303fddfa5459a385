"""An agent's whole loop: the client asks a model, the model calls our tools, and the client shows it what came back.

The clients differ in what they show: Claude Code and Codex the structure alone, Gemini CLI the text alone. So each of
the two has to stand alone: a model that sees only that comes to the end of a workflow.
"""

import json
from collections.abc import Iterator

import pytest
from tests.clients.installed import Clients
from tests.clients.model import Model, serving

pytestmark = pytest.mark.inv("ANS-1", "ANS-3")

ASKED = "Run the workflow test.plain."


@pytest.fixture
def model() -> Iterator[Model]:
    model = Model(workflow_id="test.plain")
    with serving(model):
        yield model


def assert_played(model: Model) -> None:
    assert len(model.shown) == 3
    first, second, last = model.shown
    assert ("Do a." in first, "Do b." in second) == (True, True)
    assert "complete" in last.lower()


def test_claude_code_plays_a_workflow_from_the_structure_alone(clients: Clients, model: Model) -> None:
    given = ["--mcp-config", str(clients.put_servers()), "--strict-mcp-config", "--allowedTools", "mcp__interlock"]
    ended = clients.claude("-p", ASKED, *given, ANTHROPIC_BASE_URL=model.address, ANTHROPIC_API_KEY="none")
    assert (ended.code, ended.out.strip()) == (0, "Done."), ended.output
    assert_played(model)
    assert all(json.loads(shown) for shown in model.shown)


def test_codex_plays_a_workflow_from_the_structure_alone(clients: Clients, model: Model) -> None:
    codex = "@openai/codex"
    clients.wanted(codex)
    added = clients.run(codex, "codex", "mcp", "add", "interlock", "--", *clients.server())
    assert added.code == 0, added.output
    settings = {
        "analytics.enabled": "false",
        "model_provider": '"loopback"',
        "model_providers.loopback": f'{{ name = "Loopback", base_url = "{model.address}/v1", wire_api = "responses" }}',
        # Else it may ask the model before the server has answered, and knows no tool of ours.
        "mcp_servers.interlock.required": "true",
    }
    chosen = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
    given = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", *chosen]
    ended = clients.run(codex, "codex", "exec", *given, ASKED)
    assert ended.code == 0, ended.output
    assert_played(model)
    assert all('"stateToken":' in shown for shown in model.shown)


def test_gemini_cli_plays_a_workflow_from_the_text_alone(clients: Clients, model: Model) -> None:
    clients.put_gemini_settings(mcpServers=clients.servers())
    given = {"GOOGLE_GEMINI_BASE_URL": model.address, "GEMINI_API_KEY": "none"}
    ended = clients.run("@google/gemini-cli", "gemini", "--yolo", "-m", "gemini-2.5-pro", "-p", ASKED, **given)
    assert ended.code == 0, ended.output
    assert_played(model)
    assert all('"stateToken":' not in shown for shown in model.shown)
