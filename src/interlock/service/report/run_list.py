"""The rows of run lists: which runs match a filter, and in which order."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from interlock.kernel.budgets import PROJECT_DIGEST_CHARS
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import Digest, SessionId
from interlock.service.clock import moment_of
from interlock.views.resume import is_on_branch
from interlock.views.summary import RunStatus, RunSummary, SessionSummary

if TYPE_CHECKING:
    from interlock.kernel.matching import Closeness


@frozen
class Row:
    """A run in a list, and its session."""

    session: SessionId
    run: RunSummary


@frozen
class ListFilter:
    """Which runs a list shows; an empty field matches every run.

    `branch` is a branch name or its beginning; `since_ms` is in milliseconds since the epoch.
    """

    statuses: frozenset[RunStatus] = frozenset()
    workflow: str | None = None
    branch: str | None = None
    since_ms: int | None = None

    def fits(self, run: RunSummary) -> bool:
        """Say whether a run matches."""
        if self.statuses and run.status not in self.statuses:
            return False
        if self.workflow is not None and run.workflow_id != self.workflow:
            return False
        if self.branch is not None and not is_on_branch(run, self.branch):
            return False
        if self.since_ms is None:
            return True
        last_at = moment_of(run.last_at)
        return last_at is not None and last_at >= self.since_ms


def rows_of(summary: SessionSummary) -> tuple[Row, ...]:
    """Return the rows of a session, one for each run."""
    return tuple(Row(session=summary.session, run=run) for run in summary.runs)


def project_of(run: RunSummary) -> str:
    """Return the name of the project in which a run began: of its recorded root, or a few digits; empty if unknown."""
    if run.repo is None:
        return ""
    root = (run.repo_root or "").rstrip("/\\")
    return re.split(r"[/\\]", root)[-1] or "#" + run.repo.removeprefix("sha256:")[:PROJECT_DIGEST_CHARS]


def is_source_visible(run: RunSummary, repo: Callable[[], Digest | None]) -> bool:
    """Say whether a change of a run's workflow is visible from a repository, and matters: the run is open.

    The files of another project are not visible. A run that began outside of git records no place, so its project is
    not known. `repo` is called only if it decides: it may have to ask git.
    """
    if run.is_complete or run.is_ended:
        return False
    return run.source_kind != "project" or (run.repo is not None and run.repo == repo())


def newest_first(rows: Iterable[Row]) -> list[Row]:
    """Sort rows by latest activity, newest first and unknown times last; then by id."""
    placed = sorted(rows, key=lambda row: (row.session, row.run.run))
    return sorted(placed, key=_age)


def texts_of(row: Row) -> tuple[str, ...]:
    """Return the texts of a row that are searched: ids, label, workflow, goal, branch, and the notes of the tip."""
    run = row.run
    named = (f"run {run.label}", run.run, row.session, run.workflow_id, run.workflow_name)
    return *named, run.goal or "", run.branch or "", run.notes or ""


def best_matches(
    rows: Sequence[Row], texts: Iterable[Iterable[str]], query: str
) -> "tuple[list[Row], Closeness | None]":
    """Return the rows whose texts match a query best, in their order, and how well they match."""
    from interlock.kernel.matching import Closeness, Words, match_texts  # noqa: PLC0415 — only a query needs it

    found = match_texts(Words.of(query), ["\n".join(one) for one in texts])
    best = min((one for one in found if one is not None), default=None)
    kept = {Closeness.WORDS, Closeness.BEGINNINGS} if best in (Closeness.WORDS, Closeness.BEGINNINGS) else {best}
    matching = [(one, row) for one, row in zip(found, rows, strict=True) if one is not None and one in kept]
    return [row for _, row in sorted(matching, key=lambda pair: pair[0])], best


def _age(row: Row) -> float:
    last_at = moment_of(row.run.last_at)
    return float("inf") if last_at is None else -last_at
