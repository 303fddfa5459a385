"""The built-in tools stay in the workspace, and a command is confined by the user's sandbox alone."""

import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.drive import calls, driving, each, profile

from interlock.drive.faults import TurnError
from interlock.drive.tools import workspace
from interlock.drive.tools.builtin import BUILTINS
from interlock.drive.tools.workspace import Workspace
from interlock.kernel.descent import DESCENDANT
from interlock.testing.harness import Harness, linear_workflow

ONE = linear_workflow("test.abc", "a")
ALL = [{"name": name, "permission": "allow"} for name in BUILTINS]
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="makes links")


@pytest.fixture
def space(tmp_path: Path) -> Path:
    inside, outside = tmp_path / "space", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (outside / "secret.txt").write_text("secret")
    (inside / "a.txt").write_text("one\ntwo\nthree")
    (inside / "link.txt").symlink_to(outside / "secret.txt")
    (inside / "dir").symlink_to(outside)
    (inside / "dangling").symlink_to(outside / "new.txt")
    os.mkfifo(inside / "pipe")
    return inside


async def results(space: Path, *wanted: tuple[str, Any], **stated: Any) -> list[dict[str, Any]]:
    answer = each(calls(*wanted))
    async with driving(Harness.in_memory(ONE), answer, profile(**{"tools": ALL, **stated}), workspace=space) as drive:
        assert (await drive.start()).status == "complete"
        done = next(one for one in drive.caller.records() if one["status"] == "done")
        return [one["result"] for one in done["tools"]]


WRONG: list[tuple[str, Any, tuple[str, Any]]] = [
    ("read_file", {"path": "missing.py"}, ("read_file", {"path": "a.txt"})),
    ("read_file", {"path": "."}, ("read_file", {"path": "a.txt"})),
    ("write_file", {"path": "a.txt/b", "content": ""}, ("write_file", {"path": "b.txt", "content": ""})),
    (
        "patch_file",
        {"path": "a.txt", "old": "ten", "new": "x"},
        ("patch_file", {"path": "a.txt", "old": "two", "new": "x"}),
    ),
    ("run_command", {"argv": ["no-such-program"]}, ("run_command", {"argv": ["true"]})),
]


@pytest.mark.asyncio
@pytest.mark.inv("TOOL-6")
@pytest.mark.parametrize(("name", "wrong", "right"), WRONG)
async def test_what_a_tool_answers_of_a_wrong_path_or_text_does_not_open_its_breaker(
    space: Path, name: str, wrong: Any, right: tuple[str, Any]
) -> None:
    *refused, done = await results(space, *[(name, wrong)] * 6, right)
    assert {one["error"]["code"] for one in refused} == {"turn.TOOL_ERROR"}
    assert done["status"] == "success"


@pytest.mark.asyncio
@pytest.mark.inv("TOOL-6")
async def test_a_tool_that_cannot_work_opens_its_breaker(space: Path) -> None:
    answer = each(calls(*[("run_command", {"argv": ["true"]})] * 6))
    stated = profile(tools=ALL, security={"sandbox": ["no-such-sandbox"]})
    async with driving(Harness.in_memory(ONE), answer, stated, workspace=space) as drive:
        result = await drive.start()
    assert result.fault is not None
    assert (result.status, result.fault.code) == ("failed", "CIRCUIT_OPEN")


ESCAPES = [
    "../outside/secret.txt",
    "link.txt",
    "dir/secret.txt",
    "/etc/passwd",
    "a.txt/../../outside/secret.txt",
    "dangling",
]


@pytest.mark.asyncio
@pytest.mark.parametrize("path", ESCAPES)
async def test_no_path_leads_out_of_the_workspace_by_a_link_either(space: Path, path: str) -> None:
    write = ("write_file", {"path": path, "content": "changed"})
    patch = ("patch_file", {"path": path, "old": "secret", "new": "changed"})
    found = await results(space, ("read_file", {"path": path}), write, patch)
    assert [one["error"]["code"] for one in found] == ["turn.POLICY_VIOLATION"] * 3
    assert (space.parent / "outside" / "secret.txt").read_text() == "secret"
    assert not (space.parent / "outside" / "new.txt").exists()


@given(st.lists(st.sampled_from(["..", ".", "dir", "a.txt", "x", "link.txt", "", "/", "~"]), max_size=6))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_located_path_is_always_in_the_workspace(space: Path, parts: list[str]) -> None:
    confined = Workspace(space)
    path = "/".join(parts)
    real = Path(os.path.realpath(confined.root / path))
    if real == confined.root or confined.root in real.parents:
        assert confined.locate(path) == real
    else:
        with pytest.raises(TurnError, match="leads out"):
            confined.locate(path)


@pytest.mark.asyncio
async def test_files_are_read_listed_searched_written_and_patched(space: Path) -> None:
    found = await results(
        space,
        ("write_file", {"path": "sub/b.txt", "content": "alpha beta"}),
        ("patch_file", {"path": "sub/b.txt", "old": "beta", "new": "two"}),
        ("read_file", {"path": "a.txt", "firstLine": 2, "lines": 1}),
        ("list_files", {"pattern": "*.txt"}),
        ("search_files", {"text": "two"}),
        ("patch_file", {"path": "a.txt", "old": "nothing", "new": ""}),
        ("read_file", {"path": "pipe"}),
        ("read_file", {"path": "sub"}),
    )
    assert (space / "sub" / "b.txt").read_text() == "alpha two"
    assert found[2]["output"] == {"text": "two", "lines": 3, "isCut": False}
    assert found[3]["output"]["files"] == ["a.txt", "sub/b.txt"]
    assert [(one["path"], one["line"]) for one in found[4]["output"]["matches"]] == [("a.txt", 2), ("sub/b.txt", 1)]
    assert [one["error"]["code"] for one in found[5:]] == ["turn.TOOL_ERROR"] * 3


@pytest.mark.asyncio
async def test_a_command_runs_without_a_shell_in_the_workspace_with_a_small_environment(
    space: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_USER", "1")
    script = "import os, sys; print(sorted(os.environ)); print(os.getcwd()); print(sys.argv[1:]); sys.exit(3)"
    (found,) = await results(space, ("run_command", {"argv": [sys.executable, "-c", script, "$HOME; ls"]}))
    assert found["output"]["exitCode"] == 3
    environment, directory, arguments = found["output"]["output"].splitlines()
    assert "SECRET_OF_THE_USER" not in environment
    assert DESCENDANT in environment
    assert (directory, arguments) == (str(space), "['$HOME; ls']")


@pytest.mark.asyncio
async def test_the_sandbox_of_the_profile_precedes_every_command(space: Path) -> None:
    wrapper = [sys.executable, "-c", "import sys; print('confined:', sys.argv[1:])"]
    found = await results(space, ("run_command", {"argv": ["rm", "-rf", "x"]}), security={"sandbox": wrapper})
    assert found[0]["output"]["output"] == "confined: ['rm', '-rf', 'x']\n"


@pytest.mark.asyncio
async def test_a_command_that_takes_too_long_is_ended_with_what_it_started(space: Path) -> None:
    mark = space / "late.txt"
    child = f"import time, pathlib; time.sleep(1); pathlib.Path({str(mark)!r}).touch()"
    parent = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {child!r}]); time.sleep(60)"
    tools = [{"name": "run_command", "permission": "allow", "timeout_ms": 400}]
    (found,) = await results(space, ("run_command", {"argv": [sys.executable, "-c", parent]}), tools=tools)
    assert found["status"] == "timeout"
    wait = [sys.executable, "-c", "import time; time.sleep(1.2)"]
    await results(space, ("run_command", {"argv": wait}))
    assert not mark.exists()


@pytest.mark.asyncio
async def test_a_tool_that_is_not_named_is_not_offered(space: Path) -> None:
    async with driving(Harness.in_memory(ONE), each(calls(("read_file", {"path": "a.txt"}))), workspace=space) as drive:
        await drive.start()
        assert drive.caller.records()[0]["tools"][0]["result"]["error"]["code"] == "turn.VALIDATION_ERROR"


@pytest.mark.asyncio
async def test_a_write_to_what_is_no_file_is_refused_and_does_not_hang(space: Path) -> None:
    reader = os.open(space / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        (read,) = await results(space, ("write_file", {"path": "pipe", "content": "x"}))
    finally:
        os.close(reader)
    (unread,) = await results(space, ("write_file", {"path": "pipe", "content": "x"}))
    assert [one["error"]["code"] for one in (read, unread)] == ["turn.TOOL_ERROR"] * 2


@pytest.mark.asyncio
async def test_a_shorter_text_replaces_the_whole_of_a_file(space: Path) -> None:
    await results(space, ("write_file", {"path": "a.txt", "content": "1"}))
    assert (space / "a.txt").read_text() == "1"


@pytest.mark.asyncio
async def test_a_search_ends_at_its_time_limit(space: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(100):
        (space / f"{number}.txt").write_text("text")

    read: list[str] = []

    def slowly(_workspace: Workspace, path: str) -> str:
        read.append(path)
        time.sleep(0.02)
        return "text"

    monkeypatch.setattr(Workspace, "read", slowly)
    tools = [{"name": "search_files", "timeout_ms": 100, "retry": {"max_retries": 0}}]
    (found,) = await results(space, ("search_files", {"text": "text"}), tools=tools)
    assert found["status"] == "timeout"
    assert len(read) < 50


@pytest.mark.asyncio
async def test_a_search_says_that_there_are_more_files_and_how_many_were_not_read(
    space: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (space / "b.txt").write_text("two")
    whole = await results(space, ("list_files", {}), ("search_files", {"text": "two"}))
    assert [one["output"]["isCut"] for one in whole] == [False, False]
    assert whole[1]["output"]["unreadFiles"] == 1, "the pipe"
    monkeypatch.setattr(workspace, "TOOL_FILES_MAX", 1)
    cut = await results(space, ("list_files", {}), ("search_files", {"text": "two"}))
    assert [one["output"]["isCut"] for one in cut] == [True, True]
