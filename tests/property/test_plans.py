"""Random workflows: compiled to one hash, and played to their end by an agent that reads only answers."""

import copy
import json
import random
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from tests.agents.agent import Agent, Task, Work
from tests.support.drawings import assert_drawn_whole
from tests.support.plans import KNOWN, Document, workflows
from tests.support.shares import examples

from interlock.define.diagnostics import has_errors
from interlock.define.document import WorkflowDocument
from interlock.define.front import parse_workflow
from interlock.kernel.errors import ErrorCode
from interlock.kernel.ids import NodeId
from interlock.plan.builtins.features import FEATURES
from interlock.plan.check.validate import validate_plan
from interlock.plan.compile.compiler import Compiled, compile_workflow
from interlock.plan.compiled import CompiledWorkflow, parse_compiled, pinned_bytes
from interlock.plan.graph import Graphs
from interlock.record.snapshot import Complete, Running, step_instance_key
from interlock.record.tokens import StateRef
from interlock.testing.harness import Harness, ToolResult

pytestmark = pytest.mark.exhaustive

unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
"""Documents are large and a loaded machine is no fault of ours."""
SEEDS = st.integers(0, 999)
TASKS = (Task("test.random"),)


def compiled(document: Document) -> CompiledWorkflow:
    parsed = parse_workflow(copy.deepcopy(document))
    assert isinstance(parsed, WorkflowDocument), parsed
    found = compile_workflow(parsed)
    assert isinstance(found, Compiled), found
    return found.workflow


def workflow_hash(document: Document) -> str:
    return pinned_bytes(compiled(document))[0]


# Compiling.


def shuffled(value: Any, chance: random.Random) -> Any:
    """Return a value whose objects list their members in another order."""
    if isinstance(value, list):
        return [shuffled(item, chance) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    members = list(cast("dict[str, Any]", value).items())
    chance.shuffle(members)
    return {key: shuffled(member, chance) for key, member in members}


@settings(unhurried, max_examples=examples(60))
@given(workflows(), SEEDS, st.permutations(sorted(FEATURES)))
@pytest.mark.inv("PLAN-7")
def test_a_document_has_one_hash_however_its_keys_and_features_are_ordered(
    document: Document, seed: int, order: list[str]
) -> None:
    document["features"] = sorted(FEATURES)
    other = shuffled(document, random.Random(seed))
    other["features"] = order
    assert workflow_hash(other) == workflow_hash(document)


@settings(unhurried, max_examples=examples(40))
@given(workflows(), st.data())
def test_one_changed_character_of_a_prompt_is_another_hash(document: Document, data: st.DataObject) -> None:
    before = workflow_hash(document)
    step = data.draw(st.sampled_from([part for part in parts_of(document) if "prompt" in part]))
    at = data.draw(st.integers(0, len(step["prompt"]) - 1))
    step["prompt"] = f"{step['prompt'][:at]}#{step['prompt'][at + 1 :]}"
    assert workflow_hash(document) != before


@pytest.mark.inv("IR-15")
@settings(unhurried, max_examples=examples(60))
@given(workflows())
def test_every_form_of_the_drawing_of_a_workflow_shows_every_step_once(document: Document) -> None:
    assert_drawn_whole(compiled(document))


@settings(unhurried, max_examples=examples(60))
@given(workflows())
def test_what_compiles_is_a_plan_without_faults_that_reads_back_as_it_was_pinned(document: Document) -> None:
    workflow = compiled(document)
    assert not has_errors(validate_plan(workflow.plan))
    _, data = pinned_bytes(workflow)
    assert parse_compiled(data) == workflow


def parts_of(value: Any) -> Iterator[Document]:
    """Yield every object inside a value."""
    if isinstance(value, dict):
        yield cast("Document", value)
    inner = cast("Mapping[str, Any]", value).values() if isinstance(value, dict) else value
    for member in inner if isinstance(value, dict | list) else ():
        yield from parts_of(member)


# Playing.


@settings(unhurried, max_examples=examples(120))
@given(workflows(), SEEDS, st.sampled_from([0.0, 0.5]), st.sampled_from(["structure", "text"]))
@pytest.mark.inv("WALK-2")
def test_an_agent_that_reads_only_answers_finishes_any_workflow(
    document: Document, seed: int, fault_rate: float, channel: Any
) -> None:
    harness = Harness.in_memory(document)
    played = Agent(TASKS, seed=seed, fault_rate=fault_rate, known=KNOWN, channel=channel).work(harness.call)
    assert played.is_complete
    assert ErrorCode.INTERNAL_ERROR not in played.errors
    event(f"steps: {len(played.presented) // 5 * 5} and more")
    assert_a_legal_walk(harness, played)


@settings(unhurried, max_examples=examples(500, every=16))
@given(workflows(), SEEDS)
@pytest.mark.inv("WALK-5", "PLAN-21")
def test_what_is_named_beside_a_step_is_independent_of_it_and_is_done_by_the_run_later(
    document: Document, seed: int
) -> None:
    harness = Harness.in_memory(document)
    played = Agent(TASKS, seed=seed, known=KNOWN).work(harness.call)
    graphs = compiled(document).graphs
    steps = [str(answer["pending"]["stepId"]) for answer in played.presented]
    carried: set[str] = set()
    for at, answer in enumerate(played.presented):
        pending = answer["pending"]
        beside = pending.get("parallelWith", [])
        for one in (steps[at], *beside):
            before = {inner for node in (*graphs.loops_around(one), one) for inner in steps_before(graphs, node)}
            assert before.isdisjoint({steps[at], *beside}), "no step of a group follows from another"
        assert {*beside} <= {*steps[at + 1 :]}, "no condition and no loop can still leave it out"
        prompts = {one for one in beside if f"For a subagent, `{one}`" in pending["prompt"]}
        assert carried.isdisjoint(prompts) or "loop" in pending, "a prompt for a subagent comes once"
        carried |= prompts


def assert_a_legal_walk(harness: Harness, played: Work) -> None:
    """Hold every snapshot from the run's root to where the agent came to an end against what a plan promises."""
    workflow, walked = walk_of(harness, played)
    graphs = workflow.graphs
    pending_keys: set[str] = set()
    passed_over: set[str] = set()
    for state in walked:
        done = {*state.completed.values, *state.skipped.values}
        assert passed_over.isdisjoint(state.completed.values), "what was passed over is not done later"
        passed_over |= {*state.skipped.values}
        assert_barriers_waited(graphs, state, done)
        if isinstance(state, Running):
            pending = state.pending.step
            key = step_instance_key(pending.step_id, pending.loop_path)
            assert key not in pending_keys | passed_over | done
            pending_keys.add(key)
            assert all(frame.iteration < graphs.loops[frame.loop_id].max_iterations for frame in pending.loop_path)
    last = walked[-1]
    assert isinstance(last, Complete)
    outside = {node.node_id for node in graphs.members[None] if node.kind != "terminal"}
    assert outside == {*last.completed.values} ^ {*last.skipped.values}


def assert_barriers_waited(graphs: Graphs, state: Running | Complete, done: set[str]) -> None:
    for key in state.completed.values:
        prefix, _, node_id = key.rpartition("::")
        if graphs.nodes[node_id].kind == "fan_in":
            before = {f"{prefix}::{step}" if prefix else step for step in steps_before(graphs, node_id)}
            assert before <= done, f"{node_id} waits for all of its branches"


def steps_before(graphs: Graphs, node_id: str) -> set[str]:
    """Return every node that leads to a node."""
    found: set[str] = set()
    frontier = [node_id]
    while frontier:
        sources = {edge.source for edge in graphs.in_edges.get(frontier.pop(), ())}
        frontier += sources - found
        found |= sources
    return found


def walk_of(harness: Harness, played: Work) -> tuple[CompiledWorkflow, list[Running | Complete]]:
    """Return a run's workflow and its states from the root to the node of the last answer, refusals left out."""
    ref = harness.reference_of(played.answers[-1])
    assert isinstance(ref, StateRef)
    session = harness.ports.read.reader.load(ref.session)
    assert session is not None
    plans = harness.ports.read.plans
    states: list[Running | Complete] = []
    at: NodeId | None = ref.node
    while at is not None:
        node = session.nodes[at]
        if node.kind == "step":
            states.append(plans.snapshot(node.snapshot, ref.workflow_hash).state)
        at = node.parent
    return plans.workflow(ref.workflow_hash), states[::-1]


@settings(unhurried, max_examples=examples(60))
@given(workflows(), SEEDS, st.data())
def test_a_fork_from_any_earlier_step_finishes_too(document: Document, seed: int, data: st.DataObject) -> None:
    harness = Harness.in_memory(document)
    played = Agent(TASKS, seed=seed, known=KNOWN).work(harness.call)
    redone = data.draw(st.sampled_from(played.presented))
    again = Agent(TASKS, seed=seed + 1, known=KNOWN).work(harness.call, after=fork_of(harness, redone))
    assert again.is_complete
    assert again.blocked or "BRANCH_CREATED" in again.warnings
    assert_a_legal_walk(harness, again)
    assert_a_legal_walk(harness, played)


def fork_of(harness: Harness, answer: ToolResult) -> ToolResult:
    """Return an answer with its call redone: what an agent makes of the fork that looking back offers."""
    offered = harness.rehydrate(answer)["fork"]["ackToken"]
    call = answer["nextCall"]
    redone = call | {"arguments": call["arguments"] | {"ackToken": offered}}
    return replace(answer, structure={**answer.structure, "nextCall": redone})


@settings(unhurried, max_examples=examples(40))
@given(workflows(), SEEDS, st.sampled_from([0.0, 0.5]), st.data())
def test_looking_twice_at_any_place_says_the_same_to_the_letter(
    document: Document, seed: int, fault_rate: float, data: st.DataObject
) -> None:
    harness = Harness.in_memory(document)
    played = Agent(TASKS, seed=seed, fault_rate=fault_rate, known=KNOWN).work(harness.call)
    place = data.draw(st.sampled_from([answer for answer in played.answers if "stateToken" in answer.structure]))
    first, second = harness.rehydrate(place), harness.rehydrate(place)
    assert json.dumps(dict(first.structure)) == json.dumps(dict(second.structure))
    assert first.text == second.text


@settings(unhurried, max_examples=examples(20))
@given(workflows(), SEEDS)
def test_a_run_goes_on_though_every_call_meets_a_fresh_process(document: Document, seed: int) -> None:
    with tempfile.TemporaryDirectory() as root:

        def call(tool: str, arguments: Mapping[str, object]) -> ToolResult:
            return Harness.on_disk(Path(root), document).call(tool, arguments)

        played = Agent(TASKS, seed=seed, known=KNOWN).work(call)
        assert_a_legal_walk(Harness.on_disk(Path(root), document), played)
    at_once = Agent(TASKS, seed=seed, known=KNOWN).work(Harness.in_memory(document).call)
    assert at_once.steps == played.steps, "who reads the log makes no difference"
