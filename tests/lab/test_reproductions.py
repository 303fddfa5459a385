"""What an attack found, played again: an acknowledged advance that is lost, and lost bytes that look sound."""

from dataclasses import replace

import pytest
from tests.lab.faulty_files import Fault, Gate, Operation
from tests.lab.processes import (
    Process,
    begun,
    files_on,
    last,
    reading_of,
    steps_of,
    survivors_of,
    tokens_in,
    while_hanging,
)

from interlock.kernel.errors import ErrorCode
from interlock.store.ports.errors import Health, SessionUnhealthyError
from interlock.testing.harness import ToolResult
from interlock.testing.power_cut import CrashDisk, InjectedFault, PowerCutError


def started() -> tuple[CrashDisk, ToolResult]:
    """Return a disk with one run, and the answer of its start."""
    disk = CrashDisk()
    first = Process(disk).harness.start("test.lab", goal="Survive")
    assert not first.is_error
    return disk, first


def manifest_sync(disk: CrashDisk, first: ToolResult) -> Operation:
    """Return the operation that makes the group of an advance durable."""
    return last(steps_of(disk, lambda process: process.harness.advance(first)), "sync", "manifest")


def assert_true_now_and_after_a_power_loss(disk: CrashDisk, answers: list[ToolResult]) -> None:
    """Hold that every node which an answer named is recorded, whatever a power loss takes."""
    tokens = {token for answer in answers if not answer.is_error for token in tokens_in(answer)}
    for state in (disk, *survivors_of(disk)):
        reading = reading_of(state)
        assert reading.flaws == []
        assert [token for token in tokens if not reading.names(token)] == []
        assert len(reading.advances) == len(set(reading.advances))


def assert_goes_on(disk: CrashDisk, first: ToolResult) -> None:
    """Hold that the repeated call works in a process that has seen nothing, and is recorded once."""
    again = Process(disk).harness.advance(first)
    assert not again.is_error, again.text
    assert len(reading_of(disk).advances) == 1
    assert_true_now_and_after_a_power_loss(disk, [again])


@pytest.mark.inv("CRASH-3", "APP-6")
@pytest.mark.parametrize("error", [5, 28])
@pytest.mark.parametrize("call", ["repeats the call", "asks with the stateToken"])
def test_what_another_process_answers_while_a_sync_hangs_that_then_fails_is_never_lost(call: str, error: int) -> None:
    disk, first = started()
    fault = Fault(at=manifest_sync(disk, first), error=error, gate=Gate())
    writer = Process(disk, fault=fault)
    other, answers = writer.another(), list[ToolResult]()

    def meanwhile() -> None:
        answers.append(other.harness.advance(first) if call == "repeats the call" else other.harness.rehydrate(first))
        assert_true_now_and_after_a_power_loss(disk, answers)

    refused = while_hanging(lambda: writer.harness.advance(first), fault, meanwhile)
    assert refused.code in {ErrorCode.STORE_FAILED, ErrorCode.STORE_FULL}
    assert_true_now_and_after_a_power_loss(disk, answers)
    for answer in answers:
        for looked in (other.harness.rehydrate(first), writer.harness.rehydrate(first)):
            assert answer.is_error or not looked.is_error
    assert_goes_on(disk, first)


@pytest.mark.inv("CRASH-3", "APP-6")
def test_what_a_process_itself_answers_while_its_sync_hangs_that_then_fails_is_never_lost() -> None:
    disk, first = started()
    fault = Fault(at=manifest_sync(disk, first), gate=Gate())
    writer, answers = Process(disk, fault=fault), list[ToolResult]()

    def meanwhile() -> None:
        answers.append(begun(lambda: writer.harness.rehydrate(first)).result(30))

    while_hanging(lambda: writer.harness.advance(first), fault, meanwhile)
    assert not answers[0].is_error
    assert_true_now_and_after_a_power_loss(disk, answers)
    assert_goes_on(disk, first)


@pytest.mark.inv("CRASH-3", "APP-5")
@pytest.mark.parametrize("call", ["repeats the call", "asks with the stateToken"])
def test_no_answer_rests_on_a_group_whose_first_sync_failed_and_whose_second_succeeded(call: str) -> None:
    disk, first = started()
    probe = disk.copy()
    Process(probe).harness.advance(first)
    names = [(step.name, step.path.rpartition("/")[2]) for step in probe.steps]
    disk = disk.copy()
    disk.fault = InjectedFault(at=max(at for at, name in enumerate(names) if name == ("sync", "manifest.jsonl")))
    with pytest.raises(PowerCutError):
        Process(disk).harness.advance(first)  # killed after it wrote the group and before it synced it
    disk.fault = None
    fault = Fault(at=Operation(name="sync", kind="manifest", number=0))
    other = Process(disk, fault=fault)
    send = other.harness.advance if call == "repeats the call" else other.harness.rehydrate
    answers = [send(first), send(first)]
    assert_true_now_and_after_a_power_loss(disk, answers)
    assert_goes_on(disk, first)


@pytest.mark.inv("APP-5")
def test_content_whose_directory_failed_to_sync_once_is_written_again_before_it_is_referred_to() -> None:
    disk, first = started()
    killed = disk.copy()
    probe = disk.copy()
    Process(probe).harness.advance(first)
    names = [(step.name, step.path) for step in probe.steps]
    killed.fault = InjectedFault(at=max(at for at, name in enumerate(names) if name == ("sync_dir", "snapshots")))
    with pytest.raises(PowerCutError):
        Process(killed).harness.advance(first)  # killed before the snapshot's name was durable
    killed.fault = None
    fault = Fault(at=Operation(name="sync_dir", kind="content's directory", number=0), drops_names=True)
    other = Process(killed, fault=fault)
    assert other.harness.advance(first).code is ErrorCode.STORE_FAILED
    again = other.harness.advance(first)
    assert not again.is_error
    assert_true_now_and_after_a_power_loss(killed, [again])


@pytest.mark.inv("READ-2", "CRASH-4")
@pytest.mark.parametrize("missing", ["a byte", "two bytes", "a line", "a group", "all"])
def test_a_manifest_that_lost_acknowledged_bytes_at_its_end_is_damaged(missing: str) -> None:
    disk, first = started()
    second = Process(disk).harness.advance(first)
    session = Process(disk).harness.session_of(first)
    path = f"sessions/{session}/manifest.jsonl"
    data = files_on(disk)[path]
    lines = data.splitlines(keepends=True)
    group = max(at for at, line in enumerate(lines) if b"segment_closed" in line)
    kept = {
        "a byte": data[:-1],
        "two bytes": data[:-2],
        "a line": b"".join(lines[:-1]),
        "a group": b"".join(lines[:group]),
        "all": b"",
    }
    number = disk.names_now[path]
    disk.files[number] = replace(disk.files[number], data=kept[missing], durable=kept[missing])
    with pytest.raises(SessionUnhealthyError) as error:
        Process(disk).store.load(session)
    assert error.value.health is (Health.CORRUPT_HEAD if missing == "all" else Health.CORRUPT_TAIL)
    for answer in (Process(disk).harness.rehydrate(second), Process(disk).harness.advance(second)):
        assert answer.code is ErrorCode.SESSION_NOT_HEALTHY
    assert reading_of(disk).flaws != []
