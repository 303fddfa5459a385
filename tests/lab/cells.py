"""The cells of the laboratory: each operation of a use case, on each kind of path, before and after its effect.

A trial compares the answers and refusals with what the independent reader finds on the disk, and on what a power loss
leaves of it.
"""

import errno
import random
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from tests.lab.faulty_files import LOOKS, Fault, Gate, Operation, Phase
from tests.lab.independent_reader import Reading
from tests.lab.processes import Process, begun, reading_of, steps_of, survivors_of, while_hanging
from tests.lab.use_cases import Outcome, Stage, UseCase, look, staged

from interlock.kernel.ids import SessionId
from interlock.testing.power_cut import CrashDisk

Processes: TypeAlias = Literal[1, 2]
NEVER_FAIL = frozenset({"is_link", "boot_id"})
WRITES_BYTES = frozenset({"write", "create", "append", "write_at"})
BLOCKED_AFTER_S = 0.3
"""The longest time that a trial waits for a reader in the process that hangs: the reader may wait for that call."""


@dataclass(frozen=True, kw_only=True, order=True)
class Cell:
    """What a fault is about, apart from its kind and the number of the operation."""

    operation: str
    kind: str
    phase: Phase
    processes: Processes

    def __str__(self) -> str:
        return f"{self.operation} of {self.kind}, {self.phase} its effect, {self.processes} process(es)"


@dataclass(kw_only=True)
class Trial:
    """One fault in one use case, and every claim that turned out to be false."""

    use_case: UseCase
    cell: Cell
    fault: Fault
    stage: Stage = field(default_factory=staged)
    outcomes: list[tuple[str, Outcome]] = field(default_factory=list[tuple[str, Outcome]])
    broken: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    @property
    def first(self) -> Outcome | None:
        """What came of the call that met the fault."""
        return next((outcome for who, outcome in self.outcomes if who == "the call"), None)

    def breaks(self, claim: str, why: object) -> None:
        """Note a false claim."""
        self.broken.append((claim, str(why)))

    def __str__(self) -> str:
        return f"{self.use_case}: {self.fault} ({self.cell.processes} process(es))"


# -- the space ------------------------------------------------------------------------------------------------------


def reachable(use_case: UseCase) -> dict[Cell, list[Operation]]:
    """Return the cells that the recorded operations of a use case lead to, and the operations of each."""
    stage = staged()
    cells: dict[Cell, list[Operation]] = {}
    for step in steps_of(stage.disk, lambda process: use_case.run(process, stage)):
        if step.name in NEVER_FAIL:
            continue
        # A look that fails after it looked is one that fails before.
        phases: tuple[Phase, ...] = ("before",) if step.name in LOOKS else ("before", "after")
        for phase in phases:
            for processes in (1, 2):
                cell = Cell(operation=step.name, kind=step.kind, phase=phase, processes=processes)
                cells.setdefault(cell, []).append(step)
    return cells


def faults_of(cell: Cell, step: Operation) -> list[Fault]:
    """Return the faults that a cell has at one of its operations."""
    plain = Fault(at=step, phase=cell.phase)
    full = replace(plain, error=errno.ENOSPC if cell.operation in WRITES_BYTES else errno.EACCES)
    hanging = [replace(plain, gate=Gate()), replace(plain, gate=Gate(), error=None)]
    if cell.processes == 2:
        return [*hanging, replace(plain, gate=Gate(), is_lasting=True, takes_all=True)]
    lasting = [replace(plain, is_lasting=True), replace(full, is_lasting=True, takes_all=True)]
    short = [replace(full, is_short=True)] if cell.operation in WRITES_BYTES and cell.phase == "before" else []
    return [plain, full, *lasting, *short, *hanging]


def trials_of(use_case: UseCase, chance: random.Random | None = None) -> Iterator[Trial]:
    """Yield the trials of a use case: all of them, or with a source of chance one of each cell."""
    for cell, steps in reachable(use_case).items():
        chosen = steps if chance is None else [chance.choice(steps)]
        for step in chosen:
            faults = faults_of(cell, step)
            for fault in faults if chance is None else [chance.choice(faults)]:
                yield Trial(use_case=use_case, cell=cell, fault=fault)


# -- one trial ------------------------------------------------------------------------------------------------------


def run_trial(trial: Trial) -> Trial:
    """Run a use case with a fault, then what a caller does next, and judge all of it."""
    process = Process(trial.stage.disk, fault=trial.fault)
    other = process.another() if trial.cell.processes > 1 else process
    readers: list[Future[object]] = []

    def meanwhile() -> None:
        if other is not process:
            note(trial, "another process looks meanwhile", other, look)
            note(trial, "another process calls meanwhile", other, trial.use_case.run)
            judge_answers(trial)
            return
        readers.append(begun(lambda: note(trial, "the process itself looks meanwhile", process, look)))
        wait(readers, BLOCKED_AFTER_S)

    def work() -> None:
        note(trial, "the call", process, trial.use_case.run)

    if trial.fault.gate is not None:
        while_hanging(work, trial.fault, meanwhile)
    else:
        work()
    wait(readers)
    if not process.files.happened:
        trial.breaks("reached", "the operation was not reached")
    process.files.fault = None
    judge_refusals(trial)
    judge_answers(trial)
    repeat(trial, process)
    judge_answers(trial)
    judge_count(trial)
    return trial


def note(trial: Trial, who: str, process: Process, run: Callable[[Process, Stage], Outcome]) -> Outcome | None:
    """Run a call and keep what came of it. An exception that no caller expects is a broken claim by itself."""
    try:
        outcome = run(process, trial.stage)
    except Exception as error:  # noqa: BLE001 — the trial reports it
        trial.breaks("answers", f"{who}: {type(error).__name__}: {error}")
        return None
    trial.outcomes.append((who, outcome))
    return outcome


def repeat(trial: Trial, process: Process) -> None:
    """Do as the refusal advises, now that nothing fails; a process that refuses for good is started anew."""
    first = trial.first
    if first is not None and first.is_ok and trial.use_case.is_distinct:
        return
    if first is not None and first.found_by(process):
        trial.outcomes.append(("the call, found by what its refusal names", Outcome(is_ok=True)))
        return
    again = note(trial, "the repeated call", process, trial.use_case.run)
    if again is None or not again.is_ok:
        after = note(trial, "the call after a restart", process.another(), trial.use_case.run)
        if after is None or not after.is_ok:
            trial.breaks("next call works", after.message if after is not None else "no answer")


# -- judging --------------------------------------------------------------------------------------------------------


def judge_answers(trial: Trial) -> None:
    """Hold every answer so far against the disk and against what a power loss leaves of it."""
    disk = trial.stage.disk
    for name, state in [("now", disk), *(("after a power loss", left) for left in survivors_of(disk))]:
        reading = reading_of(state)
        if reading.flaws:
            trial.breaks("sound", f"{name}: {reading.flaws[0]}")
            return
        for who, outcome in trial.outcomes:
            if not outcome.is_ok:
                continue
            missing = [token for token in outcome.tokens if not reading.names(token)]
            if missing:
                trial.breaks("durable", f"{who}: {name} {missing[0]} names no recorded node")
                return
            is_call = "call" in who
            if is_call and not trial.use_case.holds(reading, trial.stage, outcome):
                trial.breaks("durable", f"{who}: {name} its effect is not there")
                return
    judge_agreement(trial, disk)


def judge_agreement(trial: Trial, disk: CrashDisk) -> None:
    """Hold what a process that has seen nothing loads against what the independent reader finds."""
    reading, store = reading_of(disk), Process(disk).store
    for name, found in reading.sessions.items():
        loaded = store.load(SessionId(name))
        nodes, events = (set(loaded.nodes), loaded.next_index) if loaded is not None else (set[str](), 0)
        if nodes != set(found.nodes) or events != len(found.events):
            trial.breaks("agrees", f"{name}: the store has {events} events, the reader {len(found.events)}")


def judge_refusals(trial: Trial) -> None:
    """Hold the claim that nothing was recorded against the disk now and after a power loss."""
    if any(outcome.is_ok for who, outcome in trial.outcomes if "call" in who):
        return
    for who, outcome in trial.outcomes:
        if not outcome.says_nothing_was_recorded or outcome.says_perhaps or trial.use_case.name == "collect":
            continue
        for name, state in [("now", trial.stage.disk), *(("later", one) for one in survivors_of(trial.stage.disk))]:
            if changes(trial, reading_of(state)):
                trial.breaks("nothing was recorded", f"{who}: {name} it is: {outcome.message}")
                return


def changes(trial: Trial, reading: Reading) -> bool:
    """Say whether a reading holds more than what was there before, groups that nobody settled included."""
    groups = {name: len(one.groups) + len(one.unsettled) for name, one in reading.sessions.items()}
    before = {name: len(one.groups) for name, one in trial.stage.before.sessions.items()}
    return (groups, reading.keys, reading.kept) != (before, trial.stage.before.keys, trial.stage.before.kept)


def judge_count(trial: Trial) -> None:
    """Hold that each call that was answered is there once, and that no other is."""
    counted = [who for who, outcome in trial.outcomes if outcome.is_ok and "call" in who]
    calls = {"another" if "another" in who else "the call" for who in counted}
    reading = reading_of(trial.stage.disk)
    before = trial.use_case.count(trial.stage.before, trial.stage)
    found = trial.use_case.count(reading, trial.stage)
    if trial.use_case.name in {"look", "resume", "export"}:
        expected = before
    elif trial.use_case.is_distinct:
        expected = before + len(calls)
    else:
        expected = before + 1
    # Two imports of one bundle at the same time may come to the same session.
    may_be_shared = trial.use_case.name == "import" and expected > found > before
    if found != expected and not may_be_shared:
        said = "; ".join(f"{who}: {outcome.message or 'OK'}" for who, outcome in trial.outcomes)
        trial.breaks("once", f"there {found} times instead of {expected} ({said})")
