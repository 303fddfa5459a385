"""Files of the WorkRail dialect: everything in them reaches the document, and every fault is reported at its place."""

from typing import Any

import pytest

from interlock.decide.condition import Always, AnyOf, Compare
from interlock.define import document as doc
from interlock.define.diagnostics import Diagnostic
from interlock.define.front import parse_workflow

STEP: dict[str, Any] = {"id": "a", "title": "A", "prompt": "Do a."}
WHEN: dict[str, Any] = {"var": "x", "equals": 1}
X_IS_1 = Compare(op="lenient_equals", var="x", value=1)


def document(*steps: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {
        "id": "demo",
        "name": "Demo",
        "description": "What it is for.",
        "version": "3.1.0",
        "steps": list(steps) or [STEP],
        **changes,
    }


def parsed(*steps: dict[str, Any], **changes: Any) -> doc.WorkflowDocument:
    found = parse_workflow(document(*steps, **changes))
    assert isinstance(found, doc.WorkflowDocument), [one.render_line() for one in found]
    return found


def only(**changes: Any) -> doc.AgentStep:
    (step,) = parsed({**STEP, **changes}).steps
    assert isinstance(step, doc.AgentStep)
    return step


def blocks(**changes: Any) -> dict[str, Any]:
    return {"id": "a", "title": "A", "promptBlocks": changes}


def faults(*steps: dict[str, Any], **changes: Any) -> list[Diagnostic]:
    found = parse_workflow(document(*steps, **changes))
    assert not isinstance(found, doc.WorkflowDocument)
    assert all(one.severity == "error" and one.message and one.fix for one in found)
    return list(found)


def fault_codes(*steps: dict[str, Any], **changes: Any) -> list[tuple[str, str]]:
    return [(one.path, one.code) for one in faults(*steps, **changes)]


# The workflow as a whole.


@pytest.mark.inv("IR-11")
def test_a_workflow_says_the_same_as_its_file() -> None:
    rating = {"id": "r", "purpose": "P", "dimensions": [{"id": "d", "purpose": "P", "levels": ["low", "high"]}]}
    source = {"id": "s", "title": "S", "source": "docs/s.md", "purpose": "P", "authoritative": True}
    found = parsed(
        examples=["Do one thing."],
        references=[{**source, "resolveFrom": "workspace"}],
        features=["wr.features.capabilities"],
        functionDefinitions=[{"name": "f", "definition": "How."}],
        assessments=[rating],
        extensionPoints=[{"slotId": "slot", "purpose": "P", "default": "d", "acceptedKinds": ["routine"]}],
        recommendedPreferences={"recommendedAutonomy": "guided"},
    )
    assert (found.id, found.name, found.description, found.tags) == ("demo", "Demo", "What it is for.", ())
    assert found.examples == ("Do one thing.",)
    assert found.references[0].to_json() == source
    assert found.features == (doc.FeatureUse(feature_id="wr.features.capabilities", config={}, at="features[0]"),)
    assert found.functions[0].name == "f"
    assert found.assessments[0].id == "r"
    assert found.extension_points[0].slot_id == "slot"
    assert found.recommended is not None
    assert not found.requires_declared_keys


def test_everything_said_to_the_agent_as_a_whole_is_guidance() -> None:
    found = parsed(
        metaGuidance=["Be kind.", " "],
        preconditions=["There is a branch."],
        clarificationPrompts=["Which one?"],
        modelTier="heavy",
    )
    assert found.guidance == (
        "Be kind.",
        "Before you begin: There is a branch.",
        "Ask the user if it is not clear: Which one?",
        "Suggested model tier: heavy.",
    )


def test_keys_without_effect_are_accepted() -> None:
    extras = {"about": "…", "validatedAgainstSpecVersion": 3, "metricsProfile": "coding"}
    step = {**STEP, "askForFiles": True, "hasValidation": True}
    assert parsed(step, **extras) == parsed()


@pytest.mark.parametrize("workflow_id", ["a", "my-flow_2", "7", "team.flow", "wr.coding-task"])
def test_an_id_has_one_dot_or_none(workflow_id: str) -> None:
    assert parsed(id=workflow_id).id == workflow_id


@pytest.mark.parametrize("workflow_id", ["A", "a.b.c", ".a", "a.", "-a", "1.a", "a b", "a\n"])
def test_any_other_id_is_refused(workflow_id: str) -> None:
    assert fault_codes(id=workflow_id) == [("id", "bad_id")]


def test_each_key_that_is_not_of_the_dialect_is_named() -> None:
    assert fault_codes({**STEP, "expectedOutput": {}}, tags=["a"], tip=[], nmae="x") == [
        ("steps[0].expectedOutput", "unknown_key"),
        ("tags", "unknown_key"),
        ("tip", "unknown_key"),
        ("nmae", "unknown_key"),
    ]


def test_a_file_without_required_keys_is_refused() -> None:
    found = parse_workflow({"version": "3.0.0"})
    assert not isinstance(found, doc.WorkflowDocument)
    assert {(one.path, one.code) for one in found} == {
        (name, "missing_key") for name in ("id", "name", "description", "steps")
    }
    assert fault_codes(steps=[]) == [("steps", "empty")]
    assert fault_codes(steps="x") == [("steps", "wrong_type")]
    assert fault_codes(id="") == [("id", "empty")]


def test_faults_of_form_hide_no_fault_of_meaning() -> None:
    body = [{**STEP, "id": "b", "titel": "B"}, {**STEP, "id": "c", "prompt": "{{wr.x}}"}]
    assert set(
        fault_codes(
            {"id": "l", "type": "loop", "title": "L", "loop": {"type": "while", "maxIterations": 1}, "body": body},
            {**STEP, "prompt": "{{wr.y}}"},
            {**STEP, "promptBlocks": {"goal": "G"}, "guidance": 3},
            {"title": "T", "id": 3},
            id="A.b.C",
            name=3,
            unknown=1,
        )
    ) == {
        ("steps[0].body[0].titel", "unknown_key"),
        ("steps[0].loop", "loop_condition_missing"),
        ("steps[0].body[1].prompt", "wrong_value"),
        ("steps[1].prompt", "wrong_value"),
        ("steps[2].id", "duplicate_id"),
        ("steps[2].guidance", "wrong_type"),
        ("steps[2]", "prompt_twice"),
        ("steps[3].id", "wrong_type"),
        ("steps[3]", "prompt_missing"),
        ("id", "bad_id"),
        ("name", "wrong_type"),
        ("unknown", "unknown_key"),
    }


def test_a_faulty_step_that_decides_a_loop_still_decides_it_while_the_rest_is_judged() -> None:
    decider = {**STEP, "titel": 1, "outputContract": {"contractRef": "wr.contracts.loop_control"}}
    loop = {"id": "l", "type": "loop", "title": "L", "loop": {"type": "while", "maxIterations": 1}, "body": [decider]}
    assert fault_codes(loop) == [("steps[0].body[0].titel", "unknown_key")]


def test_faults_that_leave_nothing_to_recover_are_reported_alone() -> None:
    assert fault_codes({**STEP, "prompt": "{{wr.x}}"}, **{"line\nbreak": 1}) == [("line break", "unknown_key")]
    assert fault_codes(**{"steps[7]": 1, "steps": [3]}) == [("steps[0]", "wrong_type"), ("steps[7]", "unknown_key")]


def test_a_duplicate_id_is_reported_with_the_first_one_at_any_nesting_level() -> None:
    loop = {
        "id": "l",
        "type": "loop",
        "title": "L",
        "loop": {"type": "for", "count": 1, "maxIterations": 1},
        "body": [STEP],
    }
    (found,) = faults(STEP, loop)
    assert (found.path, found.code) == ("steps[1].body[0].id", "duplicate_id")
    assert "also the id of steps[0]" in found.message
    (derived,) = faults({**STEP, "verification": {}}, {**STEP, "id": "a--verification"})
    assert (derived.path, derived.code) == ("steps[1].id", "duplicate_id")
    assert "also the id of steps[0].verification" in derived.message


# A step.


@pytest.mark.inv("IR-11")
def test_a_step_says_the_same_as_in_its_file() -> None:
    step = only(
        agentRole="You review.",
        modelTier="mid",
        guidance=["Slowly.", ""],
        runCondition=WHEN,
        functionDefinitions=[{"name": "f", "definition": "How."}],
        functionReferences=["f()", "g()"],
        functionCalls=[{"name": "g", "args": {"b": [1], "a": "é"}}, {"name": "h"}],
        promptFragments=[{"id": "p", "text": "More.", "when": WHEN}, {"id": "q", "text": "Always.", "when": {}}],
    )
    assert (step.at, step.id, step.title, step.prompt) == ("steps[0]", "a", "A", doc.to_prose("Do a."))
    assert (step.owner, step.agent_role) == ("agent", "You review.")
    assert step.guidance == ("Slowly.", 'Use `g` with {"a": "é", "b": [1]}.', "Suggested model tier: mid.")
    assert step.when == doc.Guard(condition=X_IS_1, at="steps[0].runCondition")
    assert step.functions == ("f", "g", "h")
    assert step.own_functions[0].name == "f"
    guard = doc.Guard(condition=X_IS_1, at="steps[0].promptFragments[0].when")
    assert step.fragments == (
        doc.PromptFragment(fragment_id="p", text="More.", when=guard),
        doc.PromptFragment(fragment_id="q", text="Always.", when=None),
    )


def test_a_function_reference_ends_in_brackets() -> None:
    assert fault_codes({**STEP, "functionReferences": ["f"]}) == [("steps[0].functionReferences[0]", "bad_id")]


def test_a_step_has_exactly_one_prompt() -> None:
    bare = {"id": "a", "title": "A"}
    call = {"templateId": "t"}
    assert fault_codes(bare) == [("steps[0]", "prompt_missing")]
    assert fault_codes({**bare, "promptBlocks": {}}) == [("steps[0]", "prompt_missing")]
    assert fault_codes({**bare, "promptBlocks": {"constraints": [], "goal": ""}}) == [("steps[0]", "prompt_missing")]
    assert fault_codes({**STEP, "promptBlocks": {"goal": "G"}}) == [("steps[0]", "prompt_twice")]
    assert fault_codes({**STEP, "templateCall": call}) == [("steps[0]", "prompt_twice")]
    assert fault_codes({**bare, "promptBlocks": {"goal": "G"}, "templateCall": call}) == [("steps[0]", "prompt_twice")]


def test_blocks_hold_texts_and_parts() -> None:
    (step,) = parsed(
        blocks(
            goal=[{"kind": "text", "text": "G "}, {"kind": "ref", "refId": "wr.refs.x"}],
            constraints=["C"],
            procedure=["P1", "P2"],
            outputRequired={"z": "Z", "a": "A"},
            verify=["V"],
        )
    ).steps
    assert isinstance(step, doc.AgentStep)
    assert step.prompt == doc.PromptBlocks(
        goal=(
            doc.TextPart(text="G "),
            doc.SnippetPart(ref_id="wr.refs.x", at="steps[0].promptBlocks.goal[1].refId"),
        ),
        constraints=(doc.to_prose("C"),),
        procedure=(doc.to_prose("P1"), doc.to_prose("P2")),
        output_required=(("a", doc.to_prose("A")), ("z", doc.to_prose("Z"))),
        verify=(doc.to_prose("V"),),
    )


@pytest.mark.parametrize(
    "part",
    [
        {"kind": "text"},
        {"kind": "ref", "text": "t"},
        {"kind": "text", "text": "t", "refId": "r"},
        {"kind": "ref", "text": "t", "refId": "r"},
    ],
)
def test_a_part_holds_what_its_kind_says(part: dict[str, str]) -> None:
    assert fault_codes(blocks(goal=[part])) == [("steps[0].promptBlocks.goal[0]", "wrong_value")]


def test_a_placeholder_for_a_slot_is_split_out_of_the_text() -> None:
    here = "steps[0].prompt"
    bound = doc.BindingPart(slot_id="s_1", at=here)
    assert only(prompt="{{wr.bindings.s_1}}").prompt == (bound,)
    assert only(prompt="Use {{wr.bindings.s_1}} and {{x}}{{ wr.bindings.s_1 }}").prompt == (
        doc.TextPart(text="Use "),
        bound,
        doc.TextPart(text=" and {{x}}"),
        bound,
    )
    (step,) = parsed(blocks(verify=[[{"kind": "text", "text": "{{wr.bindings.s_1}}."}]])).steps
    assert isinstance(step, doc.AgentStep)
    assert isinstance(step.prompt, doc.PromptBlocks)
    inner = doc.BindingPart(slot_id="s_1", at="steps[0].promptBlocks.verify[0][0].text")
    assert step.prompt.verify == ((inner, doc.TextPart(text=".")),)


@pytest.mark.parametrize(
    "hole", ["{{wr.refs.x}}", "{{wr.bindings.Slot}}", "{{wr.bindings.s", "{{ wr. }}", "{{wr.bindings.s.t}}"]
)
def test_any_other_placeholder_of_their_namespace_is_reported(hole: str) -> None:
    assert fault_codes({**STEP, "prompt": f"See {hole}"}) == [("steps[0].prompt", "wrong_value")]
    assert fault_codes(blocks(outputRequired={"k": hole})) == [
        ("steps[0].promptBlocks.outputRequired.k", "wrong_value")
    ]


def test_a_fragment_holds_nothing_of_their_namespace() -> None:
    fragments = [{"id": "p", "text": "{{wr.bindings.s}}"}]
    assert fault_codes({**STEP, "promptFragments": fragments}) == [("steps[0].promptFragments[0].text", "wrong_value")]


@pytest.mark.parametrize(
    ("said", "at", "condition"),
    [
        (True, "", Always(op="always")),
        ({}, "", Always(op="always")),
        (WHEN, "", X_IS_1),
        ({"kind": "human_approval"}, "", Always(op="always")),
        ({"kind": "coordinator_eval", "condition": WHEN}, ".condition", X_IS_1),
    ],
)
def test_a_step_is_confirmed_as_its_author_wants(said: object, at: str, condition: object) -> None:
    confirmation = only(requireConfirmation=said).confirmation
    assert confirmation is not None
    assert (confirmation.condition, confirmation.at) == (condition, f"steps[0].requireConfirmation{at}")


def test_by_default_no_person_confirms_a_step() -> None:
    assert only().confirmation is None
    assert only(requireConfirmation=False).confirmation is None


def test_a_confirmation_of_another_form_is_reported() -> None:
    assert fault_codes({**STEP, "requireConfirmation": "yes"}) == [("steps[0].requireConfirmation", "wrong_type")]
    (found,) = faults({**STEP, "requireConfirmation": {"kind": "human_aproval"}})
    fix = "Did you mean `human_approval`? The kinds are `coordinator_eval`, `human_approval`."
    assert (found.path, found.fix) == ("steps[0].requireConfirmation.kind", fix)


# Evidence.

CONTRACT = {"contractRef": "wr.contracts.review_verdict"}
LOW = {"when": {"anyEqualsLevel": "low"}, "effect": {"kind": "require_followup", "guidance": "Again."}}
RULE = {"type": "contains", "value": "x", "message": "Say x."}


def test_notes_are_wanted_unless_waived_or_a_contract_is_declared() -> None:
    assert only().evidence == doc.EvidenceRequirements()
    assert only(notesOptional=True).evidence.notes == "optional"
    contract = only(outputContract=CONTRACT).evidence
    assert (contract.notes, contract.contract_ref, contract.contract_required) == (
        "optional",
        "wr.contracts.review_verdict",
        True,
    )
    assert not only(outputContract={**CONTRACT, "required": False}).evidence.contract_required


def test_only_one_kind_of_evidence_counts() -> None:
    everything: dict[str, Any] = {
        "assessmentRefs": ["r", "r"],
        "assessmentConsequences": [LOW],
        "validationCriteria": [RULE],
    }
    shadowed = only(**everything, outputContract=CONTRACT).evidence
    assert (shadowed.assessments, shadowed.consequences, shadowed.criteria) == ((), (), None)
    assessed = only(**everything).evidence
    assert (assessed.notes, assessed.assessments, assessed.criteria) == ("required", ("r",), None)
    assert assessed.consequences == (
        doc.Consequence(level="low", guidance="Again.", assessment_id=None, at="steps[0].assessmentConsequences[0]"),
    )
    assert only(validationCriteria=[RULE]).evidence.criteria is not None


def test_an_empty_list_of_criteria_demands_nothing() -> None:
    assert only(validationCriteria=[]) == only()


def test_a_level_has_one_consequence_for_each_assessment() -> None:
    for_r = {**LOW, "when": {"anyEqualsLevel": "low", "forAssessment": "r"}}
    assert len(only(assessmentRefs=["r"], assessmentConsequences=[LOW, for_r]).evidence.consequences) == 2
    twice = {**STEP, "assessmentRefs": ["r"], "assessmentConsequences": [for_r, LOW, for_r]}
    assert fault_codes(twice) == [("steps[0].assessmentConsequences[2]", "duplicate_consequence")]


# Steps that are declared on others.


def flat(prompt: doc.Prose | doc.PromptBlocks) -> str:
    assert isinstance(prompt, tuple)
    return "".join(part.text if isinstance(part, doc.TextPart) else f"<{part}>" for part in prompt)


def test_a_verification_is_a_separate_step_right_after() -> None:
    check = {"command": "make check", "prompt": "Look twice."}
    first, second = parsed({**STEP, "runCondition": WHEN, "verification": check}).steps
    assert isinstance(first, doc.AgentStep)
    assert isinstance(second, doc.AgentStep)
    assert (second.id, second.at, second.owner) == ("a--verification", "steps[0].verification", "verifier")
    assert second.when == first.when is not None
    assert (second.evidence.contract_ref, second.evidence.contract_required, second.evidence.notes) == (
        "wr.contracts.verification_report",
        True,
        "optional",
    )
    assert "**A**" in flat(second.prompt)
    assert "```\nmake check\n```" in flat(second.prompt)
    assert flat(second.prompt).endswith("Look twice.")


def test_an_audit_is_a_separate_step_after_the_verification() -> None:
    audit = {"prompt": "Be strict.", "rubric": ["Is it right?", " ", "{{wr.bindings.s}}"]}
    _, check, review = parsed({**STEP, "verification": {}, "audit": audit}).steps
    assert isinstance(check, doc.AgentStep)
    assert isinstance(review, doc.AgentStep)
    assert "```" not in flat(check.prompt)
    assert (review.id, review.at, review.owner) == ("a--audit", "steps[0].audit", "verifier")
    assert review.evidence == doc.EvidenceRequirements()
    assert "Be strict." in flat(review.prompt)
    assert "\n- Is it right?\n- <" in flat(review.prompt)
    assert review.prompt[-1] == doc.BindingPart(slot_id="s", at="steps[0].audit.rubric[2]")  # type: ignore[index]
    assert "each of these" not in flat(parsed({**STEP, "audit": {"rubric": [""]}}).steps[1].prompt)  # type: ignore[union-attr]


def test_a_template_is_called_with_scalars() -> None:
    args = {"a": "t", "b": 1, "c": True}
    call: dict[str, Any] = {"templateId": "wr.templates.routine.x", "args": args}
    first, second = parsed(
        {"id": "a", "title": "A", "templateCall": call, "runCondition": WHEN, "verification": {}}
    ).steps
    guard = doc.Guard(condition=X_IS_1, at="steps[0].runCondition")
    assert first == doc.TemplateStep(
        at="steps[0]",
        id="a",
        title="A",
        template="wr.templates.routine.x",
        args=args,
        when=guard,
    )
    assert second.id == "a--verification"
    call = {"templateId": "t", "args": {"a": None, "b": [], "c": {}, "d": 1.5}}
    assert fault_codes({"id": "a", "title": "A", "templateCall": call}) == [
        (f"steps[0].templateCall.args.{name}", "wrong_type") for name in "abc"
    ]


# Parallel steps.


def parallel(*delegations: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {"id": "p", "title": "P", "type": "parallel", "parallelDelegations": list(delegations), **changes}


def test_a_parallel_step_asks_the_agent_to_delegate() -> None:
    work = {
        "workflowId": "team.review",
        "goal": "Find bugs.",
        "contextMapping": {"sliceName": "slice", "odd key": "odd"},
        "args": {"out": "b.md", "depth": "2"},
        "modelTier": "heavy",
        "allowedTools": ["read", "grep"],
        "runCondition": WHEN,
    }
    step, *rest = parsed(parallel(work, {"workflowId": "w"}, requireConfirmation=True)).steps
    assert isinstance(step, doc.AgentStep)
    assert rest == []
    assert step.capabilities == ("delegation",)
    assert (step.confirmation, step.evidence.notes) == (None, "required")
    assert "start_workflow" in flat(step.prompt)
    first, second = step.fragments
    assert first.when == doc.Guard(condition=X_IS_1, at="steps[0].parallelDelegations[0].runCondition")
    assert first.text.splitlines()[1:] == [
        "- Goal: Find bugs.",
        "- `odd`: what the context key `odd key` holds",
        "- `slice`: {{sliceName}}",
        "- `depth`: 2",
        "- `out`: b.md",
        "- Allowed tools: read, grep",
        "- Suggested model tier: heavy",
    ]
    assert "`team.review`" in first.text
    assert (second.when, second.text.count("\n")) == (None, 0)


@pytest.mark.inv("PLAN-28")
def test_a_step_whose_delegations_all_have_conditions_orders_to_delegate_only_above_one_of_them() -> None:
    other = {"var": "y", "equals": 2}
    works = [{"workflowId": "w", "runCondition": when} for when in (WHEN, other)]
    (step,) = parsed(parallel(*works, notesOptional=True)).steps
    assert isinstance(step, doc.AgentStep)
    order, *pieces = step.fragments
    assert (order.text, len(pieces)) == (doc.DELEGATE_TEXT, 2)
    assert order.when is not None
    y_is_2 = Compare(op="lenient_equals", var="y", value=2)
    assert order.when.condition == AnyOf(op="or", of=(X_IS_1, y_is_2))
    assert "If no work is named below" in flat(step.prompt)
    assert step.evidence.notes == "optional"
    (empty,) = parsed(parallel()).steps
    assert isinstance(empty, doc.AgentStep)
    assert (empty.fragments, "start no subagent" in flat(empty.prompt)) == ((), True)


def test_texts_for_subagents_hold_nothing_of_their_namespace() -> None:
    hole = "{{wr.bindings.s}}"
    work = {"workflowId": "w", "goal": hole, "args": {"a": hole}, "contextMapping": {"k": hole}, "allowedTools": [hole]}
    at = "steps[0].parallelDelegations[0]"
    assert set(fault_codes(parallel(work))) == {
        (f"{at}.{name}", "wrong_value") for name in ("goal", "args.a", "contextMapping.k", "allowedTools[0]")
    }


def test_a_synthesis_is_a_separate_step_right_after() -> None:
    synthesis = {"prompt": "Weigh them.", "outputContract": CONTRACT}
    first, second = parsed(parallel({"workflowId": "w"}, synthesis=synthesis, runCondition=WHEN)).steps
    assert isinstance(second, doc.AgentStep)
    assert (second.id, second.at, second.owner) == ("p--synthesis", "steps[0].synthesis", "agent")
    assert second.when == first.when is not None
    assert flat(second.prompt).endswith("Weigh them.")
    assert second.evidence == doc.EvidenceRequirements(notes="optional", contract_ref="wr.contracts.review_verdict")
    _, plain = parsed(parallel({"workflowId": "w"}, synthesis={})).steps
    assert isinstance(plain, doc.AgentStep)
    assert plain.evidence == doc.EvidenceRequirements()


def test_a_step_with_a_mistyped_type_is_checked_by_its_keys() -> None:
    (found,) = faults(parallel({"workflowId": "w"}, type="paralel"))
    fix = "Did you mean `parallel`? The types are `loop`, `parallel`."
    assert (found.path, found.fix) == ("steps[0].type", fix)
    assert fault_codes({**STEP, "type": "step"}) == [("steps[0].type", "unknown_key")]
