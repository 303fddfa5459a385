"""A call that records nothing in the session it was about to make leaves no directory, and nobody else's goes."""

import errno
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.crash import apply, assert_readable, opened, prepared, session_id, start_plan

from interlock.kernel.ids import SessionId
from interlock.store.local import layout
from interlock.store.local.files import OpenedFile, OsFiles
from interlock.store.local.locks import OsLocks
from interlock.store.local.store import LocalStore
from interlock.store.ports.errors import SessionBusyError, StoreFailureError
from interlock.testing.power_cut import InjectedFault

A, B = session_id("a"), session_id("b")


class FullDisk(OsFiles):
    """A disk with room for names, and for no byte in any file."""

    def create(self, path: str, data: bytes) -> OpenedFile:
        created = super().create(path, b"")
        if data:
            created.close()
            raise OSError(errno.ENOSPC, "made to fail")
        return created


class Interrupted(OsLocks):
    """Locks before whose every hold, of this store, something else happens."""

    def __init__(self, root: Path, before: Callable[[int], None]) -> None:
        super().__init__(root, wait_ms_max=30)
        self._before, self._holds = before, 0

    @contextmanager
    def hold(self, session: SessionId, *, since_s: float | None = None) -> Generator[None]:
        self._holds += 1
        self._before(self._holds)
        with super().hold(session, since_s=since_s):
            yield


def sessions_in(root: Path) -> list[str]:
    return sorted(path.name for path in (root / layout.SESSIONS).iterdir())


def refused(store: LocalStore, name: str = "a") -> None:
    with pytest.raises(StoreFailureError):
        apply(store, start_plan(name))


@pytest.mark.inv("FAIL-4")
def test_refused_starts_on_a_full_disk_leave_no_session(tmp_path: Path) -> None:
    store = LocalStore(tmp_path, files=FullDisk(tmp_path))
    for number in range(20):
        refused(store, f"s{number}")
    assert sessions_in(tmp_path) == []
    apply(LocalStore(tmp_path), start_plan("s0"))


@pytest.mark.inv("FAIL-4")
def test_a_hold_that_appends_nothing_leaves_no_session(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    with store.hold(A) as lock:
        assert lock.session is None
    assert sessions_in(tmp_path) == []


@pytest.mark.inv("FAIL-4")
@pytest.mark.parametrize("kind", ["start", "start beside another"])
def test_a_start_that_fails_at_any_operation_leaves_no_session_unless_a_segment_stands(kind: str) -> None:
    """A segment may be the last that is left of a group; only a sweep, a day later, takes it for an orphan."""
    case = prepared(kind)
    probe = case.disk.copy()
    apply(opened(probe), case.plan)
    for at in range(len(probe.steps)):
        disk = case.disk.copy()
        disk.fault = InjectedFault(at=at, error=errno.ENOSPC)
        refused(opened(disk))
        disk.fault = None
        segments = disk.names(layout.events_dir(A))
        assert (disk.stat(layout.session_dir(A)) is not None) == bool(segments)
        assert set(disk.names(layout.SESSIONS)) <= {A, B}
        assert apply(opened(disk), case.plan) == case.new


@pytest.mark.inv("FAIL-4")
def test_a_session_that_another_process_records_meanwhile_stays(tmp_path: Path) -> None:
    def record(hold: int) -> None:
        if hold == 2:  # the first is that of the call, the second that of the removal
            apply(LocalStore(tmp_path), start_plan())

    refused(LocalStore(tmp_path, files=FullDisk(tmp_path), locks=Interrupted(tmp_path, record)))
    session = LocalStore(tmp_path).load(A)
    assert session is not None
    assert_readable(LocalStore(tmp_path), session)


@pytest.mark.inv("FAIL-4")
def test_a_session_that_another_process_holds_stays(tmp_path: Path) -> None:
    holds = list[object]()
    other = OsLocks(tmp_path).hold(A)

    def take(hold: int) -> None:
        if hold == 2:
            holds.append(other.__enter__())

    refused(LocalStore(tmp_path, files=FullDisk(tmp_path), locks=Interrupted(tmp_path, take)))
    assert holds
    assert sessions_in(tmp_path) == [A]
    other.__exit__(None, None, None)
    apply(LocalStore(tmp_path), start_plan())


@pytest.mark.inv("FAIL-4")
def test_a_call_that_finds_its_session_held_removes_nothing(tmp_path: Path) -> None:
    """The holder came after this call had seen no session, and before it locked one."""
    other = OsLocks(tmp_path).hold(A)
    store = LocalStore(tmp_path, locks=Interrupted(tmp_path, lambda _: other.__enter__()))
    with pytest.raises(SessionBusyError):
        apply(store, start_plan())
    assert sessions_in(tmp_path) == [A]
    other.__exit__(None, None, None)


@pytest.mark.inv("FAIL-4")
def test_a_call_that_waits_for_a_session_that_is_removed_is_refused_and_works_when_repeated(tmp_path: Path) -> None:
    def refuse_another(hold: int) -> None:
        if hold == 1:
            (tmp_path / layout.session_dir(A)).rename(tmp_path / "made by this call")
            refused(LocalStore(tmp_path, files=FullDisk(tmp_path)))

    store = LocalStore(tmp_path, locks=Interrupted(tmp_path, refuse_another))
    refused(store)
    assert sessions_in(tmp_path) == []
    started = apply(store, start_plan())
    assert LocalStore(tmp_path).load(A) == started
