"""Finding a workflow and starting it, at a real server process."""

import json

import pytest
from tests.support.server import Server

from interlock.kernel.errors import ErrorCode


@pytest.mark.inv("ADV-1", "SRV-4")
def test_a_start_gives_the_first_step_and_one_token_to_advance(server: Server) -> None:
    first = server.start(goal="Show it", workspacePath=str(server.data_dir.parent / "space"))
    assert first["pending"]["stepId"] == "a"
    assert (first["isComplete"], first["nextIntent"]) == (False, "perform_pending_then_continue")
    assert first["nextCall"]["arguments"]["ackToken"] == first.ack
    assert json.dumps(dict(first.structure)).count(first.ack) == 2


@pytest.mark.inv("SRC-5")
def test_an_unknown_workflow_is_not_found_and_the_list_is_named(server: Server) -> None:
    refused = server.start("test.abd")
    assert (refused.code, refused["retry"]["kind"]) == (ErrorCode.WORKFLOW_NOT_FOUND, "not_retryable")
    assert "`list_workflows`" in refused["suggestion"]
    assert "`test.abc`" in refused["suggestion"]


@pytest.mark.inv("SRC-5", "PLAN-4")
def test_a_faulty_workflow_file_is_named_with_the_path_that_fails(server: Server) -> None:
    refused = server.start("test.faulty")
    assert refused.code is ErrorCode.WORKFLOW_INVALID
    for words in ("faulty.json", "steps[0].titel", "`title`"):
        assert words in refused.text
    paths = {fault["path"] for fault in refused["details"]["diagnostics"]}
    assert paths == {"steps[0].titel"}


@pytest.mark.inv("ANS-12")
def test_a_relative_workspace_is_refused_with_a_correct_call_and_the_goal_is_optional(
    server: Server,
) -> None:
    refused = server.start(workspacePath="some/where")
    assert (refused.code, refused["details"]["path"]) == (ErrorCode.VALIDATION_ERROR, "workspacePath")
    call = refused["details"]["correctedCall"]
    assert ("workspacePath" in call["arguments"], call["fill"]) == (False, [])
    assert not server.call(call["tool"], **call["arguments"]).is_error
    assert "goal" not in server.start()["run"]


@pytest.mark.inv("ANS-3")
def test_the_token_works_the_moment_it_was_given(server: Server) -> None:
    for _ in range(5):
        assert server.follow(server.start())["pending"]["stepId"] == "b"


@pytest.mark.inv("ANS-3", "BLK-1")
def test_what_the_first_answer_says_to_send_leads_on(server: Server) -> None:
    """With the notes filled in, to the next step; sent as it stands, to a blocked answer that leads on as well."""
    first = server.start()
    assert first["pending"]["prompt"] == "Do a."
    blocked = server.call(first["nextCall"]["tool"], **first["nextCall"]["arguments"])
    assert (blocked["kind"], blocked["pending"]["stepId"]) == ("blocked", "a")
    assert server.follow(blocked)["pending"]["stepId"] == "b"


@pytest.mark.inv("ANS-12")
def test_a_misspelt_argument_is_answered_with_the_one_that_was_meant(server: Server) -> None:
    refused = server.call("continue_workflow", ackToken=server.start().ack, outputs={"notesMarkdown": "n"})
    assert (refused.code, refused["details"]["didYouMean"]) == (ErrorCode.VALIDATION_ERROR, "output")
    assert "`output`" in refused.text


@pytest.mark.inv("ANS-11")
def test_objects_sent_as_text_and_what_clients_add_are_taken(server: Server) -> None:
    first = server.start(context='{"x": 1}', goal=None, sessionId="", preferences="", wait_for_previous=True)
    output = json.dumps({"notesMarkdown": "Done."})
    second = server.advance(first, None, output=output, context="{}", run="", wait_for_previous=False)
    assert second["pending"]["stepId"] == "b"


@pytest.mark.inv("SRC-4", "ANS-6")
def test_a_list_is_compact_and_a_tag_gives_only_its_own(server: Server) -> None:
    everything = server.call("list_workflows")
    assert len(everything.text.encode()) < 5_000
    assert len(json.dumps(dict(everything.structure)).encode()) < 10_000
    listed = {one["workflowId"] for one in everything["workflows"]}
    assert listed >= {"test.abc", "test.optional", "wr.bug_investigation", "wr.code_review", "wr.coding_task"}
    assert {name for name in listed if not name.startswith("wr.")} == {"test.abc", "test.optional"}
    assert [one["workflowId"] for one in server.call("list_workflows", tag="demo")["workflows"]] == ["test.abc"]
    found = server.call("list_workflows", query="bug investigation")["workflows"]
    assert found[0]["workflowId"] == "wr.bug_investigation"
    assert len(found) < len(everything["workflows"])


@pytest.mark.inv("SRC-3", "SRC-4")
def test_a_file_with_a_bundled_id_does_not_shadow_it_and_is_reported(server: Server) -> None:
    inspected = server.call("inspect_workflow", workflowId="wr.code_review")
    assert (inspected["name"], inspected["sourceKind"]) == ("Code review", "bundled")
    listed = server.call("list_workflows")
    refused = {one["source"]: one["diagnostic"]["code"] for one in listed["refused"]}
    assert refused["shadow.json"] == "reserved_namespace"
    assert {"broken.yaml", "faulty.json"} <= set(refused)
    assert "shadow.json" in listed.text
