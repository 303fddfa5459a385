"""What pages read: the ports that read a store, and the sources of workflows. Nothing here writes (CON-1)."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from interlock.console.followed import FollowedHistories
from interlock.console.log_cache import Reading, Readings, RecentVersions, ViewKey
from interlock.kernel.errors import ErrorCode, Refusal
from interlock.kernel.frozen import replace
from interlock.kernel.ids import Digest, NodeId, RunId, SessionId
from interlock.service.audit.damage import Viewed
from interlock.service.audit.proof import Proof, prove_session
from interlock.service.clock import Clock
from interlock.service.report.run_list import is_source_visible
from interlock.service.report.session_report import SessionReport, SessionReporter
from interlock.service.run.context import RunContext, load_run_context
from interlock.service.run.history import History
from interlock.service.run.plans import Plans
from interlock.service.run.summaries import Listing, Summaries
from interlock.service.workflows.catalog import Catalog, CatalogView
from interlock.store.ports.store import StoreReader
from interlock.views.outside import SigningKeys
from interlock.views.session import Node
from interlock.views.summary import Drift, RunSummary

_View = TypeVar("_View")


class RefusedPageError(Exception):
    """A page cannot be shown. The refusal says why, and what to do."""

    def __init__(self, refusal: Refusal, status: int) -> None:
        super().__init__(refusal.message)
        self.refusal, self.status = refusal, status


@dataclass(frozen=True, kw_only=True)
class Sources:
    """A data directory and the workflows of a workspace. `repo` identifies the repository of the workspace.

    `keys` are the signing keys that are configured here; None: not known, and no page says that one is missing.
    """

    store: StoreReader
    catalog: Catalog
    workspace: Path | None
    repo: Digest | None
    clock: Clock
    keys: SigningKeys | None = None
    plans: Plans = field(init=False)
    versions: RecentVersions = field(init=False)
    _summaries: Summaries = field(default_factory=Summaries, init=False)
    _readings: Readings = field(init=False)
    _histories: FollowedHistories = field(init=False)
    _mutex: threading.Lock = field(default_factory=threading.Lock, init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "plans", Plans(self.store))
        object.__setattr__(self, "_histories", FollowedHistories(self.store, self.plans))
        object.__setattr__(self, "versions", RecentVersions(self.store))
        object.__setattr__(self, "_readings", Readings(self.versions))

    def listing(self) -> Listing:
        """Return all sessions; those that have not changed are not read again.

        Raises:
            StoreFailureError: The disk failed.
        """
        with self._mutex:
            return self._summaries.listing(self.store, self.plans, versions=self.versions.read())

    def view(self) -> CatalogView:
        """Return the workflows of the workspace."""
        return self.catalog.view(self.workspace)

    def drift_of(self, run: RunSummary, view: CatalogView) -> Drift | None:
        """Return how the source of an open run's workflow differs from what the run pinned."""
        return view.drift_of(run) if is_source_visible(run, lambda: self.repo) else None

    def view_session(self, session: str, make: Callable[[History], _View]) -> Viewed[_View]:
        """Make a view of a session, of its sound beginning if it is damaged.

        Raises:
            RefusedPageError: There is no such session, or no part of it can be used.
            SessionUnhealthyError, ContentDamagedError, StoreFailureError: See `service.failures`.
        """
        viewed = self._histories.view(SessionId(session), make)
        if isinstance(viewed, Refusal):
            raise RefusedPageError(viewed, 409 if "salvage" in viewed.details else 404)
        return viewed

    def report(
        self, session: str, run: str, steps: tuple[int, int]
    ) -> tuple[Viewed[SessionReport] | None, Reading | None]:
        """Return the report of one run, with at most `steps[0]` steps after the `steps[1]` newest were left out.

        If it takes long, what is still being read is returned, and an earlier report of it, if there is one.

        Raises:
            RefusedPageError: There is no such run.
            SessionUnhealthyError, ContentDamagedError, StoreFailureError: See `service.failures`.
        """
        shown, after = steps

        def make(history: History) -> SessionReport:
            if run not in history.session.runs:
                raise RefusedPageError(missing(f"run {run}", session), 404)
            reporter = SessionReporter(self.store, self.plans, history, self.keys)
            report = reporter.session([RunId(run)], steps_max=shown + after)
            (one,) = report.runs
            return replace(report, runs=(replace(one, steps=one.steps[: max(0, len(one.steps) - after)]),))

        return self.view_or_progress((session, "run", run, *map(str, steps)), make)

    def view_or_progress(
        self, key: ViewKey, make: Callable[[History], _View]
    ) -> tuple[Viewed[_View] | None, Reading | None]:
        """Make a view of the session that a key begins with. If it takes long: an earlier one, and what is being read.

        Raises:
            RefusedPageError, SessionUnhealthyError, ContentDamagedError, StoreFailureError: See `view_session`.
        """

        def making(reading: Reading) -> Viewed[_View]:
            def make_counted(history: History) -> _View:
                reading.events = history.session.next_index
                return make(history)

            return self.view_session(key[0], make_counted)

        return self._readings.view(key, making)

    def proof(self, session: SessionId) -> tuple[Proof | None, Reading | None]:
        """Compute every recorded decision of a session again, now; what is being read, if it takes long.

        Raises:
            StoreFailureError: The disk failed.
        """
        return self._readings.view(
            (session, "proof"), lambda _: prove_session(self.store, self.plans, session), is_kept=False
        )

    def branch(self, session: str, node: str) -> Viewed[tuple[SessionReporter, RunContext, Node]]:
        """Return what reports the branch to a node.

        Raises:
            RefusedPageError: The session has no such node.
            SessionUnhealthyError, ContentDamagedError, StoreFailureError: See `service.failures`.
        """
        return self.view_session(session, lambda history: self.branch_in(history, session, node))

    def branch_in(self, history: History, session: str, node: str) -> tuple[SessionReporter, RunContext, Node]:
        """Return what reports the branch to a node of a history.

        Raises:
            RefusedPageError: The session has no such node.
        """
        found = history.session.nodes.get(NodeId(node))
        if found is None:
            raise RefusedPageError(missing(f"node {node}", session), 404)
        if found.kind == "checkpoint" and found.parent is not None:
            found = history.session.nodes[found.parent]
        run_context = load_run_context(history.session, history.session.runs[found.run], self.plans)
        return SessionReporter(self.store, self.plans, history, self.keys), run_context, found


def missing(what: str, session: str) -> Refusal:
    """Return the refusal of a page about something that a session does not contain."""
    return Refusal(
        code=ErrorCode.SESSION_NOT_FOUND,
        message=f"{session} has no {what}.",
        suggestion="Choose one from the list of all runs.",
    )
