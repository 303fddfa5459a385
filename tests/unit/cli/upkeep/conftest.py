"""A data directory where the commands look, and what a person runs there."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from interlock.cli.main import main
from interlock.kernel.ids import SessionId
from interlock.service.clock import SystemClock
from interlock.testing.harness import CounterClock, Harness, ToolResult, linear_workflow

DAY_S = 24 * 3600.0


class Recorded(CounterClock):
    """Entropy that counts, and a clock that says when events are recorded."""

    def __init__(self, days_ago: float, first: int) -> None:
        super().__init__(first)
        self._unix_ms = SystemClock().unix_ms() - int(days_ago * DAY_S * 1000)

    def unix_ms(self) -> int:
        return self._unix_ms


@dataclass(slots=True, kw_only=True)
class Site:
    """A data directory with sessions of chosen ages."""

    data_dir: Path
    capsys: pytest.CaptureFixture[str]
    count: int = 0

    def session(self, *, days: float = 0.0) -> tuple[SessionId, ToolResult]:
        """Begin a session and take a step with an artifact of its own, all of it that many days ago."""
        self.count += 1
        harness = Harness.on_disk(
            self.data_dir, linear_workflow("test.abc", "a", "b", "c"), clock=Recorded(days, self.count * 1_000)
        )
        started = harness.start("test.abc", goal=f"Number {self.count}")
        session = harness.session_of(started)
        artifact = {"kind": "report", "of": self.count}
        answer = harness.advance(started, None, output={"notesMarkdown": "Done.", "artifacts": [artifact]})
        self.make_old(self.data_dir / "sessions" / session, days)
        return session, answer

    def make_old(self, path: Path, days: float) -> None:
        """Make a file, or everything below a directory, that old."""
        when = SystemClock().unix_ms() / 1000 - days * DAY_S
        for one in [*path.rglob("*"), path]:
            os.utime(one, (when, when))

    def make_content_old(self) -> None:
        """Make all content older than a sweep spares."""
        for name in ("snapshots", "workflows/pinned", "artifacts"):
            for path in (self.data_dir / name).iterdir():
                self.make_old(path, 3)

    def said(self, *arguments: str, code: int = 0) -> str:
        """Run a command and return what it said on stdout."""
        assert main(arguments) == code, self.capsys.readouterr()
        return self.capsys.readouterr().out

    def complained(self, *arguments: str, code: int = 1) -> str:
        """Run a command that cannot go on, and return what it said on stderr."""
        assert main(arguments) == code
        return self.capsys.readouterr().err

    def json(self, *arguments: str, code: int = 0) -> dict[str, Any]:
        """Run a command with `--json` and return the value it printed."""
        value: dict[str, Any] = json.loads(self.said(*arguments, "--json", code=code))
        return value


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Site:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("INTERLOCK_DATA_DIR", str(tmp_path / "data"))
    return Site(data_dir=tmp_path / "data", capsys=capsys)
