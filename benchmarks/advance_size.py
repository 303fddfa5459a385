"""How many bytes Interlock adds to an advance of the bundled workflows, against the state of commit c61ff37.

What is added is everything in an answer except the prompt of the step.

`advance_size_before.json` has the bytes `[structure, text]` of the first answer with each step, by workflow and step,
at commit c61ff37. They were made in a worktree of that commit with the function `added` below: its `AutoAgent` played
each bundled workflow under the id `bench.bundled` with seeds 0 to 11, the same goal, and for the keys `size`, `wants`
and `wanted` either choice. Answers of a start and refusals do not count. The workflows have changed since then, so
the medians over all steps are compared, not step with step.
"""

import json
import statistics
from pathlib import Path

from tests.agents.honest import honest_answers
from tests.unit.test_bundled_workflows import SOURCES

from benchmarks.table import Figure, at_most
from interlock.testing.harness import ToolResult

BEFORE = Path(__file__).with_name("advance_size_before.json")
GOAL = "Mend the lamp of the lighthouse by noon."
CHANNELS = ("structure", "text")
RATIO_MAX = 0.8


def figures(*, is_quick: bool) -> list[Figure]:
    """Compare the medians of both channels; a quick look measures the same."""
    del is_quick
    now = sizes_now()
    before = [tuple(sizes) for steps in json.loads(BEFORE.read_bytes()).values() for sizes in steps.values()]
    return [
        at_most(
            f"bytes added to an advance, {channel}, median / before",
            statistics.median(one[at] for one in now) / statistics.median(one[at] for one in before),
            RATIO_MAX,
            beside=f"{statistics.median(one[at] for one in now):.0f} in {len(now)} steps",
        )
        for at, channel in enumerate(CHANNELS)
    ]


def sizes_now() -> list[tuple[int, int]]:
    """Return what the first answer with each step adds, in each channel, over all bundled workflows."""
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for workflow_id in SOURCES:
        for context in ({"size": "large", "wants": "fix"}, {"size": "small", "wants": "diagnosis"}):
            for answer in [*honest_answers(workflow_id, goal=GOAL, context=context)][1:]:
                if answer["kind"] == "ok" and not answer["isComplete"]:
                    found.setdefault((workflow_id, answer["pending"]["stepId"]), added(answer))
    return list(found.values())


def added(answer: ToolResult) -> tuple[int, int]:
    """Return the bytes of the structure, as it is sent, and of the text, both without the prompt."""
    prompt = answer["pending"]["prompt"]
    assert prompt in answer.text, "both channels hold the prompt"
    structure = _bytes_of(dict(answer.structure)) - _bytes_of(prompt)
    return structure, len(answer.text.encode()) - len(prompt.encode())


def _bytes_of(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())
