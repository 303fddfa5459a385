"""What varies from call to call, what is kept between calls, and what is noticed when the ground moves under one."""

import json
import re
from dataclasses import replace
from typing import Any, cast

import pytest

from interlock.kernel.budgets import WORKFLOWS_KEPT_MAX
from interlock.kernel.canonical import canonical_bytes, digest_of_bytes
from interlock.kernel.errors import ErrorCode
from interlock.kernel.ids import ID_BODY_PATTERN, SnapshotRef, WorkflowHash
from interlock.record.snapshot import ExecutionSnapshot
from interlock.service.clock import (
    NoTrace,
    StderrTrace,
    SystemClock,
    mint_event,
    mint_run,
    mint_session,
    recorded_at,
)
from interlock.service.run.plans import Plans
from interlock.store.memory.store import MemoryStore
from interlock.store.ports.errors import ContentDamagedError
from interlock.store.ports.keys import KeyRing
from interlock.testing.harness import FIXED_KEYS, CounterClock, FixedKeyRing, Harness, linear_workflow

DOCUMENT = linear_workflow("test.abc", "a", "b", "c")


@pytest.mark.inv("ID-1")
@pytest.mark.parametrize(("mint", "prefix"), [(mint_session, "sess"), (mint_run, "run"), (mint_event, "evt")])
def test_the_real_shell_mints_ids_that_differ_and_fit_their_pattern(mint: Any, prefix: str) -> None:
    minted = {mint(SystemClock()) for _ in range(100)}
    assert len(minted) == 100
    assert all(re.fullmatch(f"{prefix}_{ID_BODY_PATTERN}", one) for one in minted)


def test_a_time_is_recorded_in_utc_with_milliseconds() -> None:
    assert recorded_at(CounterClock()) == "2025-01-01T00:00:00.000Z"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", recorded_at(SystemClock()))


@pytest.mark.inv("SRV-6")
def test_a_trace_writes_timed_spans_to_stderr_alone(capsys: pytest.CaptureFixture[str]) -> None:
    harness = Harness.in_memory(DOCUMENT)
    traced = replace(harness, ports=replace(harness.ports, read=replace(harness.ports.read, trace=StderrTrace())))
    traced.advance(traced.start("test.abc"))
    said = capsys.readouterr()
    spans = [json.loads(line) for line in said.err.splitlines()]
    assert [span["span"] for span in spans] == ["append", "render", "load", "decide", "append", "render"]
    assert all(span["ms"] >= 0 for span in spans)
    assert said.out == ""


def test_without_a_trace_nothing_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    with NoTrace().span("x"):
        pass
    assert capsys.readouterr().err == ""


def test_a_workflow_that_fell_out_of_memory_is_loaded_again() -> None:
    documents = [linear_workflow(f"test.w{at}", "a", "b") for at in range(WORKFLOWS_KEPT_MAX + 5)]
    harness = Harness.in_memory(*documents)
    answers = [harness.start(str(document["id"])) for document in documents]
    assert [harness.advance(answer)["pending"]["stepId"] for answer in answers] == ["b"] * len(answers)


class Substitute(MemoryStore):
    """Gives out other content than was asked for, as a store with a bug would."""

    def __init__(self, snapshot: ExecutionSnapshot | None = None, workflow: bytes | None = None) -> None:
        super().__init__()
        self._snapshot = snapshot
        self._workflow = workflow

    def snapshot(self, ref: SnapshotRef) -> ExecutionSnapshot:
        return self._snapshot or super().snapshot(ref)

    def workflow_bytes(self, workflow_hash: WorkflowHash) -> bytes:
        return self._workflow if self._workflow is not None else super().workflow_bytes(workflow_hash)


def root_of(harness: Harness, workflow_id: str) -> tuple[SnapshotRef, WorkflowHash]:
    session = harness.store.load(harness.session_of(harness.start(workflow_id)))
    assert session is not None
    (run,) = session.runs.values()
    assert run.root is not None
    return session.nodes[run.root].snapshot, run.workflow_hash


@pytest.mark.inv("SNAP-4")
def test_a_snapshot_of_another_workflow_or_impossible_in_its_own_is_damage() -> None:
    harness = Harness.in_memory(DOCUMENT, linear_workflow("test.xyz", "x"))
    ref, workflow_hash = root_of(harness, "test.abc")
    other, other_hash = root_of(harness, "test.xyz")
    with pytest.raises(ContentDamagedError, match="another workflow"):
        Plans(Substitute(snapshot=harness.store.snapshot(other))).snapshot(ref, workflow_hash)
    plan = harness.store.workflow_bytes(other_hash)
    foreign = harness.store.snapshot(other).changed(workflow_hash=workflow_hash)
    store = Substitute(snapshot=foreign, workflow=harness.store.workflow_bytes(workflow_hash))
    with pytest.raises(ContentDamagedError, match="not in the plan"):
        Plans(store).snapshot(ref, workflow_hash)
    assert Plans(Substitute(workflow=plan)).workflow(other_hash).workflow_id == "test.xyz"


@pytest.mark.inv("SNAP-4")
def test_a_snapshot_that_is_kept_is_still_none_of_another_workflow() -> None:
    harness = Harness.in_memory(DOCUMENT, linear_workflow("test.xyz", "x"))
    ref, workflow_hash = root_of(harness, "test.abc")
    _, other_hash = root_of(harness, "test.xyz")
    plans = Plans(harness.store)
    assert plans.snapshot(ref, workflow_hash) == harness.store.snapshot(ref)
    with pytest.raises(ContentDamagedError, match="another workflow"):
        plans.snapshot(ref, other_hash)


@pytest.mark.inv("SNAP-1")
def test_a_pinned_workflow_that_is_none_is_damage() -> None:
    broken = canonical_bytes({"schemaVersion": 1, "name": 1})
    with pytest.raises(ContentDamagedError, match="pinned workflow"):
        Plans(Substitute(workflow=broken)).workflow(cast("WorkflowHash", digest_of_bytes(broken)))


class VanishingKeyRing(FixedKeyRing):
    """A key ring that is gone after it was read once."""

    def __init__(self) -> None:
        super().__init__()
        self._looks = 0

    def keys(self, *, fresh: bool = False) -> KeyRing | None:
        self._looks += 1
        return super().keys(fresh=fresh) if self._looks == 1 else None


@pytest.mark.inv("KEY-3")
def test_a_call_that_shows_a_step_signs_with_the_ring_that_verified_its_token() -> None:
    harness = Harness.in_memory(DOCUMENT)
    first = harness.start("test.abc")
    read = replace(harness.ports.read, key_ring=VanishingKeyRing())
    vanishing = replace(harness, ports=replace(harness.ports, read=read))
    shown = vanishing.rehydrate(first)
    assert shown.structure["nextCall"] == harness.rehydrate(first).structure["nextCall"]
    assert vanishing.rehydrate(first).code is ErrorCode.TOKEN_BAD_SIGNATURE


@pytest.mark.inv("TOK-5")
def test_history_that_vanishes_before_the_lock_is_had_is_lost_history_and_nothing_is_recorded() -> None:
    harness = Harness.in_memory(DOCUMENT)
    first = harness.start("test.abc")
    elsewhere = MemoryStore()
    moved = replace(harness, ports=replace(harness.ports, writer=elsewhere))
    assert moved.advance(first).code is ErrorCode.TOKEN_UNKNOWN_NODE
    assert elsewhere.load(harness.session_of(first)) is None


@pytest.mark.inv("KEY-1")
def test_the_fixed_key_ring_never_changes() -> None:
    ring = FixedKeyRing()
    assert ring.keys() == ring.keys(fresh=True) == ring.ensure_keys() == FIXED_KEYS
