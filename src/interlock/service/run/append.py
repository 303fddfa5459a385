"""Append a plan, and cache the summary by which the session is found later (RES-4)."""

from interlock.kernel.budgets import SUMMARY_RUNS_MAX
from interlock.record.append_plan import AppendPlan, Stamps
from interlock.record.base import UnknownVersionError
from interlock.record.events import Actor
from interlock.service.clock import mint_event, recorded_at
from interlock.service.ports import AppendPorts
from interlock.service.run.summaries import summary_of
from interlock.store.ports.errors import ContentDamagedError, StoreFailureError
from interlock.store.ports.writer import SessionLock
from interlock.views.session import Session


def append_plan(ports: AppendPorts, lock: SessionLock, plan: AppendPlan, actor: Actor | None) -> Session:
    """Append a plan, and cache the session's new summary. The cache is optional: readers can rebuild it.

    Raises:
        StoreFailureError, BrokenHistoryError: As `SessionWriter.append` says.
    """
    stamps = Stamps(mint_event_id=lambda: mint_event(ports.clock), recorded_at=recorded_at(ports.clock), actor=actor)
    with ports.read.trace.span("append"):
        session = ports.writer.append(lock, plan, stamps)
    if len(session.runs) <= SUMMARY_RUNS_MAX:
        try:
            ports.writer.cache_summary(lock, summary_of(session, ports.read.plans).to_bytes())
        except (ContentDamagedError, UnknownVersionError, StoreFailureError):
            # The append is done; a reader that finds no summary makes one.
            return session
    return session
