"""One table of reasons, shown as blockers and as gaps, each within its budgets and each once."""

from typing import get_args

import pytest

from interlock.engine.gates import QuestionItem
from interlock.engine.judge import reasons
from interlock.engine.judge.violations import REASONS, Violation, blockers_of, gaps_of
from interlock.kernel.budgets import (
    BLOCKER_FIX_BYTES_MAX,
    BLOCKER_MESSAGE_BYTES_MAX,
    BLOCKERS_MAX,
    GAP_SUMMARY_BYTES_MAX,
    GAPS_MAX,
)
from interlock.kernel.ids import AttemptId, derived_id
from interlock.kernel.text import TRUNCATION_MARKER
from interlock.record.outcome import BlockerCode, WorkflowStepPointer, build_report
from interlock.record.payloads import GapDetail, GapReason

ATTEMPT = AttemptId(derived_id("att", "one"))
OTHER = AttemptId(derived_id("att", "other"))
USER_ONLY = ("user_only_dependency", "USER_ONLY_DEPENDENCY")
LOCKED: dict[str, tuple[str, str]] = {
    "needs_user_secret_or_token": USER_ONLY,
    "needs_user_account_access": USER_ONLY,
    "needs_user_artifact": USER_ONLY,
    "needs_user_choice": USER_ONLY,
    "needs_user_approval": USER_ONLY,
    "needs_user_environment_action": USER_ONLY,
    "missing_required_output": ("contract_violation", "MISSING_REQUIRED_OUTPUT"),
    "invalid_required_output": ("contract_violation", "INVALID_REQUIRED_OUTPUT"),
    "required_capability_unknown": ("capability_missing", "REQUIRED_CAPABILITY_UNKNOWN"),
    "required_capability_unavailable": ("capability_missing", "REQUIRED_CAPABILITY_UNAVAILABLE"),
    "invariant_violation": ("unexpected", "INVARIANT_VIOLATION"),
    "storage_corruption_detected": ("unexpected", "STORAGE_CORRUPTION_DETECTED"),
}
"""The reasons as they are locked, written down a second time."""


def finding(
    detail: GapDetail = "missing_required_output", step: str = "a", message: str = "It is not there."
) -> Violation:
    pointer = WorkflowStepPointer(step_id=step)
    return Violation(detail=detail, pointer=pointer, message=message, fix="Send it.")


@pytest.mark.inv("MODE-1")
def test_the_table_is_the_locked_one_and_leaves_no_reason_and_no_code_out() -> None:
    assert {detail: (row.category, row.code) for detail, row in REASONS.items()} == LOCKED
    assert set(REASONS) == set(get_args(GapDetail)) == set(get_args(GapReason.__annotations__["detail"]))
    assert {row.code for row in REASONS.values()} == set(get_args(BlockerCode))


@pytest.mark.inv("MODE-1")
@pytest.mark.parametrize("detail", REASONS)
def test_a_reason_means_the_same_as_a_blocker_and_as_a_gap(detail: GapDetail) -> None:
    blocker, gap = finding(detail).blocker(), finding(detail).gap(ATTEMPT)
    category, code = LOCKED[detail]
    assert (blocker.code, blocker.message) == (code, "It is not there.")
    assert (gap.reason.category, gap.reason.detail) == (category, detail)
    assert (gap.severity, gap.summary, gap.resolution.kind) == ("critical", "It is not there.", "unresolved")


# Blockers.


@pytest.mark.inv("MODE-3")
@pytest.mark.parametrize("count", [1, BLOCKERS_MAX - 1, BLOCKERS_MAX])
def test_as_many_faults_as_a_report_holds_are_reported_one_by_one_in_the_locked_order(count: int) -> None:
    blockers = blockers_of(finding(step=f"s{number:02}") for number in reversed(range(count)))
    assert [blocker.pointer.to_json()["stepId"] for blocker in blockers] == [f"s{number:02}" for number in range(count)]


@pytest.mark.inv("MODE-3")
@pytest.mark.parametrize("count", [BLOCKERS_MAX + 1, 60])
def test_more_faults_are_nine_and_a_tenth_that_counts_the_rest(count: int) -> None:
    blockers = blockers_of(finding(step=f"s{number:02}", message="é" * 250) for number in range(count))
    assert build_report(list(blockers)).blockers == blockers, "within every budget, and in order"
    assert len(blockers) == BLOCKERS_MAX
    assert blockers[-1].message.startswith(f"{count - BLOCKERS_MAX + 1} more things are missing or wrong")
    assert blockers[-1].pointer.to_json()["stepId"] == "s09"


LONG = "é\N{GRINNING FACE}'\"`\n" * 400
AUTHORED: dict[str, Violation] = {
    "a title": reasons.missing_notes(LONG),
    "a fault": reasons.invalid_artifact("wr.contracts.x", "x", LONG, ()),
    "kinds that came": reasons.missing_artifact("wr.contracts.x", "x", [LONG], ()),
    "criteria": reasons.unmet_criteria([LONG, LONG]),
    "guidance": reasons.follow_up("risk", "high", LONG),
    "a title beside a key": reasons.missing_key(LONG, "key"),
    "what is asked": reasons.needs_user("a", 1, QuestionItem(reason="needs_user_choice", ask=LONG), unheard=LONG),
    "what was declined": reasons.declined("a", QuestionItem(reason="needs_user_choice", ask=LONG), "client", LONG),
    "what is claimed": reasons.claimed("a", LONG, LONG),
    "what is damaged": reasons.corrupted(LONG, LONG),
}


@pytest.mark.inv("MODE-3")
@pytest.mark.parametrize("name", AUTHORED)
def test_authored_and_submitted_text_is_cut_with_the_marker_and_what_is_ours_stays(name: str) -> None:
    found = AUTHORED[name]
    blocker, gap = found.blocker(), found.gap(ATTEMPT)
    assert TRUNCATION_MARKER in blocker.message
    assert len(blocker.message.encode()) <= BLOCKER_MESSAGE_BYTES_MAX
    assert len((blocker.suggested_fix or "").encode()) <= BLOCKER_FIX_BYTES_MAX
    assert len(gap.summary.encode()) <= GAP_SUMMARY_BYTES_MAX
    assert build_report([blocker]).blockers == (blocker,)


# Gaps.


@pytest.mark.inv("GAP-1")
def test_a_gap_is_that_of_its_attempt_its_reason_and_its_place_whatever_it_says() -> None:
    one = finding().gap_id(ATTEMPT)
    assert one == finding(message="Said otherwise.").gap_id(ATTEMPT)
    others = [
        finding().gap_id(OTHER),
        finding("invalid_required_output").gap_id(ATTEMPT),
        finding(step="b").gap_id(ATTEMPT),
    ]
    assert len({one, *others}) == 4


@pytest.mark.inv("GAP-1")
def test_the_same_finding_is_disclosed_once_and_gaps_stand_in_the_order_of_their_ids() -> None:
    found = [finding(step=f"s{number}") for number in range(9)]
    gaps = gaps_of([*found, *reversed(found)], ATTEMPT)
    assert gaps == gaps_of(reversed(found), ATTEMPT)
    assert [gap.gap_id for gap in gaps] == sorted({one.gap_id(ATTEMPT) for one in found})


@pytest.mark.inv("GAP-1")
@pytest.mark.parametrize("over", [0, 1, 30])
def test_gaps_beyond_the_budget_are_counted_in_the_last_one(over: int) -> None:
    gaps = gaps_of((finding(step=f"s{number}", message="é" * 300) for number in range(GAPS_MAX + over)), ATTEMPT)
    assert len(gaps) == GAPS_MAX
    assert gaps[-1].summary.startswith(f"{over + 1} gaps like this one: ") == bool(over)
    assert all(len(gap.summary.encode()) <= GAP_SUMMARY_BYTES_MAX for gap in gaps)


@pytest.mark.inv("GAP-1")
def test_two_missing_ratings_are_two_gaps() -> None:
    both = [reasons.missing_artifact("wr.contracts.assessment", "x", (), (), {"assessmentId": name}) for name in "ab"]
    assert len(gaps_of(both, ATTEMPT)) == 2
