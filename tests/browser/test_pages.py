"""Every page in Chromium: in both themes, on a narrow screen, and without anything that its policy refuses."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, ViewportSize, expect
from tests.support.browser import Watched, chromium, console_process, free_port, require_browser
from tests.support.console_data import Shown, fill

NARROW = ViewportSize(width=320, height=640)
WIDE = ViewportSize(width=1280, height=900)


@pytest.fixture
def shown(tmp_path: Path) -> Shown:
    require_browser()
    return fill(tmp_path)


@pytest.mark.damages
@pytest.mark.inv("CON-3", "CON-10")
def test_every_page_is_accessible_in_both_themes_and_on_a_narrow_screen(shown: Shown) -> None:
    port = free_port()
    found: dict[str, list[str]] = {}
    with chromium() as browser, console_process(shown.data_dir, shown.workspace, port) as link:
        watched = Watched(browser.new_page())
        page = watched.page
        page.goto(link)
        expect(page.get_by_role("heading", level=1)).to_have_text("Now")
        pages = dict(shown.pages)
        page.goto(f"http://127.0.0.1:{port}/inbox")
        pages["question"] = str(page.get_by_role("link", name="Read and decide").first.get_attribute("href"))
        page.goto(f"http://127.0.0.1:{port}{pages['run']}")
        pages["comparison"] = str(page.locator('a[href^="/compare?"]').first.get_attribute("href"))
        for name, address in pages.items():
            page.goto(f"http://127.0.0.1:{port}{address}")
            found[name] = watched.findings()
            page.set_viewport_size(NARROW)
            over = watched.width_over()
            found[f"{name}, narrow"] = [f"{over} pixels too wide"] if over > 0 else []
            page.set_viewport_size(WIDE)
            assert re.search(r"\w+ · Interlock$", page.title()), name
        assert {name: one for name, one in found.items() if one} == {}
        repair_a_workflow(page, f"http://127.0.0.1:{port}/workflows/team.ship/edit")
        assert "Build it well" in (shown.workspace / ".interlock" / "workflows" / "ship.json").read_text()
        assert watched.wrong == []
        page.set_content("<body bgcolor='#777777' text='#888888'><p>Hard to read<img src='data:,'>")
        assert {one.split(": ")[1] for one in watched.findings()} >= {"image-alt", "color-contrast"}


def repair_a_workflow(page: Page, address: str) -> None:
    """Break a workflow, see what is wrong as one types, be refused, repair it, and save it."""
    page.goto(address)
    source = page.get_by_label("Source")
    text = source.input_value()
    source.fill(text.replace('"title": "Build it"', '"titel": "Build it"'))
    page.get_by_role("button", name="line").first.click()
    assert "titel" in page.evaluate("document.getSelection().toString()")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("main")).to_contain_text("so it cannot run")
    page.goto(address)
    source.fill(text.replace('"title": "Build it"', '"titel": "Build it well"'))
    page.get_by_role("button", name="Write").press("Enter")
    expect(page.locator("#diagnostics")).to_contain_text("this source can run")
    expect(page.locator("#preview")).to_contain_text("Build it well")
    page.get_by_role("button", name="Save").press("Enter")
    expect(page.get_by_role("main")).to_contain_text("Saved.")
