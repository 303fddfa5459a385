"""Looking at a run, and redoing a step on purpose, at a real server process."""

import pytest
from tests.support_server import Server, events_of, tree

from interlock.kernel.errors import ErrorCode


@pytest.mark.inv("ADV-8", "READ-1", "ANS-13")
def test_looking_shows_the_step_and_the_notes_so_far_and_writes_nothing(server: Server) -> None:
    second = server.advance(server.start(), "Did a thoroughly.")
    before = tree(server.data_dir)
    looked = server.look(second)
    assert looked["pending"] == second["pending"]
    assert "Did a thoroughly." in looked["recap"]
    assert "Did a thoroughly." in looked.text
    assert looked["nextIntent"] == "rehydrate_only"
    assert looked.ack == second.ack
    refused = server.look(second, output={"notesMarkdown": "n"})
    assert (refused.code, refused["details"]["path"]) == (ErrorCode.VALIDATION_ERROR, "output")
    assert tree(server.data_dir) == before


@pytest.mark.inv("ADV-9", "ADV-10")
def test_redoing_a_step_takes_the_fork_token_and_the_answer_says_that_a_branch_was_made(
    server: Server,
) -> None:
    first = server.start()
    second = server.advance(first, "Did a.")
    looked = server.look(first)
    assert "ackToken" not in looked.structure
    assert server.follow(looked).ack == second.ack
    forked = server.advance(looked["fork"]["ackToken"], "Did a otherwise.")
    causes = [event["data"]["cause"]["kind"] for event in events_of(server, first) if event["kind"] == "edge_created"]
    assert causes == ["tip_advance", "intentional_fork"]
    assert forked.ack != second.ack
    assert server.advance(second)["pending"]["stepId"] == "c"
    assert "branch" in forked.text
