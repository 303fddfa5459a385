"""What steps may set: keys that the workflow declares, to what is declared for them."""

import json

import pytest
from tests.support.flow import (
    DECLARED_KINDS,
    RATING,
    Document,
    choose,
    compiled,
    compiled_dialect,
    declared,
    document,
    loop,
    parallel,
    step,
)

from interlock.define.diagnostics import Diagnostics
from interlock.define.document import WorkflowDocument
from interlock.define.front import parse_workflow
from interlock.plan.compile.compiler import Compiled, compile_workflow
from interlock.testing.harness import Harness

DECLARED = [*DECLARED_KINDS, declared("must", required=True)]


def diagnostics(*steps: Document, **more: object) -> Diagnostics:
    parsed = parse_workflow(document(*steps, **{"inputs": DECLARED, **more}))
    assert isinstance(parsed, WorkflowDocument), parsed
    found = compile_workflow(parsed)
    return found.warnings if isinstance(found, Compiled) else found


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("mode", "fast"),
        ("mode", ""),
        ("mode", None),
        ("level", 1),
        ("level", 1.5),
        ("is_urgent", False),
        ("things", []),
        ("box", {}),
        ("speed", "slow"),
        ("must", "this"),
    ],
)
def test_a_value_of_the_declared_type_and_choices_is_set(key: str, value: object) -> None:
    assert diagnostics(step("a", set=[{"key": key, "value": value}])) == ()


@pytest.mark.inv("EFF-1")
@pytest.mark.parametrize(
    ("key", "value", "code"),
    [
        ("mode", 1, "wrong_type"),
        ("level", "1", "wrong_type"),
        ("level", True, "wrong_type"),
        ("is_urgent", 1, "wrong_type"),
        ("things", {}, "wrong_type"),
        ("box", [], "wrong_type"),
        ("speed", 1, "wrong_type"),
        ("speed", "Fast", "wrong_value"),
        ("must", None, "wrong_type"),
    ],
)
def test_a_value_that_does_not_fit_is_a_fault_at_the_value(key: str, value: object, code: str) -> None:
    (found,) = diagnostics(step("a", set=[{"key": key, "value": value}]))
    assert (found.path, found.code) == ("steps[0].set[0].value", code)
    assert repr(key) in found.message


def test_the_fault_of_a_choice_says_what_was_found_and_what_is_wanted() -> None:
    (found,) = diagnostics(step("a", set=[{"key": "speed", "value": "quick"}]))
    assert found.message == '\'speed\' is declared as one of ["fast", "slow"]; the value is "quick".'
    assert found.fix == 'Write one of ["fast", "slow"], or change its `choices` in `inputs`.'


@pytest.mark.inv("EFF-1")
@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ({"value": "fast"}, "string"),
        ({"value": 1}, "number"),
        ({"value": True}, "boolean"),
        ({"value": [1]}, "list"),
        ({"value": {}}, "object"),
        ({"value": None}, "string"),
        ({"from": "level"}, "number"),
    ],
)
def test_a_key_that_is_not_declared_is_a_fault_with_the_entry_to_add(source: Document, kind: str) -> None:
    (found,) = diagnostics(step("a", set=[{"key": "outcome", **source}]))
    assert (found.path, found.code) == ("steps[0].set[0].key", "undeclared_key")
    assert found.fix.startswith("Add to `inputs`: ")
    entry = json.loads(found.fix.removeprefix("Add to `inputs`: "))
    assert entry == {"key": "outcome", "type": kind, "description": "Set by the step a.", "required": False}
    assert diagnostics(step("a", set=[{"key": "outcome", **source}]), inputs=[*DECLARED, entry]) == ()


def test_the_entry_to_add_is_whole_even_for_the_longest_names() -> None:
    (found,) = diagnostics(step("a" * 100, set=[{"key": "k" * 128, "value": 1}]))
    assert json.loads(found.fix.removeprefix("Add to `inputs`: "))["key"] == "k" * 128


def test_a_near_key_is_what_was_meant() -> None:
    (found,) = diagnostics(step("a", set=[{"key": "is_urgnt", "value": True}]))
    assert found.fix.startswith('Did you mean `is_urgent`? Otherwise add to `inputs`: {"key": "is_urgnt", ')


def test_a_guess_never_leaves_the_entry_cut() -> None:
    inputs = [declared("k" * 127)]
    (found,) = diagnostics(step("a" * 100, set=[{"key": "k" * 128, "value": 1}]), inputs=inputs)
    assert json.loads(found.fix.removeprefix("Add to `inputs`: "))["key"] == "k" * 128


def test_the_place_in_the_file_is_reported() -> None:
    text = """id: test.placed
name: Placed
steps:
  - id: a
    title: A
    prompt: Do it.
    set:
      - {key: outcome, value: 1}
"""
    harness = Harness.in_memory()
    harness.workflows.put(text.encode(), ref="placed.yaml")
    refused = harness.start("test.placed")
    (found,) = refused["details"]["diagnostics"]
    assert (found["code"], found["line"], found["column"]) == ("undeclared_key", 8, 10)


@pytest.mark.parametrize(
    ("key", "source"),
    [
        ("mode", "speed"),
        ("pace", "speed"),
        ("level", "level"),
        ("must", "mode"),
        ("mode", "goal"),
        ("mode", "box.name"),
        ("speed", "box.name"),
        ("mode", "artifact.confidence"),
        ("mode", "artifact.summary"),
        ("things", "artifact.findings"),
        ("box", "artifact"),
        ("mode", "assessments.quality.clear"),
    ],
)
def test_a_path_that_fits_or_of_which_nothing_is_known_is_no_fault(key: str, source: str) -> None:
    review = {"contractRef": "wr.contracts.review_verdict"}
    extra = {"assessmentRefs": ["quality"]} if source.startswith("assessments") else {"outputContract": review}
    one = step("a", set=[{"key": key, "from": source}], **extra)
    assert [found for found in diagnostics(one, assessments=[RATING]) if found.severity == "error"] == []


@pytest.mark.parametrize(
    ("key", "source", "code"),
    [
        ("mode", "level", "wrong_type"),
        ("level", "mode", "wrong_type"),
        ("box", "things", "wrong_type"),
        ("speed", "pace", "wrong_value"),
        ("speed", "mode", "wrong_value"),
        ("level", "goal", "wrong_type"),
        ("speed", "goal", "wrong_value"),
        ("level", "assessments.quality.clear", "wrong_type"),
        ("speed", "assessments.quality.clear", "wrong_value"),
    ],
)
def test_a_path_whose_declaration_does_not_fit_is_a_fault_at_the_path(key: str, source: str, code: str) -> None:
    one = step("a", set=[{"key": key, "from": source}], assessmentRefs=["quality"])
    (found,) = diagnostics(one, assessments=[RATING])
    assert (found.path, found.code) == ("steps[0].set[0].from", code)
    assert repr(source) in found.message


def test_an_artifact_as_a_whole_is_an_object() -> None:
    one = step(
        "a", set=[{"key": "mode", "from": "artifact"}], outputContract={"contractRef": "wr.contracts.review_verdict"}
    )
    assert [found.code for found in diagnostics(one)] == ["wrong_type"]


@pytest.mark.inv("EFF-1")
@pytest.mark.parametrize(
    ("key", "field", "code"),
    [
        ("level", "verdict", "wrong_type"),
        ("things", "verdict", "wrong_type"),
        ("mode", "findings", "wrong_type"),
        ("level", "kind", "wrong_type"),
        ("speed", "verdict", "wrong_value"),
        ("speed", "kind", "wrong_value"),
    ],
)
def test_a_field_of_an_artifact_that_never_fits_is_a_fault(key: str, field: str, code: str) -> None:
    review = {"contractRef": "wr.contracts.review_verdict"}
    (found,) = diagnostics(step("a", set=[{"key": key, "from": f"artifact.{field}"}], outputContract=review))
    assert (found.path, found.code) == ("steps[0].set[0].from", code)


@pytest.mark.parametrize("choices", [["clean", "minor", "blocking"], ["Clean", "Minor"], ["clean", "other"]], ids=str)
def test_one_fitting_value_of_a_field_of_an_artifact_is_enough(choices: list[str]) -> None:
    one = step(
        "a",
        set=[{"key": "verdict", "from": "artifact.verdict"}],
        outputContract={"contractRef": "wr.contracts.review_verdict"},
    )
    assert diagnostics(one, inputs=[declared("verdict", choices=choices)]) == ()


def test_every_level_of_the_dimension_must_be_among_the_choices() -> None:
    graded = declared("grade", choices=["low", "high", "none"])
    half = declared("half", choices=["low"])
    sets = [{"key": key, "from": "assessments.quality.clear"} for key in ("grade", "half")]
    (found,) = diagnostics(step("a", set=sets, assessmentRefs=["quality"]), inputs=[graded, half], assessments=[RATING])
    assert found.path == "steps[0].set[1].from"
    assert '["high"]' in found.message


@pytest.mark.inv("EFF-1")
@pytest.mark.parametrize("key", ["iteration", "index", "part", "outer"])
@pytest.mark.parametrize("is_declared", [True, False])
def test_the_variables_of_the_loops_around_a_step_are_not_set(key: str, *, is_declared: bool) -> None:
    inner = loop("inner", step("a", set=[{"key": key, "value": 1}]), forEach={"items": "things", "itemVar": "part"})
    outer = loop("around", inner, **{"for": {"count": 2}}, iterationVar="outer", indexVar="outer_index")
    inputs = [*DECLARED, *([declared(key, "number")] if is_declared else [])]
    found = [one for one in diagnostics(outer, inputs=inputs) if one.severity == "error"]
    assert [(one.path, one.code) for one in found] == [("steps[0].body[0].body[0].set[0].key", "wrong_value")]
    assert "the loop 'around'" in found[0].message or "the loop 'inner'" in found[0].message


def test_outside_its_loop_a_name_is_an_ordinary_key() -> None:
    sets = [{"key": "index", "value": 1}]
    steps = (loop("each", step("a"), forEach={"items": "things"}), step("b", set=sets))
    assert diagnostics(*steps, inputs=[*DECLARED, declared("index", "number")]) == ()
    assert [one.code for one in diagnostics(*steps)] == ["undeclared_key"]


def test_a_pass_is_copied_as_the_number_it_is_and_an_item_as_whatever_it_is() -> None:
    sets = [{"key": "level", "from": "iteration"}, {"key": "mode", "from": "item"}, {"key": "speed", "from": "index"}]
    (found,) = diagnostics(loop("each", step("a", set=sets), forEach={"items": "things"}))
    assert (found.path, found.code) == ("steps[0].body[0].set[2].from", "wrong_type")


FOUND = {
    **declared("found", "list"),
    "items": {
        "type": "object",
        "fields": [{"key": "file", "type": "string"}, {"key": "line", "type": "number", "required": False}],
    },
}
HAS_LINE: Document = {"var": "it.line", "exists": True}
LINE: Document = {"key": "level", "from": "it.line"}
NOTIFY: Document = {"kind": "team.notify", "fields": {"line": {"from": "it.line"}}}
COUNTED: Document = {"key": "level", "compute": {"add": [{"var": "it.line"}, 1]}}


def faults_of_body(*body: Document) -> list[tuple[str, str]]:
    whole = loop("l", *body, forEach={"items": "found", "itemVar": "it"})
    return [(one.path, one.code) for one in diagnostics(whole, inputs=[*DECLARED, FOUND])]


@pytest.mark.inv("EFF-1")
@pytest.mark.parametrize(
    ("work", "part"),
    [
        ({"set": [LINE]}, "set[0].from"),
        ({"set": [{**LINE, "when": {"var": "it.file", "exists": True}}]}, "set[0].from"),
        ({"set": [COUNTED]}, "set[0].compute"),
        ({"emit": [NOTIFY]}, "emit[0].fields.line.from"),
    ],
    ids=str,
)
def test_a_member_that_an_item_may_lack_is_not_read_without_asking(work: Document, part: str) -> None:
    assert faults_of_body(step("a", **work)) == [(f"steps[0].body[0].{part}", "wrong_value")]


@pytest.mark.inv("EFF-1")
@pytest.mark.parametrize(
    "body",
    [
        step("a", set=[{"key": "mode", "from": "it.file"}]),
        step("a", set=[{**LINE, "when": HAS_LINE}]),
        step("a", set=[{**LINE, "when": {"and": [HAS_LINE, {"var": "it.line", "gt": 1}]}}]),
        step("a", set=[{"key": "level", "compute": {"if": [HAS_LINE, {"var": "it.line"}, 0]}}]),
        step("a", set=[LINE], when=HAS_LINE),
        step("a", emit=[{**NOTIFY, "when": HAS_LINE}]),
        choose("c", (HAS_LINE, [step("a", set=[COUNTED])])),
        {**parallel("p", [step("a", set=[LINE])], [step("b")]), "when": HAS_LINE},
    ],
    ids=str,
)
def test_a_member_is_read_where_a_condition_asks_whether_it_exists(body: Document) -> None:
    assert faults_of_body(body) == []


NO_LINE: Document = {"var": "it.line", "exists": False}
HAS_FILE: Document = {"var": "it.file", "exists": True}


@pytest.mark.inv("EFF-1")
@pytest.mark.parametrize(
    ("body", "is_safe"),
    [
        (step("a", set=[{**LINE, "when": NO_LINE}]), False),
        (step("a", set=[LINE], when={"not": HAS_LINE}), False),
        (step("a", set=[LINE], when={"not": NO_LINE}), True),
        (step("a", set=[LINE], when={"or": [HAS_LINE, HAS_FILE]}), False),
        (step("a", set=[LINE], when={"or": [HAS_LINE, {"and": [HAS_FILE, HAS_LINE]}]}), True),
        (step("a", set=[LINE], when={"not": {"or": [NO_LINE, HAS_FILE]}}), True),
        (step("a", set=[LINE], when={"not": {"and": [NO_LINE, HAS_FILE]}}), False),
        (step("a", set=[{"key": "level", "compute": {"if": [HAS_LINE, 0, {"var": "it.line"}]}}]), False),
        (step("a", set=[{"key": "level", "compute": {"if": [NO_LINE, 0, {"var": "it.line"}]}}]), True),
        (choose("c", (HAS_LINE, [step("a")]), otherwise=[step("b", set=[LINE])]), False),
        (choose("c", (NO_LINE, [step("a")]), otherwise=[step("b", set=[LINE])]), True),
        (choose("c", (NO_LINE, [step("a")]), (HAS_FILE, [step("b", set=[LINE])])), True),
        (choose("c", (HAS_LINE, [step("a")]), (HAS_FILE, [step("b", set=[LINE])])), False),
    ],
    ids=str,
)
def test_only_a_condition_that_is_false_without_the_member_makes_it_safe_to_read(
    body: Document,
    is_safe: bool,  # noqa: FBT001 — parametrised
) -> None:
    assert (faults_of_body(body) == []) is is_safe


def test_steps_are_checked_wherever_they_stand_and_two_may_set_one_key() -> None:
    fine, bad = [{"key": "mode", "value": "x"}], [{"key": "mode", "value": 1}]
    steps = (
        step("a", set=fine),
        step("b", set=fine),
        choose("c", ({"var": "is_urgent", "equals": True}, [step("d", set=bad)]), otherwise=[step("e", set=bad)]),
        parallel("p", [step("f", set=bad)], [step("g", set=fine)]),
    )
    assert [one.path for one in diagnostics(*steps)] == [
        "steps[2].choose[0].steps[0].set[0].value",
        "steps[2].otherwise[0].set[0].value",
        "steps[3].branches[0].steps[0].set[0].value",
    ]


def test_a_workflow_knows_which_steps_set_a_key() -> None:
    sets = [{"key": "mode", "value": "x"}, {"key": "level", "value": 1}]
    workflow = compiled(step("a", set=sets), step("b", set=sets[:1]), inputs=DECLARED)
    assert workflow.set_by == {"mode": ("a", "b"), "level": ("a",)}
    assert compiled_dialect(step("a")).set_by == {}


# The actions of one step beside each other.


@pytest.mark.inv("DEC-3")
def test_a_step_that_sets_a_key_twice_is_refused_at_the_second() -> None:
    sets = [{"key": "mode", "value": "x"}, {"key": "level", "value": 1}, {"key": "mode", "from": "goal"}]
    (found,) = diagnostics(step("a", set=sets))
    assert (found.path, found.code, found.severity) == ("steps[0].set[2].key", "duplicate_write", "error")


@pytest.mark.inv("DEC-3")
@pytest.mark.parametrize("source", ["speed", "box.size"])
def test_reading_what_another_action_of_the_step_sets_is_warned_of_and_compiles(source: str) -> None:
    read: Document = {"key": "pace" if source == "speed" else "mode", "from": source}
    written: list[Document] = [{"key": "speed", "value": "fast"}, {"key": "box", "value": {}}]
    for sets in ([read, *written], [*written, read]):
        (found,) = diagnostics(step("a", set=sets))
        assert (found.path, found.code) == (f"steps[0].set[{sets.index(read)}].from", "same_pass_read_after_write")
        assert found.severity == "warning"
        assert "from before" in found.message


def test_reading_the_key_itself_or_evidence_or_in_a_later_step_is_no_chain() -> None:
    review = {"outputContract": {"contractRef": "wr.contracts.review_verdict"}}
    inputs = [*DECLARED, declared("artifact", "object")]
    sets: list[Document] = [{"key": "box", "from": "artifact"}, {"key": "artifact", "value": {}}]
    first = step("a", **review, set=sets)
    later = step("b", set=[{"key": "mode", "from": "mode"}, {"key": "things", "from": "box.list"}])
    assert [one.code for one in diagnostics(first, later, inputs=inputs)] == []


@pytest.mark.inv("EFF-2")
def test_each_action_sets_what_stood_there_before_the_step() -> None:
    sets = [{"key": "pace", "from": "speed"}, {"key": "mode", "from": "pace"}]
    harness = Harness.in_memory(document(step("a", set=sets), step("b", prompt="{{pace}} {{mode}}"), inputs=DECLARED))
    first = harness.start("test.flow", context={"speed": "fast", "pace": "slow", "must": "this"})
    assert "fast slow" in harness.advance(first)["pending"]["prompt"]
