"""Which steps come, how often, and what the answer says where a loop ends or nothing can be decided."""

from typing import Any

import pytest
from tests.e2e.behaviours.conftest import Maker
from tests.support.flow import IS_FAST, Document, deciding, document, loop, step
from tests.support.server import InMemory, blockers_of, step_of

from interlock.kernel.budgets.workflow import (
    TRACE_ENTRIES_MAX,
)
from interlock.kernel.errors import ErrorCode
from interlock.testing.harness import ToolResult

CONTINUE, STOP = ({"kind": "wr.loop_control", "decision": word, "summary": "Why."} for word in ("continue", "stop"))
NAMED = step("b", prompt="Do {{item.name}}: {{iteration}} at {{index}}.")
EACH = loop("l", NAMED, forEach={"items": "things"})


def dialect(*steps: Document) -> Document:
    """Return a file of the dialect, whose steps and loops are written otherwise."""
    return {"id": "old", "name": "Old", "description": "Old.", "version": "1.0.0", "steps": list(steps)}


def old_loop(*body: Document, **spec: Any) -> Document:
    return {"id": "l", "type": "loop", "title": "L", "loop": {"maxIterations": 3, **spec}, "body": list(body)}


def prompts(served: InMemory, answer: ToolResult) -> list[str]:
    """Return the prompts of all steps from here to the end, each done with nothing but notes."""
    found: list[str] = []
    while not answer["isComplete"]:
        assert answer["kind"] == "ok", answer.text
        found.append(answer["pending"]["prompt"])
        answer = served.follow(answer)
    return found


def steps(served: InMemory, answer: ToolResult, **arguments: Any) -> list[str | None]:
    """Return the steps from here to the end, the first one done with these arguments, the others with notes."""
    found = [step_of(answer)]
    answer = served.advance(answer, **arguments)
    while not answer["isComplete"]:
        assert answer["kind"] == "ok", answer.text
        found.append(step_of(answer))
        answer = served.advance(answer)
    return found


# Conditions.


@pytest.mark.parametrize(("mode", "found"), [("fast", ["a", "b", "c"]), ("slow", ["a", "c"]), ("Fast ", ["a", "c"])])
def test_a_step_is_shown_or_skipped_by_what_an_earlier_one_said_and_nothing_is_coerced(
    make: Maker, mode: str, found: list[str]
) -> None:
    served = make(document(step("a"), step("b", when=IS_FAST), step("c")))
    assert steps(served, served.start("test.flow"), context={"mode": mode}) == found


@pytest.mark.parametrize(
    ("value", "found"),
    [("Yes ", ["a", "b", "c"]), (True, ["a", "b", "c"]), ("no", ["a", "c"]), (None, ["a", "c"]), ({}, ["a", "c"])],
    ids=repr,
)
def test_a_file_of_the_dialect_compares_loosely(make: Maker, value: object, found: list[str]) -> None:
    second = step("b", runCondition={"var": "isUrgent", "equals": True})
    served = make(dialect(step("a"), second, step("c")))
    assert steps(served, served.start("old"), context={"isUrgent": value}) == found


@pytest.mark.inv("WALK-2")
def test_a_step_that_was_skipped_does_not_come_back_when_its_condition_holds_later(make: Maker) -> None:
    served = make(document(step("a", when=IS_FAST), step("b"), step("c"), step("d")))
    first = served.start("test.flow", context={"mode": "slow"})
    assert steps(served, first, context={"mode": "fast"}) == ["b", "c", "d"]


# Loops that the agent decides.


@pytest.mark.inv("WALK-3")
def test_a_loop_goes_on_as_often_as_its_artifact_says_and_ends_when_it_says_stop(make: Maker) -> None:
    served = make(document(loop("l", deciding("d"), maxIterations=5, **{"while": {"kind": "loop_control"}}), step("z")))
    answer, passes = served.start("test.flow"), [1]
    for decision in (CONTINUE, CONTINUE):
        answer = served.report(answer, decision)
        passes.append(answer["pending"]["loop"]["pass"])
    assert passes == [1, 2, 3]
    after = served.report(answer, STOP)
    assert (step_of(after), after.warnings) == ("z", [])


@pytest.mark.inv("WALK-3")
def test_a_loop_that_is_reported_to_go_on_beyond_its_bound_is_refused_with_the_bound(make: Maker) -> None:
    served = make(document(loop("l", deciding("d"), **{"while": {"kind": "loop_control"}}), step("z")))
    third = served.report(served.report(served.start("test.flow"), CONTINUE), CONTINUE)
    refused = served.report(third, CONTINUE)
    assert [code for code, _ in blockers_of(refused)] == ["INVARIANT_VIOLATION"]
    assert "3" in refused["blockers"][0]["message"]
    assert refused["pending"]["loop"]["pass"] == 3
    assert step_of(served.report(refused, STOP)) == "z"


@pytest.mark.inv("WALK-3")
def test_a_loop_of_the_dialect_that_is_never_stopped_ends_at_its_bound_and_says_so(make: Maker) -> None:
    source = {"kind": "artifact_contract", "contractRef": "wr.contracts.loop_control", "loopId": "l"}
    decider = step("d", outputContract={"contractRef": "wr.contracts.loop_control"})
    served = make(dialect(old_loop(decider, type="while", conditionSource=source), step("z")))
    first = served.start("old")
    third = served.report(served.report(first, CONTINUE), CONTINUE)
    assert third["pending"]["loop"]["pass"] == 3
    after = served.report(third, CONTINUE)
    assert (step_of(after), after.warnings) == ("z", ["LOOP_LIMIT_REACHED"])
    assert "3" in after["warnings"][0]["message"]
    assert served.report(third, CONTINUE) == after
    assert "exited_loop" in served.trace(first)[-1]


# Loops over items and counts.


def test_a_loop_over_items_names_each_in_its_prompt(make: Maker) -> None:
    served = make(document(EACH, step("z")))
    first = served.start("test.flow", context={"things": [{"name": name} for name in ("x", "y", "z")]})
    assert prompts(served, first) == ["Do x: 1 at 0.", "Do y: 2 at 1.", "Do z: 3 at 2.", "Do z."]


def test_a_loop_over_no_items_has_no_pass(make: Maker) -> None:
    served = make(document(EACH, step("z")))
    assert prompts(served, served.start("test.flow", context={"things": []})) == ["Do z."]


@pytest.mark.inv("WALK-4")
def test_a_loop_over_items_that_are_not_there_asks_for_them_and_nothing_moves(make: Maker) -> None:
    served = make(document(step("a"), EACH, step("z")))
    refused = served.advance(served.start("test.flow"))
    assert blockers_of(refused) == [("MISSING_REQUIRED_OUTPUT", "things")]
    assert step_of(refused) == "a"
    assert "a list" in refused["blockers"][0]["message"]
    assert step_of(served.advance(refused, None, context={"things": "x, y"})) == "a"
    refused = served.rehydrate(refused)
    assert prompts(served, served.advance(refused, None, context={"things": [{"name": "x"}]})) == [
        "Do x: 1 at 0.",
        "Do z.",
    ]


def test_a_run_that_would_begin_with_items_that_are_not_there_does_not_begin(make: Maker) -> None:
    served = make(document(EACH))
    refused = served.start("test.flow")
    assert (refused.code, refused["details"]["path"]) == (ErrorCode.VALIDATION_ERROR, "context.things")


@pytest.mark.inv("WALK-3")
def test_a_loop_over_more_items_than_it_has_passes_ends_at_its_bound_and_says_so(make: Maker) -> None:
    served = make(document(EACH, step("z")))
    answer = served.start("test.flow", context={"things": [{"name": str(at)} for at in range(5)]})
    for _ in range(3):
        assert answer.warnings == []
        answer = served.advance(answer)
    assert (step_of(answer), answer.warnings) == ("z", ["LOOP_LIMIT_REACHED"])


def test_a_loop_that_ends_at_its_bound_says_so_however_much_is_decided_after_it(make: Maker) -> None:
    used_up = loop("l", step("b"), maxIterations=1, **{"while": {"var": "level", "gt": 0}})
    passed_over = [step(f"s{at}", when=IS_FAST) for at in range(TRACE_ENTRIES_MAX)]
    served = make(document(used_up, *passed_over, step("z")))
    after = served.advance(served.start("test.flow", context={"level": 1, "mode": "slow"}))
    assert (step_of(after), after.warnings) == ("z", ["LOOP_LIMIT_REACHED"])


@pytest.mark.parametrize("spec", [{"count": 3}, {"countFrom": "level"}], ids=["a number", "a context key"])
def test_a_counted_loop_counts_passes_from_one_and_indexes_from_zero(make: Maker, spec: Document) -> None:
    body = step("b", prompt="Pass {{turn}}, index {{slot}}.")
    counted = loop("l", body, iterationVar="turn", indexVar="slot", **{"for": spec})
    served = make(document(counted, step("z")))
    passes = [f"Pass {at + 1}, index {at}." for at in range(3)]
    assert prompts(served, served.start("test.flow", context={"level": 3})) == [*passes, "Do z."]


@pytest.mark.parametrize("count", [2, "maxRetries"])
def test_a_counted_loop_of_the_dialect_counts_the_same_way(make: Maker, count: int | str) -> None:
    body = step("b", prompt="Pass {{turn}}, index {{slot}}.")
    served = make(dialect(old_loop(body, type="for", count=count, iterationVar="turn", indexVar="slot")))
    first = served.start("old", context={"maxRetries": 2})
    assert prompts(served, first) == ["Pass 1, index 0.", "Pass 2, index 1."]


# Loops that the context decides.

UNTIL = {"var": "mode", "equals": "done"}


def test_an_until_loop_is_read_before_each_pass(make: Maker) -> None:
    served = make(document(loop("l", step("b"), step("c"), until=UNTIL), step("z")))
    first = served.start("test.flow", context={"mode": "open"})
    second = served.advance(first, context={"mode": "done"})
    assert (step_of(second), step_of(served.advance(second))) == ("c", "z")
    assert step_of(served.start("test.flow", context={"mode": "done"})) == "z"


def test_an_until_loop_of_the_dialect_is_read_before_each_step_of_its_body(make: Maker) -> None:
    served = make(dialect(old_loop(step("b"), step("c"), type="until", condition=UNTIL), step("z")))
    first = served.start("old")
    assert step_of(served.advance(served.advance(first))) == "b"
    assert step_of(served.advance(served.start("old"), context={"mode": "done"})) == "z"
