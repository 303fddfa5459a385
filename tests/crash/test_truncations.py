"""Whatever file of a session is cut, at whatever byte: its sound beginning is readable, no other session suffers."""

import random
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.bundles import DOCUMENT, a_session, repaired, views
from tests.support.crash import advance_plan, apply, opened, run_id, session_id, start_plan
from tests.support.modes import files_below
from tests.support.shares import share_of

from interlock.engine.request import Request
from interlock.engine.start import root_node
from interlock.kernel.errors import ErrorCode
from interlock.service.audit.verify import verify_session
from interlock.store.local.store import LocalStore
from interlock.store.ports.errors import Health, SessionUnhealthyError
from interlock.store.ports.reader import SalvageCode, Salvaged
from interlock.testing.harness import Harness
from interlock.testing.power_cut import CrashDisk

A, B = session_id("a"), session_id("b")
MANIFEST = f"sessions/{A}/manifest.jsonl"


def stored() -> CrashDisk:
    """Return a disk with two sessions; one of several appends, with an artifact and refused attempts."""
    disk = CrashDisk()
    store = opened(disk)
    apply(store, start_plan("b"))
    session = apply(store, start_plan("a"))
    evidence = Request(notes="Done.", artifacts=({"kind": "report", "rows": [1, 2]},))
    session = apply(store, advance_plan(store, root_node(run_id("a")), evidence))
    for request in (Request(), Request(notes="At last."), Request(notes="And on.")):
        tip = session.runs[run_id("a")].tip
        assert tip is not None
        session = apply(store, advance_plan(store, tip, request))
    # A copy without the settled marks: what is cut off of it may never have been acknowledged.
    for path in [path for path in disk.names_now if path.endswith("/settled")]:
        disk.unlink(path)
    return disk.copy()


DISK = stored()
WHOLE = opened(DISK.copy()).history(A)
OTHER = opened(DISK.copy()).load(B)
FILES = sorted(path for path in DISK.names_now if path.startswith(f"sessions/{A}/") and path.endswith(".jsonl"))
SEGMENTS = [path for path in FILES if path != MANIFEST]


def bytes_of(path: str) -> bytes:
    return DISK.files[DISK.names_now[path]].data


def cut(cuts: Iterable[tuple[str, int | None]]) -> CrashDisk:
    """Return a copy of the disk with files cut to a size, or gone."""
    disk = DISK.copy()
    for path, size in cuts:
        number = disk.names_now[path]
        if size is None:
            del disk.names_now[path]
            continue
        data = bytes_of(path)[:size]
        disk.files[number] = replace(disk.files[number], data=data, durable=data)
    return disk


def sizes_of(path: str) -> list[int]:
    """Return where to cut a segment: around each line's end, at both ends, and at some places between."""
    data = bytes_of(path)
    ends = {at + 1 for at, byte in enumerate(data) if byte == ord("\n")}
    around = {end + by for end in ends for by in (-1, 0, 1)} | {0, 1}
    return sorted(size for size in around | set(range(0, len(data), 61)) if 0 <= size < len(data))


def prefix_of(disk: CrashDisk) -> Salvaged | None:
    """Salvage session a, and hold all that must be so whatever was cut."""
    before = dict(disk.files)
    store = opened(disk)
    salvaged = store.salvage(A)
    assert disk.files == before
    assert opened(disk).load(B) == OTHER
    if salvaged is None:
        assert opened(disk).load(A) is None
        return None
    assert salvaged.history == WHOLE[: len(salvaged.history)]
    if salvaged.health is Health.HEALTHY:
        assert salvaged.code is None
        assert opened(disk).load(A) == salvaged.fold
        assert opened(disk).history(A) == salvaged.history
    else:
        with pytest.raises(SessionUnhealthyError) as error:
            opened(disk).load(A)
        assert (error.value.where, error.value.found) == (salvaged.where, salvaged.found)
        expected = SalvageCode.SALVAGED_PREFIX if salvaged.history else SalvageCode.PARTIAL_DATA
        assert (salvaged.code, salvaged.health) == (expected, error.value.health)
    assert (salvaged.fold is None) == (salvaged.history == ())
    return salvaged


@pytest.mark.exhaustive
@pytest.mark.inv("SAL-1")
def test_a_manifest_cut_at_any_byte_is_a_shorter_healthy_history() -> None:
    lengths: list[int] = []
    for size in share_of(range(len(bytes_of(MANIFEST))), 13):
        salvaged = prefix_of(cut([(MANIFEST, size)]))
        assert salvaged is None or salvaged.health is Health.HEALTHY
        lengths.append(len(salvaged.history) if salvaged is not None else 0)
    assert lengths == sorted(lengths)
    assert set(lengths) == set(range(len(WHOLE)))
    assert prefix_of(cut([(MANIFEST, None)])) is None


@pytest.mark.inv("SAL-1")
@pytest.mark.produces("banner:SALVAGED_PREFIX", "banner:PARTIAL_DATA")
@pytest.mark.parametrize("at", range(len(SEGMENTS)))
def test_a_segment_cut_at_any_place_leaves_all_that_stands_before_it(at: int) -> None:
    for size in [None, *sizes_of(SEGMENTS[at])]:
        salvaged = prefix_of(cut([(SEGMENTS[at], size)]))
        assert salvaged is not None
        assert salvaged.health is (Health.CORRUPT_TAIL if at else Health.CORRUPT_HEAD)
        assert salvaged.history == WHOLE[:at]
        assert SEGMENTS[at].endswith(salvaged.where)
        rest = salvaged.omitted
        assert (rest.groups, rest.events, rest.is_known) == (len(WHOLE) - at, sum(map(len, WHOLE[at:])), True)


@pytest.mark.inv("SAL-1")
@given(
    st.lists(st.tuples(st.sampled_from(FILES), st.one_of(st.none(), st.integers(0, 6_000))), min_size=1, max_size=4),
)
def test_files_cut_together_leave_what_stands_before_the_first_of_them(cuts: list[tuple[str, int | None]]) -> None:
    shortest: dict[str, int | None] = {}
    for path, size in cuts:
        old = shortest.get(path, len(bytes_of(path)))
        shortest[path] = None if size is None or old is None else min(size, old)
    salvaged = prefix_of(cut(shortest.items()))
    whole = {path: shortest.get(path, len(bytes_of(path))) == len(bytes_of(path)) for path in FILES}
    sound = next((at for at, path in enumerate(SEGMENTS) if not whole[path]), len(SEGMENTS))
    kept = 0 if salvaged is None else len(salvaged.history)
    assert kept == sound or (kept < sound and not whole[MANIFEST])


def times_below(root: Path) -> dict[Path, tuple[int, int]]:
    return {path: (path.stat().st_mtime_ns, path.stat().st_ctime_ns) for path in root.rglob("*")}


def garbled(data: bytes, chance: random.Random) -> Iterator[bytes]:
    """Yield a file with a stretch overwritten, taken out, doubled, or zeroed."""
    for _ in range(40):
        start = chance.randrange(len(data))
        end = min(len(data), start + chance.randrange(1, 200))
        yield data[:start] + chance.randbytes(end - start) + data[end:]
        yield data[:start] + data[end:]
        yield data[:end] + data[start:end] + data[end:]
        yield data[:start] + bytes(end - start) + data[end:]


@pytest.mark.inv("SAL-1")
@pytest.mark.parametrize("path", FILES)
def test_whatever_else_happens_to_a_file_only_a_prefix_of_the_truth_is_ever_salvaged(path: str) -> None:
    kept: set[int] = set()
    for data in garbled(bytes_of(path), random.Random(path)):
        disk = DISK.copy()
        number = disk.names_now[path]
        disk.files[number] = replace(disk.files[number], data=data, durable=data)
        salvaged = prefix_of(disk)
        kept.add(len(salvaged.history) if salvaged is not None else 0)
    assert len(kept) == (1 if path != MANIFEST else len(kept))


@pytest.mark.inv("SAL-1")
@pytest.mark.parametrize("path", [FILES[0], FILES[-1]])
def test_a_process_that_remembers_a_session_salvages_no_more_of_it_than_a_fresh_one(path: str) -> None:
    disk = DISK.copy()
    store = opened(disk)
    assert store.history(A) == WHOLE
    number = disk.names_now[path]
    data = b"x" + bytes_of(path)[1:]
    disk.files[number] = replace(disk.files[number], data=data, durable=data)
    salvaged = store.salvage(A)
    assert salvaged == opened(disk).salvage(A)
    assert salvaged is not None
    assert (salvaged.history, salvaged.health) == ((), Health.CORRUPT_HEAD)


@pytest.mark.inv("SAL-2")
def test_what_is_left_out_of_a_manifest_that_cannot_be_read_is_reported_as_at_least() -> None:
    lines = bytes_of(MANIFEST).splitlines(keepends=True)
    second = next(at for at, line in enumerate(lines) if at and b"segment_closed" in line)
    disk = DISK.copy()
    number = disk.names_now[MANIFEST]
    data = b"".join([*lines[:second], b"x" + lines[second][1:], *lines[second + 1 :]])
    disk.files[number] = replace(disk.files[number], data=data, durable=data)
    salvaged = prefix_of(disk)
    assert salvaged is not None
    rest = salvaged.omitted
    assert (rest.groups, rest.events, rest.is_known) == (len(WHOLE) - 2, sum(map(len, WHOLE[2:])), False)
    segments = sum(len(bytes_of(path)) for path in SEGMENTS[2:])
    assert rest.bytes == segments + sum(map(len, lines[second:]))


@pytest.mark.inv("SAL-1", "SAL-3")
def test_on_a_real_disk_every_cut_leaves_a_prefix_that_is_repaired_and_nothing_else_is_touched(tmp_path: Path) -> None:
    harness = Harness.on_disk(tmp_path, DOCUMENT)
    other = harness.session_of(harness.start("test.flow", goal="Another"))
    session = a_session(harness)
    beside, history = views(harness, other), harness.store.history(session)
    directory = tmp_path / "sessions" / session
    for path in sorted(directory.rglob("*")):
        if not path.is_file():
            continue
        good = path.read_bytes()
        for size in {0, len(good) // 2, max(len(good) - 1, 0)}:
            path.write_bytes(good[:size])
            before = files_below(directory)
            fresh = Harness.on_disk(tmp_path, DOCUMENT)
            times = times_below(tmp_path)
            salvaged = fresh.store.salvage(session)
            assert times_below(tmp_path) == times
            assert salvaged is None or salvaged.history == history[: len(salvaged.history)]
            if salvaged is not None and salvaged.health is Health.CORRUPT_TAIL:
                copy = repaired(fresh, session).restored.session
                assert [len(plan) for plan in fresh.store.history(copy)] == [len(plan) for plan in salvaged.history]
                assert verify_session(fresh.store, fresh.ports.read.plans, copy) == ()
            assert files_below(directory) == before
            assert views(Harness.on_disk(tmp_path, DOCUMENT), other) == beside
        path.write_bytes(good)
    assert LocalStore(tmp_path).history(session) == history


@pytest.mark.inv("SAL-5")
def test_a_token_of_a_node_that_a_cut_took_away_says_that_history_is_shorter_and_names_the_doctor(
    tmp_path: Path,
) -> None:
    harness = Harness.on_disk(tmp_path, DOCUMENT)
    first = harness.start("test.flow", context={"mode": "fast"})
    second = harness.advance(first)
    manifest = tmp_path / "sessions" / harness.session_of(first) / "manifest.jsonl"
    manifest.with_name("settled").unlink()
    groups = manifest.read_bytes().splitlines(keepends=True)
    last = max(at for at, line in enumerate(groups) if b"segment_closed" in line)
    for size in (0, 1, len(groups[last]) - 1, len(groups[last])):
        kept = b"".join(groups[:last]) + groups[last][:size]
        if kept == b"".join(groups):
            continue
        manifest.write_bytes(kept)
        cut_off = Harness.on_disk(tmp_path, DOCUMENT)
        for answer in (cut_off.rehydrate(second), cut_off.advance(second)):
            assert answer.code is ErrorCode.TOKEN_UNKNOWN_NODE
            assert "shorter than when the token was issued" in answer["message"]
            assert "`interlock doctor`" in answer["suggestion"]
        assert not cut_off.rehydrate(first).is_error
    assert Harness.on_disk(tmp_path, DOCUMENT).advance(first)["pending"] == second["pending"]
