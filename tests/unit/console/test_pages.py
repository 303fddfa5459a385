"""What the pages show of a data directory, and that they write nothing to it."""

import asyncio
import json
import re
import threading
from pathlib import Path

import pytest
from tests.support.bundles import restoring
from tests.support.console import Browser, console_of, entered
from tests.support.history import MovingClock, Place, begun_at, damage, redone
from tests.support.notes import CONSTRUCTS, letters_of, text_of
from tests.support.server import tree

from interlock.cli.main import main
from interlock.console.live import Watcher
from interlock.console.reading import Sources
from interlock.kernel.budgets.console import CONSOLE_STEPS_SHOWN
from interlock.kernel.ids import SessionId
from interlock.kernel.text import printable
from interlock.service.audit.damage import Viewed
from interlock.service.report.session_report import SessionReport
from interlock.service.transfer.redact import Redacted, redact_session
from interlock.store.git import GitAnchors
from interlock.store.ports.reader import Salvaged
from interlock.testing.harness import Harness, linear_workflow

SHIP = linear_workflow("team.ship", "a", "b", "c")


@pytest.fixture
def place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Place:
    return Place(root=tmp_path / "data", clock=MovingClock(), capsys=capsys)


def links(page: str, begin: str) -> list[str]:
    return [one.replace("&amp;", "&") for one in re.findall(r'href="([^"]*)"', page) if one.startswith(begin)]


@pytest.mark.inv("EVD-13")
def test_the_proof_of_a_redacted_copy_says_that_it_is_one() -> None:
    harness = Harness.in_memory(SHIP)
    session = harness.session_of(harness.start("team.ship", goal="Ship the box"))
    copy = redact_session(restoring(harness), session, "the box")
    assert isinstance(copy, Redacted)
    page = entered(harness).get(f"/sessions/{copy.restored.session}/prove").text
    assert "<h1>Proven in part</h1>" in page
    assert f"This is a redacted copy of {session}." in page
    assert "every recorded decision" not in page


@pytest.mark.inv("CON-6")
def test_an_empty_console_says_what_to_do_first() -> None:
    page = entered(Harness.in_memory()).get("/").text
    assert "Nothing is recorded yet" in page
    assert "interlock serve" in page


@pytest.mark.inv("CON-17")
def test_run_and_node_show_every_letter_of_notes_in_any_markdown() -> None:
    harness = Harness.in_memory(SHIP)
    began = harness.start("team.ship")
    where = harness.reference_of(began)
    notes = "\n\n".join(CONSTRUCTS)
    harness.advance(began, notes)
    browser = entered(harness)
    for page in (f"runs/{where.run}", f"nodes/{where.node}"):
        shown = letters_of(text_of(browser.get(f"/sessions/{where.session}/{page}").text))
        assert "".join(letters_of(printable(notes))) in "".join(shown)


@pytest.mark.inv("CON-5")
def test_compare_and_workflow_write_out_what_reorders_text() -> None:
    harness = Harness.in_memory(SHIP)
    document = {**SHIP, "id": "team.odd", "name": "\u202eOdd"}
    harness.workflows.put(json.dumps(document, ensure_ascii=False).encode())
    began = harness.start("team.ship")
    harness.advance(began, "Built \u202eit\x1b[31m.")
    redone(harness, began, "Built it otherwise.")
    browser = entered(harness)
    where = harness.reference_of(began)
    (compare,) = links(browser.get(f"/sessions/{where.session}/runs/{where.run}").text, "/compare?")
    compared, workflow = browser.get(compare).text, browser.get("/workflows/team.odd").text
    assert r"-Built \u202eit\x1b[31m." in compared
    assert r"&#34;\u202eOdd&#34;" in workflow
    assert not {"\u202e", "\x1b"} & set(compared + workflow)


@pytest.mark.inv("CON-1", "CON-6", "CON-14", "CON-17")
def test_every_page_of_a_run_is_shown_and_writes_nothing(place: Place) -> None:
    harness = place.serving(SHIP)
    began = harness.start("team.ship", goal="Ship the box")
    harness.advance(harness.advance(began, "**Built** it."), "Tried it.")
    redone(harness, began, "Built it otherwise.")
    before = tree(place.root)
    browser = entered(harness)
    now = browser.get("/").text
    assert "Ship the box" in now
    (run,) = links(now, "/sessions/")
    page = browser.get(run).text
    assert "<strong>Built</strong> it." not in page, "the newest branch is preferred"
    assert "Built it otherwise." in page
    (compare,) = links(page, "/compare?")
    compared = browser.get(compare).text
    assert "-**Built** it." in compared
    assert "+Built it otherwise." in compared
    nodes = dict.fromkeys(links(page, f"/sessions/{harness.session_of(began)}/nodes/"))
    shown = [browser.get(node) for node in nodes]
    assert {one.status_code for one in shown} == {200}
    redone_step = next(one for one in shown if "Other results of this step" in one.text)
    before_others, others = redone_step.text.split('id="others"')
    assert "Built it otherwise." in before_others
    assert "<strong>Built</strong> it." in others
    (link,) = links(others, "?via=")
    earlier = browser.get(f"{redone_step.url.path}{link}").text
    assert "<strong>Built</strong> it." in earlier.split('id="others"')[0]
    assert "Built it otherwise." in earlier.split('id="others"')[1]
    assert "Proven" in browser.get(f"/sessions/{harness.session_of(began)}/prove").text
    assert "<svg" in browser.get("/workflows/team.ship").text
    assert tree(place.root) == before


@pytest.mark.inv("CON-6")
def test_runs_are_found_by_words_and_by_status() -> None:
    harness = Harness.in_memory(SHIP)
    harness.start("team.ship", goal="Paint the fence")
    done = harness.start("team.ship", goal="Ship the box")
    for _ in range(3):
        done = harness.advance(done)
    browser = entered(harness)
    found = {path: "Paint" in browser.get(path).text for path in ("/?q=fence", "/?q=box", "/?status=in_progress")}
    assert found == {"/?q=fence": True, "/?q=box": False, "/?status=in_progress": True}
    assert "Ship the box" not in browser.get("/?status=in_progress").text
    assert "None of the 2 runs matches" in browser.get("/?status=failed").text


@pytest.mark.inv("CON-16")
def test_runs_are_listed_by_project_with_branch_and_commit() -> None:
    harness = Harness.in_memory(SHIP)
    begun_at(harness, GitAnchors(repo_root="/srv/shop", branch="fix/<b>", head_sha="a1" * 20)).start("team.ship")
    harness.start("team.ship")
    page = entered(harness).get("/").text
    assert re.findall(r"<h2>([^<]*)</h2>", page) == ["shop", "No project recorded"]
    assert "branch <bdi>fix/&lt;b&gt;</bdi>, commit a1a1a1a1a1" in page


@pytest.mark.inv("CON-6")
def test_a_page_shows_a_bounded_number_of_steps_and_leads_to_the_older_ones() -> None:
    steps = [f"s{number}" for number in range(CONSOLE_STEPS_SHOWN + 5)]
    harness = Harness.in_memory(linear_workflow("team.long", *steps))
    answer = began = harness.start("team.long")
    for number in range(CONSOLE_STEPS_SHOWN + 4):
        answer = harness.advance(answer, f"Finished part {number}.")
    browser = entered(harness)
    page = browser.get(f"/sessions/{harness.session_of(began)}")
    assert page.text.count("<article") == CONSOLE_STEPS_SHOWN
    assert "Finished part 0." not in page.text
    older = browser.get(f"{page.url.path}?after={CONSOLE_STEPS_SHOWN}").text
    assert (older.count("<article"), "Finished part 0." in older) == (5, True)


@pytest.mark.inv("CON-6", "CON-16")
@pytest.mark.damages
def test_a_damaged_session_is_shown_up_to_its_damage_and_is_not_proven(place: Place) -> None:
    harness = place.serving(SHIP)
    began = harness.start("team.ship", goal="Ship the box")
    harness.advance(harness.advance(began, "Built it."), "Tried it.")
    session = harness.session_of(began)
    damage(place.root, str(session))
    browser = entered(place.serving(SHIP))
    assert "Cannot be read: 1" in browser.get("/").text
    page = browser.get(f"/sessions/{session}").text
    assert "This session is damaged" in page
    assert "Built it." in page
    assert "interlock session repair" in page
    proof = browser.get(f"/sessions/{session}/prove").text
    assert "Not proven: 1 mismatch" in proof


@pytest.mark.inv("CON-6")
def test_a_page_of_something_that_does_not_exist_says_so() -> None:
    browser = entered(Harness.in_memory(SHIP))
    for path in ("/sessions/sess_x", "/sessions/sess_x/prove", "/workflows/team.none", "/compare?a=x:y&b=z:w"):
        answer = browser.get(path)
        assert (answer.status_code, "NOT_FOUND" in answer.text) == (404, True), path
    assert browser.get("/compare?a=x&b=y").status_code == 400


@pytest.mark.inv("CON-6")
def test_a_data_directory_that_disappears_empties_the_pages_and_comes_back(place: Place) -> None:
    harness = place.serving(SHIP)
    harness.start("team.ship", goal="Ship the box")
    browser = entered(harness)
    assert "Ship the box" in browser.get("/").text
    hidden = place.root.rename(place.root.with_name("hidden"))
    assert "Nothing is recorded yet" in browser.get("/").text
    hidden.rename(place.root)
    assert "Ship the box" in browser.get("/").text


@pytest.mark.inv("CON-7")
def test_a_stream_reports_a_change_that_was_undone_but_that_a_page_saw(place: Place) -> None:
    harness = place.serving(SHIP)
    session = str(harness.session_of(harness.start("team.ship", goal="Ship the box")))
    sources = Sources(
        store=harness.store, catalog=harness.ports.catalog, workspace=None, repo=None, clock=harness.ports.clock
    )

    async def changes() -> list[bool]:
        watcher = Watcher(sources)
        known = [await watcher.version(name) for name in ("*", session)]
        hidden = place.root.rename(place.root.with_name("hidden"))
        watcher.expire()
        assert sources.listing().sessions == ()
        hidden.rename(place.root)
        watcher.expire()
        return [await watcher.version(name) != before for name, before in zip(("*", session), known, strict=True)]

    assert asyncio.run(changes()) == [True, True]


@pytest.mark.inv("CON-7")
def test_a_stream_reports_a_change_of_its_session_and_of_no_other() -> None:
    harness = Harness.in_memory(SHIP)
    mine, other = harness.start("team.ship"), harness.start("team.ship")
    app, _ = console_of(harness)
    sources = Sources(
        store=harness.store, catalog=harness.ports.catalog, workspace=None, repo=None, clock=harness.ports.clock
    )

    async def changes() -> list[bool]:
        watcher, found = Watcher(sources), list[bool]()
        known = await watcher.version(str(harness.session_of(mine)))
        for answer in (other, mine):
            harness.advance(answer)
            watcher.expire()
            found.append(await watcher.version(str(harness.session_of(mine))) != known)
        return found

    assert asyncio.run(changes()) == [False, True]
    assert Browser(app).get("/live").status_code == 200, "a stranger gets the page of admission"


@pytest.mark.parametrize("port", ["0", "70000", "-1"])
def test_the_command_refuses_a_port_that_does_not_exist(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["console", "--port", port, "--no-open"]) == 2
    assert "is not a port" in capsys.readouterr().err


@pytest.mark.inv("CON-4")
def test_the_command_prints_a_link_only_if_there_is_a_key_to_sign_it(place: Place) -> None:
    assert main(["console", "--link", "--data-dir", str(place.root)]) == 1
    place.serving(SHIP).start("team.ship")
    place.capsys.readouterr()
    assert main(["console", "--link", "--port", "7600", "--data-dir", str(place.root)]) == 0
    assert place.capsys.readouterr().out.startswith("http://127.0.0.1:7600/#")


@pytest.mark.inv("CON-6", "CON-7")
def test_a_report_that_took_long_is_kept_until_the_log_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("interlock.console.log_cache.CONSOLE_SLOW_S", -1.0)
    monkeypatch.setattr("interlock.console.log_cache.CONSOLE_WAIT_S", 0.0)
    monkeypatch.setattr("interlock.console.log_cache.CONSOLE_REPORTS_KEPT", 1)
    harness = Harness.in_memory(SHIP)
    first = harness.start("team.ship")
    sources = Sources(
        store=harness.store, catalog=harness.ports.catalog, workspace=None, repo=None, clock=harness.ports.clock
    )
    session, run = harness.session_of(first), harness.reference_of(first).run

    def report(steps: int) -> Viewed[SessionReport]:
        # The page does not wait.
        while True:
            found, reading = sources.report(session, run, (steps, 0))
            if found is not None and reading is None:
                return found
            assert reading is not None
            reading.ended.wait(10)

    reports = [report(5) for _ in range(3)]
    assert reports[2] is reports[1]
    harness.advance(first)
    earlier, reading = sources.report(session, run, (5, 0))
    assert reading is None or earlier is reports[2], "until the newer one is read, the earlier one is shown"
    changed = report(5)
    assert changed.view.events > reports[2].view.events
    report(6)
    assert report(5) is not changed, "only so many are kept"


@pytest.mark.inv("CON-6")
def test_a_page_of_a_run_that_takes_long_shows_the_progress_and_then_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("interlock.console.log_cache.CONSOLE_WAIT_S", 0.0)
    may_read = threading.Event()
    harness = Harness.in_memory(SHIP)
    first = harness.start("team.ship", goal="Ship the box")
    verified = harness.store.salvage

    def salvage(session: SessionId) -> Salvaged | None:
        assert may_read.wait(10)
        return verified(session)

    monkeypatch.setattr(harness.store, "salvage", salvage)
    browser = entered(harness)
    path = f"/sessions/{harness.session_of(first)}/runs/{harness.reference_of(first).run}"
    page = browser.send("GET", path, {"sec-fetch-site": "same-origin"}).text
    assert "data-reading" in page
    assert "The log is read and verified: 0 s so far" in page
    assert "Ship the box" not in page
    may_read.set()
    assert "Ship the box" in browser.get(path).text


@pytest.mark.inv("CON-6")
def test_a_long_run_is_shown_from_its_newest_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("interlock.console.pages.runs.CONSOLE_NODES_SHOWN", 2)
    harness = Harness.in_memory(SHIP)
    first = harness.start("team.ship")
    harness.advance(harness.advance(harness.advance(first)))
    page = entered(harness).get(f"/sessions/{harness.session_of(first)}").text
    tree = page[page.index('<ol class="tree">') : page.index("</ol>", page.index('<ol class="tree">'))]
    assert "begin in the middle of the run" in page
    assert tree.count("<li") == 2
