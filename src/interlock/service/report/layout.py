"""Lays out the report of a session as a page."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from interlock.kernel.budgets import RECORD_NODES_MAX, RECORD_NOTES_BYTES_MAX
from interlock.kernel.text import truncated
from interlock.record.outcome import Blocker
from interlock.record.payloads import WorkRecorded
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
from interlock.service.report.session_report import (
    Artifact,
    Branch,
    GapReport,
    RunReport,
    SessionReport,
    StepReport,
)
from interlock.service.run.context import RunContext, StepLabel
from interlock.views.session import RunEnd
from interlock.views.status import status_words

_PRIVATE_KEYS = {"repo_root"}
"""Observations that contain a path of somebody's disk: not shown to other people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderOptions:
    """How a report is shown: whole, or with limits for notes and drawings. `is_for_others` leaves out local paths.

    `draw` draws the graph of a run with branches; without it, the branches are only listed.
    """

    newest_first: bool
    is_whole: bool
    is_for_others: bool
    draw: Callable[[RunContext], str] | None = None


def page_of(account: SessionReport, options: RenderOptions) -> Page:
    """Return the report as a page, run by run."""
    return tuple(block for run in account.runs for block in _run(account, run, options))


def _run(account: SessionReport, run: RunReport, options: RenderOptions) -> Iterator[Block]:
    yield Heading(level=1, line=(UntrustedText(run.summary.workflow_name), f": run {run.summary.label}"))
    yield Properties(tuple(_properties(account, run, options)))
    if run.blockers:
        yield Heading(level=2, line=("Why it is blocked",))
        yield Bullets(tuple(_blocker(blocker) for blocker in run.blockers))
    if run.gaps:
        yield Heading(level=2, line=(f"Open gaps: {len(run.gaps)}",))
        yield Bullets(tuple(_gap(gap) for gap in run.gaps))
    yield Heading(level=2, line=("Steps, newest first" if options.newest_first else "Steps",))
    for step in reversed(run.steps) if options.newest_first else run.steps:
        yield from _step(step, options, "pending" if run.ended is None else "not done")
    if run.left_out:
        yield Paragraph((f"{run.left_out} earlier steps are left out; `interlock session show --all` shows them.",))
    if len(run.branches) > 1:
        yield Heading(level=2, line=(f"Branches: {len(run.branches)}",))
        yield Bullets(tuple(_branch(branch) for branch in run.branches))
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
    yield "Status", (status_words(summary.status, summary.waiting), *at)
    if run.ended is not None:
        yield "Ended", (*_work(run.ended.work), *_by(run.ended))
    yield "Workflow", (UntrustedText(summary.workflow_id), f" ({run.source_kind}, ", UntrustedText(run.source_ref), ")")
    yield "Pinned as", (run.workflow_hash,)
    preferences = run.preferences
    yield "Preferences", (f"autonomy {preferences.autonomy}, risk policy {preferences.risk_policy}",)
    yield "Started", (UntrustedText(summary.started_at or "unknown"),)
    yield "Last worked on", (UntrustedText(summary.last_at or "unknown"), *_client(summary.client))
    for key, value in run.observed.items():
        if not (options.is_for_others and key in _PRIVATE_KEYS):
            yield key.replace("_", " ").capitalize(), (UntrustedText(value),)
    if run.context_keys:
        yield "Context keys", _join(run.context_keys)
    yield "Session", (f"{account.session}, {account.events} events, run {summary.run}, {summary.nodes} nodes",)


def _work(work: WorkRecorded) -> Line:
    """Return how work ended and why, with the note and the references of whoever ended it."""
    note: Line = (": ", UntrustedText(work.note)) if work.note is not None else ()
    refs: Line = (", references ", *_join(work.refs)) if work.refs is not None else ()
    return f"{work.work}, {work.reason.replace('_', ' ')}", *note, *refs


def _by(ended: RunEnd) -> Line:
    """Return when and by whom a run was ended; an agent did it only after a person agreed."""
    by: Line = (", by ", UntrustedText(ended.actor.identifier)) if ended.actor is not None else ()
    agreed = " after a person agreed" if ended.work.answer_ref is not None else ""
    return ", ", UntrustedText(ended.at or "at an unknown time"), *by, agreed


def _client(client: str | None) -> Line:
    return (" through ", UntrustedText(client)) if client is not None else ()


def _join(texts: tuple[str, ...]) -> Line:
    parts: list[str | UntrustedText] = []
    for text in texts:
        parts += [", ", UntrustedText(text)] if parts else [UntrustedText(text)]
    return tuple(parts)


def _step(step: StepReport, options: RenderOptions, undone: str) -> Iterator[Block]:
    when: Line = (", ", UntrustedText(step.at)) if step.is_done and step.at is not None else ()
    yield Heading(level=3, line=(*_step_name(step.place, "", ". "), *(when if step.is_done else (f": {undone}",))))
    if step.notes is not None:
        yield Quote(_cut(step.notes, options))
    if step.checkpoint is not None:
        yield Paragraph(("Notes of its last checkpoint:",))
        yield Quote(_cut(step.checkpoint, options))
    items = [_artifact(artifact) for artifact in step.artifacts]
    items += [("work was left: ", *_work(work)) for work in step.left]
    for number, blockers in enumerate(step.refused, start=1):
        items += [(f"attempt {number} was refused: ", *_blocker(blocker)) for blocker in blockers]
    if items:
        yield Bullets(tuple(items))


def _step_name(place: StepLabel, before: str, after: str) -> Line:
    within = f" (pass {place.loop.pass_})" if place.loop is not None else ""
    return f"{before}{place.number}{after}", UntrustedText(place.title), within


def _step_reference(place: StepLabel) -> Line:
    return _step_name(place, "step ", ", ")


def _cut(notes: str, options: RenderOptions) -> str:
    return notes if options.is_whole else truncated(notes, RECORD_NOTES_BYTES_MAX, "…")


def _artifact(artifact: Artifact) -> Line:
    kind: Line = (
        (UntrustedText(artifact.kind),) if artifact.kind is not None else (UntrustedText(artifact.content_type),)
    )
    damaged = "" if artifact.is_readable else ", missing or damaged"
    return "artifact ", *kind, f", {artifact.bytes} bytes, {artifact.digest}{damaged}"


def _blocker(blocker: Blocker) -> Line:
    fix: Line = (" ", UntrustedText(blocker.suggested_fix)) if blocker.suggested_fix is not None else ()
    return f"{blocker.code}: ", UntrustedText(blocker.message), *fix


def _gap(gap_report: GapReport) -> Line:
    gap = gap_report.gap
    where: Line = _step_reference(gap_report.step) if gap_report.step is not None else ("the start",)
    what = f"{gap.severity}, {gap.reason.detail.replace('_', ' ')}: "
    return what, UntrustedText(gap.summary), " Left in ", *where, f". To resolve: {gap_report.remedy}"


def _branch(branch: Branch) -> Line:
    where: Line = _step_reference(branch.place) if branch.place is not None else ("complete",)
    return *where, f" ({branch.node})", ", preferred" if branch.is_tip else ""
