"""The blocker of missing notes fits every budget and says what to send."""

import pytest

from interlock.decide.evaluate import Undecided
from interlock.engine.judge import reasons
from interlock.engine.judge.reasons import missing_notes
from interlock.engine.judge.violations import Violation, gaps_of
from interlock.kernel.budgets import BLOCKER_FIX_BYTES_MAX, BLOCKER_MESSAGE_BYTES_MAX
from interlock.kernel.ids import AttemptId
from interlock.plan.records import NOTES_CONTRACT
from interlock.record.outcome import build_report


@pytest.mark.inv("BLK-6")
@pytest.mark.parametrize("title", ["Look", "é" * 200, "\N{GRINNING FACE}" * 200, "'\"`\n" * 50])
def test_the_blocker_of_missing_notes_keeps_to_its_budgets_whatever_the_title(title: str) -> None:
    blocker = missing_notes(title).blocker()
    assert build_report([blocker]).blockers == (blocker,)
    assert len(blocker.message.encode()) <= BLOCKER_MESSAGE_BYTES_MAX
    assert len((blocker.suggested_fix or "").encode()) <= BLOCKER_FIX_BYTES_MAX
    assert blocker.code == "MISSING_REQUIRED_OUTPUT"
    assert blocker.pointer.to_json() == {"kind": "output_contract", "contractRef": NOTES_CONTRACT}
    assert "notesMarkdown" in (blocker.suggested_fix or "")


LONG = "é\N{GRINNING FACE}'\"`\n" * 400
EXAMPLES = ({"kind": "x", "summary": LONG},)
EVERY: dict[str, Violation] = {
    "missing artifact": reasons.missing_artifact("wr.contracts.x", "x", [LONG, "y"], EXAMPLES),
    "missing artifact, nothing sent": reasons.missing_artifact("wr.contracts.x", "x", [], ()),
    "invalid artifact": reasons.invalid_artifact("wr.contracts.x", "x", LONG, EXAMPLES),
    "unmet criteria": reasons.unmet_criteria([LONG, LONG]),
    "follow up": reasons.follow_up(LONG[:64], LONG[:64], LONG),
    "missing key": reasons.missing_key(LONG, LONG),
    "undecided, not set": reasons.undecided(Undecided(path=LONG, found="not set", expected="a value"), LONG),
    "undecided, wrong type": reasons.undecided(Undecided(path="a.b", found="a string", expected="a number"), LONG),
    "undecided, no artifact": reasons.undecided(Undecided(path=None, found="none", expected="one"), LONG),
    "loop limit": reasons.loop_limit("l" * 300, 1000, 1000),
    "endless": reasons.endless("l" * 300),
    "context too large": reasons.context_too_large(10**9, 10**6),
    "capability unknown": reasons.capability_missing("delegation", "unknown"),
    "capability unavailable": reasons.capability_missing("web_browsing", "unavailable"),
}


@pytest.mark.inv("BLK-6")
@pytest.mark.parametrize("name", EVERY)
def test_every_blocker_keeps_to_its_budgets_and_says_what_to_do(name: str) -> None:
    blocker = EVERY[name].blocker()
    assert build_report([blocker]).blockers == (blocker,)
    assert len(blocker.message.encode()) <= BLOCKER_MESSAGE_BYTES_MAX
    assert 0 < len((blocker.suggested_fix or "").encode()) <= BLOCKER_FIX_BYTES_MAX


@pytest.mark.parametrize(
    ("found", "code"), [("not set", "MISSING_REQUIRED_OUTPUT"), ("a string", "INVALID_REQUIRED_OUTPUT")]
)
def test_what_is_not_set_is_missing_and_what_is_of_the_wrong_kind_is_invalid(found: str, code: str) -> None:
    assert reasons.undecided(Undecided(path="a", found=found, expected="a number"), "Decide").blocker().code == code


@pytest.mark.inv("GAP-1")
def test_a_missing_key_is_one_gap_whatever_kind_of_value_each_condition_wants() -> None:
    origin = AttemptId("att_00000000000000000000000001")
    a_string = reasons.undecided(Undecided(path="mode", found="not set", expected="a string"), "Choose")
    a_value = reasons.undecided(Undecided(path="mode", found="not set", expected="a value"), "Act")
    of_another = reasons.undecided(Undecided(path="level", found="not set", expected="a value"), "Act")
    needed = reasons.missing_key("Act", "mode")
    assert needed.gap_id(origin) == a_string.gap_id(origin) == a_value.gap_id(origin) != of_another.gap_id(origin)
    assert len(gaps_of([a_string, a_value, of_another], origin)) == 2
    [gap] = gaps_of([a_string, a_value, a_string], origin)
    assert gap.summary == f"{a_string.message} {a_value.message}", "each decision that lacks the key is disclosed"
