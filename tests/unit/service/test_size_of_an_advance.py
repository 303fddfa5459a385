"""What Interlock adds to an advance, and what an agent has to write for one (ANS-16)."""

import json

import pytest
from tests.agents.scenarios import DOCUMENTS

from interlock.testing.harness import Harness, ToolResult

GOAL = "Mend the lamp of the lighthouse by noon."
CHANNEL_MAX, BOTH_MAX, WRITTEN_MAX, CLAIM_MAX = 900, 1_300, 120, 300
WORKFLOWS = ("wr.quick_task", "errand.linear")


def added(answer: ToolResult) -> tuple[int, int]:
    """Return the bytes of the structure, as it is sent, and of the text, both without the prompt."""
    prompt = answer["pending"]["prompt"]
    structure = json.dumps(dict(answer.structure), ensure_ascii=False, separators=(",", ":"))
    in_structure = len(json.dumps(prompt, ensure_ascii=False).encode())
    assert prompt in answer.text
    return len(structure.encode()) - in_structure, len(answer.text.encode()) - len(prompt.encode())


@pytest.mark.inv("ANS-16")
def test_an_advance_adds_little_and_asks_for_little() -> None:
    assert len(GOAL) == 40
    harness = Harness.in_memory(*DOCUMENTS)
    answer = harness.advance(harness.start("errand.linear", goal=GOAL))
    structure, text = added(answer)
    assert structure < CHANNEL_MAX
    assert text < CHANNEL_MAX
    assert structure + text < BOTH_MAX
    written = answer["nextCall"]["arguments"] | {"output": {"notesMarkdown": ""}}
    assert len(json.dumps(written, separators=(",", ":"))) < WRITTEN_MAX


@pytest.mark.inv("ANS-16")
def test_an_advance_in_a_loop_or_to_a_gate_adds_little_in_each_channel() -> None:
    harness = Harness.in_memory(*DOCUMENTS)
    for workflow, claim in (("errand.looping", 0), ("errand.gated", CLAIM_MAX)):
        answer = harness.advance(harness.start(workflow, goal=GOAL))
        assert max(added(answer)) < CHANNEL_MAX + claim
