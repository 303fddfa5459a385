"""A driver as an execution adapter: an agent works on blocks, and every fact is an event of the given store."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.definitions import uuid
from tests.support.drive import Answer, FakeEffects, FakeModel, calls, each, profile, said

from interlock.define.operations.builders import WorkBlockBuilder
from interlock.define.operations.flows import Condition, NodeReference
from interlock.drive.run.block_adapter import AgentAdapter
from interlock.drive.run.setup import Surroundings, equip
from interlock.drive.turn import Equipment
from interlock.operations import InMemoryEventStore

BLOCK = WorkBlockBuilder("Write release notes").input("version").output("notes").build()
SLOT = NodeReference(id=uuid("slot"), target_id=BLOCK.id, target_version=1, alias="notes")


def adapter(answer: Answer) -> tuple[AgentAdapter, FakeModel]:
    model = FakeModel(answer=answer)

    @asynccontextmanager
    async def opened() -> AsyncGenerator[Equipment]:
        around = Surroundings(workspace=Path("/nonexistent"), effects=FakeEffects())
        equipment = equip(profile(), model, None, around)
        async with equipment.toolbox:
            yield replace(equipment)

    return AgentAdapter(opened, name="writer"), model


@pytest.mark.inv("ADPT-3", "ADPT-5")
def test_an_agent_executes_a_block_and_its_outputs_are_the_outcome() -> None:
    outputs = {"kind": "wr.block_outputs", "outputs": {"notes": "Fixed: all."}}
    answer = each(
        calls(("note_progress", {"notes": "Half."})), calls(("report_step", {"notes": "Done.", "artifacts": [outputs]}))
    )
    agent, model = adapter(answer)
    store = InMemoryEventStore()
    execution = agent.execute_block(BLOCK, SLOT, {"version": "1.2"}, store)
    events = store.get_events(execution)
    kinds = [event.event_type for event in events]
    assert kinds == ["created", "executor_assigned", "started", "progress", "outcome_produced", "completed"]
    assert next(one.payload for one in events if one.event_type == "outcome_produced") == {"notes": "Fixed: all."}
    shown = model.requests[0].messages[0].text()
    assert '"version": "1.2"' in shown
    assert "`notes`" in shown


def test_an_agent_that_never_reports_fails_the_block() -> None:
    agent, _ = adapter(lambda _: said(("unknown_tool", {})))
    store = InMemoryEventStore()
    execution = agent.execute_block(BLOCK, SLOT, {}, store)
    last = store.get_events(execution)[-1]
    assert last.event_type == "failed"
    assert "All calls of the model were refused" in str(last.payload)


@pytest.mark.parametrize(
    ("arguments", "is_true"),
    [({"result": True}, True), ({"result": False}, False), ({"result": "true"}, False), ({}, False)],
)
def test_a_condition_is_true_only_if_the_agent_clearly_says_so(
    arguments: dict[str, bool | str], *, is_true: bool
) -> None:
    agent, model = adapter(calls(("decide", arguments)))
    assert agent.evaluate_condition(Condition(description="The build is green."), {"build": 7}) is is_true
    assert "The build is green." in model.requests[0].messages[0].text()
