"""What may never change silently: digests, derived ids, tokens, and the bytes of a small history.

`hashes.json` is written once, by running these tests with INTERLOCK_WRITE_GOLDENS=facts, and compared ever after. A
change of it is a change of format: until the first tag it takes a line in CHANGELOG, afterwards it is not made.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.golden.committed import is_writing
from tests.support.record import (
    ATTEMPT,
    KINDS,
    NODE,
    RUN,
    SESSION,
    WORKFLOW_HASH,
    History,
    Sent,
    complete,
    ref_of,
    running,
    sample,
    stamps,
)

from interlock.kernel.canonical import Json, canonical_bytes, digest_of, digest_of_bytes
from interlock.kernel.ids import (
    RunId,
    SigningKey,
    SnapshotRef,
    ack_attempt,
    derived_id,
    fork_attempt,
    minted_id,
    node_of_attempt,
)
from interlock.record.events import Actor, parse_event
from interlock.record.manifest import build_group
from interlock.record.snapshot import build_snapshot, parse_snapshot
from interlock.record.tokens import AttemptRef, StateRef, TokenFault, TokenKind, TokenRef, decode_long, mint

FILE = Path(__file__).parent / "hashes.json"
KEY = SigningKey(bytes(range(32)))

VALUES: dict[str, Json] = {
    "null": None,
    "empty object": {},
    "empty array": [],
    "scalars": [True, False, 0, -1, 2**53 - 1, -(2**53) + 1, "", "text"],
    "floats": [0.5, -0.0, 1.0, 1e21, 1e-7, 5e-324, 1.7976931348623157e308],
    "keys": {"b": 1, "a": 2, "é": 3, "\ufb33": 4, "\U0001f600": 5, "": 6, "\n": 7},
    "escapes": '"\\/\b\f\n\r\t\u0000\u001f\u007f\u2028',
    "nested": {"a": [{"b": [[], {}]}]},
}

STATE = StateRef(session=SESSION, run=RUN, node=NODE, workflow_hash=WORKFLOW_HASH)
ACK = AttemptRef(kind=TokenKind.ACK, session=SESSION, run=RUN, node=NODE, attempt=ATTEMPT)
REFS: dict[str, TokenRef] = {
    "state": STATE,
    "ack": ACK,
    "fork": replace(ACK, attempt=fork_attempt(NODE, 0)),
    "checkpoint": replace(ACK, kind=TokenKind.CHECKPOINT),
}


def digests() -> dict[str, Json]:
    return {name: digest_of(value) for name, value in VALUES.items()}


def ids() -> dict[str, Json]:
    attempt = ack_attempt(NODE)
    return {
        "minted": minted_id("sess", unix_ms=1_767_323_045_678, entropy=bytes(range(10))),
        "ack attempt": attempt,
        "fork attempt 0": fork_attempt(NODE, 0),
        "fork attempt 254": fork_attempt(NODE, 254),
        "node of the ack attempt": node_of_attempt(attempt),
        "root": derived_id("node", RUN, "root"),
        "output": derived_id("out", attempt, "notes"),
        "context": derived_id("ctx", attempt, "context"),
        "nothing": derived_id("x"),
    }


def tokens() -> dict[str, Json]:
    return {name: mint(ref, KEY) for name, ref in REFS.items()}


def snapshots() -> dict[str, Json]:
    states = {"running": running("b", "a", skipped=("c",)), "complete": complete("a", "b")}
    made = {name: build_snapshot(WORKFLOW_HASH, state) for name, state in states.items()}
    return {name: {"bytes": one.to_bytes().decode(), "ref": ref_of(one)} for name, one in made.items()}


def kinds() -> dict[str, Json]:
    return {kind: digest_of_bytes(parse_event(canonical_bytes(sample(kind))).to_bytes()) for kind in KINDS}


def history() -> History:
    """A start, an advance, a refusal, the advance after it, a fork of the root, a checkpoint, and a second run."""
    made = History(stamps=stamps(actor=Actor(type="agent", identifier="client 1.2")))
    root = made.start(sent=Sent(context={"goal": "Mend it", "n": 1.0}, autonomy="full_auto_never_stop"))
    child = made.advance(root, Sent(notes="Erledigt: überall, 日本.", context={"n": None, "é": [0.5]}))
    refused = made.advance(child, is_refused=True)
    made.advance(refused, Sent(notes="Now with notes."))
    made.advance(root, Sent(notes="Another way."))
    made.checkpoint(child, Sent(notes="So far."))
    made.start(RunId(f"{RUN[:-1]}2"))
    return made


def log() -> dict[str, Json]:
    segments: list[Json] = []
    groups: list[Json] = []
    count, pinned = 0, frozenset[SnapshotRef]()
    for segment in history().segments:
        group = build_group(SESSION, manifest_index=count, segment=segment.data, events=segment.events, pinned=pinned)
        count, pinned = count + group.lines, pinned | set(group.pins)
        segments.append(segment.data.decode())
        groups.append(group.data.decode())
    return {"segments": segments, "groups": groups}


SECTIONS: dict[str, Callable[[], dict[str, Json]]] = {
    "digests": digests,
    "ids": ids,
    "tokens": tokens,
    "snapshots": snapshots,
    "kinds": kinds,
    "log": log,
}


def committed() -> dict[str, dict[str, Json]]:
    if is_writing("facts"):
        text = json.dumps({name: made() for name, made in SECTIONS.items()}, indent=1, ensure_ascii=False)
        FILE.write_text(text + "\n", encoding="utf-8")
    return json.loads(FILE.read_text(encoding="utf-8"))


@pytest.mark.inv("ID-2", "ID-3", "TOK-1", "APP-3")
@pytest.mark.parametrize("section", SECTIONS)
def test_what_was_written_down_is_what_comes_out_today(section: str) -> None:
    assert SECTIONS[section]() == committed()[section]


def test_the_goldens_hold_these_sections_and_no_others() -> None:
    assert list(committed()) == list(SECTIONS)


@pytest.mark.inv("TOK-1")
@pytest.mark.parametrize("name", REFS)
def test_a_committed_token_still_verifies(name: str) -> None:
    token = committed()["tokens"][name]
    assert isinstance(token, str)
    assert decode_long(token).verify([KEY]) == REFS[name]
    assert isinstance(decode_long(token).verify([SigningKey(bytes(32))]), TokenFault)


@pytest.mark.inv("EVT-1")
def test_the_committed_segments_and_snapshots_are_still_read() -> None:
    segments = committed()["log"]["segments"]
    assert isinstance(segments, list)
    lines = "".join(str(segment) for segment in segments).encode().splitlines()
    events = [parse_event(line) for line in lines]
    assert [event.event_index for event in events] == list(range(len(lines)))
    assert events == history().events
    for snapshot in committed()["snapshots"].values():
        assert isinstance(snapshot, dict)
        data = str(snapshot["bytes"]).encode()
        assert parse_snapshot(data).to_bytes() == data
        assert digest_of_bytes(data) == snapshot["ref"]
