"""Find the runs that match a query, best first: strict tiers, no scores (RES-1)."""

from collections.abc import Iterable, Iterator
from typing import Literal, get_args

from interlock.kernel.budgets import BRANCH_DIGEST_CHARS, SHORT_STRING_CHARS_MAX
from interlock.kernel.canonical import digest_of_bytes
from interlock.kernel.frozen import frozen, replace
from interlock.kernel.ids import RunId, SessionId
from interlock.kernel.matching import NO_WORDS, Closeness, Words, match_texts
from interlock.kernel.text import TRUNCATION_MARKER
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


@frozen
class RunQuery:
    """What the caller knows of the run to find. `repo` is the digest of the repository that the caller is in."""

    words: Words = NO_WORDS
    branch: str | None = None
    head_sha: str | None = None
    repo: str | None = None
    session: SessionId | None = None
    run: RunId | None = None

    @property
    def is_exact(self) -> bool:
        """Whether the query names an id: then no other run is a candidate."""
        return self.session is not None or self.run is not None

    @property
    def is_open(self) -> bool:
        """Whether the query is empty, so that every run matches."""
        return not (self.is_exact or self.words or self.branch or self.head_sha)


@frozen
class Candidate:
    """A run with every reason why it matches, strongest first, and how well its text matches the words."""

    session: SessionId
    run: RunSummary
    why: tuple[Why, ...]
    closeness: Closeness = Closeness.WORDS


def short_branch(name: str) -> str:
    """Return a branch name as it is recorded: whole, or its beginning with a digest of the whole (OBS-4).

    Git allows no `~` in a name, so a shortened name is never that of another branch.
    """
    if len(name) <= SHORT_STRING_CHARS_MAX:
        return name
    digest = digest_of_bytes(name.encode("utf-8", "surrogatepass")).removeprefix("sha256:")[:BRANCH_DIGEST_CHARS]
    return f"{name[: SHORT_STRING_CHARS_MAX - BRANCH_DIGEST_CHARS - 1]}~{digest}"


def is_on_branch(run: RunSummary, name: str) -> bool:
    """Say whether a run was last seen on a branch, by its whole name or its beginning (OBS-4)."""
    return (run.branch or "").startswith((name, short_branch(name)))


def ranked(sessions: Iterable[SessionSummary], query: RunQuery) -> list[Candidate]:
    """Return the matching runs, best first.

    If no run matches, every run is a candidate, unless an id was given. An ended run is one only by its id (END-9).
    """
    runs = [(one.session, run) for one in sessions for run in one.runs if query.is_exact or not run.is_ended]
    query = replace(query, head_sha=_whole_commit(query.head_sha, [run for _, run in runs]))
    found = match_texts(query.words, [_searched_text(session, run) for session, run in runs]) if query.words else []
    closeness = found or [None] * len(runs)
    matching = [
        Candidate(session=session, run=run, why=why, closeness=close or Closeness.WORDS)
        for (session, run), close in zip(runs, closeness, strict=True)
        if (why := tuple(_reasons(session, run, query, close)))
    ]
    if not matching and not query.is_exact:
        matching = [Candidate(session=session, run=run, why=("recency_fallback",)) for session, run in runs]
    return _sort(matching, query)


def _whole_commit(wanted: str | None, runs: Iterable[RunSummary]) -> str | None:
    """Return the recorded commit that a name or its beginning names; the name itself unless exactly one does."""
    found = {run.head_sha for run in runs if run.head_sha is not None and wanted and run.head_sha.startswith(wanted)}
    return found.pop() if len(found) == 1 else wanted


def _sort(candidates: list[Candidate], query: RunQuery) -> list[Candidate]:
    """Sort by closeness, then tier, then same repository first, then open runs first, then latest activity (RES-1)."""
    ordered = sorted(candidates, key=lambda one: (one.session, one.run.run))
    ordered.sort(key=lambda one: (one.run.last_at or "", one.run.last_index), reverse=True)
    ordered.sort(key=lambda one: (one.closeness, _tier(one), not _is_same_repo(one.run, query), one.run.is_complete))
    return ordered


def _tier(candidate: Candidate) -> int:
    return _TIERS.index(candidate.why[0])


def _is_same_repo(run: RunSummary, query: RunQuery) -> bool:
    return query.repo is not None and run.repo == query.repo


def _reasons(session: SessionId, run: RunSummary, query: RunQuery, close: Closeness | None) -> Iterator[Why]:
    if query.is_exact:
        is_match = query.session in (None, session) and query.run in (None, run.run)
        if is_match and query.session is not None:
            yield "matched_session_id"
        if is_match and query.run is not None:
            yield "matched_run_id"
        return
    if query.head_sha is not None and run.head_sha == query.head_sha:
        yield "matched_head_sha"
    if query.branch is not None and is_on_branch(run, query.branch):
        yield "matched_branch"
    if close is None:
        return
    ids: tuple[tuple[Why, set[str]], ...] = (
        ("matched_session_id", {session}),
        ("matched_run_id", {run.label, run.run}),
    )
    named: list[Why] = [why for why, names in ids if not names.isdisjoint(query.words.words)]
    yield from named
    fields = (_notes(run), f"{run.workflow_id} {run.workflow_name}")
    is_in_notes, is_in_name = (one == close for one in match_texts(query.words, fields))
    if is_in_notes:
        yield "matched_notes"
    if is_in_name:
        yield "matched_workflow_id"
    if not named and not is_in_notes and not is_in_name:
        yield "matched_goal"


def _notes(run: RunSummary) -> str:
    return (run.notes or "").removesuffix(TRUNCATION_MARKER)


def _searched_text(session: SessionId, run: RunSummary) -> str:
    """Return all text by which a run can be found, including its ids and `run` with its label."""
    named = f"{run.workflow_id} {run.workflow_name}\n{run.goal or ''}\nrun {run.label} {run.run} {session}"
    return f"{_notes(run)}\n{named}"
