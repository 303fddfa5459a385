"""What the tests of retention drive: sessions on a disk that loses power, a clock that is set, and sweeps over both."""

from collections.abc import Callable, Collection, Generator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import field, replace
from pathlib import Path

from tests.support.crash import advance_plan, apply, assert_readable, opened, run_id, session_id, start_plan

from interlock.engine.request import Request
from interlock.kernel.frozen import mutable
from interlock.kernel.ids import SessionId
from interlock.service.retention.collect import CollectCommand, Collected, collect
from interlock.store.local import layout
from interlock.store.local.collect.collector import LocalCollector
from interlock.store.local.locks import Locks
from interlock.store.local.store import LocalStore
from interlock.store.ports.errors import SessionBusyError, UpkeepBusyError
from interlock.testing.power_cut import CrashDisk, ThreadLocks
from interlock.views.session import Session

RECORDED_S = 1_767_225_600.0
"""When every event of these tests is recorded: 2026-01-01, as their stamps say."""
HOUR_S, DAY_S = 3600.0, 24 * 3600.0
DAYS = 90
"""How long sessions stay."""


def dated_disk() -> CrashDisk:
    """Return an empty disk whose clock says when the events of these tests are recorded."""
    return CrashDisk(now_s=RECORDED_S)


def collector_on(disk: CrashDisk, locks: Locks | None = None) -> LocalCollector:
    return LocalCollector(Path("/nowhere"), files=disk, locks=locks or ThreadLocks())


def swept(disk: CrashDisk, *, days: int = DAYS, is_dry_run: bool = False, locks: Locks | None = None) -> Collected:
    """Collect at the time that the disk's clock says."""
    collector = collector_on(disk, locks)
    return collect(
        collector, collector.retention_pins, CollectCommand(days=days, now_s=disk.now_s, is_dry_run=is_dry_run)
    )


def started(disk: CrashDisk, name: str, *, artifact: str | None = None) -> Session:
    """Start a session and advance it by one step; with an artifact of its own if that is named."""
    store = opened(disk)
    apply(store, start_plan(name))
    return advanced(disk, name, artifact=artifact)


def advanced(disk: CrashDisk, name: str, *, artifact: str | None = None) -> Session:
    return advance(opened(disk), name, artifact=artifact)


def advance(store: LocalStore, name: str, *, artifact: str | None = None) -> Session:
    """Take one more step of a session; one that is through refuses an attempt without evidence of its last step."""
    session = store.load(session_id(name))
    assert session is not None
    tip = session.runs[run_id(name)].tip
    assert tip is not None
    artifacts = ({"kind": "report", "of": artifact},) if artifact is not None else ()
    return apply(store, advance_plan(store, tip, Request(notes="Done.", artifacts=artifacts), name))


def paths(disk: CrashDisk, below: str = "") -> set[str]:
    """Return the files that stand below a directory."""
    return {
        path
        for path, number in disk.names_now.items()
        if not disk.files[number].is_dir and path.startswith(f"{below}/" if below else "")
    }


def write(disk: CrashDisk, path: str, data: bytes = b"x") -> None:
    """Write a file, and every directory that it needs."""
    parents = path.split("/")[:-1]
    for depth in range(1, len(parents) + 1):
        disk.make_dir("/".join(parents[:depth]))
    disk.write(path, data)


def settle(disk: CrashDisk) -> CrashDisk:
    """Return the disk with everything that is there durable."""
    names = disk.names_now
    entries = {(names[layout.parent(path)], path.rpartition("/")[2]): number for path, number in names.items() if path}
    files = {number: replace(file, durable=file.data) for number, file in disk.files.items()}
    return CrashDisk(files, dict(names), entries, now_s=disk.now_s, boot=disk.boot)


def assert_whole(disk: CrashDisk, expected: Collection[Session]) -> None:
    """Hold that these sessions load as they were and that everything they refer to can be read."""
    store = opened(disk)
    for session in expected:
        assert store.load(session.session) == session
        assert_readable(store, session)


def assert_none_is_half(disk: CrashDisk) -> None:
    """Hold that every session that is there can be read with all that it refers to."""
    store = opened(disk)
    for name in store.sessions():
        session = store.load(name)
        assert session is not None
        assert_readable(store, session)


class OneHolder:
    """Locks of which each has one holder at a time, also within one thread."""

    def __init__(self) -> None:
        self._held: set[SessionId | None] = set()

    @contextmanager
    def hold(self, session: SessionId, *, since_s: float | None = None) -> Generator[None]:  # noqa: ARG002
        if session in self._held:
            raise SessionBusyError(session=session, waited_ms=0)
        with self._entered(session):
            yield

    @contextmanager
    def hold_upkeep(self) -> Generator[None]:
        if None in self._held:
            raise UpkeepBusyError(waited_ms=0)
        with self._entered(None):
            yield

    def is_held(self, session: SessionId) -> bool:
        return session in self._held

    def _entered(self, key: SessionId | None) -> AbstractContextManager[None]:
        return _entered(self._held, key)


@contextmanager
def _entered(held: set[SessionId | None], key: SessionId | None) -> Generator[None]:
    held.add(key)
    try:
        yield
    finally:
        held.discard(key)


@mutable
class Interrupted(CrashDisk):
    """A disk on which something else happens before an operation of this number, from 0."""

    at: int = -1
    meanwhile: Callable[[CrashDisk], None] = field(default=lambda _: None)

    def _step(self, name: str, path: str, data: bytes = b"", write: Callable[[bytes], None] = lambda _: None) -> None:
        if len(self.steps) == self.at:
            self.at = -1
            self.meanwhile(self)
        CrashDisk._step(self, name, path, data, write)


def interrupted(disk: CrashDisk, at: int, meanwhile: Callable[[CrashDisk], None]) -> Interrupted:
    """Return a copy of a disk that is interrupted."""
    copy = disk.copy()
    return Interrupted(
        copy.files, copy.names_now, copy.entries_durable, copy.pending, now_s=copy.now_s, at=at, meanwhile=meanwhile
    )
