"""Any single changed byte of what a session stores is noticed before it is used."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.crash import advance_plan, apply, assert_readable, opened, run_id, session_id, start_plan
from tests.support.shares import share_of

from interlock.engine.request import Request
from interlock.engine.start import root_node
from interlock.record.payloads import ArtifactPayload
from interlock.store.local.store import LocalStore
from interlock.store.ports.errors import ContentDamagedError, Health, SessionUnhealthyError
from interlock.testing.power_cut import CrashDisk
from interlock.views.session import Session

A, B = session_id("a"), session_id("b")


MANIFEST = f"sessions/{A}/manifest.jsonl"


def fill(store: LocalStore) -> None:
    """Store two sessions: a start, an advance with an artifact, a refusal; and another start."""
    apply(store, start_plan("b"))
    apply(store, start_plan("a"))
    artifact = Request(notes="Done.", artifacts=({"kind": "report", "rows": [1, 2]},))
    session = apply(store, advance_plan(store, root_node(run_id("a")), artifact))
    tip = session.runs[run_id("a")].tip
    assert tip is not None
    apply(store, advance_plan(store, tip, Request()))


@pytest.fixture(scope="module")
def stored() -> CrashDisk:
    disk = CrashDisk()
    fill(opened(disk))
    # Without the settled marks, as a copy is: what they notice has its own tests.
    for path in [path for path in disk.names_now if path.endswith("/settled")]:
        disk.unlink(path)
    return disk


def bytes_of(disk: CrashDisk, path: str) -> bytes:
    return disk.files[disk.names_now[path]].data


def with_bytes(disk: CrashDisk, path: str, data: bytes) -> CrashDisk:
    """Return a copy of a disk on which a file holds other bytes."""
    copy = disk.copy()
    number = copy.names_now[path]
    copy.files[number] = replace(copy.files[number], data=data, durable=data)
    return copy


def read_whole(store: LocalStore) -> Session:
    """Load session a in a fresh store and read everything it refers to."""
    session = store.load(A)
    assert session is not None
    assert_readable(store, session)
    return session


def flips(data: bytes) -> Iterator[tuple[int, bytes]]:
    for at, byte in enumerate(data):
        others = {byte ^ 1, 0} if at % 8 else {byte ^ 1, byte ^ 0x80, 0, ord("\n")}
        for other in others - {byte}:
            yield at, data[:at] + bytes((other,)) + data[at + 1 :]


def files_of(disk: CrashDisk, part: str) -> list[str]:
    below = (path for path in disk.names_now if path.startswith(f"{part}/"))
    return sorted(path for path in below if not disk.files[disk.names_now[path]].is_dir)


@pytest.mark.exhaustive
@pytest.mark.inv("CRASH-7", "READ-4")
@pytest.mark.parametrize("part", [f"sessions/{A}", "snapshots", "workflows/pinned", "artifacts"])
def test_a_flipped_byte_is_noticed_and_no_other_session_suffers(stored: CrashDisk, part: str) -> None:
    paths = files_of(stored, part)
    assert paths
    for path in paths:
        for at, bad in share_of(flips(bytes_of(stored, path)), 11):
            disk = with_bytes(stored, path, bad)
            with pytest.raises((SessionUnhealthyError, ContentDamagedError)):
                read_whole(opened(disk))
            if at % 25 == 0 and part.startswith("sessions"):
                assert opened(disk).load(B) is not None
    read_whole(opened(stored.copy()))


@pytest.mark.inv("CRASH-7")
def test_a_flipped_byte_is_noticed_on_a_real_disk(tmp_path: Path) -> None:
    fill(LocalStore(tmp_path))
    for path in sorted((tmp_path / "sessions" / A).rglob("*.jsonl")):
        good = path.read_bytes()
        for at in {*range(0, len(good), 97), len(good) - 1}:
            path.write_bytes(good[:at] + bytes((good[at] ^ 1,)) + good[at + 1 :])
            with pytest.raises(SessionUnhealthyError):
                LocalStore(tmp_path).load(A)
        path.write_bytes(good)
    read_whole(LocalStore(tmp_path))


@pytest.mark.inv("CRASH-4", "READ-3")
def test_a_manifest_cut_at_any_byte_is_an_earlier_state_and_never_another_fault(stored: CrashDisk) -> None:
    good = bytes_of(stored, MANIFEST)
    whole = read_whole(opened(stored.copy()))
    states: set[int] = set()
    for size in range(len(good)):
        session = opened(with_bytes(stored, MANIFEST, good[:size])).load(A)
        states.add(session.next_index if session else 0)
        assert session != whole
    assert len(states) == 3


@pytest.mark.inv("CRASH-4")
@pytest.mark.parametrize("tail", [b"\0", b"\n", b"x", b"{}\n", b'{"v":1}\n', b"\0\0\0"])
def test_what_no_append_of_ours_leaves_at_the_end_is_damage(stored: CrashDisk, tail: bytes) -> None:
    disk = with_bytes(stored, MANIFEST, bytes_of(stored, MANIFEST) + tail)
    with pytest.raises(SessionUnhealthyError) as error:
        opened(disk).load(A)
    assert error.value.health is Health.CORRUPT_TAIL


@pytest.mark.inv("CRASH-4")
def test_the_last_group_standing_twice_is_damage(stored: CrashDisk) -> None:
    lines = bytes_of(stored, MANIFEST).splitlines(keepends=True)
    with pytest.raises(SessionUnhealthyError):
        opened(with_bytes(stored, MANIFEST, b"".join([*lines, lines[-1]]))).load(A)


@pytest.mark.inv("CRASH-4")
def test_a_torn_group_whose_lost_bytes_read_as_nuls_never_happened(stored: CrashDisk) -> None:
    good = bytes_of(stored, MANIFEST)
    whole = read_whole(opened(stored.copy()))
    start = good.rstrip(b"\n").rfind(b"\n") + 1
    for cut in range(start, len(good) - 1):
        session = opened(with_bytes(stored, MANIFEST, good[:cut].ljust(len(good), b"\0"))).load(A)
        assert session is not None
        assert session.next_index < whole.next_index
    with pytest.raises(SessionUnhealthyError):
        opened(with_bytes(stored, MANIFEST, good[:-1] + b"\0")).load(A)


@pytest.mark.inv("READ-3")
def test_damage_before_the_first_group_is_a_corrupt_head(stored: CrashDisk) -> None:
    disk = with_bytes(stored, MANIFEST, b"x" + bytes_of(stored, MANIFEST)[1:])
    with pytest.raises(SessionUnhealthyError) as error:
        opened(disk).load(A)
    assert error.value.health is Health.CORRUPT_HEAD


@pytest.mark.inv("EVT-2")
def test_a_record_of_another_version_is_newer_and_not_damaged(stored: CrashDisk) -> None:
    lines = bytes_of(stored, MANIFEST).splitlines(keepends=True)
    newer = b"".join([*lines[:-1], lines[-1].replace(b'"v":1', b'"v":2')])
    with pytest.raises(SessionUnhealthyError) as error:
        opened(with_bytes(stored, MANIFEST, newer)).load(A)
    assert error.value.health is Health.UNKNOWN_VERSION


def test_every_artifact_is_read_by_the_check(stored: CrashDisk) -> None:
    session = read_whole(opened(stored.copy()))
    outputs = [output.payload for node in session.nodes.values() for output in node.outputs]
    assert any(isinstance(payload, ArtifactPayload) for payload in outputs)
