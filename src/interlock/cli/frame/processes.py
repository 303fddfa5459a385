"""Shares the work of a command among several processes."""

import os
import signal
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar, cast

from interlock.kernel.budgets import ITEMS_BEFORE_PROCESSES, ITEMS_PER_BATCH, WORKER_PROCESSES_MAX

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import ForkProcess

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def map_in_processes(work: Callable[[_Item], _Result], items: Sequence[_Item]) -> Generator[_Result]:
    """Apply a function to each item and yield the results in order, as `map` does; the function must only read.

    The first items are done at once, because a caller may need no more of them. Copies of this process, one for each
    processor, share the others. What a copy fails at is done again here, so its error is raised here. Where a process
    cannot be copied, this is `map`.
    """
    yield from map(work, items[:ITEMS_BEFORE_PROCESSES])
    rest = items[ITEMS_BEFORE_PROCESSES:]
    batches = [rest[at : at + ITEMS_PER_BATCH] for at in range(0, len(rest), ITEMS_PER_BATCH)]
    count = min(_processors(), WORKER_PROCESSES_MAX, len(batches))
    if count < 2 or sys.platform in ("darwin", "win32"):  # noqa: PLR2004 — one worker is no help
        yield from map(work, rest)
        return
    workers: list[tuple[Connection[None, list[_Result]], ForkProcess]] = []
    try:
        for at in range(count):
            workers.append(_started(work, batches[at::count], [reader for reader, _ in workers]))
        for at, batch in enumerate(batches):
            reader, _ = workers[at % count]
            try:
                results = reader.recv()
            except (EOFError, OSError):
                results = [work(item) for item in batch]
            yield from results
    finally:
        for reader, process in workers:
            reader.close()
            process.terminate()
            process.join()


def _started(
    work: Callable[[_Item], _Result],
    batches: Sequence[Sequence[_Item]],
    earlier: "Sequence[Connection[None, list[_Result]]]",
) -> "tuple[Connection[None, list[_Result]], ForkProcess]":
    """Start a process that does these batches; return it, after the end of the pipe where its results arrive."""
    from multiprocessing import get_context  # noqa: PLC0415 — few commands need it

    context = get_context("fork")
    reader, writer = context.Pipe(duplex=False)
    process = context.Process(target=_work_through, args=(work, batches, writer, [*earlier, reader]), daemon=True)
    process.start()
    writer.close()
    return cast("Connection[None, list[_Result]]", reader), process


def _work_through(
    work: Callable[[_Item], _Result],
    batches: Sequence[Sequence[_Item]],
    writer: "Connection[list[_Result], None]",
    readers: "Sequence[Connection[None, list[_Result]]]",
) -> None:
    """Send the results of each batch; end at the first error, or when nobody reads them any more."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    for reader in readers:
        # Only the parent reads, so that a pipe breaks when the parent has ended.
        reader.close()
    with suppress(Exception):
        for batch in batches:
            writer.send([work(item) for item in batch])


def _processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
