"""A step that removes a key, and what is decided right after it: no call comes in between that could send the key."""

import pytest
from tests.support.flow import Document, choose, declared, document, loop, parallel, step

from interlock.define.document import WorkflowDocument
from interlock.define.front import parse_workflow
from interlock.kernel.budgets.workflow import STEPS_FOLLOWED_MAX
from interlock.plan.check.checks import check_document

INPUTS = [declared("size", "number"), declared("mode"), declared("ready", "boolean")]
BIG: Document = {"var": "size", "gt": 5}
READY: Document = {"var": "ready", "equals": True}
REMOVES = step("a", set=[{"key": "size", "value": None}])
SETS = step("s", set=[{"key": "size", "value": 1}])


def places(*steps: Document) -> list[str]:
    """Return the places of the decisions that need the removed key."""
    parsed = parse_workflow(document(*steps, inputs=INPUTS))
    assert isinstance(parsed, WorkflowDocument)
    found = [one for one in check_document(parsed) if "removes 'size'" in one.message]
    assert all("'a'" in one.message for one in found)
    return [one.path for one in found]


@pytest.mark.inv("WALK-4")
@pytest.mark.parametrize(
    ("steps", "at"),
    [
        ([step("b", when=BIG)], "steps[1].when"),
        ([step("b", needs=["size"])], "steps[1].needs[0]"),
        ([step("b", when={"not": BIG})], "steps[1].when"),
        ([step("b", when={"and": [BIG, READY]})], "steps[1].when"),
        ([step("b", when={"or": [READY, {"not": BIG}]})], "steps[1].when"),
        ([choose("c", (BIG, [step("b")]))], "steps[1].choose[0].when"),
        ([choose("c", (READY, [step("b")]), (BIG, [step("d")]))], "steps[1].choose[1].when"),
        ([choose("c", (READY, [step("b", when=BIG)]))], "steps[1].choose[0].steps[0].when"),
        ([choose("c", (READY, [step("b")]), otherwise=[step("d", when=BIG)])], "steps[1].otherwise[0].when"),
        ([choose("c", (READY, [step("b")])), step("d", when=BIG)], "steps[2].when"),
        ([step("b", when=READY), step("d", when=BIG)], "steps[2].when"),
        ([loop("l", step("b"), **{"while": BIG})], "steps[1].while"),
        ([loop("l", step("b"), **{"for": {"countFrom": "size"}})], "steps[1].for.countFrom"),
        ([loop("l", step("b", when=BIG), **{"for": {"count": 2}})], "steps[1].body[0].when"),
        ([parallel("p", [step("b", when=BIG)], [step("d")])], "steps[1].branches[0].steps[0].when"),
    ],
)
def test_a_decision_right_after_a_step_that_removes_its_key_is_a_fault(steps: list[Document], at: str) -> None:
    assert places(REMOVES, *steps) == [at]


@pytest.mark.inv("WALK-4")
@pytest.mark.parametrize(
    ("steps", "at"),
    [
        ([loop("l", REMOVES, until=BIG)], "steps[0].until"),
        ([loop("l", step("b", when=BIG), REMOVES, **{"for": {"count": 2}})], "steps[0].body[0].when"),
        ([loop("l", REMOVES, **{"for": {"count": 2}}), step("d", when=BIG)], "steps[1].when"),
        ([choose("c", (READY, [REMOVES])), step("d", when=BIG)], "steps[1].when"),
    ],
)
def test_what_follows_the_end_of_a_pass_or_of_a_branch_is_checked_too(steps: list[Document], at: str) -> None:
    assert places(*steps) == [at]


@pytest.mark.parametrize(
    "steps",
    [
        [REMOVES, step("b"), step("d", when=BIG)],
        [REMOVES, step("b", when={"var": "size", "exists": True})],
        [REMOVES, step("b", when={"and": [{"var": "size", "exists": True}, BIG]})],
        [REMOVES, step("b", when={"or": [{"var": "size", "exists": False}, BIG]})],
        [REMOVES, step("b", when={"and": [{"or": [BIG, READY]}, {"var": "mode", "equals": "x"}]})],
        [REMOVES, choose("c", ({"var": "size", "exists": True}, [step("b", when=BIG)]))],
        [REMOVES, loop("l", step("b", when=BIG), forEach={"items": "things", "itemVar": "size"})],
        [step("a", set=[{"key": "size", "value": None, "when": READY}]), step("b", when=BIG)],
        [loop("l", step("b", when=BIG), REMOVES, **{"for": {"count": 2}, "maxIterations": 1})],
        [SETS, step("b", when=BIG)],
    ],
)
def test_a_decision_that_can_be_made_without_the_key_is_no_fault(steps: list[Document]) -> None:
    assert places(*steps) == []


def test_a_long_row_of_steps_is_followed_up_to_a_limit() -> None:
    def row(length: int) -> list[Document]:
        return [step(f"b{number}", when=READY) for number in range(length)]

    assert places(REMOVES, *row(STEPS_FOLLOWED_MAX - 1), step("d", when=BIG))
    assert not places(REMOVES, *row(STEPS_FOLLOWED_MAX), step("d", when=BIG))
