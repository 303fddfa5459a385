"""A step can be decided without a session wherever it is in a plan."""

import json
from pathlib import Path

import pytest
from tests.support.flow import LOOP_CONTROL, choose, compiled, compiled_dialect, loop, parallel, step

from interlock.define.document import WorkflowDocument
from interlock.define.front import parse_workflow
from interlock.engine import decide_step as module
from interlock.engine.decide_step import decide_step
from interlock.kernel.canonical import Json
from interlock.plan.compile.compiler import Compiled, compile_workflow
from interlock.plan.compiled import CompiledWorkflow
from interlock.record.snapshot import Running

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
