"""The key ring when a writer dies or the disk fails: no token is signed with a key that a power loss may take."""

import errno
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest
from tests.support.crash import opened
from tests.support.sweep import OneHolder

from interlock.kernel.frozen import mutable
from interlock.kernel.ids import SigningKey
from interlock.store.local import layout
from interlock.store.local.files import FileStat
from interlock.store.local.store import LocalStore
from interlock.store.ports.errors import FailureKind, StoreFailureError
from interlock.store.ports.keys import KeyRing
from interlock.testing.power_cut import CrashDisk, InjectedFault, PowerCutError


def ring_of(disk: CrashDisk) -> KeyRing:
    """Return the ring by which a new process verifies tokens."""
    ring = opened(disk).keys()
    assert ring is not None
    return ring


def verifies(ring: KeyRing, key: SigningKey) -> bool:
    return key in frozenset(ring.keys())


def signing_key(disk: CrashDisk) -> SigningKey:
    """Return the key with which a new process signs the tokens that it gives."""
    return opened(disk).ensure_keys().current


def made() -> CrashDisk:
    """A disk with a ring of one key, made without fault; with all of it durable."""
    disk = CrashDisk()
    opened(disk).ensure_keys()
    assert all(ring_of(left) == ring_of(disk) for left in disk.survivors())
    return disk.copy()


def count_of_steps(disk: CrashDisk, work: Callable[[CrashDisk], object]) -> int:
    copy = disk.copy()
    work(copy)
    return len(copy.steps)


def make(disk: CrashDisk) -> KeyRing:
    return opened(disk).ensure_keys()


def rotate(disk: CrashDisk) -> KeyRing:
    return opened(disk).rotate()


def assert_durable(disk: CrashDisk, key: SigningKey) -> None:
    """Hold that tokens of a key verify after any power loss."""
    survivors = list(disk.survivors())
    assert survivors
    for left in survivors:
        assert verifies(ring_of(left), key)


@pytest.mark.inv("KEY-6")
@pytest.mark.parametrize("error", [None, errno.EIO], ids=["killed", "failed"])
def test_a_ring_that_its_maker_left_unsettled_is_written_anew_before_it_signs(error: int | None) -> None:
    for at in range(count_of_steps(CrashDisk(), make)):
        disk = CrashDisk(fault=InjectedFault(at=at, error=error))
        with suppress(PowerCutError, StoreFailureError):
            make(disk)
        disk.fault = None
        steps, seen, mark = len(disk.steps), opened(disk).keys(), disk.names_now.get(layout.KEYRING_MARK)
        key = signing_key(disk)
        assert_durable(disk, key)
        written = [step.name for step in disk.steps[steps:] if step.path == layout.KEYRING]
        if seen is not None:
            assert key == seen.current, "what a reader saw is not replaced"
        # A sync of bytes that somebody else wrote proves nothing after a failed one, so they are written again.
        assert written == ([] if mark is not None else ["rename"])


@pytest.mark.inv("KEY-6")
def test_a_settled_ring_costs_a_new_process_no_operation() -> None:
    disk = made()
    rotate(disk)
    steps = len(disk.steps)
    for store in (opened(disk), opened(disk)):
        assert store.keys() == store.ensure_keys() == store.keys(fresh=True)
        assert store.key_ring_status() is not None
    assert len(disk.steps) == steps


@pytest.mark.inv("KEY-6", "READ-1")
def test_who_verifies_tokens_writes_and_syncs_nothing_whatever_a_writer_left() -> None:
    for work in (make, rotate):
        for at in range(count_of_steps(made() if work is rotate else CrashDisk(), work)):
            disk = made() if work is rotate else CrashDisk()
            disk.fault = InjectedFault(at=at)
            with suppress(PowerCutError):
                work(disk)
            disk.fault = None
            steps = len(disk.steps)
            opened(disk).keys()
            opened(disk).key_ring_status()
            assert len(disk.steps) == steps


@mutable
class FailsAfterwards(CrashDisk):
    """A disk that gives a file its name and then reports that it did not."""

    target: str = ""

    def rename(self, source: str, target: str) -> None:
        CrashDisk.rename(self, source, target)
        if target == self.target:
            raise OSError(errno.EIO, "made to fail")


def failing(fault: InjectedFault) -> CrashDisk:
    disk = made()
    disk.fault = fault
    return disk


def failing_afterwards(target: str) -> CrashDisk:
    disk = made()
    return FailsAfterwards(disk.files, disk.names_now, disk.entries_durable, disk.pending, target=target)


def failing_rotations() -> Iterator[tuple[str, Callable[[], CrashDisk]]]:
    """Yield what makes disks with a ring on which a rotation fails, each at another operation."""
    for at in range(count_of_steps(made(), rotate)):
        for is_lasting in (False, True):
            kind = f"operation {at}{' and all later ones' if is_lasting else ''}"
            yield kind, partial(failing, InjectedFault(at=at, error=errno.EIO, is_lasting=is_lasting))
    for target in (layout.KEYRING, layout.KEYRING_MARK):
        yield f"after {target} got its name", partial(failing_afterwards, target)


def failure_of_rotation(disk: CrashDisk) -> StoreFailureError | None:
    try:
        rotate(disk)
    except StoreFailureError as failure:
        return failure
    return None


ROTATIONS = dict(failing_rotations())


@pytest.mark.inv("KEY-7")
@pytest.mark.parametrize("kind", ROTATIONS)
def test_a_rotation_that_failed_says_what_is_there_and_a_repeat_ends_no_token(kind: str) -> None:
    disk = ROTATIONS[kind]()
    before, old = disk.read(layout.KEYRING), ring_of(disk).current
    failure = failure_of_rotation(disk)
    assert failure is None or failure.may_be_recorded == (disk.read(layout.KEYRING) != before)
    disk = disk.copy()
    between = signing_key(disk)
    assert_durable(disk, between)
    if failure is not None:
        assert between == old, "what is not confirmed does not sign"
        repeated = rotate(disk)
    else:
        repeated = ring_of(disk)
    assert_durable(disk, repeated.current)
    assert_durable(disk, old)
    assert repeated.previous == old
    assert signing_key(disk) == repeated.current != old
    further = rotate(disk)
    assert further.previous == repeated.current
    assert not verifies(further, old)


@pytest.mark.inv("KEY-7")
def test_a_rotation_that_was_killed_signs_with_a_key_that_every_power_loss_leaves() -> None:
    for at in range(count_of_steps(made(), rotate) + 1):
        disk = made()
        old = ring_of(disk).current
        disk.fault = InjectedFault(at=at)
        with suppress(PowerCutError):
            rotate(disk)
        disk = disk.copy()
        assert_durable(disk, signing_key(disk))
        assert_durable(disk, old)
        for left in disk.survivors():
            assert_durable(left, signing_key(left))
            signed = signing_key(left)
            assert verifies(rotate(left), signed)


@pytest.mark.inv("KEY-6", "KEY-3")
def test_any_flipped_byte_of_the_mark_ends_no_token() -> None:
    disk = made()
    old = ring_of(disk).current
    new = rotate(disk).current
    number = disk.names_now[layout.KEYRING_MARK]
    good = disk.files[number]
    for at in range(len(good.data)):
        for bit in range(8):
            bad = good.data[:at] + bytes((good.data[at] ^ 1 << bit,)) + good.data[at + 1 :]
            disk.files[number] = type(good)(data=bad, durable=bad)
            assert set(ring_of(disk).keys()) == {old, new}
            assert signing_key(disk) == old
    assert rotate(disk) == KeyRing(current=new, previous=old)


@pytest.mark.inv("KEY-6", "LOCK-1")
def test_a_start_beside_a_long_collection_needs_no_lock_for_a_ring_that_is_there() -> None:
    disk, locks = made(), OneHolder()
    disk.fault = InjectedFault(at=count_of_steps(made(), rotate) - 2)
    with suppress(PowerCutError):
        rotate(disk)
    disk.fault = None
    with locks.hold_upkeep():
        for files in (made(), disk):
            assert LocalStore(Path("/nowhere"), files=files, locks=locks).ensure_keys().current
        with pytest.raises(StoreFailureError, match="locked by another command") as caught:
            LocalStore(Path("/nowhere"), files=CrashDisk(), locks=locks).ensure_keys()
    assert not caught.value.may_be_recorded


@pytest.mark.inv("KEY-6", "READ-1")
@pytest.mark.parametrize("has_mark", [True, False])
def test_where_nothing_can_be_written_the_ring_that_is_there_signs(*, has_mark: bool) -> None:
    disk = made()
    ring = ring_of(disk)
    if not has_mark:
        disk.unlink(layout.KEYRING_MARK)
    disk.fault = InjectedFault(at=len(disk.steps), error=errno.EROFS, is_lasting=True)
    assert opened(disk).ensure_keys() == ring
    disk.fault = InjectedFault(at=len(disk.steps), error=errno.ENOSPC, is_lasting=True)
    if has_mark:
        assert opened(disk).ensure_keys() == ring
    else:
        with pytest.raises(StoreFailureError) as caught:
            opened(disk).ensure_keys()
        assert caught.value.kind is FailureKind.FULL


@pytest.mark.inv("KEY-6", "KEY-7")
def test_a_rotation_of_a_ring_that_its_maker_left_unsettled_settles_it_first() -> None:
    disk = made()
    old = ring_of(disk).current
    disk.unlink(layout.KEYRING_MARK)
    ring = rotate(disk)
    assert ring.previous == old
    assert signing_key(disk) == ring.current != old
    assert opened(CrashDisk()).rotate().previous is not None


class Unreleasable(OneHolder):
    """Locks whose release fails."""

    @contextmanager
    def hold_upkeep(self) -> Generator[None]:
        yield
        raise OSError(errno.EIO, "made to fail")


@pytest.mark.inv("KEY-7")
def test_a_lock_that_cannot_be_released_does_not_make_a_rotation_look_failed() -> None:
    disk = made()
    ring = LocalStore(Path("/nowhere"), files=disk, locks=Unreleasable()).rotate()
    assert ring_of(disk) == ring


@mutable
class Unreadable(CrashDisk):
    """A disk on which some paths cannot be read, from the operation of a number on."""

    path: str = ""
    is_stat: bool = True
    at: int = 0

    def stat(self, path: str) -> FileStat | None:
        if self.is_stat:
            self._meet(path)
        return CrashDisk.stat(self, path)

    def read(self, path: str, offset: int = 0, bytes_max: int | None = None) -> bytes:
        self._meet(path)
        return CrashDisk.read(self, path, offset, bytes_max)

    def _meet(self, path: str) -> None:
        if path == self.path and len(self.steps) >= self.at:
            raise OSError(errno.EACCES, "made to fail")


def unreadable(path: str, *, is_stat: bool = True, at: int = 0) -> Unreadable:
    disk = made()
    return Unreadable(disk.files, disk.names_now, disk.entries_durable, disk.pending, path=path, is_stat=is_stat, at=at)


@pytest.mark.inv("KEY-5", "DOC-1")
@pytest.mark.parametrize("is_stat", [True, False])
def test_whatever_fails_while_the_keys_are_read_or_rotated_is_a_failure_of_the_store(*, is_stat: bool) -> None:
    store = opened(unreadable(layout.KEYRING, is_stat=is_stat))
    for work in (store.keys, store.ensure_keys, store.rotate, store.key_ring_status):
        with pytest.raises(StoreFailureError) as caught:
            work()
        assert not caught.value.may_be_recorded
    with pytest.raises(StoreFailureError):
        opened(unreadable(layout.KEYS)).key_ring_status()


@pytest.mark.inv("KEY-7")
def test_a_ring_that_cannot_be_read_after_a_failed_rotation_may_be_the_new_one() -> None:
    disk = unreadable(layout.KEYRING, at=3)
    disk.fault = InjectedFault(at=3, error=errno.EIO)
    with pytest.raises(StoreFailureError) as caught:
        rotate(disk)
    assert caught.value.may_be_recorded


@pytest.mark.inv("KEY-6")
def test_a_mark_that_cannot_be_read_lets_the_previous_key_sign() -> None:
    disk = unreadable(layout.KEYRING_MARK, at=1_000)
    old = ring_of(disk).current
    rotate(disk)
    disk.at = 0
    assert signing_key(disk) == old
