"""Each way in which a stored session can fail to be one of ours is reported with its place."""

from dataclasses import replace

import pytest
from tests.support.crash import WORKFLOW_HASH, apply, opened, run_id, session_id, stamps, start_plan

from interlock.kernel.canonical import digest_of_bytes
from interlock.kernel.ids import EventId, NodeId, SnapshotRef, derived_id
from interlock.record import payloads as data
from interlock.record.append_plan import AppendPlan, EventDraft, stamp
from interlock.record.events import Event
from interlock.record.manifest import build_group, parse_segment_closed
from interlock.store.local import layout
from interlock.store.ports.errors import Health, SessionUnhealthyError, StoreFailureError
from interlock.testing.power_cut import CrashDisk, File

A = session_id("a")
MANIFEST = layout.manifest(A)


@pytest.fixture
def disk() -> CrashDisk:
    disk = CrashDisk()
    apply(opened(disk), start_plan())
    return disk


def put(disk: CrashDisk, path: str, content: bytes) -> None:
    number = disk.names_now.setdefault(path, max(disk.files) + 1)
    disk.files[number] = File(data=content, durable=content)


def manifest_of(disk: CrashDisk) -> bytes:
    return disk.files[disk.names_now[MANIFEST]].data


def attest(disk: CrashDisk, segment: bytes, events: tuple[Event, ...]) -> None:
    """Add a segment and a group for it, with every digest good."""
    lines = manifest_of(disk).count(b"\n")
    stored = opened(disk).load(A)
    assert stored is not None
    pins = frozenset(node.snapshot for node in stored.nodes.values())
    group = build_group(A, manifest_index=lines, segment=segment, events=events, pinned=pins)
    put(disk, layout.segment(A, events[0].event_index, events[-1].event_index), segment)
    put(disk, MANIFEST, manifest_of(disk) + group.data)


def unhealthy(disk: CrashDisk) -> SessionUnhealthyError:
    with pytest.raises(SessionUnhealthyError) as error:
        opened(disk).load(A)
    return error.value


def orphan_plan() -> AppendPlan:
    """A node whose parent never was, and which therefore is no history."""
    ref = SnapshotRef(digest_of_bytes(b"snapshot"))
    node = data.NodeCreated(
        node_kind="step",
        parent_node_id=NodeId(derived_id("node", "nobody")),
        workflow_hash=WORKFLOW_HASH,
        snapshot_ref=ref,
    )
    draft = EventDraft(data=node, run=run_id("a"), node=NodeId(derived_id("node", "new")))
    return AppendPlan(session=A, drafts=(draft,))


@pytest.mark.inv("READ-3")
def test_events_that_contradict_the_log_are_damage_although_every_digest_is_good(disk: CrashDisk) -> None:
    index = opened(disk).load(A)
    assert index is not None
    segment = stamp(orphan_plan(), next_index=index.next_index, stamps=stamps())
    attest(disk, segment.data, segment.events)
    assert unhealthy(disk).health is Health.CORRUPT_TAIL


@pytest.mark.inv("READ-3")
@pytest.mark.parametrize("wrong", ["no newline at the end", "no event", "a later index"])
def test_a_segment_that_is_none_is_damage_although_its_digest_is_good(disk: CrashDisk, wrong: str) -> None:
    session = opened(disk).load(A)
    assert session is not None
    segment = stamp(orphan_plan(), next_index=session.next_index, stamps=stamps())
    content = {
        "no newline at the end": segment.data[:-1],
        "no event": b"{}\n",
        "a later index": stamp(orphan_plan(), next_index=session.next_index + 1, stamps=stamps()).data,
    }[wrong]
    attest(disk, content, segment.events)
    error = unhealthy(disk)
    assert error.where == f"events/{session.next_index:08d}-{session.next_index:08d}.jsonl"


@pytest.mark.inv("EVT-2", "READ-3")
def test_an_event_of_a_newer_interlock_is_not_damage(disk: CrashDisk) -> None:
    session = opened(disk).load(A)
    assert session is not None
    segment = stamp(orphan_plan(), next_index=session.next_index, stamps=stamps())
    attest(disk, segment.data.replace(b'"v":1', b'"v":7'), segment.events)
    assert unhealthy(disk).health is Health.UNKNOWN_VERSION


@pytest.mark.inv("READ-3")
def test_an_attested_segment_that_is_missing_is_named(disk: CrashDisk) -> None:
    (segment,) = [path for path in disk.names_now if path.endswith(".jsonl") and "events" in path]
    del disk.names_now[segment]
    error = unhealthy(disk)
    assert (error.health, error.found) == (Health.CORRUPT_HEAD, "missing")
    assert segment.endswith(error.where)


@pytest.mark.inv("READ-3")
@pytest.mark.parametrize("change", [{"first_event_index": 9}, {"segment_rel_path": "events/../x.jsonl"}])
def test_a_group_out_of_sequence_is_damage(disk: CrashDisk, change: dict[str, object]) -> None:
    line, rest = manifest_of(disk).split(b"\n", 1)
    record = parse_segment_closed(line).changed(**change)
    put(disk, MANIFEST, record.to_bytes() + b"\n" + rest)
    assert unhealthy(disk).found == "events out of sequence"


@pytest.mark.inv("FOLLOW-2")
def test_a_manifest_that_lost_its_last_verified_group_in_place_is_read_from_the_start(disk: CrashDisk) -> None:
    store = opened(disk)
    assert store.load(A) is not None
    good = manifest_of(disk)
    number = disk.names_now[MANIFEST]
    disk.files[number] = replace(disk.files[number], data=good.replace(b"sha256", b"sha257", 1) + b"\n")
    with pytest.raises(SessionUnhealthyError):
        store.load(A)


@pytest.mark.inv("CRASH-6")
def test_files_beside_the_segments_that_are_none_alter_nothing(disk: CrashDisk) -> None:
    before = opened(disk).load(A)
    assert before is not None
    following = f"{layout.events_dir(A)}/{before.next_index:08d}"
    put(disk, f"{following}-00000099.jsonl", b"not a segment\n")
    put(disk, f"{following}-00000099.jsonl.abc.tmp", b"left over")
    put(disk, MANIFEST, manifest_of(disk) + b'{"by')
    assert unhealthy(disk).health is Health.CORRUPT_TAIL
    segment = stamp(orphan_plan(), next_index=before.next_index, stamps=stamps())
    put(disk, f"{following}-{before.next_index:08d}.jsonl", segment.data)
    assert opened(disk).load(A) == before


def test_a_disk_that_fails_while_reading_is_a_failure_and_no_damage(disk: CrashDisk) -> None:
    class Failing(CrashDisk):
        def read(self, path: str, offset: int = 0, bytes_max: int | None = None) -> bytes:  # noqa: ARG002 — none can be read
            raise OSError(5, "made to fail")

    failing = Failing(disk.files, disk.names_now, disk.entries_durable)
    store = opened(failing)
    session = opened(disk).load(A)
    assert session is not None
    tip = session.nodes[next(iter(session.nodes))]
    with pytest.raises(StoreFailureError):
        store.load(A)
    with pytest.raises(StoreFailureError):
        store.snapshot(tip.snapshot)
    put(failing, layout.KEYRING, b"{}")
    with pytest.raises(StoreFailureError):
        store.keys()
    with pytest.raises(StoreFailureError):
        store.ensure_keys()


def test_event_ids_are_fresh_and_never_part_of_what_is_equal() -> None:
    one, other = CrashDisk(), CrashDisk()
    assert apply(opened(one), start_plan()) == apply(opened(other), start_plan())
    assert EventId(derived_id("evt", 0)) not in str(opened(one).load(A))
