"""Lines to the client come whole and in order, whether the caller writes them or the thread does."""

import os
import select
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from interlock.kernel.budgets import READ_BYTES_MAX, UNREAD_LINES_MAX
from interlock.server.transport.output import Output

LONG = 200_000
"""More bytes than a pipe holds."""


class Pipe:
    """A pipe with an output at its end."""

    def __init__(self) -> None:
        self.source, self.sink = os.pipe()
        self.broken, self.drained = threading.Event(), threading.Event()
        self.output = Output(self.sink)
        self.output.start(on_broken=self.broken.set, on_drained=self.drained.set)

    def read_all(self) -> list[bytes]:
        """Read until the other end is closed; return the lines."""
        parts = list[bytes]()
        while part := os.read(self.source, READ_BYTES_MAX):
            parts.append(part)
        return b"".join(parts).split(b"\n")[:-1]


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe()
    yield made
    os.close(made.source)


def test_a_line_that_fits_is_written_before_put_returns(pipe: Pipe) -> None:
    pipe.output.put(b"one\n")
    os.set_blocking(pipe.source, False)
    assert os.read(pipe.source, 100) == b"one\n"
    pipe.output.finish()
    os.close(pipe.sink)


def test_put_returns_although_nobody_reads_and_no_line_is_torn(pipe: Pipe) -> None:
    """Two threads put short and long lines. Each line comes whole, those of one thread in its order."""
    sent = {
        name: [name + b"%d" % at + b"." * (LONG if at % 7 == 3 else at * 40) for at in range(60)]
        for name in (b"a", b"b")
    }

    def put(lines: list[bytes]) -> None:
        for line in lines:
            pipe.output.put(line + b"\n")

    threads = [threading.Thread(target=put, args=(lines,)) for lines in sent.values()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()
    found = list[bytes]()
    reader = threading.Thread(target=lambda: found.extend(pipe.read_all()))
    reader.start()
    pipe.output.finish()
    os.close(pipe.sink)
    reader.join(10)
    assert {name: [line for line in found if line.startswith(name)] for name in sent} == sent
    assert len(found) == sum(map(len, sent.values()))


def test_a_reader_that_comes_and_goes_receives_every_line_in_order(pipe: Pipe) -> None:
    """So lines are queued and written at once by turns."""
    lines = [b"%d" % at + b"." * (at * 997 % 9_000) for at in range(300)]
    found = list[bytes]()
    reader = threading.Thread(target=lambda: found.extend(pipe.read_all()))
    for at, line in enumerate(lines):
        pipe.output.put(line + b"\n")
        if at == 100:
            reader.start()
    pipe.output.finish()
    os.close(pipe.sink)
    reader.join(10)
    assert found == lines


def test_a_backlog_counts_until_the_client_has_read_it(pipe: Pipe) -> None:
    assert not pipe.output.is_congested()
    for line in (b"x" * LONG, *[b"short"] * (UNREAD_LINES_MAX + 2)):
        pipe.output.put(line + b"\n")
    assert pipe.output.is_congested()
    assert not pipe.drained.is_set()
    reader = threading.Thread(target=pipe.read_all)
    reader.start()
    assert pipe.drained.wait(10)
    assert not pipe.output.is_congested()
    pipe.output.finish()
    os.close(pipe.sink)
    reader.join(10)


@pytest.mark.parametrize("line", [b"x\n", b"x" * LONG + b"\n"], ids=["short", "long"])
def test_a_client_that_is_gone_is_noticed_once_and_later_lines_are_dropped(line: bytes) -> None:
    source, sink = os.pipe()
    gone = list[bool]()
    noticed = threading.Event()

    def note() -> None:
        gone.append(True)
        noticed.set()

    output = Output(sink)
    output.start(on_broken=note)
    os.close(source)
    output.put(line)
    assert noticed.wait(10)
    output.put(line)
    output.finish()
    os.close(sink)
    assert (gone, output.failure) == ([True], None)


def test_a_file_is_written_by_the_thread(tmp_path: Path) -> None:
    sink = os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT)
    output = Output(sink)
    output.start(on_broken=lambda: None)
    output.put(b"one\n")
    output.put(b"two\n")
    output.finish()
    os.close(sink)
    assert (tmp_path / "out").read_bytes() == b"one\ntwo\n"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says how much a pipe holds")
def test_a_long_line_is_written_at_once_to_an_empty_pipe(pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> None:
    write, sizes = os.write, list[int]()

    def counted(descriptor: int, data: memoryview) -> int:
        sizes.append(len(data))
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", counted)
    lines = [b"x" * 12_000 + b"\n", b"y" * 12_000 + b"\n"]
    for line in lines:
        pipe.output.put(line)
    assert sizes[0] == len(lines[0])
    assert max(sizes[1:]) <= select.PIPE_BUF, "the pipe may be nearly full"
    os.set_blocking(pipe.source, False)
    assert os.read(pipe.source, 100_000) == b"".join(lines)
    pipe.output.finish()
    os.close(pipe.sink)
