"""Where the texts of a compiled workflow come from, and which part of it a changed hash is due to."""

import pytest
from tests.support.flow import compiled, step

from interlock.kernel.canonical import canonical_bytes, digest_of_bytes
from interlock.plan.provenance import hash_parts, text_origins

REFERS = {"constraints": [[{"kind": "ref", "refId": "wr.refs.notes_first_durability"}]], "goal": "Do it."}
ROUTINE = "wr.templates.routine.context-gathering"
LOOKING = {"type": "template", "id": "look", "templateCall": {"templateId": ROUTINE}}


@pytest.mark.inv("PLAN-10")
def test_the_prompt_of_each_step_says_who_wrote_it_and_which_built_in_texts_it_holds() -> None:
    workflow = compiled(LOOKING, {"id": "a", "title": "Step a", "promptBlocks": REFERS}, step("b"))
    *inserted, first, second = text_origins(workflow)
    assert inserted
    assert {one.written_by for one in inserted} == {ROUTINE}
    assert (first.step_id, first.written_by, second.built_in) == ("a", None, ())
    (text,) = first.built_in
    assert text.ref_id == "wr.refs.notes_first_durability"
    task = workflow.steps["a"].task
    assert task is not None
    assert task.prompt_blocks is not None
    inlined = task.prompt_blocks.constraints[0].encode()
    assert (text.byte_length, text.ref_content_hash) == (len(inlined), digest_of_bytes(inlined))


@pytest.mark.inv("CON-1")
def test_the_parts_of_the_hash_are_all_of_the_workflow_and_show_which_one_changed() -> None:
    before, after = (list(hash_parts(compiled(step("a", prompt=text)))) for text in ("Do it.", "Do it well."))
    names = [one.name for one in before]
    whole = compiled(step("a", prompt="Do it.")).to_json()
    assert names == list(whole)
    separators = sum(len(canonical_bytes(name)) + 2 for name in names) + 1
    assert sum(one.bytes for one in before) + separators == len(canonical_bytes(whole))
    assert [one.name for one, other in zip(before, after, strict=True) if one != other] == ["plan"]
