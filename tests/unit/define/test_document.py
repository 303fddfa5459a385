"""Parsing of workflow documents: every fault has the place in the author's document and what to write instead."""

from typing import Any

import pytest

from interlock.decide.condition import Always
from interlock.define.document import AgentStep, PromptBlocks, WorkflowDocument, to_prose
from interlock.define.faults import make_safe_id
from interlock.define.front import parse_workflow
from interlock.kernel.budgets.workflow import (
    DESCRIPTION_CHARS_MAX,
    PROMPT_BYTES_MAX,
    STEPS_MAX,
    TITLE_CHARS_MAX,
)
from interlock.kernel.text import render_path

STEP = {"id": "a", "title": "A", "prompt": "Do a."}
REFERENCE = {"id": "r", "title": "R", "source": "docs/r.md", "purpose": "Read it."}


def document(**changes: object) -> dict[str, Any]:
    return {"id": "test.demo", "name": "Demo", "steps": [dict(STEP)], **changes}


def faults(**changes: object) -> list[tuple[str, str]]:
    found = parse_workflow(document(**changes))
    assert not isinstance(found, WorkflowDocument)
    assert all(one.severity == "error" and one.message and one.fix for one in found)
    return [(one.path, one.code) for one in found]


def step_with(**changes: object) -> list[dict[str, object]]:
    return [{key: value for key, value in {**STEP, **changes}.items() if value is not ...}]


def agent_step(found: WorkflowDocument, at: int) -> AgentStep:
    step = found.steps[at]
    assert isinstance(step, AgentStep)
    return step


@pytest.mark.inv("PLAN-5")
def test_a_document_with_everything_is_read_as_written() -> None:
    found = parse_workflow(
        document(
            description="What it is for.",
            tags=["review", "a_b-1"],
            agentRole="You review.",
            guidance=["Be kind."],
            references=[{**REFERENCE, "authoritative": True}],
            steps=[
                {
                    **STEP,
                    "guidance": ["Slowly."],
                    "requireConfirmation": True,
                    "notes": "optional",
                    "agentRole": "You.",
                },
                {
                    "id": "b",
                    "title": "B",
                    "promptBlocks": {
                        "goal": "G",
                        "constraints": ["C"],
                        "procedure": ["P"],
                        "outputRequired": ["O"],
                        "verify": ["V"],
                    },
                },
            ],
        )
    )
    assert isinstance(found, WorkflowDocument)
    first, second = (agent_step(found, at) for at in (0, 1))
    assert (first.evidence.notes, first.guidance, first.agent_role) == ("optional", ("Slowly.",), "You.")
    assert first.confirmation is not None
    assert first.confirmation.condition == Always(op="always")
    assert first.prompt == to_prose("Do a.")
    assert second.prompt == PromptBlocks(
        goal=to_prose("G"),
        constraints=(to_prose("C"),),
        procedure=(to_prose("P"),),
        output_required=((None, to_prose("O")),),
        verify=(to_prose("V"),),
    )
    assert found.references[0].authoritative
    assert (found.description, found.agent_role, found.guidance) == ("What it is for.", "You review.", ("Be kind.",))
    assert found.tags == ("review", "a_b-1")


def test_a_step_needs_notes_and_no_confirmation_unless_it_says_otherwise() -> None:
    found = parse_workflow(document())
    assert isinstance(found, WorkflowDocument)
    assert (agent_step(found, 0).evidence.notes, agent_step(found, 0).confirmation) == ("required", None)


GOAL_KIND = "steps[0].promptBlocks.goal[0].kind"
LONG_TITLE, LONG_TEXT = "x" * (TITLE_CHARS_MAX + 1), "x" * (PROMPT_BYTES_MAX + 1)
CASES: list[tuple[dict[str, object], str, str]] = [
    ({"titel": "A"}, "titel", "unknown_key"),
    ({"steps": step_with(titel="A")}, "steps[0].titel", "unknown_key"),
    (
        {"steps": step_with(prompt=..., promptBlocks={"goal": "g", "steps": []})},
        "steps[0].promptBlocks.steps",
        "unknown_key",
    ),
    ({"references": [{**REFERENCE, "url": "x"}]}, "references[0].url", "unknown_key"),
    ({"steps": step_with(prompt_blocks={"goal": "g"})}, "steps[0].prompt_blocks", "unknown_key"),
    ({"steps": step_with(title=...)}, "steps[0].title", "missing_key"),
    ({"steps": step_with(prompt=..., promptBlocks={})}, "steps[0]", "prompt_missing"),
    ({"references": [{"id": "r", "title": "R", "source": "s"}]}, "references[0].purpose", "missing_key"),
    ({"name": 5}, "name", "wrong_type"),
    ({"name": None}, "name", "wrong_type"),
    ({"steps": {"a": 1}}, "steps", "wrong_type"),
    ({"steps": ["a"]}, "steps[0]", "wrong_type"),
    ({"tags": "review"}, "tags", "wrong_type"),
    ({"guidance": [1]}, "guidance[0]", "wrong_type"),
    ({"steps": step_with(requireConfirmation="yes")}, "steps[0].requireConfirmation", "wrong_type"),
    ({"steps": step_with(requireConfirmation=1)}, "steps[0].requireConfirmation", "wrong_type"),
    ({"steps": step_with(prompt=["a"])}, "steps[0].prompt", "wrong_type"),
    ({"steps": step_with(notes="maybe")}, "steps[0].notes", "wrong_value"),
    ({"steps": step_with(notes="")}, "steps[0].notes", "wrong_value"),
    ({"steps": step_with(prompt=..., promptBlocks={"goal": [{"kind": None}]})}, GOAL_KIND, "wrong_value"),
    ({"name": ""}, "name", "empty"),
    ({"id": ""}, "id", "empty"),
    ({"steps": []}, "steps", "empty"),
    ({"steps": step_with(prompt="")}, "steps[0].prompt", "empty"),
    ({"guidance": [""]}, "guidance[0]", "empty"),
    ({"name": LONG_TITLE}, "name", "too_long"),
    ({"description": "x" * (DESCRIPTION_CHARS_MAX + 1)}, "description", "too_long"),
    ({"steps": step_with(prompt=LONG_TEXT)}, "steps[0].prompt", "too_long"),
    ({"id": f"a.{'b' * 200}"}, "id", "too_long"),
    ({"references": [dict(REFERENCE)] * 51}, "references", "too_many"),
    ({"guidance": ["x"] * 101}, "guidance", "too_many"),
    ({"steps": [dict(STEP)] * (STEPS_MAX + 1)}, "steps", "too_many"),
    ({"steps": step_with(id="Step A")}, "steps[0].id", "bad_id"),
    ({"steps": step_with(id="a/b")}, "steps[0].id", "bad_id"),
    ({"steps": step_with(id="a@1")}, "steps[0].id", "bad_id"),
    ({"steps": step_with(id="a\n")}, "steps[0].id", "bad_id"),
    ({"tags": ["Code Review"]}, "tags[0]", "bad_id"),
    ({"id": "a.b.c"}, "id", "bad_id"),
    ({"id": "A.b"}, "id", "bad_id"),
    ({"id": "über"}, "id", "bad_id"),
    ({"steps": [dict(STEP), {**STEP, "title": "Twin"}]}, "steps[1].id", "duplicate_id"),
    ({"steps": step_with(prompt=...)}, "steps[0]", "prompt_missing"),
    ({"steps": step_with(prompt=None)}, "steps[0]", "prompt_missing"),
    ({"steps": step_with(promptBlocks={"goal": "g"})}, "steps[0]", "prompt_twice"),
]


@pytest.mark.inv("PLAN-4")
@pytest.mark.parametrize(("changes", "path", "code"), CASES, ids=[f"{case[2]} at {case[1]}" for case in CASES])
def test_each_fault_has_its_code_and_its_path(changes: dict[str, object], path: str, code: str) -> None:
    assert faults(**changes) == [(path, code)]


@pytest.mark.inv("PLAN-4")
def test_every_fault_of_the_form_is_reported_at_once() -> None:
    steps = [{"id": "A B", "titel": "x"}, {**STEP, "notes": "maybe"}, "no step"]
    assert faults(name="", tags=["Bad Tag"], steps=steps, more=1) == [
        ("name", "empty"),
        ("tags[0]", "bad_id"),
        ("steps[0].id", "bad_id"),
        ("steps[0].titel", "unknown_key"),
        ("steps[1].notes", "wrong_value"),
        ("steps[2]", "wrong_type"),
        ("more", "unknown_key"),
        ("steps[0]", "prompt_missing"),
    ]


@pytest.mark.inv("PLAN-4")
def test_faults_of_meaning_are_reported_together_with_faults_of_form() -> None:
    """Correcting one file in several rounds is what diagnostics are there to spare (PLAN-4)."""
    found = faults(id="a.b.c", steps=[{**STEP, "titel": "x"}, dict(STEP)])
    assert sorted(found) == [("id", "bad_id"), ("steps[0].titel", "unknown_key"), ("steps[1].id", "duplicate_id")]


@pytest.mark.inv("PLAN-4")
@pytest.mark.parametrize(
    ("changes", "meant"),
    [
        ({"descripton": "x"}, "description"),
        ({"agent_role": "x"}, "agentRole"),
        ({"steps": step_with(titel="A")}, "title"),
        ({"steps": step_with(requireConfirmations=True)}, "requireConfirmation"),
        ({"steps": step_with(prompt=..., promptBlocks={"goal": "g", "verfy": []})}, "verify"),
        ({"references": [{**REFERENCE, "authorative": True}]}, "authoritative"),
    ],
)
def test_an_unknown_key_is_reported_with_the_most_similar_known_key(changes: dict[str, object], meant: str) -> None:
    found = parse_workflow(document(**changes))
    assert not isinstance(found, WorkflowDocument)
    assert f"`{meant}`" in found[0].fix


def test_an_unknown_key_that_resembles_nothing_is_to_be_removed() -> None:
    found = parse_workflow(document(zzz=1))
    assert not isinstance(found, WorkflowDocument)
    assert found[0].fix == "Remove the key."


@pytest.mark.parametrize("wrong", [5, 1.5, True, None, [], {}, "x" * 100], ids=repr)
def test_a_fault_says_what_was_found_and_speaks_of_no_python(wrong: object) -> None:
    found = parse_workflow(document(steps=wrong, guidance=wrong))
    assert not isinstance(found, WorkflowDocument)
    for one in found:
        words = one.render_line().lower()
        assert len(words) < 300
        assert not any(word in words for word in ("tuple", "dict", "none", "pydantic", "model", "instance", "nonetype"))


@pytest.mark.parametrize(
    ("text", "identifier"),
    [("Step A", "step-a"), ("a/b@c", "a-b-c"), ("ÜBER", "ber"), ("---", "step"), ("", "step"), ("x" * 200, "x" * 100)],
)
def test_a_bad_step_id_comes_with_the_nearest_lawful_one(text: str, identifier: str) -> None:
    assert make_safe_id(text) == identifier
    if text:
        found = parse_workflow(document(steps=step_with(id=text)))
        assert not isinstance(found, WorkflowDocument) or text == "---"
    found = parse_workflow(document(steps=step_with(id=identifier)))
    assert isinstance(found, WorkflowDocument)


def test_paths_are_written_as_authors_read_them() -> None:
    assert render_path(("steps", 3, "promptBlocks", "verify", 0)) == "steps[3].promptBlocks.verify[0]"
    assert render_path(()) == ""


def test_a_long_wrong_value_is_quoted_in_short() -> None:
    found = parse_workflow(document(steps=step_with(notes="m" * 5000)))
    assert not isinstance(found, WorkflowDocument)
    assert len(found[0].message) < 300


def test_a_long_unknown_key_is_quoted_in_short() -> None:
    found = parse_workflow(document(**{"k" * 50_000: 1}))
    assert not isinstance(found, WorkflowDocument)
    assert len(found[0].render_line()) < 500
