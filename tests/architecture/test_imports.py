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


@pytest.mark.inv("HOUSE-2")
@pytest.mark.parametrize(
    ("room", "expected"),
    [
        (
            "service",
            {"ports.definitions", "ports.errors", "ports.keys", "ports.maintenance", "ports.reader", "ports.workspace"}
            | {"ports.writer", "retention", "workflow_files"},
        ),
        ("config", {"git", "opening", "ports.servers", "regular_file", "workflow_files", "worktree"}),
        ("server", {"ports.errors", "ports.keys"}),
        ("console", {"ports.errors", "ports.reader", "ports.store"}),
        (
            "cli",
            {"git", "opening", "ports.definitions", "ports.errors", "ports.keys", "ports.maintenance", "ports.store"}
            | {"regular_file", "retention", "workflow_files", "worktree"},
        ),
    ],
    ids=["service", "config", "server", "console", "cli"],
)
def test_a_room_imports_no_more_of_a_store_than_the_ports_of_its_role_and_what_opens_one(
    room: str, expected: set[str]
) -> None:
    found = {
        name.removeprefix("interlock.store.")
        for path in (SRC / room).rglob("*.py")
        for name in imported(path)
        if name.startswith("interlock.store")
    }
    assert found == expected


WRITING_PORTS = {
    "SessionLock": {
        "service/contracts/start.py",
        "service/ports.py",
        "service/outside/dispatch.py",
        "service/outside/receive.py",
        "service/tools/advance.py",
    },
    "SessionWriter": {"service/ports.py", "service/transfer/restore.py"},
    "KeyRingWriter": {
        "service/ports.py",
        "service/transfer/restore.py",
        "server/elicitation/ask.py",
        "server/elicitation/seal.py",
    },
    "KeyRingMaintenance": {"cli/upkeep/checks.py", "cli/upkeep/keys.py"},
    "Collector": {"service/retention/collect.py", "service/contracts/claim.py"},
    "RetentionPins": {"service/retention/collect.py", "service/retention/lifetime.py"},
    "Upkeep": {"service/retention/collect.py"},
    "Store": {
        "cli/store.py",
        "cli/session/lifecycle/end.py",
        "cli/session/import_.py",
    },
    "open_store": {
        "config/ports.py",
        "cli/store.py",
        "cli/top/demo.py",
        "cli/session/lifecycle/delete.py",
        "cli/upkeep/doctor.py",
        "cli/upkeep/gc.py",
        "cli/upkeep/keys.py",
        "cli/upkeep/sessions.py",
    },
    "open_retention_pins": {"cli/store.py", "cli/session/keep.py"},
    "open_chosen_store": {
        "cli/session/lifecycle/end.py",
        "cli/session/import_.py",
        "cli/session/redact.py",
        "cli/session/repair.py",
        "cli/outside/receipt.py",
        *(f"cli/contract/{name}.py" for name in ("claim", "graph", "list", "publish", "show", "start")),
    },
}
"""What can write to a store, or gives all of its ports, with every module that imports it."""


@pytest.mark.inv("HOUSE-2", "READ-1")
def test_a_port_that_writes_is_imported_only_where_something_is_written() -> None:
    found: dict[str, set[str]] = {name: set() for name in WRITING_PORTS}
    for room in ("service", "config", "server", "console", "cli"):
        for path in (SRC / room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ImportFrom):
                    for name in {alias.name for alias in node.names} & found.keys():
                        found[name].add(path.relative_to(SRC).as_posix())
    assert found == WRITING_PORTS


@pytest.mark.inv("GIT-1")
def test_git_is_started_in_one_place() -> None:
    found = {
        path.relative_to(SRC).as_posix()
        for path in SRC.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.List | ast.Tuple)
        and node.elts
        and isinstance(node.elts[0], ast.Constant)
        and node.elts[0].value == "git"
    }
    assert found == {"store/git_process.py"}


@pytest.mark.inv("HOUSE-3")
def test_only_the_seam_the_lock_and_the_workflow_sources_touch_files() -> None:
    """The lock is the operating system's own; what others wrote is opened in one place; git gets its environment."""
    touching = {"os", "io", "shutil", "tempfile", "filelock"}
    found = {path.relative_to(SRC).as_posix() for path in (SRC / "store").rglob("*.py") if imported(path) & touching}
    assert found == {
        "store/git.py",
        "store/git_process.py",
        "store/regular_file.py",
        "store/local/files.py",
        "store/local/live.py",
        "store/local/locks.py",
        "store/workflow_files.py",
        "store/worktree.py",
    }
    opening = {
        path.relative_to(SRC).as_posix()
        for path in (SRC / "store").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute | ast.Name)
        and (node.attr if isinstance(node, ast.Attribute) else node.id)
        in {"open", "mkdir", "write_bytes", "write_text", "read_bytes", "read_text"}
    }
    # The lock opens its own file, which it makes.
    assert opening == {"store/regular_file.py", "store/local/files.py", "store/local/locks.py"}


@pytest.mark.inv("LIM-5")
def test_what_others_may_have_put_in_a_place_is_read_by_one_function() -> None:
    """Besides, only files of the package and the system's list of mounts are read, devices opened, and the files of
    a channel and of a drive's events written.
    """
    reads = re.compile(r"\.read_(?:text|bytes)\(|\bopen\([^)]*\"r|\bos\.open\(|\bopen\(\)")
    apart = {SRC / "testing", SRC / "cli" / "top" / "demo.py"}
    found = {
        path.relative_to(SRC).as_posix()
        for path in SRC.rglob("*.py")
        if apart.isdisjoint({path, *path.parents}) and reads.search(path.read_text(encoding="utf-8"))
    }
    assert found == {
        "channels/file.py",
        "cli/frame/running.py",
        "cli/upkeep/place.py",
        "console/rendering/static_files.py",
        "drive/telemetry/cloud_events.py",
        "drive/tools/workspace.py",
        "server/app.py",
        "server/apps/extension.py",
        "server/transport/descriptors.py",
        "store/local/files.py",
        "store/local/locks.py",
        "store/regular_file.py",
        "service/workflows/listing.py",
    }


@pytest.mark.inv("HOUSE-7")
def test_no_module_keeps_a_value_of_the_running_call_in_a_context_variable() -> None:
    """The running call, its thread or its task carries nothing: its ports do."""
    ambient = re.compile(r"\bcontextvars\b|\bContextVar\b|\bthreading\.local\b|\bglobal \w")
    assert [path.name for path in SRC.rglob("*.py") if ambient.search(path.read_text(encoding="utf-8"))] == []


def test_every_import_within_a_function_says_why() -> None:
    """What a start does not need is imported when it is needed; anything else belongs at the top."""
    bare = re.compile(r"PLC0415(?! — \w)")
    assert [path.name for path in SRC.rglob("*.py") if bare.search(path.read_text(encoding="utf-8"))] == []


@pytest.mark.inv("HOUSE-1")
def test_only_three_modules_beside_the_local_store_need_what_posix_alone_has() -> None:
    """Without a terminal of that kind, the command that runs another one in it does not exist; pipes are asked for
    their room on Linux only.
    """
    needing = {path.relative_to(SRC).as_posix() for path in SRC.rglob("*.py") if imported(path) & POSIX_ONLY}
    others = {"cli/outside/pass_through.py", "server/transport/output.py", "server/transport/descriptors.py"}
    assert needing <= {"store/local/files.py", "store/local/locks.py"} | others
