"""Builders make definitions without writing ids, and refuse to return a faulty one."""

import pytest

from interlock.define.operations.base import InvalidDefinitionError
from interlock.define.operations.builders import ContractBuilder, FlowBuilder, WorkBlockBuilder
from interlock.define.operations.flows import Condition

REVIEW = (
    WorkBlockBuilder("Code Review")
    .description("Read the change.")
    .input("pull_request_url", "URL of the change to review")
    .input("review_checklist", "Criteria for approval", required=False, schema={"type": "array"})
    .output("verdict", "approved | changes_requested | rejected")
    .output("comments", "Review comments", required=False)
    .hint("github-access")
    .build()
)
IMPLEMENT = WorkBlockBuilder("Implementation").output("pull_request_url").build()
JUDGE = FlowBuilder("Judge").add_block(REVIEW).build(assessment=True)


def sprint() -> FlowBuilder:
    return (
        FlowBuilder("Sprint Cycle")
        .add_block(REVIEW, alias="review")
        .add_block(IMPLEMENT, alias="primary")
        .add_block(IMPLEMENT, alias="fast-track")
        .edge("primary", "review", mappings={"pull_request_url": "pull_request_url"})
        .edge("fast-track", "review")
        .entry("primary", condition=Condition(description="the ticket is approved"))
        .entry("fast-track", condition=Condition(description="the ticket is fast-track"))
    )


@pytest.mark.inv("OPS-14", "OPS-4")
def test_a_block_is_built_with_its_ports_and_hints() -> None:
    assert [port.name for port in REVIEW.inputs] == ["pull_request_url", "review_checklist"]
    assert [port.required for port in REVIEW.inputs] == [True, False]
    assert REVIEW.inputs[1].schema == {"type": "array"}
    assert [port.name for port in REVIEW.outputs] == ["verdict", "comments"]
    assert REVIEW.execution_hints == ("github-access",)
    assert REVIEW.description == "Read the change."


@pytest.mark.inv("OPS-14", "OPS-6", "OPS-7")
def test_a_flow_with_one_block_in_two_slots_has_three_slots_of_two_blocks() -> None:
    flow = sprint().expected_outcome({"done": True}).metadata({"team": "one"}).version(3).build()
    assert [slot.alias for slot in flow.nodes] == ["review", "primary", "fast-track"]
    assert len({slot.id for slot in flow.nodes}) == 3
    assert {slot.target_id for slot in flow.nodes} == {REVIEW.id, IMPLEMENT.id}
    assert [edge.source_id is None for edge in flow.edges] == [False, False, True, True]
    assert flow.edges[2].condition == Condition(description="the ticket is approved")
    assert flow.terminal_slots == (flow.nodes[0].id,)
    assert (flow.expected_outcome, flow.metadata, flow.version) == ({"done": True}, {"team": "one"}, 3)


@pytest.mark.inv("OPS-14")
def test_the_same_calls_build_the_same_definition() -> None:
    assert sprint().build() == sprint().build()
    other = FlowBuilder("Sprint Cycle").id(JUDGE.id).add_block(REVIEW, alias="review").build()
    assert other.id == JUDGE.id
    assert other.nodes[0].id != sprint().build().nodes[0].id


@pytest.mark.inv("OPS-14", "OPS-12")
def test_every_unknown_alias_is_named() -> None:
    with pytest.raises(InvalidDefinitionError) as caught:
        sprint().edge("primry", "review").entry("nowhere").build()
    assert [(one.code, one.path) for one in caught.value.faults] == [
        ("dangling_edge", "edges[4].source_id"),
        ("dangling_edge", "edges[5].target_id"),
    ]
    assert "'primry'" in caught.value.faults[0].message
    assert caught.value.faults[0].fix == "Did you mean 'primary'?"
    assert "'nowhere'" in caught.value.faults[1].message


@pytest.mark.inv("OPS-14", "OPS-10", "OPS-11")
@pytest.mark.parametrize(
    ("builder", "faults"),
    [
        (sprint().add_block(REVIEW, alias="review"), [("duplicate_id", "nodes[3].id")]),
        (
            sprint().edge("primary", "review", mappings={"verdict": "summary"}),
            [
                ("invalid_port_mapping", "edges[4].port_mappings[0].source_port"),
                ("invalid_port_mapping", "edges[4].port_mappings[0].target_port"),
            ],
        ),
        (sprint().edge("review", "primary"), [("no_terminal_node", "nodes")]),
        (FlowBuilder("").add_block(REVIEW), [("empty", "name")]),
    ],
    ids=["two slots with one alias", "ports that do not exist", "no end", "no name"],
)
def test_a_faulty_flow_is_not_built(builder: FlowBuilder, faults: list[tuple[str, str]]) -> None:
    with pytest.raises(InvalidDefinitionError) as caught:
        builder.build()
    assert [(one.code, one.path) for one in caught.value.faults] == faults


@pytest.mark.inv("OPS-14", "OPS-5")
def test_a_block_with_two_ports_of_one_name_is_not_built() -> None:
    with pytest.raises(InvalidDefinitionError, match=r"outputs\[1\]\.name"):
        WorkBlockBuilder("twice").input("a").output("a").output("a").build()


@pytest.mark.inv("OPS-14", "GOAL-2")
def test_a_flow_with_two_ends_is_not_built_as_an_assessment() -> None:
    two_ends = FlowBuilder("two ends").add_block(REVIEW, alias="one").add_block(REVIEW, alias="two")
    two_ends.build()
    with pytest.raises(InvalidDefinitionError, match="one, two"):
        two_ends.build(assessment=True)


@pytest.mark.inv("OPS-14", "GOAL-1", "GOAL-2", "GOAL-3")
def test_a_contract_is_built_with_its_two_sides() -> None:
    part = ContractBuilder("Infrastructure").work_flow(JUDGE).build()
    pact = (
        ContractBuilder("Launch")
        .work_flow(sprint().build(), alias="work")
        .sub_contract(part, alias="infrastructure")
        .required_outcome("shipped", "It runs in production.")
        .required_outcome("liked")
        .assess("shipped", JUDGE, test_flows=[sprint().build()])
        .assess("shipped", JUDGE)
        .build()
    )
    assert [one.alias for one in pact.work_flows] == ["work"]
    assert [(one.contract_id, one.contract_version) for one in pact.sub_contracts] == [(part.id, 1)]
    assert [one.name for one in pact.required_outcomes] == ["shipped", "liked"]
    assert {one.required_outcome_id for one in pact.assessment_bindings} == {pact.required_outcomes[0].id}
    assert [len(one.test_flow_refs) for one in pact.assessment_bindings] == [1, 0]


@pytest.mark.inv("OPS-14", "GOAL-2", "OPS-12")
def test_a_faulty_contract_is_not_built() -> None:
    two_ends = FlowBuilder("two ends").add_block(REVIEW, alias="one").add_block(REVIEW, alias="two").build()
    builder = ContractBuilder("Launch").required_outcome("shipped")
    with pytest.raises(InvalidDefinitionError) as caught:
        builder.assess("shipped", two_ends).assess("unheard of", JUDGE).build()
    assert [(one.code, one.path) for one in caught.value.faults] == [
        ("unknown_outcome", "assessment_bindings[1].required_outcome_id"),
        ("assessment_terminal", "assessment_bindings[0]"),
    ]
