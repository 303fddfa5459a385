"""Summaries of sessions: made of the log, cached beside it by whoever appends, used by whoever looks (RES-4)."""

from collections.abc import Iterator
from dataclasses import dataclass

from interlock.kernel.ids import SessionId
from interlock.kernel.progress import Progress, report_nothing
from interlock.record.base import UnknownVersionError
from interlock.service.run.context import RunContext, load_run_context
from interlock.service.run.plans import Plans
from interlock.store.ports.errors import ContentDamagedError, SessionUnhealthyError
from interlock.store.ports.reader import LogVersion, SessionReader
from interlock.views.recap import current_notes
from interlock.views.session import Session
from interlock.views.status import run_status
from interlock.views.summary import RunSummary, SessionSummary, parse_summary


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """A session that no summary is made of: why, in the words of its health."""

    session: SessionId
    health: str
    found: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """All sessions of a data directory: those that can be told of, and those that cannot."""

    sessions: tuple[SessionSummary, ...]
    unreadable: tuple[Unreadable, ...]

    def newest_first(self) -> list[SessionSummary]:
        """Return the sessions that can be told of by when they were last worked on, the unknown at the end."""
        return sorted(self.sessions, key=lambda one: one.last_at or "", reverse=True)


class Summaries:
    """The summaries of all sessions of one store. What did not change since the last time is not read again."""

    def __init__(self) -> None:
        self._kept: dict[SessionId, tuple[LogVersion, SessionSummary | Unreadable]] = {}

    def listing(self, reader: SessionReader, plans: Plans, progress: Progress = report_nothing) -> Listing:
        """Return all sessions, by id; report how many are read. Writes nothing.

        Raises:
            StoreFailureError: The disk failed.
        """
        found = tuple(self._each(reader, plans, progress))
        return Listing(
            sessions=tuple(one for one in found if isinstance(one, SessionSummary)),
            unreadable=tuple(one for one in found if isinstance(one, Unreadable)),
        )

    def _each(self, reader: SessionReader, plans: Plans, progress: Progress) -> Iterator[SessionSummary | Unreadable]:
        marks = reader.marks()
        for gone in self._kept.keys() - marks.keys():
            self._kept.pop(gone, None)
        for number, (session, mark) in enumerate(sorted(marks.items()), start=1):
            progress(number, len(marks))
            kept = self._kept.get(session)
            if kept is None or kept[0] != mark:
                told = _read(reader, plans, session)
                if told is None:
                    continue
                self._kept[session] = kept = (mark, told)
            yield kept[1]


def _read(reader: SessionReader, plans: Plans, session: SessionId) -> SessionSummary | Unreadable | None:
    cached = reader.cached_summary(session)
    summary = parse_summary(session, cached) if cached is not None else None
    if summary is not None:
        return summary
    try:
        facts = reader.load(session)
        return summary_of(facts, plans) if facts is not None else None
    except SessionUnhealthyError as error:
        return Unreadable(session=session, health=error.health.value, found=f"{error.where}: {error.found}")
    except UnknownVersionError as error:
        return Unreadable(session=session, health="unknown_version", found=f"{error.what}: {error.found}")
    except ContentDamagedError as error:
        return Unreadable(session=session, health="content_damaged", found=f"{error.what}: {error.found}")


def summary_of(session: Session, plans: Plans) -> SessionSummary:
    """Return what is told of a session.

    Raises:
        ContentDamagedError: A pinned workflow or a snapshot is missing or damaged.
    """
    runs = sorted(session.runs.values(), key=lambda run: run.index)
    told = tuple(_run(load_run_context(session, run, plans)) for run in runs)
    return SessionSummary(session=session.session, events=session.next_index, runs=told)


def _run(scene: RunContext) -> RunSummary:
    session, run = scene.session, scene.run
    assert run.tip is not None, "a run has a root"
    tip = session.nodes[run.tip]
    words, place = scene.words(tip), scene.place(tip)
    return RunSummary(
        run=run.run,
        label=words.label,
        workflow_id=run.workflow_id,
        workflow_name=scene.workflow.name,
        goal=words.goal,
        status=run_status(session, tip, scene.snapshot(tip)),
        tip=tip.node,
        step=place.title if place is not None else None,
        number=place.number if place is not None else None,
        total=len(scene.workflow.numbers),
        nodes=run.nodes,
        notes=current_notes(tip),
        client=run.client,
        started_at=run.recorded_at,
        last_at=run.last_at,
        last_index=run.last_index,
        branch=session.observed(run.run, "git_branch"),
        head_sha=session.observed(run.run, "git_head_sha"),
        repo=session.observed(run.run, "repo_root_hash"),
    )
