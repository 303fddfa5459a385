"""Lowers parallel steps of the WorkRail dialect: each delegated piece of work becomes a part of one prompt."""

import re
from collections.abc import Iterator

from interlock.define import document as doc
from interlock.define.workrail import forms
from interlock.define.workrail.conditions import ConditionLowering
from interlock.define.workrail.prompts import PromptLowering

_CONTEXT_PATH = re.compile(r"(?!wr\.)[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*")
"""A context path that a prompt can insert. `wr.` is reserved."""
_NOTHING_TEXT = "There is nothing to hand out here: start no subagent, and report the step as done."
"""The prompt of a step without a piece of work."""
_SOME_TEXT = (
    "This step hands work to subagents if the conditions of that work hold. If no work is named below, start no"
    " subagent, and report the step as done."
)
"""The prompt of a step whose pieces of work all have conditions."""


def lower_delegations(
    form: forms.ParallelForm, at: str, prompts: PromptLowering, conditions: ConditionLowering
) -> tuple[str, tuple[doc.PromptFragment, ...]]:
    """Return the prompt of a parallel step, and one prompt fragment for each piece of work.

    If every piece has a condition, the instruction to delegate is a fragment, too: it is shown with a piece only
    (PLAN-28). `at` is the path of the list.
    """
    pieces: list[doc.PromptFragment] = []
    for number, work in enumerate(form.parallel_delegations):
        here = f"{at}[{number}]"
        lines = [f"Subagent {number + 1}: work by the method of the workflow `{work.workflow_id}`."]
        pieces.append(
            doc.PromptFragment(
                fragment_id=f"delegate-{number + 1}",
                text="\n".join([*lines, *_render_details(work, here, prompts)]),
                when=conditions.lower_guard(work.run_condition, f"{here}.runCondition"),
            )
        )
    if not pieces:
        return _NOTHING_TEXT, ()
    shown = doc.guard_of_any(pieces, at)
    if shown is None:
        return doc.DELEGATE_TEXT, tuple(pieces)
    return _SOME_TEXT, (doc.PromptFragment(fragment_id="delegate", text=doc.DELEGATE_TEXT, when=shown), *pieces)


def _render_details(work: forms.DelegationForm, at: str, prompts: PromptLowering) -> Iterator[str]:
    """Yield the lines of the instructions for a subagent. Members of objects are ordered by name."""
    if work.goal is not None:
        yield f"- Goal: {prompts.check_plain(work.goal, f'{at}.goal')}"
    for key, child in sorted(work.context_mapping.items()):
        name = prompts.check_plain(child, f"{at}.contextMapping.{key}")
        value = f"{{{{{key}}}}}" if _CONTEXT_PATH.fullmatch(key) else f"what the context key `{key}` holds"
        yield f"- `{name}`: {value}"
    for name, value in sorted(work.args.items()):
        yield f"- `{name}`: {prompts.check_plain(value, f'{at}.args.{name}')}"
    if work.allowed_tools is not None:
        tools = (
            prompts.check_plain(tool, f"{at}.allowedTools[{number}]") for number, tool in enumerate(work.allowed_tools)
        )
        yield f"- Allowed tools: {', '.join(tools)}"
    if work.model_tier is not None:
        yield f"- Suggested model tier: {work.model_tier}"
