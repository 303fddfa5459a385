"""Diagnostics of wrong forms: what is written instead corrects the file, and one mistake has one diagnostic."""

from typing import Any

import pytest
import yaml

from interlock.define.diagnostics import Diagnostics
from interlock.define.document import WorkflowDocument
from interlock.define.front import parse_workflow
from interlock.define.operations.files import parse_definition_file
from interlock.define.source.text_form import parse_text
from interlock.define.source.yaml_form import YamlFault, load_yaml

STEP: dict[str, Any] = {"id": "a", "title": "A", "prompt": "Do a."}
BARE: dict[str, Any] = {"id": "a", "title": "A"}
LOOP: dict[str, Any] = {"loopId": "l", "title": "L", "maxIterations": 2, "while": {"kind": "loop_control"}}
TYPES = "`step`, `loop`, `parallel`, `choose`, `template`, `await`, `check`, `approve`"


def diagnosed(*steps: object, **more: object) -> Diagnostics:
    found = parse_workflow({"id": "test.one", "name": "One", "steps": list(steps), **more})  # pyright: ignore[reportArgumentType]
    return found.warnings if isinstance(found, WorkflowDocument) else found


def fixes(*steps: object, **more: object) -> list[tuple[str, str, str]]:
    return [(one.path, one.code, one.fix) for one in diagnosed(*steps, **more)]


@pytest.mark.inv("PLAN-25")
def test_a_loop_whose_body_is_missing_or_misspelt_has_one_diagnostic() -> None:
    assert fixes(LOOP) == [("steps[0].body", "missing_key", "Add `body`: the steps to repeat.")]
    assert fixes({**LOOP, "steps": [STEP]}) == [("steps[0].steps", "unknown_key", "Did you mean `body`?")]
    assert fixes({**LOOP, "boddy": [STEP]}) == [("steps[0].boddy", "unknown_key", "Did you mean `body`?")]


@pytest.mark.inv("PLAN-25")
def test_a_step_with_only_the_repetition_of_a_loop_is_a_loop_unless_it_has_a_prompt() -> None:
    looped = {"id": "l", "title": "L", "maxIterations": 2, "forEach": {"items": "goal"}, "steps": [STEP]}
    assert fixes(looped) == [
        ("steps[0].id", "unknown_key", "Did you mean `loopId`?"),
        ("steps[0].steps", "unknown_key", "Did you mean `body`?"),
    ]
    del looped["maxIterations"]
    assert ("steps[0].maxIterations", "missing_key") in [(one.path, one.code) for one in diagnosed(looped)]
    (prompted,) = diagnosed({**STEP, "while": {"var": "goal", "exists": True}})
    assert (prompted.path, prompted.code) == ("steps[0].while", "unknown_key")


@pytest.mark.inv("PLAN-25")
def test_an_unknown_type_is_answered_with_every_type_and_the_nearest() -> None:
    for name in ("task", "gate"):
        (found,) = diagnosed({**STEP, "type": name})
        assert (found.path, found.code) == ("steps[0].type", "wrong_value")
        assert (found.message, found.fix) == (
            f"Found {name!r}: there is no such type.",
            f"Write one of the types {TYPES}.",
        )
    assert fixes({**BARE, "type": "task"}) == fixes({**STEP, "type": "task"}), "no prompt is asked for"
    nearest = f"Did you mean `parallel`? The types are {TYPES}."
    assert fixes({**STEP, "type": "paralel"}) == [("steps[0].type", "wrong_value", nearest)]
    by_keys = f"Did you mean `approve`? The types are {TYPES}."
    assert fixes({**BARE, "type": "gate", "question": "May it be merged?"}) == [
        ("steps[0].type", "wrong_value", by_keys)
    ]
    (number,) = diagnosed({**STEP, "type": 3})
    assert (number.fix, number.replacement) == (f"Write one of the types {TYPES}.", None)


@pytest.mark.inv("PLAN-25")
@pytest.mark.parametrize(
    ("key", "value", "kind"),
    [("question", "May it be merged?", "approve"), ("event", "ci.finished", "await"), ("run", "tests", "check")],
)
def test_a_key_of_a_step_that_waits_asks_for_its_type(key: str, value: str, kind: str) -> None:
    for step in (BARE, STEP):
        assert fixes({**step, key: value}) == [("steps[0].type", "missing_key", f"Add `type: {kind}`.")]
        assert fixes({**step, key: value, "type": kind}) == []


@pytest.mark.inv("PLAN-26")
def test_a_key_of_another_kind_of_step_names_the_kinds_that_have_it() -> None:
    until = {**STEP, "until": {"var": "goal", "exists": True}}
    (found,) = diagnosed(until)
    assert found.fix == "Only steps of these types have this key: `loop`. Remove it, or write it in such a step."
    assert found.replacement is None
    (several,) = diagnosed({**LOOP, "while": {"var": "goal", "exists": True}, "set": [], "body": [STEP]})
    assert "`step`, `await`, `check`, `approve`." in several.fix


@pytest.mark.inv("PLAN-26")
def test_a_key_is_said_to_be_there_already_only_if_it_is_nearly_the_same() -> None:
    (twice,) = diagnosed({**STEP, "promt": "x"})
    assert twice.fix == "`prompt` is there already. Remove the key."
    (other,) = diagnosed({**STEP, "tile_x": 1})
    assert other.fix == "Remove the key."


@pytest.mark.inv("PLAN-26")
@pytest.mark.parametrize(
    ("written", "intended"),
    [("==", "equals"), ("eq", "equals"), ("!=", "notEquals"), (">", "gt"), (">=", "gte"), ("<", "lt"), ("<=", "lte")],
)
def test_an_operator_of_another_language_names_the_operator(written: str, intended: str) -> None:
    (found,) = diagnosed({**STEP, "when": {"var": "goal", written: "x"}})
    assert (found.code, found.fix) == ("unknown_key", f"Did you mean `{intended}`?")


@pytest.mark.inv("PLAN-26")
def test_a_pattern_in_a_condition_names_the_operators_on_texts() -> None:
    fix = "There are no patterns in conditions. Write `contains`, `startsWith` or `endsWith`."
    (found,) = diagnosed({**STEP, "when": {"var": "goal", "matches": "^x"}})
    assert (found.fix, found.replacement) == (fix, None)
    (elsewhere,) = diagnosed({**STEP, "matches": "^x"})
    assert elsewhere.fix == "Remove the key."


@pytest.mark.inv("PLAN-26")
def test_a_list_or_a_text_that_is_too_short_says_how_much_is_missing() -> None:
    branches = {"id": "p", "title": "P", "branches": [{"steps": [STEP]}]}
    assert fixes(branches) == [("steps[0].branches", "wrong_value", "Add at least 1 entry.")]
    several = [{"id": "r", "purpose": "R.", "dimensions": [{"id": "d", "purpose": "D.", "levels": ["low"]}]}]
    (found,) = diagnosed(STEP, assessments=several)
    assert found.fix == "Add at least 1 entry."


@pytest.mark.inv("PLAN-26")
def test_a_short_name_of_a_preference_names_the_preference() -> None:
    for short, intended in (("autonomy", "recommendedAutonomy"), ("riskPolicy", "recommendedRiskPolicy")):
        (found,) = diagnosed(STEP, recommendedPreferences={short: "x"})
        assert found.fix == f"Did you mean `{intended}`?"


@pytest.mark.inv("PLAN-26")
def test_a_value_that_does_not_match_a_pattern_says_what_the_key_is() -> None:
    (event,) = diagnosed({**BARE, "type": "await", "event": "done"})
    assert event.fix.startswith("`event` is the kind of the event, `namespace.name`, such as `ci.finished`. Write a")
    (run,) = diagnosed({**BARE, "type": "check", "run": "make test"})
    assert run.fix.startswith("`run` is the name of a check in `config.toml`, or in the project's")


@pytest.mark.inv("PLAN-26")
def test_a_native_file_with_a_version_is_told_what_the_version_does() -> None:
    explained = "`version` makes this a WorkRail file: remove `version` to make it a native file."
    found = {one.path: one.fix for one in diagnosed(STEP, version=1)}
    assert found == {
        "description": f"Add the key. {explained}",
        "version": f"Write a string. {explained}",
    }


@pytest.mark.inv("PLAN-26")
@pytest.mark.parametrize("make_parser", [yaml.CSafeLoader, yaml.SafeLoader], ids=["c", "python"])
@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("title: Do: it\n", 'Put the text in quotes, because it contains a colon: `title: "Do: it"`.'),
        ("a:\n  - id: x: y # no\n", 'Put the text in quotes, because it contains a colon: `id: "x: y"`.'),
        (f"a: b: {'x' * 60}\n", "Put the text in quotes, because it contains a colon."),
        (
            f"a: b: {'x' * 300}\n",
            "Begin the keys of one object in the same column, or put a text that contains a colon in quotes.",
        ),
        (
            "a: b\n c: d\n",
            "Begin the keys of one object in the same column, or put a text that contains a colon in quotes.",
        ),
        ("steps:\n\t- id: a\n", "Indent by spaces: YAML allows no tab here."),
        ("a: @x\n", "Put the text in quotes, because it begins with '@'."),
        ("a: 'x\n", "Correct the YAML."),
        ("a: [1, 2\nb: 3\n", "Correct the YAML."),
    ],
)
def test_the_usual_mistakes_in_yaml_say_what_to_write(make_parser: Any, text: str, fix: str) -> None:
    found = load_yaml(text, make_parser)
    assert isinstance(found, YamlFault)
    assert (found.code, found.fix) == ("not_yaml", fix)


@pytest.mark.inv("PLAN-26")
def test_a_definition_that_is_no_object_is_told_how_a_definition_begins() -> None:
    refused = parse_definition_file(b"[]", "json")
    assert isinstance(refused, tuple)
    (found,) = refused
    assert found.fix == "Write one object. A definition begins with `kind`: `block`, `flow` or `contract`."
    workflow = parse_text(b"[]", "json")
    assert not isinstance(workflow, dict)
    assert "A workflow begins with `id`" in workflow.fix
