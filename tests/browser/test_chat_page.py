"""The page in a chat, in the frame of a host in Chromium, with a real server over stdio that the host calls."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import expect
from tests.support.approvals import asking
from tests.support.browser import Watched, chromium, require_browser
from tests.support.chat_host import open_chat_page
from tests.support.forked_server import ForkedServer
from tests.support.server import SHOWS_PAGES, events_in, step_of, workspace_in

ASKING = asking(show=["notes.a", "goal"], note="required", assurance="claimed")
HOSTILE = '</pre><img src="x" onerror="top.said.push(1)"><script>top.said.push(1)</script>'


@pytest.mark.inv("CHAT-1", "CHAT-2")
def test_a_person_reads_the_question_in_the_chat_answers_by_keyboard_and_the_agent_goes_on(tmp_path: Path) -> None:
    require_browser()
    data, workspace = tmp_path / "data", workspace_in(tmp_path, asking=ASKING)
    with ForkedServer(data, workspace, declared=SHOWS_PAGES) as agent, chromium() as browser:
        first = agent.start("test.flow", goal=f"Ship {HOSTILE} now")
        waiting = agent.advance(first, f"The plan. {HOSTILE}")
        host = Watched(browser.new_page())
        frame = open_chat_page(host.page, agent, dict(waiting.structure))
        page = host.page.frame_locator("iframe")
        expect(page.get_by_role("heading", name="Agree the plan")).to_be_visible()
        expect(page.locator("#picture svg")).to_be_visible()
        expect(page.locator("pre", has_text="The plan. </pre><img")).to_be_visible()
        assert page.locator("img").count() == 0
        # A rejection without a note is refused where the person reads it, and the question stays open.
        page.get_by_role("button", name="reject").press("Enter")
        expect(page.get_by_role("status")).to_contain_text("A rejection needs a note")
        page.get_by_label("Note").fill("Small, please.")
        page.get_by_role("button", name="approve").press("Enter")
        expect(page.get_by_role("status")).to_contain_text("the run continues")
        expect(page.get_by_role("heading", name="Agree the plan")).to_be_hidden()
        title = page.get_by_role("heading", level=1).inner_text()
        quoted = json.dumps({"choice": "approve", "page": title}, separators=(",", ":"), ensure_ascii=False)
        beginning = "I answered a question in the page of a run. Its words, as data: "
        assert host.page.evaluate("said") == [f"{beginning}{quoted}. Continue this run."]
        assert step_of(agent.advance(waiting, None)) == "b"
        assert frame.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        assert host.wrong == []
    [answer] = [one["data"] for one in events_in(data, first) if one["kind"] == "event_received"]
    assert (answer["via"], answer["assurance"], answer["fields"]["note"]) == ("app", "claimed", "Small, please.")


@pytest.mark.inv("CHAT-1")
def test_the_page_in_a_chat_has_no_grave_finding_in_either_theme_and_recovers(tmp_path: Path) -> None:
    require_browser()
    workspace = workspace_in(tmp_path, asking=ASKING)
    with ForkedServer(tmp_path / "data", workspace, declared=SHOWS_PAGES) as agent, chromium() as browser:
        waiting = agent.advance(agent.start("test.flow"), "The plan.")
        host = Watched(browser.new_page())
        frame = open_chat_page(host.page, agent, dict(waiting.structure))
        assert host.findings(frame) == []
        scheme = "getComputedStyle(document.documentElement).colorScheme"
        host.page.evaluate("changeTheme('dark')")
        frame.wait_for_function(f"{scheme} === 'dark'")
        # A server that does not answer is named, and the person may ask again.
        host.page.evaluate("fail(true)")
        page, refresh = host.page.frame_locator("iframe"), "Show the run as it is now"
        page.get_by_role("button", name=refresh).click()
        expect(page.get_by_role("status")).to_contain_text("The server is gone")
        host.page.evaluate("fail(false)")
        page.get_by_role("button", name=refresh).click()
        expect(page.get_by_role("status")).to_contain_text("The run waits")
        assert host.wrong == []
