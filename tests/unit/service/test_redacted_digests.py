"""A redacted copy holds no digest of text with the value, and no id that is derived from such a digest."""

import json
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.approvals import asking, given
from tests.support.bundles import exported, restoring
from tests.support.checks import CHECK, checking, run_now, shell
from tests.support.flow import declared, document, step
from tests.support.modes import events_of, with_artifacts
from tests.support.outside import a_source, with_sources
from tests.support.proofs import begun, proof, provable, proving, witnessed
from tests.support.verify import unsound

from interlock.engine.judge.proof import argv_digest
from interlock.kernel.canonical import digest_of, digest_of_bytes
from interlock.kernel.errors import Refusal
from interlock.kernel.ids import ack_attempt, checkpoint_attempt, derived_id
from interlock.record.events import EventReceivedEvent
from interlock.service.outside.signatures import SigningKey
from interlock.service.transfer.redact import Redacted, redact_session
from interlock.store.ports.workspace import NO_TREE, GitAnchors, WorkTree
from interlock.testing.harness import Harness, ToolResult, linear_workflow
from interlock.views.resume import short_branch
from interlock.views.summary import path_digest

SECRET = "hunter2x"
LONG = f"{SECRET} {' '.join(f'word{number}' for number in range(900))}"


def no_tree(_: Path) -> WorkTree:
    """Return what is known of a directory in no repository."""
    return NO_TREE


def copy_of(harness: Harness, start: ToolResult) -> tuple[Redacted, str]:
    """Return the redacted copy of a session, and all of it as text."""
    found = redact_session(restoring(harness), harness.session_of(start), SECRET)
    assert isinstance(found, Redacted), found
    text = exported(harness, found.restored.session).data.decode()
    assert SECRET not in text
    return found, text


def digest_of_text(text: str) -> str:
    return digest_of_bytes(text.encode())


def fields_of(harness: Harness, start: ToolResult) -> dict[str, object]:
    """Return the fields of the last event from outside."""
    event = events_of(harness, start, "event_received")[-1]
    assert isinstance(event, EventReceivedEvent)
    return dict(event.data.fields)


@pytest.mark.inv("EVD-13", "VERIFY-1")
def test_the_copy_of_a_run_that_was_proven_by_a_command_with_the_value_verifies_without_a_digest_of_it() -> None:
    harness = provable(proof())
    start = begun(harness, command=f"echo {SECRET}")
    fix = harness.advance(start, "The plan.")
    witnessed(harness, start, "echo", SECRET)
    harness.advance(harness.advance(fix, "It says so."), "Shipped.")
    found, text = copy_of(harness, start)
    (way,) = found.restored.ways_on
    assert "notProven" not in harness.call(way.next_call.tool, dict(way.next_call.arguments))["restsOn"]
    assert argv_digest(["echo", SECRET]) not in text
    assert digest_of_text("3 passed") in text
    assert unsound(harness.store) == []


@pytest.mark.inv("EVD-13")
def test_a_receipt_of_another_command_keeps_its_digests_unless_the_command_line_was_cut() -> None:
    harness = provable(proof())
    start = begun(harness)
    fix = harness.advance(start, f"The plan with {SECRET}.")
    long = ("echo", "it's  ", *["word"] * 2000)
    witnessed(harness, start, *long)
    witnessed(harness, start)
    harness.advance(fix, "Done.")
    _, text = copy_of(harness, start)
    assert argv_digest(["make", "test"]) in text
    assert argv_digest(long) not in text
    assert unsound(harness.store) == []


@pytest.mark.inv("EVD-13")
@pytest.mark.parametrize("script", [f"echo {SECRET}", "cat secret"])
def test_digests_of_the_output_and_of_the_definition_of_a_check_are_replaced(tmp_path: Path, script: str) -> None:
    flow = document(
        step("a"),
        {**CHECK, "set": [{"key": "sum", "from": "event.digest"}]},
        step("b"),
        inputs=[declared("sum", required=False)],
    )
    project = tmp_path / "project"
    project.mkdir()
    (project / "secret").write_text(f"{SECRET}\n")
    harness = checking(tmp_path, flow, check=shell(project, script))
    start = harness.start("test.flow")
    waiting = harness.advance(start, "Done.")
    run_now(harness, start)
    harness.advance(waiting, None)
    fields = fields_of(harness, start)
    assert fields["output"] == SECRET
    definition = harness.store.load(harness.session_of(start))
    assert definition is not None
    (pinned,) = next(iter(definition.runs.values())).checks
    _, text = copy_of(harness, start)
    assert digest_of_text(f"{SECRET}\n").removeprefix("sha256:") not in text
    assert (pinned.definition in text) == (SECRET not in script)
    assert unsound(harness.store) == []


@pytest.mark.inv("EVD-13")
@pytest.mark.parametrize("notes", [f"Use {SECRET}.", "Use a key."])
def test_the_digest_of_what_a_person_was_shown_is_kept_only_if_the_value_was_not_shown(notes: str) -> None:
    harness = Harness.in_memory(asking(show=["notes.a"]))
    start = harness.start("test.flow", goal=f"Ship {SECRET}")
    waiting = harness.advance(start, notes)
    given(harness, start)
    harness.advance(waiting, None)
    shown = str(fields_of(harness, start)["shown"])
    _, text = copy_of(harness, start)
    assert (shown in text) == (SECRET not in notes)
    assert unsound(harness.store) == []


@pytest.mark.inv("EVD-13")
def test_a_signed_answer_to_a_question_that_showed_the_value_is_refused() -> None:
    source, private = a_source("wr.approval")
    harness = with_sources(Harness.in_memory(asking(show=["notes.a"], assurance="signed")), source)
    start = harness.start("test.flow")
    harness.advance(start, f"Use {SECRET}.")
    given(harness, start, key=SigningKey(source="ci", private_key=private))
    refused = redact_session(restoring(harness), harness.session_of(start), SECRET)
    assert isinstance(refused, Refusal)
    assert "its source signed contains the value, or a digest of it" in refused.message


@pytest.mark.inv("EVD-13")
def test_ids_and_request_digests_of_artifacts_and_checkpoints_with_the_value_are_replaced() -> None:
    harness = Harness.in_memory(linear_workflow("team.ship", "a", "b"))
    start = harness.start("team.ship")
    artifact = {"kind": "mine", "says": SECRET}
    divergence = {"kind": "wr.workflow_divergence", "reason": "efficiency_skip", "summary": f"Skip {SECRET}."}
    saved = with_artifacts(artifact, notes="So far.")
    harness.call("checkpoint_workflow", {"ackToken": start["ackToken"], "output": saved})
    harness.advance(start, None, output=with_artifacts(artifact, divergence, notes=LONG))
    root = harness.reference_of(start).node
    attempts = (ack_attempt(root), checkpoint_attempt(root, 0))
    old = json.loads(exported(harness, harness.session_of(start)).data)["session"]
    made = {one["data"].get("requestDigest") for one in old["events"]} - {None}
    found, text = copy_of(harness, start)
    guesses = [derived_id("out", attempt, digest_of(artifact)) for attempt in attempts]
    guesses += [
        derived_id("div", attempts[0], digest_of(divergence)),
        derived_id("out", attempts[0], digest_of_text(LONG)),
    ]
    before = json.dumps(old)
    assert len(made) == 2
    assert [guess in before for guess in guesses] == [True] * 4
    assert not [guess for guess in [*guesses, *made] if guess in text]
    copied = harness.store.load(found.restored.session)
    assert copied is not None
    (way,) = found.restored.ways_on
    shown = harness.call(way.next_call.tool, dict(way.next_call.arguments))
    assert shown["pending"]["stepId"] == "b"
    assert unsound(harness.store) == []


@pytest.mark.inv("EVD-13")
def test_a_long_value_that_a_decision_read_leaves_no_digest_in_its_record() -> None:
    flow = document(
        step("a"),
        step("b", when={"var": "mode", "equals": "fast"}),
        step("c"),
        inputs=[declared("mode", required=False)],
    )
    harness = Harness.in_memory(flow)
    start = harness.start("test.flow", context={"mode": LONG})
    harness.advance(start, f"The digest of the mode is {digest_of(LONG)}.")
    assert digest_of(LONG) in exported(harness, harness.session_of(start)).data.decode()
    _, text = copy_of(harness, start)
    assert digest_of(LONG).removeprefix("sha256:") not in text
    assert unsound(harness.store) == []


@pytest.mark.inv("EVD-13")
def test_a_path_and_a_branch_with_the_value_leave_no_digest_and_the_run_can_still_be_proven() -> None:
    harness = provable(proof())
    root, branch = f"/home/{SECRET}/app", f"feature/{SECRET}-{'long-' * 20}"

    def anchors(_: Path | None) -> GitAnchors:
        return GitAnchors(repo_root=root, branch=branch, head_sha=None)

    read = replace(harness.ports.read, anchors=anchors)
    harness = replace(harness, ports=replace(harness.ports, read=read, keeps_repo_root=True))
    start = begun(harness)
    harness.advance(start, "The plan.")
    found, text = copy_of(harness, start)
    assert path_digest(root) not in text
    assert short_branch(branch).rpartition("~")[2] not in text
    (way,) = found.restored.ways_on
    fix = harness.call(way.next_call.tool, dict(way.next_call.arguments))
    witnessed(harness, fix, *shlex.split("make test"), root="/somewhere/else")
    assert harness.advance(fix, "They pass.")["pending"]["stepId"] == "ship"
    assert unsound(harness.store) == []


@pytest.mark.inv("EVD-13")
def test_the_path_of_a_workspace_with_the_value_leaves_no_digest() -> None:
    harness, root = Harness.in_memory(proving()), f"/home/{SECRET}/app"

    def anchors(_: Path | None) -> GitAnchors:
        return GitAnchors(workspace=root)

    read = replace(harness.ports.read, anchors=anchors, tree=no_tree)
    harness = replace(harness, ports=replace(harness.ports, read=read))
    start = begun(harness)
    harness.advance(start, "The plan.")
    witnessed(harness, start, root=f"{root}/below")
    assert path_digest(root) in exported(harness, harness.session_of(start)).data.decode()
    _, text = copy_of(harness, start)
    assert path_digest(root) not in text
    assert unsound(harness.store) == []
