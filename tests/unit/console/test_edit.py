"""Workflows in the console: copied, edited with diagnostics, and saved only if they can run."""

import html
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.console import ORIGIN, Browser, entered
from tests.support.server import tree

from interlock.kernel.budgets.console import CONSOLE_SOURCE_BODY_BYTES_MAX
from interlock.plan.builtins.features import FEATURES
from interlock.plan.builtins.packs import PACKS
from interlock.plan.builtins.references import SNIPPETS
from interlock.plan.builtins.templates import TEMPLATES
from interlock.store.memory.store import MemoryStore
from interlock.store.workflow_files import LocalWorkflowFiles
from interlock.testing.harness import Harness, linear_workflow

SHIP = linear_workflow("team.ship", "a", "b")
EDIT = "/workflows/team.ship/edit"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    directory = tmp_path / "space" / ".interlock" / "workflows"
    directory.mkdir(parents=True)
    (directory / "ship.json").write_text(json.dumps(SHIP, indent=2))
    return tmp_path / "space"


@pytest.fixture
def browser(workspace: Path) -> Browser:
    return entered(replace(Harness.in_memory(), workspace=workspace))


def source_in(page: str) -> str:
    found = re.search(r"<textarea[^>]*>\n(.*?)</textarea>", page, re.DOTALL)
    assert found is not None
    return html.unescape(found[1])


def opened_in(page: str) -> str:
    found = re.search(r'name="opened" value="([^"]+)"', page)
    assert found is not None
    return found[1]


def saved_file(workspace: Path) -> Path:
    return workspace / ".interlock" / "workflows" / "ship.json"


@pytest.mark.inv("CON-13")
def test_a_workflow_is_broken_checked_as_one_types_repaired_saved_and_started(
    workspace: Path, browser: Browser
) -> None:
    page = browser.get(EDIT).text
    assert "this source can run" in page
    source, opened = source_in(page), opened_in(page)
    assert json.loads(source) == SHIP
    broken = source.replace('"title": "Step b"', '"titel": "Step b"')
    checked = browser.post("/workflows/team.ship/check", {"source": broken}).text
    assert "unknown key" in checked
    assert "data-line=" in checked
    refused = browser.post("/workflows/team.ship/save", {"source": broken, "opened": opened})
    assert (refused.status_code, "so it cannot run" in refused.text) == (409, True)
    assert json.loads(saved_file(workspace).read_text()) == SHIP
    repaired = source.replace("Step b", "Step better").replace("\n", "\r\n")
    assert browser.post("/workflows/team.ship/save", {"source": repaired, "opened": opened}).status_code == 200
    assert saved_file(workspace).read_text() == repaired.replace("\r\n", "\n")
    assert sorted(one.name for one in saved_file(workspace).parent.iterdir()) == ["ship.json"]
    agent = replace(
        Harness.over(MemoryStore(), sources=LocalWorkflowFiles(core_dirs=(), user_dir=None)), workspace=workspace
    )
    started = agent.advance(agent.call("start_workflow", {"workflowId": "team.ship"}), "Did a with care.")
    assert started["pending"]["title"] == "Step better"


def repaired_by_click(browser: Browser, source: str) -> str:
    """Apply the one fix that the page offers, as the browser does."""
    checked = browser.post("/workflows/team.ship/check", {"source": source}).text
    (found,) = re.findall(r'data-start="(\d+)" data-end="(\d+)" data-write="([^"]*)"', checked)
    # Browsers count units of UTF-16.
    units = source.encode("utf-16-le")
    start, end, write = 2 * int(found[0]), 2 * int(found[1]), html.unescape(found[2])
    return (units[:start] + write.encode("utf-16-le") + units[end:]).decode("utf-16-le")


STEP = {"id": "a", "title": "A", "prompt": "Do a."}
LOOK = {"name": "look", "definition": "Look at it."}
FAST = {"kind": "condition_ref", "conditionId": "fats"}
ROUTINE = "wr.templates.routine.context-gathering"
CALL = {"templateId": ROUTINE.removesuffix("g")}
GATHERED = {"id": "b", "type": "template", "title": "B"}
PACED = {"key": "pace", "type": "string", "description": "How fast."}


@pytest.mark.inv("CON-13")
@pytest.mark.parametrize("before", ["Ship", "Ship 😀"])
@pytest.mark.parametrize(
    "broken",
    [
        {"id": "wr.ship"},
        {"id": "ship"},
        {"features": ["wr.features.subagent_guidence"]},
        {"steps": [STEP | {"titel": 1}]},
        {"steps": [{"id": "a", "titel": "A", "prompt": "Do a."}]},
        {"steps": [STEP | {"extra": [{"x": 1}]}]},
        {"steps": [{"title": "Read the code!", "prompt": "Do a."}]},
        {"steps": [{"id": "read-code", "prompt": "Do a."}]},
        {"steps": [STEP | {"outputContract": {"contractRef": "wr.contracts.verdit"}}]},
        {"steps": [STEP | {"functionReferences": ["lok"]}], "functionDefinitions": [LOOK]},
        {"steps": [STEP, STEP | {"id": "b", "when": FAST}], "conditions": {"fast": {"var": "pace", "equals": "f"}}},
        {"steps": [GATHERED | {"templateCall": CALL}]},
        {"steps": [GATHERED | {"templateCall": {"templateId": ROUTINE, "args": {"question": "What is it?"}}}]},
    ],
)
def test_each_fix_that_is_offered_is_an_edit_with_which_the_source_can_run(
    workspace: Path, browser: Browser, before: str, broken: dict[str, object]
) -> None:
    source = json.dumps({**SHIP, "name": before, "inputs": [PACED]} | broken, ensure_ascii=False)
    checked = browser.post("/workflows/team.ship/check", {"source": repaired_by_click(browser, source)}).text
    assert "this source can run" in checked
    assert "data-write" not in browser.get("/workflows/wr.quick_task/edit").text
    assert json.loads(saved_file(workspace).read_text()) == SHIP


@pytest.mark.inv("CON-13", "CON-19")
def test_the_page_shows_the_prompts_as_they_are_compiled_and_the_built_ins_that_can_be_inserted(
    browser: Browser,
) -> None:
    page = browser.get(EDIT).text
    text = {
        **SHIP,
        "steps": [
            {
                "id": "a",
                "title": "A",
                "promptBlocks": {"goal": [{"kind": "ref", "refId": "wr.refs.memory_query"}]},
            }
        ],
    }
    checked = browser.post("/workflows/team.ship/check", {"source": json.dumps(text)}).text
    assert SNIPPETS["wr.refs.memory_query"].text[:40] in html.unescape(checked)
    assert "A source with errors has no prompts" in browser.post("/workflows/team.ship/check", {"source": "{}"}).text
    for known in (PACKS, TEMPLATES, FEATURES, SNIPPETS):
        for key in known:
            assert f'data-insert="{key}"' in page
    assert "data-insert" not in browser.get("/workflows/wr.quick_task/edit").text


@pytest.mark.inv("CON-13")
def test_a_file_that_was_changed_since_it_was_opened_is_not_overwritten(workspace: Path, browser: Browser) -> None:
    page = browser.get(EDIT).text
    changed = json.dumps({**SHIP, "name": "Changed by somebody else"})
    saved_file(workspace).write_text(changed)
    refused = browser.post("/workflows/team.ship/save", {"source": source_in(page), "opened": opened_in(page)})
    assert (refused.status_code, "has changed since it was opened" in refused.text) == (409, True)
    assert saved_file(workspace).read_text() == changed


@pytest.mark.inv("CON-13")
def test_a_built_in_workflow_is_read_only_and_is_copied_to_an_id_of_the_project(
    workspace: Path, browser: Browser
) -> None:
    page = browser.get("/workflows/wr.quick_task/edit").text
    assert "read-only" in page
    fields = {"source": source_in(page), "opened": opened_in(page)}
    assert browser.post("/workflows/wr.quick_task/save", fields).status_code == 409
    before = tree(workspace)
    for bad in ("wr.mine", "../../x", "team/../x", "", "Team.Mine", "team.ship", "x" * 500, "team.<b>"):
        refused = browser.post("/workflows/wr.quick_task/copy", {"id": bad})
        assert refused.status_code == 409, bad
        assert "<b>" not in refused.text
    assert tree(workspace) == before
    assert browser.post("/workflows/wr.quick_task/copy", {"id": "team.mine"}).status_code == 200
    assert ">Save</button>" in browser.get("/workflows/team.mine/edit").text
    assert browser.post("/workflows/wr.quick_task/copy", {"id": "team.mine"}).status_code == 409


@pytest.mark.inv("CON-13")
def test_an_id_of_another_form_or_of_another_workflow_is_not_saved(workspace: Path, browser: Browser) -> None:
    page = browser.get(EDIT).text
    other = source_in(page).replace("team.ship", "team.other")
    refused = browser.post("/workflows/team.ship/save", {"source": other, "opened": opened_in(page)})
    assert "The id became" in refused.text
    legacy = saved_file(workspace).with_name("old.json")
    legacy.write_text(json.dumps({**SHIP, "id": "old-style"}))
    page = browser.get("/workflows/old-style/edit").text
    refused = browser.post("/workflows/old-style/save", {"source": source_in(page), "opened": opened_in(page)})
    assert refused.status_code == 409
    assert "is an id of the old form" in refused.text


@pytest.mark.inv("CON-2", "CON-13")
@pytest.mark.parametrize("changes", [{"x-interlock-token": "x"}, {"origin": "http://evil.test"}, {"origin": "null"}])
def test_a_forged_request_writes_no_workflow(workspace: Path, browser: Browser, changes: dict[str, str]) -> None:
    page = browser.get(EDIT).text
    found = re.search(r'name="interlock-token" content="([^"]*)"', page)
    assert found is not None
    headers = {"origin": ORIGIN, "sec-fetch-site": "same-origin", "x-interlock-token": found[1], **changes}
    before = tree(workspace)
    for action, fields in (
        ("save", {"source": source_in(page) + " ", "opened": opened_in(page)}),
        ("copy", {"id": "team.forged"}),
        ("check", {"source": "x"}),
    ):
        assert browser.send("POST", f"/workflows/team.ship/{action}", headers, data=fields).status_code == 403
    headers |= {"content-length": str(CONSOLE_SOURCE_BODY_BYTES_MAX + 1), "origin": ORIGIN}
    assert browser.send("POST", "/workflows/team.ship/save", headers).status_code in (403, 413)
    assert tree(workspace) == before


@pytest.mark.inv("CON-5", "CON-13")
@pytest.mark.parametrize(
    "text",
    [
        "</textarea><script>alert(1)</script>",
        "\x00",
        "[" * 50_000,
        '{"id": "<img src=x>"}',
        '{"id": "team.ship", "steps": [{"</li><script>alert(1)</script>titel": "<img src=x>"}]}',
        "\ufeff{}",
        "",
    ],
)
def test_a_hostile_source_is_shown_as_text_and_not_saved(workspace: Path, browser: Browser, text: str) -> None:
    checked = browser.post("/workflows/team.ship/check", {"source": text})
    assert checked.status_code == 200
    assert "<script>alert" not in checked.text
    assert "<img" not in checked.text
    opened = opened_in(browser.get(EDIT).text)
    assert browser.post("/workflows/team.ship/save", {"source": text, "opened": opened}).status_code == 409
    saved_file(workspace).write_text(text)
    for path in ("/workflows", EDIT):
        page = browser.get(path)
        assert "<script>alert" not in page.text
