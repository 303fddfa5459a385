"""The bundled workflows: each is sound, shows what the language can do, and runs to its end on every way."""

import itertools
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from tests.support.evidence import NOTES, Change, artifacts_for, failures_of
from tests.support.flow import at_some_node

from interlock.decide.criteria import find_unmet
from interlock.decide.evaluate import value_at
from interlock.define.document import DELEGATE_TEXT
from interlock.define.front import parse_workflow
from interlock.engine.answer.prompt import prompt_of
from interlock.engine.gates import asks_of
from interlock.engine.judge.evidence import Judgement, judge
from interlock.engine.request import Request
from interlock.engine.template import rendered, with_loop_variables
from interlock.engine.walk.evaluating import Evaluating
from interlock.engine.walk.flow import WalkResult, loop_decisions_of, run_to_next_task
from interlock.kernel.canonical import Json
from interlock.plan.compile.compiler import Compiled, compile_workflow
from interlock.plan.compiled import CompiledWorkflow
from interlock.plan.records import LOOP_CONTROL_CONTRACT, PlanNode
from interlock.plan.walk import ExecutionState
from interlock.record.snapshot import Running

DIRECTORY = Path(__file__).parents[2] / "src" / "interlock" / "workflows"
SOURCES: dict[str, dict[str, Any]] = {
    f"wr.{path.stem}": json.loads(path.read_text(encoding="utf-8")) for path in sorted(DIRECTORY.glob("*.json"))
}
EXPECTED = {
    "wr.bug_investigation",
    "wr.code_review",
    "wr.coding_task",
    "wr.design_decision",
    "wr.documentation",
    "wr.incident_review",
    "wr.quick_task",
    "wr.refactoring",
    "wr.release_readiness",
    "wr.research",
    "wr.test_gap_analysis",
}
SHOWN_IN = {
    "assessmentConsequences": "wr.release_readiness",
    "assessmentRefs": "wr.research",
    "branches": "wr.code_review",
    "capabilities": "wr.research",
    "choose": "wr.coding_task",
    "conditions": "wr.release_readiness",
    "delegate": "wr.documentation",
    "features": "wr.incident_review",
    "forEach": "wr.test_gap_analysis",
    "functionDefinitions": "wr.refactoring",
    "functionReferences": "wr.refactoring",
    "inputs": "wr.coding_task",
    "needs": "wr.research",
    "needsUser": "wr.incident_review",
    "outputContract": "wr.quick_task",
    "produces": "wr.bug_investigation",
    "promptFragments": "wr.documentation",
    "proof": "wr.coding_task",
    "recommendedPreferences": "wr.bug_investigation",
    "refId": "wr.research",
    "references": "wr.release_readiness",
    "requireConfirmation": "wr.incident_review",
    "set": "wr.bug_investigation",
    "templateCall": "wr.design_decision",
    "until": "wr.design_decision",
    "validationCriteria": "wr.bug_investigation",
    "when": "wr.refactoring",
    "while": "wr.coding_task",
}
"""Each part of the language, and a workflow in which a reader finds it at work."""
CONTRACTS_SHOWN = {
    "coding_handoff",
    "decision",
    "discovery_handoff",
    "gate_verdict",
    "loop_control",
    "review_verdict",
    "verification_report",
}
ITEMS: dict[str, Json] = {
    "actions": {"title": "One", "answers": ["F1"], "effect": "Ten minutes.", "cost": "Small."},
    "behaviours": {"name": "One", "where": "a.py:1", "damage": "Much."},
    "gaps": {"name": "One", "bug": "It counts wrongly.", "where": "a.py:1", "level": "unit"},
    "moves": {"name": "One", "files": ["a.py"], "how": "Move it."},
    "questions": {"text": "What is it?", "good": "A number.", "where": "a.py:1"},
    "slices": {"name": "One", "does": "It counts.", "files": ["a.py"], "check": "make test", "serves": ["1"]},
}
"""An item of each list that a step produces."""
PRODUCED: dict[str, list[Json]] = {
    **{key: [[item], [item, item]] for key, item in ITEMS.items()},
    "gaps": [[], [ITEMS["gaps"], ITEMS["gaps"]]],
    "irreversible": [True, False],
    "kind": ["tutorial", "guide", "reference", "explanation"],
    "reproduction": ["reliable", "intermittent", "none"],
    "reversible": [True, False],
    "safety": ["covered", "thin"],
    "size": ["small", "large"],
    "wanted": ["tests", "report"],
    "wants": ["fix", "diagnosis"],
}
"""What an agent may send for each key that a step produces."""
AS_DESIGNED = Change(of="cause", fields={"support": "as_designed"})
AREAS = ("quality", "upgrade", "way_back", "operation", "communication")
READY = [*["ready"] * len(AREAS), "passed", "go"]
INPUT: dict[str, Json] = {"string": "something", "boolean": True}


def compiled(workflow_id: str) -> Compiled:
    document = parse_workflow(SOURCES[workflow_id])
    assert not isinstance(document, tuple), document
    outcome = compile_workflow(document)
    assert isinstance(outcome, Compiled), outcome
    return outcome


def values_of(value: object, name: str) -> Iterator[Any]:
    """Yield every value of a key, wherever it stands."""
    if isinstance(value, dict):
        for key, inner in cast("dict[str, object]", value).items():
            if key == name:
                yield inner
            yield from values_of(inner, name)
    elif isinstance(value, list):
        for inner in cast("list[object]", value):
            yield from values_of(inner, name)


@dataclass(kw_only=True)
class Agent:
    """Walks a workflow as an obedient agent: it sends good evidence but for one change, and the keys asked for."""

    workflow: CompiledWorkflow
    produced: Mapping[str, Json]
    goes_on: bool
    context: dict[str, Json]
    change: Change | None = None
    visited: list[str] = field(default_factory=list[str])

    def walk(self) -> list[str]:
        moved = run_to_next_task(
            self.workflow,
            ExecutionState(self.workflow.graphs),
            at_some_node(self.context),
            Evaluating(self.workflow.graphs),
        )
        while isinstance(moved, WalkResult) and isinstance(moved.state, Running):
            moved = self.step(moved.state)
        assert isinstance(moved, WalkResult), moved
        return self.visited

    def step(self, state: Running) -> Any:
        node = self.workflow.steps[state.pending.step.step_id]
        self.visited.append(node.node_id)
        seen = with_loop_variables(self.workflow.graphs, self.context, state.loop_stack)
        assert node.task is not None
        self.context |= {key: self.produced[key] for key in node.task.produces}
        asked = [ask.ask for ask in asks_of(node, {**self.context, **seen})]
        for words in (rendered(node.title, seen), prompt_of(self.workflow, node, seen), *asked):
            assert "[context key not set:" not in words
            assert "{{" not in words
        request, judged = self.judged(node, state, self.change)
        if judged.findings:
            request, judged = self.judged(node, state, None)
        assert judged.findings == ()
        before = dict(self.context)
        for action in node.task.sets:
            found = before.get(action.source or "", value_at(judged.values, action.source or ""))
            self.context[action.key] = cast("Json", found) if action.source else action.value
        marks = ExecutionState(self.workflow.graphs, state)
        marks.complete(node.node_id)
        decider = Evaluating(self.workflow.graphs, loop_decisions_of(request.artifacts))
        return run_to_next_task(self.workflow, marks, at_some_node(self.context), decider)

    def judged(self, node: PlanNode, state: Running, change: Change | None) -> tuple[Request, Judgement]:
        artifacts = artifacts_for(self.workflow, node, change)
        if node.evidence_schema_ref == LOOP_CONTROL_CONTRACT:
            frame = state.loop_stack[-1]
            is_last = frame.iteration + 1 == self.workflow.graphs.loops[frame.loop_id].max_iterations
            artifacts = [artifacts[0] | {"decision": "continue" if self.goes_on and not is_last else "stop"}]
        request = Request(notes=NOTES, artifacts=tuple(artifacts))
        return request, judge(self.workflow, node, request, self.context)


def agents(workflow: CompiledWorkflow, *changes: Change | None) -> Iterator[Agent]:
    """Yield an agent for each change and each combination of what it may send, of more loop passes, of inputs."""
    keys = sorted({key for node in workflow.steps.values() if node.task for key in node.task.produces})
    needed = {one.key: INPUT[one.type] for one in workflow.inputs if one.required}
    given: dict[str, Json] = {
        one.key: one.choices[0] if one.choices else INPUT[one.type]
        for one in workflow.inputs
        if one.key not in workflow.set_by or one.key in keys
    }
    for values in itertools.product(*(PRODUCED[key] for key in keys)):
        for goes_on, inputs, change in itertools.product((False, True), (needed, given), changes or (None,)):
            yield Agent(
                workflow=workflow,
                produced=dict(zip(keys, values, strict=True)),
                goes_on=goes_on,
                context={"goal": "Try it", **inputs},
                change=change,
            )


@dataclass(kw_only=True)
class FailsUntilRepaired(Agent):
    """Reports the worst result of every contract until it repairs something, and the best one from then on."""

    def judged(self, node: PlanNode, state: Running, change: Change | None) -> tuple[Request, Judgement]:
        failures = [] if "repair" in self.visited else [*failures_of(self.workflow, node)]
        contracts = [one for one in failures if one.of.startswith("wr.contracts.")]
        return super().judged(node, state, contracts[0] if contracts else change)


def repairers(workflow: CompiledWorkflow) -> Iterator[FailsUntilRepaired]:
    """Yield an agent of that kind for each combination of what it may send."""
    for one in agents(workflow):
        yield FailsUntilRepaired(workflow=workflow, produced=one.produced, goes_on=one.goes_on, context=one.context)


def changes_of(workflow: CompiledWorkflow) -> list[Change | None]:
    """Return each way in which some evidence of a workflow may say something else than that all is well."""
    found: list[Change | None] = [None]
    for node in workflow.steps.values():
        found += [change for change in failures_of(workflow, node) if change not in found]
    return [*found, AS_DESIGNED] if "cause" in workflow.ratings else found


def test_these_workflows_are_bundled_each_under_its_own_name() -> None:
    assert set(SOURCES) == EXPECTED
    assert [source["id"] for source in SOURCES.values()] == list(SOURCES)


@pytest.mark.parametrize("workflow_id", SOURCES)
def test_a_bundled_workflow_compiles_without_a_diagnostic(workflow_id: str) -> None:
    assert compiled(workflow_id).warnings == ()


@pytest.mark.parametrize("workflow_id", SOURCES)
def test_a_bundled_workflow_helps_to_choose_it(workflow_id: str) -> None:
    source = SOURCES[workflow_id]
    first, _, rest = source["description"].partition(". ")
    assert len(source["description"]) >= 80
    assert len(first) < 200, "a list shows no more"
    assert "Not " in rest, "says when it is the wrong one"
    assert 2 <= len(source["tags"]) <= 4
    assert 2 <= len(source["examples"]) <= 4
    assert all(10 <= len(example) <= 120 for example in source["examples"])


@pytest.mark.parametrize("workflow_id", SOURCES)
def test_a_bundled_workflow_points_only_at_bundled_workflows(workflow_id: str) -> None:
    named = {word.strip("(),.;:") for word in SOURCES[workflow_id]["description"].split() if "wr." in word}
    assert named <= EXPECTED - {workflow_id}


@pytest.mark.parametrize("workflow_id", SOURCES)
def test_no_step_of_a_bundled_workflow_takes_a_word_for_an_account(workflow_id: str) -> None:
    """A routine has no criteria of its own; everything else that wants notes refuses a word and takes good notes."""
    workflow = compiled(workflow_id).workflow
    for node in workflow.steps.values():
        assert node.task is not None
        wanted = node.task.evidence
        if node.provenance.source != "authored" or wanted.notes != "required":
            continue
        assert wanted.criteria is not None, node.node_id
        for context in ({}, {"reproduction": "reliable"}):
            for word in ("ok", "Done.", "All checks passed."):
                assert find_unmet(wanted.criteria, word, context), node.node_id
            assert find_unmet(wanted.criteria, NOTES, context) == [], node.node_id


@pytest.mark.parametrize("workflow_id", SOURCES)
def test_each_key_with_choices_that_a_step_asks_for_is_held_to_them(workflow_id: str) -> None:
    """A word that no condition knows would quietly take the way of `otherwise`."""
    workflow = compiled(workflow_id).workflow
    declared = {one.key: one for one in workflow.inputs}
    for node in workflow.steps.values():
        assert node.task is not None
        copied = {action.key for action in node.task.sets if action.source == action.key}
        for key in node.task.produces:
            is_list = isinstance(PRODUCED[key][0], list)
            assert is_list or (key in copied and (declared[key].choices or declared[key].type == "boolean")), key


@pytest.mark.parametrize("workflow_id", SOURCES)
def test_the_prompts_of_a_bundled_workflow_are_short(workflow_id: str) -> None:
    workflow = compiled(workflow_id).workflow
    assert 2 <= len(SOURCES[workflow_id]["steps"]) <= 10
    for node in workflow.steps.values():
        if node.provenance.source == "authored" and node.task is not None:
            texts = [node.task.prompt, *(fragment.text for fragment in node.task.fragments)]
            assert 300 <= len("\n\n".join(texts).encode()) < 4096, node.node_id


@pytest.mark.parametrize("workflow_id", ["wr.bug_investigation", "wr.code_review", "wr.coding_task", "wr.quick_task"])
def test_the_everyday_workflows_start_with_nothing_but_a_goal(workflow_id: str) -> None:
    assert not [one for one in compiled(workflow_id).workflow.inputs if one.required]


@pytest.mark.parametrize(("part", "workflow_id"), SHOWN_IN.items())
def test_each_part_of_the_language_is_at_work_somewhere(part: str, workflow_id: str) -> None:
    assert list(values_of(SOURCES[workflow_id], part))


def test_the_bundled_workflows_ask_for_typed_evidence_of_many_kinds() -> None:
    refs = {ref for source in SOURCES.values() for ref in values_of(source, "contractRef")}
    assert refs == {f"wr.contracts.{name}" for name in CONTRACTS_SHOWN}


@pytest.mark.parametrize("workflow_id", SOURCES)
def test_a_bundled_workflow_runs_to_its_end_on_every_way_and_each_step_is_on_one(workflow_id: str) -> None:
    """Whatever the agent answers of what it may answer, nothing refuses it, and no prompt shows a hole."""
    workflow = compiled(workflow_id).workflow
    visited: set[str] = set()
    for agent in itertools.chain(agents(workflow, *changes_of(workflow)), repairers(workflow)):
        visited |= set(agent.walk())
    assert visited == set(workflow.steps)


def test_a_small_coding_task_has_no_plan_and_a_large_one_is_built_slice_by_slice() -> None:
    ways = {
        (str(agent.produced["size"]), bool(agent.produced["slices"]), "depth" in agent.context): agent.walk()
        for agent in agents(compiled("wr.coding_task").workflow)
    }
    end = ["self_review", "verify", "hand_over"]
    assert ways["small", True, False] == ["understand", "small_change", *end]
    assert ways["large", True, False] == ["understand", "plan", "attack_plan", "agree", "slice", "slice", *end]
    assert ways["large", True, True] == ["understand", "plan", "agree", "slice", "slice", *end]


def test_a_bug_is_fixed_only_where_a_fix_is_wanted_and_a_cause_is_known() -> None:
    workflow = compiled("wr.bug_investigation").workflow
    for agent in agents(workflow, None, AS_DESIGNED, Change(of="cause", fields={"support": "open"})):
        is_wanted = agent.produced["wants"] == "fix"
        visited = agent.walk()
        assert ("fix" in visited) == (is_wanted and agent.change is None)
        assert ("as_designed" in visited) == (agent.change is AS_DESIGNED)
        assert ("open_cause" in visited) == (agent.change is not None and agent.change is not AS_DESIGNED)


@pytest.mark.parametrize("workflow_id", [name for name, one in SOURCES.items() if "repair" in values_of(one, "id")])
def test_a_repair_that_passes_leaves_nothing_open(workflow_id: str) -> None:
    """A finding from before the repair is judged once more: nobody has to accept it, and no text doubts the end."""
    workflow = compiled(workflow_id).workflow
    is_repaired = False
    for agent in repairers(workflow):
        visited = agent.walk()
        if "repair" not in visited:
            continue
        is_repaired = True
        assert visited.count("repair") == 1
        assert "unresolved" not in visited
        task = workflow.steps[visited[-1]].task
        assert task is not None
        shown = prompt_of(workflow, workflow.steps[visited[-1]], agent.context)
        doubts = [one.text for one in task.fragments if one.fragment_id in {"open", "not-verified", "findings"}]
        assert not [text for text in doubts if rendered(text, agent.context) in shown]
    assert is_repaired


def test_a_finding_that_outlives_the_repair_is_still_decided_by_the_user() -> None:
    workflow = compiled("wr.coding_task").workflow
    blocking = next(one for one in changes_of(workflow) if one is not None and one.fields.get("verdict") == "blocking")
    for agent in agents(workflow, blocking):
        assert "unresolved" in agent.walk()
        shown = prompt_of(workflow, workflow.steps["hand_over"], agent.context)
        assert "The checks passed, but the last review left something open" in shown
        assert "The change is not verified" not in shown


@dataclass(kw_only=True)
class ProvesLate(Agent):
    """Rates every round of experiments alike, the cause by what it finds after them, and what is left at the end."""

    cause: Change
    left: Change

    def judged(self, node: PlanNode, state: Running, change: Change | None) -> tuple[Request, Judgement]:
        later = {"root_cause": self.cause, "survivors": self.left}
        return super().judged(node, state, later.get(node.node_id, change))


def round_of(explanation: str) -> Change:
    return Change(of="round", fields={"explanation": explanation})


@pytest.mark.parametrize("left", ["confirmed", "testable", "exhausted"])
@pytest.mark.parametrize("explanation", ["testable", "exhausted"])
@pytest.mark.parametrize("support", ["proven", "likely"])
def test_a_cause_found_after_the_experiments_leads_to_the_remedy_if_it_alone_is_left(
    support: str, explanation: str, left: str
) -> None:
    workflow = compiled("wr.bug_investigation").workflow
    cause = Change(of="cause", fields={"support": support})
    for agent in agents(workflow, round_of(explanation)):
        late = ProvesLate(**vars(agent), cause=cause, left=round_of(left))
        visited = late.walk()
        assert visited.count("survivors") == 1
        assert ("fix" in visited) == (left == "confirmed" and agent.produced["wants"] == "fix")
        assert ("open_cause" in visited) == (left != "confirmed")


def test_a_cause_that_the_experiments_confirmed_is_compared_with_nothing() -> None:
    for agent in agents(compiled("wr.bug_investigation").workflow):
        assert "survivors" not in agent.walk()


@pytest.mark.inv("PLAN-28")
@pytest.mark.parametrize("workflow_id", SOURCES)
def test_no_prompt_of_a_bundled_workflow_orders_to_delegate_with_nothing_below(workflow_id: str) -> None:
    workflow = compiled(workflow_id).workflow
    contexts: list[dict[str, Json]] = [{}, *({"depth": depth, "iteration": 2} for depth in ("quick", "thorough"))]
    for node, context in itertools.product(workflow.steps.values(), contexts):
        shown = prompt_of(workflow, node, context)
        assert (DELEGATE_TEXT in shown) == ("Subagent: **" in shown), (node.node_id, context)


def test_no_release_is_put_to_its_owner_that_is_not_recommended() -> None:
    workflow = compiled("wr.release_readiness").workflow
    for agent in agents(workflow, *changes_of(workflow)):
        visited = agent.walk()
        is_ready = [agent.context[key] for key in (*AREAS, "build", "recommendation")] == READY
        assert ("go" in visited) == is_ready
        is_refused = agent.change is not None and agent.change.of == "wr.contracts.decision"
        assert ("no_go" in visited) == (not is_ready or is_refused)
        assert ("rehearse" in visited) == agent.produced["irreversible"]


ASKS = re.compile(
    r"(?<!rules )ask (for|the|only|them)\b|take silence|user's (agreement|words)|decision is the user's"
    r"|the user (wants|gives|chooses)",
    re.IGNORECASE,
)
"""What tells an agent to ask the user, or to wait for an answer."""


@pytest.mark.inv("MODE-8", "PLAN-22")
@pytest.mark.parametrize("workflow_id", SOURCES)
def test_no_prompt_of_a_bundled_workflow_asks_the_user_in_a_run_that_never_stops(workflow_id: str) -> None:
    workflow = compiled(workflow_id).workflow
    for node in workflow.steps.values():
        assert node.task is not None
        asks = [one for one in node.task.fragments if one.asks_user]
        assert not ASKS.search(prompt_of(workflow, node, {}, never_stops=True)), node.node_id
        prompt = prompt_of(workflow, node, {})
        assert all(rendered(one.text, {}) in prompt for one in asks), node.node_id
        if asks or node.task.needs_user:
            assert "decide as the user would" in prompt_of(workflow, node, {}, never_stops=True), node.node_id
        assert not node.task.needs_user or "**Ask the user for this**" in prompt, node.node_id
