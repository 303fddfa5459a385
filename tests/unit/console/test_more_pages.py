"""The pages about the past, turns, contracts and settings: what they show, and that they write nothing."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.console import Browser, console_of, entered
from tests.support.outside import a_source, signed_event, waiting_for, with_sources
from tests.support.q3_launch import LAUNCH, all_definitions
from tests.support.server import tree

from interlock.config.file import read_config
from interlock.config.model import FaultyConfig
from interlock.config.places import CONFIG_FILE
from interlock.config.settings import Settings
from interlock.console.pages.settings import setting_rows
from interlock.define.operations.definitions import Definitions
from interlock.record.events import Actor
from interlock.service.contracts.start import ContractCommand, ContractStarted, start_contract
from interlock.testing.harness import Harness, linear_workflow

SHIP = linear_workflow("team.ship", "a", "b", "c")


def run_of(browser: Browser) -> str:
    found = re.search(r'href="(/sessions/[^"]+/runs/[^"]+)"', browser.get("/").text)
    assert found is not None
    return found[1]


@pytest.mark.inv("CON-12", "CON-1")
def test_a_run_is_shown_as_it_was_after_each_append(tmp_path: Path) -> None:
    harness = Harness.on_disk(tmp_path / "data", SHIP)
    began = harness.start("team.ship", goal="Ship the box")
    harness.advance(harness.advance(began, "Built it with care."), "Tried it with care.")
    browser = entered(harness)
    before = tree(tmp_path)
    run = run_of(browser)
    latest = browser.get(f"{run}/replay").text
    assert "This is the latest state." in latest
    assert "Tried it with care." in latest
    shown: list[tuple[bool, bool]] = []
    page = latest
    while (earlier := re.search(r'href="(\?at=\d+)">Earlier', page)) is not None:
        page = browser.get(f"{run}/replay{earlier[1]}").text
        shown.append(("Built it with care." in page, "Tried it with care." in page))
    assert shown[0] == (True, False), "one append before the latest"
    assert shown[-1] == (False, False)
    assert "This is the beginning." in page
    for at in ("0", "1", "999999", "x", "-1", "9" * 40):
        assert browser.get(f"{run}/replay?at={at}").status_code == 200
    assert browser.get(f"{run}x/replay").status_code == 404
    assert tree(tmp_path) == before


@pytest.mark.inv("CON-12")
def test_the_turns_of_a_driver_are_shown_with_their_sums() -> None:
    harness = Harness.in_memory(SHIP)
    began = harness.start("team.ship")
    browser = entered(harness)
    run = run_of(browser)
    assert "No driver recorded a turn" in browser.get(f"{run}/turns").text
    usage = {"inputTokens": 10, "outputTokens": 5, "cost": 0.5}
    turns: list[dict[str, object]] = [
        {"kind": "wr.turn", "version": 1, "status": "done", "ids": {"interactionId": name}, "turn": 1, "usage": usage}
        for name in ("i1", "i2")
    ]
    harness.call("checkpoint_workflow", {"ackToken": began.ack, "output": {"artifacts": turns[:1]}})
    harness.advance(began, None, output={"notesMarkdown": "Built it with care.", "artifacts": turns[1:]})
    page = browser.get(f"{run}/turns").text
    assert "<dt>Input tokens</dt><dd>20</dd>" in page
    assert "<dt>Cost</dt><dd>1.0</dd>" in page
    assert page.count("Record of the turn at event") == 2
    assert browser.get(f"{run}x/turns").status_code == 404


@pytest.mark.inv("CON-12")
def test_a_contract_is_shown_with_its_work_and_its_goals() -> None:
    harness = Harness.in_memory(SHIP)
    harness.start("team.ship")
    browser = entered(harness)
    assert "No session executes a contract" in browser.get("/contracts").text
    person, definitions = Actor(type="human", identifier="tester"), Definitions(all_definitions())
    command = ContractCommand(contract_id=LAUNCH.id, version=None, definitions=definitions, goal=None, actor=person)
    started = start_contract(harness.ports, harness.store, command)
    assert isinstance(started, ContractStarted)
    (link,) = re.findall(r'href="(/sessions/[^"]+/contract)"', browser.get("/contracts").text)
    page = browser.get(link).text
    assert f"{LAUNCH.name}, version" in page.replace("<bdi>", "").replace("</bdi>", "")
    assert "Goals" in page
    missing = browser.get(link.replace("/contract", "x/contract"))
    assert missing.status_code == 404


@pytest.mark.inv("CON-12")
def test_settings_show_what_was_changed_since_the_start_and_needs_a_restart(tmp_path: Path) -> None:
    applied = Settings(data_dir=tmp_path, workspace=None, user_workflows=tmp_path / "workflows")
    file = tmp_path / CONFIG_FILE
    file.write_text('[gates]\nclaims = "never"\n')
    config = read_config(file)
    assert not isinstance(config, FaultyConfig)
    rows = {one.key: one for one in setting_rows(applied, replace(applied, config=config))}
    changed = [key for key, row in rows.items() if row.is_pending]
    assert changed == ["gates.claims"]
    row = rows["gates.claims"]
    assert (row.desired, row.applied, row.is_restart) == ("never", "when_client_cannot_ask", False)


@pytest.mark.inv("CON-12", "CON-1")
def test_the_page_of_settings_shows_keys_clients_and_a_collection_only_if_asked() -> None:
    harness = Harness.in_memory(SHIP)
    app, _ = console_of(harness)
    browser = Browser(app)
    browser.enter()
    page = browser.get("/settings").text
    assert "the same" in page
    assert "a block" in page
    assert "Nothing was deleted" not in page
    assert "Nothing was deleted" in browser.get("/settings?collection=dry-run").text


def test_the_page_of_settings_says_what_is_wrong_with_the_file() -> None:
    harness = Harness.in_memory(SHIP)
    app, _ = console_of(harness, faults="config.toml:1:1: gates.claims: <b>not</b> a value")
    browser = Browser(app)
    browser.enter()
    page = browser.get("/settings").text
    assert "The file has faults" in page
    assert "&lt;b&gt;not&lt;/b&gt;" in page


@pytest.mark.inv("WORLD-10", "CON-1")
def test_a_page_says_when_the_key_of_a_signature_is_not_configured_here() -> None:
    source, key = a_source("ci.finished")
    theirs = with_sources(Harness.in_memory(waiting_for(assurance="signed")), source)
    first = theirs.start("test.flow", goal="Ship")
    waiting = theirs.advance(first)
    event = signed_event(theirs, first, key)
    theirs.advance(waiting, None, output={"artifacts": [{"kind": "wr.event", **event.to_json()}]})
    other, _ = a_source("ci.finished")

    def pages(harness: Harness) -> str:
        browser = entered(harness)
        session = harness.store.load(harness.session_of(first))
        assert session is not None
        return "".join(browser.get(f"/sessions/{session.session}/nodes/{node}").text for node in session.nodes)

    assert "is not configured here" not in pages(theirs)
    assert "with a key that is not configured here" in pages(with_sources(theirs, other))
