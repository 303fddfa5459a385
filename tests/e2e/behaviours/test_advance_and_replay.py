"""Going on, saying it twice, and whose token it was, at real server processes."""

from pathlib import Path

import pytest
from tests.support.forked_server import ForkedServer
from tests.support.server import Server, checked, count_of, settled_tree, tree

from interlock.kernel.errors import ErrorCode
from interlock.testing.harness import Era


@pytest.mark.inv("ADV-3")
def test_an_advance_gives_the_next_step_and_another_token(server: Server) -> None:
    first = server.start()
    second = server.advance(first, "Did a.")
    assert second["pending"]["stepId"] == "b"
    assert {second.ack, second.state}.isdisjoint({first.ack, first.state})


@pytest.mark.inv("ADV-5")
def test_the_identical_call_gets_the_identical_answer_and_writes_nothing(server: Server) -> None:
    first = server.start(goal="G")
    second = server.advance(first, "Did a.")
    before = settled_tree(server.data_dir)
    for _ in range(20):
        assert server.advance(first, "Did a.") == second
    assert tree(server.data_dir) == before


@pytest.mark.inv("ADV-7")
def test_a_repeat_with_other_notes_keeps_the_first_and_says_so(server: Server) -> None:
    first = server.start()
    second = server.advance(first, "The first notes.")
    again = server.advance(first, "Other notes.")
    assert again.warnings == ["REPLAY_PAYLOAD_IGNORED"]
    assert (again.ack, again.state) == (second.ack, second.state)
    assert "The first notes." in server.rehydrate(second)["recap"]
    assert "Other notes." not in server.rehydrate(second)["recap"]


@pytest.mark.inv("ADV-4")
def test_the_last_step_completes_the_run_and_its_repeat_says_so_again(server: Server) -> None:
    third = server.follow(server.follow(server.start()))
    last = server.follow(third)
    assert (last["isComplete"], last["pending"], last["nextCall"], last["nextIntent"]) == (True, None, None, "complete")
    assert "complete" in last.text.partition("\n")[0]
    assert server.follow(third) == last
    looked = server.rehydrate(last)
    assert (looked["isComplete"], looked["pending"], looked["nextCall"]) == (True, None, None)


@pytest.mark.inv("ADV-6", "LOCK-5")
def test_two_identical_advances_at_once_are_one_advance_and_two_equal_answers(server: Server) -> None:
    first = server.start()
    arguments = {"ackToken": first.ack, "output": {"notesMarkdown": "Done."}}
    pending = [server.soon("continue_workflow", arguments) for _ in range(2)]
    one, two = (checked("continue_workflow", future.result(60)) for future in pending)
    assert one == two
    assert one["pending"]["stepId"] == "b"
    assert count_of(server, first) == 1


@pytest.mark.inv("TOK-7")
def test_a_token_works_after_a_restart(tmp_path: Path, space: Path, era: Era) -> None:
    with ForkedServer(tmp_path / "data", space, era) as server:
        second = server.advance(server.start(), "Did a.")
    with ForkedServer(tmp_path / "data", space, era) as server:
        third = server.advance(second)
        assert third["pending"]["stepId"] == "c"
        assert "Did a." in server.rehydrate(third)["recap"]


@pytest.mark.inv("TOK-7", "ADV-6")
def test_two_servers_on_one_directory_take_each_others_tokens(tmp_path: Path, space: Path) -> None:
    """They speak different eras, too; and one ack at both at once is one advance."""
    with ForkedServer(tmp_path / "data", space, "auto") as one, ForkedServer(tmp_path / "data", space, "legacy") as two:
        first = one.start()
        second = two.advance(first)
        assert one.advance(first) == second
        third = one.advance(second)
        assert two.rehydrate(second).warnings == ["STEP_ALREADY_DONE"]
        pending = [
            server.soon("continue_workflow", {"ackToken": third.ack, "output": {"notesMarkdown": "Done."}})
            for server in (one, two, one, two)
        ]
        answers = [checked("continue_workflow", future.result(60)) for future in pending]
        assert all(answer == answers[0] for answer in answers)
        assert answers[0]["isComplete"]
        assert count_of(one, first) == 3


@pytest.mark.inv("TOK-3", "TOK-4", "ANS-2")
def test_a_token_that_is_none_is_reported_for_what_it_is(server: Server) -> None:
    first = server.start()
    changed = first.ack[:20] + ("A" if first.ack[20] != "A" else "B") + first.ack[21:]
    refused = server.advance(changed)
    assert refused.code is ErrorCode.TOKEN_BAD_SIGNATURE
    assert "this data directory did not issue it" in refused["message"]
    assert server.advance("hello").code is ErrorCode.TOKEN_INVALID_FORMAT
    assert server.rehydrate("hello").code is ErrorCode.TOKEN_INVALID_FORMAT
    assert server.advance("ack.v9.x.y").code is ErrorCode.TOKEN_UNSUPPORTED_VERSION
    assert server.advance(first.state).code is ErrorCode.TOKEN_SCOPE_MISMATCH
    assert server.rehydrate(first.ack).code is ErrorCode.TOKEN_SCOPE_MISMATCH
    assert count_of(server, first) == 0


@pytest.mark.inv("ANS-9")
def test_a_token_full_of_brackets_is_no_fault_of_ours(server: Server) -> None:
    """The session is read out of a token before it is verified, to choose a queue; nothing may go wrong there."""
    import base64  # noqa: PLC0415 — this one token

    payload = base64.urlsafe_b64encode(b"[" * 2_900).rstrip(b"=").decode()
    assert server.advance(f"ack.v1.{payload}.AAAA").code is ErrorCode.TOKEN_BAD_SIGNATURE


@pytest.mark.inv("ANS-2", "ANS-4", "TOK-6")
def test_a_token_moves_only_its_own_run_and_the_answer_names_it(server: Server) -> None:
    """A forgetful agent keeps only the last answer of each of two runs, and alternates."""
    last = {
        goal: server.start(workflow, goal=goal) for goal, workflow in (("Ship", "test.abc"), ("Sink", "test.optional"))
    }
    labels = {goal: answer["run"]["label"] for goal, answer in last.items()}
    refused = server.advance(last["Ship"], stateToken=last["Sink"].state)
    assert refused.code is ErrorCode.TOKEN_SCOPE_MISMATCH
    for words in (*labels.values(), "test.abc", "test.optional", "Ship", "Sink"):
        assert words in refused["message"]
    assert server.advance(last["Ship"], run=labels["Sink"]).code is ErrorCode.TOKEN_SCOPE_MISMATCH
    for step in ("b", "c", None):
        for goal in ("Ship", "Sink"):
            last[goal] = server.follow(last[goal])
            assert last[goal]["run"]["label"] == labels[goal]
            assert (last[goal]["pending"] or {"stepId": None})["stepId"] == step
