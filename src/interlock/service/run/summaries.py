"""Summaries of sessions: derived from the log, cached next to it by each append, used by lists and searches (RES-4)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from interlock.kernel.ids import SessionId
from interlock.kernel.progress import Progress, report_nothing
from interlock.record.base import UnknownVersionError
from interlock.service.run.context import RunContext, load_run_context
from interlock.service.run.plans import Plans
from interlock.service.run.verdicts import run_standing
from interlock.store.ports.errors import ContentDamagedError, Health, SessionUnhealthyError
from interlock.store.ports.reader import LogVersion, SessionReader
from interlock.views.recap import latest_notes
from interlock.views.session import Node, Session
from interlock.views.status import run_status
from interlock.views.summary import RunSummary, SessionSummary, parse_summary

CONTENT_DAMAGED = "content_damaged"
"""The health of a session whose log verifies, but not what it refers to."""
PERSON_AWAITED = "a person's answer"
"""What a run waits for whose step asks a person before the work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """A session that cannot be summarized, with its health and what is wrong."""

    session: SessionId
    health: str
    found: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """All sessions of a data directory: those with a summary, and those that cannot be read."""

    sessions: tuple[SessionSummary, ...]
    unreadable: tuple[Unreadable, ...]

    def newest_first(self) -> list[SessionSummary]:
        """Return the readable sessions by latest activity, newest first; unknown times are last."""
        return sorted(self.sessions, key=lambda one: one.last_at or "", reverse=True)


def read_listing(reader: SessionReader, plans: Plans, progress: Progress = report_nothing) -> Listing:
    """Return all sessions, by id, for a process that reads them once; report how many are read. Writes nothing.

    Raises:
        StoreFailureError: The disk failed.
    """
    names = reader.names()
    found = list[SessionSummary | Unreadable]()
    for number, session in enumerate(names, start=1):
        progress(number, len(names))
        entry = _read(reader, plans, session)
        if entry is not None:
            found.append(entry)
    return _listing_of(found)


def _listing_of(found: Sequence[SessionSummary | Unreadable]) -> Listing:
    return Listing(
        sessions=tuple(one for one in found if isinstance(one, SessionSummary)),
        unreadable=tuple(one for one in found if isinstance(one, Unreadable)),
    )


class Summaries:
    """The summaries of all sessions of one store. A session that has not changed is not read again."""

    def __init__(self) -> None:
        self._kept: dict[SessionId, tuple[LogVersion, SessionSummary | Unreadable]] = {}

    def listing(self, reader: SessionReader, plans: Plans, progress: Progress = report_nothing) -> Listing:
        """Return all sessions, by id; report how many are read. Writes nothing.

        Raises:
            StoreFailureError: The disk failed.
        """
        return _listing_of(tuple(self._each(reader, plans, progress)))

    def _each(self, reader: SessionReader, plans: Plans, progress: Progress) -> Iterator[SessionSummary | Unreadable]:
        versions = reader.log_versions()
        for gone in self._kept.keys() - versions.keys():
            self._kept.pop(gone, None)
        for number, (session, version) in enumerate(sorted(versions.items()), start=1):
            progress(number, len(versions))
            kept = self._kept.get(session)
            if kept is None or kept[0] != version:
                entry = _read(reader, plans, session)
                if entry is None:
                    continue
                self._kept[session] = kept = (version, entry)
            yield kept[1]


def _read(reader: SessionReader, plans: Plans, session: SessionId) -> SessionSummary | Unreadable | None:
    cached = reader.cached_summary(session)
    summary = parse_summary(session, cached) if cached is not None else None
    if summary is not None:
        return summary
    try:
        loaded = reader.load(session)
        return summary_of(loaded, plans) if loaded is not None else None
    except (SessionUnhealthyError, UnknownVersionError, ContentDamagedError) as error:
        return unreadable_by(session, error)


def _waiting(run_context: RunContext, tip: Node) -> str | None:
    """Return the event that the step of a tip waits for, if it waits for one."""
    pending = run_context.pending(tip)
    task = run_context.workflow.steps[pending.step_id].task if pending is not None else None
    awaits = task.awaits if task is not None else None
    if awaits is None:
        return None
    if awaits.approval is not None:
        return PERSON_AWAITED
    return f"the check {awaits.check}" if awaits.check is not None else awaits.event


def unreadable_by(
    session: SessionId, error: SessionUnhealthyError | UnknownVersionError | ContentDamagedError
) -> Unreadable:
    """Return how a list reports a session whose reading failed with this error."""
    match error:
        case SessionUnhealthyError():
            return Unreadable(session=session, health=error.health.value, found=f"{error.where}: {error.found}")
        case UnknownVersionError():
            return Unreadable(session=session, health=Health.UNKNOWN_VERSION, found=f"{error.what}: {error.found}")
        case ContentDamagedError():
            return Unreadable(session=session, health=CONTENT_DAMAGED, found=f"{error.what}: {error.found}")


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
