"""Faults of names and slots: each is reported once, at the place that is wrong, with a fix that works."""

from typing import Any

import pytest

from interlock.define.diagnostics import Diagnostics
from interlock.define.front import FaultyDocument, parse_document
from interlock.plan.compile.compiler import Compiled, compile_workflow, faults_beside
from interlock.plan.compile.routines import RoutineLibrary, builtin_routines


def faults_of(document: dict[str, Any], bindings: dict[str, str] | None = None) -> Diagnostics:
    """Return every diagnostic of a document, compiled with the bindings of a project."""
    parsed = parse_document({"id": "test.one", "name": "One", **document})
    if isinstance(parsed, FaultyDocument):
        assert parsed.recovered is not None
        return (*parsed.diagnostics, *faults_beside(parsed.diagnostics, parsed.recovered))
    library = RoutineLibrary(routines=builtin_routines(), bindings=bindings or {})
    compiled = compile_workflow(parsed, library)
    return compiled.warnings if isinstance(compiled, Compiled) else compiled


def test_a_wrong_routine_is_reported_with_what_names_it() -> None:
    slot = {"slotId": "fc", "purpose": "P", "default": "wr.templates.routine.nothing"}
    call = {"id": "t", "title": "T", "templateCall": {"slotId": "fc"}}
    document = {"extensionPoints": [slot], "steps": [call]}
    (bound,) = faults_of(document, {"fc": "wr.templates.routine.nope"})
    assert "`.interlock/bindings.json` binds the slot 'fc' to 'wr.templates.routine.nope'" in bound.message
    (default,) = faults_of(document)
    assert default.message.startswith("The default of the slot 'fc' is 'wr.templates.routine.nothing'")
    assert {bound.code, default.code} == {"unknown_template"}
    assert (bound.replacement, default.replacement) == (None, None), "no edit at the call corrects it"


def test_an_unknown_slot_is_one_fault() -> None:
    (found,) = faults_of({"steps": [{"id": "t", "title": "T", "templateCall": {"slotId": "nope"}}]})
    assert found.code == "unknown_slot"


LOOP = {"loopId": "l", "title": "L", "maxIterations": 3, "while": {"kind": "loop_control"}}


@pytest.mark.inv("PLAN-4")
def test_a_fault_of_form_in_one_step_hides_no_fault_of_another() -> None:
    steps = [
        {"id": "one", "title": "T", "prompt": "p", "agentRol": "r"},
        {"id": "two", "title": "T", "prompt": "p", "assessmentRefs": ["nope"]},
        LOOP | {"body": [{"id": "c", "title": "C", "prompt": "p"}]},
    ]
    found = [(one.path, one.code) for one in faults_of({"steps": steps})]
    assert found == [
        ("steps[0].agentRol", "unknown_key"),
        ("steps[1].assessmentRefs[0]", "unknown_assessment"),
        ("steps[2].body", "loop_decision_missing"),
    ]


def test_a_faulty_step_in_a_loop_is_not_also_said_to_make_no_decision() -> None:
    decides = {"id": "c", "title": "C", "prompt": "p", "outputContrat": {"contractRef": "wr.contracts.loop_control"}}
    found = faults_of({"steps": [LOOP | {"body": [decides]}]})
    assert [one.code for one in found] == ["unknown_key"]


@pytest.mark.inv("PLAN-4", "IR-16")
def test_what_a_step_verifies_is_checked_beside_other_faults() -> None:
    def step(step_id: str, **more: object) -> dict[str, object]:
        return {"id": step_id, "title": "T", "prompt": "p", **more}

    steps = [step("a", assessmentRefs=["nope"]), step("b", verifies=["nowhere"]), step("c", by="another")]
    found = sorted((one.path, one.code) for one in faults_of({"steps": steps}))
    assert found == [
        ("steps[0].assessmentRefs[0]", "unknown_assessment"),
        ("steps[1]", "unknown_step"),
        ("steps[2]", "unfit_node"),
    ]
    unfolded = {"id": "t", "title": "T", "templateCall": {"templateId": "wr.templates.routine.nope"}}
    uncertain = faults_of({"steps": [unfolded, step("b", verifies=["t--first"])]})
    assert [one.code for one in uncertain] == ["unknown_template"]


def test_a_consequence_in_a_step_that_asks_for_no_assessment_is_led_to_the_assessment() -> None:
    more = {"when": {"anyEqualsLevel": "a"}, "effect": {"kind": "require_followup", "guidance": "More."}}
    step = {"id": "s", "title": "S", "prompt": "p", "assessmentConsequences": [more]}
    rating = {"id": "r", "purpose": "P", "dimensions": [{"id": "d", "purpose": "D", "levels": ["a", "b"]}]}
    found = [one for one in faults_of({"assessments": [rating], "steps": [step]}) if one.severity == "error"]
    assert [(one.code, one.fix) for one in found] == [("unknown_level", "Add `assessmentRefs: [r]`.")]
    unknown = [one.code for one in faults_of({"steps": [{**step, "assessmentRefs": ["nope"]}]})]
    assert unknown == ["unknown_assessment"]


def suggested(found: Diagnostics) -> list[str]:
    return [one.fix.split("`")[1] for one in found if one.code == "duplicate_id"]


def test_each_suggested_id_is_free_and_short_enough() -> None:
    def steps(*ids: str) -> dict[str, Any]:
        return {"steps": [{"id": one, "title": "T", "prompt": "p"} for one in ids]}

    assert suggested(faults_of(steps("x", "x-2", "x", "x"))) == ["x-3", "x-4"]
    (long,) = suggested(faults_of(steps("y" * 100, "y" * 100)))
    assert len(long) == 100
    assert faults_of(steps("y" * 100, long)) == ()
    inputs = [{"key": one, "type": "string", "description": "K"} for one in ("k", "k_2", "k")]
    assert suggested(faults_of({"inputs": inputs, **steps("a")})) == ["k_3"]
    functions = [{"name": "f", "definition": "F"}] * 2
    assert suggested(faults_of({"functionDefinitions": functions, **steps("a")})) == ["f_2"]


@pytest.mark.inv("PLAN-7", "PLAN-23")
@pytest.mark.parametrize("more", [{}, {"prompt": "Wait."}], ids=["generated prompt", "prompt of its own"])
def test_a_placeholder_of_a_question_is_reported_at_the_question(more: dict[str, str]) -> None:
    step = {"type": "approve", "id": "a", "title": "A", "question": "q {{nokey}}", **more}
    (found,) = faults_of({"steps": [step]})
    assert (found.path, found.code, found.severity) == ("steps[0].question", "undeclared_key", "warning")
