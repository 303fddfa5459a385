"""Chunks are read one at a time, from a pipe by the event loop and from a file by a thread."""

import asyncio
import os
from pathlib import Path

from interlock.server.transport.input import Input, LoopInput, ThreadInput, open_input

PATIENCE_S = 10


class Taken:
    """The chunks that an input passed on."""

    def __init__(self, descriptor: int) -> None:
        self.chunks: asyncio.Queue[bytes] = asyncio.Queue()
        self.input: Input = open_input(descriptor, self.chunks.put_nowait)

    async def one(self) -> bytes:
        """Let it read, and return what comes."""
        self.input.next()
        return await asyncio.wait_for(self.chunks.get(), PATIENCE_S)


def test_a_pipe_is_read_by_the_loop_a_chunk_at_a_time_up_to_its_end() -> None:
    async def read() -> None:
        source, sink = os.pipe()
        taken = Taken(source)
        assert isinstance(taken.input, LoopInput)
        os.write(sink, b"one")
        assert await taken.one() == b"one"
        os.write(sink, b"two")
        await asyncio.sleep(0.05)
        assert taken.chunks.empty(), "the input waits until it is asked"
        os.write(sink, b"three")
        assert await taken.one() == b"twothree"
        os.close(sink)
        assert await taken.one() == b""
        os.close(source)

    asyncio.run(read())


def test_what_comes_after_the_stop_stays_in_the_pipe() -> None:
    async def read() -> None:
        source, sink = os.pipe()
        taken = Taken(source)
        taken.input.next()
        await asyncio.sleep(0)
        os.write(sink, b"left")
        taken.input.stop()
        await asyncio.sleep(0.05)
        assert taken.chunks.empty()
        assert os.read(source, 100) == b"left"
        os.close(sink)
        os.close(source)

    asyncio.run(read())


def test_a_file_is_read_by_a_thread(tmp_path: Path) -> None:
    async def read() -> None:
        (tmp_path / "in").write_bytes(b"one\n")
        source = os.open(tmp_path / "in", os.O_RDONLY)
        taken = Taken(source)
        assert isinstance(taken.input, ThreadInput)
        assert [await taken.one(), await taken.one()] == [b"one\n", b""]
        os.close(source)

    asyncio.run(read())


def test_a_thread_passes_nothing_on_after_the_stop(tmp_path: Path) -> None:
    async def read() -> None:
        (tmp_path / "in").write_bytes(b"one\n")
        source = os.open(tmp_path / "in", os.O_RDONLY)
        taken = Taken(source)
        taken.input.stop()
        taken.input.next()
        await asyncio.sleep(0.05)
        assert taken.chunks.empty()
        os.close(source)

    asyncio.run(read())
