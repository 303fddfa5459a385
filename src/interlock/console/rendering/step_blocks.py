"""A step of a run as blocks: in short for the page of its run, and whole for its own page."""

from collections.abc import Iterator

from interlock.record.payloads import Resolves
from interlock.service.report.document import Block, Bullets, Fold, Heading, Line, Notes, Paragraph, Prose, Quote
from interlock.service.report.evidence_blocks import (
    answer_lines,
    artifact_blocks,
    context_table,
    outside_lines,
    refused_blocks,
)
from interlock.service.report.lines import artifact_line, blocker_line, fact_line, work_line
from interlock.service.report.step_report import StepReport


def step_summary(step: StepReport) -> Iterator[Block]:
    """Yield what a step left: its notes, and one line for each thing that its own page shows whole."""
    if step.notes is not None:
        yield Notes(step.notes)
    items = [artifact_line(one) for one in step.artifacts]
    items += _statements(step)
    for number, attempt in enumerate(step.refused, start=1):
        items += [(f"attempt {number} was refused: ", *blocker_line(one)) for one in attempt.blockers]
    if items:
        yield Bullets(tuple(items))


def step_details(step: StepReport) -> Iterator[Block]:
    """Yield all that is recorded about a step, and what the agent was asked."""
    yield Heading(level=2, line=("Notes",))
    yield Notes(step.notes) if step.notes is not None else Paragraph(("The step has no notes.",))
    if step.checkpoint is not None:
        yield Fold(label="Notes of its last checkpoint", blocks=(Notes(step.checkpoint),))
    if step.artifacts:
        yield Heading(level=2, line=(f"Artifacts: {len(step.artifacts)}",))
        for artifact in step.artifacts:
            yield from artifact_blocks(artifact)
    statements = _statements(step)
    if statements:
        yield Heading(level=2, line=("What is known",))
        yield Bullets(tuple(statements))
    if step.context:
        yield Heading(level=2, line=("Context that the step changed",))
        yield from context_table(step)
    if step.refused:
        yield Heading(level=2, line=(f"Refused attempts: {len(step.refused)}",))
        for number, attempt in enumerate(step.refused, start=1):
            yield from refused_blocks(attempt, number)
    if step.decisions:
        yield Fold(label="Decisions of the plan", blocks=(Bullets(tuple((Prose(one),) for one in step.decisions)),))
    yield Heading(level=2, line=("What the agent was asked to do",))
    yield Quote(step.prompt)


def _statements(step: StepReport) -> list[Line]:
    """Return what is known about a step besides its notes, each with how well it is known."""
    found: list[Line] = [*answer_lines(step), *outside_lines(step, is_for_others=False)]
    found += [fact_line(one) for one in (*step.capabilities, *step.divergences)]
    for one in step.gaps:
        what = "gap resolved" if isinstance(one.resolution, Resolves) else "gap left"
        found.append((f"{what}, {one.severity}: ", Prose(one.summary)))
    found += [("work was left: ", *work_line(one)) for one in step.left]
    return found
