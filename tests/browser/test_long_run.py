"""The page of a long run in Chromium: its newest part first, the older steps as one scrolls, and no more than fit."""

from pathlib import Path

import pytest
from playwright.sync_api import Route, expect
from tests.support.browser import Watched, chromium, console_process, free_port, require_browser

from interlock.testing.harness import Harness, linear_workflow

STEPS, STEPS_MAX = 140, 100
SLOW_ANSWERS = 3
IN_PROGRESS = '<main id="main"><div id="live"><h1>Run</h1><p data-reading>Still being read.</p></div></main>'
IS_BOX_SHOWN = """() => {
  const node = document.querySelector("[data-tip]").dataset.node, figure = document.querySelector("figure.picture");
  const box = figure.querySelector(`a[data-node="${node}"]`).getBoundingClientRect();
  const around = figure.getBoundingClientRect();
  return box.top >= around.top && box.bottom <= around.bottom && box.left >= around.left && box.right <= around.right;
}"""


@pytest.mark.inv("CON-6", "CON-7", "CON-14")
def test_older_steps_appear_as_one_scrolls_and_stay_while_the_run_continues(tmp_path: Path) -> None:
    require_browser()
    harness = Harness.on_disk(tmp_path / "data", linear_workflow("team.long", *(f"s{one}" for one in range(STEPS))))
    began = answer = harness.start("team.long", goal="Do a lot")
    for number in range(STEPS - 2):
        answer = harness.advance(answer, f"Finished part {number}. with care")
    port = free_port()
    with chromium() as browser, console_process(tmp_path / "data", tmp_path, port) as link:
        watched = Watched(browser.new_page())
        page = watched.page
        page.goto(link)
        page.get_by_role("link", name="Do a lot").click()
        expect(page.locator("#steps article").first).to_contain_text(f"Step s{STEPS - 2}")
        # The picture and the list begin at the pending step.
        page.get_by_role("heading", name="Picture").evaluate("(heading) => heading.scrollIntoView()")
        expect(page.locator("#tree [data-tip]")).to_be_in_viewport()
        assert page.evaluate(IS_BOX_SHOWN)
        steps, oldest = page.locator("#steps article"), page.get_by_text("Finished part 0. with care")
        while not oldest.count():
            page.mouse.wheel(0, 4_000)
            page.wait_for_timeout(50)
        assert steps.count() <= STEPS_MAX
        part = page.locator("#live summary").first
        part.focus()
        page.evaluate(
            "document.styleSheets[0].insertRule('figure.picture svg { min-width: 3000px; min-height: 3000px }')"
        )
        page.locator("figure.picture").evaluate("(part) => part.scrollTo(123, 45)")
        harness.advance(answer, "Finished the last but one.")
        expect(page.locator("#tree [data-tip]")).to_contain_text(f"Step s{STEPS - 1}")
        assert oldest.count() == 1, "what a person reads stays"
        expect(part).to_be_focused()
        assert page.locator("figure.picture").evaluate("(part) => [part.scrollLeft, part.scrollTop]") == [123, 45]
        page.get_by_role("link", name="Newest steps").click()
        expect(page.get_by_text("Finished the last but one.")).to_be_visible()
        assert steps.count() <= STEPS_MAX
        assert watched.wrong == []
    assert harness.session_of(began) in page.url


@pytest.mark.inv("CON-6", "CON-7")
def test_older_steps_stay_while_the_page_is_still_being_made(tmp_path: Path) -> None:
    require_browser()
    harness = Harness.on_disk(tmp_path / "data", linear_workflow("team.long", *(f"s{one}" for one in range(40))))
    answer = harness.start("team.long", goal="Do a lot")
    for number in range(38):
        answer = harness.advance(answer, f"Finished part {number}. with care")
    made: list[str] = []

    def slowly(route: Route) -> None:
        made.append(route.request.url)
        if len(made) <= SLOW_ANSWERS:
            route.fulfill(content_type="text/html", body=IN_PROGRESS)
        else:
            route.continue_()

    with chromium() as browser, console_process(tmp_path / "data", tmp_path, free_port()) as link:
        watched = Watched(browser.new_page())
        page = watched.page
        page.goto(link)
        page.get_by_role("link", name="Do a lot").click()
        oldest = page.get_by_text("Finished part 0. with care")
        while not oldest.count():
            page.mouse.wheel(0, 4_000)
            page.wait_for_timeout(50)
        page.route("**/runs/*", slowly)
        harness.advance(answer, "Finished the last but one.")
        expect(page.locator("[data-reading]")).to_have_text("Still being read.")
        assert oldest.count() == 1
        expect(page.locator("#tree [data-tip]")).to_contain_text("Step s39")
        expect(page.locator("[data-reading]")).to_have_count(0)
        assert oldest.count() == 1
        assert watched.wrong == []
