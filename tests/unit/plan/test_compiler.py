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

from interlock.define.diagnostics import Diagnostic
from interlock.define.document import WorkflowDocument, parse_workflow
from interlock.define.text_form import Form, parse_text
from interlock.kernel.budgets import PROMPT_BYTES_MAX
from interlock.kernel.canonical import canonical_bytes, digest_of
from interlock.plan.compiled import NOTES_CONTRACT, CompiledWorkflow, parse_compiled, pinned_bytes
from interlock.plan.compiler import compile_workflow, placement_diagnostics
from interlock.record.base import MalformedRecordError, UnknownVersionError

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
    assert isinstance(found, CompiledWorkflow), found
    return found


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


SPELLINGS: dict[str, tuple[Form, Callable[[Document], bytes]]] = {
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
    assert [node.step_id for node in workflow.plan.nodes] == ["blocks", "plain", "last"]
    assert workflow.followers == {"blocks": "plain", "plain": "last"}
    assert workflow.numbers == {"blocks": 1, "plain": 2, "last": 3}
    assert list(workflow.steps) == ["blocks", "plain", "last"]


@pytest.mark.inv("PLAN-5")
def test_everything_that_was_authored_reaches_the_plan() -> None:
    workflow = compiled(DOCUMENT)
    blocks, plain, last = workflow.plan.nodes
    assert blocks.prompt == (
        "The goal of {{ticket.id}}.\n\n"
        "**Constraints**\n- No haste.\n- No waste.\n\n"
        "**Procedure**\n1. Look.\n2. Act.\n\n"
        "**Your notes must hold**\n- A result.\n\n"
        "**Check before you send**\n- It holds.\n\n"
        "**Guidance**\n- Mind the gap."
    )
    assert (blocks.require_confirmation, plain.require_confirmation) == (True, False)
    assert [node.agent_role for node in (blocks, plain, last)] == [
        "You do it all.",
        "You are somebody else.",
        "You do it all.",
    ]
    assert [node.evidence.required for node in (blocks, plain, last)] == [True, False, True]
    assert {node.evidence.contract_ref for node in workflow.plan.nodes} == {NOTES_CONTRACT}
    assert workflow.guidance == ("First of all.", "Last of all.")
    assert [(one.title, one.authoritative) for one in workflow.references] == [("Spec", True), ("Wiki", False)]
    assert workflow.agent_role == "You do it all."


def test_a_goal_alone_is_the_whole_prompt() -> None:
    document = {**DOCUMENT, "steps": [{"id": "a", "title": "A", "promptBlocks": {"goal": "Just this."}}]}
    assert compiled(document).plan.nodes[0].prompt == "Just this."


@pytest.mark.inv("PLAN-4")
def test_a_rendered_prompt_above_the_budget_is_refused_at_its_step_and_each_one_is_named() -> None:
    long = {"title": "Long", "promptBlocks": {"goal": "g", "procedure": ["é" * 1000] * 20}}
    document = {**DOCUMENT, "steps": [{"id": "ok", "title": "OK", "prompt": "p"}, *({"id": n, **long} for n in "ab")]}
    found = compile_workflow(parsed(document))
    assert not isinstance(found, CompiledWorkflow)
    assert [(one.path, one.code) for one in found] == [("steps[1]", "too_long"), ("steps[2]", "too_long")]
    assert str(PROMPT_BYTES_MAX) in found[0].fix


@pytest.mark.inv("EVT-2")
def test_a_compiled_workflow_of_a_newer_kind_is_told_from_a_broken_one() -> None:
    fields = json.loads(pinned_bytes(compiled(DOCUMENT))[1])
    with pytest.raises(UnknownVersionError):
        parse_compiled(canonical_bytes(fields | {"loops": []}))
    with pytest.raises(UnknownVersionError):
        parse_compiled(canonical_bytes(fields | {"schemaVersion": 2}))
    for broken in (b"", b"[]", b"{", canonical_bytes(fields | {"name": 1})):
        with pytest.raises(MalformedRecordError):
            parse_compiled(broken)


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
