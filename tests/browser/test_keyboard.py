"""Every page without a mouse: Tab reaches all that can be operated, one sees where the focus is, and Enter decides."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect
from tests.support.approvals import asking
from tests.support.browser import Watched, chromium, console_process, free_port, require_browser
from tests.support.console_data import fill
from tests.support.server import step_of, workspace_in

from interlock.testing.harness import Harness

ASKING = asking(show=["notes.a", "goal"])
STOPS_MAX = 400
"""More stops than a page of these tests has."""
REPLACED_MAX = 5
"""A page of these tests is replaced at most a few times, after its last change."""
CONTROLS = """() => {
  const focusable = "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']";
  const groups = new Set();
  return [...document.querySelectorAll(focusable)].filter((one) => {
    if (one.disabled || !one.checkVisibility({ visibilityProperty: true })) return false;
    if (one.type !== "radio") return true;
    const is_new = !groups.has(one.name);
    groups.add(one.name);
    return is_new;
  }).map((one, at) => (one.dataset.stop = one.type === "radio" ? `radio ${one.name}` : String(at)));
}"""
"""Marks each control that can be operated, and returns the marks; the radio buttons of a group are one stop of Tab."""
FOCUSED = """() => {
  const one = document.activeElement, style = getComputedStyle(one), box = one.getBoundingClientRect();
  const is_seen = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0 && box.width * box.height > 0
    && box.bottom > 0 && box.right > 0 && box.top < innerHeight && box.left < innerWidth;
  const stop = one.type === "radio" ? `radio ${one.name}` : one.dataset.stop;
  return one === document.body ? null : { stop: stop || "", is_seen, html: one.outerHTML.slice(0, 120) };
}"""
"""Describes the element that has the focus: its mark, and whether a person sees that it has it."""
MARKED = "() => [...document.querySelectorAll('[data-stop]')].map((one) => one.dataset.stop)"
OUTER = "(one) => one.outerHTML.slice(0, 120)"


def missed_on(page: Page) -> list[str]:
    """Return the controls of a page that Tab does not reach, or that do not show that they have the focus."""
    for _ in range(REPLACED_MAX):
        wanted: list[str] = page.evaluate(CONTROLS)
        assert len(wanted) > 1, page.url
        reached, unseen = stops(page)
        marked: list[str] = page.evaluate(MARKED)
        if set(wanted) <= set(marked):
            return [
                *(page.locator(f"[data-stop='{one}']").first.evaluate(OUTER) for one in wanted if one not in reached),
                *unseen,
            ]
        # A newer version of the page has taken the place of the marked controls.
        page.reload()
    raise AssertionError(f"{page.url} was replaced {REPLACED_MAX} times")


def stops(page: Page) -> tuple[list[str], list[str]]:
    """Press Tab through a page; return the marks that got the focus, and the elements that did not show it."""
    reached, unseen = list[str](), list[str]()
    for _ in range(STOPS_MAX):
        page.keyboard.press("Tab")
        found = page.evaluate(FOCUSED)
        if found is None or (found["stop"] and found["stop"] in reached):
            return reached, unseen
        reached.append(found["stop"])
        if not found["is_seen"]:
            unseen.append(found["html"])
    raise AssertionError(f"Tab continues after {STOPS_MAX} stops")


def tab_to(page: Page, wanted: Locator) -> None:
    """Press Tab until an element has the focus."""
    for _ in range(STOPS_MAX):
        if wanted.evaluate("(one) => one === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab does not reach {wanted}")


@pytest.mark.damages
@pytest.mark.inv("CON-10")
def test_tab_reaches_every_control_of_every_page_and_shows_where_the_focus_is(tmp_path: Path) -> None:
    require_browser()
    shown = fill(tmp_path)
    port = free_port()
    missed: dict[str, list[str]] = {}
    with chromium() as browser, console_process(shown.data_dir, shown.workspace, port) as link:
        page = Watched(browser.new_page()).page
        page.goto(link)
        expect(page.get_by_role("heading", level=1)).to_have_text("Now")
        for name, address in shown.pages.items():
            page.goto(f"http://127.0.0.1:{port}{address}")
            missed[name] = missed_on(page)
        assert {name: one for name, one in missed.items() if one} == {}
        page.goto("about:blank")
        page.set_content("<a href='/' tabindex='-1'>skipped</a><a href='/' style='outline: none'>unseen</a>")
        assert [one.split(">")[1][:6] for one in missed_on(page)] == ["skippe", "unseen"]


@pytest.mark.inv("CON-8", "CON-10")
def test_a_person_without_a_mouse_selects_a_step_reads_it_and_decides(tmp_path: Path) -> None:
    require_browser()
    data, workspace = tmp_path / "data", workspace_in(tmp_path, asking=ASKING)
    harness = Harness.on_disk(data, ASKING)
    waiting = harness.advance(harness.start("test.flow", goal="Ship the box"), "The plan: change one file.")
    port = free_port()
    with chromium() as browser, console_process(data, workspace, port) as link:
        watched = Watched(browser.new_page())
        page = watched.page
        page.goto(link)
        tab_to(page, page.get_by_role("link", name="Ship the box"))
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile("/sessions/"))
        box = page.locator(".picture svg a[data-node]").first
        node = str(box.get_attribute("data-node"))
        tab_to(page, box)
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile(rf"(#|/nodes/){node}$"))
        tab_to(page, page.get_by_role("link", name="Read and decide"))
        page.keyboard.press("Enter")
        tab_to(page, page.get_by_label("Note"))
        page.keyboard.type("Agreed.")
        tab_to(page, page.get_by_role("button", name="approve"))
        page.keyboard.press("Enter")
        expect(page.get_by_role("main")).to_contain_text("is recorded as observed")
        assert watched.wrong == []
    assert step_of(harness.follow(waiting, "")) == "b"
