"""Looking at a run, and redoing a step on purpose."""

import pytest
from tests.e2e.behaviours.conftest import Maker
from tests.support.flow import IS_FAST, document, step
from tests.support.server import Server, blockers_of, events_of, settled_tree, step_of, tree
from tests.support.words import many_words

from interlock.kernel.budgets import RECAP_BYTES_MAX
from interlock.kernel.errors import ErrorCode
from interlock.kernel.text import TRUNCATION_MARKER
from interlock.service.tools.recap import DONE_SO_FAR


@pytest.mark.inv("ADV-8", "READ-1", "ANS-13")
def test_looking_shows_the_step_and_the_notes_so_far_and_writes_nothing(server: Server) -> None:
    second = server.advance(server.start(), "Did a thoroughly.")
    before = settled_tree(server.data_dir)
    looked = server.rehydrate(second)
    assert looked["pending"] == second["pending"]
    assert "Did a thoroughly." in looked["recap"]
    assert "Did a thoroughly." in looked.text
    assert looked["nextIntent"] == "rehydrate_only"
    assert looked.ack == second.ack
    refused = server.rehydrate(second, output={"notesMarkdown": "n"})
    assert (refused.code, refused["details"]["path"]) == (ErrorCode.VALIDATION_ERROR, "output")
    assert tree(server.data_dir) == before


@pytest.mark.inv("ADV-9", "ADV-10")
def test_redoing_a_step_takes_the_fork_token_and_the_answer_says_that_a_branch_was_made(
    server: Server,
) -> None:
    first = server.start()
    second = server.advance(first, "Did a.")
    looked = server.rehydrate(first)
    assert "ackToken" not in looked.structure
    assert server.follow(looked).ack == second.ack
    forked = server.advance(looked["fork"]["ackToken"], "Did a otherwise.")
    causes = [event["data"]["cause"]["kind"] for event in events_of(server, first) if event["kind"] == "edge_created"]
    assert causes == ["tip_advance", "intentional_fork"]
    assert forked.ack != second.ack
    assert server.advance(second)["pending"]["stepId"] == "c"
    assert "branch" in forked.text


# Branches and long histories, over a server in memory.


@pytest.mark.inv("CTX-2", "ADV-10")
def test_what_was_said_on_one_branch_is_not_seen_on_another(make: Maker) -> None:
    """Neither in a prompt nor where a decision reads it: there it is missing, and asked for."""
    served = make(document(step("a"), step("b", prompt="{{mode}}"), step("c", when=IS_FAST), step("d")))
    first = served.start("test.flow")
    second = served.advance(first, context={"mode": "fast"})
    assert (second["pending"]["prompt"], step_of(served.advance(second))) == ("fast", "c")
    other = served.fork(first)
    assert other["pending"]["prompt"] == "[context key not set: mode]"
    assert blockers_of(served.advance(other)) == [("MISSING_REQUIRED_OUTPUT", "mode")]


@pytest.mark.inv("ANS-6")
def test_a_recap_of_a_long_history_keeps_the_newest_and_marks_the_cut(make: Maker) -> None:
    served = make(document(*(step(f"s{at}") for at in range(13))))
    answer = served.start("test.flow")
    for at in range(12):
        answer = served.advance(answer, f"Notes {at}. " + many_words(110))
    recap = served.rehydrate(answer)["recap"]
    assert len(recap.encode()) <= RECAP_BYTES_MAX
    assert recap.startswith(f"{DONE_SO_FAR}`Step s11`:\n> Notes 11. ")
    assert recap.endswith(TRUNCATION_MARKER)
    assert "Notes 0. " not in recap
