"""Derives the summary of a session from its log, and caches it shortly after an append (RES-4, RES-12).

A cached summary is never needed: a reader sees that it does not belong to the current log, and reads the log. So a
process that is killed in between loses nothing, and several appends in a row cost one summary.
"""

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from interlock.kernel.budgets import SUMMARY_DELAY_S, SUMMARY_FLUSH_S
from interlock.kernel.ids import SessionId
from interlock.kernel.turns import TURNS
from interlock.record.content import collect_references
from interlock.record.events import Event
from interlock.service.run.attempts import came_before
from interlock.service.run.context import RunContext, load_run_context
from interlock.service.run.evidence.verdicts import run_standing
from interlock.service.run.plans import Plans
from interlock.store.ports.errors import ContentDamagedError
from interlock.store.ports.reader import SessionReader
from interlock.views.recap import latest_notes
from interlock.views.session import Node, Session
from interlock.views.status import run_status
from interlock.views.summary import RunSummary, SessionSummary

_Name = TypeVar("_Name")
PERSON_AWAITED = "a person's answer"
"""What a run waits for whose step asks a person before the work."""


def summary_of(session: Session, plans: Plans) -> SessionSummary:
    """Summarize a session.

    Raises:
        ContentDamagedError: A pinned workflow or a snapshot is missing or damaged.
    """
    runs = sorted(session.runs.values(), key=lambda run: run.index)
    summaries = tuple(_run(load_run_context(session, run, plans)) for run in runs)
    has_open_gaps = bool(session.open_gaps)
    return SessionSummary(
        session=session.session, events=session.next_index, runs=summaries, has_open_gaps=has_open_gaps
    )


def check_history(reader: SessionReader, session: SessionId, lost: Callable[[ContentDamagedError], None]) -> None:
    """Verify all content that a log names; what is damaged goes to `lost`.

    Raises:
        SessionUnhealthyError: The log does not verify.
        StoreFailureError: The disk failed.
    """
    check_content(reader, (event for appended in reader.history(session) for event in appended), lost)


def check_content(reader: SessionReader, events: Iterable[Event], lost: Callable[[ContentDamagedError], None]) -> None:
    """Verify the content that events name; what is damaged goes to `lost`.

    Raises:
        StoreFailureError: The disk failed.
    """
    named = collect_references(events)
    checks = [partial(reader.check_snapshot, ref) for ref in named.snapshots]
    checks += [partial(_read, reader.workflow_bytes, one) for one in named.workflows]
    checks += [partial(_read, reader.artifact, one) for one in named.artifacts]
    for check in checks:
        try:
            check()
        except ContentDamagedError as error:
            lost(error)


def _read(read: Callable[[_Name], bytes], name: _Name) -> None:
    read(name)


def _run(run_context: RunContext) -> RunSummary:
    session, run = run_context.session, run_context.run
    assert run.tip is not None, "a run has a root"
    tip = session.nodes[run.tip]
    view, place = run_context.view(tip), run_context.place(tip)
    return RunSummary(
        run=run.run,
        label=view.label,
        workflow_id=run.workflow_id,
        workflow_name=run_context.workflow.name,
        goal=view.goal,
        status=run_status(session, tip, run_context.snapshot(tip)),
        verdict=run_standing(run_context, tip),
        end_reason=run.ended.work.reason if run.ended is not None else None,
        tip=tip.node,
        step=place.title if place is not None else None,
        number=place.number if place is not None else None,
        total=len(run_context.workflow.numbers),
        nodes=run.nodes,
        notes=latest_notes(session, tip),
        client=run.client,
        started_at=run.recorded_at,
        last_at=run.last_at,
        last_index=run.last_index,
        branch=session.observed(run.run, "git_branch"),
        head_sha=session.observed(run.run, "git_head_sha"),
        repo=session.observed(run.run, "repo_root_hash"),
        repo_root=session.observed(run.run, "repo_root"),
        workflow_hash=run.workflow_hash,
        source_kind=run.source_kind,
        source_ref=run.source_ref,
        waiting=_waiting(run_context, tip) if run.ended is None else None,
        intents=session.outside.intents_of.get(run.run, 0),
    )


def _waiting(run_context: RunContext, tip: Node) -> str | None:
    """Return the event that the step of a tip waits for, if it waits for one that is not there."""
    pending = run_context.pending(tip)
    task = run_context.workflow.steps[pending.step_id].task if pending is not None else None
    awaits = task.awaits if task is not None else None
    if awaits is None:
        return None
    if awaits.approval is not None:
        return PERSON_AWAITED
    # Whether a signed event counts depends on the configured keys, which no summary knows.
    if awaits.check is None and awaits.assurance != "signed" and came_before(run_context, tip):
        return None
    return f"the check {awaits.check}" if awaits.check is not None else awaits.event


@dataclass(kw_only=True)
class LateSummaries:
    """Calls `write` for each offered session, in a thread of its own, `delay_s` after the first offer of a batch."""

    write: Callable[[SessionId], None]
    delay_s: float = SUMMARY_DELAY_S
    _due: set[SessionId] = field(default_factory=set[SessionId], init=False)
    _changed: threading.Condition = field(default_factory=threading.Condition, init=False)
    _thread: threading.Thread | None = field(default=None, init=False)
    _is_closed: bool = field(default=False, init=False)

    def offer(self, session: SessionId) -> None:
        """Take a session that was appended to. Returns at once."""
        with self._changed:
            begins_batch = not self._due
            self._due.add(session)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, daemon=True, name="interlock-summaries")
                self._thread.start()
            if begins_batch:
                # Later offers find the thread waiting for the end of the delay: waking it would only cost time.
                self._changed.notify()

    def is_due(self, session: SessionId) -> bool:
        """Say whether a session was offered and its summary is not yet being written."""
        with self._changed:
            return session in self._due

    def close(self) -> None:
        """Write what is due, but wait for it only a short time: a summary is optional."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(SUMMARY_FLUSH_S)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._due or self._is_closed)
                # Offers that come in this time belong to the batch; only the end of the process shortens it.
                self._changed.wait_for(lambda: self._is_closed, self.delay_s)
                batch, self._due = self._due, set()
                is_last = self._is_closed
            for session in batch:
                self._write(session)
            if is_last:
                return

    def _write(self, session: SessionId) -> None:
        try:
            with TURNS.computing():
                self.write(session)
        except Exception:
            import logging  # noqa: PLC0415 — most commands import this module and log nothing

            logging.getLogger(__name__).debug("no summary of %s was cached", session, exc_info=True)
