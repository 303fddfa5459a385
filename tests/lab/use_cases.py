"""The use cases that the laboratory drives through every cell, and what each of them claims when it answers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, TypeAlias

from tests.lab.independent_reader import Reading
from tests.lab.processes import Process, reading_of, tokens_in
from tests.support.sweep import DAY_S

from interlock.kernel.errors import Refusal
from interlock.kernel.ids import SessionId
from interlock.service.failures import EXPECTED_ERRORS, refusal_of
from interlock.service.ports import ReadPorts
from interlock.service.retention.collect import CollectCommand, Collected, collect
from interlock.service.transfer.export import export_session
from interlock.service.transfer.import_ import import_session
from interlock.service.transfer.restore import Restoring
from interlock.store.ports.errors import PinsDamagedError, StoreFailureError, UpkeepBusyError
from interlock.testing.harness import FIXED_UNIX_MS, ToolResult
from interlock.testing.power_cut import CrashDisk

DAYS = 90
ARTIFACT = {"kind": "report", "rows": [1, 2]}


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A disk with a run under way, an old session, a bundle to import, and what was read of it."""

    disk: CrashDisk
    first: ToolResult
    second: ToolResult
    session: SessionId
    old: SessionId
    bundle: bytes
    before: Reading


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a caller got: an answer with what it claims, or a refusal in words.

    `is_open` says that the store left it open if the call counts, for the commands that word this themselves.
    """

    is_ok: bool
    message: str = ""
    tokens: frozenset[str] = frozenset()
    value: Any = None
    is_open: bool = False
    named: tuple[str, str | None] | None = None
    """The session, and the run if there is one, that a refusal names to be looked for before the call is repeated."""

    @property
    def says_nothing_was_recorded(self) -> bool:
        """Whether a refusal claims that the call left no trace."""
        return "nothing was" in self.message.lower()

    @property
    def says_perhaps(self) -> bool:
        """Whether a refusal leaves open if the call counts."""
        return self.is_open or "may have been" in self.message.lower() or "may be" in self.message.lower()

    def found_by(self, process: "Process") -> bool:
        """Look for what a refusal names, as it advises; a run by the tool that it names."""
        if self.named is None:
            return False
        session, run = self.named
        if run is None:
            return process.store.load(SessionId(session)) is not None
        found = process.harness.call("resume_session", {"sessionId": session, "runId": run})
        return bool(found.structure.get("candidates"))


Run: TypeAlias = Callable[[Process, Stage], Outcome]


@dataclass(frozen=True, kw_only=True)
class UseCase:
    """A call, how often a reading holds what it records, and whether it alters what others see at all.

    `count` of a state after one call is that of the state before plus one. `is_distinct` says that the same call by
    another process is another fact, as the start of a run is.
    """

    name: str
    run: Run
    count: Callable[[Reading, Stage], int]
    is_distinct: bool = False
    holds: Callable[[Reading, Stage, Outcome], bool] = field(default=lambda _reading, _stage, _outcome: True)

    def __str__(self) -> str:
        return self.name


@cache
def _staged() -> Stage:
    disk = CrashDisk(now_s=FIXED_UNIX_MS / 1000)
    process = Process(disk)
    old = process.harness.start("test.lab", goal="Expire")
    disk.now_s += 2 * DAYS * DAY_S
    first = process.harness.start("test.lab", goal="Survive")
    second = process.harness.advance(first)
    session = process.harness.session_of(first)
    elsewhere = Process(CrashDisk(now_s=disk.now_s))
    carried = elsewhere.harness.start("test.lab", goal="Carry")
    bundle = _exported(elsewhere, elsewhere.harness.session_of(carried))
    assert not bundle.message
    return Stage(
        disk=_settled(disk),
        first=first,
        second=second,
        session=session,
        old=process.harness.session_of(old),
        bundle=bundle.value,
        before=reading_of(disk),
    )


def _settled(disk: CrashDisk) -> CrashDisk:
    """Return the disk as the operating system leaves it after a while: everything written back."""
    for path, number in list(disk.names_now.items()):
        disk.sync(path)
        if disk.files[number].is_dir:
            disk.sync_dir(path)
    return disk.copy()


def staged() -> Stage:
    """Return a stage of its own for one cell."""
    stage = _staged()
    return replace(stage, disk=stage.disk.copy())


def outcome_of(work: Callable[[], Any]) -> Outcome:
    """Return what came of a use case as a command reports it."""
    try:
        found = work()
    except EXPECTED_ERRORS as error:
        found = refusal_of(error)
    except (UpkeepBusyError, PinsDamagedError) as error:
        return Outcome(is_ok=False, message=str(error))
    if isinstance(found, Refusal):
        message = f"{found.code}: {found.message} {found.suggestion}"
        return Outcome(is_ok=False, message=message, named=_named(found.details))
    return Outcome(is_ok=True, value=found)


def worded_by_its_command(work: Callable[[], Any]) -> Outcome:
    """Return what came of work whose command says by itself that a failure leaves it open if the work counts."""
    open_failures = list[StoreFailureError]()

    def noted() -> object:
        try:
            return work()
        except StoreFailureError as error:
            open_failures.append(error)
            raise

    return replace(outcome_of(noted), is_open=any(error.may_be_recorded for error in open_failures))


def _named(details: Mapping[str, Any]) -> tuple[str, str | None] | None:
    return (
        (details["sessionId"], details.get("runId"))
        if details.get("mayBeRecorded") and "sessionId" in details
        else None
    )


def called(answer: ToolResult) -> Outcome:
    """Return what came of a tool call."""
    if answer.is_error:
        message = f"{answer.code}: {answer['message']} {answer['suggestion']}"
        return Outcome(is_ok=False, message=message, named=_named(answer.structure.get("details", {})))
    return Outcome(is_ok=True, tokens=frozenset(tokens_in(answer)), value=answer)


def _start(process: Process, _stage: Stage) -> Outcome:
    return called(process.harness.start("test.lab", goal="Begin"))


def _advance(process: Process, stage: Stage) -> Outcome:
    output = {"notesMarkdown": "Done.", "artifacts": [ARTIFACT]}
    return called(process.harness.call("continue_workflow", {"ackToken": stage.second.ack, "output": output}))


def _checkpoint(process: Process, stage: Stage) -> Outcome:
    return called(process.harness.checkpoint(stage.second))


def look(process: Process, stage: Stage) -> Outcome:
    """Ask where the run is."""
    return called(process.harness.rehydrate(stage.second))


def _resume(process: Process, _stage: Stage) -> Outcome:
    return called(process.harness.resume("Survive"))


def _restoring(process: Process) -> Restoring:
    store = process.store
    return Restoring(read=ReadPorts.over(store, store), writer=store, key_ring=store, clock=process.harness.ports.clock)


def _exported(process: Process, session: SessionId) -> Outcome:
    outcome = outcome_of(lambda: export_session(process.store, process.harness.ports.clock, session))
    return Outcome(is_ok=outcome.is_ok, message=outcome.message, value=getattr(outcome.value, "data", None))


def _import(process: Process, stage: Stage) -> Outcome:
    return outcome_of(lambda: import_session(_restoring(process), stage.bundle))


def _imported(reading: Reading, _stage: Stage) -> int:
    goals = [event for one in reading.sessions.values() for event in one.of_kind("context_set")]
    return sum(event["data"]["context"].get("goal") == "Carry" for event in goals)


def _rotate(process: Process, _stage: Stage) -> Outcome:
    return worded_by_its_command(process.store.rotate)


def _rotations(reading: Reading, stage: Stage) -> int:
    old = stage.before.keys[0]
    return 0 if reading.keys[:1] == (old,) else 1 if old in reading.keys else 2


def _keep(process: Process, stage: Stage) -> Outcome:
    return worded_by_its_command(lambda: process.collector.retention_pins.keep([stage.session]))


def _collect(process: Process, _stage: Stage) -> Outcome:
    command = CollectCommand(days=DAYS, now_s=process.disk.now_s)

    def collected() -> Collected:
        found = collect(process.collector, process.collector.retention_pins, command)
        if found.failure is not None:
            raise found.failure
        return found

    return outcome_of(collected)


def _checkpoints(reading: Reading, _stage: Stage) -> int:
    nodes = [event for one in reading.sessions.values() for event in one.of_kind("node_created")]
    return sum(event["data"]["nodeKind"] == "checkpoint" for event in nodes)


def _nothing(_reading: Reading, _stage: Stage) -> int:
    return 0


USE_CASES = (
    UseCase(name="start", run=_start, count=lambda reading, _: len(reading.runs), is_distinct=True),
    UseCase(name="advance", run=_advance, count=lambda reading, _: len(reading.advances)),
    UseCase(name="checkpoint", run=_checkpoint, count=_checkpoints),
    UseCase(
        name="import",
        run=_import,
        count=_imported,
        is_distinct=True,
        holds=lambda reading, _, outcome: outcome.value is None or outcome.value.restored.session in reading.sessions,
    ),
    UseCase(name="rotate", run=_rotate, count=_rotations, is_distinct=True),
    UseCase(name="keep", run=_keep, count=lambda reading, stage: reading.kept.count(stage.session)),
    UseCase(name="collect", run=_collect, count=lambda reading, stage: int(stage.old not in reading.sessions)),
    UseCase(name="look", run=look, count=_nothing),
    UseCase(name="resume", run=_resume, count=_nothing),
    UseCase(
        name="export",
        run=lambda process, stage: _exported(process, stage.session),
        count=_nothing,
        holds=lambda _reading, stage, outcome: stage.session.encode() in outcome.value,
    ),
)
