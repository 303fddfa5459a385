"""What a sweep takes and what it leaves, each thing by itself."""

from collections.abc import Callable
from dataclasses import replace
from itertools import count, islice
from pathlib import Path

import pytest
from tests.support.crash import advance_plan, apply, assert_readable, opened, run_id, session_id, stamps, start_plan
from tests.support.sweep import (
    DAY_S,
    DAYS,
    HOUR_S,
    OneHolder,
    advanced,
    assert_none_is_half,
    assert_whole,
    collector_on,
    dated_disk,
    paths,
    settle,
    started,
    swept,
    write,
)

from interlock.engine.request import Request
from interlock.engine.start import root_node
from interlock.kernel.ids import SnapshotRef
from interlock.record.events import parse_event
from interlock.record.manifest import build_group
from interlock.service.retention.collect import CollectCommand, collect
from interlock.store.local import layout
from interlock.store.local.collect.collector import LocalCollector
from interlock.store.local.session.reading import whole_groups
from interlock.store.local.store import LocalStore
from interlock.store.ports.errors import Health, PinsDamagedError, SessionUnhealthyError
from interlock.store.ports.maintenance import Due, Kind, Retention
from interlock.testing.power_cut import CrashDisk, InjectedFault, PowerCutError

A, B = session_id("a"), session_id("b")
KEY = "0123456789abcdef"


def filled(*names: str) -> CrashDisk:
    """Return a disk with a session of each name, an artifact of its own in each."""
    disk = dated_disk()
    for name in names:
        started(disk, name, artifact=name)
    return disk


def kinds(disk: CrashDisk, *, days: int = DAYS) -> dict[Kind, int]:
    """Sweep, and return how many of each kind went."""
    found: dict[Kind, int] = {}
    for kind, _ in swept(disk, days=days).taken.sizes():
        found[kind] = found.get(kind, 0) + 1
    return found


@pytest.mark.inv("GC-1")
def test_an_expired_session_goes_with_what_it_alone_refers_to_and_a_younger_one_stays_whole() -> None:
    disk = filled("a")
    disk.now_s += 60 * DAY_S
    young = started(disk, "b", artifact="b")
    disk.now_s += 40 * DAY_S
    before = paths(disk)
    # What `a` shares with `b`, its start wrote again.
    assert kinds(disk) == {Kind.SESSION: 1, Kind.ARTIFACT: 1}
    assert opened(disk).sessions() == (B,)
    assert_whole(disk, [young])
    gone = before - paths(disk)
    assert {path.split("/")[0] for path in gone} == {"sessions", "artifacts"}


@pytest.mark.inv("GC-1")
def test_days_count_from_the_later_of_the_newest_recorded_time_and_the_manifests_own() -> None:
    disk = filled("a")
    disk.now_s += DAYS * DAY_S
    assert kinds(disk) == {}, "an event is 90 days old"
    disk.now_s += 1
    assert kinds(disk) == {Kind.SESSION: 1, Kind.SNAPSHOT: 2, Kind.WORKFLOW: 1, Kind.ARTIFACT: 1}
    disk = filled("a")
    disk.now_s += 50 * DAY_S
    disk.renew(layout.manifest(A))
    disk.now_s += 50 * DAY_S
    assert kinds(disk) == {}, "the manifest is 50 days old"


@pytest.mark.inv("GC-1")
def test_with_zero_days_no_session_expires_and_what_nothing_refers_to_goes_all_the_same() -> None:
    disk = filled("a")
    disk.now_s += 10_000 * DAY_S
    write(disk, "artifacts/" + "a" * 64)
    disk.now_s += 2 * DAY_S
    assert kinds(disk, days=0) == {Kind.ARTIFACT: 1}
    assert opened(disk).sessions() == (A,)


@pytest.mark.inv("GC-2")
def test_a_kept_session_stays_whatever_its_age_until_it_is_no_longer_kept() -> None:
    disk = filled("a", "b")
    pins = collector_on(disk).retention_pins
    assert pins.keep([A]) == {A} == collector_on(disk).retention_pins.kept()
    disk.now_s += 1_000 * DAY_S
    kept = opened(disk).load(A)
    assert kept is not None
    assert kinds(disk)[Kind.SESSION] == 1
    assert_whole(disk, [kept])
    assert pins.unkeep([A]) == set()
    assert kinds(disk)[Kind.SESSION] == 1
    assert opened(disk).sessions() == ()


@pytest.mark.inv("GC-3")
def test_what_goes_is_out_of_sight_first_and_gone_for_good_with_the_next_sweep() -> None:
    disk = filled("a")
    everything = paths(disk, "sessions") | paths(disk, "artifacts")
    disk.now_s += 100 * DAY_S
    swept(disk)
    trash = paths(disk, "trash")
    assert {path.removeprefix("trash/") for path in trash} >= everything
    assert paths(disk, "sessions") == paths(disk, "artifacts") == paths(disk, "snapshots") == set()
    assert kinds(disk) == {Kind.TRASH: 5}
    assert paths(disk, "trash") == set()
    assert kinds(disk) == {}


@pytest.mark.inv("GC-3")
def test_content_in_the_trash_is_still_read_and_moved_back_if_a_session_refers_to_it() -> None:
    disk = filled("a")
    session = opened(disk).load(A)
    assert session is not None
    content = sorted(paths(disk, "snapshots") | paths(disk, "artifacts") | paths(disk, "workflows"))
    for path in ("trash", "trash/workflows", *map(layout.trashed, layout.CONTENT_DIRS)):
        disk.make_dir(path)
    for path in content:
        disk.rename(path, layout.trashed(path))
    assert_readable(opened(disk), session)
    disk.now_s += 10 * DAY_S
    assert kinds(disk) == {}
    assert set(content) <= paths(disk)
    assert paths(disk, "trash") == set()


class MovingBack(CrashDisk):
    """A disk on which a sweep moves content back just after a reader looked for it where it belongs."""

    def read(self, path: str, offset: int = 0, bytes_max: int | None = None) -> bytes:
        if path.startswith("trash/") and path in self.names_now:
            self.rename(path, path.removeprefix("trash/"))
        return CrashDisk.read(self, path, offset, bytes_max)


@pytest.mark.inv("GC-3")
def test_content_that_is_moved_back_between_two_looks_is_not_called_missing() -> None:
    disk = filled("a")
    session = opened(disk).load(A)
    assert session is not None
    write(disk, "trash/snapshots/x")
    moving = MovingBack(disk.files, disk.names_now, disk.entries_durable, now_s=disk.now_s)
    for path in paths(disk, "snapshots"):
        moving.rename(path, layout.trashed(path))
    assert_readable(opened(moving), session)


@pytest.mark.inv("GC-3")
def test_a_second_copy_in_the_trash_goes_and_a_damaged_first_one_is_replaced_by_it() -> None:
    disk = filled("a")
    session = opened(disk).load(A)
    assert session is not None
    first, second = sorted(paths(disk, "snapshots"))
    for path in (first, second):
        write(disk, layout.trashed(path), disk.read(path))
    good = disk.read(first)
    disk.unlink(second)
    disk.write(second, b"damaged")
    disk.unlink(first)
    disk = settle(disk)
    # A writer has just written it again, and not synced yet.
    disk.write(first, good)
    swept(disk)
    assert paths(disk, "trash") == set()
    for left in disk.survivors():
        assert_whole(left, [session])


@pytest.mark.inv("GC-4")
@pytest.mark.parametrize("directory", layout.CONTENT_DIRS)
def test_what_nothing_refers_to_goes_only_when_it_is_older_than_a_day(directory: str) -> None:
    disk = filled("a")
    path = f"{directory}/{'b' * 64}" + (".json" if directory != layout.ARTIFACTS else "")
    write(disk, path)
    disk.now_s += DAY_S
    assert kinds(disk) == {}
    disk.now_s += 1
    assert sum(kinds(disk).values()) == 1
    assert path not in paths(disk)
    assert layout.trashed(path) in paths(disk)


@pytest.mark.inv("GC-4")
def test_files_that_are_not_interlocks_stay() -> None:
    disk = filled("a")
    foreign = {"snapshots/notes.txt", "artifacts/README", "config.toml", "config/mine.toml", f"sessions/{A}/my.tmp"}
    for path in foreign:
        write(disk, path)
    write(disk, f"sessions/{A}/cache/summary.json")
    disk.now_s += 10 * DAY_S
    assert kinds(disk) == {}
    assert foreign < paths(disk)


@pytest.mark.inv("GC-5")
@pytest.mark.parametrize(
    "path",
    [
        "snapshots/x.json",
        "artifacts/x",
        "workflows/pinned/x.json",
        "keys/keyring.json",
        "config/keep.json",
        f"sessions/{A}/events/00000000-00000004.jsonl",
        f"sessions/{A}/cache/summary.json",
        f"sessions/{A}/manifest.jsonl",
    ],
)
def test_a_temporary_file_goes_when_it_is_older_than_a_day(path: str) -> None:
    disk = filled("a")
    temp = layout.temp(path, KEY)
    write(disk, temp)
    disk.now_s += DAY_S
    assert kinds(disk) == {}
    disk.now_s += 1
    assert kinds(disk) == {Kind.TEMP: 1}
    assert temp not in paths(disk)
    assert opened(disk).load(A) is not None


def torn(disk: CrashDisk, name: str) -> None:
    """Let an advance of a session lose its process inside the group, so that a segment and half a group stay."""
    probe = disk.copy()
    plan = advance_plan(opened(probe), root_node(run_id(name)), Request(notes="Torn."), name)
    probe.steps.clear()
    apply(opened(probe), plan)
    at = next(number for number, step in enumerate(probe.steps) if step.name == "append")
    disk.steps.clear()
    disk.fault = InjectedFault(at=at, keep_bytes=40)
    with pytest.raises(PowerCutError):
        apply(opened(disk), plan)
    disk.fault = None


@pytest.mark.inv("GC-5", "CRASH-5")
def test_the_segment_of_a_torn_append_goes_after_the_torn_tail_is_cut() -> None:
    disk = dated_disk()
    session = apply(opened(disk), start_plan())
    torn(disk, "a")
    manifest = disk.read(layout.manifest(A))
    disk.now_s += DAY_S
    assert kinds(disk) == {}
    assert disk.read(layout.manifest(A)) == manifest
    disk.now_s += 1
    # The advance's snapshot was written too, and nothing refers to it.
    assert kinds(disk) == {Kind.SEGMENT: 1, Kind.SNAPSHOT: 1}
    assert len(disk.read(layout.manifest(A))) == len(manifest) - 40
    assert_whole(disk, [session])
    assert len(paths(disk, layout.events_dir(A))) == 1
    assert len(paths(disk, layout.TRASHED_SEGMENTS)) == 1
    assert advanced(disk, "a").next_index > session.next_index


@pytest.mark.inv("GC-6")
def test_a_segment_that_came_to_be_attested_and_a_temporary_file_that_got_its_name_are_not_taken() -> None:
    disk = dated_disk()
    apply(opened(disk), start_plan())
    torn(disk, "a")
    write(disk, layout.temp("config/keep.json", KEY))
    disk.now_s += 2 * DAY_S
    collector = collector_on(disk)
    marked = collector.mark()
    session = advanced(disk, "a")
    for path in paths(disk, layout.events_dir(A)):
        disk.files[disk.names_now[path]] = replace(disk.files[disk.names_now[path]], modified_s=0.0)
    disk.rename(layout.temp("config/keep.json", KEY), "config/named")
    found = collector.sweep(marked, Retention(now_s=disk.now_s, ttl_s=None))
    assert [kind for kind, _ in found.taken.sizes()] == []
    assert_whole(disk, [session])


@pytest.mark.inv("GC-5", "CRASH-6")
def test_a_directory_that_a_start_left_goes_when_all_of_it_is_older_than_a_day() -> None:
    for at in range(1, 30):
        disk = dated_disk()
        disk.fault = InjectedFault(at=at)
        try:
            apply(opened(disk), start_plan())
        except PowerCutError:
            disk.fault = None
        else:
            break
        if layout.session_dir(A) not in disk.names_now:
            continue
        begun = any(whole_groups(disk, A))
        disk.now_s += DAY_S
        assert kinds(disk).get(Kind.LEFTOVER) is None
        disk.now_s += 1
        assert kinds(disk).get(Kind.LEFTOVER) == (None if begun else 1)
        assert opened(disk).load(A) is None or begun
        # The same session can begin as if nothing had been.
        assert apply(opened(disk), start_plan()).next_index


@pytest.mark.inv("GC-6")
def test_a_session_that_began_in_what_a_start_had_left_stays_and_so_does_an_import_that_goes_on() -> None:
    disk = filled("b")
    for path in (layout.session_dir(A), layout.events_dir(A), "sessions/import"):
        disk.make_dir(path)
    disk.write(layout.manifest(A), b"")
    disk.now_s += 2 * DAY_S
    collector = collector_on(disk)
    marked = collector.mark()
    session = apply(opened(disk), start_plan())
    for path in paths(disk, layout.session_dir(A)):
        disk.files[disk.names_now[path]] = replace(disk.files[disk.names_now[path]], modified_s=0.0)
    write(disk, "sessions/import/manifest.jsonl")
    found = collector.sweep(marked, Retention(now_s=disk.now_s, ttl_s=DAYS * DAY_S))
    assert list(found.taken.sizes()) == []
    assert_whole(disk, [session])
    assert "sessions/import/manifest.jsonl" in paths(disk)


def renamed(disk: CrashDisk, name: str) -> None:
    """Give the directory of a session another name."""
    kept = {path.partition(B)[2]: disk.read(path) for path in paths(disk, layout.session_dir(B))}
    for path in sorted((path for path in disk.names_now if f"{B}/" in f"{path}/"), reverse=True):
        disk.remove_dir(path) if disk.files[disk.names_now[path]].is_dir else disk.unlink(path)
    for path, data in kept.items():
        write(disk, f"sessions/{name}{path}", data)


@pytest.mark.inv("GC-4")
@pytest.mark.parametrize("name", [f"{B}.damaged", "backup", "deep/" + B, f"{A}.{'0' * 16}.tmp"])
def test_what_is_no_session_by_its_name_stays_with_the_content_that_its_log_names(name: str) -> None:
    disk = filled("a", "b")
    session = opened(disk).load(B)
    renamed(disk, name)
    write(disk, "sessions/notes.txt")
    disk.now_s += 1_000 * DAY_S
    before = paths(disk)
    for _ in range(3):
        found = swept(disk)
        left = [one.name for one in found.skipped]
        assert left == sorted(["sessions/notes.txt", f"sessions/{name.partition('/')[0]}"])
        assert {one.why for one in found.skipped} == {"foreign"}
        assert not found.needs_attention
    assert not {path for path in before - paths(disk) if not path.startswith(layout.session_dir(A))} - {
        path for path in before if path.startswith("artifacts/")
    }
    for path in paths(disk, f"sessions/{name}"):
        write(disk, path.replace(f"sessions/{name}", layout.session_dir(B)), disk.read(path))
    assert session is not None
    assert_whole(disk, [session])


@pytest.mark.inv("GC-4", "GC-5")
def test_a_directory_of_an_interrupted_start_stays_if_somebody_put_a_file_into_it() -> None:
    disk = filled("a")
    for path in ("notes.txt", "events/notes.txt", "old/manifest.jsonl"):
        other = filled("a")
        write(other, f"{layout.session_dir(B)}/{path}")
        other.now_s += 10 * DAY_S
        assert kinds(other) == {}
        assert [one.name for one in swept(other).skipped] == [layout.session_dir(B)]
    for path in ("manifest.jsonl", "events/00000000-00000001.jsonl", ".lock", "settled"):
        write(disk, f"{layout.session_dir(B)}/{path}", b"")
    disk.now_s += 10 * DAY_S
    assert kinds(disk) == {Kind.LEFTOVER: 1}


@pytest.mark.inv("GC-3")
def test_a_session_that_a_fast_clock_moved_to_the_trash_is_moved_back_with_its_content() -> None:
    disk = filled("a", "b")
    sessions = [one for one in map(opened(disk).load, (A, B)) if one is not None]
    assert collector_on(disk).retention_pins.kept() == set()
    right_s = disk.now_s
    disk.now_s += 1_000 * DAY_S
    assert {one.session for one in swept(disk).taken.sessions} == {A, B}
    disk.now_s = right_s + 10 * DAY_S
    planned = swept(disk, is_dry_run=True)
    assert opened(disk).sessions() == ()
    found = swept(disk)
    assert set(found.restored) == set(planned.restored) == {A, B}
    assert list(found.taken.sizes()) == list(planned.taken.sizes()) == []
    assert_whole(disk, sessions)
    assert paths(disk, "trash") == set()
    disk.now_s = right_s + 100 * DAY_S
    assert kinds(disk)[Kind.SESSION] == 2
    assert kinds(disk)[Kind.TRASH] >= 2
    assert paths(disk, "trash") == set()


@pytest.mark.inv("GC-3")
def test_a_session_whose_deletion_was_interrupted_is_not_moved_back() -> None:
    """It stood in the trash; then a sweep died while it deleted it, and the next one keeps sessions for ever."""
    begun = filled("a")
    begun.now_s += 100 * DAY_S
    assert [one.session for one in swept(begun).taken.sessions] == [A]
    interruptions = 0
    for at in count():
        disk = begun.copy()
        disk.fault = InjectedFault(at=at)
        try:
            swept(disk)
        except PowerCutError:
            disk.fault = None
        else:
            break
        interruptions += 1
        for left in islice(disk.survivors(), 8):
            swept(left, days=0)
            if A in opened(left).sessions():
                assert_none_is_half(left)
            assert paths(left, "trash/sessions") == set()
    assert interruptions > 5


@pytest.mark.inv("GC-3")
def test_a_session_that_a_person_deleted_is_not_moved_back() -> None:
    disk = filled("a")
    collector = collector_on(disk)
    command = CollectCommand(days=DAYS, now_s=disk.now_s, chosen=frozenset({A}))
    assert [one.session for one in collect(collector, collector.retention_pins, command).taken.sessions] == [A]
    assert swept(disk).restored == ()
    assert opened(disk).sessions() == ()
    assert paths(disk, "trash/sessions") == set()


@pytest.mark.inv("GC-6", "LOCK-1")
def test_a_session_that_somebody_holds_is_left_to_the_next_sweep_with_all_that_it_refers_to() -> None:
    disk, locks = filled("a"), OneHolder()
    session = opened(disk).load(A)
    assert session is not None
    disk.now_s += 100 * DAY_S
    with locks.hold(A):
        found = swept(disk, locks=locks)
    assert [(one.session, one.why) for one in found.skipped] == [(A, "busy")]
    assert list(found.taken.sizes()) == []
    assert_whole(disk, [session])
    assert next(kind for kind, _ in swept(disk, locks=locks).taken.sizes()) is Kind.SESSION


@pytest.mark.inv("GC-6")
def test_a_session_that_went_on_since_it_was_marked_stays() -> None:
    disk = filled("a")
    disk.now_s += 100 * DAY_S
    collector = collector_on(disk)
    marked = collector.mark()
    session = advanced(disk, "a")

    found = collector.sweep(marked, Retention(now_s=disk.now_s, ttl_s=DAYS * DAY_S))
    assert [(one.session, one.why) for one in found.skipped] == [(A, "changed")]
    assert_whole(disk, [session])


def damage_segment(disk: CrashDisk) -> None:
    path = min(paths(disk, layout.events_dir(A)))
    data = disk.read(path)
    disk.unlink(path)
    disk.write(path, b"X" + data[1:])


def replace_manifest(disk: CrashDisk, change: bytes) -> None:
    disk.unlink(layout.manifest(A))
    disk.write(layout.manifest(A), change)


Damage = tuple[Callable[[CrashDisk], object], Health]
DAMAGE: dict[str, Damage] = {
    "a segment with other bytes": (damage_segment, Health.CORRUPT_HEAD),
    "a segment that is gone": (lambda disk: disk.unlink(max(paths(disk, layout.events_dir(A)))), Health.CORRUPT_TAIL),
    "a foreign end of the manifest": (lambda disk: disk.append(layout.manifest(A), b"{}\n"), Health.CORRUPT_TAIL),
    "a foreign beginning of it": (
        lambda disk: replace_manifest(disk, b"?" + disk.read(layout.manifest(A))[1:]),
        Health.CORRUPT_HEAD,
    ),
    "a newer record": (
        lambda disk: replace_manifest(disk, disk.read(layout.manifest(A)).replace(b'"v":1', b'"v":2')),
        Health.UNKNOWN_VERSION,
    ),
    "a manifest that is gone": (lambda disk: disk.unlink(layout.manifest(A)), Health.CORRUPT_HEAD),
    "a manifest that is empty": (lambda disk: replace_manifest(disk, b""), Health.CORRUPT_HEAD),
}


@pytest.mark.inv("GC-7")
@pytest.mark.parametrize("kind", DAMAGE)
def test_one_session_that_cannot_be_relied_on_lets_nothing_at_all_go(kind: str) -> None:
    damage, health = DAMAGE[kind]
    disk = filled("a", "b")
    write(disk, "artifacts/" + "a" * 64)
    write(disk, layout.temp("snapshots/x.json", KEY))
    write(disk, "trash/artifacts/" + "c" * 64)
    write(disk, f"trash/sessions/{session_id('d')}/manifest.jsonl")
    damage(disk)
    disk.now_s += 1_000 * DAY_S
    before, files = paths(disk), dict(disk.files)
    found = swept(disk)
    (blocker,) = found.blockers
    assert (blocker.session, blocker.health, blocker.code) == (A, health, "SESSION_NOT_HEALTHY")
    assert A in blocker.message
    assert (list(found.taken.sizes()), found.skipped) == ([], ())
    assert paths(disk) - {layout.UPKEEP_LOCK} == before
    assert {number: disk.files[number] for number in files} == files


@pytest.mark.inv("GC-7")
def test_events_that_contradict_each_other_are_damage_to_a_sweep_too() -> None:
    disk = filled("b")
    store = opened(disk)
    start = start_plan()
    with store.hold(A) as lock:
        store.append(lock, start, stamps())
    one, *_ = sorted(paths(disk, layout.events_dir(A)))
    lines = disk.read(one).splitlines(keepends=True)
    # The first event once more, with the next index: each line is whole, and the log says what cannot be.
    again = lines[0].replace(b'"eventIndex":0', b'"eventIndex":%d' % len(lines))

    known = disk.read(layout.manifest(A))
    group = build_group(
        A,
        manifest_index=known.count(b"\n"),
        segment=again,
        events=[parse_event(again.rstrip())],
        pinned=frozenset[SnapshotRef](),
    )
    disk.write(layout.segment(A, len(lines), len(lines)), again)
    disk.append(layout.manifest(A), group.data)
    with pytest.raises(SessionUnhealthyError):
        opened(disk).load(A)
    disk.now_s += 1_000 * DAY_S
    (blocker,) = swept(disk).blockers
    assert blocker.health is Health.CORRUPT_TAIL


class Vanishing(CrashDisk):
    """A disk on which the manifest of `a` is gone when it is read, and the rest of the session is there."""

    def read(self, path: str, offset: int = 0, bytes_max: int | None = None) -> bytes:
        if path == layout.manifest(A):
            raise FileNotFoundError
        return CrashDisk.read(self, path, offset, bytes_max)


@pytest.mark.inv("GC-7")
def test_a_session_that_could_not_be_seen_lets_nothing_go_unless_it_is_gone() -> None:
    disk = filled("a", "b")
    disk.now_s += 1_000 * DAY_S
    vanishing = Vanishing(disk.files, disk.names_now, disk.entries_durable, now_s=disk.now_s)
    (blocker,) = swept(vanishing).blockers
    assert blocker.session == A


@pytest.mark.inv("GC-7", "GC-2")
@pytest.mark.parametrize("data", [b"", b"{}", b"\xff", b'{"kind":"keep_marks","sessions":[],"v":2}\n', b"[]\n"])
def test_keep_marks_that_cannot_be_read_let_nothing_go_and_are_never_written_over(data: bytes) -> None:
    disk = filled("a")
    write(disk, layout.KEEP, data)
    disk.now_s += 1_000 * DAY_S
    (blocker,) = swept(disk).blockers
    assert blocker.code == "KEEP_MARKS_DAMAGED"
    assert opened(disk).sessions() == (A,)

    for change in (collector_on(disk).retention_pins.keep, collector_on(disk).retention_pins.unkeep):
        with pytest.raises(PinsDamagedError):
            change([A])
    assert disk.read(layout.KEEP) == data


@pytest.mark.inv("GC-8")
def test_a_dry_run_tells_what_a_sweep_then_takes_and_does_no_operation() -> None:
    disk = filled("a", "b")
    collector_on(disk).retention_pins.keep([B])
    write(disk, "artifacts/" + "a" * 64)
    write(disk, layout.temp("snapshots/x.json", KEY))
    write(disk, f"sessions/left/{KEY}")
    disk.now_s += 1_000 * DAY_S
    steps = len(disk.steps)
    result = swept(disk, is_dry_run=True)
    assert len(disk.steps) == steps
    assert sorted(result.taken.sizes()) == sorted(swept(disk).taken.sizes())
    steps = len(disk.steps)
    trash = swept(disk, is_dry_run=True)
    assert len(disk.steps) == steps
    assert {kind for kind, _ in trash.taken.sizes()} == {Kind.TRASH}
    assert sorted(trash.taken.sizes()) == sorted(swept(disk).taken.sizes())


@pytest.mark.inv("GC-4", "APP-5")
def test_what_a_writer_reuses_is_written_again_before_a_sweep_may_take_it() -> None:
    disk = filled("a")
    shared = paths(disk, "snapshots") | paths(disk, "workflows")
    disk.now_s += 13 * HOUR_S
    started(disk, "b")
    assert all((stat := disk.stat(path)) and stat.modified_s == disk.now_s for path in shared)


@pytest.mark.damages
@pytest.mark.inv("GC-4")
@pytest.mark.parametrize("linked", ["trash", "trash/sessions", "trash/snapshots"])
def test_a_link_in_the_trash_leads_a_sweep_to_nobody_elses_files(tmp_path: Path, linked: str) -> None:
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    for root in (mine, theirs):
        apply(LocalStore(root), start_plan("a"))
    target = {"trash": theirs, "trash/sessions": theirs / "sessions", "trash/snapshots": theirs / "snapshots"}[linked]
    (mine / linked).parent.mkdir(exist_ok=True)
    (mine / linked).symlink_to(target)
    before = sorted(path for path in theirs.rglob("*") if path.is_file())
    when = (mine / "sessions" / A).stat().st_mtime + 2 * DAYS * DAY_S
    collector = LocalCollector(mine)
    found = collect(collector, collector.retention_pins, CollectCommand(days=DAYS, now_s=when))
    assert "is a link" in str(found.failure)
    assert found.taken == Due()
    assert sorted(path for path in theirs.rglob("*") if path.is_file()) == before
    assert LocalStore(mine).load(session_id("a")) is not None


@pytest.mark.damages
@pytest.mark.inv("GC-4")
def test_a_session_that_is_a_link_to_the_empty_place_of_a_disk_stays_with_its_content(tmp_path: Path) -> None:
    store, disk, place = tmp_path / "data", tmp_path / "disk", tmp_path / "place"
    apply(LocalStore(store), start_plan("a"))
    place.mkdir()
    linked = store / "sessions" / A
    when = linked.stat().st_mtime + 2 * DAYS * DAY_S
    linked.rename(disk)
    linked.symlink_to(place)
    for _ in range(2):
        collector = LocalCollector(store)
        collected = collect(collector, collector.retention_pins, CollectCommand(days=DAYS, now_s=when))
        assert len(collected.blockers) == 1
    assert LocalCollector(store).retention_pins.keep([A]) == {A}
    linked.unlink()
    linked.symlink_to(disk)
    opened_again = LocalStore(store)
    session = opened_again.load(session_id("a"))
    assert session is not None
    assert_readable(opened_again, session)
