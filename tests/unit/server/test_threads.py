"""Worker threads: how many there are, which one is used, and what becomes of work whose caller is cancelled."""

import asyncio
import gc
import threading
from collections.abc import Callable

import anyio
import pytest

from interlock.kernel.budgets.threads import WORKER_THREADS_MAX
from interlock.server import threads
from interlock.server.threads import Workers

WAIT_S = 30


class Gated:
    """Work that waits for its gate. It notes in which thread it ran, and whether its caller was cancelled."""

    def __init__(self) -> None:
        self.begun, self.gate = threading.Event(), threading.Event()
        self.is_cancelled = False
        self.thread: threading.Thread | None = None

    def __call__(self) -> str:
        """Wait for the gate."""
        self.thread = threading.current_thread()
        self.begun.set()
        assert self.gate.wait(WAIT_S)
        return "done"

    def cancelled(self) -> None:
        """Note a cancellation."""
        self.is_cancelled = True

    async def has_begun(self) -> None:
        """Wait until it runs."""
        with anyio.fail_after(WAIT_S):
            while not self.begun.is_set():  # noqa: ASYNC110 — it is set in another thread
                await anyio.sleep(0.001)


def never() -> None:
    raise AssertionError("no one cancelled it")


async def until(holds: Callable[[], bool]) -> None:
    with anyio.fail_after(WAIT_S):
        while not holds():  # noqa: ASYNC110 — other threads change it
            await anyio.sleep(0.001)


@pytest.mark.asyncio
async def test_work_returns_what_it_returns_and_raises_what_it_raises() -> None:
    workers = Workers()
    assert await workers.run(lambda: "found", never) == "found"
    with pytest.raises(KeyError, match="lost"):
        await workers.run(lambda: dict[str, str]()["lost"], never)
    assert await workers.run(lambda: "found", never) == "found"


@pytest.mark.asyncio
async def test_the_most_recently_freed_thread_is_used_first_and_another_one_only_begun_if_all_are_busy() -> None:
    workers, first, second = Workers(), Gated(), Gated()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(workers.run, first, never)
        await first.has_begun()
        tasks.start_soon(workers.run, second, never)
        await second.has_begun()
        second.gate.set()
        await until(lambda: len(workers._free) == 1)  # pyright: ignore[reportPrivateUsage]
        first.gate.set()
    assert first.thread is not second.thread
    for _ in range(3):
        assert await workers.run(threading.current_thread, never) is first.thread


@pytest.mark.asyncio
@pytest.mark.inv("SRV-7", "LOCK-5")
async def test_work_that_waits_for_a_thread_begins_in_order_and_not_at_all_if_its_caller_is_cancelled() -> None:
    workers = Workers()
    busy = [Gated() for _ in range(WORKER_THREADS_MAX)]
    begun = list[int]()
    scope = anyio.CancelScope()

    async def wait(number: int) -> None:
        with scope if number == 1 else anyio.CancelScope():
            await workers.run(lambda: begun.append(number), never)

    async with anyio.create_task_group() as tasks:
        for one in busy:
            tasks.start_soon(workers.run, one, never)
            await one.has_begun()
        for number in range(4):
            tasks.start_soon(wait, number)
            await anyio.wait_all_tasks_blocked()
        scope.cancel()
        await anyio.wait_all_tasks_blocked()
        assert begun == []
        busy[0].gate.set()
        await until(lambda: len(begun) == 3)
        assert begun == [0, 2, 3]
        for one in busy:
            one.gate.set()
    assert len({one.thread for one in busy}) == WORKER_THREADS_MAX


@pytest.mark.asyncio
@pytest.mark.inv("SRV-7")
async def test_work_whose_caller_was_cancelled_before_is_not_begun() -> None:
    begun = list[None]()
    with anyio.CancelScope() as scope:
        scope.cancel()
        await Workers().run(lambda: begun.append(None), never)
    assert scope.cancelled_caught
    assert begun == []


@pytest.mark.asyncio
@pytest.mark.inv("SRV-7")
@pytest.mark.parametrize("is_native", [False, True], ids=["by its scope", "by its task"])
async def test_work_that_runs_learns_at_once_that_its_caller_is_cancelled_and_its_result_is_kept(
    *, is_native: bool
) -> None:
    workers, work, found = Workers(), Gated(), list[str]()
    scope = anyio.CancelScope()

    async def call() -> None:
        with scope:
            found.append(await workers.run(work, work.cancelled))

    task = asyncio.create_task(call())
    await work.has_begun()
    if is_native:
        task.cancel()
    else:
        scope.cancel()
    await until(lambda: work.is_cancelled)
    assert found == []
    assert not task.done()
    work.gate.set()
    await asyncio.wait({task})
    assert found == ["done"]
    assert await workers.run(threading.current_thread, never) is work.thread


@pytest.mark.asyncio
async def test_work_may_stop_when_its_caller_is_cancelled_which_its_scope_catches() -> None:
    workers, work, after = Workers(), Gated(), list[bool]()
    scope = anyio.CancelScope()

    def stopping() -> None:
        work()
        if work.is_cancelled:
            raise asyncio.CancelledError

    async def call() -> None:
        with scope:
            await workers.run(stopping, work.cancelled)
        after.append(scope.cancelled_caught)

    task = asyncio.create_task(call())
    await work.has_begun()
    scope.cancel()
    await until(lambda: work.is_cancelled)
    work.gate.set()
    await task
    assert after == [True]
    assert await workers.run(lambda: 1, never) == 1


@pytest.mark.asyncio
async def test_a_thread_without_work_ends_and_another_one_is_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "WORKER_IDLE_S", 0.02)
    workers = Workers()
    first = await workers.run(threading.current_thread, never)
    await until(lambda: not first.is_alive())
    assert await workers.run(threading.current_thread, never) is not first


@pytest.mark.asyncio
async def test_no_work_is_lost_to_a_thread_that_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "WORKER_IDLE_S", 0.0005)
    workers = Workers()
    with anyio.fail_after(WAIT_S):
        for number in range(300):
            assert await workers.run(lambda: number, never) == number  # noqa: B023 — awaited here
            await anyio.sleep(0.0004 + 0.0000007 * number)


@pytest.mark.asyncio
async def test_the_threads_end_with_their_owner() -> None:
    workers = Workers()
    thread = await workers.run(threading.current_thread, never)
    assert thread.is_alive()
    del workers
    gc.collect()
    await until(lambda: not thread.is_alive())


def test_work_that_is_done_after_its_event_loop_has_ended_does_not_end_its_thread() -> None:
    workers, work = Workers(), Gated()

    async def abandon() -> None:
        task = asyncio.create_task(workers.run(work, work.cancelled))
        await work.has_begun()
        for _ in range(2):  # the first one only lets it wait for its result
            task.cancel()
            await asyncio.sleep(0.01)
        assert task.cancelled()

    asyncio.run(abandon())
    work.gate.set()
    assert work.thread is not None
    work.thread.join(0.05)
    assert work.thread.is_alive()
