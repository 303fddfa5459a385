"""A data directory for the commands over recorded sessions, and a project for those over workflow files."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.support.history import MovingClock, Place

from interlock.cli.main import main


@pytest.fixture
def place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Place:
    return Place(root=tmp_path / "data", clock=MovingClock(), capsys=capsys)


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A project that is the current directory, a user with workflow files of their own, and no configuration."""

    root: Path

    def run(self, command: str, *words: str, core: Path | None = None) -> int:
        """Run `interlock workflow …` here and return its exit code."""
        given = ["--workspace", str(self.root), "--workflows-dir", str(self.root / "user")]
        mounted = [] if core is None else ["--core-source", str(core)]
        return main(["workflow", command, *given, *mounted, *words])


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("INTERLOCK_DATA_DIR", str(tmp_path / "data"))
    return Project(root=tmp_path)
