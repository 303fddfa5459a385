"""Before a run, the plan says of each node what holds for it: owner, evidence, ways on, constraints, gates, tags."""

from collections.abc import Mapping
from typing import Any

import pytest
from tests.support.flow import IS_FAST, compiled, declared, parallel, step

from interlock.define.front import FaultyDocument, parse_document
from interlock.plan.compiled import CompiledWorkflow, pinned_bytes
from interlock.plan.outline import constraints_of, gate_after, profile_lines
from interlock.testing.harness import Harness

RATING = {"id": "q", "purpose": "Q.", "dimensions": [{"id": "d", "purpose": "D.", "levels": ["no", "yes"]}]}


def facts(workflow: CompiledWorkflow, node_id: str) -> list[str]:
    return constraints_of(workflow, workflow.graphs.nodes[node_id])


@pytest.mark.inv("IR-17")
def test_every_constraint_of_a_step_is_a_fact_of_its_node() -> None:
    full = step(
        "full",
        capabilities=["web_browsing"],
        needs=["mode"],
        produces=["found"],
        set=[{"key": "box", "from": "found"}],
        assessmentRefs=["q"],
        needsUser=[{"reason": "needs_user_artifact", "ask": "Which file?"}],
        verifies=["plain"],
        by="another",
        hints=["slow"],
        metadata={"team": "core"},
    )
    workflow = compiled(step("plain"), full, assessments=[RATING])
    assert facts(workflow, "plain") == []
    assert facts(workflow, "full") == [
        "uses web_browsing",
        "needs `mode`",
        "produces `found`",
        "sets `box`",
        "rated by q",
        "asks the user (artifact)",
        "verifies plain (by another)",
        "hint slow",
        "team: core",
    ]


@pytest.mark.inv("IR-17")
def test_a_barrier_names_what_it_waits_for() -> None:
    workflow = compiled(parallel("p", [step("a")], [step("b"), step("c")]))
    assert facts(workflow, "p--join") == ["waits for a, c"]


@pytest.mark.inv("IR-17")
def test_a_confirmation_is_a_human_gate_after_its_step_under_the_condition_of_the_step() -> None:
    workflow = compiled(step("a"), step("b", requireConfirmation=True), step("c", confirmWhen=IS_FAST))
    gates = {name: gate_after(node) for name, node in workflow.steps.items()}
    assert gates["a"] is None
    found = [(gate.node_id, gate.evidence_schema_ref, gate.when) for gate in gates.values() if gate is not None]
    assert found == [
        ("b--gate", "wr.contracts.confirmation", "always"),
        ("c--gate", "wr.contracts.confirmation", "`mode` equals 'fast'"),
    ]


@pytest.mark.inv("IR-17")
def test_the_constraints_of_the_whole_run_are_listed() -> None:
    workflow = compiled(
        step("a"),
        capabilities={"delegation": "preferred"},
        recommendedPreferences={"recommendedAutonomy": "guided", "recommendedRiskPolicy": "balanced"},
    )
    assert profile_lines(workflow) == [
        "- the client's delegation: preferred",
        "- recommended autonomy: guided",
        "- recommended risk policy: balanced",
    ]


@pytest.mark.inv("IR-17")
def test_tags_change_nothing_but_the_hash() -> None:
    plain, tagged = step("a"), step("a", hints=["slow"], metadata={"owner": "x"})
    one, other = compiled(plain), compiled(tagged)
    assert pinned_bytes(one)[0] != pinned_bytes(other)[0]
    answers = []
    for written in (plain, tagged):
        harness = Harness.in_memory(
            {"id": "test.flow", "name": "Flow", "inputs": [declared("mode")], "steps": [written]}
        )
        answers.append(dict(harness.start("test.flow", goal="G")["pending"]))
    assert answers[0] == answers[1]


@pytest.mark.parametrize(
    "tags",
    [
        {"hints": ["h"] * 21},
        {"hints": [""]},
        {"hints": ["h" * 101]},
        {"metadata": {f"k{number}": "v" for number in range(21)}},
        {"metadata": {"a key": "v"}},
        {"metadata": {"k": 1}},
        {"metadata": {"k": "v" * 101}},
    ],
)
def test_tags_are_bounded(tags: Mapping[str, Any]) -> None:
    document: dict[str, Any] = {"id": "test.flow", "name": "Flow", "steps": [step("a", **tags)]}
    assert isinstance(parse_document(document), FaultyDocument)
