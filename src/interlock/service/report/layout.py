"""Lays out the report of a session as a page."""

from collections.abc import Callable, Iterator

from interlock.kernel.budgets import RECORD_NODES_MAX, RECORD_NOTES_BYTES_MAX
from interlock.kernel.frozen import frozen
from interlock.kernel.text import truncated
from interlock.service.report.document import (
    Block,
    Bullets,
    Drawing,
    Heading,
    Line,
    Page,
    Paragraph,
    Properties,
    Quote,
    UntrustedText,
)
from interlock.service.report.evidence_blocks import (
    answer_lines,
    artifact_blocks,
    context_table,
    outside_lines,
    refused_blocks,
)
from interlock.service.report.lines import (
    artifact_line,
    blocker_line,
    branch_line,
    client_line,
    ended_line,
    gap_line,
    joined,
    session_line,
    step_name,
    verdict_line,
    work_line,
)
from interlock.service.report.session_report import RunReport, SessionReport
from interlock.service.report.step_report import StepReport
from interlock.service.run.context import RunContext
from interlock.views.summary import Drift, RunSummary

DriftOf = Callable[[RunSummary], Drift | None]
_PRIVATE_KEYS = {"repo_root"}
"""Observations that contain a path of somebody's disk: not shown to other people."""


@frozen
class RenderOptions:
    """How a report is shown: whole, or with limits for notes and drawings. `is_for_others` leaves out local paths.

    With `shows_evidence`, steps are shown with the content of their artifacts and what they changed in the context.
    With `shows_steps_only`, the page has nothing but the steps and their tasks.
    `draw` draws the graph of a run with branches; without it, the branches are only listed. `drift_of` says whether the
    source of a run's workflow changed, `lifetime` how long the session is kept.
    """

    newest_first: bool
    is_whole: bool
    is_for_others: bool
    shows_evidence: bool = False
    shows_steps_only: bool = False
    draw: Callable[[RunContext], str] | None = None
    drift_of: DriftOf | None = None
    lifetime: str | None = None


def page_of(account: SessionReport, options: RenderOptions) -> Page:
    """Return the report as a page, run by run."""
    return tuple(block for run in account.runs for block in _run(account, run, options))


def _run(account: SessionReport, run: RunReport, options: RenderOptions) -> Iterator[Block]:
    yield Heading(level=1, line=(UntrustedText(run.summary.workflow_name), f": run {run.summary.label}"))
    if options.shows_steps_only:
        for step in run.steps:
            yield from _step(step, options, "pending" if run.ended is None else "not done")
        return
    yield Properties(tuple(_properties(account, run, options)))
    yield Paragraph((run.rests_on.in_one_line(),))
    if run.blockers:
        yield Heading(level=2, line=("Why it is blocked",))
        yield Bullets(tuple(blocker_line(blocker) for blocker in run.blockers))
    if run.gaps:
        yield Heading(level=2, line=(f"Open gaps: {len(run.gaps)}",))
        yield Bullets(tuple(gap_line(gap) for gap in run.gaps))
    current = [one for one in run.verdicts if one.is_in_effect]
    if current:
        yield Heading(level=2, line=("Verdicts",))
        yield Bullets(tuple(verdict_line(one) for one in current))
    yield Heading(level=2, line=("Steps, newest first" if options.newest_first else "Steps",))
    for step in reversed(run.steps) if options.newest_first else run.steps:
        yield from _step(step, options, "pending" if run.ended is None else "not done")
    if run.left_out:
        yield Paragraph((f"{run.left_out} earlier steps are left out; `interlock session show --all` shows them.",))
    if len(run.branches) > 1:
        yield Heading(level=2, line=(f"Branches: {len(run.branches)}",))
        yield Bullets(tuple(branch_line(branch) for branch in run.branches))
        if options.draw is not None and (options.is_whole or run.summary.nodes <= RECORD_NODES_MAX):
            yield Drawing(options.draw(run.run_context))
        else:
            yield Paragraph((f"`interlock session graph {run.summary.label}` draws its {run.summary.nodes} nodes.",))


def _properties(account: SessionReport, run: RunReport, options: RenderOptions) -> Iterator[tuple[str, Line]]:
    summary = run.summary
    if summary.goal is not None:
        yield "Goal", (UntrustedText(summary.goal),)
    at: Line = (
        (f": step {summary.number} of {summary.total}, ", UntrustedText(summary.step))
        if summary.step is not None
        else ()
    )
    yield "Status", (summary.status_text, *at)
    if run.ended is not None:
        yield "Ended", ended_line(run.ended)
    yield "Workflow", (UntrustedText(summary.workflow_id), f" ({run.source_kind}, ", UntrustedText(run.source_ref), ")")
    yield "Pinned as", (run.workflow_hash,)
    preferences = run.preferences
    drift = options.drift_of(summary) if options.drift_of is not None else None
    if drift is not None:
        yield "Source", (f"{drift} since the run began; the run keeps its version",)
    yield "Preferences", (f"autonomy {preferences.autonomy}, risk policy {preferences.risk_policy}",)
    yield "Started", (UntrustedText(summary.started_at or "unknown"),)
    yield "Last worked on", (UntrustedText(summary.last_at or "unknown"), *client_line(summary.client))
    for key, value in run.observed.items():
        if not (options.is_for_others and key in _PRIVATE_KEYS):
            yield key.replace("_", " ").capitalize(), (UntrustedText(value),)
    if run.context:
        yield "Context keys", joined(tuple(one.key for one in run.context))
    if options.lifetime is not None:
        yield "Deletion", (options.lifetime,)
    yield "Session", session_line(account.session, account.events, summary)


def _step(step: StepReport, options: RenderOptions, undone: str) -> Iterator[Block]:
    when: Line = (", ", UntrustedText(step.at)) if step.is_done and step.at is not None else ()
    yield Heading(level=3, line=(*step_name(step.place, "", ". "), *(when if step.is_done else (f": {undone}",))))
    if options.shows_steps_only:
        yield Paragraph(("Task:",))
        yield Quote(step.prompt)
        yield Paragraph(("Notes:" if step.notes is not None else "No notes yet.",))
    if step.notes is not None:
        yield Quote(_cut(step.notes, options))
    if step.checkpoint is not None:
        yield Paragraph(("Notes of its last checkpoint:",))
        yield Quote(_cut(step.checkpoint, options))
    if options.shows_evidence:
        yield from _evidence(step, options)
        return
    items = [artifact_line(artifact) for artifact in step.artifacts]
    items += outside_lines(step, is_for_others=options.is_for_others)
    items += [("work was left: ", *work_line(work)) for work in step.left]
    for number, attempt in enumerate(step.refused, start=1):
        items += [(f"attempt {number} was refused: ", *blocker_line(blocker)) for blocker in attempt.blockers]
    if items:
        yield Bullets(tuple(items))


def _evidence(step: StepReport, options: RenderOptions) -> Iterator[Block]:
    for artifact in step.artifacts:
        yield from artifact_blocks(artifact)
    others = [*answer_lines(step), *outside_lines(step, is_for_others=options.is_for_others)]
    others += [("work was left: ", *work_line(work)) for work in step.left]
    if others:
        yield Bullets(tuple(others))
    yield from context_table(step)
    for number, attempt in enumerate(step.refused, start=1):
        yield from refused_blocks(attempt, number)


def _cut(notes: str, options: RenderOptions) -> str:
    return notes if options.is_whole else truncated(notes, RECORD_NOTES_BYTES_MAX, "…")
