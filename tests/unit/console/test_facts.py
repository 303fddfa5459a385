"""What the pages say of preferences, gaps and the origin of steps, besides the steps themselves."""

from html import unescape

import pytest
from tests.support.console import entered
from tests.support.history import redone
from tests.support.modes import NEVER_STOPS, with_artifacts

from interlock.store.memory.store import MemoryStore
from interlock.testing.harness import CounterClock, Harness, linear_workflow

ADVISED = {"recommendedAutonomy": "guided", "recommendedRiskPolicy": "balanced"}


@pytest.mark.inv("CON-1", "CON-17")
def test_preferences_beyond_the_recommendation_are_a_warning_on_run_and_node() -> None:
    harness = Harness.in_memory({**linear_workflow("team.ship", "a", "b"), "recommendedPreferences": ADVISED})
    browser = entered(harness)
    for preferences, is_beyond in ((NEVER_STOPS, True), ({"autonomy": "guided"}, False)):
        began = harness.start("team.ship", preferences=preferences)
        where = harness.reference_of(began)
        for page in (f"runs/{where.run}", f"nodes/{where.node}"):
            text = browser.get(f"/sessions/{where.session}/{page}").text
            assert ("the author recommends at most" in text) == is_beyond


@pytest.mark.inv("CON-1", "CON-18")
def test_a_step_that_was_redone_says_which_gap_it_resolved() -> None:
    harness = Harness.in_memory(linear_workflow("team.ship", "a", "b"))
    began = harness.start("team.ship", preferences=NEVER_STOPS)
    harness.advance(began, None)
    where = harness.reference_of(began)
    address = f"/sessions/{where.session}/runs/{where.run}"
    browser = entered(harness)
    before = browser.get(address).text
    assert "gap left, " in before
    assert "gap resolved, " not in before
    redone(harness, began, "Done with notes this time.")
    after = browser.get(address).text
    assert "gap resolved, " in after
    assert "Open gaps" not in after


@pytest.mark.inv("CON-1", "TRACE-3", "CON-18")
def test_a_node_shows_the_decisions_that_led_to_it_with_the_values_that_they_read() -> None:
    conditional = {"id": "b", "title": "B", "prompt": "Do b.", "when": {"var": "size", "gt": 3}}
    size = {"key": "size", "type": "number", "description": "How large."}
    harness = Harness.in_memory(linear_workflow("team.ship", "a", conditional, "c", inputs=[size]))
    browser = entered(harness)
    began = harness.start("team.ship", context={"size": 5})
    where = harness.reference_of(harness.advance(began))
    text = browser.get(f"/sessions/{where.session}/nodes/{where.node}").text
    assert "Decisions on the way here" in text
    assert "`size` = 5] holds" in unescape(text)
    root = harness.reference_of(began)
    assert "Decisions on the way here" not in browser.get(f"/sessions/{root.session}/nodes/{root.node}").text


@pytest.mark.inv("CON-1", "CON-18")
def test_a_run_shows_its_capabilities_and_deviations_with_their_history() -> None:
    demand = {"capabilities": {"web_browsing": "required"}}
    harness = Harness.in_memory({**linear_workflow("team.ship", "a", "b", "c"), **demand})
    browser = entered(harness)
    began = harness.start("team.ship")
    probe = {"kind": "wr.capability_observation", "capability": "web_browsing", "status": "available"}
    deviation = {"kind": "wr.workflow_divergence", "reason": "efficiency_skip", "summary": "Skipped the survey."}
    first = harness.advance(began, None, output=with_artifacts(probe))
    harness.advance(first, None, output=with_artifacts(deviation))
    redone(harness, first, "Did it again without a deviation.")
    text = unescape(browser.get(f"/sessions/{harness.session_of(began)}").text)
    facts = text.split('id="facts"')[1].split("</section>")[0]
    badges, history = facts.split("<details>")
    assert "web_browsing available" in badges
    assert "deviated" not in badges, "another branch is preferred now"
    assert "deviated, efficiency skip: " in history


@pytest.mark.inv("CON-1", "GC-1")
def test_a_run_says_how_long_its_session_is_kept() -> None:
    harness = Harness.in_memory(linear_workflow("team.ship", "a", "b"))
    session = harness.session_of(harness.start("team.ship"))
    for kept, words in ((), "may delete it from"), ((session,), "it is marked to be kept"):
        assert words in unescape(entered(harness, kept=kept).get(f"/sessions/{session}").text)


@pytest.mark.inv("CON-1", "CON-19")
def test_a_workflow_names_the_routine_that_its_author_did_not_write_the_steps_of() -> None:
    routine = "wr.templates.routine.context-gathering"
    looking = {"type": "template", "id": "look", "templateCall": {"templateId": routine}}
    text = entered(Harness.in_memory(linear_workflow("team.ship", looking, "a"))).get("/workflows/team.ship").text
    assert "The plan as text" in text
    assert f", from {routine}" in text
    assert f"<code>{routine}</code>" in text.split('id="origins"')[1].split("</details>")[0]
    assert "<td>plan</td>" in text.split('id="parts"')[1].split("</details>")[0]


@pytest.mark.inv("CON-1")
def test_a_run_shows_its_steps_over_time_and_each_row_leads_to_its_step() -> None:
    clock = CounterClock()
    harness = Harness.over(MemoryStore(), linear_workflow("team.ship", "a", "b"), clock=clock)
    browser = entered(harness)
    began = harness.start("team.ship")
    where = harness.reference_of(began)
    address = f"/sessions/{where.session}/runs/{where.run}"
    assert "The steps over time" not in browser.get(address).text
    clock.skip_ms(3_600_000)
    harness.advance(began)
    text = browser.get(address).text
    times = text[text.index("<h2>Time</h2>") : text.index("<h2>Steps")]
    assert ">1 h</text>" in times
    assert times.count("<a href=") == 2
    assert f'href="/sessions/{where.session}/nodes/{where.node}" data-node="{where.node}"' in times
