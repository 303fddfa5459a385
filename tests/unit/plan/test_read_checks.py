"""What conditions, needs and loops may read, as checked before any run."""

from typing import Any

import pytest
from tests.support.flow import DECLARED_KINDS, Document, deciding, document, loop, step

from interlock.define.document import WorkflowDocument
from interlock.define.front import FaultyDocument, parse_document, parse_workflow
from interlock.kernel.budgets.workflow import CHOICE_DEPTH_MAX
from interlock.plan.check.checks import check_document
from interlock.plan.compile.compiler import faults_beside


def faults(*steps: Document, **more: Any) -> list[tuple[str, str]]:
    """Return place and message of each fault of a document."""
    parsed = parse_workflow(document(*steps, **{"inputs": DECLARED_KINDS, **more}))
    found = check_document(parsed) if isinstance(parsed, WorkflowDocument) else parsed
    return [(one.path, one.message) for one in found if one.severity == "error"]


@pytest.mark.inv("DEC-12")
@pytest.mark.parametrize(
    ("operand", "words"), [(5, "a number"), (True, "true or false"), (["x"], "a list"), ({"x": 1}, "an object")]
)
@pytest.mark.parametrize("key", ["mode", "goal"])
def test_a_string_cannot_contain_anything_but_a_string(key: str, operand: object, words: str) -> None:
    message = f"{key!r} is a string, but `contains` with {words} needs a list."
    assert faults(step("a", when={"var": key, "contains": operand})) == [("steps[0].when", message)]
    action: Document = {"key": "level", "value": 1, "when": {"var": key, "contains": operand}}
    assert faults(step("a", set=[action])) == [("steps[0].set[0].when", message)]


@pytest.mark.inv("DEC-12")
@pytest.mark.parametrize("when", [{"var": "things", "contains": 5}, {"var": "mode", "contains": "x"}], ids=str)
def test_a_list_contains_anything_and_a_string_strings(when: Document) -> None:
    assert faults(step("a", when=when)) == []


@pytest.mark.parametrize("path", ["box.constructor", "box.__proto__.x", "box.x.prototype"])
def test_a_path_through_a_reserved_key_is_never_read(path: str) -> None:
    message = f"The path {path!r} contains a reserved key, which cannot be sent."
    whole: Document = loop("l", step("b"), **{"for": {"countFrom": path}})
    assert faults(step("a", needs=[path])) == [("steps[0].needs[0]", message)]
    assert faults(step("a", when={"var": path, "equals": 1})) == [("steps[0].when", message)]
    assert faults(step("a", when={"not": {"var": path, "exists": True}})) == [("steps[0].when", message)]
    assert faults(step("a", set=[{"key": "mode", "from": path}])) == [("steps[0].set[0].from", message)]
    assert faults(whole) == [("steps[0].for.countFrom", message)]


def chain(length: int) -> Document:
    """Return named conditions of which each refers to the one before, and `c<length>` is the last."""
    named: Document = {"c1": {"var": "goal", "equals": "x"}}
    for number in range(2, length + 1):
        named[f"c{number}"] = {"not": {"kind": "condition_ref", "conditionId": f"c{number - 1}"}}
    return named


def test_a_long_chain_of_named_conditions_is_too_deep_and_no_cycle() -> None:
    most = CHOICE_DEPTH_MAX
    last: Document = {"kind": "condition_ref", "conditionId": f"c{most}"}
    assert faults(step("a", when=last), conditions=chain(most)) == []
    message = f"Named conditions nest deeper than {most} levels here."
    assert faults(step("a"), conditions=chain(most + 1)) == [("conditions.c2.not", message)]


@pytest.mark.parametrize(
    "when",
    [
        {"var": "goal"},
        {"var": "goal", "gt": None},
        {"kind": "loop_control"},
        {"not": {"kind": "loop_control"}},
        {"kind": "condition_ref", "conditionId": "gone"},
        {"kind": "condition_ref", "conditionId": "self"},
    ],
    ids=str,
)
def test_a_faulty_condition_has_no_second_fault(when: Document) -> None:
    itself = {"self": {"kind": "condition_ref", "conditionId": "self"}} if "self" in when.values() else {}
    for whole in (step("a", when=when), loop("l", step("b"), **{"while": when}), loop("l", step("b"), until=when)):
        found = parse_document(document(whole, conditions=itself))
        if isinstance(found, FaultyDocument):
            assert found.recovered is not None
            assert faults_beside(found.diagnostics, found.recovered) == ()
        else:
            assert when == {"kind": "loop_control"}, "only `while` of a loop may read it"


@pytest.mark.inv("DEC-12")
@pytest.mark.parametrize(
    ("turning", "path"),
    [
        ({"not": {"kind": "loop_control"}}, "steps[0].while.not"),
        ({"not": {"not": {"kind": "loop_control"}}}, "steps[0].while.not.not"),
        ({"not": {"and": [{"var": "goal", "equals": "x"}, {"kind": "loop_control"}]}}, "steps[0].while.not"),
        ({"or": [{"not": {"kind": "condition_ref", "conditionId": "again"}}]}, "steps[0].while.or[0].not"),
        ({"kind": "condition_ref", "conditionId": "ended"}, "conditions.ended.not"),
    ],
    ids=str,
)
def test_the_decision_of_the_agent_is_not_reversed(turning: Document, path: str) -> None:
    whole = loop("l", deciding("d"), **{"while": turning})
    used: Document = {"again": {"kind": "loop_control"}}
    if "ended" in turning.values():
        used["ended"] = {"not": {"kind": "loop_control"}}
    message = "`not` reverses `loop_control`: `continue` of the agent would end the loop."
    assert faults(whole, conditions=used) == [(path, message)]


TWICE: Document = {"for": {"count": 2}}
UNDECLARED = "The key {!r} is not declared."


def test_a_variable_of_a_loop_is_read_only_inside_of_it() -> None:
    each: Document = {"forEach": {"items": "things", "itemVar": "thing"}}
    message = "The condition reads the key 'iteration', which is not declared."
    read: Document = {"var": "iteration", "gt": 1}
    after = step("b", when=read, needs=["index", "thing"])
    assert faults(loop("l", step("a", when=read, needs=["index", "thing.name"]), **each)) == []
    assert faults(loop("l", loop("m", step("a", when=read), **TWICE), when=read, **TWICE), after) == [
        ("steps[0].when", message),
        ("steps[1].when", message),
        ("steps[1].needs[0]", UNDECLARED.format("index")),
        ("steps[1].needs[1]", UNDECLARED.format("thing")),
    ]


@pytest.mark.parametrize(
    ("kind", "place", "key"),
    [
        ({"for": {"countFrom": "iteration"}}, "for.countFrom", "iteration"),
        ({"forEach": {"items": "item"}}, "forEach.items", "item"),
    ],
    ids=str,
)
def test_how_often_a_loop_runs_does_not_depend_on_its_own_variables(kind: Document, place: str, key: str) -> None:
    assert faults(loop("l", step("a"), **kind)) == [(f"steps[0].{place}", UNDECLARED.format(key))]
    outer: Document = {"forEach": {"items": "things"}}
    assert faults(loop("k", loop("l", step("a"), **kind), **outer)) == []


def test_the_condition_of_a_loop_may_read_its_own_variables() -> None:
    assert faults(loop("l", step("a"), **{"while": {"var": "iteration", "lt": 3}})) == []
    assert faults(loop("k", loop("l", step("a"), until={"var": "outer", "gt": 3}), iterationVar="outer", **TWICE)) == []


MODULES: Document = {
    "key": "modules",
    "type": "list",
    "description": "M.",
    "items": {
        "type": "object",
        "fields": [
            {"key": "name", "type": "string"},
            {"key": "state", "type": "string", "choices": ["old", "new"]},
            {"key": "parts", "type": "object"},
            {"key": "files", "type": "list", "required": False},
        ],
    },
}
NAMES: Document = {"key": "names", "type": "list", "description": "N.", "items": {"type": "string"}}
KEYS = [*DECLARED_KINDS, MODULES, NAMES]


def of_each(items: str, *body: Document) -> list[tuple[str, str]]:
    return faults(loop("l", *body, forEach={"items": items, "itemVar": "it"}), inputs=KEYS)


@pytest.mark.inv("DEC-12", "CTX-13")
@pytest.mark.parametrize(
    ("items", "path", "message"),
    [
        ("modules", "it.missing", "'it.missing' cannot exist: an item has no 'missing'."),
        ("modules", "it.name.x", "'it.name.x' cannot exist: 'it.name' is a string."),
        ("modules", "it.name", "'it.name' is a string, but `gt` needs a number."),
        ("names", "it.name", "'it.name' cannot exist: 'it' is a string."),
        ("names", "it", "'it' is a string, but `gt` needs a number."),
    ],
)
def test_a_read_that_contradicts_the_declared_items_is_a_fault(items: str, path: str, message: str) -> None:
    here = "steps[0].body[0]"
    assert of_each(items, step("a", when={"var": path, "gt": 1})) == [(f"{here}.when", message)]
    action: Document = {"key": "level", "value": 1, "when": {"var": path, "gt": 1}}
    assert of_each(items, step("a", set=[action])) == [(f"{here}.set[0].when", message)]
    if "cannot exist" in message:
        assert of_each(items, step("a", needs=[path])) == [(f"{here}.needs[0]", message)]
        action = {"key": "mode", "from": path}
        assert of_each(items, step("a", set=[action])) == [(f"{here}.set[0].from", message)]


@pytest.mark.inv("DEC-12", "CTX-13")
def test_what_is_set_from_an_item_fits_its_declaration() -> None:
    [found] = of_each("modules", step("a", set=[{"key": "level", "from": "it.name"}]))
    assert found == ("steps[0].body[0].set[0].from", "'level' is declared as a number; 'it.name' is a string.")
    [found] = of_each("modules", step("a", set=[{"key": "level", "compute": {"add": [{"var": "it.name"}, 1]}}]))
    assert found[1] == "`add` needs a number; operand 1 is a string."


def test_a_read_that_fits_the_declared_items_is_no_fault() -> None:
    reads: list[Document] = [
        {"var": "it.name", "startsWith": "x"},
        {"var": "it.parts.any.depth", "gt": 1},
        {"var": "it.files", "contains": 1},
    ]
    inner = loop("m", step("b", needs=["one"]), forEach={"items": "it.files", "itemVar": "one"}, iterationVar="j")
    assert of_each("modules", *(step(f"a{at}", when=one) for at, one in enumerate(reads)), inner) == []
    assert of_each("things", step("a", when={"var": "it.any", "gt": 1})) == []


def test_a_variable_of_two_loops_may_be_an_item_of_either() -> None:
    both = [
        loop(name, step(f"a-{name}", needs=["it.name"]), forEach={"items": items, "itemVar": "it"})
        for name, items in (("l", "modules"), ("m", "things"))
    ]
    assert faults(*both, inputs=KEYS) == []


def warned(*steps: Document, **more: Any) -> list[tuple[str, str]]:
    """Return place and fix of each comparison that always has the same result."""
    parsed = parse_workflow(document(*steps, **{"inputs": DECLARED_KINDS, **more}))
    assert isinstance(parsed, WorkflowDocument)
    found = [one for one in check_document(parsed) if one.code == "constant_comparison"]
    assert all(one.severity == "warning" for one in found)
    return [(one.path, one.fix) for one in found]


NO_BOOLEAN = " A text such as `yes` or `'true'` is no boolean."


@pytest.mark.inv("DEC-16")
@pytest.mark.parametrize(
    ("when", "fix"),
    [
        ({"var": "is_urgent", "equals": "yes"}, f"Write `equals: true`.{NO_BOOLEAN}"),
        ({"var": "is_urgent", "notEquals": "False"}, f"Write `notEquals: false`.{NO_BOOLEAN}"),
        (
            {"var": "is_urgent", "equals": 1},
            "Compare it with true or false, or change the declared type of 'is_urgent'.",
        ),
        ({"var": "level", "equals": "3"}, "Write `equals: 3`."),
        ({"var": "level", "equals": "-0.5"}, "Write `equals: -0.5`."),
        ({"var": "level", "equals": "NaN"}, "Compare it with a number, or change the declared type of 'level'."),
        ({"var": "mode", "equals": 3}, 'Write `equals: "3"`.'),
        ({"var": "goal", "equals": ["x"]}, "Compare it with a string, or compare another key."),
        ({"var": "speed", "equals": "FAST"}, 'Write `equals: "fast"`.'),
        ({"var": "speed", "in": ["fst", "slov"]}, 'Write `in: ["fast", "slow"]`.'),
        (
            {"var": "speed", "in": ["c", "d"]},
            'Compare it with one of ["fast", "slow"], or add the value to the `choices` of \'speed\'.',
        ),
    ],
    ids=str,
)
def test_a_comparison_with_a_value_that_the_key_never_has_is_a_warning(when: Document, fix: str) -> None:
    assert warned(step("a", when=when)) == [("steps[0].when", fix)]
    assert warned(step("a", when={"not": when})) == [("steps[0].when", fix)]
    action: Document = {"key": "level", "value": 1, "when": when}
    assert warned(step("a", set=[action])) == [("steps[0].set[0].when", fix)]
    assert warned(loop("l", step("b"), until=when)) == [("steps[0].until", fix)]


@pytest.mark.inv("DEC-16")
def test_the_warning_says_which_result_the_comparison_has() -> None:
    for operator, result in (("equals", "never"), ("notEquals", "always")):
        parsed = parse_workflow(document(step("a", when={"var": "speed", operator: "x"}), inputs=DECLARED_KINDS))
        assert isinstance(parsed, WorkflowDocument)
        (found,) = check_document(parsed)
        assert found.message == (
            f'The comparison is {result} true: \'speed\' is one of ["fast", "slow"], and `{operator}` compares it with'
            ' "x".'
        )


@pytest.mark.inv("DEC-16")
@pytest.mark.parametrize(
    "when",
    [
        {"var": "is_urgent", "equals": False},
        {"var": "is_urgent", "equals": None},
        {"var": "level", "equals": 1.0},
        {"var": "speed", "in": ["c", "slow"]},
        {"var": "speed", "in": []},
        {"var": "mode", "equals": "anything"},
        {"var": "box.size", "equals": "x"},
        {"var": "things", "equals": []},
        {"var": "speed", "in": ["x"] * 101},
    ],
    ids=str,
)
def test_a_comparison_that_can_have_either_result_is_no_warning(when: Document) -> None:
    assert warned(step("a", when=when)) == []


@pytest.mark.inv("DEC-16")
def test_a_key_has_the_values_of_all_its_declarations() -> None:
    made = {"key": "made", "description": "Made.", "type": "string", "choices": ["a"]}
    first = step("a", produces=[made])
    read = step("c", when={"var": "made", "equals": "b"})
    assert [at for at, _ in warned(first, read)] == ["steps[1].when"]
    assert warned(first, step("b", produces=[made | {"choices": ["b"]}]), read) == []
    assert warned(first, step("b", produces=[made | {"choices": []}]), read) == []
    number = made | {"type": "number", "choices": []}
    assert warned(first, step("b", produces=[number]), step("c", when={"var": "made", "equals": 3})) == []


@pytest.mark.inv("DEC-16")
def test_an_item_of_a_declared_list_has_the_values_of_its_declaration() -> None:
    member = {"key": "state", "type": "string", "choices": ["open", "done"]}
    listed = {"key": "rows", "description": "R.", "type": "list", "items": {"type": "object", "fields": [member]}}
    names = {"key": "names", "description": "N.", "type": "list", "items": {"type": "string", "choices": ["x", "y"]}}

    def looped(of: str, when: Document, **more: object) -> Document:
        return loop("l", step("b", when=when), forEach={"items": of, **more})

    inputs = [*DECLARED_KINDS, listed, names]
    at = "steps[0].body[0].when"
    found = warned(looped("rows", {"var": "item.state", "equals": "opened"}), inputs=inputs)
    assert found == [(at, 'Write `equals: "open"`.')]
    assert warned(looped("rows", {"var": "item.state", "equals": "open"}), inputs=inputs) == []
    assert [one for one, _ in warned(looped("names", {"var": "item", "equals": "z"}), inputs=inputs)] == [at]
    assert warned(looped("things", {"var": "item", "equals": "z"}), inputs=inputs) == []
    counted = warned(looped("things", {"var": "iteration", "equals": "1"}), inputs=inputs)
    assert counted == [(at, "Write `equals: 1`.")]
    hidden = looped("things", {"var": "speed", "equals": "z"}, itemVar="speed")
    assert warned(hidden, inputs=inputs) == []


@pytest.mark.inv("PLAN-23")
def test_a_placeholder_that_reads_a_member_of_what_is_no_object_is_a_warning() -> None:
    text = "{{goal}} {{goal.x}} {{box.x.y}} {{things.first}} {{is_urgent.x.y}}"
    parsed = parse_workflow(document(step("a", prompt=text), inputs=DECLARED_KINDS))
    assert isinstance(parsed, WorkflowDocument)
    found = list(check_document(parsed))
    assert [(one.path, one.severity, one.message) for one in found] == [
        ("steps[0].prompt", "warning", "'goal.x' cannot exist: 'goal' is a string."),
        ("steps[0].prompt", "warning", "'things.first' cannot exist: 'things' is a list."),
        ("steps[0].prompt", "warning", "'is_urgent.x.y' cannot exist: 'is_urgent' is true or false."),
    ]
    assert found[0].fix == "Only objects have members: read 'goal' itself, or another key."
    assert all(one.replacement is None for one in found)
