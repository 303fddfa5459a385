"""Lines that several pages of a report share: a step, a blocker, a gap, the end of a run."""

from interlock.kernel.ids import SessionId
from interlock.kernel.text import json_line
from interlock.record.outcome import Blocker
from interlock.record.payloads import CapabilityObserved, DivergenceRecorded, WorkRecorded
from interlock.service.report.document import Line, Prose, UntrustedText
from interlock.service.report.session_report import Branch, GapReport, VerdictReport
from interlock.service.report.step_report import Artifact
from interlock.service.run.context import StepLabel
from interlock.views.session import RunEnd
from interlock.views.summary import RunSummary


def step_name(place: StepLabel, before: str = "step ", after: str = ", ") -> Line:
    """Return a step with its number, its title and the pass of its loop."""
    within = f" (pass {place.loop.pass_})" if place.loop is not None else ""
    return f"{before}{place.number}{after}", UntrustedText(place.title), within


def blocker_line(blocker: Blocker) -> Line:
    """Return a blocker: its code, what was found, and what to send instead."""
    fix: Line = (" ", UntrustedText(blocker.suggested_fix)) if blocker.suggested_fix is not None else ()
    return f"{blocker.code}: ", UntrustedText(blocker.message), *fix


def finding_line(blocker: Blocker) -> Line:
    """Return what a blocker found, without what an agent should send instead."""
    return f"{blocker.code}: ", Prose(blocker.message)


def gap_line(gap_report: GapReport) -> Line:
    """Return an open gap: its severity, its reason, its step, and what would resolve it."""
    gap = gap_report.gap
    where: Line = step_name(gap_report.step) if gap_report.step is not None else ("the start",)
    what = f"{gap.severity}, {gap.reason.detail.replace('_', ' ')}: "
    return what, UntrustedText(gap.summary), " Left in ", *where, f". To resolve: {gap_report.remedy}"


def fact_line(fact: CapabilityObserved | DivergenceRecorded) -> Line:
    """Return a capability with its state and its evidence, or a deviation with its reason."""
    if isinstance(fact, DivergenceRecorded):
        return f"deviated, {fact.reason.replace('_', ' ')}: ", Prose(fact.summary)
    found = fact.provenance
    return (f"{fact.capability} {fact.status}, {found.enforcement_grade} evidence ({found.kind})",)


def verdict_line(report: VerdictReport) -> Line:
    """Return a verdict: the word, the kind of its artifact, its step and its reason."""
    verdict = report.verdict
    word = verdict.standing if verdict.standing == verdict.word else f"{verdict.standing} ("
    stated: Line = (word,) if verdict.standing == verdict.word else (word, UntrustedText(verdict.word), ")")
    reason: Line = (": ", Prose(verdict.summary)) if verdict.summary else ()
    return *stated, ", ", UntrustedText(verdict.kind), " of ", *step_name(report.step), *reason


def work_line(work: WorkRecorded) -> Line:
    """Return how work ended and why, with the note and the references of whoever ended it."""
    note: Line = (": ", UntrustedText(work.note)) if work.note is not None else ()
    refs: Line = (", references ", *joined(work.refs)) if work.refs is not None else ()
    return f"{work.work}, {work.reason.replace('_', ' ')}", *note, *refs


def ended_line(ended: RunEnd) -> Line:
    """Return how, when and by whom a run was ended; an agent did it only after a person agreed."""
    by: Line = (", by ", UntrustedText(ended.actor.identifier)) if ended.actor is not None else ()
    agreed = " after a person agreed" if ended.work.answer_ref is not None else ""
    return *work_line(ended.work), ", ", UntrustedText(ended.at or "at an unknown time"), *by, agreed


def artifact_line(artifact: Artifact) -> Line:
    """Return an artifact: its kind, its size, its digest, and whether it can be read."""
    kind = UntrustedText(artifact.kind if artifact.kind is not None else artifact.content_type)
    damaged = "" if artifact.is_readable else ", missing or damaged"
    return "artifact ", kind, f", {artifact.bytes} bytes, {artifact.digest}{damaged}"


def branch_line(branch: Branch) -> Line:
    """Return a leaf of the run's graph with its pending step."""
    where: Line = step_name(branch.place) if branch.place is not None else ("complete",)
    return *where, f" ({branch.node})", ", preferred" if branch.is_tip else ""


def client_line(client: str | None) -> Line:
    """Return the client through which something was done, in quotes, if it gave a name."""
    return (" through ", UntrustedText(json_line(client))) if client is not None else ()


def session_line(session: SessionId, events: int, run: RunSummary) -> Line:
    """Return a session with its number of events, and one of its runs with its number of nodes."""
    nodes = "1 node" if run.nodes == 1 else f"{run.nodes} nodes"
    return (f"{session}, {events} events, run {run.run}, {nodes}",)


def joined(texts: tuple[str, ...]) -> Line:
    """Return untrusted texts with commas between them."""
    parts: list[str | UntrustedText | Prose] = []
    for text in texts:
        parts += [", ", UntrustedText(text)] if parts else [UntrustedText(text)]
    return tuple(parts)
