"""Lists all sessions by their cached summaries; a session without one is read (RES-4)."""

from collections.abc import Mapping, Sequence

from interlock.kernel.frozen import frozen, positional, replace
from interlock.kernel.ids import SessionId
from interlock.kernel.progress import Progress, report_nothing
from interlock.record.errors import UnknownVersionError
from interlock.service.run.plans import Plans
from interlock.store.ports.errors import (
    UNUSABLE_SESSION,
    ContentDamagedError,
    ContentUnreadableError,
    Health,
    SessionUnhealthyError,
)
from interlock.store.ports.reader import ContentCheck, LogVersion, SessionReader, UnfinishedAppend
from interlock.views.summary import SessionSummary, parse_summary

CONTENT_DAMAGED = "content_damaged"
"""The health of a session whose log verifies, but not what it refers to."""


@frozen
class Unreadable:
    """A session that cannot be summarized, with its health and what is wrong."""

    session: SessionId
    health: str
    found: str


@frozen
class Listing:
    """All sessions of a data directory: those with a summary, and those that cannot be read.

    `incomplete` are sessions with a summary whose log names content that is lost, each with the first that was found.
    """

    sessions: tuple[SessionSummary, ...]
    unreadable: tuple[Unreadable, ...]
    incomplete: tuple[Unreadable, ...] = ()

    def newest_first(self) -> list[SessionSummary]:
        """Return the readable sessions by latest activity, newest first; unknown times are last."""
        return sorted(self.sessions, key=lambda one: one.last_at or "", reverse=True)


def read_listing(reader: SessionReader, plans: Plans, progress: Progress = report_nothing) -> Listing:
    """Return all sessions, by id, for a process that reads them once; report how many are read. Writes nothing.

    Raises:
        StoreFailureError: The disk failed.
    """
    names, check = reader.names(), ContentCheck()
    found, incomplete = list[SessionSummary | Unreadable](), list[Unreadable]()
    for number, session in enumerate(names, start=1):
        progress(number, len(names))
        entry = read_entry(reader, plans, session, check)
        if entry is not None:
            found.append(entry)
        lost = check.take_lost()
        if isinstance(entry, SessionSummary):
            incomplete += _incomplete_by(session, lost)
    return replace(_listing_of(found), incomplete=tuple(incomplete))


def read_lost_content(reader: SessionReader, session: SessionId) -> tuple[Unreadable, ...]:
    """Return what a list says of one session if its log names content that is lost; empty if all is there.

    Raises:
        SessionUnhealthyError: The log does not verify.
        StoreFailureError: The disk failed.
    """
    from interlock.service.run.summarize import check_history  # noqa: PLC0415 — a list of summaries needs none

    lost = list[ContentDamagedError]()
    check_history(reader, session, lost.append)
    return _incomplete_by(session, lost)


def _incomplete_by(session: SessionId, lost: Sequence[ContentDamagedError]) -> tuple[Unreadable, ...]:
    if not lost:
        return ()
    more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
    first = unreadable_by(session, lost[0])
    return (replace(first, found=f"{first.found}{more}"),)


def _listing_of(found: Sequence[SessionSummary | Unreadable]) -> Listing:
    return Listing(
        sessions=tuple(one for one in found if isinstance(one, SessionSummary)),
        unreadable=tuple(one for one in found if isinstance(one, Unreadable)),
    )


class Summaries:
    """The summaries of all sessions of one store. A session that has not changed is not read again."""

    def __init__(self) -> None:
        self._kept: dict[SessionId, _Kept] = {}

    def listing(
        self,
        reader: SessionReader,
        plans: Plans,
        progress: Progress = report_nothing,
        *,
        versions: Mapping[SessionId, LogVersion] | None = None,
        checks_files: bool = True,
    ) -> Listing:
        """Return all sessions, by id; report how many are read. Writes nothing.

        `versions` are those of the logs if the caller has read them a moment ago. With `checks_files`, a cached summary
        is used only if the files that it was made from are unchanged. Without, the version of the log is enough: for a
        caller that reads the log of a session before it offers it.

        Raises:
            StoreFailureError: The disk failed.
        """
        known = versions if versions is not None else reader.log_versions()
        for gone in self._kept.keys() - known.keys():
            self._kept.pop(gone, None)
        found = list[SessionSummary | Unreadable]()
        for number, (session, version) in enumerate(sorted(known.items()), start=1):
            progress(number, len(known))
            kept = self._kept.get(session)
            if kept is None or kept.version != version or (checks_files and not kept.is_checked):
                entry = read_entry(reader, plans, session, version=None if checks_files else version)
                if entry is None:
                    continue
                kept = _Kept(version, checks_files, entry)
                if not isinstance(entry, Unreadable) or (checks_files and entry.health != Health.UNREADABLE):
                    # Putting a file back does not change the version of a log. Polled pages keep what is damaged.
                    self._kept[session] = kept
            found.append(kept.entry)
        return _listing_of(found)

    def known(self, reader: SessionReader, session: SessionId, version: LogVersion) -> SessionSummary | None:
        """Return the summary of a version of a log if it is kept or cached; else None, because no log is read for it.

        Raises:
            StoreFailureError: The disk failed.
        """
        kept = self._kept.get(session)
        if kept is None or kept.version != version:
            cached = reader.cached_summary_of(session, version)
            summary = parse_summary(session, cached) if cached is not None else None
            if summary is None:
                return None
            kept = self._kept[session] = _Kept(version, is_checked=False, entry=summary)
        return kept.entry if isinstance(kept.entry, SessionSummary) else None


@positional
class _Kept:
    """What was found of a version of a log. `is_checked`: the files that a cached summary was made from, too."""

    version: LogVersion
    is_checked: bool
    entry: SessionSummary | Unreadable


def read_entry(
    reader: SessionReader,
    plans: Plans,
    session: SessionId,
    check: ContentCheck | None = None,
    *,
    version: LogVersion | None = None,
) -> SessionSummary | Unreadable | None:
    """Return the summary of a session, cached or from its log, or why it cannot be read; None if it has no history.

    With `check`, content that the log names and that is lost is noted there. With `version`, a summary that was cached
    of this version of the log is used although its files may have been altered since.

    Raises:
        StoreFailureError: The disk failed.
    """
    cached = reader.cached_summary(session, check) if version is None else reader.cached_summary_of(session, version)
    summary = parse_summary(session, cached) if cached is not None else None
    if summary is not None:
        return summary
    from interlock.service.run.summarize import check_history, summary_of  # noqa: PLC0415 — needed only if no summary is cached

    try:
        loaded = reader.load(session)
        if loaded is None:
            return _undecided(session) if reader.unfinished(session) is UnfinishedAppend.UNDECIDED else None
        if check is not None:
            check.lost.clear()
            check_history(reader, session, check.lost.append)
        return summary_of(loaded, plans)
    except UNUSABLE_SESSION as error:
        return unreadable_by(session, error)


def _undecided(session: SessionId) -> Unreadable:
    return Unreadable(session=session, health=Health.UNDECIDED, found="settled: it cannot be read")


def unreadable_by(
    session: SessionId, error: SessionUnhealthyError | UnknownVersionError | ContentDamagedError
) -> Unreadable:
    """Return how a list reports a session whose reading failed with this error."""
    match error:
        case SessionUnhealthyError():
            return Unreadable(session=session, health=error.health.value, found=f"{error.where}: {error.found}")
        case UnknownVersionError():
            return Unreadable(session=session, health=Health.UNKNOWN_VERSION, found=f"{error.what}: {error.found}")
        case ContentUnreadableError():
            return Unreadable(session=session, health=Health.UNREADABLE, found=f"{error.what}: {error.found}")
        case ContentDamagedError():
            return Unreadable(session=session, health=CONTENT_DAMAGED, found=f"{error.what}: {error.found}")
