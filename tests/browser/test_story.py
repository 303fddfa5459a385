"""A person at the console and an agent over stdio, each in a process of its own."""

import sys
from pathlib import Path

import pytest
from mcp import StdioServerParameters
from playwright.sync_api import expect
from tests.support.approvals import asking
from tests.support.browser import Watched, chromium, console_process, free_port, require_browser
from tests.support.server import Served, events_in, step_of, workspace_in

PLAN = "The plan: change **one file**, and test it."
ASKING = asking(show=["notes.a", "goal"])
CONTINUES_MS = 1_000
"""A page shows that a run continued within a second."""


def agent_over_stdio(data_dir: Path, workspace: Path) -> Served:
    """Return a client and its server. A process between them is the client's, so that this one is a person's."""
    serve = ["-m", "interlock", "--data-dir", str(data_dir), "--workspace", str(workspace)]
    return Served(
        StdioServerParameters(
            command="/bin/sh",
            args=["-c", 'cat | "$@"', "sh", sys.executable, *serve],
            env={"INTERLOCK_WORKFLOWS_DIR": str(workspace / "none"), "INTERLOCK_LOG_LEVEL": "CRITICAL"},
            cwd=str(workspace),
        ),
        "auto",
    )


@pytest.mark.inv("CON-8", "CON-7", "CON-4")
def test_a_person_finds_the_run_that_waits_reads_approves_with_a_note_and_sees_the_agent_continue(
    tmp_path: Path,
) -> None:
    require_browser()
    data, workspace = tmp_path / "data", workspace_in(tmp_path, asking=ASKING)
    port = free_port()
    with agent_over_stdio(data, workspace) as agent, chromium() as browser:
        first = agent.start("test.flow", goal="Ship the box")
        waiting = agent.advance(first, PLAN)
        assert waiting["waiting"]["for"] == "approval"
        with console_process(data, workspace, port) as link:
            person = Watched(browser.new_page())
            page = person.page
            page.goto(link)
            page.get_by_role("link", name="Ship the box").click()
            page.get_by_role("link", name="Read and decide").click()
            expect(page.get_by_role("heading", level=1)).to_contain_text("Agree the plan")
            expect(page.locator("pre", has_text="change **one file**")).to_be_visible()
            page.get_by_label("Note").fill("Do it, but keep it small.")
            watching = Watched(browser.new_page())
            watching.page.goto(f"http://127.0.0.1:{port}/sessions/{first['run']['sessionId']}")
            # By keyboard: the button of the first choice.
            page.get_by_role("button", name="approve").focus()
            page.keyboard.press("Enter")
            expect(watching.page.locator("#live .status").first).to_contain_text(
                "in progress", timeout=CONTINUES_MS + 1_000
            )
            expect(page.get_by_role("main")).to_contain_text("is recorded as observed")
            expect(page.get_by_role("main")).to_contain_text("The run continued.")
            assert step_of(agent.advance(waiting, None)) == "b"
            assert person.wrong == watching.wrong == []
    [answer] = [one for one in events_in(data, first) if one["kind"] == "event_received"]
    assert (answer["data"]["via"], answer["data"]["assurance"]) == ("console", "observed")
    assert answer["data"]["fields"]["note"] == "Do it, but keep it small."
