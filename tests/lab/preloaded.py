"""Real processes whose system calls fail, hang or lie: the preload library of the laboratory, and its rules."""

import errno
import itertools
import os
import select
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
from tests.lab.faulty_files import PATIENCE_S

SOURCE = Path(__file__).with_name("faultfs.c")
BUILD = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC"]
PROBE = "import ctypes, os; print(ctypes.CDLL(None).fsync, 'faultfs' in open('/proc/self/maps').read())"
_SERIALS = itertools.count()


def built(directory: Path) -> Path:
    """Build the library; without a compiler or a loader for it, skip the test and say what is missing."""
    if sys.platform != "linux":
        pytest.skip(f"faults of system calls need LD_PRELOAD and /proc of Linux; this is {sys.platform}")
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("faults of system calls need a C compiler: there is no `cc` on the path")
    library = directory / "faultfs.so"
    command = [compiler, *BUILD, "-o", str(library), str(SOURCE), "-ldl", "-lpthread"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"`cc` cannot build the preload library: {done.stderr[-300:]}")
    probe = [sys.executable, "-c", PROBE]
    said = subprocess.run(
        probe, capture_output=True, text=True, check=False, env={**os.environ, "LD_PRELOAD": str(library)}
    )
    if "True" not in said.stdout:
        pytest.skip(f"LD_PRELOAD does not load the library here: {said.stderr[-300:]}")
    return library


@dataclass(kw_only=True)
class Rule:
    """What goes wrong with a system call; see `faultfs.c`. `pattern` is matched against the whole path."""

    operation: Literal["open", "write", "fsync", "rename", "truncate", "unlink", "mkdir"]
    pattern: str
    at: int = 0
    is_lasting: bool = False
    effect: Literal["fail", "lie", "pass"] = "fail"
    error: int = errno.EIO
    gate: Literal["none", "before", "after"] = "none"

    def __str__(self) -> str:
        lasting = "from then on" if self.is_lasting else "once"
        gate = f", hangs {self.gate} its effect" if self.gate != "none" else ""
        return f"{self.operation} of {self.pattern}, number {self.at}: {self.effect}, {lasting}{gate}"


@dataclass
class FaultyCalls:
    """The faults of one process, to be set while it runs."""

    library: Path
    directory: Path
    environment: Mapping[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.directory.mkdir()
        self._rule = self.directory / "rule"
        self._fifos: dict[str, int] = {}
        for name in ("reached", "open"):
            os.mkfifo(self.directory / name)
            # Open in both directions, so that neither side waits for the other to open it.
            self._fifos[name] = os.open(self.directory / name, os.O_RDWR | os.O_CLOEXEC)
        self.environment = {
            "LD_PRELOAD": str(self.library),
            "FAULTFS_RULE": str(self._rule),
            "FAULTFS_GATE": str(self.directory),
        }

    def set(self, rule: Rule | None) -> None:
        """Set what goes wrong from now on; None ends it."""
        if rule is None:
            self._rule.unlink(missing_ok=True)
            return
        words = (next(_SERIALS), rule.operation, rule.at, int(rule.is_lasting), rule.effect, rule.error, rule.gate)
        temp = self._rule.with_suffix(".new")
        temp.write_text(f"{' '.join(map(str, words))} {rule.pattern}\n", encoding="ascii")
        temp.rename(self._rule)

    def wait_until_reached(self) -> None:
        """Wait until the process hangs at its rule."""
        ready, _, _ = select.select([self._fifos["reached"]], [], [], PATIENCE_S)
        assert ready, "the process never came to its rule"
        os.read(self._fifos["reached"], 1)

    def let_go(self) -> None:
        """Let the hanging process continue."""
        os.write(self._fifos["open"], b"!")

    def close(self) -> None:
        """Close the FIFOs; a hanging process continues."""
        self.set(None)
        self.let_go()
        for handle in self._fifos.values():
            os.close(handle)
