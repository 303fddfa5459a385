"""What a document declares and reads, judged when it is compiled: each fault with its place, and a fix that works."""

from typing import Any, NamedTuple, cast

import pytest
import yaml

from interlock.define.diagnostics import Diagnostics
from interlock.define.document import WorkflowDocument
from interlock.define.front import FaultyDocument, parse_document
from interlock.define.source.positions import find_positions
from interlock.kernel.budgets import NOTES_INPUT_BYTES_MAX
from interlock.plan.check.checks import check_document
from interlock.plan.compile.compiler import Compiled, compile_workflow, faults_beside
from interlock.service.workflows.catalog import RefusedFile, Source, read_source

K_INPUT = "inputs:\n  - {key: k, description: K, type: string}\n"
RATED = """\
id: test.one
name: One
inputs:
  - {key: k, description: K, type: string}
assessments:
  - id: quality
    purpose: How good
    dimensions:
      - {id: tests, purpose: How tested, levels: [low, high]}
      - {id: words, purpose: How said, levels: [low, high], required: false}
steps:
"""
WORKRAIL = """\
id: one
name: One
description: One
version: '1'
steps:
"""


class Case(NamedTuple):
    """A text that is refused at the line that says `# here`, and what to write there instead."""

    name: str
    text: str
    code: str
    path: str
    fixed: str
    severity: str = "error"


def steps(*lines: str) -> str:
    return "id: test.one\nname: One\nsteps:\n" + "".join(f"  {line}\n" for line in lines)


def with_input(declared: str, *lines: str) -> str:
    return f"inputs:\n  - {{key: n, description: N, {declared}}}\n" + steps(*lines)


_STEP = "- {id: a, title: A, prompt: Look.}"
_WANTED = "{type: contains, value: abc def}"
_LOOP = "- {loopId: l, title: L, maxIterations: 2, body: [{id: b, title: B, prompt: B.}]"


def reviewed(source: str) -> str:
    return K_INPUT + steps(
        "- id: a",
        "  title: A",
        "  prompt: Look.",
        "  outputContract: {contractRef: wr.contracts.gate_verdict}",
        "  produces: [box]",
        "  set:",
        "    - key: k",
        f"      from: {source}  # here",
        "- {id: b, title: B, prompt: B., needs: [k]}",
    )


def rated(source: str) -> str:
    return RATED + (
        "  - id: a\n    title: A\n    prompt: Look.\n    assessmentRefs: [quality]\n    set:\n      - key: k\n"
        f"        from: {source}  # here\n"
    )


def criteria(*lines: str) -> str:
    return steps(
        "- id: a", "  title: A", "  prompt: Look.", "  validationCriteria:", *(f"    {line}" for line in lines)
    )


def workrail(*lines: str) -> str:
    return WORKRAIL + "".join(f"  {line}\n" for line in lines)


def workrail_loop(spec: str) -> str:
    return workrail(
        "- id: l",
        "  type: loop",
        "  title: L",
        "  loop:",
        *(f"    {line}" for line in spec.split("\n")),
        "  body: [{id: b, title: B, prompt: Look.}]",
    )


CASES = (
    Case(
        "two dimensions of one id",
        RATED.replace("{id: words,", "{id: tests,").replace("required: false}", "required: false}  # here")
        + "  - {id: a, title: A, prompt: Look., assessmentRefs: [quality]}\n",
        "duplicate_id",
        "assessments[0].dimensions[1].id",
        "      - {id: tests-2, purpose: How said, levels: [low, high], required: false}",
    ),
    Case(
        "two levels that read the same",
        RATED.replace("levels: [low, high]}", "levels: [low, ' Low']}  # here")
        + "  - {id: a, title: A, prompt: Look., assessmentRefs: [quality]}\n",
        "duplicate_id",
        "assessments[0].dimensions[0].levels[1]",
        "      - {id: tests, purpose: How tested, levels: [low, middle]}",
    ),
    Case(
        "two inputs of one key",
        "inputs:\n  - {key: n, description: N, type: string}\n  - {key: n, description: N, type: number}  # here\n"
        + steps(_STEP),
        "duplicate_id",
        "inputs[1].key",
        "  - {key: n-2, description: N, type: number}",
    ),
    Case(
        "two functions of one name",
        "functionDefinitions:\n  - {name: f, definition: F}\n  - {name: f, definition: G}  # here\n" + steps(_STEP),
        "duplicate_id",
        "functionDefinitions[1].name",
        "  - {name: g, definition: G}",
    ),
    Case(
        "two references of one id",
        "references:\n  - {id: r, title: R, source: a, purpose: P}\n"
        "  - {id: r, title: R, source: b, purpose: P}  # here\n" + steps(_STEP),
        "duplicate_id",
        "references[1].id",
        "  - {id: r-2, title: R, source: b, purpose: P}",
    ),
    Case(
        "two extension points of one slot",
        "extensionPoints:\n  - {slotId: ss, purpose: P, default: d}\n"
        "  - {slotId: ss, purpose: P, default: e}  # here\n" + steps(_STEP),
        "duplicate_id",
        "extensionPoints[1].slotId",
        "  - {slotId: tt, purpose: P, default: e}",
    ),
    Case(
        "two fragments of one id",
        steps(
            "- id: a",
            "  title: A",
            "  prompt: Look.",
            "  promptFragments:",
            "    - {id: f, text: F}",
            "    - {id: f, text: G}  # here",
        ),
        "duplicate_id",
        "steps[0].promptFragments[1].id",
        "      - {id: f-2, text: G}",
    ),
    Case(
        "a reserved input",
        "inputs:\n  - {key: constructor, description: N, type: string}  # here\n" + steps(_STEP),
        "wrong_value",
        "inputs[0].key",
        "  - {key: builder, description: N, type: string}",
    ),
    Case(
        "a reserved key that is produced",
        steps("- id: a", "  title: A", "  prompt: A.", "  produces: [__proto__]  # here"),
        "wrong_value",
        "steps[0].produces[0]",
        "    produces: [proto]",
    ),
    Case(
        "a reserved key that is set",
        steps("- id: a", "  title: A", "  prompt: A.", "  set: [{key: prototype, value: 1}]  # here"),
        "wrong_value",
        "steps[0].set[0].key",
        "    produces: [prototypes]",
    ),
    Case(
        "a choice of another type",
        "inputs:\n  - {key: n, description: N, type: number, choices: [1, a]}  # here\n" + steps(_STEP),
        "wrong_type",
        "inputs[0].choices[1]",
        "  - {key: n, description: N, type: number, choices: [1, 2]}",
    ),
    Case(
        "a goal that is no text",
        "inputs:\n  - {key: goal, description: G, type: number, required: true}  # here\n" + steps(_STEP),
        "wrong_type",
        "inputs[0].type",
        "  - {key: goal, description: G, type: string, required: true}",
    ),
    Case(
        "a count from a text",
        with_input("type: string", _LOOP + ", for: {countFrom: n}}  # here"),
        "wrong_type",
        "steps[0].for.countFrom",
        "  " + _LOOP + ", for: {count: 2}}",
    ),
    Case(
        "items of the goal",
        steps(_LOOP + ", forEach: {items: goal}}  # here"),
        "wrong_type",
        "steps[0].forEach.items",
        "  " + _LOOP + ", for: {count: 1}}",
    ),
    Case(
        "an order of texts",
        with_input("type: string", _STEP.rstrip("}") + ", when: {var: n, gt: 3}}  # here"),
        "wrong_type",
        "steps[0].when",
        "  " + _STEP.rstrip("}") + ", when: {var: n, equals: '3'}}",
    ),
    Case(
        "a loop that turns on an order of texts",
        with_input("type: string", _LOOP + ", while: {var: n, lt: 3}}  # here"),
        "wrong_type",
        "steps[0].while",
        "  " + _LOOP + ", while: {var: index, lt: 3}}",
    ),
    Case(
        "a path into a list",
        with_input("type: list", _STEP.rstrip("}") + ", when: {var: n.0, equals: 3}}  # here"),
        "wrong_type",
        "steps[0].when",
        "  " + _STEP.rstrip("}") + ", when: {var: n, contains: 3}}",
    ),
    Case(
        "a need below a text",
        with_input("type: string", _STEP.rstrip("}") + ", needs: [n.foo]}  # here"),
        "wrong_type",
        "steps[0].needs[0]",
        "  " + _STEP.rstrip("}") + ", needs: [n]}",
    ),
    Case(
        "a path with an empty part",
        with_input("type: object", _STEP.rstrip("}") + ", needs: [n..foo]}  # here"),
        "wrong_value",
        "steps[0].needs[0]",
        "  " + _STEP.rstrip("}") + ", needs: [n.foo]}",
    ),
    Case(
        "a need of what was just removed",
        "inputs:\n  - {key: n, description: N, type: string}\n"
        + steps(
            _STEP.rstrip("}") + ", set: [{key: n, value: null}]}", "- {id: b, title: B, prompt: B., needs: [n]}  # here"
        ),
        "wrong_value",
        "steps[1].needs[0]",
        "  - {id: b, title: B, prompt: B.}",
    ),
    Case("a blank source", reviewed("' '"), "wrong_value", "steps[0].set[0].from", "        from: artifact.verdict"),
    Case(
        "a misspelt member of a contract",
        reviewed("artifact.verdikt"),
        "undeclared_key",
        "steps[0].set[0].from",
        "        from: artifact.verdict",
    ),
    Case(
        "a source below a text of a contract",
        reviewed("artifact.verdict.kind"),
        "wrong_type",
        "steps[0].set[0].from",
        "        from: artifact.verdict",
    ),
    Case(
        "a member of a contract that may be left out",
        K_INPUT
        + steps(
            "- id: a",
            "  title: A",
            "  prompt: Look.",
            "  outputContract: {contractRef: wr.contracts.loop_control}",
            "  set:",
            "    - key: k",
            "      from: artifact.summary  # here",
        ),
        "wrong_value",
        "steps[0].set[0].from",
        "        from: artifact.decision",
    ),
    Case(
        "an artifact that may be left out",
        reviewed("artifact.verdict").replace("gate_verdict}", "gate_verdict, required: false}"),
        "wrong_value",
        "steps[0].set[0].from",
        "        from: box",
    ),
    Case(
        "an artifact that no contract asks for",
        K_INPUT + steps("- {id: a, title: A, prompt: A., set: [{key: k, from: artifact.x}]}  # here"),
        "undeclared_key",
        "steps[0].set[0].from",
        "  - {id: a, title: A, prompt: A., set: [{key: k, from: goal}]}",
    ),
    Case(
        "an undeclared source",
        reviewed("nokey"),
        "undeclared_key",
        "steps[0].set[0].from",
        "        from: box",
    ),
    Case(
        "an assessment that the step does not ask for",
        rated("assessments.qualty.tests"),
        "unknown_assessment",
        "steps[0].set[0].from",
        "        from: assessments.quality.tests",
    ),
    Case(
        "a dimension that the assessment does not have",
        rated("assessments.quality.test"),
        "unknown_assessment",
        "steps[0].set[0].from",
        "        from: assessments.quality.tests",
    ),
    Case(
        "a dimension that may be left unrated",
        rated("assessments.quality.words"),
        "wrong_value",
        "steps[0].set[0].from",
        "        from: assessments.quality.tests",
    ),
    Case(
        "a length of none",
        criteria("type: length", "min: 50", "max: 10  # here"),
        "wrong_value",
        "steps[0].validationCriteria.max",
        "      max: 60",
    ),
    Case(
        "notes of no length",
        criteria("type: length", "max: 0  # here"),
        "wrong_value",
        "steps[0].validationCriteria.max",
        "      max: 10",
    ),
    Case(
        "notes longer than are taken",
        criteria("type: length", f"min: {NOTES_INPUT_BYTES_MAX + 1}  # here"),
        "wrong_value",
        "steps[0].validationCriteria.min",
        "      min: 300",
    ),
    Case(
        "a text wanted and barred",
        steps(f"{_STEP[:-1]}, validationCriteria: [{_WANTED}, {{not: {{type: contains, value: abc}}}}]}}  # here"),
        "wrong_value",
        "steps[0].validationCriteria",
        f"  {_STEP[:-1]}, validationCriteria: [{_WANTED}, {{not: {{type: contains, value: xyz}}}}]}}",
    ),
    Case(
        "two lengths that exclude each other",
        steps(f"{_STEP[:-1]}, validationCriteria: [{{type: length, min: 50}}, {{type: length, max: 5}}]}}  # here"),
        "wrong_value",
        "steps[0].validationCriteria",
        f"  {_STEP[:-1]}, validationCriteria: [{{type: length, min: 50}}, {{type: length, max: 50}}]}}",
    ),
    Case(
        "a text that is longer than the notes may be",
        steps(f"{_STEP[:-1]}, validationCriteria: [{_WANTED}, {{type: length, max: 6}}]}}  # here"),
        "wrong_value",
        "steps[0].validationCriteria",
        f"  {_STEP[:-1]}, validationCriteria: [{_WANTED}, {{type: length, max: 7}}]}}",
    ),
    Case(
        "the opposite of what all notes meet",
        steps(f"{_STEP[:-1]}, validationCriteria: {{not: {{type: length, min: 0}}}}}}  # here"),
        "wrong_value",
        "steps[0].validationCriteria",
        f"  {_STEP[:-1]}, validationCriteria: {{not: {{type: length, min: 2}}}}}}",
    ),
    Case("a blank title", steps("- {id: a, title: ' ', prompt: A.}  # here"), "empty", "steps[0].title", "  " + _STEP),
    Case("a blank prompt", steps("- {id: a, title: A, prompt: ' '}  # here"), "empty", "steps[0].prompt", "  " + _STEP),
    Case(
        "a block of space",
        steps("- {id: a, title: A, promptBlocks: {goal: G, verify: [' ']}}  # here"),
        "empty",
        "steps[0].promptBlocks.verify[0]",
        "  " + _STEP,
    ),
    Case(
        "a loop that turns on what its body produces",
        steps(
            "- loopId: l",
            "  title: L",
            "  maxIterations: 2",
            "  until: {var: k, equals: 1}  # here",
            "  body: [{id: b, title: B, prompt: B., produces: [k]}]",
        ),
        "undeclared_key",
        "steps[0].until",
        "    until: {var: index, equals: 1}",
    ),
    Case(
        "a step called as the compiler calls its own",
        steps("- {id: --end, title: A, prompt: A.}  # here"),
        "duplicate_node_id",
        "steps[0]",
        "  " + _STEP,
    ),
    Case(
        "a condition that leads back to itself",
        "conditions:\n  a: {not: {kind: condition_ref, conditionId: b}}\n"
        "  b: {kind: condition_ref, conditionId: a}  # here\n" + steps(_STEP),
        "wrong_value",
        "conditions.b",
        "  b: {var: goal, exists: true}",
    ),
    Case(
        "a WorkRail count of space",
        workrail_loop("type: for\nmaxIterations: 2\ncount: ' '  # here"),
        "wrong_value",
        "steps[0].loop.count",
        "      count: 2",
    ),
    Case(
        "WorkRail items of space",
        workrail_loop('type: forEach\nmaxIterations: 2\nitems: "\\n"  # here'),
        "wrong_value",
        "steps[0].loop.items",
        "      items: things",
    ),
    Case(
        "a reserved WorkRail count",
        workrail_loop("type: for\nmaxIterations: 2\ncount: constructor  # here"),
        "wrong_value",
        "steps[0].loop.count",
        "      count: builders",
    ),
    Case(
        "a key that a WorkRail rule does not read",
        workrail(
            "- id: a",
            "  title: A",
            "  prompt: A.",
            "  validationCriteria:",
            "    - type: regex",
            "      message: M",
            "      pattern: x",
            "      value: y  # here",
        ),
        "unknown_key",
        "steps[0].validationCriteria[0].value",
        "        flags: i",
        "warning",
    ),
    Case(
        "a blank WorkRail title",
        workrail("- {id: a, title: ' ', prompt: A.}  # here"),
        "empty",
        "steps[0].title",
        "  " + _STEP,
        "warning",
    ),
)


def diagnostics_of(text: str) -> Diagnostics:
    parsed = parse_document(cast("dict[str, Any]", yaml.safe_load(text)))
    if isinstance(parsed, FaultyDocument):
        return parsed.diagnostics
    compiled = compile_workflow(parsed)
    return compiled.warnings if isinstance(compiled, Compiled) else compiled


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_fault_is_reported_where_it_stands_and_its_fix_works(case: Case) -> None:
    found = [one for one in diagnostics_of(case.text) if (one.path, one.code) == (case.path, case.code)]
    lines = case.text.splitlines()
    (number,) = [number for number, line in enumerate(lines) if line.endswith("# here")]

    assert [one.severity for one in found] == [case.severity]
    place = find_positions(case.text.encode(), "yaml", [case.path]).get(case.path)
    assert place is not None
    assert place.line == number + 1
    mended = "\n".join([*lines[:number], case.fixed, *lines[number + 1 :]])
    assert [one for one in diagnostics_of(mended) if one.severity == "error" or one.code == case.code] == []


@pytest.mark.parametrize(
    ("text", "guess"),
    [
        (reviewed("artifact.verdikt"), "`artifact.verdict`"),
        (reviewed("boxx"), "`box`"),
        (rated("assessments.qualty.tests"), "`assessments.quality`"),
        (rated("assessments.quality.test"), "`assessments.quality.tests`"),
    ],
)
def test_a_misspelt_source_is_guessed(text: str, guess: str) -> None:
    (found,) = [one for one in diagnostics_of(text) if one.path.endswith(".from")]
    assert found.fix == f"Did you mean {guess}?"


def test_a_length_that_notes_must_not_have_may_be_none() -> None:
    text = criteria("not: {type: length, max: 0}")
    assert [one for one in diagnostics_of(text) if one.severity == "error"] == []


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (workrail("- {id: a, title: A, prompt: A., when: {var: n, equals: 1}}"), "Remove `version`"),
        (steps("- {id: a, title: A, prompt: A., runCondition: {var: n, equals: 1}}"), "Add `version`"),
    ],
)
def test_a_key_of_the_other_dialect_says_what_makes_a_file_one_of_it_once(text: str, key: str) -> None:
    twice = text + text.splitlines()[-1].replace("id: a", "id: b") + "\n"
    found = [one for one in diagnostics_of(twice) if one.code == "unknown_key"]
    assert [key in one.fix for one in found] == [True, False]


def test_an_unknown_slot_is_reported_beside_a_fault_of_form() -> None:
    text = steps("- {id: a, title: 1, prompt: A.}", "- {id: t, templateCall: {slotId: nowhere}}")
    parsed = parse_document(cast("dict[str, Any]", yaml.safe_load(text)))
    assert isinstance(parsed, FaultyDocument)
    assert isinstance(parsed.recovered, WorkflowDocument)
    beside = faults_beside(parsed.diagnostics, parsed.recovered)
    assert "unknown_slot" in {one.code for one in beside}


_HOLE = "See {{wr.refs.memory_query}}."


@pytest.mark.inv("PLAN-11")
@pytest.mark.parametrize(
    ("place", "changes"),
    [
        ("title", {"title": _HOLE}),
        ("prompt", {"prompt": _HOLE}),
        ("prompt", {"prompt": "See {{ wr.bindings.slot }}."}),
        ("guidance[1]", {"guidance": ["Go.", _HOLE]}),
        ("promptFragments[0].text", {"promptFragments": [{"id": "f", "text": _HOLE}]}),
        ("delegate[1]", {"delegate": [{"title": "T", "goal": "G."}, {"title": "T", "goal": _HOLE}]}),
        ("needsUser[0].ask", {"needsUser": [{"reason": "needs_user_approval", "ask": _HOLE}]}),
        ("promptBlocks.goal", {"promptBlocks": {"goal": _HOLE}}),
        ("promptBlocks.procedure[1]", {"promptBlocks": {"procedure": ["Go.", _HOLE]}}),
        ("promptBlocks.verify[0]", {"promptBlocks": {"verify": [[{"kind": "text", "text": _HOLE}]]}}),
        ("promptBlocks.outputRequired[0]", {"promptBlocks": {"outputRequired": [_HOLE]}}),
        ("promptBlocks.outputRequired.x", {"promptBlocks": {"outputRequired": {"x": _HOLE}}}),
        (
            "templateCall.args.what",
            {"type": "template", "templateCall": {"templateId": "t.x", "args": {"what": _HOLE}}},
        ),
    ],
)
def test_a_reference_written_as_a_placeholder_is_refused_at_its_place(place: str, changes: dict[str, Any]) -> None:
    whole = {"id": "a", "title": "A"} | changes
    if not {"prompt", "promptBlocks", "templateCall"} & changes.keys():
        whole["prompt"] = "Look."
    document = parse_document({"id": "test.one", "name": "One", "steps": [whole]})
    assert isinstance(document, WorkflowDocument)
    found = compile_workflow(document)
    assert not isinstance(found, Compiled)
    assert (f"steps[0].{place}", "wrong_value") in [(one.path, one.code) for one in found]


def faults_of(text: str) -> list[tuple[str, str]]:
    source = Source(kind="project", ref="x.yaml", form="yaml", data=text.encode())
    found = read_source(source)
    assert isinstance(found, RefusedFile)
    return [(one.path, one.code) for one in found.diagnostics]


@pytest.mark.inv("PLAN-19")
def test_a_bad_step_id_hides_no_fault_in_what_steps_refer_to() -> None:
    text = steps(
        "- {id: My, title: A, prompt: A.}",
        "- {id: c, title: C, prompt: C., functionReferences: [zz()], assessmentRefs: [q],",
        "   when: {var: nope, equals: 1}}",
    )
    assert sorted(faults_of(text)) == [
        ("steps[0].id", "bad_id"),
        ("steps[1].assessmentRefs[0]", "unknown_assessment"),
        ("steps[1].functionReferences[0]", "unknown_function"),
        ("steps[1].when", "undeclared_key"),
    ]


@pytest.mark.inv("PLAN-19")
def test_a_step_with_a_bad_id_still_declares_what_it_sets_and_defines() -> None:
    function = "functionDefinitions: [{name: zz, definition: Z.}]"
    text = steps(
        "- {id: My, title: A, prompt: A., produces: [k], " + function + "}",
        "- {id: c, title: C, prompt: C., when: {var: k, equals: 1}, functionReferences: [zz()]}",
        "- {id: MY, title: D, prompt: D.}",
    )
    assert faults_of(text) == [("steps[0].id", "bad_id"), ("steps[2].id", "bad_id")]


@pytest.mark.inv("PLAN-23")
@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("See {{gaol}}.", "Did you mean `{{goal}}`?"),
        ("See {{ siez.of }}.", "Did you mean `{{size}}`?"),
        ("See {{inputs.size}}.", "Did you mean `{{size}}`?"),
        ("See {{steps.one.output}}.", "Declare it in `inputs`, or in `produces` of a step."),
        ("See {{item}}.", "Declare it in `inputs`, or in `produces` of a step."),
        ("See {{goal}}, {{size.of}}, {{made}} and {{set}}.", None),
    ],
)
def test_a_placeholder_of_a_key_that_nothing_sets_is_a_warning_with_the_similar_key(text: str, fix: str | None) -> None:
    body: list[Any] = [{"id": "b", "title": "B", "prompt": "Do {{item}} and {{made}}."}]
    each: dict[str, Any] = {
        "type": "loop",
        "loopId": "l",
        "title": "L",
        "maxIterations": 2,
        "forEach": {"items": "size"},
        "body": body,
    }
    first: dict[str, Any] = {
        "id": "a",
        "title": "A",
        "prompt": text,
        "produces": ["made"],
        "set": [{"key": "set", "value": 1}],
    }
    inputs: list[Any] = [
        {"key": "size", "description": "All.", "type": "list", "required": True},
        {"key": "set", "description": "One.", "type": "number", "required": False},
    ]
    document = parse_document({"id": "test.one", "name": "One", "inputs": inputs, "steps": [first, each]})
    assert isinstance(document, WorkflowDocument)
    found = [one for one in check_document(document) if one.code == "undeclared_key"]
    expected = [("warning", "steps[0].prompt", fix)] if fix is not None else []
    assert [(one.severity, one.path, one.fix) for one in found] == expected
