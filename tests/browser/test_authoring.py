"""A person in Chromium who compares, proves and edits, and an agent over stdio that starts what was saved."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Dialog, Page, expect
from tests.browser.test_story import agent_over_stdio
from tests.support.browser import Watched, chromium, console_process, free_port, require_browser
from tests.support.console_data import fill
from tests.support.history import damage
from tests.support.server import step_of


@pytest.mark.damages
@pytest.mark.inv("CON-13", "CON-11", "CON-6")
def test_forks_are_compared_damage_is_found_and_a_copied_workflow_is_repaired_by_its_fixes_and_started(
    tmp_path: Path,
) -> None:
    require_browser()
    shown, port = fill(tmp_path), free_port()
    with chromium() as browser, console_process(shown.data_dir, shown.workspace, port) as link:
        watched = Watched(browser.new_page())
        page, main = watched.page, watched.page.get_by_role("main")
        page.goto(link)
        page.get_by_role("link", name="Repair the discount").click()
        page.get_by_role("link", name="Compare with the preferred tip").first.click()
        expect(main).to_contain_text("Repaired it otherwise")
        expect(main).to_contain_text("Repaired it by counting items first.")
        see_through_damage(page, f"http://127.0.0.1:{port}{shown.pages['damaged run']}")
        prove_that_a_byte_was_flipped(page, shown.data_dir, f"http://127.0.0.1:{port}{shown.pages['run']}")
        copy_break_and_repair(page, f"http://127.0.0.1:{port}")
        assert watched.wrong == []
    with agent_over_stdio(tmp_path / "agent", shown.workspace) as agent:
        assert step_of(agent.start("team.repaired")) == "reproduce"


def see_through_damage(page: Page, address: str) -> None:
    """See the sound beginning of a damaged session, under a banner."""
    page.goto(address)
    expect(page.get_by_role("alert")).to_contain_text("This session is damaged")
    expect(page.get_by_role("main")).to_contain_text("A session that is damaged")


def prove_that_a_byte_was_flipped(page: Page, data_dir: Path, address: str) -> None:
    """See that a session is sound, and after a change of one bit where it is not."""
    page.goto(address)
    session = page.url.split("/sessions/")[1].split("/")[0]
    page.get_by_role("link", name="Prove this run now").click()
    expect(page.locator(".sound").first).to_be_visible()
    damage(data_dir, session)
    page.reload()
    expect(page.get_by_role("main")).to_contain_text(re.compile(r"hash_mismatch.*events/\d+-\d+\.jsonl", re.DOTALL))


def copy_break_and_repair(page: Page, console: str) -> None:
    """Copy a workflow, break two words of it, repair each by its fix, and save."""
    page.goto(f"{console}/workflows/team.fix/edit")
    page.get_by_label("New id").fill("team.repaired")
    page.get_by_role("button", name="Copy into the project").click()
    expect(page.get_by_role("main")).to_contain_text("Copied into the project.")
    page.goto(f"{console}/workflows/team.repaired/edit")
    source = page.get_by_label("Source")
    text = source.input_value()
    source.fill(text.replace('"title": "Step repair', '"titel": "Step repair').replace('"description"', '"descripton"'))
    for left in (1, 0):
        page.get_by_role("button", name="Write").first.click()
        expect(page.locator("#diagnostics [data-write]")).to_have_count(left)
    expect(page.locator("#diagnostics")).to_contain_text("this source can run")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("main")).to_contain_text("Saved.")


@pytest.mark.damages
@pytest.mark.inv("CON-13")
def test_leaving_the_editor_asks_only_while_its_text_is_not_saved(tmp_path: Path) -> None:
    require_browser()
    shown, port = fill(tmp_path), free_port()
    with chromium() as browser, console_process(shown.data_dir, shown.workspace, port) as link:
        page, asked = browser.new_page(), list[str]()

        def stay(dialog: Dialog) -> None:
            asked.append(dialog.type)
            dialog.dismiss()

        page.on("dialog", stay)
        page.goto(link)
        page.get_by_role("link", name="Now").first.wait_for()
        editor = f"http://127.0.0.1:{port}/workflows/team.fix/edit"
        page.goto(editor)
        source = page.locator("textarea.source")
        source.press("End")
        page.get_by_role("link", name="Now").click()
        expect(page).not_to_have_url(editor)
        assert asked == []
        page.goto(editor)
        source.press_sequentially(" ")
        page.get_by_role("link", name="Now").click(no_wait_after=True)
        expect(page).to_have_url(editor)
        assert asked == ["beforeunload"]
        assert source.input_value().startswith(" ")
