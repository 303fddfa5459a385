"""The compiler: the same document is the same plan and the same hash, whatever its spelling; another is another."""

import copy
import json
import random
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from interlock.decide.condition import Always
from interlock.define.diagnostics import Diagnostic
from interlock.define.document import WorkflowDocument
from interlock.define.front import parse_workflow
from interlock.define.source.text_form import TextFormat, parse_text
from interlock.kernel.budgets.workflow import (
    PROMPT_BYTES_MAX,
)
from interlock.kernel.canonical import canonical_bytes, digest_of
from interlock.plan.compile.compiler import Compiled, compile_workflow, placement_diagnostics
from interlock.plan.compiled import CompiledWorkflow, parse_compiled, pinned_bytes
from interlock.plan.records import NOTES_CONTRACT, STEP_INPUT, PlanNode, Task
from interlock.record.errors import MalformedRecordError, UnknownVersionError

Document = dict[str, Any]
DOCUMENT: Document = {
    "id": "test.everything",
    "name": "Everything",
    "description": "Uses each key once.",
    "tags": ["one", "two"],
    "agentRole": "You do it all.",
    "guidance": ["First of all.", "Last of all."],
    "references": [
        {"id": "spec", "title": "Spec", "source": "docs/spec.md", "purpose": "Binding.", "authoritative": True},
        {"id": "wiki", "title": "Wiki", "source": "docs/wiki.md", "purpose": "Helpful."},
    ],
    "steps": [
        {
            "id": "blocks",
            "title": "In blocks",
            "promptBlocks": {
                "goal": "The goal of {{ticket.id}}.",
                "constraints": ["No haste.", "No waste."],
                "procedure": ["Look.", "Act."],
                "outputRequired": ["A result."],
                "verify": ["It holds."],
            },
            "guidance": ["Mind the gap."],
            "requireConfirmation": True,
        },
        {
            "id": "plain",
            "title": "Plain",
            "prompt": "Do it.",
            "agentRole": "You are somebody else.",
            "notes": "optional",
        },
        {"id": "last", "title": "Last", "prompt": "Finish."},
    ],
}


def parsed(document: Document) -> WorkflowDocument:
    found = parse_workflow(document)
    assert isinstance(found, WorkflowDocument), found
    return found


def compiled(document: Document) -> CompiledWorkflow:
    found = compile_workflow(parsed(document))
    assert isinstance(found, Compiled), found
    return found.workflow


def task_of(node: PlanNode) -> Task:
    assert node.task is not None
    return node.task


def hash_of(document: Document) -> str:
    return pinned_bytes(compiled(document))[0]


def shuffled(value: object, rng: random.Random) -> Any:
    """Return an equal value whose objects were filled in another order."""
    if isinstance(value, dict):
        items = list(cast("Document", value).items())
        rng.shuffle(items)
        return {key: shuffled(item, rng) for key, item in items}
    if isinstance(value, list):
        return [shuffled(item, rng) for item in cast("list[object]", value)]
    return value


@pytest.mark.inv("PLAN-1")
@given(st.integers(min_value=0))
def test_the_order_of_keys_does_not_reach_the_hash(seed: int) -> None:
    assert hash_of(shuffled(DOCUMENT, random.Random(seed))) == hash_of(DOCUMENT)


def as_yaml(document: Document) -> bytes:
    return yaml.safe_dump(document, sort_keys=False).encode()


SPELLINGS: dict[str, tuple[TextFormat, Callable[[Document], bytes]]] = {
    "compact json": ("json", lambda document: json.dumps(document, separators=(",", ":")).encode()),
    "indented json": ("json", lambda document: json.dumps(document, indent=4).encode()),
    "yaml": ("yaml", as_yaml),
    "json read as yaml": ("yaml", lambda document: json.dumps(document).encode()),
}


@pytest.mark.inv("PLAN-1")
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_the_spelling_of_the_file_does_not_reach_the_hash(spelling: str) -> None:
    form, write = SPELLINGS[spelling]
    value = parse_text(write(DOCUMENT), form)
    assert not isinstance(value, Diagnostic), value
    assert hash_of(value) == hash_of(DOCUMENT)


@pytest.mark.inv("PLAN-1")
def test_saying_a_default_is_saying_nothing() -> None:
    said = copy.deepcopy(DOCUMENT)
    said["steps"][2] |= {"notes": "required", "requireConfirmation": False, "guidance": [], "agentRole": None}
    said["references"][1]["authoritative"] = False
    assert hash_of(said) == hash_of(DOCUMENT)


def texts_of(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the place of every text in a document."""
    if isinstance(value, str):
        yield path
    elif isinstance(value, dict):
        for key, item in cast("Document", value).items():
            yield from texts_of(item, (*path, key))
    elif isinstance(value, list):
        for at, item in enumerate(cast("list[object]", value)):
            yield from texts_of(item, (*path, at))


def changed_at(path: tuple[str | int, ...], change: Callable[[Any], Any]) -> Document:
    document: Any = copy.deepcopy(DOCUMENT)
    here = document
    for part in path[:-1]:
        here = here[part]
    here[path[-1]] = change(here[path[-1]])
    return cast("Document", document)


INSTRUCTIONS = [path for path in texts_of(DOCUMENT) if path[0] != "tags" and path[-1] != "notes"]


@pytest.mark.inv("PLAN-1")
@pytest.mark.parametrize("path", INSTRUCTIONS, ids=lambda path: ".".join(map(str, path)))
def test_one_more_character_in_any_instruction_is_another_hash(path: tuple[str | int, ...]) -> None:
    assert hash_of(changed_at(path, lambda text: f"{text}x")) != hash_of(DOCUMENT)


SWITCHES: list[tuple[tuple[str | int, ...], object]] = [
    (("steps", 0, "requireConfirmation"), False),
    (("steps", 1, "notes"), "required"),
    (("references", 0, "authoritative"), False),
]


@pytest.mark.inv("PLAN-1")
@pytest.mark.parametrize(("path", "value"), SWITCHES, ids=str)
def test_another_switch_is_another_hash(path: tuple[str | int, ...], value: object) -> None:
    assert hash_of(changed_at(path, lambda _: value)) != hash_of(DOCUMENT)


@pytest.mark.inv("PLAN-1")
@pytest.mark.parametrize("name", ["steps", "references", "guidance"])
def test_another_order_of_a_list_is_another_hash(name: str) -> None:
    assert hash_of(changed_at((name,), lambda items: items[::-1])) != hash_of(DOCUMENT)


def test_tags_help_to_find_a_workflow_and_are_no_part_of_what_runs() -> None:
    assert hash_of(changed_at(("tags",), lambda _: [])) == hash_of(DOCUMENT)


@pytest.mark.inv("PLAN-1", "SNAP-1")
def test_the_hash_is_the_digest_of_the_bytes_that_are_stored() -> None:
    workflow_hash, data = pinned_bytes(compiled(DOCUMENT))
    assert canonical_bytes(json.loads(data)) == data
    assert workflow_hash == digest_of(json.loads(data))
    assert parse_compiled(data) == compiled(DOCUMENT)
    assert pinned_bytes(parse_compiled(data)) == (workflow_hash, data)


@pytest.mark.inv("PLAN-5")
def test_steps_keep_their_authored_order_and_each_leads_to_the_next() -> None:
    workflow = compiled(DOCUMENT)
    assert [node.node_id for node in workflow.plan.nodes] == ["blocks", "plain", "last", "--end"]
    assert [(edge.source, edge.target, edge.kind) for edge in workflow.plan.edges] == [
        ("blocks", "plain", "direct"),
        ("plain", "last", "direct"),
        ("last", "--end", "terminal"),
    ]
    assert workflow.numbers == {"blocks": 1, "plain": 2, "last": 3}
    assert list(workflow.steps) == ["blocks", "plain", "last"]


@pytest.mark.inv("PLAN-5")
def test_everything_that_was_authored_reaches_the_plan() -> None:
    workflow = compiled(DOCUMENT)
    blocks, plain, last = (task_of(node) for node in workflow.steps.values())
    assert blocks.prompt == (
        "The goal of {{ticket.id}}.\n\n"
        "**Constraints**\n- No haste.\n- No waste.\n\n"
        "**Procedure**\n1. Look.\n2. Act.\n\n"
        "**Output required**\n- A result.\n\n"
        "**Check before you send**\n- It holds.\n\n"
        "**Guidance**\n- Mind the gap."
    )
    assert blocks.confirmation == Always(op="always")
    assert (plain.confirmation, last.confirmation) == (None, None)
    assert [task.agent_role for task in (blocks, plain, last)] == [
        "You do it all.",
        "You are somebody else.",
        "You do it all.",
    ]
    assert [task.evidence.notes for task in (blocks, plain, last)] == ["required", "optional", "required"]
    assert {node.evidence_schema_ref for node in workflow.steps.values()} == {NOTES_CONTRACT}
    assert {node.input_schema_ref for node in workflow.steps.values()} == {STEP_INPUT}
    assert [node.title for node in workflow.steps.values()] == ["In blocks", "Plain", "Last"]
    assert (workflow.name, workflow.description) == ("Everything", "Uses each key once.")
    assert workflow.guidance == ("First of all.", "Last of all.")
    assert [(one.title, one.authoritative) for one in workflow.references] == [("Spec", True), ("Wiki", False)]
    assert workflow.agent_role == "You do it all."


def test_a_goal_alone_is_the_whole_prompt() -> None:
    document = {**DOCUMENT, "steps": [{"id": "a", "title": "A", "promptBlocks": {"goal": "Just this."}}]}
    assert task_of(compiled(document).plan.nodes[0]).prompt == "Just this."


@pytest.mark.inv("PLAN-4")
def test_a_rendered_prompt_above_the_budget_is_refused_at_its_step_and_each_one_is_named() -> None:
    long = {"title": "Long", "promptBlocks": {"goal": "g", "procedure": ["é" * 1000] * 20}}
    document = {**DOCUMENT, "steps": [{"id": "ok", "title": "OK", "prompt": "p"}, *({"id": n, **long} for n in "ab")]}
    found = compile_workflow(parsed(document))
    assert not isinstance(found, Compiled)
    assert [(one.path, one.code) for one in found] == [("steps[1]", "too_long"), ("steps[2]", "too_long")]
    assert str(PROMPT_BYTES_MAX) in found[0].message


@pytest.mark.inv("EVT-2")
def test_a_compiled_workflow_of_a_newer_kind_is_reported_from_a_broken_one() -> None:
    fields = json.loads(pinned_bytes(compiled(DOCUMENT))[1])
    with pytest.raises(UnknownVersionError):
        parse_compiled(canonical_bytes(fields | {"hooks": []}))
    with pytest.raises(UnknownVersionError):
        parse_compiled(canonical_bytes(fields | {"schemaVersion": 2}))
    for broken in (b"", b"[]", b"{", canonical_bytes(fields | {"name": 1})):
        with pytest.raises(MalformedRecordError):
            parse_compiled(broken)


STRUCTURE: Document = {
    "id": "test.structure",
    "name": "Structure",
    "inputs": [
        {"key": "mode", "description": "How.", "type": "string", "choices": ["fast", "slow"]},
        {"key": "things", "description": "What.", "type": "list"},
        {"key": "done", "description": "Whether it is rated.", "type": "boolean"},
    ],
    "capabilities": {"web_browsing": "preferred", "delegation": "preferred"},
    "conditions": {"is-fast": {"var": "mode", "equals": "fast"}, "is-slow": {"var": "mode", "equals": "slow"}},
    "functionDefinitions": [{"name": "check", "definition": "Check it."}, {"name": "ask", "definition": "Ask."}],
    "assessments": [
        {
            "id": "quality",
            "purpose": "How good it is.",
            "dimensions": [{"id": "clear", "purpose": "Is it clear?", "levels": ["low", "high"]}],
        }
    ],
    "steps": [
        {
            "id": "rated",
            "title": "Rated",
            "prompt": "Rate it.",
            "when": {"kind": "condition_ref", "conditionId": "is-fast"},
            "assessmentRefs": ["quality"],
            "assessmentConsequences": [
                {
                    "when": {"anyEqualsLevel": "low"},
                    "effect": {"kind": "require_followup", "guidance": "Again."},
                }
            ],
            "functionReferences": ["check()"],
            "validationCriteria": [{"type": "contains", "value": "because"}, {"type": "length", "min": 10}],
            "promptFragments": [{"id": "more", "text": "Mind this.", "when": {"var": "mode", "equals": "slow"}}],
            "produces": ["seen"],
            "set": [{"key": "done", "value": True}],
        },
        {
            "type": "choose",
            "id": "which",
            "title": "Which way",
            "choose": [
                {"when": {"var": "seen", "gt": 1}, "steps": [{"id": "left", "title": "Left", "prompt": "Left."}]}
            ],
            "otherwise": [{"id": "right", "title": "Right", "prompt": "Right."}],
        },
        {
            "type": "parallel",
            "id": "both",
            "title": "Both",
            "branches": [
                {"steps": [{"id": "one", "title": "One", "prompt": "One."}]},
                {"steps": [{"id": "two", "title": "Two", "prompt": "Two."}]},
            ],
        },
        {
            "type": "loop",
            "loopId": "each",
            "title": "Each",
            "maxIterations": 5,
            "forEach": {"items": "things", "itemVar": "thing"},
            "body": [{"id": "look", "title": "Look", "prompt": "Look at {{thing}}."}],
        },
    ],
}


@pytest.mark.inv("PLAN-5")
def test_every_part_of_a_document_becomes_the_nodes_and_edges_that_it_stands_for() -> None:
    workflow = compiled(STRUCTURE)
    assert [(node.node_id, node.kind) for node in workflow.plan.nodes] == [
        ("rated--when", "decision"),
        ("rated", "task"),
        ("which", "decision"),
        ("left", "task"),
        ("right", "task"),
        ("both", "fan_out"),
        ("one", "task"),
        ("two", "task"),
        ("both--join", "fan_in"),
        ("each", "loop"),
        ("look", "task"),
        ("each--end", "terminal"),
        ("--end", "terminal"),
    ]
    assert [(edge.edge_id, edge.kind, edge.condition_id) for edge in workflow.plan.edges] == [
        ("rated--when>rated", "conditional", "is-fast"),
        ("rated>which", "direct", None),
        ("rated--when>which", "direct", None),
        ("which>left", "conditional", "which--1"),
        ("which>right", "direct", None),
        ("left>both", "direct", None),
        ("right>both", "direct", None),
        ("both>one", "fan_out", None),
        ("both>two", "fan_out", None),
        ("one>both--join", "fan_in", None),
        ("two>both--join", "fan_in", None),
        ("both--join>each", "direct", None),
        ("look>each--end", "terminal", None),
        ("each>--end", "terminal", None),
    ]
    (loop,) = workflow.plan.loops
    assert (loop.loop_id, loop.kind, loop.body, loop.max_iterations) == ("each", "for_each", ("look", "each--end"), 5)
    assert {node.owner for node in workflow.plan.nodes if node.task is None} == {"harness"}
    assert {node.owner for node in workflow.steps.values()} == {"agent"}


@pytest.mark.inv("PLAN-1")
@given(st.integers(min_value=0))
def test_the_order_of_keys_does_not_reach_the_hash_of_a_workflow_with_structure(seed: int) -> None:
    assert hash_of(shuffled(STRUCTURE, random.Random(seed))) == hash_of(STRUCTURE)


def structure_with(path: tuple[str | int, ...], change: Callable[[Any], Any]) -> Document:
    document: Any = copy.deepcopy(STRUCTURE)
    here = document
    for part in path[:-1]:
        here = here[part]
    here[path[-1]] = change(here[path[-1]])
    return cast("Document", document)


MEANINGS: list[tuple[tuple[str | int, ...], Callable[[Any], Any]]] = [
    (("inputs", 0, "choices"), lambda _: ["fast"]),
    (("inputs", 0, "description"), lambda text: f"{text}x"),
    (("capabilities", "web_browsing"), lambda _: "disabled"),
    (("conditions", "is-fast", "equals"), lambda text: f"{text}x"),
    (("functionDefinitions", 1, "definition"), lambda text: f"{text}x"),
    (("assessments", 0, "purpose"), lambda text: f"{text}x"),
    (("assessments", 0, "dimensions", 0, "levels"), lambda levels: [*levels, "middle"]),
    (("steps", 0, "assessmentConsequences", 0, "when", "anyEqualsLevel"), lambda _: "high"),
    (("steps", 0, "assessmentConsequences", 0, "effect", "guidance"), lambda text: f"{text}x"),
    (("steps", 0, "functionReferences"), lambda _: []),
    (("steps", 0, "validationCriteria", 0, "value"), lambda text: f"{text}x"),
    (("steps", 0, "validationCriteria", 1, "min"), lambda bound: bound + 1),
    (("steps", 0, "validationCriteria"), lambda rules: {"or": rules}),
    (("steps", 0, "promptFragments", 0, "text"), lambda text: f"{text}x"),
    (("steps", 0, "promptFragments", 0, "when", "equals"), lambda text: f"{text}x"),
    (("steps", 0, "set", 0, "value"), lambda _: False),
    (("steps", 1, "choose", 0, "when"), lambda _: {"var": "seen", "gt": 1.5}),
    (("steps", 1, "choose", 0, "when"), lambda _: {"var": "seen", "gte": 1}),
    (("steps", 1, "otherwise"), lambda _: []),
    (("steps", 2, "branches"), lambda branches: branches[::-1]),
    (("steps", 2, "id"), lambda text: f"{text}x"),
    (("steps", 3, "maxIterations"), lambda bound: bound + 1),
    (("steps", 3, "forEach", "itemVar"), lambda text: f"{text}x"),
    (("steps", 3, "loopId"), lambda text: f"{text}x"),
    (("steps",), lambda steps: [steps[0], steps[2], steps[1], steps[3]]),
]


@pytest.mark.inv("PLAN-1")
@pytest.mark.parametrize(
    ("path", "change"), MEANINGS, ids=[f"{case[0]}-{number}" for number, case in enumerate(MEANINGS)]
)
def test_another_meaning_of_any_part_is_another_hash(path: tuple[str | int, ...], change: Callable[[Any], Any]) -> None:
    assert hash_of(structure_with(path, change)) != hash_of(STRUCTURE)


DEFAULTS: list[tuple[tuple[str | int, ...], Document]] = [
    (("inputs", 1), {"required": False}),
    (("inputs", 1), {"choices": []}),
    (("functionDefinitions", 0), {"parameters": []}),
    (("assessments", 0, "dimensions", 0), {"required": True}),
    (("steps", 0), {"notes": "required", "needs": [], "requireConfirmation": False, "delegate": []}),
    (("steps", 0, "validationCriteria", 0), {"message": None}),
    (("steps", 0, "assessmentConsequences", 0, "when"), {"forAssessment": None}),
    (("steps", 1), {"type": "choose"}),
    (("steps", 3), {"iterationVar": "iteration", "indexVar": "index", "type": "loop"}),
    (("steps", 3, "body", 0), {"type": "step", "prompt": "Look at {{thing}}.", "promptBlocks": None}),
]


@pytest.mark.inv("PLAN-1")
@pytest.mark.parametrize(("path", "defaults"), DEFAULTS, ids=str)
def test_saying_a_default_in_any_part_is_saying_nothing(path: tuple[str | int, ...], defaults: Document) -> None:
    said = structure_with(path, lambda part: {**part, **defaults})
    assert hash_of(said) == hash_of(STRUCTURE)


@pytest.mark.inv("PLAN-1")
@pytest.mark.parametrize("name", ["inputs", "functionDefinitions", "assessments"])
def test_the_order_of_what_is_referred_to_by_name_does_not_reach_the_hash(name: str) -> None:
    assert hash_of(structure_with((name,), lambda parts: parts[::-1])) == hash_of(STRUCTURE)


@pytest.mark.inv("PLAN-1")
def test_the_order_of_features_does_not_reach_the_hash_and_each_is_applied() -> None:
    features = ["wr.features.memory_context", "wr.features.capabilities"]
    one, other = ({**DOCUMENT, "features": used} for used in (features, features[::-1]))
    assert hash_of(one) == hash_of(other) != hash_of(DOCUMENT)
    assert [feature.feature_id for feature in compiled(one).features] == sorted(features)


@pytest.mark.inv("PLAN-1")
def test_a_compiled_workflow_holds_the_contracts_that_its_steps_refer_to_and_no_others() -> None:
    assert list(compiled(DOCUMENT).packs) == [NOTES_CONTRACT, STEP_INPUT]
    assert list(compiled(STRUCTURE).packs) == ["wr.contracts.assessment", NOTES_CONTRACT, STEP_INPUT]
    assert compiled(STRUCTURE).packs["wr.contracts.assessment"].artifact_kind == "wr.assessment"


def test_a_required_capability_is_tried_before_anything_else() -> None:
    workflow = compiled({**DOCUMENT, "capabilities": {"web_browsing": "required", "delegation": "required"}})
    probes = list(workflow.steps.values())[:2]
    assert [node.node_id for node in probes] == ["probe--delegation", "probe--web_browsing"]
    assert [node.capabilities for node in probes] == [("delegation",), ("web_browsing",)]
    assert {node.provenance.source for node in probes} == {"feature_injected"}
    assert [task_of(node).evidence.notes for node in probes] == ["optional", "optional"]
    assert not [
        node for node in compiled({**DOCUMENT, "capabilities": {"web_browsing": "preferred"}}).steps if "probe" in node
    ]


def test_a_condition_is_listed_once_however_often_it_is_used() -> None:
    named = compiled(STRUCTURE).graphs.conditions
    assert sorted(named) == ["is-fast", "which--1"]


@pytest.mark.inv("SRC-3")
@pytest.mark.parametrize("kind", ["user", "project", "remote", "plugin"])
def test_a_reserved_id_is_refused_from_any_source_but_the_bundled_one(kind: Any) -> None:
    (found,) = placement_diagnostics("wr.deploy", kind)
    assert (found.code, found.path, found.severity) == ("reserved_namespace", "id", "error")
    assert ".deploy`" in found.fix
    assert placement_diagnostics("wr.deploy", "bundled") == ()


@pytest.mark.inv("SRC-2")
def test_an_undotted_id_is_warned_of_with_the_name_it_should_have() -> None:
    (found,) = placement_diagnostics("Deploy-It", "project")
    assert (found.code, found.path, found.severity) == ("legacy_id", "id", "warning")
    assert "`project.deploy_it`" in found.fix
    assert placement_diagnostics("my.deploy", "project") == ()
