"""Progress of what takes long is shown on a terminal's error output, and leaves no trace."""

import sys
import time
from collections.abc import Iterator
from itertools import count

import pytest

from interlock.cli.render.progress import with_progress


def ticking(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Let each look at the clock be so many seconds after the one before."""
    ticks = count()
    monkeypatch.setattr(time, "monotonic", lambda: next(ticks) * seconds)


def on_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)


@pytest.mark.inv("HIS-4")
def test_a_long_reading_is_counted_and_the_line_is_gone_at_the_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    on_terminal(monkeypatch)
    ticking(monkeypatch, 1.0)
    assert list(with_progress("abc", 3, "Reading sessions")) == ["a", "b", "c"]
    result = capsys.readouterr()
    lines = result.err.split("\r\x1b[K")
    assert lines == ["", "Reading sessions: 1 of 3", "Reading sessions: 2 of 3", "Reading sessions: 3 of 3", ""]
    assert result.out == ""


def test_what_is_over_at_once_is_not_worth_a_word(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    on_terminal(monkeypatch)
    ticking(monkeypatch, 0.001)
    assert list(with_progress("abc", 3, "Reading sessions")) == ["a", "b", "c"]
    assert capsys.readouterr().err == ""


@pytest.mark.inv("HIS-4")
def test_nothing_is_printed_where_nobody_looks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ticking(monkeypatch, 1.0)
    assert list(with_progress("abc", 3, "Reading sessions")) == ["a", "b", "c"]
    assert capsys.readouterr().err == ""
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stderr", None)
        assert list(with_progress("abc", 3, "Reading sessions")) == ["a", "b", "c"]


def test_a_reading_that_fails_leaves_no_line_either(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def failing() -> Iterator[str]:
        yield "a"
        raise OSError

    on_terminal(monkeypatch)
    ticking(monkeypatch, 1.0)
    with pytest.raises(OSError):  # noqa: PT011 — ours, above
        list(with_progress(failing(), 2, "Reading"))
    assert capsys.readouterr().err.endswith("\r\x1b[K")
