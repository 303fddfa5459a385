"""A compiled workflow keeps the parts of each prompt, resolved; joined, they are the prompt."""

import json
from pathlib import Path

import pytest
from tests.support.flow import compiled, step

import interlock
from interlock.define.document import WorkflowDocument
from interlock.define.front import parse_workflow
from interlock.plan.compile.compiler import Compiled, compile_workflow
from interlock.plan.prompt_blocks import ResolvedBlocks, join_blocks

BLOCKS = {
    "goal": "Find {{mode}}.",
    "constraints": ["Only read.", [{"kind": "ref", "refId": "wr.refs.notes_first_durability"}]],
    "procedure": ["Look.", "Write."],
    "outputRequired": {"cause": "Why."},
    "verify": ["It is there."],
}


@pytest.mark.inv("PLAN-17")
def test_the_parts_are_kept_with_their_references_resolved() -> None:
    workflow = compiled({"id": "a", "title": "Step a", "promptBlocks": BLOCKS, "guidance": ["Be brief."]}, step("b"))
    tasks = [node.task for node in workflow.plan.nodes if node.task is not None]
    blocks = tasks[0].prompt_blocks
    assert blocks is not None
    assert (blocks.goal, blocks.procedure, blocks.guidance) == ("Find {{mode}}.", ("Look.", "Write."), ("Be brief.",))
    assert blocks.constraints[0] == "Only read."
    assert "wr.refs" not in blocks.constraints[1]
    assert len(blocks.constraints[1]) > 20
    assert blocks.output_required == ("**cause**: Why.",)
    assert join_blocks(blocks) == tasks[0].prompt
    assert tasks[1].prompt_blocks is None


def test_parts_that_are_not_there_give_no_section() -> None:
    assert join_blocks(ResolvedBlocks(goal="Do it.")) == "Do it."
    assert join_blocks(ResolvedBlocks(verify=("One.", "Two."))) == "**Check before you send**\n- One.\n- Two."


@pytest.mark.inv("PLAN-17")
def test_the_parts_of_every_bundled_prompt_are_its_prompt() -> None:
    parts = 0
    for path in sorted((Path(interlock.__file__).parent / "workflows").glob("*.json")):
        document = parse_workflow(json.loads(path.read_text(encoding="utf-8")))
        assert isinstance(document, WorkflowDocument)
        outcome = compile_workflow(document)
        assert isinstance(outcome, Compiled)
        for node in outcome.workflow.plan.nodes:
            if node.task is not None and node.task.prompt_blocks is not None:
                parts += 1
                assert join_blocks(node.task.prompt_blocks) == node.task.prompt
    assert parts > 20
