"""Upkeep beside a server that runs: it notices a rotation, and loses nothing to a collection."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support_server import ABC, Server, workspace_in

from interlock.kernel.errors import ErrorCode
from interlock.service.plans import Plans
from interlock.service.verify import verify_session
from interlock.store.local.store import LocalStore

DAY_S = 24 * 3600


def run(data_dir: Path, *arguments: str) -> dict[str, Any]:
    """Run a command in a process of its own and return what it told."""
    command = [sys.executable, "-m", "interlock", *arguments, "--data-dir", str(data_dir), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


@pytest.mark.inv("KEY-1", "KEY-4")
def test_running_servers_notice_a_rotation_and_the_second_one_ends_the_first_tokens(tmp_path: Path) -> None:
    space, data_dir = workspace_in(tmp_path, abc=ABC), tmp_path / "data"
    with Server(data_dir, space) as one, Server(data_dir, space) as other:
        first = one.start(goal="Rotate")
        run(data_dir, "keys", "rotate")
        second = one.look(first)
        assert second.state != first.state, "signed with the new key"
        assert other.look(second).state == second.state
        third = other.advance(first)
        assert third["pending"]["stepId"] == "b"
        run(data_dir, "keys", "rotate")
        for server in (one, other):
            refused = server.look(first)
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
    with Server(data_dir, space) as server:
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
        assert server.look(old).code is ErrorCode.TOKEN_UNKNOWN_NODE
        assert server.advance(live)["isComplete"]
    store = LocalStore(data_dir)
    (name,) = store.sessions()
    assert verify_session(store, Plans(store), name) == ()
