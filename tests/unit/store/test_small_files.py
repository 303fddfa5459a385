"""Small files of the store that hold anything of any size: they cost little and no call fails for them."""

import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.crash import apply, session_id, start_plan

from interlock.kernel.canonical import canonical_bytes
from interlock.store.local import layout, live
from interlock.store.local.checks import LocalCheckFiles
from interlock.store.local.collect.collector import LocalCollector
from interlock.store.local.files import OsFiles
from interlock.store.local.session.settled import read_mark
from interlock.store.local.store import LocalStore
from interlock.store.ports.errors import KeyRingDamagedError, PinsDamagedError
from interlock.store.ports.store import StoreReader

A = session_id("a")
HUGE_BYTES = 300_000_000
READ_BYTES_MAX = 80_000_000


def nested(path: Path) -> None:
    path.write_bytes(b"[" * 5_000)


def nested_object(path: Path) -> None:
    path.write_bytes(b'{"v":' * 5_000 + b"\n\n")


def huge(path: Path) -> None:
    with path.open("wb") as stream:
        stream.truncate(HUGE_BYTES)


def infinite(path: Path) -> None:
    path.write_bytes(b'{"pid":1e999,"start":1,"client":1,"clientStart":1}')


def listed(path: Path) -> None:
    path.write_bytes(b"[1]")


HARMS = pytest.mark.parametrize("harm", [nested, nested_object, huge, infinite, listed])
Harm = Callable[[Path], None]


def stored(root: Path) -> LocalStore:
    """Return a store with a session, its cached summary and a key ring."""
    store = LocalStore(root)
    apply(store, start_plan("a"))
    store.ensure_keys()
    with store.hold(A) as lock:
        store.cache_summary(lock, b"cached")
    return store


def bounded(read: Callable[[], object]) -> object:
    """Return what a read gives, which takes a bounded part of the memory."""
    tracemalloc.start()
    try:
        return read()
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < READ_BYTES_MAX


@HARMS
@pytest.mark.inv("RES-4", "HIS-9")
def test_a_garbled_summary_is_none_and_the_session_is_read(tmp_path: Path, harm: Harm) -> None:
    store: StoreReader = stored(tmp_path)
    assert store.cached_summary(A) == b"cached"
    harm(tmp_path / layout.cached_summary(A))
    assert bounded(lambda: store.cached_summary(A)) is None
    assert bounded(lambda: LocalStore(tmp_path).load(A)) is not None
    assert len(LocalCollector(tmp_path).mark().sessions) == 1


@HARMS
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are read as Linux shows them")
def test_a_garbled_file_of_a_server_stops_no_write(tmp_path: Path, harm: Harm) -> None:
    stored(tmp_path)
    (tmp_path / layout.LIVE).mkdir()
    harm(tmp_path / layout.LIVE / "1.json")
    assert bounded(lambda: live.is_of_agent(OsFiles(tmp_path))) is False
    store = LocalStore(tmp_path, server_input=0)
    assert bounded(lambda: apply(store, start_plan("b"))) is not None
    assert [path.name for path in (tmp_path / layout.LIVE).iterdir()] == [f"{os.getpid()}.json"]
    assert live.is_of_agent(OsFiles(tmp_path)) is True


@HARMS
def test_a_garbled_mark_costs_little(tmp_path: Path, harm: Harm) -> None:
    stored(tmp_path)
    harm(tmp_path / layout.settled(A))
    bounded(lambda: read_mark(OsFiles(tmp_path), A))


@HARMS
@pytest.mark.inv("GC-2", "KEY-3")
def test_garbled_keys_pins_and_permissions_are_damage_and_cost_little(tmp_path: Path, harm: Harm) -> None:
    store = stored(tmp_path)
    for path in (layout.KEYRING, layout.KEEP, layout.ALLOWED_CHECKS):
        harm(tmp_path / path)
    with pytest.raises(KeyRingDamagedError):
        bounded(lambda: store.keys(fresh=True))
    with pytest.raises(KeyRingDamagedError):
        bounded(store.rotate)
    pins = LocalCollector(tmp_path).retention_pins
    for work in (pins.kept, lambda: pins.keep([A])):
        with pytest.raises(PinsDamagedError):
            bounded(work)
    assert LocalCheckFiles(tmp_path).allowed() == {}


def test_a_garbled_settled_mark_of_the_keys_counts_as_missing(tmp_path: Path) -> None:
    store = stored(tmp_path)
    huge(tmp_path / layout.KEYRING_MARK)
    assert bounded(lambda: store.keys(fresh=True)) is not None


def test_a_part_of_a_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(canonical_bytes("0123456789"))
    files = OsFiles(tmp_path)
    assert files.read("a", 1, 4) == b"0123"
    assert files.read("a", 9, 100) == b'89"'
    assert files.read("a", bytes_max=12) == files.read("a", bytes_max=13) == files.read("a")


def file_in_place(directory: Path) -> None:
    directory.write_bytes(b"")


def link_to_nothing(directory: Path) -> None:
    directory.symlink_to(directory.parent / "nowhere")


def server_as_directory(directory: Path) -> None:
    (directory / "1.json").mkdir(parents=True)


@pytest.mark.damages
@pytest.mark.inv("WORLD-9")
@pytest.mark.parametrize("harm", [file_in_place, link_to_nothing, server_as_directory])
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are read as Linux shows them")
def test_nothing_is_known_of_servers_whose_files_cannot_be_read(tmp_path: Path, harm: Harm) -> None:
    stored(tmp_path)
    harm(tmp_path / layout.LIVE)
    assert live.is_of_agent(OsFiles(tmp_path)) is None
    assert apply(LocalStore(tmp_path, server_input=0), start_plan("b")) is not None
    assert live.is_of_agent(OsFiles(tmp_path)) in (None, True)


@pytest.mark.inv("WORLD-9")
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are read as Linux shows them")
def test_a_server_that_could_not_announce_itself_does_so_with_the_next_write(tmp_path: Path) -> None:
    stored(tmp_path)
    (tmp_path / layout.LIVE).write_bytes(b"")
    store = LocalStore(tmp_path, server_input=0)
    apply(store, start_plan("b"))
    (tmp_path / layout.LIVE).unlink()
    apply(store, start_plan("c"))
    assert live.is_of_agent(OsFiles(tmp_path)) is True


@pytest.mark.damages
@pytest.mark.inv("WORLD-9")
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are read as Linux shows them")
def test_a_server_deletes_only_files_of_ended_servers(tmp_path: Path) -> None:
    stored(tmp_path)
    others = tmp_path / "others"
    others.mkdir()
    for name in ("notes.txt", "1.json"):
        (others / name).write_text("mine")
    (tmp_path / layout.LIVE).symlink_to(others)
    apply(LocalStore(tmp_path, server_input=0), start_plan("b"))
    (tmp_path / layout.LIVE).unlink()
    assert {"notes.txt", "1.json"} <= {path.name for path in others.iterdir()}
    (tmp_path / layout.LIVE).mkdir()
    (tmp_path / layout.LIVE / "notes.txt").write_text("mine")
    apply(LocalStore(tmp_path, server_input=0), start_plan("c"))
    assert (tmp_path / layout.LIVE / "notes.txt").exists()
