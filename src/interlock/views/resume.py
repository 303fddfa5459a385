"""Which runs may be the one that is looked for, best first: strict tiers, no scores (RES-1)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from interlock.kernel.ids import RunId, SessionId
from interlock.kernel.text import TRUNCATION_MARKER, has_words
from interlock.views.summary import RunSummary, SessionSummary

Why = Literal[
    "matched_session_id",
    "matched_run_id",
    "matched_head_sha",
    "matched_branch",
    "matched_notes",
    "matched_workflow_id",
    "matched_goal",
    "recency_fallback",
]
"""Why a run is a candidate; a closed set. Its order is that of the tiers."""

_TIERS: tuple[Why, ...] = get_args(Why)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunQuery:
    """What is known of the run that is looked for. `repo` is the digest of the repository the caller is in."""

    words: frozenset[str] = frozenset()
    branch: str | None = None
    head_sha: str | None = None
    repo: str | None = None
    session: SessionId | None = None
    run: RunId | None = None

    @property
    def is_exact(self) -> bool:
        """Say whether an id was given: then nothing else is a candidate."""
        return self.session is not None or self.run is not None

    @property
    def is_open(self) -> bool:
        """Say whether nothing was given that a run could match."""
        return not (self.is_exact or self.words or self.branch or self.head_sha)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A run with every reason why it may be the one, the strongest first."""

    session: SessionId
    run: RunSummary
    why: tuple[Why, ...]


def ranked(sessions: Iterable[SessionSummary], wanted: RunQuery) -> list[Candidate]:
    """Return the candidates, best first.

    Runs that match nothing are candidates only where no run matches anything, and never where an id was given.
    """
    runs = [(one.session, run) for one in sessions for run in one.runs]
    matching = [
        Candidate(session=session, run=run, why=why)
        for session, run in runs
        if (why := tuple(_reasons(session, run, wanted)))
    ]
    if not matching and not wanted.is_exact:
        matching = [Candidate(session=session, run=run, why=("recency_fallback",)) for session, run in runs]
    return _in_order(matching, wanted)


def _in_order(candidates: list[Candidate], wanted: RunQuery) -> list[Candidate]:
    """Order by tier, then repository, then whether it is still open, then how late it was last worked on (RES-1)."""
    ordered = sorted(candidates, key=lambda one: (one.session, one.run.run))
    ordered.sort(key=lambda one: (one.run.last_at or "", one.run.last_index), reverse=True)
    ordered.sort(key=lambda one: (_tier(one), not _is_same_repo(one.run, wanted), one.run.is_complete))
    return ordered


def _tier(candidate: Candidate) -> int:
    return _TIERS.index(candidate.why[0])


def _is_same_repo(run: RunSummary, wanted: RunQuery) -> bool:
    return wanted.repo is not None and run.repo == wanted.repo


def _reasons(session: SessionId, run: RunSummary, wanted: RunQuery) -> Iterator[Why]:
    if wanted.is_exact:
        is_it = wanted.session in (None, session) and wanted.run in (None, run.run)
        if is_it and wanted.session is not None:
            yield "matched_session_id"
        if is_it and wanted.run is not None:
            yield "matched_run_id"
        return
    if wanted.head_sha is not None and run.head_sha == wanted.head_sha:
        yield "matched_head_sha"
    if wanted.branch is not None and (run.branch or "").startswith(wanted.branch):
        yield "matched_branch"
    if not wanted.words:
        return
    notes, name = (run.notes or "").removesuffix(TRUNCATION_MARKER), f"{run.workflow_id} {run.workflow_name}"
    is_in_notes, is_in_name = has_words(notes, wanted.words), has_words(name, wanted.words)
    if is_in_notes:
        yield "matched_notes"
    if is_in_name:
        yield "matched_workflow_id"
    elif not is_in_notes and has_words(_all_of(session, run, notes), wanted.words):
        yield "matched_goal"


def _all_of(session: SessionId, run: RunSummary, notes: str) -> str:
    """Return all that names a run, as it is told and shown: `run 0002` and a pasted id find it, too."""
    named = f"{run.workflow_id} {run.workflow_name}\n{run.goal or ''}\nrun {run.label} {run.run} {session}"
    return f"{notes}\n{named}"
