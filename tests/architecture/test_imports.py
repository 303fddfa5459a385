"""Imports between rooms go one way, and no caller of a store knows more of it than its ports."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
SRC = ROOT / "src" / "interlock"
POSIX_ONLY = {"fcntl", "pwd", "grp", "termios", "resource", "posix"}


@pytest.mark.inv("HOUSE-1")
def test_the_import_contracts_hold() -> None:
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2_000:]
    assert "0 broken" in done.stdout


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return names


PORTS = {"interlock.store.ports", "interlock.store.retention", "interlock.store.workflow_files"}


@pytest.mark.inv("HOUSE-2")
@pytest.mark.parametrize(
    ("room", "more"),
    [
        ("service", set[str]()),
        ("config", {"interlock.store.regular_file"}),
        ("server", {"interlock.store.opening", "interlock.store.git"}),
        ("cli", {"interlock.store.opening", "interlock.store.regular_file"}),
    ],
    ids=["service", "config", "server", "cli"],
)
def test_no_caller_imports_more_of_a_store_than_its_ports_and_what_opens_it(room: str, more: set[str]) -> None:
    of_store = {
        (path.relative_to(SRC).as_posix(), name)
        for path in (SRC / room).rglob("*.py")
        for name in imported(path)
        if name.startswith("interlock.store")
    }
    assert {(path, name) for path, name in of_store if name not in PORTS | more} == set()


@pytest.mark.inv("HOUSE-3")
def test_only_the_seam_the_lock_and_the_workflow_sources_touch_files() -> None:
    """The lock is the operating system's own; what others wrote is opened in one place; git gets its environment."""
    touching = {"os", "io", "shutil", "tempfile", "filelock"}
    found = {path.relative_to(SRC).as_posix() for path in (SRC / "store").rglob("*.py") if imported(path) & touching}
    assert found == {"store/git.py", "store/regular_file.py", "store/local/files.py", "store/local/locks.py"}
    opening = {
        path.relative_to(SRC).as_posix()
        for path in (SRC / "store").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute | ast.Name)
        and (node.attr if isinstance(node, ast.Attribute) else node.id)
        in {"open", "mkdir", "write_bytes", "write_text", "read_bytes", "read_text"}
    }
    # The lock opens its own file, which it makes, and reads nothing of it.
    assert opening == {"store/regular_file.py", "store/local/files.py", "store/local/locks.py"}


@pytest.mark.inv("LIM-5")
def test_what_others_may_have_put_in_a_place_is_read_by_one_function() -> None:
    """Besides, only what was generated in a checkout and the system's list of mounts are read, and devices opened."""
    reads = re.compile(r"\.read_(?:text|bytes)\(|\bopen\([^)]*\"r|\bos\.open\(|\bopen\(\)")
    apart = {SRC / "testing", SRC / "cli" / "demo.py"}
    found = {
        path.relative_to(SRC).as_posix()
        for path in SRC.rglob("*.py")
        if apart.isdisjoint({path, *path.parents}) and reads.search(path.read_text(encoding="utf-8"))
    }
    assert found == {
        "cli/running.py",
        "cli/upkeep/place.py",
        "server/transport/stdio.py",
        "store/local/files.py",
        "store/local/locks.py",
        "store/regular_file.py",
    }


@pytest.mark.inv("HOUSE-7")
def test_no_module_keeps_a_value_of_the_running_call_in_a_context_variable() -> None:
    """The running call, its thread or its task carries nothing: its ports do."""
    ambient = re.compile(r"\bcontextvars\b|\bContextVar\b|\bthreading\.local\b|\bglobal \w")
    assert [path.name for path in SRC.rglob("*.py") if ambient.search(path.read_text(encoding="utf-8"))] == []


@pytest.mark.inv("HOUSE-1")
def test_only_the_local_store_needs_what_posix_alone_has() -> None:
    needing = {path.relative_to(SRC).as_posix() for path in SRC.rglob("*.py") if imported(path) & POSIX_ONLY}
    assert needing <= {"store/local/files.py", "store/local/locks.py"}
