"""What kills, crashes, damage, locks and edited files do to a run, at real server processes."""

import json
import re
import statistics
from contextlib import suppress
from pathlib import Path

import pytest
from filelock import FileLock
from tests.support.forked_server import ForkedServer
from tests.support.server import Server, count_of, workspace_in

from interlock.kernel.errors import ErrorCode
from interlock.testing.harness import Era, linear_workflow


@pytest.mark.inv("CRASH-8", "CRASH-1")
def test_after_kill_9_during_an_advance_the_old_or_the_new_state_holds(tmp_path: Path, space: Path, era: Era) -> None:
    with ForkedServer(tmp_path / "data", space, era) as server:
        first = server.start()
        answered = server.advance(first)
        with suppress(Exception):
            future = server.soon(
                "continue_workflow", {"ackToken": answered.ack, "output": {"notesMarkdown": "Killed."}}
            )
            server.kill()
            future.result(60)
    with ForkedServer(tmp_path / "data", space, era) as server:
        looked = server.rehydrate(answered)
        assert looked["pending"]["stepId"] == "b"
        assert looked.warnings in ([], ["STEP_ALREADY_DONE"])
        third = server.advance(answered, "Killed.")
        assert (third["pending"]["stepId"], third.warnings) == ("c", [])
        assert server.advance(first) == answered
        assert server.follow(third)["isComplete"]
        assert count_of(server, first) == 3


@pytest.mark.inv("CRASH-6")
def test_a_segment_that_no_manifest_line_names_is_ignored(server: Server) -> None:
    first = server.start()
    directory = server.data_dir / "sessions" / first["run"]["sessionId"] / "events"
    (segment,) = directory.iterdir()
    (directory / "00000004-00000007.jsonl").write_bytes(segment.read_bytes()[:100])
    (directory / "00000004-00000007.jsonl.0123.tmp").write_bytes(b"half")
    assert server.rehydrate(first)["pending"]["stepId"] == "a"
    assert server.advance(first)["pending"]["stepId"] == "b"


@pytest.mark.inv("READ-2", "CRASH-7")
@pytest.mark.damages
def test_a_changed_byte_hurts_its_own_session_alone(tmp_path: Path, space: Path) -> None:
    with ForkedServer(tmp_path / "data", space, "legacy") as server:
        hurt, well = server.start(goal="Hurt"), server.start(goal="Well")
    (segment,) = (tmp_path / "data" / "sessions" / hurt["run"]["sessionId"] / "events").iterdir()
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.write_bytes(bytes(data))
    with ForkedServer(tmp_path / "data", space, "legacy") as server:
        for refused in (server.rehydrate(hurt), server.advance(hurt), server.start(sessionId=hurt["run"]["sessionId"])):
            assert refused.code is ErrorCode.SESSION_NOT_HEALTHY
        assert server.advance(well)["pending"]["stepId"] == "b"
        assert not server.start().is_error
    assert segment.read_bytes() == bytes(data)


@pytest.mark.produces("error:TOKEN_SESSION_LOCKED")
@pytest.mark.inv("LOCK-3", "LOCK-4")
def test_a_lock_of_the_living_is_retryable_and_of_the_dead_or_full_of_garbage_is_free(
    tmp_path: Path, space: Path
) -> None:
    with (
        ForkedServer(tmp_path / "data", space, "auto") as server,
        ForkedServer(tmp_path / "data", space, "auto") as doomed,
    ):
        first = doomed.start()
        second = doomed.advance(first)
        doomed.kill()
        third = server.advance(second)
        assert third["pending"]["stepId"] == "c"
        lock = tmp_path / "data" / "sessions" / first["run"]["sessionId"] / ".lock"
        lock.write_bytes(b"\x00garbage 99999999\n" * 10)
        with FileLock(lock, thread_local=False):
            refused = server.advance(third)
            assert refused.code is ErrorCode.TOKEN_SESSION_LOCKED
            assert refused["retry"] == {"kind": "retryable_after_ms", "afterMs": 1000}
            waited = re.search(r"waited (\d+) ms", refused["message"])
            assert waited is not None
            assert int(waited[1]) >= 2_000
            assert server.rehydrate(third)["pending"]["stepId"] == "c"
            assert server.advance(second) == third
        assert server.advance(third)["isComplete"]


@pytest.mark.inv("PLAN-3")
def test_a_run_goes_on_from_its_pin_when_its_file_is_edited(tmp_path: Path, space: Path) -> None:
    path = space / ".interlock" / "workflows" / "abc.json"
    with ForkedServer(tmp_path / "data", space, "legacy") as server:
        first = server.start()
        path.write_text(json.dumps(linear_workflow("test.abc", {"id": "z", "title": "New", "prompt": "New."})))
        second = server.advance(first)
        assert (second["pending"]["prompt"], second["run"]["step"]["total"]) == ("Do b.", 3)
        assert server.start()["pending"]["prompt"] == "New."
        path.unlink()
        assert server.start().code is ErrorCode.WORKFLOW_NOT_FOUND
    with ForkedServer(tmp_path / "data", space, "legacy") as server:
        assert server.follow(server.advance(second))["isComplete"]


def bytes_read(server: Server) -> int:
    """Return how many bytes the server's process has read so far, from files and from its client."""
    counters = Path(f"/proc/{server.pid}/io")
    if not counters.exists():
        pytest.skip("the system counts no bytes for each process: Linux does")
    return int(re.findall(r"rchar: (\d+)", counters.read_text())[0])


@pytest.mark.inv("FOLLOW-1")
def test_an_advance_reads_as_much_after_300_steps(tmp_path: Path) -> None:
    long = linear_workflow("test.long", *(f"s{at:03}" for at in range(301)))
    with ForkedServer(tmp_path / "data", workspace_in(tmp_path, long=long), "auto") as server:
        answer, read = server.start("test.long"), list[int]()
        for _ in range(300):
            before = bytes_read(server)
            answer = server.advance(answer)
            read.append(bytes_read(server) - before)
        assert answer["run"]["step"]["number"] == 301
        early, late = statistics.median(read[5:55]), statistics.median(read[-50:])
        assert early <= late < 1.1 * early
