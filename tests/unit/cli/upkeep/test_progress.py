"""The progress of a long look is shown where somebody watches, and leaves the line empty."""

import io
import itertools

import pytest

from interlock.cli.render.progress import shown_progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(monkeypatch: pytest.MonkeyPatch, stderr: io.StringIO, step_s: float) -> str:
    """Look at four things, each of which takes so long; return what stood on stderr."""
    clock = itertools.count(0, step_s)
    monkeypatch.setattr("sys.stderr", stderr)
    monkeypatch.setattr("interlock.cli.render.progress.time.monotonic", lambda: next(clock))
    with shown_progress("Reading sessions") as result:
        for done in range(5):
            result(done, 4)
    return stderr.getvalue()


def test_a_long_look_shows_how_far_it_is_and_clears_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    said = shown(monkeypatch, Terminal(), 1.0)
    assert "Reading sessions: 0 of 4" in said
    assert "Reading sessions: 4 of 4" in said
    assert said.endswith("\r\033[K")


def test_a_short_look_and_one_that_nobody_watches_show_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Reading" not in shown(monkeypatch, Terminal(), 0.001)
    assert shown(monkeypatch, io.StringIO(), 1.0) == ""
