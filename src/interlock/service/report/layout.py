"""The account of a session as a page."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from interlock.kernel.budgets import RECORD_NODES_MAX, RECORD_NOTES_BYTES_MAX
from interlock.kernel.text import truncated
from interlock.record.outcome import Blocker
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
from interlock.views.status import status_words

_OF_A_PLACE = {"repo_root"}
"""What says where on somebody's disk the work was done: not for others' eyes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderOptions:
    """How an account is shown: whole, or notes and drawings up to a size; `is_for_others` leaves out whose disk.

    `draw` makes the tree of a run that branched; without it, its branches are only listed.
    """

    newest_first: bool
    is_whole: bool
    is_for_others: bool
    draw: Callable[[RunContext], str] | None = None


def page_of(account: SessionReport, look: RenderOptions) -> Page:
    """Return the account as a page, run after run."""
    return tuple(block for run in account.runs for block in _run(account, run, look))


def _run(account: SessionReport, run: RunReport, look: RenderOptions) -> Iterator[Block]:
    yield Heading(level=1, line=(UntrustedText(run.summary.workflow_name), f": run {run.summary.label}"))
    yield Properties(tuple(_facts(account, run, look)))
    if run.blockers:
        yield Heading(level=2, line=("Why it is blocked",))
        yield Bullets(tuple(_blocker(blocker) for blocker in run.blockers))
    if run.gaps:
        yield Heading(level=2, line=(f"Open gaps: {len(run.gaps)}",))
        yield Bullets(tuple(_gap(gap) for gap in run.gaps))
    yield Heading(level=2, line=("Steps, newest first" if look.newest_first else "Steps",))
    for step in reversed(run.steps) if look.newest_first else run.steps:
        yield from _step(step, look)
    if run.left_out:
        yield Paragraph((f"{run.left_out} earlier steps are left out; `interlock session show --all` shows them.",))
    if len(run.branches) > 1:
        yield Heading(level=2, line=(f"Branches: {len(run.branches)}",))
        yield Bullets(tuple(_branch(branch) for branch in run.branches))
        if look.draw is not None and (look.is_whole or run.summary.nodes <= RECORD_NODES_MAX):
            yield Drawing(look.draw(run.scene))
        else:
            yield Paragraph((f"`interlock session graph {run.summary.label}` draws its {run.summary.nodes} nodes.",))


def _facts(account: SessionReport, run: RunReport, look: RenderOptions) -> Iterator[tuple[str, Line]]:
    summary = run.summary
    if summary.goal is not None:
        yield "Goal", (UntrustedText(summary.goal),)
    at: Line = (
        (f": step {summary.number} of {summary.total}, ", UntrustedText(summary.step))
        if summary.step is not None
        else ()
    )
    yield "Status", (status_words(summary.status), *at)
    yield "Workflow", (UntrustedText(summary.workflow_id), f" ({run.source_kind}, ", UntrustedText(run.source_ref), ")")
    yield "Pinned as", (run.workflow_hash,)
    preferences = run.preferences
    yield "Preferences", (f"autonomy {preferences.autonomy}, risk policy {preferences.risk_policy}",)
    yield "Started", (UntrustedText(summary.started_at or "unknown"),)
    yield "Last worked on", (UntrustedText(summary.last_at or "unknown"), *_through(summary.client))
    for key, value in run.observed.items():
        if not (look.is_for_others and key in _OF_A_PLACE):
            yield key.replace("_", " ").capitalize(), (UntrustedText(value),)
    if run.context_keys:
        yield "Context keys", _listed(run.context_keys)
    yield "Session", (f"{account.session}, {account.events} events, run {summary.run}, {summary.nodes} nodes",)


def _through(client: str | None) -> Line:
    return (" through ", UntrustedText(client)) if client is not None else ()


def _listed(texts: tuple[str, ...]) -> Line:
    parts: list[str | UntrustedText] = []
    for text in texts:
        parts += [", ", UntrustedText(text)] if parts else [UntrustedText(text)]
    return tuple(parts)


def _step(step: StepReport, look: RenderOptions) -> Iterator[Block]:
    when: Line = (", ", UntrustedText(step.at)) if step.is_done and step.at is not None else ()
    yield Heading(level=3, line=(*_place(step.place, "", ". "), *(when if step.is_done else (": pending",))))
    if step.notes is not None:
        yield Quote(_cut(step.notes, look))
    if step.checkpoint is not None:
        yield Paragraph(("Notes of its last checkpoint:",))
        yield Quote(_cut(step.checkpoint, look))
    items = [_artifact(artifact) for artifact in step.artifacts]
    for number, blockers in enumerate(step.refused, start=1):
        items += [(f"attempt {number} was refused: ", *_blocker(blocker)) for blocker in blockers]
    if items:
        yield Bullets(tuple(items))


def _place(place: StepLabel, before: str, after: str) -> Line:
    within = f" (pass {place.loop.pass_})" if place.loop is not None else ""
    return f"{before}{place.number}{after}", UntrustedText(place.title), within


def _in_line(place: StepLabel) -> Line:
    return _place(place, "step ", ", ")


def _cut(notes: str, look: RenderOptions) -> str:
    return notes if look.is_whole else truncated(notes, RECORD_NOTES_BYTES_MAX, "…")


def _artifact(artifact: Artifact) -> Line:
    kind: Line = (
        (UntrustedText(artifact.kind),) if artifact.kind is not None else (UntrustedText(artifact.content_type),)
    )
    damaged = "" if artifact.is_readable else ", missing or damaged"
    return "artifact ", *kind, f", {artifact.bytes} bytes, {artifact.digest}{damaged}"


def _blocker(blocker: Blocker) -> Line:
    fix: Line = (" ", UntrustedText(blocker.suggested_fix)) if blocker.suggested_fix is not None else ()
    return f"{blocker.code}: ", UntrustedText(blocker.message), *fix


def _gap(told: GapReport) -> Line:
    gap = told.gap
    where: Line = _in_line(told.step) if told.step is not None else ("the start",)
    what = f"{gap.severity}, {gap.reason.detail.replace('_', ' ')}: "
    return what, UntrustedText(gap.summary), " Left in ", *where, f". To resolve: {told.remedy}"


def _branch(branch: Branch) -> Line:
    where: Line = _in_line(branch.place) if branch.place is not None else ("complete",)
    return *where, f" ({branch.node})", ", preferred" if branch.is_tip else ""
