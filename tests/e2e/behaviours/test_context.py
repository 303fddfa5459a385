"""What the context holds when something is decided, what is asked for, and what is no context at all."""

from typing import Any

import pytest
from tests.e2e.behaviours.conftest import Maker
from tests.support.flow import IS_FAST, Document, choose, document, loop, step
from tests.support.server import blockers_of, step_of

from interlock.kernel.errors import ErrorCode

IS_TWO = {"var": "level", "equals": 2}
SHOWN = "level={{level}}"


# What a decision reads.


@pytest.mark.inv("CTX-3")
@pytest.mark.parametrize(
    ("sent", "found", "shown"),
    [({"level": 2}, "b", "level=2"), ({}, "c", "level=1")],
    ids=["sent again", "not sent again"],
)
def test_what_is_sent_counts_before_what_is_stored_and_what_is_not_sent_stays(
    make: Maker, sent: Document, found: str, shown: str
) -> None:
    served = make(document(step("a"), step("b", when=IS_TWO, prompt=SHOWN), step("c", prompt=SHOWN)))
    second = served.advance(served.start("test.flow", context={"level": 1}), context=sent)
    assert (step_of(second), second["pending"]["prompt"]) == (found, shown)


@pytest.mark.inv("CTX-3", "WALK-4")
def test_what_is_sent_as_null_is_absent_and_asked_for_where_it_decides(make: Maker) -> None:
    served = make(document(step("a"), step("b", when=IS_TWO), step("c", prompt=SHOWN)))
    first = served.start("test.flow", context={"level": 1})
    refused = served.advance(first, context={"level": None})
    assert blockers_of(refused) == [("MISSING_REQUIRED_OUTPUT", "level")]
    assert step_of(served.advance(refused, None, context={"level": 2})) == "b"
    absent = make(document(step("a"), step("b", when={"var": "level", "exists": True}), step("c", prompt=SHOWN)))
    gone = absent.advance(absent.start("test.flow", context={"level": 1}), context={"level": None})
    assert (step_of(gone), gone["pending"]["prompt"]) == ("c", "level=[context key not set: level]")


@pytest.mark.inv("WALK-4", "BLK-1")
def test_a_key_that_is_missing_where_it_decides_is_asked_for_and_is_never_false(make: Maker) -> None:
    way = choose("way", (IS_TWO, [step("b")]), (IS_FAST, [step("c")]), otherwise=[step("d")])
    served = make(document(step("a"), way))
    first = served.start("test.flow")
    refused = served.advance(first, context={"mode": "slow"})
    (blocker,) = refused["blockers"]
    assert blocker["code"] == "MISSING_REQUIRED_OUTPUT"
    assert blocker["pointer"] == {"kind": "context_key", "key": "level"}
    blank = {"path": "context.level", "what": "the value of level"}
    assert (step_of(refused), refused["nextCall"]["fill"]) == ("a", [blank])
    assert step_of(served.advance(refused, None, context={"level": 1})) == "d"


@pytest.mark.parametrize(
    ("context", "found"), [({"level": 2}, "b"), ({"level": 1, "mode": "fast"}, "c"), ({"level": 1, "mode": "x"}, "d")]
)
def test_a_key_that_only_a_way_not_taken_would_read_is_not_asked_for(
    make: Maker, context: Document, found: str
) -> None:
    way = choose("way", (IS_TWO, [step("b")]), (IS_FAST, [step("c")]), otherwise=[step("d")])
    unread = loop("l", step("e"), forEach={"items": "things"}, when={"var": "is_urgent", "equals": True})
    beside = choose("beside", ({"var": "level", "lt": 0}, [unread]))
    served = make(document(step("a"), way, beside, step("z")))
    second = served.advance(served.start("test.flow"), context=context)
    assert step_of(second) == found
    assert step_of(served.advance(second)) == "z"


@pytest.mark.inv("WALK-4")
@pytest.mark.parametrize("level", ["2", True, [2], {"n": 2}], ids=repr)
def test_a_value_that_cannot_be_compared_is_refused_by_name_and_the_step_stays(make: Maker, level: object) -> None:
    sets = [{"key": "box", "value": {"is": "set"}}]
    later = step("b", when={"var": "level", "gt": 1}, prompt="{{box.is}}")
    served = make(document(step("a", prompt="{{box.is}}", set=sets), later, step("c")))
    first = served.start("test.flow")
    refused = served.advance(first, context={"level": level})
    assert blockers_of(refused) == [("INVALID_REQUIRED_OUTPUT", "level")]
    assert refused["pending"]["prompt"] == "[context key not set: box.is]"
    assert served.advance(refused, None, context={"level": 2})["pending"]["prompt"] == "set"


# What a step sets.


@pytest.mark.inv("EFF-2")
def test_a_step_is_judged_by_what_stood_before_and_the_next_by_what_it_set(make: Maker) -> None:
    """The rule would ask for a word were it read with what the step itself sets."""
    rule = {"type": "contains", "value": "Hurried", "when": IS_FAST}
    setting = step("a", title="{{mode}}", set=[{"key": "mode", "value": "fast"}], validationCriteria=rule)
    served = make(document(setting, step("b", title="{{mode}}", when=IS_FAST, validationCriteria=rule), step("c")))
    first = served.start("test.flow", context={"mode": "slow"})
    second = served.advance(first)
    assert (first["pending"]["title"], step_of(second), second["pending"]["title"]) == ("slow", "b", "fast")
    assert blockers_of(served.advance(second)) == [("INVALID_REQUIRED_OUTPUT", "wr.contracts.notes")]


@pytest.mark.parametrize(
    ("action", "place"),
    [({"key": "a.b", "value": 1}, "set[0].key"), ({"key": "mode"}, "set[0]"), ({"value": 1}, "set[0]")],
    ids=["a path", "no value", "no key"],
)
def test_what_a_step_cannot_set_is_refused_at_its_place_before_any_run(
    make: Maker, action: Document, place: str
) -> None:
    served = make(document(step("a", set=[action]), step("b")))
    refused = served.start("test.flow")
    assert refused.code is ErrorCode.WORKFLOW_INVALID
    assert any(place in one["path"] for one in refused["details"]["diagnostics"])


# What is no context.


@pytest.mark.inv("CTX-4", "ANS-9")
@pytest.mark.parametrize(
    ("context", "path"),
    [
        ('{"a": {"b": [1, NaN]}}', "context.a.b[1]"),
        ('{"a": {"b": [1, -Infinity]}}', "context.a.b[1]"),
        ({"a": {"b": 2**53}}, "context.a.b"),
        ({"a": [0, -(2**53)]}, "context.a[1]"),
        ('{"a": ["\\ud800"]}', "context.a[0]"),
        ('{"a": {"\\udfff": 1}}', "context.a"),
        ('{"\\ud800": 1}', "context"),
        ('{1: "a key that is no text"}', "context"),
        ([1], "context"),
        ({"a": {"__proto__": 1}}, "context.a"),
    ],
    ids=str,
)
def test_what_cannot_be_recorded_is_refused_with_its_place_at_a_start_and_at_an_advance(
    make: Maker, context: Any, path: str
) -> None:
    served = make(document(step("a"), step("b")))
    first = served.start("test.flow")
    recorded = served.events(first)
    for refused in (served.start("test.flow", context=context), served.advance(first, context=context)):
        assert refused.code is ErrorCode.VALIDATION_ERROR
        assert refused["details"]["path"] == path
        assert f"`{path}`" in refused["message"] or path == "context"
    assert served.events(first) == recorded
    assert step_of(served.advance(first, context={"a": 2**53 - 1})) == "b"


# Loops without a pass.

NO_PASS: dict[str, Document] = {
    "while": {"while": {"var": "mode", "equals": "go"}},
    "until": {"until": {"var": "mode", "equals": "stop"}},
}
NO_ITEMS: dict[str, Document] = {"forEach": {"forEach": {"items": "things"}}, "for": {"for": {"countFrom": "level"}}}
EMPTY: Document = {"mode": "stop", "things": [], "level": 0}
WITHOUT_PASS = pytest.mark.parametrize("is_first", [True, False], ids=["at the start", "after a step"])


def without_a_pass(make: Maker, spec: Document, *, is_first: bool) -> list[str]:
    """Return the one trace of a run that passes over a loop, at its start or after a step."""
    before = [] if is_first else [step("a")]
    served = make(document(*before, loop("l", step("b"), **spec), step("z")))
    first = served.start("test.flow", context=EMPTY)
    assert step_of(first if is_first else served.advance(first)) == "z"
    (entries,) = served.trace(first)
    return entries


@WITHOUT_PASS
@pytest.mark.parametrize("kind", NO_PASS)
def test_a_loop_without_a_pass_leaves_why_it_had_none(
    make: Maker,
    kind: str,
    is_first: bool,  # noqa: FBT001 — a table
) -> None:
    entries = without_a_pass(make, NO_PASS[kind], is_first=is_first)
    assert entries == ["evaluated_condition", "exited_loop", "selected_next_step"]


@WITHOUT_PASS
@pytest.mark.parametrize("kind", NO_ITEMS)
def test_a_loop_without_items_or_count_leaves_why_it_had_no_pass(
    make: Maker,
    kind: str,
    is_first: bool,  # noqa: FBT001 — a table
) -> None:
    entries = without_a_pass(make, NO_ITEMS[kind], is_first=is_first)
    assert entries == ["evaluated_condition", "exited_loop", "selected_next_step"]
