"""Upkeep beside a server that runs: it notices a rotation, and loses nothing to a collection."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.forked_server import ForkedServer
from tests.support.forkserver import forking_python
from tests.support.server import ABC, BOOT, workspace_in, writes_where_modes_forbid

from interlock.kernel.errors import ErrorCode
from interlock.service.audit.verify import verify_session
from interlock.service.run.plans import Plans
from interlock.store.local.store import LocalStore
from interlock.testing.harness import Harness

DAY_S = 24 * 3600


def run(data_dir: Path, *arguments: str) -> dict[str, Any]:
    """Run a command in a process of its own and return what it printed."""
    command = [forking_python(), "-m", "interlock", *arguments, "--data-dir", str(data_dir), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@pytest.mark.inv("KEY-1", "KEY-4")
def test_running_servers_notice_a_rotation_and_the_second_one_ends_the_first_tokens(tmp_path: Path) -> None:
    space, data_dir = workspace_in(tmp_path, abc=ABC), tmp_path / "data"
    with ForkedServer(data_dir, space) as one, ForkedServer(data_dir, space) as other:
        first = one.start(goal="Rotate")
        run(data_dir, "keys", "rotate")
        second = one.rehydrate(first)
        assert second.state != first.state, "signed with the new key"
        assert other.rehydrate(second).state == second.state
        third = other.advance(first)
        assert third["pending"]["stepId"] == "b"
        run(data_dir, "keys", "rotate")
        for server in (one, other):
            refused = server.rehydrate(first)
            assert refused.code is ErrorCode.TOKEN_BAD_SIGNATURE
            assert "rotated" in refused["message"]
            assert server.advance(first.ack).code is ErrorCode.TOKEN_BAD_SIGNATURE
        last = one.advance(third)
        assert last["pending"]["stepId"] == "c"
        assert other.advance(last)["isComplete"]


def make_old(root: Path, days: float) -> None:
    """Make all content and every session below a data directory that old."""
    when = root.stat().st_mtime - days * DAY_S
    for name in ("sessions", "snapshots", "workflows", "artifacts"):
        for path in (root / name).rglob("*"):
            os.utime(path, (when, when))


@pytest.mark.inv("GC-6")
def test_a_server_goes_on_while_what_it_reuses_is_collected(tmp_path: Path) -> None:
    space, data_dir = workspace_in(tmp_path, abc=ABC), tmp_path / "data"
    with ForkedServer(data_dir, space) as server:
        old = server.start(goal="Old")
        make_old(data_dir, 100)
        (data_dir / "config.toml").write_text("[retention]\ndays = 1\n", encoding="utf-8")
        live = server.start(goal="Live")
        # The old session's newest event is recorded now, so it does not expire; let it vanish as if it had.
        session = old["run"]["sessionId"]
        assert run(data_dir, "gc")["expired"] == []
        (data_dir / "sessions" / session).rename(tmp_path / "gone")
        run(data_dir, "gc")
        for _ in range(2):
            live = server.advance(live)
            run(data_dir, "gc")
        assert server.rehydrate(old).code is ErrorCode.TOKEN_UNKNOWN_NODE
        assert server.advance(live)["isComplete"]
    store = LocalStore(data_dir)
    (name,) = store.sessions()
    assert verify_session(store, Plans(store), name) == ()


UNREADABLE = {
    "the data directory": "data",
    "what holds it": ".",
    "its sessions": "data/sessions",
    "its keep marks": "data/config",
    "its keys": "data/keys",
}


@pytest.mark.inv("DOC-1", "ANS-10")
@pytest.mark.skipif(sys.platform == "win32", reason="modes are POSIX")
@pytest.mark.parametrize("part", UNREADABLE)
def test_without_access_commands_end_with_a_message_and_doctor_goes_on_with_the_rest(tmp_path: Path, part: str) -> None:
    if writes_where_modes_forbid(tmp_path):
        pytest.skip("NOT TESTED: this user reads everything whatever its mode")
    place = tmp_path / "place"
    harness = Harness.on_disk(place / "data", ABC)
    keep = f"session keep {harness.session_of(harness.start('test.abc'))}"
    commands = ("doctor", "doctor --deep", keep, "keys rotate", "gc --dry-run")
    hidden = place / UNREADABLE[part]
    hidden.chmod(0)
    try:
        done = {one: run_mortal(tmp_path, *one.split(), "--data-dir", str(place / "data")) for one in commands}
    finally:
        hidden.chmod(0o700)
    fine = {"its sessions": "keys rotate", "its keys": keep}.get(part)
    for command, one in done.items():
        assert "Traceback" not in one.stderr + one.stdout
        assert one.returncode == (0 if command == fine else 1), (command, one.stderr)
    for command in ("doctor", "doctor --deep"):
        said = done[command].stdout
        assert "cannot be read completely" in said
        assert ("fine       keys" in said) is (part in {"its sessions", "its keep marks"})


def run_mortal(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command without the powers of a superuser over modes."""
    boot = [sys.executable, "-c", BOOT, str(tmp_path / "pid"), "mortal", "-m", "interlock", *arguments]
    return subprocess.run(boot, capture_output=True, text=True, timeout=60, check=False)
