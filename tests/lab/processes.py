"""Processes of the laboratory: several Interlocks in one test process over one disk, each with faults of its own."""

import itertools
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from tests.lab.faulty_files import PATIENCE_S, Fault, FaultyFiles, Operation
from tests.lab.independent_reader import TOKEN, Reading, read_data_dir
from tests.support.sweep import OneHolder

from interlock.store.local.collect.collector import LocalCollector
from interlock.store.local.locks import Locks
from interlock.store.local.store import LocalStore
from interlock.testing.harness import CounterClock, Harness, ToolResult, linear_workflow
from interlock.testing.power_cut import CrashDisk

Found = TypeVar("Found")

NOWHERE = Path("/nowhere")
DOCUMENT = linear_workflow("test.lab", "a", "b", "c", "d")
SURVIVORS_MAX = 24
"""Of the states that a power loss may leave, at most so many are judged."""
_PROCESSES = itertools.count(1)


@dataclass
class Process:
    """One Interlock: its own memory, its own faults, the disk and the locks that it shares with others."""

    disk: CrashDisk
    locks: Locks = field(default_factory=OneHolder)
    fault: Fault | None = None

    def __post_init__(self) -> None:
        self.files = FaultyFiles(self.disk, self.fault)
        seam = self.files.seam()
        self.store = LocalStore(NOWHERE, files=seam, locks=self.locks, now_s=lambda: self.disk.now_s)
        self.collector = LocalCollector(NOWHERE, files=seam, locks=self.locks)
        clock = CounterClock(next(_PROCESSES) << 32)
        self.harness = Harness.over(self.store, DOCUMENT, clock=clock)

    def another(self, fault: Fault | None = None) -> "Process":
        """Return another process on the same disk."""
        return Process(self.disk, self.locks, fault)


def steps_of(disk: CrashDisk, use: Callable[[Process], object]) -> list[Operation]:
    """Return the operations of a use case in a new process, on a copy of the disk."""
    process = Process(disk.copy())
    use(process)
    return process.files.steps


def last(steps: list[Operation], name: str, kind: str) -> Operation:
    """Return the last operation of a name on a kind of path."""
    return next(step for step in reversed(steps) if (step.name, step.kind) == (name, kind))


def begun(work: Callable[[], Found]) -> "Future[Found]":
    """Begin work in a thread of its own."""
    future: Future[Found] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 — the caller of `result` gets it
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


def while_hanging(work: Callable[[], Found], fault: Fault, meanwhile: Callable[[], None]) -> Found:
    """Do work that hangs at a fault, do something else meanwhile, and return the result of the work."""
    assert fault.gate is not None
    future = begun(work)
    try:
        assert fault.gate.reached.wait(PATIENCE_S), f"never reached: {fault}"
        meanwhile()
    finally:
        fault.gate.open()
    return future.result(PATIENCE_S)


def files_on(disk: CrashDisk) -> dict[str, bytes]:
    """Return the files of a disk, as any process sees them."""
    return {path: disk.files[number].data for path, number in disk.names_now.items() if not disk.files[number].is_dir}


def reading_of(disk: CrashDisk) -> Reading:
    """Read a disk by the independent reader."""
    boot_id: Callable[[], str] | None = getattr(disk, "boot_id", None)
    return read_data_dir(files_on(disk), boot=boot_id() if boot_id is not None else None)


def survivors_of(disk: CrashDisk, seed: int = 0) -> Iterator[CrashDisk]:
    """Yield what a power loss may leave: nothing of what is not synced, all of it, and a sample between."""
    width = len(disk.pending)
    masks = {0, (1 << width) - 1, *(pow(3, seed + number, (1 << width) + 1) for number in range(SURVIVORS_MAX))}
    kept = [[bool(mask >> bit & 1) for bit in range(width)] for mask in sorted(masks)]
    return itertools.islice(disk.survivors(kept), SURVIVORS_MAX)


def tokens_in(answer: ToolResult | Mapping[str, Any]) -> set[str]:
    """Return the tokens in an answer's structure."""
    structure = answer.structure if isinstance(answer, ToolResult) else answer
    return {found[0] for found in TOKEN.finditer(repr(structure))}
