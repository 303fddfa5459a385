"""A check whose process ends without a result: that is recorded once, and the next call runs the check again."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.e2e.test_checks_over_stdio import configured, results
from tests.support.forked_server import ForkedServer
from tests.support.server import step_of, until
from tests.support.verify import unsound_below

from interlock.kernel.ids import NodeId, SessionId
from interlock.store.local.locks import OsLocks
from interlock.store.opening import open_check_files

UNTIL_GO = "echo $PPID >> runners; while test -e runners && ! test -e go; do sleep 0.05; done"
"""A check that names the process which runs it, and runs until `go` is there."""


def is_free(data: Path) -> bool:
    """Say whether no process runs a check."""
    files = open_check_files(data)
    return not any(files.is_held(NodeId(one.stem)) for one in (data / "checks").iterdir())


def kill_runner(data: Path, space: Path) -> None:
    """Kill the process that runs the check, and let the command end."""
    until(lambda: (space / "runners").is_file() and (space / "runners").read_text().endswith("\n"))
    os.kill(int((space / "runners").read_text()), signal.SIGKILL)
    (space / "go").touch()
    until(lambda: is_free(data))


@pytest.mark.inv("CHECK-7")
def test_a_check_that_kills_its_own_process_is_a_failed_run_and_the_next_call_runs_it_again(tmp_path: Path) -> None:
    data, space = configured(tmp_path, "echo x >> started; test -e passes || kill -9 $PPID")
    with ForkedServer(data, space) as server:
        start = server.start("test.flow", goal="Ship")
        lost = server.advance(server.advance(start), None)
        assert "did not pass (its process ended without a result, by signal 9)." in lost.text
        assert "The call runs the check again and returns the result." in lost.text
        (space / "passes").touch()
        assert step_of(server.advance(lost, None)) == "b"
        *earlier, last = results(server, start)
        assert {(one["ended"], one["exit"], one["passed"]) for one in earlier} == {("lost", -signal.SIGKILL, False)}
        assert (last["ended"], last["passed"]) == ("exit", True)
        assert (space / "started").read_text() == "x\n" * last["run"]
    assert unsound_below(data) == []


@pytest.mark.inv("CHECK-7")
def test_an_open_call_is_answered_when_the_process_of_its_check_was_killed(tmp_path: Path) -> None:
    data, space = configured(tmp_path, UNTIL_GO)
    with ForkedServer(data, space) as server, ThreadPoolExecutor(1) as pool:
        start = server.start("test.flow", goal="Ship")
        waiting = server.advance(start)
        asked = pool.submit(server.advance, waiting, None)
        kill_runner(data, space)
        answer = asked.result()
        # The open call saw the end, or it came after it and has run the check again.
        assert step_of(answer) == "b" or "without a result, by signal 9" in answer.text
        first = results(server, start)[0]
        assert (first["ended"], first["exit"]) == ("lost", -signal.SIGKILL)
    assert unsound_below(data) == []


@pytest.mark.inv("CHECK-7")
def test_a_process_that_cannot_begin_the_check_is_a_failed_run_with_its_exit_code(tmp_path: Path) -> None:
    data, space = configured(tmp_path, "true")
    with ForkedServer(data, space) as server:
        start = server.start("test.flow", goal="Ship")
        config = (data / "config.toml").read_text()
        (data / "config.toml").write_text("[checks")
        lost = server.advance(server.advance(start), None)
        assert "did not pass (its process ended without a result, with exit code 1)." in lost.text
        (data / "config.toml").write_text(config)
        assert step_of(server.advance(lost, None)) == "b"
        assert {(one["ended"], one["exit"]) for one in results(server, start)[:-1]} == {("lost", 1)}
    assert unsound_below(data) == []


@pytest.mark.inv("CHECK-7")
def test_a_lost_run_that_two_other_servers_see_at_once_is_recorded_once(tmp_path: Path) -> None:
    data, space = configured(tmp_path, UNTIL_GO)
    with ForkedServer(data, space) as first:
        start = first.start("test.flow", goal="Ship")
        waiting = first.advance(start)
        kill_runner(data, space)
    with ForkedServer(data, space) as one, ForkedServer(data, space) as other, ThreadPoolExecutor(2) as both:
        answers = [each.result() for each in [both.submit(server.advance, waiting, None) for server in (one, other)]]
        if any(step_of(answer) != "b" for answer in answers):
            assert step_of(one.advance(waiting, None)) == "b"
        # Which signal ended it is unknown to a server that has not begun it.
        found = [(each["run"], each["ended"], each["exit"]) for each in results(one, start)]
        assert found == [(1, "lost", 255), (2, "exit", 0)]
    assert unsound_below(data) == []


@pytest.mark.inv("CHECK-7")
def test_a_lost_run_is_recorded_after_a_server_was_killed_that_had_seen_it(tmp_path: Path) -> None:
    data, space = configured(tmp_path, UNTIL_GO)
    with ForkedServer(data, space) as first:
        start = first.start("test.flow", goal="Ship")
        waiting = first.advance(start)
        kill_runner(data, space)
        with OsLocks(data).hold(SessionId(start["run"]["sessionId"])):
            first.soon("continue_workflow", {"ackToken": waiting.ack})
            until(lambda: not is_free(data))  # it has seen the lost run, and waits to record it
            first.kill()
            until(lambda: is_free(data))
    with ForkedServer(data, space) as later:
        assert step_of(later.advance(waiting, None)) == "b"
        assert [one["ended"] for one in results(later, start)] == ["lost", "exit"]
    assert unsound_below(data) == []
