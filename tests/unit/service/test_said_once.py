"""An answer to a report does not say again what the answer before it said (ANS-27)."""

import pytest
from tests.support.flow import document, step

from interlock.testing.harness import Harness

LONG = "Look at every file. " * 80


@pytest.fixture
def harness() -> Harness:
    prompt = "{{mode}}: " + LONG
    return Harness.in_memory(
        document(step("a", prompt=prompt, agentRole="A reviewer."), step("b", agentRole="A reviewer."), step("c"))
    )


@pytest.mark.inv("ANS-27")
def test_a_refusal_refers_to_a_long_prompt_that_is_unchanged(harness: Harness) -> None:
    first = harness.start("test.flow", context={"mode": "slow"})
    refused = harness.advance(first, None)
    assert LONG not in refused.text
    assert LONG not in refused["pending"]["prompt"]
    assert "is the same as in the answer that you reported on" in refused.text
    assert LONG.strip() in harness.rehydrate(refused).text
    assert harness.advance(first, None) == refused
    assert harness.advance(refused)["pending"]["stepId"] == "b"


@pytest.mark.inv("ANS-27")
def test_a_prompt_that_the_report_changed_is_shown_again(harness: Harness) -> None:
    first = harness.start("test.flow", context={"mode": "slow"})
    refused = harness.advance(first, None, context={"mode": "fast"})
    assert f"fast: {LONG}".strip() in refused.text


@pytest.mark.inv("ANS-27")
def test_a_short_prompt_is_repeated_and_a_role_is_said_once(harness: Harness) -> None:
    first = harness.start("test.flow", context={"mode": "slow"})
    assert first["pending"]["agentRole"] == "A reviewer."
    second = harness.advance(first)
    assert "agentRole" not in second["pending"]
    assert "A reviewer." not in second.text
    assert harness.rehydrate(second)["pending"]["agentRole"] == "A reviewer."
    refused = harness.advance(second, None)
    assert "Do b." in refused.text
