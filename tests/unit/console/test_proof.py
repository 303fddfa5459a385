"""What a proof says, the progress of pages that take long, and the choice of what is compared and drawn."""

import json
import re
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.support.console import entered
from tests.support.history import damage, redone

from interlock.cli.main import main
from interlock.kernel.ids import SessionId
from interlock.testing.harness import Harness, linear_workflow


@pytest.mark.inv("CON-15", "VERIFY-1")
def test_a_proof_says_what_was_examined_as_the_command_prints_it_and_whether_each_run_conforms(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    harness = Harness.on_disk(tmp_path, linear_workflow("team.ship", "a", "b"))
    began = harness.start("team.ship")
    harness.advance(began, "Built it.")
    session = harness.session_of(began)
    page = entered(harness).get(f"/sessions/{session}/prove").text
    assert main(["session", "verify", session, "--json", "--data-dir", str(tmp_path)]) == 0
    examined = json.loads(capsys.readouterr().out)["examined"][session]
    assert examined["decisions"] == 1
    assert f"{examined['events']} in {examined['appends']} appends" in page
    assert "its lifecycle is a possible history of its plan" in page


@pytest.mark.damages
@pytest.mark.inv("CON-15", "CON-6")
def test_a_proof_turns_and_a_replay_of_a_damaged_session_say_what_is_damaged(tmp_path: Path) -> None:
    harness = Harness.on_disk(tmp_path, linear_workflow("team.ship", "a", "b", "c"))
    began = harness.start("team.ship")
    harness.advance(harness.advance(began))
    session = harness.session_of(began)
    run = f"/sessions/{session}/runs/{harness.reference_of(began).run}"
    damage(tmp_path, session)
    browser = entered(harness)
    assert "The log cannot be read as a whole" in browser.get(f"/sessions/{session}/prove").text
    for path in (f"{run}/turns", f"{run}/replay"):
        assert "This session is damaged" in browser.get(path).text, path


@pytest.mark.inv("CON-6")
@pytest.mark.parametrize("page", ["prove", "nodes/{node}", "runs/{run}/replay", "runs/{run}/turns"])
def test_every_page_of_a_session_that_takes_long_shows_the_progress(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("interlock.console.log_cache.CONSOLE_WAIT_S", 0.0)
    harness = Harness.in_memory(linear_workflow("team.ship", "a", "b"))
    began = harness.start("team.ship")
    where, may_read = harness.reference_of(began), threading.Event()
    methods = {name: getattr(harness.store, name) for name in ("salvage", "history")}
    for name, read in methods.items():

        def waiting(session: SessionId, read: Any = read) -> Any:
            assert may_read.wait(10)
            return read(session)

        monkeypatch.setattr(harness.store, name, waiting)
    browser = entered(harness)
    path = f"/sessions/{where.session}/{page.format(node=where.node, run=where.run)}"
    first = browser.send("GET", path, {"sec-fetch-site": "same-origin"})
    assert (first.status_code, "data-reading" in first.text) == (200, True)
    may_read.set()
    assert "data-reading" not in browser.get(path).text


@pytest.mark.inv("CON-14")
def test_two_runs_are_chosen_from_a_list_and_compared() -> None:
    harness = Harness.in_memory(linear_workflow("team.ship", "a", "b"))
    for goal, notes in (("Ship the box", "Built it."), ("Paint the fence", "Painted it.")):
        harness.advance(harness.start("team.ship", goal=goal), notes)
    browser = entered(harness)
    chosen = dict(re.findall(r'<option value="([^":]+:[^"]+)">(Ship|Paint)', browser.get("/compare").text))
    assert sorted(chosen.values()) == ["Paint", "Ship"]
    first, second = chosen
    page = browser.get(f"/compare?a={first}&b={second}").text
    assert "Painted it." in page
    assert f'<option value="{first}" selected>' in page


@pytest.mark.inv("CON-14")
def test_a_picture_is_folded_to_the_preferred_branch() -> None:
    harness = Harness.in_memory(linear_workflow("team.ship", "a", "b", "c"))
    began = harness.start("team.ship")
    harness.advance(harness.advance(began, "Built it."), "Checked it.")
    redone(harness, began, "Built it otherwise.")
    browser, run = entered(harness), f"/sessions/{harness.session_of(began)}"
    whole = browser.get(run)
    assert "Draw only the preferred branch" in whole.text
    folded = browser.get(f"{whole.url.path}?branches=preferred").text
    assert (whole.text.count("data-node=") > folded.count("data-node="), "Draw all branches" in folded) == (True, True)
    assert "preferred tip" in folded
