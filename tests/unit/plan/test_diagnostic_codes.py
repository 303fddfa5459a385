"""Every diagnostic code is reached, with its path: none is there for show.

Nearly all are reached through the catalogue, from a file; what no file can bring about is shown by a plan by hand.
"""

import json
from typing import get_args

import pytest
from tests.support.definitions import OPERATIONS
from tests.support.flow import a_loop, a_node, a_plan, an_edge

from interlock.define.diagnostics import Diagnostic, DiagnosticCode
from interlock.kernel.budgets.workflow import (
    DOCUMENT_BYTES_MAX,
)
from interlock.kernel.ids import SourceKind
from interlock.plan.builtins.packs import PACKS
from interlock.plan.check.validate import validate_plan
from interlock.plan.records import Plan
from interlock.service.workflows.catalog import Catalog, RefusedFile
from interlock.testing.harness import InlineWorkflows, linear_workflow

GOOD = linear_workflow("test.good", "a")
BLOCKS = {"goal": "g", "procedure": ["é" * 1000] * 20}
FLAG: dict[str, object] = {"type": "contains", "value": "done: yes"}
LENGTH: dict[str, object] = {"type": "length", "min": 200}


def steps(*steps: object, **more: object) -> bytes:
    return json.dumps({"id": "test.bad", "name": "Bad", "steps": steps, **more}).encode()


def step(**changes: object) -> dict[str, object]:
    return {"id": "a", "title": "A", "prompt": "p", **changes}


def loop(**changes: object) -> dict[str, object]:
    return {"loopId": "l", "title": "L", "maxIterations": 2, "body": [step()], **changes}


def call(template: str = "wr.templates.routine.nested", **more: object) -> dict[str, object]:
    return {"type": "template", "id": "t", "templateCall": {"templateId": template, **more}}


def choice(**changes: object) -> dict[str, object]:
    ways = [{"when": {"var": "goal", "exists": True}, "steps": [step()]}]
    return {"type": "choose", "id": "c", "title": "C", "choose": ways, **changes}


def low(**when: object) -> dict[str, object]:
    effect = {"kind": "require_followup", "guidance": "Again."}
    return {"when": {"anyEqualsLevel": "low", **when}, "effect": effect}


LEVELS = [{"id": "d", "purpose": "D.", "levels": ["low", "high"]}]
RATING = [{"id": "r", "purpose": "R.", "dimensions": LEVELS}]
RATED = {"assessmentRefs": ["r"], "assessmentConsequences": [low()]}
KEY = {"key": "k", "description": "K.", "type": "string"}
NESTED = {
    "id": "wr.routine-nested",
    "name": "Nested",
    "steps": [step(prompt="Look at {what}."), call("wr.templates.routine.inner")],
}
INNER = linear_workflow("wr.routine-inner", "a")
OLD = {"id": "test.bad", "name": "Bad", "description": "D", "version": "1.0.0"}
OLD_LOOP = {"id": "l", "type": "loop", "title": "L", "loop": {"type": "for", "count": 1, "maxIterations": 2}}


FILES: dict[str, tuple[bytes, str, str]] = {
    "too_large": (b" " * (DOCUMENT_BYTES_MAX + 1), "x.json", ""),
    "not_utf8": (b"\xff", "x.json", ""),
    "not_json": (b"{", "x.json", ""),
    "not_yaml": (b"a: *b", "x.yml", ""),
    "duplicate_key": (b"id: a\nid: b", "x.yaml", "id"),
    "too_deep": (b'{"a":' + b"[" * 80 + b"]" * 80 + b"}", "x.json", ""),
    "not_an_object": (b"[]", "x.json", ""),
    "number_not_exact": (b'{"a": 1e999}', "x.json", "a"),
    "unknown_version": (json.dumps({"schemaVersion": 2}).encode(), "x.plan.json", "schemaVersion"),
    "unknown_key": (steps(step(), mode="x"), "x.json", "mode"),
    "missing_key": (b'{"id": "test.bad", "steps": [{"id":"a","title":"A","prompt":"p"}]}', "x.json", "name"),
    "wrong_type": (steps(step(), guidance="g"), "x.json", "guidance"),
    "wrong_value": (steps(step(notes="n")), "x.json", "steps[0].notes"),
    "empty": (steps(), "x.json", "steps"),
    "too_long": (steps(step(prompt=None, promptBlocks=BLOCKS)), "x.json", "steps[0]"),
    "too_many": (steps(step(), guidance=["g"] * 101), "x.json", "guidance"),
    "bad_id": (steps(step(id="A")), "x.json", "steps[0].id"),
    "duplicate_id": (steps(step(), step()), "x.json", "steps[1].id"),
    "reserved_namespace": (json.dumps(linear_workflow("wr.mine", "a")).encode(), "x.json", "id"),
    "id_taken": (json.dumps(GOOD).encode(), "a-copy-of-the-good-one.json", "id"),
    "prompt_missing": (steps(step(prompt=None)), "x.json", "steps[0]"),
    "prompt_twice": (steps(step(promptBlocks={"goal": "g"})), "x.json", "steps[0]"),
    "legacy_id": (json.dumps(linear_workflow("old", "a")).encode(), "x.json", "id"),
    "bad_pattern": (
        steps(step(validationCriteria={"type": "regex", "pattern": "(?=x)"})),
        "x.json",
        "steps[0].validationCriteria.pattern",
    ),
    "duplicate_consequence": (
        steps(step(**RATED | {"assessmentConsequences": [low(), low()]}), assessments=RATING),
        "x.json",
        "steps[0].assessmentConsequences[1]",
    ),
    "loop_condition_missing": (steps(loop()), "x.json", "steps[0]"),
    "loop_decision_missing": (steps(loop(**{"while": {"kind": "loop_control"}})), "x.json", "steps[0].body"),
    "unknown_step": (json.dumps({**OLD, "steps": [{**OLD_LOOP, "body": "z"}]}).encode(), "x.json", "steps[0].body"),
    "unknown_condition": (
        steps(step(when={"kind": "condition_ref", "conditionId": "z"})),
        "x.json",
        "steps[0].when.conditionId",
    ),
    "unknown_template": (
        steps(call("wr.templates.routine.none")),
        "x.json",
        "steps[0].templateCall.templateId",
    ),
    "unknown_feature": (steps(step(), features=["wr.features.none"]), "x.json", "features[0]"),
    "unknown_reference": (
        steps(step(prompt=None, promptBlocks={"goal": [{"kind": "ref", "refId": "wr.refs.none"}]})),
        "x.json",
        "steps[0].promptBlocks.goal[0].refId",
    ),
    "unknown_slot": (
        steps(step(prompt=None, promptBlocks={"goal": [{"kind": "binding", "slotId": "none"}]})),
        "x.json",
        "steps[0].promptBlocks.goal[0].slotId",
    ),
    "unknown_assessment": (steps(step(assessmentRefs=["r"])), "x.json", "steps[0].assessmentRefs[0]"),
    "unknown_level": (
        steps(step(**RATED | {"assessmentConsequences": [low(anyEqualsLevel="middle")]}), assessments=RATING),
        "x.json",
        "steps[0].assessmentConsequences[0].when.anyEqualsLevel",
    ),
    "unknown_function": (steps(step(functionReferences=["f()"])), "x.json", "steps[0].functionReferences[0]"),
    "unknown_contract_ref": (
        steps(step(outputContract={"contractRef": "wr.contracts.none"})),
        "x.json",
        "steps[0].outputContract.contractRef",
    ),
    "undeclared_key": (steps(step(when={"var": "k", "equals": 1})), "x.json", "steps[0].when"),
    "constant_comparison": (steps(step(when={"var": "k", "equals": 1}), inputs=[KEY]), "x.json", "steps[0].when"),
    "duplicate_write": (
        steps(step(set=[{"key": "k", "value": "a"}, {"key": "k", "value": "b"}]), inputs=[KEY]),
        "x.json",
        "steps[0].set[1].key",
    ),
    "same_pass_read_after_write": (
        steps(step(set=[{"key": "k", "value": "a"}, {"key": "l", "from": "k"}]), inputs=[KEY, KEY | {"key": "l"}]),
        "x.json",
        "steps[0].set[1].from",
    ),
    "missing_argument": (steps(call("wr.templates.routine.wanting")), "x.json", "steps[0].templateCall"),
    "template_recursion": (steps(call(args={"what": "it"})), "x.json", "steps[0].templateCall"),
    "duplicate_node_id": (
        steps(step(when={"var": "goal", "exists": True}), step(id="a--when")),
        "x.json",
        "steps[1]",
    ),
    "no_default_branch": (steps(choice()), "x.json", "steps[0]"),
    "unassessed_outcome": (steps(step(), assessments=RATING), "x.json", "assessments[0]"),
    "gameable_validation": (
        steps(step(validationCriteria=FLAG)),
        "x.json",
        "steps[0].validationCriteria",
    ),
}
"""Each code with the smallest file that has this fault and no other, and its place."""

CORE = (NESTED, INNER, linear_workflow("wr.routine-wanting", step(prompt="Look at {what}.")))
WARNINGS = {
    "legacy_id",
    "constant_comparison",
    "same_pass_read_after_write",
    "isolated_node",
    "unassessed_outcome",
    "gameable_validation",
}

A, B, END = a_node("a"), a_node("b"), a_node("end", "terminal")
A_TO_END = an_edge("a", "end", "terminal")
DECISION, LOOP, LAST = a_node("d", "decision"), a_node("l", "loop"), a_node("last", "terminal")

PLANS: dict[str, tuple[Plan, str]] = {
    "duplicate_edge_id": (a_plan([A, END], [A_TO_END, A_TO_END]), "plan.edges[a>end]"),
    "dangling_edge": (a_plan([A, END], [A_TO_END, an_edge("a", "z")]), "plan.edges[a>z]"),
    "unreachable_terminal": (a_plan([A, END, LAST], [A_TO_END]), "plan.nodes[last]"),
    "no_terminal_node": (a_plan([A, B], [an_edge("a", "b")]), "plan"),
    "missing_evidence_schema": (
        a_plan([a_node("a", evidence_schema_ref=None), END], [A_TO_END]),
        "plan.nodes[a]",
    ),
    "missing_input_schema": (a_plan([a_node("a", input_schema_ref=None), END], [A_TO_END]), "plan.nodes[a]"),
    "missing_condition": (
        a_plan(
            [DECISION, A, END],
            [an_edge("d", "a", "conditional", condition_id="c"), an_edge("d", "end"), A_TO_END],
        ),
        "plan.edges[d>a]",
    ),
    "self_loop": (a_plan([A, END], [A_TO_END, an_edge("a", "a")]), "plan.edges[a>a]"),
    "unreachable_node": (
        a_plan([A, B, END], [A_TO_END, an_edge("b", "end", "terminal")]),
        "plan.nodes[b]",
    ),
    "missing_entry": (a_plan([A, B, END], [an_edge("a", "b"), an_edge("b", "a"), A_TO_END]), "plan"),
    "unbounded_loop": (
        a_plan([A, B, END], [an_edge("a", "b"), an_edge("b", "a"), A_TO_END]),
        "plan.edges[b>a]",
    ),
    "automatic_cycle": (
        a_plan([LOOP, LAST, END], [an_edge("l", "end", "terminal")], [a_loop("l", "last")]),
        "plan.loops[l]",
    ),
    "unfit_node": (a_plan([a_node("a", task=None), END], [A_TO_END]), "plan.nodes[a]"),
    # Only a plan that went round its records' own checks can show these two.
    "invalid_identifier": (
        a_plan([A, END], [A_TO_END.changed(edge_id=" ")]),
        "plan.edges[ ]",
    ),
    "unknown_capability": (
        a_plan([A.changed(capabilities=("teleport",)), END], [A_TO_END]),
        "plan.nodes[a]",
    ),
    "isolated_node": (a_plan([A, B, END], [A_TO_END]), "plan.nodes[b]"),
}
"""Each code that no file can bring about, with the smallest plan that shows it, and its place there."""


def test_the_tables_above_are_the_closed_set_of_codes() -> None:
    assert sorted([*FILES, *PLANS, *OPERATIONS]) == sorted(get_args(DiagnosticCode))


def diagnostics_of(data: bytes, ref: str) -> tuple[Diagnostic, ...]:
    kind: SourceKind = "project"
    workflows = InlineWorkflows(GOOD)
    for routine in CORE:
        workflows.put(routine, kind="bundled")
    workflows.put(data, kind=kind, ref=ref)
    view = Catalog(workflows).view(None)
    assert "test.good" in view.entries, "no faulty file hides another workflow"
    found = [one for file in view.refused if file.source.ref == ref for one in file.diagnostics]
    for entry in view.entries.values():
        if entry.source.ref == ref:
            compiled = entry.compiled
            found += compiled.diagnostics if isinstance(compiled, RefusedFile) else compiled.warnings
    return tuple(found)


def assert_reported(found: Diagnostic, code: str) -> None:
    assert found.severity == ("warning" if code in WARNINGS else "error")
    assert found.message.endswith((".", "?"))
    assert found.fix.endswith((".", "?"))


@pytest.mark.inv("PLAN-4", "PLAN-8", "PLAN-15", "SRC-4")
@pytest.mark.parametrize("code", FILES)
def test_a_file_with_one_fault_gets_that_code_at_its_place_and_nothing_else(code: str) -> None:
    data, ref, path = FILES[code]
    found = diagnostics_of(data, ref)
    assert [(one.code, one.path) for one in found] == [(code, path)]
    assert_reported(found[0], code)


@pytest.mark.inv("PLAN-15")
@pytest.mark.parametrize(
    ("criteria", "is_gameable"),
    [
        ([FLAG], True),
        ({"and": [FLAG]}, True),
        ({"and": [{"and": [FLAG]}]}, True),
        ({"and": [FLAG, LENGTH]}, False),
        (LENGTH, False),
        (FLAG | {"value": "Measured on both machines"}, False),
    ],
)
def test_criteria_are_warned_of_if_a_completion_flag_alone_satisfies_them(
    criteria: object, *, is_gameable: bool
) -> None:
    found = diagnostics_of(steps(step(validationCriteria=criteria)), "x.json")
    assert [one.code for one in found] == ["gameable_validation"] * is_gameable


@pytest.mark.inv("PLAN-4")
@pytest.mark.parametrize("code", PLANS)
@pytest.mark.inv("PLAN-8")
def test_a_plan_with_one_fault_gets_that_code_at_its_place(code: str) -> None:
    plan, path = PLANS[code]
    found = [one for one in validate_plan(plan, PACKS) if one.code == code]
    assert [one.path for one in found] == [path]
    assert_reported(found[0], code)
