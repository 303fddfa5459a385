"""Claude Code and Gemini CLI register the server by their own commands, and report that they connected."""

from tests.clients.installed import Clients

GEMINI = "@google/gemini-cli"


def test_claude_code_connects_to_a_server_that_was_added_by_its_command(clients: Clients) -> None:
    added = clients.claude("mcp", "add", "interlock", "--", *clients.server())
    assert added.code == 0, added.output
    for command in (["list"], ["get", "interlock"]):
        ended = clients.claude("mcp", *command)
        assert (ended.code, "✔ Connected" in ended.out) == (0, True), ended.output


def test_claude_code_tells_a_server_that_does_not_answer_from_one_that_does(clients: Clients) -> None:
    """Else the test above would show nothing."""
    clients.claude("mcp", "add", "interlock", "--", *clients.server(), "--no-such-option")
    assert "✔ Connected" not in clients.claude("mcp", "list").out


def test_gemini_cli_connects_to_a_server_that_was_added_by_its_command(clients: Clients) -> None:
    clients.put_gemini_settings()
    added = clients.run(GEMINI, "gemini", "mcp", "add", "-s", "user", "interlock", *clients.server())
    assert added.code == 0, added.output
    ended = clients.run(GEMINI, "gemini", "mcp", "list")
    assert "✓ interlock" in ended.output, ended.output
    assert "Connected" in ended.output
