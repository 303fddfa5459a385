"""The work of a command is shared among processes, and its results are those of `map`."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from interlock.cli.frame import processes
from interlock.cli.frame.processes import map_in_processes

needs_fork = pytest.mark.skipif(sys.platform in ("darwin", "win32"), reason="processes are not copied here")
ITEMS = list(range(300))


@pytest.fixture(autouse=True)
def several_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_processors", lambda: 3)


def process_of(item: int) -> tuple[int, int]:
    return item, os.getpid()


@needs_fork
def test_the_results_are_in_order_and_only_the_first_items_are_done_here() -> None:
    results = list(map_in_processes(process_of, ITEMS))
    assert [item for item, _ in results] == ITEMS
    here = [item for item, process in results if process == os.getpid()]
    assert here == ITEMS[: processes.ITEMS_BEFORE_PROCESSES]
    assert len({process for _, process in results}) == 4


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 96, 97, 129])
def test_no_item_is_left_out_whatever_their_number(count: int) -> None:
    assert list(map_in_processes(str, ITEMS[:count])) == [str(item) for item in ITEMS[:count]]


def test_one_processor_needs_no_other_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_processors", lambda: 1)
    assert {process for _, process in map_in_processes(process_of, ITEMS)} == {os.getpid()}


def failing_at_200(item: int) -> int:
    if item == 200:
        raise LookupError("200 cannot be read.")
    return item


def test_an_error_is_raised_after_the_results_before_it() -> None:
    done = list[int]()

    def keep(results: Iterator[int]) -> None:
        for one in results:
            done.append(one)

    with pytest.raises(LookupError, match="200 cannot be read"):
        keep(map_in_processes(failing_at_200, ITEMS))
    assert done == ITEMS[: len(done)]
    assert 200 - processes.ITEMS_PER_BATCH <= len(done) <= 200


HERE = os.getpid()


def killed_at_100(item: int) -> int:
    if item == 100 and os.getpid() != HERE:
        os.kill(os.getpid(), signal.SIGKILL)
    return item


def test_what_a_killed_process_had_to_do_is_done_here() -> None:
    assert list(map_in_processes(killed_at_100, ITEMS)) == ITEMS


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


@needs_fork
def test_a_caller_that_stops_early_leaves_no_process() -> None:
    results = map_in_processes(process_of, ITEMS)
    others = {process for _, process in (next(results) for _ in range(200))} - {os.getpid()}
    assert others
    results.close()
    assert not any(is_running(process) for process in others)


KILLED = """
import os, sys
from interlock.cli.frame import processes
processes._processors = lambda: 2
def work(item):
    os.write(1, f"{os.getpid()}\\n".encode())
    return b"x" * 100_000
results = processes.map_in_processes(work, range(1_000))
for _ in range(100):
    next(results)
os.write(1, b"ready\\n")
sys.stdin.read()
"""


@needs_fork
def test_no_process_outlives_a_killed_command() -> None:
    command = subprocess.Popen([sys.executable, "-c", KILLED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert command.stdout is not None
    found = set[str]()
    while (line := command.stdout.readline().strip()) != "ready":
        assert line, "the command ended early"
        found.add(line)
    others = {int(process) for process in found} - {command.pid}
    assert others
    command.kill()
    command.communicate()
    for _ in range(1_000):
        if not any(is_running(process) for process in others):
            break
        time.sleep(0.02)
    assert not any(is_running(process) for process in others)
