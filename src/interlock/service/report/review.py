"""Lays out a session for a reviewer who gets only this page: verdicts first, then what they rest on, then the steps."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping

from interlock.kernel.budgets import RECORD_NOTES_BYTES_MAX
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import NodeId
from interlock.kernel.text import duration_words, truncated
from interlock.record.events import Actor
from interlock.record.payloads import ObservationKey
from interlock.record.world import APPROVAL, CHECK, RECEIPT, UNCOUNTED
from interlock.service.report.document import (
    Block,
    Bullets,
    Fold,
    Heading,
    Line,
    Notes,
    Page,
    Paragraph,
    Picture,
    Properties,
    Prose,
    Quote,
    Table,
    UntrustedText,
)
from interlock.service.report.evidence_blocks import (
    answer_lines,
    approval_line,
    artifact_blocks,
    check_line,
    claims_of,
    context_table,
    not_taken,
    object_table,
    outside_lines,
    receipt_line,
    refused_blocks,
    value_line,
)
from interlock.service.report.lines import (
    branch_line,
    ended_line,
    fact_line,
    finding_line,
    gap_line,
    joined,
    session_line,
    step_name,
    work_line,
)
from interlock.service.report.session_report import RunReport, SessionReport, VerdictReport
from interlock.service.report.step_report import StepReport, span_ms, time_bars
from interlock.views.outside import Received
from interlock.views.picture.time_picture import shown_bars, time_svg, time_text

_OWN_WAYS = ("check", "command", "console", "channel")
"""How an event arrives that a process of Interlock records, and no client."""
_RATING = "wr.assessment"
_CHECKS = ("checks", "findings")
"""Fields of bundled artifacts that list what a verdict rests on."""


@frozen
class ReviewOptions:
    """How a page for reviewers is made. `draw` makes the picture of a run."""

    draw: Callable[[RunReport], Picture]


def review_page(report: SessionReport, options: ReviewOptions) -> Page:
    """Return the page, run by run. It names no path of the disk on which the work was done."""
    return tuple(block for run in report.runs for block in _run(report, run, options))


def _run(report: SessionReport, run: RunReport, options: ReviewOptions) -> Iterator[Block]:
    yield Heading(level=1, line=(UntrustedText(run.summary.workflow_name), f": run {run.summary.label}"))
    yield Properties(tuple(_overview(run)))
    yield from _result(run)
    yield Heading(level=2, line=("Verdicts",))
    yield from _verdicts(run)
    yield from _ratings(run)
    yield Heading(level=2, line=("What this rests on",))
    yield Bullets(tuple(_grounds(report, run)))
    yield Heading(level=2, line=("What is missing",))
    missing = list(_missing(run))
    yield Bullets(tuple(missing)) if missing else Paragraph(("Nothing that was recorded: " + _NOTHING,))
    skipped = joined(tuple(f"{one.number}. {one.title}" for one in run.not_done if one.is_skipped))
    if skipped:
        yield Paragraph(("Not missing, but skipped by decisions of the plan (see Path): ", *skipped, "."))
    yield Heading(level=2, line=("Steps",))
    for step in run.steps:
        yield from _step(step, "pending" if run.ended is None else "not done")
    yield from _context(run)
    yield Heading(level=2, line=("Path",))
    decisions = tuple(_decisions(run))
    if decisions:
        yield Bullets(decisions)
    if len(run.branches) > 1:
        yield Bullets(tuple(branch_line(branch) for branch in run.branches))
    yield options.draw(run)
    yield from _times(run)
    yield Heading(level=2, line=("Record",))
    yield Properties(tuple(_record(report, run)))


def _times(run: RunReport) -> Iterator[Block]:
    bars = shown_bars(time_bars(run.steps))
    if bars:
        yield Heading(level=2, line=("Time",))
        yield Picture(svg=time_svg(bars), text=time_text(bars))


_CHECKED = (
    "Interlock checked that each report has the form that the pinned workflow asks for, and recorded it. It ran no"
    " command and judged no file of the project: results of checks are the agent's own statements."
)
_CHECKED_WITH_COMMANDS = (
    "Interlock checked that each report has the form that the pinned workflow asks for, and recorded it. It ran"
    " the commands that are listed here as run by Interlock or `interlock witness`, and judged no file of the project:"
    " all other results are the agent's own statements."
)
_NO_POSITION = "no git position was recorded: this report does not say which version of the code it is about"
_LEVELS = {
    "claimed": "at most the agent says so",
    "observed": "a person or a command at a terminal answered Interlock",
    "signed": "a configured source signed it with its key",
    "executed": "Interlock ran the check itself",
}
_EACH = "each recorded decision again"
_SAME_POSITION = "the same commit: changes that were not committed are not part of this record"
_NOTHING = (
    "every step of the plan was done or skipped by its decisions, no gap is open, no check was left out, and nobody"
    " reported a deviation."
)


def _decisions(run: RunReport) -> Iterator[Line]:
    """Yield what was decided after each step, and which step came next: the steps between the two were passed over."""
    for step, following in zip(run.steps, (*run.steps[1:], None), strict=True):
        if step.decisions:
            yield from (("after ", *step_name(step.place), ": ", Prose(one)) for one in step.decisions)
            onward: Line = step_name(following.place) if following is not None else ("the end",)
            yield "after ", *step_name(step.place), ": next is ", *onward


def _overview(run: RunReport) -> Iterator[tuple[str, Line]]:
    summary = run.summary
    if summary.goal is not None:
        yield "Goal", (Prose(summary.goal),)
    described = run.run_context.workflow.description
    purpose: Line = (": ", Prose(described)) if described else ()
    yield "Workflow", (UntrustedText(summary.workflow_id), *purpose)
    current = Counter(one.verdict.standing for one in run.verdicts if one.is_in_effect)
    stated = ", ".join(f"{count} {standing}" for standing, count in sorted(current.items()))
    yield "Verdicts", (stated or "none was stated",)
    at: Line = ()
    if summary.step is not None:
        at = f": step {summary.number} of {summary.total}, ", UntrustedText(summary.step)
    yield "Status", (summary.status_text, *at, _open_gaps(run))
    if run.ended is not None:
        yield "Ended", ended_line(run.ended)
    yield "Steps", (_counted(run),)
    yield "Time", _time(run)
    began, last = _position(run.began_on), _position(run.observed)
    if began:
        yield "Began on", began
    if last and last != began:
        yield "Last seen on", last
    elif last and any(step.is_done for step in run.steps):
        yield "Last seen on", (_SAME_POSITION,)
    if not last:
        yield "Code", (_NO_POSITION,)


def _open_gaps(run: RunReport) -> str:
    count = len(run.gaps)
    return f"; {count} open {'gap' if count == 1 else 'gaps'}, see What is missing" if count else ""


def _counted(run: RunReport) -> str:
    """Return how many steps of the plan were done: a step of a loop counts once, with the number of its reports."""
    reports = sum(step.is_done for step in run.steps)
    done = len({step.place.number for step in run.steps if step.is_done})
    skipped = sum(one.is_skipped for one in run.not_done)
    counts = [f"{done} of {run.summary.total} done" + (f" in {reports} reports" if reports != done else "")]
    if skipped:
        counts.append(f"{skipped} skipped by decisions of the plan")
    left = (run.summary.total or 0) - done - skipped
    return ", ".join([*counts, f"{left} not done"] if left > 0 else counts)


def _position(observed: Mapping[ObservationKey, str]) -> Line:
    """Return a git position in words; empty if none was recorded."""
    branch, commit = observed.get("git_branch"), observed.get("git_head_sha")
    if branch is None and commit is None:
        return ()
    on: Line = ("branch ", UntrustedText(branch), ", ") if branch is not None else ()
    return (*on, "commit ", UntrustedText(commit or "unknown"))


def _result(run: RunReport) -> Iterator[Block]:
    """Yield the beginning of the last notes, with their lines and lists: what came out, as the agent says."""
    last = next((step for step in reversed(run.steps) if step.is_done and step.notes is not None), None)
    if last is not None and last.notes is not None:
        name = "Result, as the agent reports it" if run.summary.is_complete else "Last report"
        yield Paragraph((f"{name}, ", *step_name(last.place), ":"))
        yield Notes(truncated(last.notes, RECORD_NOTES_BYTES_MAX, "…"))


def _time(run: RunReport) -> Line:
    started, last = run.summary.started_at, run.summary.last_at
    took = span_ms(started, last)
    lasted = f", {duration_words(took)}" if took is not None else ""
    waited = sum(step.waited_ms for step in run.steps)
    for_person = f", of which {duration_words(waited)} waiting for a person" if waited else ""
    return "from ", UntrustedText(started or "unknown"), " to ", UntrustedText(last or "unknown"), lasted, for_person


def _verdicts(run: RunReport) -> Iterator[Block]:
    if not run.verdicts:
        yield Paragraph(("No step stated a verdict. What was done is in the notes and artifacts of the steps.",))
        return
    rows = tuple(_verdict_row(one) for one in run.verdicts)
    yield Table(heads=("Verdict", "Step", "Evidence", "Reason"), rows=rows)
    for verdict in run.verdicts:
        if verdict.is_in_effect:
            yield from _checks(run, verdict)


def _verdict_row(one: VerdictReport) -> tuple[Line, ...]:
    verdict = one.verdict
    own: Line = () if verdict.word == verdict.standing else (" (", UntrustedText(verdict.word), ")")
    replaced = "" if one.is_in_effect else ", replaced by a later verdict"
    reason: Line = (Prose(verdict.summary),) if verdict.summary else ()
    return (verdict.standing, *own, replaced), step_name(one.step, "", ". "), (UntrustedText(verdict.kind),), reason


def _ratings(run: RunReport) -> Iterator[Block]:
    """Yield the ratings that steps gave, each with its levels."""
    rows = [
        (step_name(step.place, "", ". "), (UntrustedText(str(artifact.content.get("assessmentId", ""))),), levels)
        for step in run.steps
        for artifact in step.artifacts
        if artifact.kind == _RATING and isinstance(artifact.content, dict)
        for levels in [_levels(artifact.content.get("dimensions"))]
    ]
    if rows:
        yield Paragraph(("Ratings that the agent gave:",))
        yield Table(heads=("Step", "Rating", "Levels"), rows=tuple(rows))


def _levels(dimensions: Json) -> Line:
    rated = dimensions if isinstance(dimensions, dict) else {}
    line: list[str | UntrustedText | Prose] = []
    for name, level in rated.items():
        word = level.get("level") if isinstance(level, dict) else level
        line += [", " if line else "", UntrustedText(name), ": ", Prose(str(word))]
    return tuple(line)


def _checks(run: RunReport, one: VerdictReport) -> Iterator[Block]:
    """Yield the checks or findings on which a verdict rests."""
    for step in run.steps:
        for artifact in step.artifacts:
            is_its = step.place == one.step and step.at == one.at and artifact.kind == one.verdict.kind
            if not is_its or not isinstance(artifact.content, dict):
                continue
            for field in _CHECKS:
                listed = artifact.content.get(field)
                rows = [row for row in listed if isinstance(row, dict)] if isinstance(listed, list) else []
                if rows:
                    yield Paragraph((f"{field.capitalize()} of ", *step_name(one.step), ":"))
                    yield object_table(rows)


def _grounds(report: SessionReport, run: RunReport) -> Iterator[Line]:
    done = [step for step in run.steps if step.is_done]
    checks, receipts, approvals = (_events(run, kind) for kind in (CHECK, RECEIPT, APPROVAL))
    yield (_CHECKED_WITH_COMMANDS if checks or receipts else _CHECKED,)
    if done:
        yield (run.rests_on.in_one_line(), *_meanings(run))
    for (reporter, whose), count in sorted(Counter((step.by or "", _whose_name(step)) for step in done).items()):
        name: Line = (UntrustedText(reporter), f" ({whose})") if reporter else ("an unnamed client",)
        yield f"{_steps(count)} reported by ", *name
    yield from _verifications(done)
    on_path = {step.node for step in run.steps}
    for listed, line_of in ((checks, check_line), (receipts, receipt_line)):
        yield from ((*_place_of(step, on_path), *line_of(step, one), *not_taken(step, one)) for step, one in listed)
    answered = [step for step in done if step.answered is not None]
    for step in answered:
        yield from ((*step_name(step.place), ": ", *line) for line in answer_lines(step))
    claimed = [step for step in done if step.answered is None and any(claims_of(step))]
    for step in claimed:
        yield from ((*step_name(step.place), ": ", *line) for line in answer_lines(step))
    for step, one in approvals:
        yield (*_place_of(step, on_path), *approval_line(step, one), *not_taken(step, one))
    is_confirmed = any(one.answered is not None and one.answered.assurance is None for one in answered)
    if not is_confirmed and not any(_is_of_person(step, one) for step, one in approvals):
        yield ("No answer of a person to Interlock is recorded in this run.",)
    for step in done:
        yield from ((*step_name(step.place), ": ", *fact_line(one)) for one in step.capabilities)
    is_copy = run.run_context.session.redacted_from is not None
    which = "each recorded decision again, except those that read what was redacted" if is_copy else _EACH
    yield (f"To check this record, `interlock session verify {report.session}` computes {which}.",)


def _is_of_person(step: StepReport, answer: Received) -> bool:
    """Say whether an answer to a question is known to be one of a person."""
    is_claim = answer.data.assurance == "claimed" or answer.event_id in step.unknown_keys
    return not is_claim and answer.data.via != "clock"


def _events(run: RunReport, kind: str) -> list[tuple[StepReport, Received]]:
    """Return the events of a kind about the steps of a run, on all of its branches, each with its step."""
    return [(step, one) for step in (*run.steps, *run.elsewhere) for one in step.received if one.data.event == kind]


def _place_of(step: StepReport, on_path: Collection[NodeId]) -> Line:
    return (*step_name(step.place), "" if step.node in on_path else ", on another branch", ": ")


def _whose_name(step: StepReport) -> str:
    """Say whose name the reporter of a step has: Interlock itself continues with what a step waits for."""
    for one in step.received:
        is_awaited = one.event_id in step.took and one.data.event not in UNCOUNTED
        if is_awaited and one.data.via in _OWN_WAYS and _is_same(one.actor, step.reporter):
            return f"Interlock itself{', according to the imported bundle' if one.event_id in step.imported else ''}"
    return "the name that the client gave"


def _is_same(one: Actor | None, other: Actor | None) -> bool:
    """Say whether two actors have the same name and type: the type of a client is another than that of a command."""
    return one is not None and other is not None and (one.type, one.identifier) == (other.type, other.identifier)


def _meanings(run: RunReport) -> Iterator[str]:
    """Yield what the levels mean on which steps rest."""
    for name, meaning in _LEVELS.items():
        if getattr(run.rests_on, name):
            yield f" {name.capitalize()}: {meaning}."


def _verifications(done: list[StepReport]) -> Iterator[Line]:
    """Yield which steps verified others, and whether another client reported them."""
    reported = {step.step_id: step.by for step in done}
    for step in done:
        if step.verifies:
            others = {reported[one] for one in step.verifies if one in reported}
            is_other = step.by is not None and bool(others) and step.by not in others
            by = "another client than the work" if is_other else "the same client as the work, or an unnamed one"
            yield (*step_name(step.place), " verifies ", *joined(step.verifies), f"; it was reported by {by}")


def _steps(count: int) -> str:
    return "1 step was" if count == 1 else f"{count} steps were"


def _missing(run: RunReport) -> Iterator[Line]:
    yield from (("blocked: ", *finding_line(blocker)) for blocker in run.blockers)
    yield from (("open gap: ", *gap_line(gap)) for gap in run.gaps)
    for step in run.steps:
        where = step_name(step.place)
        yield from ((*where, ": the agent ", *fact_line(one)) for one in step.divergences)
        yield from (
            (*where, ": the stored evidence is missing or damaged: ", UntrustedText(one.kind or one.digest))
            for one in step.artifacts
            if not one.is_readable
        )
        yield from ((*where, ": ", *line) for line in _unchecked(step))
        yield from ((*where, ": work was left: ", *work_line(work)) for work in step.left)
        if not step.is_done:
            yield (*where, ": not done")
    for one in run.not_done:
        if not one.is_skipped:
            yield f"step {one.number}, ", UntrustedText(one.title), ": not reached"


def _unchecked(step: StepReport) -> Iterator[Line]:
    """Yield the checks of a step that its own report says were not run."""
    for artifact in step.artifacts:
        checks = artifact.content.get("checks") if isinstance(artifact.content, dict) else None
        for check in checks if isinstance(checks, list) else []:
            if isinstance(check, dict) and check.get("result") == "skipped":
                yield "check not run: ", Prose(str(check.get("name"))), ": ", Prose(str(check.get("evidence")))


def _step(step: StepReport, undone: str) -> Iterator[Block]:
    yield Heading(level=3, line=(*step_name(step.place, "", ". "), "" if step.is_done else f": {undone}"))
    facts = tuple(_step_facts(step))
    if facts:
        yield Paragraph(facts)
    if step.notes is not None:
        yield Notes(step.notes)
    if step.checkpoint is not None:
        yield Fold(label="Notes of its last checkpoint", blocks=(Notes(step.checkpoint),))
    for artifact in step.artifacts:
        yield from artifact_blocks(artifact)
    others = (*answer_lines(step), *outside_lines(step, is_for_others=True))
    if others:
        yield Bullets(others)
    yield from context_table(step)
    for number, attempt in enumerate(step.refused, start=1):
        yield from refused_blocks(attempt, number)
    yield Fold(label="What the agent was asked to do", blocks=(Quote(step.prompt),))


def _step_facts(step: StepReport) -> Iterator[str | UntrustedText]:
    if not step.is_done:
        return
    yield "Done "
    yield UntrustedText(step.at or "at an unknown time")
    if step.took_ms is not None:
        yield f", after {duration_words(step.took_ms)}"
    if step.waited_ms:
        yield f", of which {duration_words(step.waited_ms)} waiting for a person"
    elif step.answered is not None:
        # Until a person answers, a question leaves nothing in the log.
        yield ", which includes the wait for a person"
    if step.by is not None:
        yield ", by "
        yield UntrustedText(step.by)
    if step.refused:
        yield f", at attempt {len(step.refused) + 1}"
    yield "."


def _context(run: RunReport) -> Iterator[Block]:
    if run.context:
        yield Heading(level=2, line=("Context at the end",))
        rows = tuple(
            (
                (UntrustedText(one.key),),
                value_line(one.value),
                step_name(one.step, "", ". ") if one.step is not None else ("the start",),
            )
            for one in run.context
        )
        yield Table(heads=("Key", "Value", "Set in"), rows=rows)


def _record(report: SessionReport, run: RunReport) -> Iterator[tuple[str, Line]]:
    summary, preferences = run.summary, run.preferences
    source: Line = (f" ({run.source_kind}, ", UntrustedText(run.source_ref), ")")
    yield "Workflow", (UntrustedText(summary.workflow_id), *source)
    yield "Pinned as", (run.workflow_hash,)
    if run.config_hash is not None:
        yield "Configuration", (run.config_hash,)
    yield "Preferences", (f"autonomy {preferences.autonomy}, risk policy {preferences.risk_policy}",)
    for key, value in run.observed.items():
        if key != "repo_root":
            yield key.replace("_", " ").capitalize(), (UntrustedText(value),)
    yield "Session", session_line(report.session, report.events, summary)
