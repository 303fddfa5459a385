"""Renders the evidence that a step requires as at most five lines below its prompt (PLAN-13)."""

from collections.abc import Iterator, Mapping

from interlock.decide.criteria import Criteria, EveryOf, describe_criteria
from interlock.define import document as doc
from interlock.define.parts import Assessment
from interlock.kernel.budgets import (
    WORDS_BYTES_MAX,
)
from interlock.kernel.budgets.workflow import (
    REQUIREMENT_LINES_MAX,
)
from interlock.kernel.text import one_line
from interlock.plan.builtins.packs import pack_named


def requirement_lines(step: doc.AgentStep, assessments: Mapping[str, Assessment]) -> tuple[str, ...]:
    """Return a line for each requirement of a step: contracts, ratings, criteria, context keys, up to the limit.

    If there are more, the last line counts them.
    """
    lines = [*_contract(step), *_ratings(step, assessments), *_criteria(step), *_keys(step), *_separation(step)]
    if len(lines) <= REQUIREMENT_LINES_MAX:
        return tuple(lines)
    shown = lines[: REQUIREMENT_LINES_MAX - 1]
    return (*shown, f"And {len(lines) - len(shown)} more; an answer that refuses names each that is missing.")


def _contract(step: doc.AgentStep) -> Iterator[str]:
    wanted = step.evidence
    pack = pack_named(wanted.contract_ref) if wanted.contract_ref is not None else None
    if pack is None or pack.kind is None:
        return
    optional = "" if wanted.contract_required else " (optional here)"
    first, *others = pack.lines
    yield f"{first}{optional}"
    yield from others


def _ratings(step: doc.AgentStep, assessments: Mapping[str, Assessment]) -> Iterator[str]:
    for ref in step.evidence.assessments:
        assessment = assessments.get(ref)
        if assessment is None:
            continue
        rated = "; ".join(
            f"`{dimension.id}` ({' | '.join(dimension.levels)}{'' if dimension.required else ', optional'}):"
            f" {dimension.purpose}"
            for dimension in assessment.dimensions
        )
        head = f'Send an artifact of kind `wr.assessment` with assessmentId "{ref}" and `dimensions`'
        yield one_line(f"{head} ({assessment.purpose}): {rated}", WORDS_BYTES_MAX * 4)


def _criteria(step: doc.AgentStep) -> Iterator[str]:
    criteria = step.evidence.criteria
    if criteria is not None:
        for part in _flat(criteria):
            yield one_line(f"Your notes must {describe_criteria(part)}.", WORDS_BYTES_MAX)


def _flat(criteria: Criteria) -> Iterator[Criteria]:
    if isinstance(criteria, EveryOf):
        for part in criteria.of:
            yield from _flat(part)
    else:
        yield criteria


def _separation(step: doc.AgentStep) -> Iterator[str]:
    if step.by == "another":
        steps = ", ".join(f"`{verified}`" for verified in step.verifies)
        yield one_line(f"A client that reported {steps} cannot report this step: another client must.", WORDS_BYTES_MAX)


def _keys(step: doc.AgentStep) -> Iterator[str]:
    if step.produces:
        keys = ", ".join(f"`{key}`" for key in step.produces)
        yield one_line(f"Send in `context`: {keys}.", WORDS_BYTES_MAX * 2)
