"""The page in a chat: declared to hosts that show pages only, and an answer from it is a claim (CHAT-1, CHAT-2)."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from mcp import MCPError, types
from tests.support.server import SHOWS_PAGES, Declared, Served, checked, serving

from interlock.engine.gates import AppAnswers, GateClaims
from interlock.kernel.budgets import APPROVAL_NOTE_BYTES_MAX
from interlock.record.world import EventReceived
from interlock.server.apps.extension import EXTENSION, PAGE_LINK
from interlock.testing.harness import ERAS, Era, Harness, ToolResult, linear_workflow

PAGE_BYTES_MAX = 60_000


def asking(assurance: str = "claimed") -> dict[str, object]:
    ask = {"id": "agree", "type": "approve", "title": "Agree", "question": "Do it?", "show": ["notes.a"]}
    return linear_workflow("team.ship", "a", {**ask, "assurance": assurance}, "b")


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> Era:
    return request.param


@pytest.fixture
def harness() -> Harness:
    return Harness.in_memory(asking())


@pytest.fixture
def host(harness: Harness, era: Era) -> Iterator[Served]:
    with serving(harness, era, SHOWS_PAGES) as connected:
        yield connected


def waiting(served: Served | Harness) -> str:
    began = served.start("team.ship")
    state: str = served.advance(began, "Plan: do it.")["stateToken"]
    return state


def tools_of(served: Served) -> dict[str, types.Tool]:
    return {tool.name: tool for tool in served.ask("list_tools").tools}


def answers_in(harness: Harness, answer: ToolResult) -> list[EventReceived]:
    events = harness.events(harness.session_of(answer))
    return [one.data for one in events if isinstance(one.data, EventReceived)]


@pytest.mark.inv("CHAT-1")
def test_a_host_that_shows_pages_receives_the_page_and_its_tools(host: Served) -> None:
    tools = tools_of(host)
    drawn = {name for name, tool in tools.items() if (tool.meta or {}).get("ui/resourceUri") == PAGE_LINK}
    assert drawn == {"start_workflow", "continue_workflow"}
    assert all((tools[name].meta or {})["ui"]["resourceUri"] == PAGE_LINK for name in drawn)
    for name in ("show_run", "answer_question"):
        assert (tools[name].meta or {})["ui"] == {"visibility": ["app"]}
    assert PAGE_LINK in [str(one.uri) for one in host.ask("list_resources").resources]
    (page,) = host.ask("read_resource", PAGE_LINK).contents
    assert page.mime_type == "text/html;profile=mcp-app"
    assert len(page.text.encode()) < PAGE_BYTES_MAX
    assert "http" not in page.text
    assert page.meta["ui"]["csp"] == {}


@pytest.mark.inv("CHAT-1")
@pytest.mark.parametrize("declared", [{}, {EXTENSION: {"mimeTypes": ["text/x-other"]}}, {"interlock/other": {}}])
def test_other_clients_receive_nothing_of_the_page(harness: Harness, era: Era, declared: Declared) -> None:
    with serving(harness, era, declared) as client:
        tools = tools_of(client)
        assert len(tools) == 6
        assert not any({"ui", "ui/resourceUri"} & set(tool.meta or {}) for tool in tools.values())
        assert PAGE_LINK not in [str(one.uri) for one in client.ask("list_resources").resources]
        state = waiting(client)
        with pytest.raises(MCPError, match="Unknown tool"):
            client.ask("call_tool", "show_run", {"stateToken": state})


@pytest.mark.inv("CHAT-2")
def test_an_answer_from_the_page_is_recorded_as_claimed_and_the_run_continues(host: Served, harness: Harness) -> None:
    began = host.start("team.ship")
    state = host.advance(began, "Plan: do it.")["stateToken"]
    page = called(host, "show_run", stateToken=state)
    question = page["question"]
    assert (question["question"], question["choices"]) == ("Do it?", ["approve", "reject"])
    assert question["shown"] == [{"name": "notes.a", "text": "Plan: do it."}]
    assert "how" not in question
    assert page["picture"].startswith("<svg ")
    wrong = called(host, "answer_question", stateToken=state, mark="0123456789ab", choice="approve")
    assert "is not what was shown" in wrong["message"]
    done = called(host, "answer_question", stateToken=state, mark=question["mark"], choice="approve", note="Go.")
    assert "question" not in done.structure
    assert "the run continues" in done["notice"]
    (answer,) = answers_in(harness, began)
    assert (answer.via, answer.assurance, answer.fields["note"]) == ("app", "claimed", "Go.")
    again = called(host, "answer_question", stateToken=state, mark=question["mark"], choice="reject")
    assert "does not wait for an approval" in again["message"]


def called(served: Served, tool: str, **arguments: Any) -> ToolResult:
    return checked(tool, served.soon(tool, arguments).result(300))


@pytest.mark.inv("CHAT-2")
@pytest.mark.parametrize(
    ("claims", "apps", "assurance", "how"),
    [
        ("when_client_cannot_ask", "as_claims", "claimed", None),
        ("always", "as_claims", "claimed", None),
        ("never", "as_claims", "claimed", "gates.apps"),
        ("never", "always", "claimed", None),
        ("always", "never", "claimed", "gates.apps"),
        ("always", "always", "observed", "demands an observed answer"),
    ],
)
def test_an_answer_from_the_page_counts_only_where_the_configuration_and_the_step_accept_a_claim(
    claims: GateClaims, apps: AppAnswers, assurance: str, how: str | None
) -> None:
    harness = Harness.in_memory(asking(assurance))
    harness = replace(harness, ports=replace(harness.ports, gates_claims=claims, gates_apps=apps))
    with serving(harness, "legacy", SHOWS_PAGES) as host:
        state = waiting(host)
        question = called(host, "show_run", stateToken=state)["question"]
        shown = question.get("how", "")
        assert bool(shown) == (how is not None)
        assert (how or "") in shown
        given = called(host, "answer_question", stateToken=state, mark=question["mark"], choice="approve")
        assert given.is_error == (how is not None)
        if how is not None:
            assert "interlock approve" in given["suggestion"]
            assert "Nothing was recorded" in given["message"]
            assert "question" in called(host, "show_run", stateToken=state).structure


@pytest.mark.inv("CHAT-2")
@pytest.mark.parametrize("note", ["x" * (APPROVAL_NOTE_BYTES_MAX + 1), ""])
def test_a_rejection_from_the_page_needs_what_every_rejection_needs(note: str) -> None:
    ask = {"id": "agree", "type": "approve", "title": "Agree", "question": "Do it?", "assurance": "claimed"}
    harness = Harness.in_memory(linear_workflow("team.ship", "a", {**ask, "note": "required"}))
    state = waiting(harness)
    question = harness.call("show_run", {"stateToken": state})["question"]
    assert question["needsNote"] is True
    sent = {"stateToken": state, "mark": question["mark"], "choice": "reject", "note": note}
    refused = harness.call("answer_question", sent)
    assert refused.is_error
    taken = harness.call("answer_question", {**sent, "note": "Not yet."})
    assert "the run still waits" in taken["notice"]
