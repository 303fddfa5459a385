"""Two hundred hostile texts in every field of runs and workflows, in Chromium: none runs, and none is refused."""

import json
from pathlib import Path

import pytest
from tests.support.browser import Watched, chromium, console_process, free_port, require_browser
from tests.support.hostile import hostile_runs
from tests.support.server import workspace_in

from interlock.testing.harness import Harness

LISTS, STRIDE = 10, 7
"""The pages that list all texts, and which of the others are opened: pages of each kind."""
SEES_REFUSALS = """
window.refused = [];
document.addEventListener("securitypolicyviolation", (event) => window.refused.push(event.violatedDirective));
"""


@pytest.mark.inv("CON-5", "CON-3")
def test_no_text_runs_in_a_browser_and_the_policy_has_nothing_to_refuse(tmp_path: Path) -> None:
    require_browser()
    written: list[dict[str, object]] = []

    def on_disk(*documents: dict[str, object]) -> Harness:
        written.extend(documents)
        return Harness.on_disk(tmp_path / "data", *documents)

    _, paths = hostile_runs(on_disk)
    paths += [f"{one}/edit" for one in paths if one.startswith("/workflows/team.")]
    files = {str(one["id"]).removeprefix("team."): one for one in written}
    workspace, port = workspace_in(tmp_path, **files), free_port()
    found: dict[str, object] = {}
    with chromium() as browser, console_process(tmp_path / "data", workspace, port) as link:
        browser.add_init_script(SEES_REFUSALS)
        watched = Watched(browser.new_page())
        watched.page.goto(link)
        watched.page.get_by_role("heading", name="Now").wait_for()
        for path in (*paths[:LISTS], *paths[LISTS::STRIDE]):
            answer = watched.page.goto(f"http://127.0.0.1:{port}{path}", wait_until="domcontentloaded")
            assert answer is not None
            assert answer.status == 200, path
            seen = watched.page.evaluate("JSON.stringify([top.ran || 0, window.refused, location.pathname])")
            ran, refused, here = json.loads(seen)
            if ran or refused or not here.startswith(path.split("?")[0]):
                found[path] = seen
    assert found == {}
    assert watched.wrong == []
