"""What an agent reads: routines unfolded in place, texts that join under a condition, and values of the context."""

import pytest
from tests.e2e.behaviours.conftest import Maker
from tests.support.flow import IS_FAST, document, step
from tests.support.server import blockers_of, step_of

from interlock.kernel.errors import ErrorCode

ROUTINE = "wr.templates.routine.tension-driven-design"
UNFOLDED = ["a", "design--tensions", "design--candidates", "design--compare", "design--deliver", "z"]


def template(**args: object) -> dict[str, object]:
    return {"type": "template", "id": "design", "templateCall": {"templateId": ROUTINE, "args": args}}


@pytest.mark.inv("PLAN-12")
def test_a_routine_is_unfolded_in_place_with_its_arguments_filled_in(make: Maker) -> None:
    served = make(document(step("a"), template(deliverableName="design-of-x.md"), step("z")))
    answer, found, texts = served.start("test.flow"), list[str | None](), list[str]()
    while not answer["isComplete"]:
        found.append(step_of(answer))
        texts.append(f"{answer['pending']['title']} {answer['pending']['prompt']}")
        answer = served.follow(answer)
    assert found == UNFOLDED
    assert "design-of-x.md" in texts[UNFOLDED.index("design--deliver")]
    assert not [text for text in texts if "{deliverableName}" in text]


def test_a_routine_without_an_argument_that_it_needs_is_refused_before_any_run(make: Maker) -> None:
    served = make(document(step("a"), template(), step("z")))
    refused = served.start("test.flow")
    assert refused.code is ErrorCode.WORKFLOW_INVALID
    assert ROUTINE in refused.text
    assert "deliverableName" in refused.text
    assert any(one["path"].startswith("steps[1]") for one in refused["details"]["diagnostics"])


def test_an_unfolded_step_without_notes_is_refused_like_any_other(make: Maker) -> None:
    served = make(document(template(deliverableName="x.md"), step("z")))
    first = served.start("test.flow")
    refused = served.advance(first, None)
    assert blockers_of(refused) == [("MISSING_REQUIRED_OUTPUT", "wr.contracts.notes")]
    assert step_of(refused) == "design--tensions"
    assert served.rehydrate(refused)["pending"] == first["pending"]
    assert step_of(served.follow(refused)) == "design--candidates"


def test_a_fragment_joins_only_while_the_context_of_its_step_says_so(make: Maker) -> None:
    hurry = {"id": "hurry", "text": "Hurry.", "when": IS_FAST}
    parts = [hurry, {"id": "always", "text": "Then {{mode}}."}]
    served = make(document(*(step(name, promptFragments=parts) for name in "abc")))
    first = served.start("test.flow")
    assert first["pending"]["prompt"] == "Do a.\n\nThen [context key not set: mode]."
    second = served.advance(first, context={"mode": "fast"})
    assert second["pending"]["prompt"] == "Do b.\n\nHurry.\n\nThen fast."
    assert served.advance(second, context={"mode": "slow"})["pending"]["prompt"] == "Do c.\n\nThen slow."


@pytest.mark.inv("PLAN-6")
@pytest.mark.parametrize(
    ("box", "shown"),
    [
        ({"size": 3}, "3"),
        ({"size": "{{mode}}"}, "{{mode}}"),
        ({"size": {"w": [1, None]}}, '{"w":[1,null]}'),
        ({"size": None}, "null"),
        ({"size": False}, "false"),
        ({}, "[context key not set: box.size]"),
        (7, "[context key not set: box.size]"),
        ([1], "[context key not set: box.size]"),
        (None, "[context key not set: box.size]"),
    ],
    ids=repr,
)
def test_a_value_is_shown_where_a_prompt_names_it_and_one_that_is_not_set_is_marked(
    make: Maker, box: object, shown: str
) -> None:
    sized = step("a", title="Size {{box.size}}", prompt="Size: {{box.size}}; {{ box.size }}.")
    served = make(document(sized, step("b"), inputs=[]))
    first = served.start("test.flow", context={} if box is None else {"box": box})
    assert first["pending"]["prompt"] == f"Size: {shown}; {shown}."
    assert first["pending"]["title"] == f"Size {shown}"


@pytest.mark.inv("CTX-3")
def test_null_removes_a_key_and_later_keys_merge_at_the_top(make: Maker) -> None:
    served = make(document(*(step(name, prompt="{{k}} {{o.a}} {{o.b}}") for name in "abcd")))
    first = served.start("test.flow", context={"k": 1, "o": {"a": 1, "b": 2}})
    second = served.advance(first, context={"k": None})
    third = served.advance(second, context={"o": {"b": 3}})
    fourth = served.advance(third, context={"k": 4})
    assert [one["pending"]["prompt"] for one in (first, second, third, fourth)] == [
        "1 1 2",
        "[context key not set: k] 1 2",
        "[context key not set: k] [context key not set: o.a] 3",
        "4 [context key not set: o.a] 3",
    ]
