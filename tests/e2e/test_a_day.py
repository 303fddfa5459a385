"""A day with a kill, a new chat, another machine, a rotation and a sweep: nothing is lost, nothing is done twice."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.support.forked_server import ForkedServer
from tests.support.forkserver import forking_python
from tests.support.server import Server, step_of

from interlock.testing.harness import ToolResult, linear_workflow

FIX = linear_workflow("team.fix", "find", "change", "check", name="Fix")
FIX_WORDS = "the login loop"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    place = tmp_path / "space"
    (place / ".interlock" / "workflows").mkdir(parents=True)
    (place / ".interlock" / "workflows" / "fix.json").write_text(json.dumps(FIX), encoding="utf-8")
    return place


def command(data_dir: Path, *arguments: str, code: int = 0) -> Any:
    """Run a command as a person does, and return its JSON."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("INTERLOCK_")}
    done = subprocess.run(
        [str(Path(forking_python()).with_name("interlock")), *arguments, "--data-dir", str(data_dir), "--json"],
        env=environment,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout)


def views(data_dir: Path, session: str) -> dict[str, Any]:
    """Return what people see of a session, each view as it is printed, without the marks of an import."""
    seen = {name: command(data_dir, "session", name, session) for name in ("show", "timeline", "graph")}
    for entry in seen["timeline"]["entries"]:
        for event in entry["events"]:
            event["data"].pop("imported", None)
    for run in seen["show"]["runs"]:
        run["restsOn"].pop("imported", None)
    return seen | {"gaps": command(data_dir, "session", "open-gaps", session)}


def looked_at(server: Server, answer: ToolResult) -> ToolResult:
    (found,) = server.call("resume_session", query="login loop")["candidates"]
    shown = server.call(found["nextCall"]["tool"], **found["nextCall"]["arguments"])
    assert shown["run"]["label"] == answer["run"]["label"]
    return shown


@pytest.mark.inv("CHK-1", "RES-1", "REC-1", "BND-6", "BND-7")
def test_a_day_of_kills_new_chats_and_other_machines_loses_nothing(tmp_path: Path, workspace: Path) -> None:
    desk, laptop = tmp_path / "desk", tmp_path / "laptop"
    with ForkedServer(desk, workspace) as first:
        start = first.start("team.fix", goal=FIX_WORDS)
        second = first.advance(start, "The form sends the wrong field.")
        kept = first.call("checkpoint_workflow", ackToken=second.ack, output={"notesMarkdown": "Half renamed."})
        first.kill()

    with ForkedServer(desk, workspace, era="legacy") as other:
        shown = looked_at(other, start)
        assert (step_of(shown), shown.ack) == ("change", second.ack)
        assert "Half renamed." in shown["recap"]
        assert other.rehydrate(kept["stateToken"])["pending"] == shown["pending"]
        assert other.advance(start, "The form sends the wrong field.") == second, "the same call gets the same answer"
        third = other.advance(shown, "Renamed.")
        forked = other.fork(shown, "Renamed on both ends.")
        assert "BRANCH_CREATED" in forked.warnings
        done = other.advance(forked, "Logged in ten times.")
        assert done["isComplete"]
        assert step_of(other.rehydrate(third)) == "check", "the other branch stays as it was"

    session = str(start["run"]["sessionId"])
    before = views(desk, session)
    command(desk, "session", "export", session, "--out", str(tmp_path / "day.json"))
    assert command(laptop, "session", "import", str(tmp_path / "day.json"))["sessionId"] == session
    assert views(laptop, session) == before
    assert command(laptop, "session", "verify")["mismatches"] == []

    with ForkedServer(laptop, workspace) as there:
        refused = there.advance(third, "Not from here.")
        assert refused.code == "TOKEN_BAD_SIGNATURE", "tokens are of one data directory"
        (found,) = there.call("resume_session", sessionId=session)["candidates"]
        assert found["status"] == "complete"
        tip = there.call(found["nextCall"]["tool"], **found["nextCall"]["arguments"])
        assert tip["isComplete"]
        again = there.start("team.fix", goal="the logout", sessionId=session)
        going = there.advance(again, "Looked.")
        assert step_of(going) == "change"
        command(laptop, "keys", "rotate")
        assert there.rehydrate(going).ack != going.ack, "new tokens are signed with the new key"
        assert step_of(there.advance(going, "Changed.")) == "check", "the old ones still work"

    swept = command(laptop, "gc")
    assert {one["count"] for one in swept["taken"]} == {0}, "nothing of it is old"
    with ForkedServer(laptop, workspace) as last:
        assert last.rehydrate(found["stateToken"])["isComplete"]
    assert command(desk, "session", "verify")["mismatches"] == []
    assert views(desk, session) == before
