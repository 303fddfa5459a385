"""The limits that the language page states are those of the code."""

import re
from pathlib import Path

from interlock.kernel import budgets
from interlock.kernel.budgets import workflow as workflow_budgets

PAGE = Path(__file__).parents[3] / "docs" / "language.md"
STATED = {
    "a file": (
        workflow_budgets.DOCUMENT_BYTES_MAX,
        workflow_budgets.YAML_BYTES_MAX,
        workflow_budgets.DOCUMENT_DEPTH_MAX,
    ),
    "steps of a file, nodes of a plan": (workflow_budgets.STEPS_MAX, workflow_budgets.PLAN_NODES_MAX),
    "a step's prompt as it is compiled": (
        workflow_budgets.PROMPT_BYTES_MAX // budgets.KIB,
        workflow_budgets.INJECTED_BYTES_MAX // budgets.KIB,
    ),
    "a title or name": (workflow_budgets.TITLE_CHARS_MAX,),
    "passes of a loop, loops inside loops, steps inside steps": (
        workflow_budgets.LOOP_PASSES_MAX,
        workflow_budgets.LOOP_DEPTH_MAX,
        workflow_budgets.CHOICE_DEPTH_MAX,
    ),
    "a context, canonical": (budgets.CONTEXT_BYTES_MAX // budgets.KIB,),
}


def test_the_language_page_states_the_limits_that_hold() -> None:
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", PAGE.read_text().partition("## Limits")[2], re.MULTILINE)
    stated = {
        what: tuple(int(one.replace(",", "")) for one in re.findall(r"[0-9][0-9,]*", most)) for what, most in rows
    }
    assert {what: stated[what] for what in STATED} == STATED
