"""The real server over stdio, with system calls that fail, hang or lie; also with a second server on its directory."""

import errno
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.lab.independent_reader import Reading, files_of, read_data_dir
from tests.lab.preloaded import FaultyCalls, Rule, built
from tests.lab.processes import tokens_in
from tests.support.server import ABC, Server

from interlock.testing.harness import ToolResult

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
ACTS = {
    "open": "os.open(path, os.O_RDONLY)",
    "write": "os.write(handle, b'new')",
    "fsync": "os.fsync(handle)",
    "rename": "os.replace(other, path)",
    "truncate": "os.truncate(path, 1)",
    "unlink": "os.unlink(path)",
    "mkdir": "os.mkdir(made)",
}
SCRIPT = """
import json, os, sys
path, other, made = (os.path.join(sys.argv[1], name) for name in ("target", "other", "target.made"))
handle, failed = os.open(path, os.O_RDWR), []
open(sys.argv[1] + "/rule", "w").write(sys.argv[2])
for _ in range(3):
    try:
        ACT
    except OSError as error:
        failed.append(error.errno)
    else:
        failed.append(0)
    if not os.path.exists(path):
        os.close(os.open(path, os.O_CREAT))
    if os.path.exists(made):
        os.rmdir(made)
    os.close(os.open(other, os.O_CREAT))
print(json.dumps(failed))
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("faultfs"))


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("effect", ["fail", "lie"])
def test_the_library_makes_the_second_call_alone_fail(library: Path, tmp_path: Path, act: str, effect: str) -> None:
    """Whether it has its effect shows in the file; `pass` is what an operation does without a rule."""
    (tmp_path / "target").write_bytes(b"old")
    (tmp_path / "other").write_bytes(b"")
    rule = f"1 {act} 1 0 {effect} {errno.ENOSPC} none */target*"
    environment = {**os.environ, "LD_PRELOAD": str(library), "FAULTFS_RULE": str(tmp_path / "rule")}
    script = [sys.executable, "-c", SCRIPT.replace("ACT", ACTS[act]), str(tmp_path), rule]
    done = subprocess.run(script, capture_output=True, text=True, check=True, env=environment)
    assert json.loads(done.stdout) == [0, errno.ENOSPC, 0]
    if act == "write":
        written = b"newnewnew" if effect == "lie" else b"newnew"
        assert (tmp_path / "target").read_bytes() == written


class Servers:
    """Servers on one data directory, each with faults of its own."""

    def __init__(self, library: Path, root: Path, exits: ExitStack) -> None:
        self.data_dir = root / "data"
        self._library, self._root, self._exits = library, root, exits
        self._workspace = root / "workspace"
        (self._workspace / ".interlock" / "workflows").mkdir(parents=True)
        (self._workspace / ".interlock" / "workflows" / "abc.json").write_text(json.dumps(ABC), encoding="utf-8")

    def started(self, name: str) -> tuple[Server, FaultyCalls]:
        faults = FaultyCalls(self._library, self._root / name)
        server = Server(self.data_dir, self._workspace, environment=faults.environment)
        self._exits.enter_context(server)
        self._exits.callback(faults.close)
        return server, faults

    def reading(self) -> Reading:
        return read_data_dir(files_of(self.data_dir), boot=BOOT_ID.read_text(encoding="ascii").strip())

    def assert_true(self, *answers: ToolResult) -> None:
        """Hold that every node which an answer named is recorded, and nothing twice."""
        reading = self.reading()
        assert reading.flaws == []
        tokens = {token for answer in answers if not answer.is_error for token in tokens_in(answer)}
        assert [token for token in tokens if not reading.names(token)] == []
        assert len(reading.advances) == len(set(reading.advances))


@pytest.fixture
def servers(library: Path, tmp_path: Path) -> Iterator[Servers]:
    with ExitStack() as exits:
        yield Servers(library, tmp_path, exits)


@pytest.mark.inv("CRASH-3", "APP-6")
@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC])
def test_what_a_second_server_answers_while_the_first_hangs_in_a_sync_that_then_fails_is_never_lost(
    servers: Servers, error: int
) -> None:
    (writer, faults), (other, _) = servers.started("one"), servers.started("two")
    first = writer.start(goal="Survive")
    faults.set(Rule(operation="fsync", pattern="*/manifest.jsonl", error=error, gate="before"))
    call = {"ackToken": first.ack, "output": {"notesMarkdown": "Done."}}
    hanging = writer.soon("continue_workflow", call)
    faults.wait_until_reached()
    answers = [other.rehydrate(first), other.call("continue_workflow", **call)]
    servers.assert_true(*answers)
    faults.let_go()
    refused = hanging.result(60)
    assert refused.is_error
    servers.assert_true(*answers)
    for server in (other, writer):
        for answer in (one for one in answers if not one.is_error):
            assert not server.rehydrate(answer).is_error
    again = [other.call("continue_workflow", **call), writer.call("continue_workflow", **call)]
    assert [answer.is_error for answer in again] == [False, False]
    assert again[0]["stateToken"] == again[1]["stateToken"]
    servers.assert_true(*answers, *again)
    assert len(servers.reading().advances) == 1


KINDS = {
    "manifest": "*/manifest.jsonl",
    "settled mark": "*/settled",
    "segment": "*/events/*",
    "segments' directory": "*/events",
    "snapshot": "*/snapshots/*",
    "snapshots' directory": "*/snapshots",
    "pinned workflow": "*/pinned/*",
    "session's directory": "*/sessions/sess_*[a-z0-9]",
    "lock": "*/.lock",
    "key ring": "*/keyring.json*",
}
OPERATIONS = ("open", "write", "fsync", "rename", "truncate", "unlink", "mkdir")


def rules() -> Iterator[Rule]:
    """Yield the faults: every system call on every kind of path, without its effect and after it."""
    for operation in OPERATIONS:
        for pattern in KINDS.values():
            for effect in ("fail", "lie"):
                error = errno.ENOSPC if operation in {"write", "mkdir"} else errno.EIO
                yield Rule(operation=operation, pattern=pattern, effect=effect, error=error)


@pytest.mark.inv("APP-6", "APP-7")
@pytest.mark.parametrize("share", [pytest.param(7, id="a seventh"), pytest.param(1, id="all", marks=pytest.mark.soak)])
def test_no_failing_or_lying_system_call_makes_a_server_claim_what_is_not_recorded(
    servers: Servers, share: int
) -> None:
    server, faults = servers.started("one")
    answers, met = list[ToolResult](), 0
    last = server.start(goal="Continue")
    for number, rule in enumerate(itertools.islice(rules(), 0, None, share)):
        before = servers.reading()
        faults.set(rule)
        fresh = server.start(goal=f"Start {number}")
        faults.set(rule)
        advanced = server.advance(last)
        faults.set(None)
        met += fresh.is_error + advanced.is_error
        if all(answer.is_error and "nothing was recorded" in answer["message"] for answer in (fresh, advanced)):
            assert count(servers.reading()) == count(before), rule
        servers.assert_true(fresh, advanced)
        again = server.advance(last)
        assert not again.is_error, f"{rule}: {again.text}"
        assert advanced.is_error or again["stateToken"] == advanced["stateToken"], rule
        answers += [fresh, advanced, again]
        last = again if again["nextCall"] else server.start(goal="Continue")
    assert met > len(OPERATIONS), "rules met calls"
    servers.assert_true(*answers)
    restarted, _ = servers.started("later")
    assert not restarted.rehydrate(last).is_error


def count(reading: Reading) -> tuple[int, int]:
    return len(reading.runs), len(reading.advances)
