"""What the compiler adds to the prompt of a step: texts of references, and the requirements on its evidence."""

import pytest
from tests.support.flow import compiled, step

from interlock.kernel.budgets.workflow import (
    REQUIREMENT_LINES_MAX,
)
from interlock.kernel.canonical import digest_of_bytes
from interlock.plan.builtins.references import SNIPPETS
from interlock.plan.records import Task


def first_task(**more: object) -> Task:
    task = compiled(step("a", **more)).plan.nodes[0].task
    assert task is not None
    return task


@pytest.mark.inv("PLAN-10")
def test_the_text_of_a_reference_is_in_the_plan_with_its_id_digest_and_size() -> None:
    snippet = SNIPPETS["wr.refs.notes_first_durability"]
    goal = [{"kind": "text", "text": "Begin. "}, {"kind": "ref", "refId": snippet.ref_id}]
    task = first_task(prompt=None, promptBlocks={"goal": goal})
    assert snippet.text in task.prompt
    (injection,) = task.injections
    body = snippet.text.encode()
    assert (injection.ref_id, injection.byte_length) == (snippet.ref_id, len(body))
    assert injection.ref_content_hash == digest_of_bytes(body)


@pytest.mark.inv("PLAN-13")
@pytest.mark.parametrize("count", range(1, 9))
def test_a_step_states_its_requirements_in_five_lines_of_which_the_last_counts_the_rest(count: int) -> None:
    rules = [{"type": "contains", "value": f"Part {number}"} for number in range(count)]
    lines = first_task(validationCriteria=rules).requirements
    assert len(lines) == min(count, REQUIREMENT_LINES_MAX)
    for number, line in enumerate(lines[: REQUIREMENT_LINES_MAX - 1]):
        assert f"Part {number}" in line
    if count > REQUIREMENT_LINES_MAX:
        assert lines[-1].startswith(f"And {count - REQUIREMENT_LINES_MAX + 1} more")
