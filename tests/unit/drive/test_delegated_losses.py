"""A drive with several agents that was killed is continued by the lead, whoever worked when it ended."""

from typing import Any

import pytest
from tests.support.drive import EFFECTFUL, calls, report, team, tool
from tests.unit.drive.test_delegation import ABC, BEGIN, lead, other

from interlock.drive.run.driver import Settled
from interlock.testing.harness import Harness, linear_workflow

pytestmark = pytest.mark.asyncio
CHILD = linear_workflow("test.child", "one", "two")
RULES: dict[str, dict[str, Any]] = {
    "handoff": {"type": "handoff", "steps": ["b"]},
    "supervisor": {"type": "supervisor", "steps": ["b"], "workflow": "test.child"},
}


@pytest.mark.inv("DRIVE-13", "DELEG-1")
@pytest.mark.parametrize("settled", ["happened", "not_happened"])
@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
async def test_what_became_of_a_call_of_another_agent_is_said_when_the_lead_is_resumed(
    rule: dict[str, Any], settled: Settled
) -> None:
    made: list[str] = []

    async def send(_arguments: Any, _context: Any) -> object:
        made.append("sent")
        raise KeyboardInterrupt

    functions = {"send": tool(send, EFFECTFUL)}
    harness, member = Harness.in_memory(ABC, CHILD), other(tools=[{"name": "send", "type": "function"}])
    led, working = (lead(**rule), report), {"other": (member, report)}
    sending = {"other": (member, calls(("send", {})))}
    async with team(harness, led, sending, functions=functions) as (crew, caller, _):
        with pytest.raises(KeyboardInterrupt):
            await crew.start(BEGIN)
        run = caller.records()[0]["ids"]["sessionId"]
    async with team(harness, led, working, functions=functions) as (crew, _, models):
        result = await crew.resume(run)
        assert (result.status, result.position.run) == ("person_needed", run)
        assert result.fault is not None
        assert "A driver ended while it called send." in result.fault.message
    async with team(harness, led, working, functions=functions) as (crew, _, models):
        result = await crew.resume(run, settled)
        assert result.status == "complete", result.fault
        asked = models["other"].requests[0].messages
    answer = "took place" if settled == "happened" else "did not take place"
    assert any(answer in one.text() for one in asked if one.role == "tool")
    assert made == ["sent"]
