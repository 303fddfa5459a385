"""What a page that is open does while its console, its data or a run fails."""

import shutil
import signal
from pathlib import Path

import pytest
from playwright.sync_api import expect
from tests.support.browser import Watched, chromium, console_process, free_port, require_browser
from tests.support.console_data import fill


@pytest.mark.damages
@pytest.mark.inv("CON-11", "CON-6", "CON-7")
def test_an_open_page_says_what_failed_and_continues_when_it_can(tmp_path: Path) -> None:
    require_browser()
    shown, port = fill(tmp_path), free_port()
    with chromium() as browser:
        watched = Watched(browser.new_page())
        page = watched.page
        with console_process(shown.data_dir, shown.workspace, port, ends_by=signal.SIGKILL) as link:
            page.goto(link)
            first = page.get_by_role("link", name="Repair the discount")
            expect(first).to_be_visible()
            hidden = shown.data_dir.rename(tmp_path / "hidden")
            expect(page.get_by_text("Nothing is recorded yet")).to_be_visible()
            shutil.rmtree(shown.data_dir, ignore_errors=True)
            hidden.rename(shown.data_dir)
            expect(first).to_be_visible()
            ring = shown.data_dir / "keys" / "keyring.json"
            ring.write_text("{}")
            first.click()
            expect(page.get_by_role("heading", level=1)).to_contain_text("Repair the discount")
        expect(page.get_by_role("status")).to_have_text("The console does not answer. This page tries again.")
        with console_process(shown.data_dir, shown.workspace, port) as link:
            expect(page.get_by_role("status")).to_contain_text("interlock console --link")
            page.goto(link)
            expect(page.get_by_role("link", name="Repair the discount")).to_be_visible()
        assert watched.wrong == []
