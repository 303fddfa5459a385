"""What commands print at any width of a terminal, and into a pipe: ids stay whole, and lines fit."""

import re
import sys
from dataclasses import replace

import pytest
from tests.support.history import Place, label_of
from tests.support.modes import NEVER_STOPS, with_artifacts

from interlock.cli.main import main
from interlock.cli.session import chosen
from interlock.kernel.budgets import RUNS_LISTED
from interlock.kernel.ids import NodeId, RunId, SessionId
from interlock.service.run.plans import Plans
from interlock.service.run.summaries import Listing, read_listing
from interlock.store.local.store import LocalStore
from interlock.testing.harness import Harness, linear_workflow
from interlock.views.summary import SessionSummary

LONG = "team.a_workflow_with_a_name_that_is_long"
COMMANDS = [
    *("list", "status", "show", "show --evidence", "context", "timeline", "open-gaps", "search 日本", "plan"),
    *("graph", "verify"),
]
_STYLE = re.compile(r"\x1b\[[0-9;]*m")
_ID = re.compile(r"(?:sess|run|node)_[0-9a-hjkmnp-tv-z]+")
_WHOLE = re.compile(r"(?:sess|run|node)_[0-9a-hjkmnp-tv-z]{26}")


def recorded(place: Place, sessions: int) -> Harness:
    harness = place.serving(linear_workflow(LONG, "a", "b"))
    for number in range(sessions):
        goal = f"Release {number} with a goal that does not fit into a narrow column 日本語の目標"
        first = harness.start(LONG, goal=goal, preferences=NEVER_STOPS)
        output = with_artifacts({"kind": "a", "verdict": "failed", "path": "x/" * 60}, notes="日本 " * 40)
        harness.advance(first, None, output=output)
    return harness


AT_EVERY_WIDTH = pytest.mark.parametrize("width", [40, 80, 200, None], ids=["40", "80", "200", "pipe"])


def print_to(width: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands print to a terminal of this width; None for a pipe."""
    if width is not None:
        # The output is replaced between the fixtures and the test, so no fixture can do this.
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        for name, value in {"COLUMNS": str(width), "TERM": "xterm"}.items():
            monkeypatch.setenv(name, value)


@pytest.mark.inv("HIS-4")
@AT_EVERY_WIDTH
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("sessions", [0, 1])
def test_no_command_splits_an_id_at_any_width(
    place: Place, width: int | None, command: str, sessions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded(place, sessions)
    print_to(width, monkeypatch)
    action, *options = command.split()
    result = place.run(action, *options)
    text = _STYLE.sub("", result.out)
    assert "Traceback" not in result.err
    assert all(_WHOLE.fullmatch(found) for found in _ID.findall(text)), text
    if sessions and action in ("list", "status", "plan", "search", "open-gaps"):
        assert LONG in text or action == "search"
        (run,) = place.run("list", "--json").json()["runs"]
        assert run["label"] in text


@pytest.mark.inv("HIS-4")
@AT_EVERY_WIDTH
@pytest.mark.parametrize("command", ["list", "status"])
def test_the_tables_of_runs_fit_the_terminal(
    place: Place, width: int | None, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = recorded(place, 3).start(LONG, goal="The last")
    print_to(width, monkeypatch)
    lines = _STYLE.sub("", place.run(command).out).splitlines()
    assert any(label_of(first) in line for line in lines)
    # Only an id that is wider than the terminal makes a line wider.
    assert width is None or [line for line in lines if len(line) > width and LONG not in line] == []


def multiplied(one: SessionSummary, count: int) -> Listing:
    """Return a list of so many sessions, each like this one with ids of its own."""
    (run,) = one.runs
    sessions = list[SessionSummary]()
    for number in range(count):
        body = f"{number:026d}"
        own = replace(run, run=RunId(f"run_{body}"), label=body[-4:], tip=NodeId(f"node_{body}"))
        sessions.append(replace(one, session=SessionId(f"sess_{body}"), runs=(own,)))
    return Listing(sessions=tuple(sessions), unreadable=())


@pytest.mark.inv("HIS-4")
@pytest.mark.parametrize(("command", "width"), [("list", 40), ("list", None), ("status", 80)])
def test_lists_of_ten_thousand_runs_fit_the_terminal(
    place: Place, command: str, width: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded(place, 1)
    store = LocalStore(place.root)
    many = multiplied(read_listing(store, Plans(store)).sessions[0], 10_000)
    # Recording so many sessions takes minutes; what is tested is what a command does with their summaries.

    def listed(*_: object) -> Listing:
        return many

    monkeypatch.setattr(chosen, "read_listing", listed)
    print_to(width, monkeypatch)
    lines = _STYLE.sub("", place.run(command).out).splitlines()
    text = "\n".join(lines)
    assert f"{10_000 - RUNS_LISTED} more" in text if command == "list" else len(lines) > len(many.sessions)
    assert all(_WHOLE.fullmatch(found) for found in _ID.findall(text))
    labels = set(re.findall(r"\b\d{4}\b", text))
    assert len(labels) >= (RUNS_LISTED if command == "list" else len(many.sessions))
    table = lines[:-1] if command == "list" else lines
    assert width is None or [line for line in table if len(line) > width and LONG not in line] == []


@pytest.mark.inv("HIS-4")
@AT_EVERY_WIDTH
def test_workflow_ids_are_whole_at_every_width(
    width: int | None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    print_to(width, monkeypatch)
    assert main(["workflow", "list"]) == 0
    text = _STYLE.sub("", capsys.readouterr().out)
    for name in ("wr.bug_investigation", "wr.release_readiness", "wr.test_gap_analysis"):
        assert re.search(rf"^{re.escape(name)}\b", text, re.MULTILINE), text
