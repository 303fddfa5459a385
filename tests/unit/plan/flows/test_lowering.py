"""A flow runs on a plan: its slots are steps, its edges decide what follows, its ports carry values."""

import pytest
from tests.support.flow import compiled, parallel, step
from tests.support.flows import WORK, WORKFLOW_ID, decision, harness_of, lowered, outputs, run_to_end

from interlock.define.diagnostics import Diagnostics
from interlock.define.faults import find_value
from interlock.define.operations.builders import FlowBuilder, WorkBlockBuilder
from interlock.define.operations.definitions import Definitions
from interlock.define.operations.flows import Condition, Flow
from interlock.kernel.budgets.operations import PORT_VALUE_BYTES_MAX
from interlock.kernel.canonical import Json, digest_of
from interlock.plan.compile.compiler import Compiled
from interlock.plan.flows.lowering import compile_flow

WRITE = (
    WorkBlockBuilder("Write")
    .description("Write the text.")
    .input("topic", "what it is about")
    .output("text", "the text", schema={"type": "string"})
    .output("length", "its words", required=False)
    .hint("writing")
    .build()
)
READ = WorkBlockBuilder("Read").description("Read it.").input("text").input("draft", required=False).build()


def faults(flow: Flow) -> Diagnostics:
    found = compile_flow(flow, Definitions([WORK, WRITE, READ]))
    return found.warnings if isinstance(found, Compiled) else found


@pytest.mark.inv("OPS-16")
def test_a_flow_with_two_unconnected_parts_and_one_block_in_two_slots_hands_out_both() -> None:
    flow = (
        FlowBuilder("Two").add_block(WORK, alias="one").add_block(WORK, alias="two").entry("one").entry("two").build()
    )
    harness = harness_of(flow, WORK)
    assert run_to_end(harness, harness.start(WORKFLOW_ID), lambda _: outputs(go=1)) == ["one", "two"]
    assert lowered(flow, WORK).graphs.parallel_to("one") == ("two",)


@pytest.mark.inv("OPS-16", "OPS-17")
def test_a_step_shows_the_block_and_the_values_on_its_ports() -> None:
    flow = (
        FlowBuilder("Text")
        .add_block(WRITE, alias="write")
        .add_block(READ, alias="read")
        .entry("write", mappings={"subject": "topic"})
        .edge("write", "read", mappings={"text": "text"})
        .build()
    )
    harness = harness_of(flow, WRITE, READ)
    first = harness.start(WORKFLOW_ID, context={"subject": "rain"})
    prompt = first["pending"]["prompt"]
    for expected in ("Write the text.", "Input `topic`: what it is about: rain", "`writing`", '{"type": "string"}'):
        assert expected in prompt
    assert "- `length` (optional): its words" in prompt
    second = harness.advance(first, None, output=outputs(text="It rains."))
    assert second["pending"]["stepId"] == "read"
    assert "Input `text` from `write`: It rains." in second["pending"]["prompt"]
    assert "draft" not in second["pending"]["prompt"]
    assert harness.advance(second, "I read it.")["isComplete"]


@pytest.mark.inv("OPS-17")
def test_equal_names_are_connected_where_no_mapping_is_given() -> None:
    flow = FlowBuilder("Text").add_block(WRITE, alias="w").add_block(READ, alias="r").entry("w").edge("w", "r").build()
    harness = harness_of(flow, WRITE, READ)
    first = harness.start(WORKFLOW_ID)
    assert "Input `topic`: what it is about. It was not supplied" in first["pending"]["prompt"]
    second = harness.advance(first, None, output=outputs(text="abc"))
    assert "Input `text` from `w`: abc" in second["pending"]["prompt"]


@pytest.mark.inv("OPS-18")
def test_a_required_output_is_demanded_and_a_schema_is_not_enforced() -> None:
    flow = FlowBuilder("Text").add_block(WRITE, alias="w").entry("w").build()
    harness = harness_of(flow, WRITE)
    first = harness.start(WORKFLOW_ID)
    refused = harness.advance(first, None, output=outputs(length=3))
    assert refused["kind"] == "blocked"
    assert "text" in refused.text
    assert harness.advance(refused, None, output=outputs(text=["no", "text"]))["isComplete"]


@pytest.mark.inv("OPS-18")
def test_the_pack_of_a_block_is_pinned_with_the_plan() -> None:
    flow = FlowBuilder("Text").add_block(WRITE, alias="w").add_block(WRITE, alias="v").entry("w").entry("v").build()
    workflow = lowered(flow, WRITE)
    (pack,) = [one for one in workflow.contracts if one.artifact_kind == "wr.block_outputs"]
    assert pack.contract_ref == f"wr.contracts.block_outputs.{WRITE.id}.1"
    schema = pack.artifact_schema
    assert schema is not None
    assert find_value(schema, ("properties", "outputs", "required")) == ["text"]


@pytest.mark.inv("OPS-17")
def test_a_large_value_is_shown_by_its_digest() -> None:
    flow = FlowBuilder("Text").add_block(WRITE, alias="w").add_block(READ, alias="r").entry("w").edge("w", "r").build()
    harness = harness_of(flow, WRITE, READ)
    large = "x" * PORT_VALUE_BYTES_MAX
    second = harness.advance(harness.start(WORKFLOW_ID), None, output=outputs(text=large))
    assert digest_of(large) in second["pending"]["prompt"]
    assert large not in second["pending"]["prompt"]


@pytest.mark.inv("OPS-20")
@pytest.mark.parametrize("result", [True, False])
def test_a_condition_without_a_predicate_is_decided_by_an_agent(result: bool) -> None:  # noqa: FBT001 — a table
    flow = (
        FlowBuilder("Ask")
        .add_block(WORK, alias="one")
        .add_block(WORK, alias="two")
        .entry("one")
        .edge("one", "two", condition=Condition(description="the number is lucky"))
        .build()
    )
    harness = harness_of(flow, WORK)
    asked = harness.advance(harness.start(WORKFLOW_ID), None, output=outputs(go=7))
    assert asked["pending"]["stepId"] == "one--ask-1"
    assert "the number is lucky" in asked["pending"]["prompt"]
    assert '{"go":7}' in asked["pending"]["prompt"]
    after = harness.advance(asked, None, output=decision(result))
    assert (after["pending"] is not None and after["pending"]["stepId"] == "two") is result
    assert after["isComplete"] is not result


@pytest.mark.inv("OPS-20")
def test_an_entry_may_be_decided_by_an_agent_too() -> None:
    condition = Condition(description="there is work")
    harness = harness_of(
        FlowBuilder("Ask").add_block(WORK, alias="one").entry("one", condition=condition).build(), WORK
    )
    asked = harness.start(WORKFLOW_ID)
    assert asked["pending"]["stepId"] == "--begin--ask-0"
    assert harness.advance(asked, None, output=decision(False))["isComplete"]  # noqa: FBT003 — the value of a field


@pytest.mark.inv("OPS-19")
def test_a_predicate_of_another_form_falls_back_to_its_description_with_a_warning() -> None:
    condition = Condition(description="enough", predicate={"cel": "go > 1"})
    flow = FlowBuilder("CEL").add_block(WORK, alias="one").entry("one", condition=condition).build()
    assert [(one.code, one.path, one.severity) for one in faults(flow)] == [
        ("predicate_not_read", "edges[0].condition.predicate", "warning")
    ]
    assert "--begin--ask-0" in lowered(flow, WORK).steps


@pytest.mark.inv("OPS-19")
def test_a_predicate_may_read_the_outputs_of_any_slot_by_its_alias() -> None:
    predicate: dict[str, Json] = {"==": [{"var": "First.go"}, 1]}
    flow = (
        FlowBuilder("Far")
        .add_block(WORK, alias="First")
        .add_block(WORK, alias="two")
        .add_block(WORK, alias="three")
        .entry("First")
        .edge("First", "two")
        .edge("two", "three", condition=Condition(description="one", predicate=predicate))
        .build()
    )
    harness = harness_of(flow, WORK)
    (first, _, third) = lowered(flow, WORK).steps
    assert first == flow.nodes[0].id
    done = run_to_end(harness, harness.start(WORKFLOW_ID), lambda step: outputs(go=1 if step == first else 0))
    assert third in done


@pytest.mark.inv("OPS-16")
def test_a_step_has_the_alias_of_its_slot_if_that_is_unique_and_safe() -> None:
    flow = (
        FlowBuilder("Names")
        .add_block(WORK, alias="safe")
        .add_block(WORK, alias="not safe")
        .add_block(WORK, alias="a--b")
    )
    flow = flow.entry("safe").entry("not safe").entry("a--b").build()
    twice = flow.model_copy(update={"nodes": (*flow.nodes[:2], flow.nodes[2].model_copy(update={"alias": "safe"}))})
    ids = [slot.id for slot in flow.nodes]
    assert [*lowered(flow, WORK).steps] == ["safe", ids[1], ids[2]]
    del flow
    assert [*lowered(twice, WORK).steps] == ids


@pytest.mark.inv("OPS-16")
@pytest.mark.parametrize(
    ("flow", "expected", "word"),
    [
        (FlowBuilder("No entry").add_block(WORK, alias="a").build(), [("missing_entry", "edges")], "never begins"),
        (
            FlowBuilder("Lost").add_block(WORK, alias="a").add_block(WORK, alias="b").entry("a").build(),
            [("unreachable_node", "nodes[1]")],
            "'b'",
        ),
        (
            FlowBuilder("Ring")
            .add_block(WORK, alias="a")
            .add_block(WORK, alias="b")
            .add_block(WORK, alias="c")
            .entry("a")
            .edge("a", "b")
            .edge("b", "a")
            .edge("b", "c")
            .build(),
            [("unbounded_loop", "edges[2]")],
            "a → b → a",
        ),
        (
            FlowBuilder("Self")
            .add_block(WORK, alias="a")
            .add_block(WORK, alias="b")
            .entry("a")
            .edge("a", "a")
            .edge("a", "b")
            .build(),
            [("unbounded_loop", "edges[1]")],
            "a → a",
        ),
    ],
    ids=["no entry", "an unreachable slot", "a cycle", "an edge to itself"],
)
def test_a_flow_that_cannot_run_is_refused_with_its_place(
    flow: Flow, expected: list[tuple[str, str]], word: str
) -> None:
    found = faults(flow)
    assert [(one.code, one.path) for one in found] == expected
    assert word in found[0].message


def test_a_flow_with_faults_of_its_form_is_not_lowered() -> None:
    flow = FlowBuilder("Lost").add_block(WORK, alias="a").entry("a").build()
    found = compile_flow(flow, Definitions())
    assert not isinstance(found, Compiled)
    assert [one.code for one in found] == ["unknown_definition"]


@pytest.mark.inv("OPS-16")
def test_a_flow_too_long_to_show_is_refused() -> None:
    long = WorkBlockBuilder("Long").description("d" * 32_000).input("i", "e" * 2_000).build()
    flow = FlowBuilder("Long").add_block(long, alias="a").entry("a").build()
    found = compile_flow(flow, Definitions([long]))
    assert not isinstance(found, Compiled)
    assert [(one.code, one.path) for one in found] == [("too_long", "nodes[0]")]


@pytest.mark.inv("OPS-16")
def test_two_edges_between_the_same_slots_are_taken_if_one_of_them_is() -> None:
    one: dict[str, Json] = {"==": [{"var": "go"}, 1]}
    two: dict[str, Json] = {"==": [{"var": "go"}, 2]}
    flow = (
        FlowBuilder("Double")
        .add_block(WORK, alias="a")
        .add_block(WORK, alias="b")
        .entry("a")
        .entry("a")
        .edge("a", "b", condition=Condition(description="one", predicate=one))
        .edge("a", "b", condition=Condition(description="two", predicate=two))
        .build()
    )
    for value, expected in ((1, ["a", "b"]), (2, ["a", "b"]), (3, ["a"])):
        harness = harness_of(flow, WORK)
        assert run_to_end(harness, harness.start(WORKFLOW_ID), lambda _, go=value: outputs(go=go)) == expected


@pytest.mark.inv("OPS-16")
def test_a_flow_has_the_plan_of_the_workflow_that_says_the_same() -> None:
    """The work of the flow in parallel branches: the same steps, in the same order, with the same parallel steps."""
    builder = FlowBuilder("Same").add_block(WORK, alias="a").add_block(WORK, alias="b").add_block(WORK, alias="c")
    flow = lowered(builder.entry("a").entry("b").edge("a", "c").edge("b", "c").build(), WORK)
    workflow = compiled(parallel("p", [step("a")], [step("b")]), step("c"))
    assert [*flow.steps] == [*workflow.steps] == ["a", "b", "c"]
    for name in flow.steps:
        assert flow.graphs.parallel_to(name) == workflow.graphs.parallel_to(name)
    kinds = [[node.kind for node in one.plan.nodes if node.kind != "fan_in"] for one in (flow, workflow)]
    assert kinds[0] == kinds[1] == ["fan_out", "task", "task", "task", "terminal"]


@pytest.mark.inv("CTX-4", "CTX-6", "OPS-17")
@pytest.mark.parametrize("alias", ["goal", "constructor", "prototype", "__proto__"])
def test_a_slot_whose_outputs_would_replace_the_goal_or_a_reserved_key_is_a_fault(alias: str) -> None:
    flow = FlowBuilder("Text").add_block(WRITE, alias="one").add_block(WRITE, alias=alias).entry("one").entry(alias)
    (found,) = faults(flow.build())
    assert (found.path, found.code) == ("nodes[1].alias", "wrong_value")
    assert repr(alias) in found.message
