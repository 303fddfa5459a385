"""What a step that waits does in each mode of autonomy: whether it waits, continues, and what it leaves open."""

from pathlib import Path
from typing import TypeAlias

import pytest
from tests.support.approvals import READING as READING_APPROVAL
from tests.support.approvals import asking
from tests.support.checks import BRANCHING, NEEDED, checking, run_now
from tests.support.flow import Document
from tests.support.modes import NEVER_STOPS, STOPS, gaps_in
from tests.support.outside import WAITING
from tests.support.verify import unsound

from interlock.testing.harness import Harness

GUIDED = {"autonomy": "guided"}
ASKING = (asking(), READING_APPROVAL)
Outcome: TypeAlias = tuple[str, list[str]]
HELD: Outcome = ("check", [])
CONTINUED: Outcome = ("b", [])


def step_after(harness: Harness, mode: Document, *, is_run: bool = False) -> Outcome:
    """Return what an agent that reports and asks again comes to: what it waits for, or its next step; and the gaps."""
    start = harness.start("test.flow", goal="Ship", preferences=mode)
    waiting = harness.advance(start, "The plan: change one file, and test it.")
    if is_run:
        harness.advance(waiting, None)
        run_now(harness, start)
    answer = harness.advance(waiting, None)
    assert unsound(harness.store) == []
    found = answer.structure.get("waiting") or {"for": answer["pending"]["stepId"]}
    return str(found["for"]), [one.severity for one in gaps_in(harness, start)]


@pytest.mark.inv("APPR-3")
@pytest.mark.parametrize("workflow", ASKING, ids=["needed", "read"])
@pytest.mark.parametrize("mode", [GUIDED, STOPS], ids=["guided", "stops"])
def test_a_question_to_a_person_waits_in_a_mode_that_stops(mode: Document, workflow: Document) -> None:
    assert step_after(Harness.in_memory(workflow), mode) == ("approval", [])


@pytest.mark.inv("APPR-3")
@pytest.mark.parametrize("workflow", ASKING, ids=["needed", "read"])
def test_a_question_to_a_person_is_left_open_as_a_critical_gap_by_a_run_that_never_stops(workflow: Document) -> None:
    assert step_after(Harness.in_memory(workflow), NEVER_STOPS) == ("b", ["critical"])


@pytest.mark.inv("WORLD-3")
@pytest.mark.parametrize("mode", [GUIDED, STOPS, NEVER_STOPS], ids=["guided", "stops", "never stops"])
def test_a_step_that_awaits_an_event_waits_in_every_mode(mode: Document) -> None:
    assert step_after(Harness.in_memory(WAITING), mode) == ("event", [])


@pytest.mark.inv("CHECK-4")
@pytest.mark.parametrize("mode", [GUIDED, STOPS, NEVER_STOPS], ids=["guided", "stops", "never stops"])
def test_a_check_waits_for_its_result_in_every_mode(tmp_path: Path, mode: Document) -> None:
    assert step_after(checking(tmp_path, NEEDED), mode) == ("check", [])


@pytest.mark.inv("CHECK-4")
@pytest.mark.parametrize(
    ("mode", "needed"),
    [(GUIDED, HELD), (STOPS, HELD), (NEVER_STOPS, ("b", ["critical"]))],
    ids=["guided", "stops", "never stops"],
)
def test_a_failed_check_that_is_read_continues_in_every_mode_and_a_needed_one_only_in_one_that_never_stops(
    tmp_path: Path, mode: Document, needed: Outcome
) -> None:
    for workflow, expected in ((NEEDED, needed), (BRANCHING, CONTINUED)):
        root = tmp_path / expected[0] / str(workflow is NEEDED)
        root.mkdir(parents=True)
        assert step_after(checking(root, workflow), mode, is_run=True) == expected
