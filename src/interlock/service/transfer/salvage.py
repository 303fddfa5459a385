"""Finds the undamaged part of a session: the longest beginning of its log that verifies, with all content (SAL-1)."""

from collections.abc import Sequence
from dataclasses import field
from itertools import chain
from typing import TYPE_CHECKING

from interlock.kernel.budgets import FOUND_BYTES_MAX
from interlock.kernel.errors import ErrorCode, Refusal
from interlock.kernel.frozen import frozen, mutable, replace
from interlock.kernel.ids import Digest, SessionId, SnapshotRef, WorkflowHash
from interlock.kernel.text import one_line
from interlock.record.content import Contents, collect_references
from interlock.record.errors import UnknownVersionError
from interlock.record.events import Event
from interlock.record.manifest import attest_history
from interlock.service.run.advice import ACCESS, NEWER, advise, advise_undecided
from interlock.store.ports.errors import ContentDamagedError, ContentUnreadableError, Health
from interlock.store.ports.reader import Omitted, SalvageCode, Salvaged, SessionReader

if TYPE_CHECKING:
    from interlock.record.bundle import SalvageBanner


@frozen
class SoundPrefix:
    """The undamaged beginning of a session and its content; `banner` says what is missing, None for a whole session.

    `is_undecided` has the same meaning as in `Salvaged`. `unreadable`: the part ends where content cannot be read, so
    what follows is not known to be damaged.
    """

    session: SessionId
    history: tuple[tuple[Event, ...], ...]
    contents: Contents
    banner: "SalvageBanner | None"
    is_undecided: bool = False
    unreadable: ContentUnreadableError | None = None

    @property
    def events(self) -> int:
        """The number of its events."""
        return sum(map(len, self.history))


def sound_prefix(reader: SessionReader, session: SessionId) -> SoundPrefix | Refusal:
    """Return the undamaged beginning of a session, or why there is none. What cannot be read is not left out.

    Raises:
        ContentUnreadableError: The beginning ends where content cannot be read.
        SessionBusyError, UnknownVersionError, StoreFailureError: See `service.failures`.
    """
    prefix = readable_prefix(reader, session)
    if isinstance(prefix, SoundPrefix) and prefix.unreadable is not None:
        raise prefix.unreadable
    return prefix


def readable_prefix(reader: SessionReader, session: SessionId) -> SoundPrefix | Refusal:
    """Return the beginning of a session that is undamaged and can be read, or why there is none.

    Raises:
        ContentUnreadableError: There is none because content cannot be read.
        SessionBusyError, UnknownVersionError, StoreFailureError: See `service.failures`.
    """
    # An id that is not listed is not a session name, so it must not become a path.
    salvaged = reader.salvage(session) if reader.is_stored(session) else None
    if salvaged is None:
        return _refuse_missing(session)
    if salvaged.health is Health.UNKNOWN_VERSION:
        return _refuse_newer(salvaged)
    read = _ContentReader(reader)
    banner = _log_banner(salvaged) if salvaged.code is not None else None
    history, unreadable = salvaged.history, None
    for at, events in enumerate(history):
        try:
            read.read_content(events)
        except ContentDamagedError as damage:
            banner = _content_banner(salvaged, at, damage)
            history = history[:at]
            unreadable = damage if isinstance(damage, ContentUnreadableError) else None
            break
    if not history and unreadable is not None:
        raise unreadable
    if not history:
        assert banner is not None, "a session without history and without damage is not there"
        is_undecided = salvaged.is_undecided and not salvaged.history
        return refuse_undecided(session) if is_undecided else _refuse_unusable(session, banner)
    contents = read.contents(history)
    # Content that is lost before the last append is damage that no writer undoes.
    is_undecided = salvaged.is_undecided and len(history) == len(salvaged.history)
    return SoundPrefix(
        session=session,
        history=history,
        contents=contents,
        banner=banner,
        is_undecided=is_undecided,
        unreadable=unreadable,
    )


def advise_damaged(reader: SessionReader, session: SessionId) -> str:
    """Return what to do about a damaged session, by whether it has a beginning that can be repaired and exported.

    Raises:
        SessionBusyError, StoreFailureError: See `service.failures`.
    """
    try:
        return advise(session, has_sound_part=isinstance(sound_prefix(reader, session), SoundPrefix))
    except UnknownVersionError:
        return advise(session, has_sound_part=False)
    except ContentUnreadableError:
        return ACCESS


def left_out_words(banner: "SalvageBanner") -> str:
    """Return in words what the banner says was left out: from where on, why, and how much."""
    counts = (
        f"appends: {banner.groups_left_out}, events: {banner.events_left_out}, bytes: {banner.bytes_left_out}"
        f"{'' if banner.is_count_known else ' (at least; some of it cannot be read)'}"
    )
    return f"everything from {banner.where} on ({banner.found}); {counts}"


def health_words(salvaged: Salvaged) -> str:
    """Return in words the health of a damaged log, and how much of it verifies."""
    events = sum(map(len, salvaged.history))
    sound = f"the {events} events before it verify" if events else "nothing before it verifies"
    return f"{salvaged.health.value}: {salvaged.found}; {sound} ({salvaged.code})"


@mutable
class _ContentReader:
    """Reads content, each item only once."""

    reader: SessionReader
    snapshots: dict[SnapshotRef, bytes] = field(default_factory=dict[SnapshotRef, bytes])
    workflows: dict[WorkflowHash, bytes] = field(default_factory=dict[WorkflowHash, bytes])
    artifacts: dict[Digest, bytes] = field(default_factory=dict[Digest, bytes])

    def read_content(self, events: Sequence[Event]) -> None:
        """Read the content that events refer to.

        Raises:
            ContentDamagedError: Some of it is missing or damaged.
        """
        named = collect_references(events)
        for ref in named.snapshots:
            if ref not in self.snapshots:
                self.snapshots[ref] = self.reader.snapshot(ref).to_bytes()
        for workflow_hash in named.workflows:
            if workflow_hash not in self.workflows:
                self.workflows[workflow_hash] = self.reader.workflow_bytes(workflow_hash)
        for digest in named.artifacts:
            if digest not in self.artifacts:
                self.artifacts[digest] = self.reader.artifact(digest)

    def contents(self, history: Sequence[Sequence[Event]]) -> Contents:
        """Return the content that this history refers to, which must have been read."""
        named = collect_references(chain.from_iterable(history))
        return Contents(
            snapshots={ref: self.snapshots[ref] for ref in named.snapshots},
            workflows={one: self.workflows[one] for one in named.workflows},
            artifacts={digest: self.artifacts[digest] for digest in named.artifacts},
        )


def _log_banner(salvaged: Salvaged) -> "SalvageBanner":
    code = salvaged.code
    assert code is not None, "only a damaged log bears a banner of its own"
    return _banner(code, salvaged, salvaged.omitted, (salvaged.where, salvaged.found))


def _content_banner(salvaged: Salvaged, at: int, damage: ContentDamagedError) -> "SalvageBanner":
    """Return the banner of a history that is cut before group `at`, because content of that group is damaged."""
    rest = list(attest_history(salvaged.session, salvaged.history))[at:]
    omitted = replace(
        salvaged.omitted,
        groups=salvaged.omitted.groups + len(rest),
        events=salvaged.omitted.events + sum(map(len, salvaged.history[at:])),
        bytes=salvaged.omitted.bytes + sum(len(segment) + len(group.data) for segment, group in rest),
    )
    first = salvaged.history[at][0].event_index
    where = f"event {first} ({damage.what} {damage.digest})"
    return _banner(SalvageCode.PARTIAL_DATA, salvaged, omitted, (where, damage.found))


def _banner(code: SalvageCode, salvaged: Salvaged, omitted: Omitted, damage: tuple[str, str]) -> "SalvageBanner":
    assert salvaged.health is not Health.UNKNOWN_VERSION, "what is newer is no damage"
    assert salvaged.health is not Health.UNREADABLE, "what cannot be read is not salvaged"
    assert salvaged.health is not Health.UNDECIDED, "lists alone call a session that"
    from interlock.record.bundle import SalvageBanner  # noqa: PLC0415 — most sessions are undamaged

    return SalvageBanner(
        code=code.value,
        health=salvaged.health.value,
        where=damage[0],
        found=one_line(damage[1], FOUND_BYTES_MAX),
        groups_left_out=omitted.groups,
        events_left_out=omitted.events,
        bytes_left_out=omitted.bytes,
        is_count_known=omitted.is_known,
    )


def refuse_undecided(session: SessionId) -> Refusal:
    """Refuse to leave out silently what may have been acknowledged."""
    return Refusal(
        code=ErrorCode.SESSION_NOT_HEALTHY,
        message=f"The settled mark of {session} cannot be read, so it is not known whether its last append was"
        " acknowledged.",
        suggestion=f"{advise_undecided(session)} Nothing was written.",
        details={"sessionId": session},
    )


def _refuse_missing(session: SessionId) -> Refusal:
    return Refusal(
        code=ErrorCode.SESSION_NOT_FOUND,
        message=f"There is no session {one_line(session, FOUND_BYTES_MAX)!r} in this data directory.",
        suggestion="`interlock session list` lists the sessions; `--data-dir` selects another data directory.",
    )


def _refuse_newer(salvaged: Salvaged) -> Refusal:
    return Refusal(
        code=ErrorCode.SESSION_NOT_HEALTHY,
        message=f"{salvaged.session} was written by a newer Interlock ({salvaged.where}: {salvaged.found}).",
        suggestion=NEWER,
        details={"health": salvaged.health.value, "where": salvaged.where, "found": salvaged.found},
    )


def _refuse_unusable(session: SessionId, banner: "SalvageBanner") -> Refusal:
    return Refusal(
        code=ErrorCode.SESSION_NOT_HEALTHY,
        message=f"{banner.code}: no part of {session} can be used. Unusable: {left_out_words(banner)}.",
        suggestion=f"{advise(session, has_sound_part=False)} Nothing was written; its files are unchanged.",
        details={"salvage": banner.to_json()},
    )
