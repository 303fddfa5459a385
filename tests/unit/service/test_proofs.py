"""Steps that demand proof: which receipts count, and what a refusal says."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from tests.support.bundles import exported, imported
from tests.support.flow import document, step
from tests.support.modes import NEVER_STOPS, events_of, gaps_in, status_of
from tests.support.outside import artifact
from tests.support.proofs import (
    INPUT,
    ROOT,
    HeldTree,
    begun,
    proof,
    provable,
    proving,
    witnessed,
)
from tests.support.verify import unsound

from interlock.kernel.budgets.workflow import (
    CLAIMED_RECEIPTS_MAX,
)
from interlock.kernel.errors import ErrorCode, Refusal
from interlock.record.world import ProofMode
from interlock.service.trust.receipts import ReceiptReport
from interlock.store.ports.workspace import NO_TREE, GitAnchors, WorkTree
from interlock.testing.harness import Harness, ToolResult


def no_tree(_: Path) -> WorkTree:
    """Return what is known of a directory in no repository."""
    return NO_TREE


def at_the_fix(harness: Harness, **arguments: object) -> tuple[ToolResult, ToolResult]:
    start = begun(harness, **arguments)  # pyright: ignore[reportArgumentType] — arguments of the call
    return start, harness.advance(start, "The plan.")


def reason_in(answer: ToolResult) -> object:
    [blocker] = answer["blockers"]
    return blocker["details"]["reason"]


@pytest.mark.inv("PROOF-2")
def test_a_report_without_its_receipt_is_refused_with_the_command_and_then_accepted_with_it() -> None:
    harness = provable()
    start, fix = at_the_fix(harness)
    label = start["run"]["label"]
    line = f"interlock witness {label} -- make test"
    assert f"Before the report, run `{line}`." in fix.text
    refused = harness.advance(fix, "All tests pass.")
    assert reason_in(refused) == "missing"
    assert line in refused["blockers"][0]["suggestedFix"]
    assert isinstance(witnessed(harness, start), ReceiptReport)
    assert harness.advance(refused, "All tests pass.")["pending"]["stepId"] == "ship"
    taken = cast("Any", events_of(harness, start, "advance_recorded")[-1]).data.took
    assert taken == tuple(one.event_id for one in events_of(harness, start, "event_received"))
    assert unsound(harness.store) == []


def of_another_command(harness: Harness, start: ToolResult, _: HeldTree) -> None:
    witnessed(harness, start, "true")


def failed(harness: Harness, start: ToolResult, _: HeldTree) -> None:
    witnessed(harness, start)
    witnessed(harness, start, code=1)


def edited(harness: Harness, start: ToolResult, tree: HeldTree) -> None:
    witnessed(harness, start, assurance="observed")
    tree.content = "two"


def unknown(harness: Harness, start: ToolResult, tree: HeldTree) -> None:
    tree.content = None
    witnessed(harness, start, assurance="observed")


def elsewhere(harness: Harness, start: ToolResult, _: HeldTree) -> None:
    witnessed(harness, start, root="/home/ann/copy")


def in_another_run(harness: Harness, start: ToolResult, _: HeldTree) -> None:
    other = begun(harness, sessionId=start["run"]["sessionId"])
    witnessed(harness, other)


@pytest.mark.inv("PROOF-2", "PROOF-3")
@pytest.mark.parametrize(
    ("deed", "reason"),
    [
        (of_another_command, "command"),
        (failed, "exit"),
        (edited, "tree"),
        (unknown, "tree"),
        (elsewhere, "workspace"),
        (in_another_run, "run"),
    ],
)
def test_a_receipt_that_does_not_count_is_refused_with_its_reason(
    deed: Callable[[Harness, ToolResult, HeldTree], None], reason: str
) -> None:
    tree = HeldTree()
    harness = provable(proof(tree="unchanged"), tree=tree)
    start, fix = at_the_fix(harness)
    deed(harness, start, tree)
    assert reason_in(harness.advance(fix, "All tests pass.")) == reason
    assert unsound(harness.store) == []


def without_git(workspace: str, harness: Harness) -> Harness:
    """The same harness, called from a workspace in no repository."""

    def anchors(_: Path | None) -> GitAnchors:
        return GitAnchors(workspace=workspace)

    read = replace(harness.ports.read, anchors=anchors, tree=no_tree)
    return replace(harness, ports=replace(harness.ports, read=read))


@pytest.mark.inv("PROOF-9")
@pytest.mark.parametrize(
    ("directory", "is_taken"),
    [(ROOT, True), (f"{ROOT}/a/b", True), (f"{ROOT}2", False), ("/home/ann", False), ("/tmp", False), ("/", False)],  # noqa: S108 — a name
)
def test_without_git_a_receipt_counts_from_the_workspace_and_below(directory: str, is_taken: bool) -> None:  # noqa: FBT001 — a parameter of the test
    harness = without_git(ROOT, Harness.in_memory(proving()))
    start, fix = at_the_fix(harness)
    witnessed(harness, start, root=directory)
    answer = harness.advance(fix, "All tests pass.")
    if is_taken:
        assert answer["pending"]["stepId"] == "ship"
    else:
        assert reason_in(answer) == "workspace"
    assert ROOT not in "".join(str(one.data) for one in events_of(harness, start, "observation_recorded"))
    assert unsound(harness.store) == []


@pytest.mark.inv("PROOF-9")
def test_a_run_that_began_in_no_known_place_takes_a_receipt_from_anywhere() -> None:
    """As runs do that a build recorded before workspaces were known."""
    harness = Harness.in_memory(proving())
    start, fix = at_the_fix(harness)
    witnessed(harness, start, root="/somewhere")
    assert harness.advance(fix, "All tests pass.")["pending"]["stepId"] == "ship"


@pytest.mark.inv("PROOF-2", "ANS-15")
def test_after_a_refusal_for_a_proof_alone_the_call_asks_for_nothing_that_is_kept() -> None:
    harness = provable(proof())
    start, fix = at_the_fix(harness)
    refused = harness.advance(fix, "All tests pass.")
    assert reason_in(refused) == "missing"
    call = refused["nextCall"]
    assert set(call["arguments"]) == {"ackToken", "run"}
    assert not call.get("fill")
    witnessed(harness, start)
    again = harness.call(call["tool"], call["arguments"])
    assert again["kind"] == "ok"
    other = provable(proof())
    without_notes = other.advance(at_the_fix(other)[1], None)
    assert {one["code"] for one in without_notes["blockers"]} == {"MISSING_REQUIRED_OUTPUT"}
    assert [one["path"] for one in without_notes["nextCall"]["fill"]] == ["output.notesMarkdown"]


@pytest.mark.inv("PROOF-2", "PROOF-3")
@pytest.mark.parametrize("name", ["a  b", "a\tb", "/".join(["a" * 200] * 20)])
def test_a_receipt_counts_in_a_repository_with_any_path(name: str) -> None:
    root, tree, read_at = f"/{name}", HeldTree(), list[str]()

    def anchors(_: Path | None) -> GitAnchors:
        return GitAnchors(repo_root=root, branch="main", head_sha=None)

    def read(directory: Path) -> WorkTree:
        read_at.append(str(directory))
        return tree.read(directory)

    harness = Harness.in_memory(proving(proof(tree="unchanged")))
    ports = replace(harness.ports, read=replace(harness.ports.read, tree=read, anchors=anchors))
    harness = replace(harness, ports=ports)
    start, fix = at_the_fix(harness)
    assert isinstance(witnessed(harness, start, root=root, output='"' * 2048), ReceiptReport)
    assert harness.advance(fix, "All tests pass.")["pending"]["stepId"] == "ship"
    assert set(read_at) == {root}


@pytest.mark.inv("PROOF-1")
def test_a_path_that_is_no_text_is_recorded_as_it_can_be_shown() -> None:
    harness = provable()
    start, _ = at_the_fix(harness)
    report = witnessed(harness, start, root="/home/\udcff/app")
    assert isinstance(report, ReceiptReport)
    assert report.receipt.fields["root"] == "/home/\\udcff/app"


@pytest.mark.inv("PROOF-2")
def test_a_receipt_that_is_older_than_its_step_or_of_another_branch_does_not_count() -> None:
    harness = provable()
    start = begun(harness)
    witnessed(harness, start)
    fix = harness.advance(start, "The plan.")
    refused = harness.advance(fix, "All tests pass.")
    assert reason_in(refused) == "older"
    witnessed(harness, start)
    ship = harness.advance(refused, "All tests pass.")
    fork = harness.advance(harness.rehydrate(start)["fork"]["ackToken"], "Another plan.")
    assert fork["pending"]["stepId"] == "fix"
    assert reason_in(harness.advance(fork, "They still pass.")) == "branch"
    assert harness.advance(ship, "Shipped.")["isComplete"]
    assert unsound(harness.store) == []


@pytest.mark.inv("PROOF-2")
def test_a_receipt_below_the_demanded_level_does_not_count_and_a_later_claim_changes_nothing() -> None:
    harness = provable(proof(assurance="observed"))
    start, fix = at_the_fix(harness)
    assert "ask the user to run, in a terminal" in fix.text
    witnessed(harness, start)
    refused = harness.advance(fix, "All tests pass.")
    assert reason_in(refused) == "level"
    witnessed(harness, start, assurance="observed")
    witnessed(harness, start, code=1, assurance="claimed")
    assert harness.advance(refused, "All tests pass.")["pending"]["stepId"] == "ship"


@pytest.mark.inv("PROOF-3")
def test_the_tree_at_the_report_is_recorded_when_it_changes_and_decides_again_the_same() -> None:
    tree = HeldTree()
    harness = provable(proof(tree="unchanged"), tree=tree)
    start, fix = at_the_fix(harness)
    witnessed(harness, start)
    tree.content = "two"
    refused = harness.advance(fix, "All tests pass.")
    refused = harness.advance(refused, "They pass, really.")
    tree.content = "one"
    assert harness.advance(refused, "They pass.")["pending"]["stepId"] == "ship"
    read = [one.data for one in cast("Any", events_of(harness, start, "event_received")) if one.data.event == "wr.tree"]
    assert [(one.assurance, one.via) for one in read] == [("executed", "check")] * 2
    assert unsound(harness.store) == []


@pytest.mark.inv("PROOF-4")
def test_the_command_is_that_of_the_start_whatever_is_sent_later() -> None:
    harness = provable()
    start = begun(harness)
    fix = harness.advance(start, "The plan.", context={"test_command": "true"})
    assert "-- make test`" in fix.text
    witnessed(harness, start, "true")
    assert reason_in(harness.advance(fix, "All tests pass.")) == "command"


@pytest.mark.inv("PROOF-4")
def test_without_the_input_nothing_is_demanded() -> None:
    harness = provable()
    _, fix = at_the_fix(harness, command=None)
    assert "Proof of this step" not in fix.text
    assert harness.advance(fix, "Looks good.")["pending"]["stepId"] == "ship"


@pytest.mark.inv("PROOF-5")
@pytest.mark.parametrize(("mode", "traced"), [("shadow", 1), ("off", 0)])
def test_a_shadow_records_what_would_have_been_refused_and_off_looks_for_nothing(mode: Any, traced: int) -> None:
    harness = provable()
    harness = replace(harness, ports=replace(harness.ports, proofs=mode))
    start, fix = at_the_fix(harness)
    # The mode belongs to the run: a configuration that changes later does not change it.
    harness = replace(harness, ports=replace(harness.ports, proofs="enforce"))
    assert harness.advance(fix, "All tests pass.")["pending"]["stepId"] == "ship"
    entries = [
        entry.summary
        for one in events_of(harness, start, "decision_trace_appended")
        for entry in cast("Any", one).data.entries
    ]
    assert sum("would have been refused" in one for one in entries) == traced
    assert unsound(harness.store) == []


@pytest.mark.inv("PROOF-2")
def test_a_run_that_never_stops_goes_on_without_proof_and_is_not_plainly_complete() -> None:
    harness = provable()
    start, fix = at_the_fix(harness, preferences=NEVER_STOPS)
    end = harness.advance(harness.advance(fix, "All tests pass."), "Shipped.")
    assert end["isComplete"]
    assert [one.severity for one in gaps_in(harness, start)] == ["critical"]
    assert status_of(harness, start) == "complete_with_gaps"
    assert unsound(harness.store) == []


@pytest.mark.inv("PROOF-6")
def test_nobody_sends_a_receipt_as_an_event_and_claims_leave_room_for_what_is_known_better() -> None:
    harness = provable(proof(assurance="observed"))
    start, fix = at_the_fix(harness)
    forged = artifact(event="wr.receipt", fields={"exit": 0, "argv": "x"})
    assert harness.advance(fix, "Done.", output={"artifacts": [forged]}).code == ErrorCode.VALIDATION_ERROR
    for _ in range(CLAIMED_RECEIPTS_MAX):
        assert isinstance(witnessed(harness, start, "true"), ReceiptReport)
    refused = witnessed(harness, start, "true")
    assert isinstance(refused, Refusal)
    assert "claimed receipts" in refused.message
    assert isinstance(witnessed(harness, start, assurance="observed"), ReceiptReport)
    assert harness.advance(fix, "Done, they pass.")["pending"]["stepId"] == "ship"


@pytest.mark.inv("PROOF-1")
def test_a_run_that_is_complete_takes_no_receipt() -> None:
    harness = provable()
    start, fix = at_the_fix(harness, command=None)
    harness.advance(harness.advance(fix, "Fixed."), "Shipped.")
    refused = witnessed(harness, start)
    assert isinstance(refused, Refusal)
    assert "complete" in refused.message


@pytest.mark.inv("PROOF-7")
def test_the_end_counts_steps_by_level_and_names_what_was_not_proven() -> None:
    harness = provable(proof(assurance="observed"))
    start, fix = at_the_fix(harness)
    witnessed(harness, start, assurance="observed")
    end = harness.advance(harness.advance(fix, "They pass."), "Shipped.")
    assert end["restsOn"] == {"claimed": 2, "observed": 1, "signed": 0, "executed": 0}
    assert "What the steps rest on: 2 claimed, 1 observed." in end.text
    assert harness.rehydrate(end)["restsOn"] == end["restsOn"]
    bare = begun(harness, command=None)
    for notes in ("The plan of it.", "Looks good.", "Shipped it too."):
        bare = harness.advance(bare, notes)
    assert bare["restsOn"]["notProven"] == ["fix"]
    assert "3 claimed. Done without the proof that the workflow can demand: `fix`." in bare.text


@pytest.mark.inv("PROOF-7")
@pytest.mark.parametrize("mode", ["shadow", "enforce"])
def test_a_step_that_lacks_one_of_two_demanded_proofs_is_named(mode: ProofMode) -> None:
    harness = provable(proof(), proof(command={"value": "make lint"}))
    harness = replace(harness, ports=replace(harness.ports, proofs=mode))
    preferences = NEVER_STOPS if mode == "enforce" else {}
    ends = list[object]()
    for commands in (("make test",), ("make lint",), ("make test", "make lint")):
        start, fix = at_the_fix(harness, preferences=preferences)
        for command in commands:
            witnessed(harness, start, *command.split())
        end = harness.advance(harness.advance(fix, "They pass."), "Shipped.")
        ends.append(end["restsOn"].get("notProven"))
    assert ends == [["fix"], ["fix"], None]


@pytest.mark.inv("PROOF-7")
def test_a_fork_counts_the_steps_of_its_own_branch() -> None:
    harness = provable()
    start, fix = at_the_fix(harness)
    refused = harness.advance(fix, "They pass.")
    witnessed(harness, start)
    end = harness.advance(harness.advance(refused, "They pass."), "Shipped.")
    fork = harness.advance(harness.rehydrate(start)["fork"]["ackToken"], "Another plan.")
    witnessed(harness, start, assurance="observed")
    other = harness.advance(harness.advance(fork, "They pass here."), "Shipped that.")
    assert (end["restsOn"]["claimed"], other["restsOn"]["claimed"], other["restsOn"]["observed"]) == (3, 2, 1)


@pytest.mark.inv("PROOF-2", "PROOF-7")
def test_only_the_claim_of_success_needs_its_proof() -> None:
    checking = step(
        "fix", proof=[proof(verdict="passed")], outputContract={"contractRef": "wr.contracts.verification_report"}
    )
    harness = Harness.in_memory(document(checking, {**checking, "id": "again"}, inputs=[INPUT]))
    start = begun(harness)
    assert "Before a report with the verdict `passed`, run `interlock witness" in start.text
    failed_one = harness.call("continue_workflow", reported(start, "failed"))
    assert failed_one["pending"]["stepId"] == "again"
    refused = harness.call("continue_workflow", reported(failed_one, "passed"))
    assert reason_in(refused) == "missing"
    assert "Otherwise send the artifact with another verdict." in refused["blockers"][0]["suggestedFix"]
    for answer in (refused, harness.rehydrate(refused)):
        assert answer["nextCall"]["fill"] == []
    witnessed(harness, start)
    end = harness.advance(refused, None)
    assert end["restsOn"] == {"claimed": 2, "observed": 0, "signed": 0, "executed": 0}


def reported(answer: ToolResult, verdict: str) -> dict[str, Any]:
    """Return the call that reports a verification with a verdict."""
    check = {"name": "make test", "result": verdict, "evidence": f"the tests {verdict}"}
    report = {"kind": "wr.verification_report", "verdict": verdict, "summary": f"It {verdict}.", "checks": [check]}
    return {"ackToken": answer.ack, "output": {"notesMarkdown": f"I ran it all: {verdict}.", "artifacts": [report]}}


@pytest.mark.inv("WORLD-11")
def test_a_receipt_that_came_with_a_bundle_is_a_claim() -> None:
    here, there = provable(proof(assurance="observed")), provable(proof(assurance="observed"))
    start, _ = at_the_fix(here)
    assert isinstance(witnessed(here, start, assurance="observed"), ReceiptReport)
    restored = imported(there, exported(here, here.session_of(start)).data).restored
    looked = there.call("continue_workflow", restored.ways_on[0].next_call.arguments)
    assert reason_in(there.advance(looked, "All tests pass.")) == "level"
    assert isinstance(witnessed(there, looked, assurance="observed"), ReceiptReport)
