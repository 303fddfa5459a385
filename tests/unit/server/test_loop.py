"""The event loop has the turn while it computes, and gives it while it waits."""

import asyncio
import os
import threading

import pytest

from interlock.kernel.turns import TURNS
from interlock.server.transport.loop import new_event_loop

pytestmark = [
    pytest.mark.inv("SRV-18"),
    pytest.mark.skipif(os.name == "nt", reason="a loop has a selector on POSIX only"),
]
PATIENCE_S = 10


def test_a_loop_computes_in_its_turn_and_waits_without_it() -> None:
    async def play() -> None:
        await asyncio.sleep(0.001)
        assert TURNS.give(), "it has the turn once it has waited"
        TURNS.take()
        done, found = asyncio.Event(), list[bool]()
        loop = asyncio.get_running_loop()

        def compute() -> None:
            with TURNS.computing():
                found.append(TURNS.give() and TURNS.take())
            loop.call_soon_threadsafe(done.set)

        threading.Thread(target=compute, daemon=True).start()
        await asyncio.wait_for(done.wait(), PATIENCE_S)
        assert found == [True], "the other thread computed in its turn while the loop waited"

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(play())
    assert not TURNS.give(), "the loop has ended"


def test_what_comes_for_the_loop_is_served_while_another_thread_computes_for_long() -> None:
    is_over = threading.Event()

    def compute() -> None:
        with TURNS.computing():
            is_over.wait(PATIENCE_S)

    async def play() -> int:
        thread = threading.Thread(target=compute, daemon=True)
        thread.start()
        source, sink = os.pipe()
        came = asyncio.Event()
        asyncio.get_running_loop().add_reader(source, came.set)
        os.write(sink, b".")
        await asyncio.wait_for(came.wait(), PATIENCE_S)
        for _ in range(20):
            await asyncio.sleep(0.001)
        asyncio.get_running_loop().remove_reader(source)
        assert not is_over.is_set()
        is_over.set()
        thread.join(PATIENCE_S)
        os.close(source)
        os.close(sink)
        return 1

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        assert runner.run(play())
