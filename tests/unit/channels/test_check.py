"""Commands that Interlock runs itself: bounded, ended as a group, in an environment that the caller cannot choose."""

import os
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from interlock.channels import check as module
from interlock.channels.check import CheckFault, CheckResult, PlacedCheck, run_command
from interlock.channels.check_config import CheckConfig
from interlock.channels.check_place import changed_fault, pin_check, place_check
from interlock.kernel.canonical import digest_of_bytes
from interlock.record.world import PinnedCheck

MIB = 1024 * 1024


def python(code: str, directory: Path, **more: object) -> PlacedCheck:
    config = CheckConfig(name="tests", command=(sys.executable, "-c", code), workspaces=(str(directory),))
    return PlacedCheck(config=replace(config, **more), directory=directory)  # pyright: ignore[reportArgumentType] — fields


@pytest.fixture
def lock(tmp_path: Path) -> Iterator[int]:
    handle = os.open(tmp_path / "lock", os.O_CREAT | os.O_RDWR)
    yield handle
    os.close(handle)


def is_gone(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.mark.inv("CHECK-1")
def test_a_result_has_the_exit_code_the_end_of_the_output_and_the_digest_of_all_of_it(
    tmp_path: Path, lock: int
) -> None:
    found = run_command(python("print('one'); print('two'); raise SystemExit(3)", tmp_path), lock)
    assert (found.ended, found.exit, found.output, found.is_passed) == ("exit", 3, "one\ntwo", False)
    assert found.digest == digest_of_bytes(b"one\ntwo\n")
    assert run_command(python("pass", tmp_path), lock).is_passed


@pytest.mark.inv("CHECK-3")
@pytest.mark.parametrize("size", [8 * MIB, pytest.param(100 * MIB, marks=pytest.mark.soak)], ids=["8 MiB", "100 MiB"])
def test_a_long_output_is_kept_to_its_bound_and_counted_whole(tmp_path: Path, lock: int, size: int) -> None:
    code = f"import sys; line = 'x' * 1023 + '\\n'; [sys.stdout.write(line) for _ in range({size // 1024})]"
    found = run_command(python(code, tmp_path), lock)
    assert len(found.output) <= found_bytes(found) <= 2 * 1024
    assert found.digest == digest_of_bytes((b"x" * 1023 + b"\n") * (size // 1024))


def found_bytes(found: CheckResult) -> int:
    return len(found.output.encode())


@pytest.mark.inv("CHECK-3")
def test_a_command_that_takes_too_long_and_ignores_signals_is_killed_with_all_that_it_started(
    tmp_path: Path, lock: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CHECK_GRACE_S", 0.1)
    script = "trap '' TERM; echo $$ >> pids; (echo $(exec sh -c 'echo $PPID') >> pids; sleep 60) & sleep 60"
    config = CheckConfig(name="tests", command=("/bin/sh", "-c", script), workspaces=(str(tmp_path),), timeout_s=1)
    found = run_command(PlacedCheck(config=config, directory=tmp_path), lock)
    assert (found.ended, found.is_passed) == ("timeout", False)
    pids = (tmp_path / "pids").read_text().split()
    assert len(pids) == 2
    for pid in pids:
        # A killed process is gone as soon as the system has reaped it.
        assert any(is_gone(pid) or time.sleep(0.05) for _ in range(100))


@pytest.mark.inv("CHECK-3")
def test_a_process_that_a_command_leaves_behind_ends_with_it_and_holds_nothing_up(tmp_path: Path, lock: int) -> None:
    code = "import os, time\nif os.fork() == 0:\n    time.sleep(60)\nprint('done')"
    found = run_command(python(code, tmp_path), lock)
    assert (found.ended, found.exit, found.output) == ("exit", 0, "done")
    assert found.seconds < 10


@pytest.mark.inv("CHECK-3")
def test_the_environment_of_a_check_is_not_that_of_who_starts_it(
    tmp_path: Path, lock: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PATH", "HOME", "PYTHONPATH", "MAKEFLAGS"):
        monkeypatch.setenv(name, str(tmp_path))
    found = run_command(python("import os; print(*sorted(os.environ.values()))", tmp_path), lock)
    assert str(tmp_path) not in found.output


@pytest.mark.inv("CHECK-1")
def test_a_program_that_does_not_start_gives_the_exit_code_of_a_shell_and_the_reason(tmp_path: Path, lock: int) -> None:
    program = tmp_path / "verify"
    program.write_text("true\n")
    program.chmod(0o700)
    config = CheckConfig(name="tests", command=("./verify",), workspaces=(str(tmp_path),))
    found = run_command(PlacedCheck(config=config, directory=tmp_path), lock)
    assert (found.ended, found.exit, found.is_passed) == ("exit", 126, False)
    assert found.output == "'./verify' cannot be started: Exec format error"
    assert found.digest == digest_of_bytes(f"{found.output}\n".encode())


@pytest.mark.inv("CHECK-5")
def test_a_check_runs_in_the_innermost_listed_directory_around_the_workspace_by_its_real_path(tmp_path: Path) -> None:
    (tmp_path / "project" / "part").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "project")
    inner, outer = str(tmp_path / "project"), str(tmp_path)
    config = CheckConfig(name="tests", command=("true",), workspaces=(outer, inner))
    for workspace in (tmp_path / "project" / "part", tmp_path / "link"):
        found = place_check(config, workspace)
        assert isinstance(found, PlacedCheck)
        assert found.directory == tmp_path / "project"
    assert isinstance(place_check(config, tmp_path.parent), CheckFault)
    assert isinstance(place_check(config, None), CheckFault)


@pytest.mark.inv("CHECK-5")
def test_a_check_whose_workspace_holds_the_data_directory_is_not_pinned(tmp_path: Path) -> None:
    placed = python("pass", tmp_path)
    found = pin_check(placed, tmp_path / "data")
    assert isinstance(found, CheckFault)
    assert "--data-dir" in found.fix
    assert isinstance(pin_check(placed, tmp_path.parent / "elsewhere"), PinnedCheck)


@pytest.mark.inv("CHECK-2")
@pytest.mark.parametrize("change", ["edited", "removed", "added", "replaced by a link", "untouched"])
def test_each_change_of_a_protected_file_is_found(tmp_path: Path, change: str) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "Makefile").write_text("test:\n\tpytest\n")
    (tmp_path / "tests" / "a.py").write_text("assert 1")
    placed = python("pass", tmp_path, protect=("Makefile", "tests/**/*"))
    pinned = pin_check(placed, tmp_path.parent / "data")
    assert isinstance(pinned, PinnedCheck)
    match change:
        case "edited":
            (tmp_path / "Makefile").write_text("test:\n\ttrue\n")
        case "removed":
            (tmp_path / "tests" / "a.py").unlink()
        case "added":
            (tmp_path / "tests" / "b.py").write_text("")
        case "replaced by a link":
            (tmp_path / "copy").write_text("test:\n\tpytest\n")
            (tmp_path / "Makefile").unlink()
            (tmp_path / "Makefile").symlink_to(tmp_path / "copy")
        case _:
            (tmp_path / "other").write_text("not protected")
    assert (changed_fault(placed, pinned) is not None) == (change != "untouched")
