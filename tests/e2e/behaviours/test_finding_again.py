"""Behaviours of checkpoints and of finding a run again, through a real client: 48 to 53."""

from typing import Any

import pytest
from tests.support.server import Server, step_of

from interlock.kernel.budgets import CANDIDATES_MAX
from interlock.kernel.errors import ErrorCode
from interlock.testing.harness import ToolResult


def keep(server: Server, answer: ToolResult, notes: str = "Half done.") -> ToolResult:
    return server.call("checkpoint_workflow", ackToken=answer.ack, output={"notesMarkdown": notes})


def find(server: Server, **arguments: Any) -> list[dict[str, Any]]:
    return list(server.call("resume_session", **arguments)["candidates"])


@pytest.mark.inv("CHK-2", "CHK-1")
def test_a_checkpoint_made_twice_is_the_same_bookmark_and_the_run_goes_on_with_its_old_token(server: Server) -> None:
    """48."""
    second = server.advance(server.start())
    kept = keep(server, second)
    assert keep(server, second) == kept
    assert step_of(server.advance(second)) == "c"


@pytest.mark.inv("CHK-1", "TOK-4")
def test_a_bookmark_shows_the_step_and_advances_nothing(server: Server) -> None:
    """49: with a lone `stateToken`, output is refused in words."""
    second = server.advance(server.start())
    kept = keep(server, second)
    token = kept["stateToken"]
    assert server.call("continue_workflow", ackToken=token).code is ErrorCode.TOKEN_SCOPE_MISMATCH
    beside = server.call("continue_workflow", stateToken=token, output={"notesMarkdown": "Done."})
    assert beside.code is ErrorCode.VALIDATION_ERROR
    assert step_of(server.rehydrate(token)) == "b"


@pytest.mark.inv("RES-1")
def test_the_next_call_of_a_candidate_works_as_it_stands(server: Server) -> None:
    """50."""
    server.advance(server.start(goal="Mend the quagga"))
    (found,) = find(server, query="quagga")
    shown = server.call(found["nextCall"]["tool"], **found["nextCall"]["arguments"])
    assert step_of(shown) == "b"
    assert server.follow(shown)["run"]["label"] == found["run"]["label"]


@pytest.mark.inv("RES-2")
def test_an_exact_session_is_the_only_candidate_and_one_that_is_not_there_gives_none(server: Server) -> None:
    """51."""
    first, _ = server.start(), server.start()
    session = first["run"]["sessionId"]
    assert [one["run"]["sessionId"] for one in find(server, sessionId=session)] == [session]
    answer = server.call("resume_session", sessionId="sess_" + "0" * 26)
    assert (answer["candidates"], "There is no session" in answer["reason"]) == ([], True)


@pytest.mark.inv("RES-1")
def test_a_run_in_progress_comes_before_one_that_is_complete_and_at_most_five_come(server: Server) -> None:
    """52."""
    open_run = server.start(goal="numbat first")
    done = server.advance(server.advance(server.advance(server.start(goal="numbat second"))))
    assert done["isComplete"]
    found = find(server, query="numbat")
    assert [one["status"] for one in found] == ["in_progress", "complete"]
    assert found[0]["run"]["label"] == open_run["run"]["label"]
    for number in range(CANDIDATES_MAX):
        server.start(goal=f"numbat {number}")
    assert len(find(server, query="numbat")) == CANDIDATES_MAX
    assert find(server, query="numbat") == find(server, query="numbat")


@pytest.mark.inv("RES-1")
def test_a_word_of_the_notes_finds_the_run_and_says_why(server: Server) -> None:
    """53."""
    first = server.start()
    server.advance(first, "The okapi branch fails on the second request.")
    (found,) = find(server, query="okapi")
    assert found["run"]["label"] == first["run"]["label"]
    assert found["whyMatched"] == ["matched_notes"]
    assert "okapi branch fails" in found["snippet"]
