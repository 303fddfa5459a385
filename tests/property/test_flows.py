"""Random flows run to their end, and exactly the slots are done that a model of their edges takes."""

import json
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.drawings import assert_drawn_whole
from tests.support.flows import WORK, WORKFLOW_ID, RandomFlow, harness_of, lowered, outputs, random_flows, run_to_end
from tests.support.lifecycle import hold_lifecycle, run_of
from tests.support.shares import examples

from interlock.define.patterns import PatternChecker
from interlock.plan.check.plan_file import parse_plan_file, plan_document
from interlock.plan.compiled import CompiledWorkflow, pinned_bytes
from interlock.plan.graph import Graphs
from interlock.service.run.lifecycle import read_executions

pytestmark = pytest.mark.exhaustive


@pytest.mark.inv("OPS-16", "OPS-19", "EXE-13", "EXE-10")
@settings(max_examples=examples(60), deadline=None)
@given(one=random_flows(), begin=st.integers(0, 1))
def test_a_random_flow_does_exactly_the_slots_that_its_model_takes(one: RandomFlow, begin: int) -> None:
    flow = one.build()
    harness = harness_of(flow, WORK)
    first = harness.start(WORKFLOW_ID, context={"go": begin})
    assert not first.is_error, first.text
    done = run_to_end(harness, first, lambda step: outputs(go=one.go[step]))
    assert set(done) == one.taken(begin)
    assert len(done) == len(set(done))
    context = run_of(harness, first)
    assert context.run.tip is not None
    executions = read_executions(harness.store, context, context.session.nodes[context.run.tip])
    states = {executions.slots[block.id]: block.state for block in executions.blocks}
    assert states == {slot: "completed" if slot in done else "skipped" for slot in one.slots}
    assert executions.terminal_slots == tuple(
        flow.nodes[one.slots.index(slot)].id for slot in lowered(flow, WORK).steps if one.is_terminal(slot)
    )
    assert executions.flow.state == "completed"
    assert (executions.flow.flow_id, executions.flow.flow_version) == (flow.id, flow.version)
    hold_lifecycle(harness.store, context.session, context.run.run)


@pytest.mark.inv("WALK-5")
@settings(max_examples=examples(60), deadline=None)
@given(one=random_flows(), begin=st.integers(0, 1))
def test_what_a_step_of_a_flow_names_beside_it_is_done_later_and_follows_from_none_of_the_group(
    one: RandomFlow, begin: int
) -> None:
    harness = harness_of(one.build(), WORK)
    graphs = lowered(one.build(), WORK).graphs
    answer = harness.start(WORKFLOW_ID, context={"go": begin})
    promised: set[str] = set()
    while not answer["isComplete"]:
        step, beside = answer["pending"]["stepId"], answer["pending"].get("parallelWith", [])
        promised = (promised | {*beside}) - {step}
        for left, right in combinations([step, *beside], 2):
            assert not reaches(graphs, left, right)
            assert not reaches(graphs, right, left)
        answer = harness.advance(answer, None, output=outputs(go=one.go[step]))
    assert not promised


@pytest.mark.inv("IR-15")
@settings(max_examples=examples(300, every=6), deadline=None)
@given(one=random_flows())
def test_every_form_of_the_drawing_of_a_flow_shows_every_step_once(one: RandomFlow) -> None:
    assert_drawn_whole(lowered(one.build(), WORK))


def reaches(graphs: Graphs, source: str, target: str) -> bool:
    return source == target or any(reaches(graphs, edge.target, target) for edge in graphs.out_edges.get(source, ()))


@pytest.mark.inv("OPS-16")
@settings(max_examples=examples(60), deadline=None)
@given(one=random_flows())
def test_two_steps_are_parallel_if_neither_waits_for_the_other_and_a_fork_leads_to_both(one: RandomFlow) -> None:
    graphs = lowered(one.build(), WORK).graphs
    for left, right in combinations(one.slots, 2):
        is_forked = any(
            reaches(graphs, first.target, left) and reaches(graphs, second.target, right)
            for node in graphs.nodes.values()
            if node.kind != "decision"
            for first in graphs.out_edges.get(node.node_id, ())
            for second in graphs.out_edges.get(node.node_id, ())
            if first is not second
        )
        expected = is_forked and not reaches(graphs, left, right) and not reaches(graphs, right, left)
        assert (right in graphs.parallel_to(left)) == (left in graphs.parallel_to(right)) == expected


@pytest.mark.inv("IR-14", "OPS-18")
@settings(max_examples=examples(60), deadline=None)
@given(one=random_flows())
def test_the_plan_of_a_random_flow_is_read_back_and_exported_as_the_same_bytes(one: RandomFlow) -> None:
    workflow = lowered(one.build(), WORK)
    exported = json.dumps(plan_document(workflow))
    read = parse_plan_file(json.loads(exported), PatternChecker())
    assert isinstance(read, CompiledWorkflow), read
    assert pinned_bytes(read) == pinned_bytes(workflow)
    assert json.dumps(plan_document(read)) == exported
