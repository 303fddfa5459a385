"""A step can be decided without a session, at every place of a plan."""

import json
from pathlib import Path

import pytest
from tests.support.flow import LOOP_CONTROL, choose, compiled, compiled_dialect, document, loop, parallel, step

from interlock.decide.evaluation_pass import PassResult
from interlock.define.document import WorkflowDocument
from interlock.define.front import parse_workflow
from interlock.engine import decide_step as module
from interlock.engine.decide_step import decide_step
from interlock.kernel.canonical import Json
from interlock.plan.compile.compiler import Compiled, compile_workflow
from interlock.plan.compiled import CompiledWorkflow
from interlock.record.events import DecisionTraceAppendedEvent
from interlock.record.snapshot import Running
from interlock.testing.harness import Harness

DIRECTORY = Path(module.__file__).parents[1] / "workflows"


def bundled(path: Path) -> CompiledWorkflow:
    parsed = parse_workflow(json.loads(path.read_text(encoding="utf-8")))
    assert isinstance(parsed, WorkflowDocument), parsed
    found = compile_workflow(parsed)
    assert isinstance(found, Compiled), found
    return found.workflow


@pytest.mark.parametrize("path", sorted(DIRECTORY.glob("*.json")), ids=lambda path: path.stem)
def test_every_step_of_a_bundled_workflow_can_be_decided(path: Path) -> None:
    workflow = bundled(path)
    context: dict[str, Json] = {one.items: [{}] for one in workflow.graphs.loops.values() if one.items is not None}
    for step_id in workflow.steps:
        decided = decide_step(workflow, step_id, context)
        assert decided.findings or decided.state is not None
        reasons = " ".join(finding.message for finding in decided.findings)
        assert "for a pass of" not in reasons, "every loop around has an item"


@pytest.mark.inv("DEC-15")
@pytest.mark.parametrize("level", [0, 1, 7])
def test_a_step_is_decided_as_a_report_of_it_is_captured(level: int) -> None:
    sets = [
        {"key": "level", "compute": {"add": [{"var": "level"}, 1]}},
        {"key": "mode", "value": "high", "when": {"var": "level", "gt": 0}},
    ]
    ways = ({"var": "mode", "exists": True}, [step("b")])
    flow = document(step("a", set=sets), choose("pick", ways, ({"var": "level", "gt": 5}, [step("c")])), step("d"))
    context: dict[str, Json] = {"level": level}
    harness = Harness.in_memory(flow)
    first = harness.start("test.flow", context=context)
    answer = harness.advance(first)
    events = harness.events(harness.session_of(first))
    traces = [event.data for event in events if isinstance(event, DecisionTraceAppendedEvent)]
    (ref,) = {trace.capture_ref for trace in traces if trace.capture_ref is not None}
    capture = json.loads(harness.store.artifact(ref))
    decided = decide_step(compiled(*flow["steps"]), "a", context)
    assert isinstance(decided.evaluated, PassResult)
    assert dict(decided.evaluated.triggers) == {one["trigger"]: one["emitted"] for one in capture["triggers"]}
    kinds = {f"action:{one['key']}": one["kind"] for one in capture["outcomes"]}
    assert {action: one.kind for action, one in decided.evaluated.outcomes.items()} == kinds
    effects = {one["key"]: one["value"] for one in capture["effects"]}
    assert {one.key: one.value for one in decided.evaluated.effects} == effects
    decisions = [(one["at"], one["conditionId"], one["verdict"], one.get("took")) for one in capture["decisions"]]
    assert [(one.point.node_id, one.condition_id, one.verdict, one.took) for one in decided.decided] == decisions
    assert isinstance(decided.state, Running)
    assert decided.state.pending.step.step_id == answer["pending"]["stepId"]


def test_the_way_to_a_step_ignores_what_conditions_say() -> None:
    never = {"var": "mode", "equals": "never"}
    workflow = compiled(
        loop("skipped", step("before"), until=never),
        choose("pick", (never, [step("a")]), (never, [step("b")]), otherwise=[step("c")]),
        parallel("both", [step("d")], [choose("inner", (never, [loop("twice", step("e"), **{"for": {"count": 0}})]))]),
        loop("last", loop("nested", step("f"), **{"while": never}), until=never),
    )
    context = {"mode": "always"}
    following: dict[str, str | None] = {}
    for step_id in workflow.steps:
        decided = decide_step(workflow, step_id, context)
        assert decided.findings == (), step_id
        state = decided.state
        following[step_id] = state.pending.step.step_id if isinstance(state, Running) else None
    assert following["a"] == following["b"] == following["c"] == "d"
    # The loops of `e` and `nested` have no further pass; `last` has three passes, each without one of `nested`.
    assert following["before"] == "before"
    assert (following["e"], following["f"]) == (None, None)


def test_a_step_of_a_loop_that_is_checked_before_each_step_is_reached() -> None:
    body = [{"id": name, "title": name, "prompt": f"Do {name}."} for name in ("one", "two")]
    control = {"type": "while", "condition": {"var": "mode", "equals": "go"}, "maxIterations": 2}
    workflow = compiled_dialect({"id": "again", "type": "loop", "title": "Again", "loop": control, "body": body})
    stopped, going = (decide_step(workflow, "one", {"mode": mode}).state for mode in ("stop", "go"))
    assert isinstance(going, Running)
    assert going.pending.step.step_id == "two"
    assert not isinstance(stopped, Running)


def test_the_decision_of_a_loop_is_that_of_the_artifact() -> None:
    ask = step("ask", outputContract={"contractRef": LOOP_CONTROL})
    again = {"while": {"kind": "loop_control"}}
    workflow = compiled(loop("again", step("work"), ask, **again), step("after"))
    for decision, following in (("continue", "work"), ("stop", "after")):
        state = decide_step(
            workflow, "ask", {}, ({"kind": "wr.loop_control", "decision": decision, "summary": "As found."},)
        ).state
        assert isinstance(state, Running)
        assert state.pending.step.step_id == following
    refused = decide_step(workflow, "ask", {})
    assert refused.findings
    assert refused.state is None
