"""Slash commands: what a person who starts or resumes meets, in both protocol eras."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from mcp import MCPError, types
from tests.support.server import Served, serving

from interlock.kernel.budgets import GOAL_BYTES_MAX, LIST_ENTRIES_MAX, QUERY_BYTES_MAX
from interlock.store.ports.keys import KeyRing
from interlock.testing.harness import ERAS, Era, FixedKeyRing, Harness, linear_workflow

REVIEW = linear_workflow("test.code_review", "read", "judge", description="Reviews a change.")
INPUTS = linear_workflow(
    "test.ticket", "a", inputs=[{"key": "ticketId", "type": "string", "required": True, "description": "Which ticket."}]
)
FAULTY = linear_workflow("test.faulty", {"id": "A", "title": "A", "prompt": "p"})


@pytest.fixture
def harness() -> Harness:
    return Harness.in_memory(REVIEW, INPUTS, FAULTY)


@pytest.fixture(params=ERAS)
def client(request: pytest.FixtureRequest, harness: Harness) -> Iterator[Served]:
    era: Era = request.param
    with serving(harness, era) as connected:
        yield connected


def shown(client: Served, name: str, **arguments: str) -> str:
    result = client.ask("get_prompt", name, arguments)
    assert [message.role for message in result.messages] == ["user"]
    content = result.messages[0].content
    assert isinstance(content, types.TextContent)
    return content.text


def call_in(text: str) -> dict[str, Any]:
    """Return the arguments of the first call that a message holds."""
    found = re.search(r"```json\n(.*)\n```", text)
    assert found is not None
    return json.loads(found[1])


def test_the_prompts_ask_first_for_an_id_and_last_for_words_and_require_nothing(client: Served) -> None:
    prompts: list[types.Prompt] = client.ask("list_prompts").prompts
    outcome = {prompt.name: [one.name for one in prompt.arguments or []] for prompt in prompts}
    assert outcome == {"start": ["workflowId", "goal"], "resume": ["words"]}
    assert not any(one.required for prompt in prompts for one in prompt.arguments or [])
    assert all(prompt.title and prompt.description for prompt in prompts)


def test_the_call_that_start_shows_starts_the_workflow_as_it_stands(client: Served) -> None:
    goal = 'Review the "login" change'
    text = shown(client, "start", workflowId="test.code_review", goal=goal)
    assert "`start_workflow`" in text
    assert call_in(text) == {"workflowId": "test.code_review", "goal": goal}
    started = client.call("start_workflow", **call_in(text))
    assert (started["run"]["workflowId"], started["run"]["goal"]) == ("test.code_review", goal)


@pytest.mark.inv("SRV-8")
@pytest.mark.parametrize("nothing", [{}, {"goal": ""}, {"goal": "  "}])
def test_start_without_a_goal_is_not_refused_and_says_that_one_may_be_added(
    client: Served, nothing: dict[str, str]
) -> None:
    text = shown(client, "start", workflowId=" test.code_review ", **nothing)
    assert call_in(text) == {"workflowId": "test.code_review"}
    assert "No goal was given" in text


def test_a_goal_of_one_word_is_said_to_be_perhaps_cut_short(client: Served) -> None:
    """Clients that split at spaces pass on the first word alone."""
    hint = "only one word"
    assert hint in shown(client, "start", workflowId="test.code_review", goal="Review")
    assert hint not in shown(client, "start", workflowId="test.code_review", goal="Review it")


@pytest.mark.inv("SRV-8")
@pytest.mark.parametrize("nothing", [{}, {"workflowId": ""}, {"goal": "Anything"}])
def test_start_without_an_id_shows_what_can_be_started_and_what_cannot(client: Served, nothing: dict[str, str]) -> None:
    text = shown(client, "start", **nothing)
    assert "`test.code_review`" in text
    assert "Files with faults" in text
    assert "test.faulty.json" in text


def test_start_without_an_id_keeps_the_goal(client: Served) -> None:
    text = shown(client, "start", goal="Mend the `login`")
    assert call_in(text) == {"goal": "Mend the `login`"}
    assert "only one word" in shown(client, "start", goal="Mend")


@pytest.mark.inv("SRV-8")
@pytest.mark.parametrize(
    ("name", "argument", "limit"), [("start", "goal", GOAL_BYTES_MAX), ("resume", "words", QUERY_BYTES_MAX)]
)
def test_a_text_is_refused_above_the_limit_of_the_call_that_would_hold_it(
    client: Served, name: str, argument: str, limit: int
) -> None:
    given = {"workflowId": "test.code_review"} if name == "start" else {}
    assert "ä" * (limit // 2) in shown(client, name, **given, **{argument: "ä" * (limit // 2)})
    for more in ({}, given):
        with pytest.raises(MCPError, match=f"the limit is {limit}") as caught:
            client.ask("get_prompt", name, {**more, argument: "ä" * (limit // 2 + 1)})
        assert caught.value.error.code == types.INVALID_PARAMS


def test_what_start_shows_of_many_workflows_is_bounded() -> None:
    harness = Harness.in_memory(*(linear_workflow(f"test.w{number}", "a") for number in range(LIST_ENTRIES_MAX + 5)))
    with serving(harness) as client:
        text = shown(client, "start")
    assert text.count("\n- `test.w") == LIST_ENTRIES_MAX
    assert "5 more" in text


def test_start_names_the_context_that_a_workflow_requires(client: Served) -> None:
    assert "`context.ticketId` (string, required)" in shown(client, "start", workflowId="test.ticket")


@pytest.mark.inv("SRV-8")
@pytest.mark.parametrize(
    ("sent", "words"),
    [("code_reveiw", "Did you mean `test.code_review`"), ("test.faulty", "cannot run"), ("x" * 10_000, "no workflow")],
)
def test_an_id_that_cannot_be_started_is_invalid_params_and_says_why(client: Served, sent: str, words: str) -> None:
    with pytest.raises(MCPError) as caught:
        client.ask("get_prompt", "start", {"workflowId": sent})
    assert caught.value.error.code == types.INVALID_PARAMS
    assert words in caught.value.error.message
    assert len(caught.value.error.message) < 2_000


@pytest.mark.inv("SRV-8")
def test_an_unknown_prompt_is_invalid_params_and_names_those_that_there_are(client: Served) -> None:
    with pytest.raises(MCPError) as caught:
        client.ask("get_prompt", "begin", {})
    assert caught.value.error.code == types.INVALID_PARAMS
    assert "`start` or `resume`" in caught.value.error.message


def test_resume_shows_the_runs_that_the_words_find_with_a_call_that_works(client: Served, harness: Harness) -> None:
    harness.start("test.code_review", goal="Mend the login")
    harness.start("test.code_review", goal="Another matter")
    text = shown(client, "resume", words="login")
    assert '`resume_session` with `{"query": "login"}`' in text
    assert "Mend the login" in text
    assert "Another matter" not in text
    looked = client.call("continue_workflow", **call_in(text))
    assert looked["run"]["goal"] == "Mend the login"


def test_resume_without_words_shows_the_latest_and_without_runs_says_so(client: Served, harness: Harness) -> None:
    assert "No run is stored here" in shown(client, "resume")
    harness.start("test.code_review", goal="Mend the login")
    assert "Mend the login" in shown(client, "resume", words=" ")


def test_resume_is_shown_even_where_no_key_ring_can_be_read() -> None:
    class Lost(FixedKeyRing):
        def keys(self, *, fresh: bool = False) -> KeyRing | None:  # noqa: ARG002 — it is always gone
            return None

    harness = Harness.in_memory(REVIEW)
    harness.start("test.code_review")
    lost = Harness.over(harness.store, REVIEW, keys=Lost())
    with serving(lost) as client:
        text = shown(client, "resume", words="login")
    assert "key ring" in text
    assert "`resume_session`" in text
