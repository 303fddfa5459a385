"""`resume_session`: find the run to continue if no token is known. Writes nothing (RES-1, READ-1)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

from interlock.engine.answer.identity import RunIdentity
from interlock.engine.answer.model import CONTINUE_TOOL, Answer, look_call
from interlock.engine.answer.parts import RunView
from interlock.engine.answer.structure import NextCall
from interlock.engine.published import Published
from interlock.engine.template import title_in_code
from interlock.kernel.budgets import (
    CANDIDATE_SNIPPET_BYTES_MAX,
    CANDIDATES_MAX,
    ECHO_BYTES_MAX,
    HEADER_GOAL_BYTES_MAX,
    HEADER_TITLE_BYTES_MAX,
    NAMED_MAX,
)
from interlock.kernel.frozen import frozen, replace
from interlock.kernel.ids import RunId, SessionId
from interlock.kernel.matching import Closeness, Words
from interlock.kernel.shape import described
from interlock.kernel.text import in_code, one_line, printable, quoted, truncated
from interlock.service.ports import ReadPorts
from interlock.service.run.context import load_run_context
from interlock.service.run.evidence.sent import evidence_refused
from interlock.service.run.summaries import Unreadable, unreadable_by
from interlock.service.run.summarize import summary_of
from interlock.service.tokens.mint import minting
from interlock.store.ports.errors import (
    UNUSABLE_SESSION,
    ContentDamagedError,
    ContentUnreadableError,
    KeyRingMissingError,
)
from interlock.store.ports.keys import KeyRing
from interlock.store.ports.workspace import NOWHERE
from interlock.views.resume import Candidate, RunQuery, Why, ranked
from interlock.views.summary import RunStatus, SessionSummary, path_digest


@frozen
class ResumeCommand:
    """A parsed call."""

    query: str | None = None
    workspace: Path | None = None
    git_branch: str | None = None
    git_head_sha: str | None = None
    session: SessionId | None = None
    run: RunId | None = None


@frozen
class _Found:
    """A candidate whose session was loaded and verified, with the token that shows it."""

    candidate: Candidate
    state_token: str

    def call(self) -> NextCall:
        """Return the call that shows it."""
        return look_call(self.state_token, self.candidate.run.label)


_Lost = Literal["runs", "matches"]


class CandidateOut(Published):
    """A run that matches the search. `nextCall` can be sent unchanged."""

    run: RunIdentity
    title: str
    status: RunStatus
    pending_step: str | None = None
    last_activity: str | None = None
    why_matched: tuple[Why, ...]
    state_token: str
    next_call: NextCall
    snippet: str


class ResumeAnswer(Published):
    """Answer of `resume_session`: best match first."""

    candidates: tuple[CandidateOut, ...]
    reason: Annotated[str | None, described("Why nothing matched, or what the matching left out.")] = None
    more: int | None = None


def resume_session(ports: ReadPorts, command: ResumeCommand) -> Answer:
    """Find the runs that match the call, best first.

    Raises:
        StoreFailureError, KeyRingDamagedError: See `service.failures`.
    """
    run_query = _build_query(ports, command)
    with ports.trace.span("load"):
        listing = ports.listing(checks_files=False)
    ordered = ranked(listing.sessions, run_query)
    events = {one.session: one.events for one in listing.sessions}
    found, skipped = _load_candidates(ports, ordered, events) if ordered else ([], [])
    is_lost = bool(skipped) and not found
    if is_lost and not run_query.is_exact:
        # No matching run can be continued: offer the others, and name those that matched.
        ordered = ranked(listing.sessions, RunQuery(repo=run_query.repo))
        found, others = _load_candidates(ports, ordered, events)
        skipped = [*dict.fromkeys([*skipped, *others])]
    more = max(len(ordered) - len(found) - len(skipped), 0)
    # An unreadable session may be the wanted one, unless another session id was given.
    skipped += [_describe(one) for one in listing.unreadable if run_query.session in (None, one.session)]
    candidates, has_ended = [one.candidate for one in found], any(_has_ended(one) for one in listing.sessions)
    lost: _Lost | None = "matches" if is_lost else "runs" if skipped else None
    reasons = list(_reasons(command, run_query, candidates, lost=lost, has_ended=has_ended))
    if skipped:
        reasons.append(_left_out(skipped))
    return _answer(found, " ".join(reasons) or None, more)


def _has_ended(summary: SessionSummary) -> bool:
    return any(run.is_ended for run in summary.runs)


def _left_out(skipped: Sequence[str]) -> str:
    more = len(skipped) - NAMED_MAX
    named = "; ".join(skipped[:NAMED_MAX]) + (f"; and {more} more" if more > 0 else "")
    return (
        f"Left out because they cannot be read: {len(skipped)}. {named}. Ask the user to run `interlock session list`,"
        " which says what to do, or `interlock doctor --deep`."
    )


def _remedy(error: Exception, candidate: Candidate) -> str:
    """Return the command that copies what is intact of a session of which only content is lost."""
    is_lost = isinstance(error, ContentDamagedError) and not isinstance(error, ContentUnreadableError)
    if not is_lost:
        return ""
    return f": restore the file; or `interlock session repair {candidate.session}` copies what is intact before it"


def _describe(one: Unreadable) -> str:
    return f"session {one.session} ({one.health}; {one.found})"


def _build_query(ports: ReadPorts, command: ResumeCommand) -> RunQuery:
    """Build the query. If the call says nothing, it is the git position of the caller's workspace."""
    run_query = RunQuery(
        words=Words.of(command.query or ""),
        branch=command.git_branch,
        head_sha=command.git_head_sha,
        session=command.session,
        run=command.run,
    )
    here = ports.anchors(command.workspace) if not run_query.is_exact else NOWHERE
    is_unspecified = run_query.is_open and command.query is None
    return RunQuery(
        words=run_query.words,
        branch=here.branch if is_unspecified else run_query.branch,
        head_sha=here.head_sha if is_unspecified else run_query.head_sha,
        repo=path_digest(here.repo_root) if here.repo_root is not None else None,
        session=run_query.session,
        run=run_query.run,
    )


def _load_candidates(
    ports: ReadPorts, ordered: Sequence[Candidate], events: Mapping[SessionId, int]
) -> tuple[list[_Found], list[str]]:
    """Return the first candidates that can be continued, and descriptions of the skipped ones (RES-3, RES-7).

    `events` is the number of events of each session when it was summarized.
    """
    ring = ports.key_ring.keys()
    if ring is None:
        raise KeyRingMissingError("the key ring is missing")
    found, skipped = list[_Found](), list[str]()
    for candidate in ordered:
        if len(found) == CANDIDATES_MAX:
            break
        try:
            one = _load_candidate(ports, ring, candidate, events[candidate.session])
        except UNUSABLE_SESSION as error:
            unreadable = unreadable_by(candidate.session, error)
            skipped.append(f"run `{candidate.run.label}` of {_describe(unreadable)}{_remedy(error, candidate)}")
            continue
        if one is None:
            skipped.append(f"run `{candidate.run.label}` of session {candidate.session} (not in its log any more)")
        else:
            found.append(one)
    return found, skipped


def _load_candidate(ports: ReadPorts, ring: KeyRing, candidate: Candidate, events: int) -> _Found | None:
    """Return a candidate with the token that shows it. None if its log lacks the run.

    Its plan, its tip and what the next report needs of a refused one are read first.

    What is offered is what the token shows, also if the log has other events than when it was summarized.

    Raises:
        SessionUnhealthyError, ContentDamagedError, UnknownVersionError: The token could not show it.
    """
    session = ports.load(candidate.session)
    run = session.runs.get(candidate.run.run) if session is not None else None
    if session is None or run is None or run.tip is None:
        return None
    tip = session.nodes[run.tip]
    load_run_context(session, run, ports.plans).snapshot(tip)
    evidence_refused(ports.reader, tip, session.session)
    if session.next_index != events:
        summary = next(one for one in summary_of(session, ports.plans).runs if one.run == run.run)
        candidate = replace(candidate, run=summary)
    return _Found(candidate=candidate, state_token=minting(ports, ring, session, run).state(run.tip))


def _reasons(
    command: ResumeCommand,
    run_query: RunQuery,
    found: Sequence[Candidate],
    *,
    lost: _Lost | None,
    has_ended: bool,
) -> Iterator[str]:
    """Yield why nothing matched, or what was ignored. `lost`: some runs, or all that matched, cannot be shown.

    `has_ended` says whether runs are stored that failed or were cancelled: those are found by their ids only.
    """
    if run_query.is_exact and not found:
        named = f"run {command.run!r}" if command.run is not None else f"session {command.session!r}"
        where = f"session {command.session!r}" if command.run and command.session else "this data directory"
        yield f"There is no {named}{' that can be continued' if lost else ''} in {where}."
        return
    if command.query is not None and not run_query.words:
        said = one_line(command.query, ECHO_BYTES_MAX)
        yield f"The query {said!r} has no searchable word (letters, digits, `_`, `-`)."
    if not found and lost:
        yield "No stored run can be continued."
    elif not found:
        stored = "Every run here is cancelled or failed; an id shows it" if has_ended else "No run is stored here"
        yield f"{stored}. Begin with `list_workflows` and `start_workflow`."
    elif found[0].closeness is Closeness.SLIPS:
        yield "No run has these words; these have them if one letter is wrong. Ask the user before you continue one."
    elif found[0].closeness is Closeness.SOME:
        yield "No run has all of these words; these have the most of them. Ask the user before you continue one."
    elif found[0].why == ("recency_fallback",) and not (run_query.is_open and command.query is None):
        why = "What matches cannot be read" if lost == "matches" else "Nothing matches"
        yield f"{why}; these are the latest runs. Ask the user before you continue one of them."


def _answer(found: Iterable[_Found], reason: str | None, more: int) -> Answer:
    shown = list(found)
    is_over = all(one.candidate.run.is_ended for one in shown)
    count = f"{len(shown)} run{'' if len(shown) == 1 else 's'}{' that ended' if is_over else ' to continue'}"
    parts = [f"**{count}**" if shown else "**No run was found**"]
    if reason is not None:
        parts.append(reason)
    parts += [_entry(number, one) for number, one in enumerate(shown, start=1)]
    if more:
        parts.append(f"{more} more; narrow by `query`, `gitBranch`, `sessionId` or `runId`.")
    data = ResumeAnswer(candidates=tuple(map(_candidate, shown)), reason=reason, more=more or None)
    return Answer(data=data, text="\n\n".join(parts))


def _title(one: _Found) -> str:
    run = one.candidate.run
    name = one_line(run.workflow_name, HEADER_TITLE_BYTES_MAX)
    return f"{name}: {one_line(run.goal, HEADER_GOAL_BYTES_MAX)}" if run.goal else name


def _pending(one: _Found) -> str | None:
    run = one.candidate.run
    if run.step is None or run.is_ended:
        return None
    return f"step {run.number} of {run.total}: {one_line(run.step, HEADER_TITLE_BYTES_MAX)}"


def _snippet(one: _Found) -> str:
    return truncated(printable(one.candidate.run.notes or "(no notes yet)"), CANDIDATE_SNIPPET_BYTES_MAX)


def _candidate(one: _Found) -> CandidateOut:
    run = one.candidate.run
    run_view = RunView(
        label=run.label,
        workflow_id=run.workflow_id,
        workflow_name=run.workflow_name,
        session=one.candidate.session,
        run=run.run,
        goal=run.goal,
    )
    return CandidateOut(
        run=run_view.identity(is_full=True),
        title=_title(one),
        status=run.status,
        pending_step=_pending(one),
        last_activity=run.last_at,
        why_matched=one.candidate.why,
        state_token=one.state_token,
        next_call=one.call(),
        snippet=_snippet(one),
    )


def _entry(number: int, one: _Found) -> str:
    run = one.candidate.run
    step = title_in_code(run.step) if run.step is not None else None
    place = f"step {run.number} of {run.total}: {step}" if step is not None else "complete"
    goal = f": {in_code(one_line(run.goal, HEADER_GOAL_BYTES_MAX))}" if run.goal else ""
    name = one_line(run.workflow_name, HEADER_TITLE_BYTES_MAX)
    status = f"{run.status} ({run.end_reason})" if run.is_ended else run.status
    purpose = "To see what was done" if run.is_ended else "To continue"
    when = f" · last worked on {run.last_at}" if run.last_at else ""
    return "\n".join(
        [
            f"{number}. **{name}**{goal} (`{run.workflow_id}`) · run `{run.label}` · {status} · {place}{when}",
            f"   Matched: {', '.join(one.candidate.why)}. {purpose}, call `{CONTINUE_TOOL}`:",
            one.call().in_lines(),
            quoted(_snippet(one)),
        ]
    )
