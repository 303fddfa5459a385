import hashlib
import json

import pytest
from tests.support.record import (
    DIGEST,
    EVENT,
    RUN,
    SESSION,
    WORKFLOW_HASH,
    History,
    node_draft,
    numbered,
    ref_of,
    running,
)

from interlock.kernel.canonical import Json, canonical_bytes
from interlock.kernel.errors import InterlockError
from interlock.kernel.ids import NodeId, RunId, SnapshotRef
from interlock.record.errors import MalformedRecordError, UnknownVersionError
from interlock.record.events import NodeCreatedEvent
from interlock.record.manifest import (
    Group,
    build_group,
    parse_manifest_record,
    parse_segment_closed,
    segment_rel_path,
)
from interlock.record.snapshot import build_snapshot

CLOSED: dict[str, Json] = {
    "v": 1,
    "manifestIndex": 3,
    "sessionId": SESSION,
    "kind": "segment_closed",
    "firstEventIndex": 4,
    "lastEventIndex": 9,
    "segmentRelPath": "events/00000004-00000009.jsonl",
    "sha256": DIGEST,
    "bytes": 1234,
}


PIN: dict[str, Json] = {
    "v": 1,
    "manifestIndex": 4,
    "sessionId": SESSION,
    "kind": "snapshot_pinned",
    "eventIndex": 5,
    "snapshotRef": DIGEST,
    "createdByEventId": EVENT,
}


def refs(*steps: str) -> list[SnapshotRef]:
    return [ref_of(build_snapshot(WORKFLOW_HASH, running(step))) for step in steps]


def group(
    history: History, at: int = -1, *, manifest_index: int = 0, pinned: frozenset[SnapshotRef] = frozenset()
) -> Group:
    segment = history.segments[at]
    return build_group(
        SESSION, manifest_index=manifest_index, segment=segment.data, events=segment.events, pinned=pinned
    )


def lines(made: Group) -> list[dict[str, Json]]:
    return [json.loads(line) for line in made.data.splitlines()]


def with_nodes(*steps: str) -> History:
    """Return a history whose last plan creates a node for each step's snapshot, in this order."""
    history = History()
    root = history.start()
    nodes = [NodeId(numbered("node", 100 + at)) for at in range(len(steps))]
    history.append(
        *(node_draft(RUN, node, root, "step", running(step)) for node, step in zip(nodes, steps, strict=True))
    )
    return history


@pytest.mark.inv("APP-3")
@pytest.mark.parametrize(
    ("bounds", "path"),
    [
        ((0, 0), "events/00000000-00000000.jsonl"),
        ((0, 4999), "events/00000000-00004999.jsonl"),
        ((12345678, 99999999), "events/12345678-99999999.jsonl"),
    ],
)
def test_a_segment_is_named_by_its_bounds_in_eight_digits(bounds: tuple[int, int], path: str) -> None:
    assert segment_rel_path(*bounds) == path


@pytest.mark.inv("APP-3")
def test_a_group_attests_the_exact_bytes_and_bounds_of_its_segment() -> None:
    history = History()
    root = history.start()
    history.advance(root)
    segment = history.segments[-1]
    closed = lines(group(history, manifest_index=2))[0]
    assert closed == {
        "v": 1,
        "manifestIndex": 2,
        "sessionId": SESSION,
        "kind": "segment_closed",
        "firstEventIndex": 3,
        "lastEventIndex": 5,
        "segmentRelPath": "events/00000003-00000005.jsonl",
        "sha256": f"sha256:{hashlib.sha256(segment.data).hexdigest()}",
        "bytes": len(segment.data),
    }


@pytest.mark.inv("APP-3")
def test_a_group_pins_each_snapshot_of_its_segment_once_in_order_of_appearance() -> None:
    history = with_nodes("b", "a", "b", "c", "a")
    made = group(history, manifest_index=7)
    by_event = [event for event in history.segments[-1].events if isinstance(event, NodeCreatedEvent)]
    assert made.pins == tuple(refs("b", "a", "c"))
    assert made.lines == 4
    assert lines(made)[1:] == [
        {
            "v": 1,
            "manifestIndex": 8 + at,
            "sessionId": SESSION,
            "kind": "snapshot_pinned",
            "eventIndex": by_event[first].event_index,
            "snapshotRef": by_event[first].data.snapshot_ref,
            "createdByEventId": by_event[first].event_id,
        }
        for at, first in enumerate((0, 1, 3))
    ]


@pytest.mark.inv("APP-3")
def test_a_snapshot_that_an_earlier_group_pinned_is_not_pinned_again() -> None:
    history = with_nodes("a", "b", "c")
    made = group(history, manifest_index=5, pinned=frozenset(refs("b", "other")))
    assert made.pins == tuple(refs("a", "c"))
    assert [line["manifestIndex"] for line in lines(made)] == [5, 6, 7]
    none = group(history, pinned=frozenset(refs("a", "b", "c")))
    assert (none.lines, none.pins) == (1, ())


@pytest.mark.inv("APP-3")
def test_the_records_of_a_manifest_are_canonical_lines_numbered_without_gap() -> None:
    history = History()
    node = history.start()
    history.start(RunId(numbered("run", 2)))
    for is_refused in (False, True, False):
        node = history.advance(node, is_refused=is_refused)
    manifest, count, pinned = b"", 0, frozenset[SnapshotRef]()
    for at in range(len(history.segments)):
        made = group(history, at, manifest_index=count, pinned=pinned)
        assert made.data.count(b"\n") == made.lines == 1 + len(made.pins)
        manifest, count, pinned = manifest + made.data, count + made.lines, pinned | set(made.pins)
    stored = manifest.split(b"\n")
    assert stored.pop() == b""
    assert [json.loads(line)["manifestIndex"] for line in stored] == list(range(count))
    assert all(canonical_bytes(json.loads(line)) == line for line in stored)


def test_a_group_is_a_function_of_the_bytes_of_its_segment_and_its_place() -> None:
    history = with_nodes("a")
    assert group(history) == group(history)
    assert group(history).data != group(history, manifest_index=1).data
    assert history.segments[-1].data.decode() not in repr(group(history))


def test_a_manifest_record_read_and_written_again_is_the_same_bytes() -> None:
    assert parse_segment_closed(canonical_bytes(CLOSED)).to_bytes() == canonical_bytes(CLOSED)
    assert parse_manifest_record(canonical_bytes(PIN)).to_bytes() == canonical_bytes(PIN)


def refusal_of(line: dict[str, Json] | bytes) -> type[InterlockError]:
    with pytest.raises(InterlockError) as refused:
        parse_segment_closed(line if isinstance(line, bytes) else canonical_bytes(line))
    return type(refused.value)


@pytest.mark.inv("EVT-2")
@pytest.mark.parametrize(
    "newer",
    [
        {**CLOSED, "v": 2},
        {"v": 2},
        {"v": 2, "kind": "segment_closed", "anything": []},
        {**CLOSED, "kind": "segment_dropped"},
        {"v": 1, "kind": "segment_dropped"},
        {**CLOSED, "compression": "zstd"},
    ],
)
def test_a_manifest_record_of_an_unknown_version_kind_or_field_is_newer(newer: dict[str, Json]) -> None:
    assert refusal_of(newer) is UnknownVersionError


@pytest.mark.parametrize("name", CLOSED)
def test_a_manifest_record_without_a_field_is_malformed(name: str) -> None:
    assert refusal_of({key: value for key, value in CLOSED.items() if key != name}) is MalformedRecordError


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("manifestIndex", -1),
        ("manifestIndex", "3"),
        ("manifestIndex", 3.5),
        ("sessionId", SESSION.upper()),
        ("sessionId", RUN),
        ("kind", 5),
        ("kind", []),
        ("kind", {}),
        ("firstEventIndex", -1),
        ("lastEventIndex", None),
        ("segmentRelPath", 5),
        ("sha256", DIGEST.upper()),
        ("sha256", DIGEST[7:]),
        ("bytes", -1),
        ("bytes", "1"),
        ("v", None),
        ("v", "1"),
        ("v", False),
    ],
)
def test_a_manifest_record_with_a_wrong_value_is_malformed(name: str, value: Json) -> None:
    assert refusal_of(CLOSED | {name: value}) is MalformedRecordError


def test_a_pin_does_not_open_a_group() -> None:
    assert refusal_of(PIN) is MalformedRecordError


@pytest.mark.parametrize(
    "line",
    [
        *(b"", b"null", b"7", b"[]", b"{}", b"nonsense", b"\xff\xfe\x00", b"\x00" * 32, b"[" * 100_000),
        canonical_bytes(CLOSED)[:-1],
        canonical_bytes(CLOSED) + canonical_bytes(CLOSED),
    ],
    ids=lambda line: f"{line[:12]!r}-{len(line)}",
)
def test_bytes_that_are_no_manifest_record_are_malformed(line: bytes) -> None:
    assert refusal_of(line) is MalformedRecordError
