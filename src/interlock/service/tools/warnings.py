"""Warnings for agents, derived only from the log, so that a replay gives the same warnings (ANS-19)."""

from collections.abc import Iterable, Iterator

from interlock.engine.answer.structure import Warned
from interlock.engine.judge.recommended import beyond_recommendation
from interlock.kernel.budgets import NOTES_BYTES_MAX, WARNED_GAP_BYTES_MAX, WARNED_GAPS_MAX
from interlock.kernel.frozen import positional
from interlock.kernel.ids import WorkflowHash
from interlock.kernel.text import TRUNCATION_MARKER, flat, in_code, one_line, utf8_bytes
from interlock.plan.compiled import CompiledWorkflow
from interlock.record.base import Preferences
from interlock.record.payloads import GapRecorded, IterationRef, LoopRef, Resolves, StepRef
from interlock.service.run.context import RunContext
from interlock.service.workflows.reading import Source
from interlock.views.node_position import walk_up
from interlock.views.session import Node, Run, Session


def notes_cut(notes: str | None) -> Iterator[Warned]:
    """Warn that notes were over their limit."""
    if notes is not None and notes.endswith(TRUNCATION_MARKER) and utf8_bytes(notes) >= NOTES_BYTES_MAX - 3:
        message = (
            f"The notes are over {NOTES_BYTES_MAX} bytes. Recaps show them cut, with a marker at the end; the full"
            " notes are stored as an artifact."
        )
        yield Warned(code="NOTES_TRUNCATED", message=message)


@positional
class SourceRemoved:
    """No source that is visible from the caller's workspace holds the file of a run's workflow."""


def source_changed(run: Run, now: WorkflowHash | SourceRemoved | None) -> Iterator[Warned]:
    """Warn that the source of a run's workflow was changed or removed; the run keeps its version (REC-2, REC-4)."""
    if now is None or now == run.workflow_hash:
        return
    if isinstance(now, SourceRemoved):
        where = " in this workspace" if run.source_kind == "project" else ""
        file = in_code(f"{run.source_ref} of the {run.source_kind} source")
        message = (
            f"The source of `{run.workflow_id}`, {file}, was removed or is not found{where}. This run keeps its"
            " version; a new run needs the source."
        )
        yield Warned(code="WORKFLOW_SOURCE_REMOVED", message=message)
        return
    message = (
        f"The source of `{run.workflow_id}` has changed since this run began. This run keeps its version; only a new"
        " run uses the changed source."
    )
    yield Warned(code="WORKFLOW_SOURCE_CHANGED", message=message)


def replaced(run: Run, farther: Source | None) -> Iterator[Warned]:
    """Warn at a start that another source, such as the user's directory, has a workflow with the same id (SRC-3)."""
    if farther is None:
        return
    used = in_code(f"{run.source_ref} of the {run.source_kind} source")
    other = in_code(f"{farther.ref} of the {farther.kind} source")
    message = f"This run uses {used} in place of {other}, which has the same id. Tell the user, who may mean that one."
    yield Warned(code="WORKFLOW_REPLACED", message=message)


def decided_otherwise(run_context: RunContext, node: Node) -> Iterator[Warned]:
    """Warn of loops that ended at their limit, and of levels whose spelling was normalised (WALK-3)."""
    for entry in node.trace:
        refs = entry.refs or ()
        loop = next((ref.loop_id for ref in refs if isinstance(ref, LoopRef)), None)
        passes = next((ref.value for ref in refs if isinstance(ref, IterationRef)), None)
        if entry.kind == "exited_loop" and loop and passes == run_context.workflow.graphs.loops[loop].max_iterations:
            message = f"The loop {loop!r} ended at its limit of {passes} passes, not because it was done."
            yield Warned(code="LOOP_LIMIT_REACHED", message=message)
        if entry.kind == "evaluated_condition" and any(isinstance(ref, StepRef) for ref in refs):
            yield Warned(code="LEVEL_NORMALISED", message=entry.summary)


def disclosed(node: Node) -> Iterator[Warned]:
    """Warn of the evidence that was missing when the run continued without it."""
    critical = [gap for gap in node.gaps if gap.severity == "critical" and gap.resolution.kind == "unresolved"]
    for words in _summaries(critical):
        yield Warned(code="GAP_RECORDED", message=f"Missing, recorded as a gap of this run: {words}")


def still_open(session: Session, node: Node) -> Iterator[Warned]:
    """Warn of the open critical gaps on the way to a node, for an agent that did not see them recorded (READ-7)."""
    # Most runs have no open gap, and the way to the root is as long as the run.
    path = reversed([*walk_up(session, node)]) if session.open_gaps else ()
    on_path = (gap for one in path for gap in one.gaps)
    for words in _summaries(gap for gap in on_path if gap.severity == "critical" and gap.gap_id in session.open_gaps):
        yield Warned(code="GAP_RECORDED", message=f"Still missing, an open gap of this run: {words}")


def open_at_the_end(session: Session, node: Node) -> Iterator[Warned]:
    """Warn of the gaps that were open when a run completed at a node.

    Later events on any branch do not change this: a replay gives the same warning as the first answer (ANS-19).
    """
    with_gaps = [session.nodes[one] for one in session.runs[node.run].with_gaps]
    then = sorted((one for one in with_gaps if one.index <= node.index), key=lambda one: one.index)
    recorded_gaps = [gap for one in then for gap in one.gaps]
    resolved = {gap.resolution.resolves_gap_id for gap in recorded_gaps if isinstance(gap.resolution, Resolves)}
    open_gaps = [
        gap
        for gap in recorded_gaps
        if gap.severity == "critical" and gap.resolution.kind == "unresolved" and gap.gap_id not in resolved
    ]
    if not open_gaps:
        return
    listed = " ".join(f"({number}) {words}" for number, words in enumerate(_summaries(open_gaps), start=1))
    count = "1 open gap" if len(open_gaps) == 1 else f"{len(open_gaps)} open gaps"
    message = f"The run is complete with {count}; report each to the user: {listed}"
    yield Warned(code="COMPLETE_WITH_GAPS", message=message)


def claimed(node: Node) -> Iterator[Warned]:
    """Warn of facts that only the agent claims, as the risk policy says (MODE-4).

    Conservative: all of them. Balanced: only claims that opened a gate. Aggressive: none.
    """
    policy = node.preferences.risk_policy
    if policy == "aggressive":
        return
    for gap in node.gaps:
        if gap.severity == "warning" and gap.resolution.kind == "unresolved":
            yield Warned(code="CLAIMED_FACT", message=f"A gate was opened by a claim. {flat(gap.summary)}")
    if policy == "balanced":
        return
    for seen in node.observed:
        if seen.provenance.enforcement_grade == "weak":
            words = f"You reported {seen.capability!r} as {seen.status}, without proof; it is recorded as a claim."
            yield Warned(code="CLAIMED_FACT", message=words)


def beyond_advice(workflow: CompiledWorkflow, preferences: Preferences) -> Iterator[Warned]:
    """Warn of preferences beyond the author's recommendation; they are not refused (MODE-5)."""
    for message in beyond_recommendation(workflow, preferences):
        yield Warned(code="BEYOND_RECOMMENDATION", message=message)


def _summaries(gaps: Iterable[GapRecorded]) -> Iterator[str]:
    listed = list(gaps)
    for gap in listed[:WARNED_GAPS_MAX]:
        yield one_line(gap.summary, WARNED_GAP_BYTES_MAX)
    if len(listed) > WARNED_GAPS_MAX:
        yield f"and {len(listed) - WARNED_GAPS_MAX} more."
