"""`interlock watch`: each append is printed once and in order, and the command ends with the run or with Ctrl-C."""

import sys
from collections.abc import Callable

import pytest
from tests.support.history import Place, label_of
from tests.support.server import tree

from interlock.cli.main import main
from interlock.cli.top import watch
from interlock.testing.harness import Harness, ToolResult, linear_workflow

SHIP = linear_workflow("team.ship", "a", "b", "c")


@pytest.fixture
def harness(place: Place) -> Harness:
    return place.serving(SHIP)


def watched(
    place: Place, monkeypatch: pytest.MonkeyPatch, *steps: Callable[[], object], name: str | None = None
) -> str:
    """Watch, and do one of these whenever the command waits; return what it printed."""
    due = list(steps)

    def pause() -> None:
        if not due:
            raise KeyboardInterrupt
        due.pop(0)()

    monkeypatch.setattr(watch, "pause", pause)
    place.capsys.readouterr()
    assert main(["watch", *([name] if name else []), "--data-dir", str(place.root)]) == 0
    return place.capsys.readouterr().out


@pytest.mark.inv("EVD-14")
def test_each_append_is_printed_once_until_the_run_is_complete(
    place: Place, harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = harness.start("team.ship", goal="Ship")
    second = harness.advance(first, "Built it.")

    refused = list[ToolResult]()

    def finish() -> None:
        harness.advance(harness.advance(refused[0], "Tried it."), "Shipped it.")

    out = watched(place, monkeypatch, lambda: None, lambda: refused.append(harness.advance(second, None)), finish)
    assert out.startswith(f"Run {label_of(first)} of team.ship: Ship\n")
    lines = out.splitlines()
    numbers = [int(line[:5]) for line in lines if line[:5].strip().isdigit()]
    assert numbers == sorted(set(numbers))
    assert [out.count(words) for words in ("Built it.", "Tried it.", "Shipped it.", "was refused in")] == [1, 1, 1, 1]
    assert lines[-1] == f"Run {label_of(first)}: complete"
    assert "\x1b" not in out


@pytest.mark.inv("EVD-14")
def test_it_says_that_the_session_was_deleted_meanwhile(
    place: Place, harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = str(harness.session_of(harness.start("team.ship", goal="Ship")))
    monkeypatch.setattr(watch, "pause", lambda: place.run("delete", session, "--yes"))
    assert main(["watch", "--data-dir", str(place.root)]) == 1
    assert f"The session {session} is gone." in place.capsys.readouterr().err


@pytest.mark.inv("EVD-14")
def test_ctrl_c_ends_it_and_nothing_was_written(
    place: Place, harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness.start("team.ship", goal="One")
    place.later(1)
    second = harness.start("team.ship", goal="Two")
    before = tree(place.root)
    out = watched(place, monkeypatch)
    assert f"Run {label_of(second)} of team.ship: Two" in out
    assert "Other runs:" in out
    assert "complete" not in out
    assert tree(place.root) == before


@pytest.mark.inv("EVD-14")
def test_on_a_terminal_one_line_says_where_the_run_is(
    place: Place, harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = harness.start("team.ship", goal="Ship")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    out = watched(place, monkeypatch, lambda: None, lambda: harness.advance(first, "Built it."), name=label_of(first))
    shown = [part for part in out.split("\r\x1b[K") if part.startswith("in progress: step ")]
    assert [part[len("in progress: step ") :][:6] for part in shown] == ["1 of 3", "1 of 3", "2 of 3"]
    assert out.endswith("\r\x1b[K")
