"""Each operation of a call fails in turn, reads and the key ring included; then the call is repeated as it is advised.

What a refusal says of the record is compared with what a process reads that knows nothing of the call. The repeat, in
this process or in another one, leaves one run, one advance, one checkpoint or one copy.
"""

import errno
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
from tests.support.bundles import exported, restoring
from tests.support.shares import share_of
from tests.support.words import many_words

from interlock.kernel.canonical import Json
from interlock.kernel.errors import ErrorCode, Refusal
from interlock.kernel.ids import RunId, SessionId
from interlock.service.failures import EXPECTED_ERRORS, refusal_of
from interlock.service.transfer.import_ import import_session
from interlock.store.local import layout
from interlock.store.local.files import FileOps
from interlock.store.local.store import LocalStore
from interlock.testing.harness import CounterClock, Harness, ToolResult, linear_workflow
from interlock.testing.power_cut import CrashDisk, ThreadLocks
from interlock.views.session import Session

pytestmark = pytest.mark.exhaustive

DOCUMENT = linear_workflow("test.abc", "a", "b")
ALTERING = frozenset(
    {"make_dir", "write", "create", "append", "write_at", "truncate", "sync", "sync_dir", "rename", "link", "unlink"}
)


@dataclass(frozen=True, kw_only=True)
class Failure:
    """The operation of this number fails: before or after it is done, and with `is_lasting` all later ones too."""

    at: int
    is_done: bool
    is_lasting: bool


class FailingDisk:
    """A disk of which any operation can be made to fail: each is counted from when a failure is set."""

    def __init__(self, disk: CrashDisk) -> None:
        self._disk = disk
        self.failure: Failure | None = None
        self.made: list[str] = []

    def __getattr__(self, name: str) -> Callable[..., object]:
        operation: Callable[..., object] = getattr(self._disk, name)

        def run(*arguments: object, **named: object) -> object:
            number = len(self.made)
            self.made.append(name)
            failure = self.failure
            fails = failure is not None and (number == failure.at or (failure.is_lasting and number > failure.at))
            if fails and failure is not None and not (failure.is_done and number == failure.at):
                raise OSError(errno.EIO, "made to fail")
            result = operation(*arguments, **named)
            if fails:
                raise OSError(errno.EIO, "made to fail")
            return result

        return run


class Process:
    """A process over a disk, which remembers what a process remembers."""

    def __init__(self, disk: CrashDisk, first_id: int = 1) -> None:
        self.disk = disk
        self.failing = FailingDisk(disk)
        store = LocalStore(Path("/nowhere"), files=cast("FileOps", self.failing), locks=ThreadLocks())
        self.harness = Harness.over(store, DOCUMENT, clock=CounterClock(first_id))

    def sessions(self) -> dict[str, Session]:
        """Return the sessions that have history."""
        store = self.harness.store
        found = {session: store.load(session) for session in store.sessions()}
        return {session: facts for session, facts in found.items() if facts is not None}

    def runs(self) -> set[RunId]:
        """Return the runs of all sessions."""
        return {run for session in self.sessions().values() for run in session.runs}

    def events(self) -> int:
        """Return how many events all sessions hold."""
        return sum(session.next_index for session in self.sessions().values())


def afresh(disk: CrashDisk) -> Process:
    """Return a process that starts now, on a copy of a disk."""
    return Process(disk.copy(), first_id=1_000_000)


def settled(disk: CrashDisk) -> Process:
    """Return a process that starts now, on a copy of a disk, after everything that may count was made to count."""
    process = afresh(disk)
    for name in disk.names(layout.SESSIONS):
        with process.harness.store.hold(SessionId(name)):
            pass
    return process


def failures(make: Callable[[], Process], call: Callable[[Process], object]) -> Iterator[Failure]:
    """Yield every failure of a call's operations."""
    probe = make()
    probe.failing.made.clear()
    call(probe)
    for at, name in share_of(list(enumerate(probe.failing.made)), 3):
        for is_lasting in (False, True):
            for is_done in (False, True) if name in ALTERING else (False,):
                yield Failure(at=at, is_done=is_done, is_lasting=is_lasting)


def fail(process: Process, failure: Failure, call: Callable[[Process], ToolResult]) -> ToolResult:
    """Make a call under a failure."""
    process.failing.made.clear()
    process.failing.failure = failure
    return call(process)


def assert_is_true(refused: ToolResult, *, is_recorded: bool) -> None:
    """Compare what a refusal says with the record."""
    assert refused.code is ErrorCode.STORE_FAILED
    if is_recorded:
        assert refused["details"]["mayBeRecorded"] is True
    assert ("may be recorded" in refused["message"]) == refused["details"]["mayBeRecorded"]
    assert ("nothing was recorded this time" in refused["message"]) != refused["details"]["mayBeRecorded"]


START: dict[str, Any] = {"goal": "Once"}


def started() -> tuple[Process, ToolResult]:
    process = Process(CrashDisk())
    return process, process.harness.start("test.abc", goal="Before")


def first_start() -> tuple[Process, dict[str, Any]]:
    return Process(CrashDisk()), START


def later_start() -> tuple[Process, dict[str, Any]]:
    return started()[0], START


def joining_start() -> tuple[Process, dict[str, Any]]:
    process, before = started()
    return process, {**START, "sessionId": before["run"]["sessionId"]}


STARTS = {"first": first_start, "beside another": later_start, "in a session that is there": joining_start}


@pytest.mark.inv("FAIL-1", "FAIL-2", "APP-7")
@pytest.mark.parametrize("kind", STARTS)
def test_a_start_that_fails_anywhere_says_what_is_true_and_is_one_run_when_it_is_repeated(kind: str) -> None:
    arguments = STARTS[kind]()[1]

    def call(process: Process) -> ToolResult:
        return process.harness.start("test.abc", **arguments)

    seen = set[bool]()
    for failure in failures(lambda: STARTS[kind]()[0], call):
        process, _ = STARTS[kind]()
        before = process.runs()
        answer = fail(process, failure, call)
        # An agent that is advised to repeat may do so while the disk still fails.
        for _ in range(3):
            if answer.is_error:
                assert_is_true(answer, is_recorded=settled(process.disk).runs() != before)
                seen.add(answer["details"]["mayBeRecorded"])
                if answer["details"]["mayBeRecorded"]:
                    assert_is_one_run_in_another_process(answer, afresh(process.disk), before, call)
                answer = call(process)
        process.failing.failure = None
        again = answer if not answer.is_error else call(process)
        assert settled(process.disk).runs() - before == {RunId(again["run"]["runId"])}
        assert afresh(process.disk).runs() - before == {RunId(again["run"]["runId"])}
        assert process.harness.advance(again)["pending"]["stepId"] == "b"
    assert seen == {False, True}


def assert_is_one_run_in_another_process(
    refused: ToolResult, process: Process, before: set[RunId], call: Callable[[Process], ToolResult]
) -> None:
    """Do what a refusal advises after a restart: look for the run by its ids, and start it if there is none.

    A run that was written and that nobody settled counts for no reader; it may come to count later, beside the one that
    is started here, and nobody has worked on it (decision 0032).
    """
    undecided = settled(process.disk).runs() - process.runs()
    found = refused["details"]["correctedCall"]
    candidates = process.harness.call(found["tool"], found["arguments"])["candidates"]
    assert [one["run"]["runId"] for one in candidates] == sorted(process.runs() - before)
    answer = (
        process.harness.rehydrate(candidates[0]["nextCall"]["arguments"]["stateToken"]) if candidates else call(process)
    )
    assert process.runs() - before - undecided == {RunId(answer["run"]["runId"])}
    assert process.harness.advance(answer)["pending"]["stepId"] == "b"


TOKEN_CALLS: dict[str, Callable[[Process, ToolResult], ToolResult]] = {
    "advance": lambda process, first: process.harness.advance(first, many_words(600), output=with_artifact()),
    "refused attempt": lambda process, first: process.harness.advance(first, None, context={"seen": 1}),
    "checkpoint": lambda process, first: process.harness.checkpoint(first),
}


def with_artifact() -> dict[str, Json]:
    return {"notesMarkdown": many_words(600), "artifacts": [{"kind": "mine"}]}


@pytest.mark.inv("FAIL-1", "APP-7")
@pytest.mark.parametrize("kind", TOKEN_CALLS)
def test_a_call_with_a_token_that_fails_anywhere_says_what_is_true_and_counts_once(kind: str) -> None:
    base, first = started()

    def make() -> Process:
        return Process(base.disk.copy(), first_id=1_000)

    def call(process: Process) -> ToolResult:
        return TOKEN_CALLS[kind](process, first)

    seen = set[bool]()
    for failure in failures(make, call):
        process = make()
        before = afresh(process.disk).events()
        answer = fail(process, failure, call)
        is_recorded = settled(process.disk).events() > before
        if answer.is_error:
            assert_is_true(answer, is_recorded=is_recorded)
            seen.add(answer["details"]["mayBeRecorded"])
        process.failing.failure = None
        other = afresh(process.disk)
        again = call(process)
        assert not again.is_error
        assert call(other) == again == call(afresh(process.disk))
        once = settled(process.disk).events()
        assert once == settled(other.disk).events()
        assert (call(process), settled(process.disk).events()) == (again, once)
    assert seen == {False, True}


def bundle() -> bytes:
    process, first = started()
    process.harness.advance(first)
    return exported(process.harness, SessionId(first["run"]["sessionId"])).data


BUNDLE = bundle()


@pytest.mark.inv("FAIL-1", "FAIL-3")
@pytest.mark.parametrize("is_taken", [False, True], ids=["under its id", "under a fresh id"])
def test_an_import_that_fails_anywhere_names_the_session_to_look_at(*, is_taken: bool) -> None:
    def make() -> Process:
        process = Process(CrashDisk(), first_id=500)
        if is_taken:
            call(process)
        return process

    def call(process: Process) -> SessionId | Refusal:
        try:
            outcome = import_session(restoring(process.harness), BUNDLE)
        except EXPECTED_ERRORS as error:
            return refusal_of(error)
        assert not isinstance(outcome, Refusal)
        return outcome.restored.session

    seen = set[bool]()
    for failure in failures(make, call):
        process = make()
        before = set(afresh(process.disk).sessions())
        process.failing.made.clear()
        process.failing.failure = failure
        outcome = call(process)
        process.failing.failure = None
        other = afresh(process.disk)
        new = set(settled(process.disk).sessions()) - before
        if not isinstance(outcome, Refusal):
            assert new == {outcome}
            continue
        may_be_recorded = outcome.details["mayBeRecorded"] is True
        seen.add(may_be_recorded)
        assert may_be_recorded or not new
        assert ("may be recorded" in outcome.message) == may_be_recorded
        assert (outcome.envelope()["retry"] == {"kind": "not_retryable"}) == may_be_recorded
        if may_be_recorded:
            assert new <= {str(outcome.details["sessionId"])}
        if str(outcome.details.get("sessionId")) not in other.sessions():
            assert call(other) in other.sessions()
        assert len(set(other.sessions()) - before) == 1
    assert seen == {False, True}
