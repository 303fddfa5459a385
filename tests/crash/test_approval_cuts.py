"""Cut the power at every write of a person's answer: afterwards it is given or not, and in the end it counts once."""

import pytest
from tests.support.approvals import asking, given, replying
from tests.support.crash import opened
from tests.support.modes import session_of
from tests.support.shares import share_of
from tests.support.verify import unsound

from interlock.kernel.errors import Refusal
from interlock.service.trust.approve import ApprovalReport
from interlock.testing.harness import CounterClock, FixedKeyRing, Harness, ToolResult
from interlock.testing.power_cut import CrashDisk, InjectedFault, PowerCutError

WAYS = ("command", "client")


def afresh(disk: CrashDisk, first_id: int) -> Harness:
    """Return the server as a new process on this disk has it; its ids are other ones than those before."""
    return Harness.over(opened(disk), asking(), clock=CounterClock(first_id), keys=FixedKeyRing())


def at_the_question() -> tuple[CrashDisk, ToolResult, ToolResult]:
    disk = CrashDisk()
    harness = afresh(disk, 1)
    start = harness.start("test.flow", goal="Ship")
    return disk, start, harness.advance(start, "The plan: change one file, and test it.")


def approve(way: str, disk: CrashDisk, start: ToolResult, waiting: ToolResult, first_id: int) -> None:
    """Approve in a new process: with the command, or as the user of the client that asks."""
    harness = afresh(disk, first_id)
    if way == "command":
        assert isinstance(given(harness, start), ApprovalReport)
    else:
        assert replying(harness, "accept").advance(waiting, None)["pending"]["stepId"] == "b"


def choices(disk: CrashDisk, start: ToolResult) -> list[object]:
    """Return the answers that the log has."""
    harness = afresh(disk, 5_000)
    found = [one.data for one in session_of(harness, start).outside.events.values()]
    assert {one.assurance for one in found} <= {"observed"}
    return [one.fields["choice"] for one in found]


def assert_given_or_not(disk: CrashDisk, start: ToolResult, waiting: ToolResult) -> int:
    """Check what is left of an answer, then approve again; return how many answers were left."""
    before = choices(disk, start)
    assert before in ([], ["approve"])
    after = afresh(disk, 6_000)
    answer = after.advance(waiting, None)
    if before:
        # The answer counts, whether or not the step had taken it, and a second one is refused.
        assert answer["pending"]["stepId"] == "b"
        assert isinstance(given(after, start), Refusal)
    else:
        assert answer["waiting"]["for"] == "approval"
        assert isinstance(given(after, start), ApprovalReport)
        assert after.advance(waiting, None)["pending"]["stepId"] == "b"
    assert choices(disk, start) == ["approve"]
    return len(before)


@pytest.mark.exhaustive
@pytest.mark.inv("APPR-2", "CRASH-1")
@pytest.mark.parametrize("way", WAYS)
def test_power_lost_at_a_write_of_an_answer_leaves_it_given_or_not(way: str) -> None:
    prepared, start, waiting = at_the_question()
    whole = prepared.copy()
    done = len(whole.steps)
    approve(way, whole, start, waiting, 1_000)
    writes = len(whole.steps)
    seen: set[int] = set()
    for at in share_of(range(done, writes), 20):
        disk = prepared.copy()
        disk.fault = InjectedFault(at=at, keep_bytes=None)
        with pytest.raises(PowerCutError):
            approve(way, disk, start, waiting, 1_000)
        disk.fault = None
        for left in share_of(disk.survivors(), 1_000):
            seen.add(assert_given_or_not(left, start, waiting))
    assert seen == {0, 1}, "the power was cut before and after the answer was recorded"
    assert assert_given_or_not(whole, start, waiting) == 1
    assert unsound(afresh(whole, 9_000).store) == []
