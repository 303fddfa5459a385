"""What the server does for drivers: their turns are kept and read, are no evidence, and open no gate."""

import json
from typing import Any

import pytest
from mcp import Client
from mcp.client import advertise
from tests.support.server import InMemory

from interlock.server.app import build_server
from interlock.testing.harness import ERAS, Era, Harness, call_through, linear_workflow

ABC = linear_workflow("test.abc", "a", "b")
DECIDES = {"id": "a", "title": "A", "prompt": "Do a.", "outputContract": {"contractRef": "wr.contracts.decision"}}
NOTES = "The file a.py was read, one decision was made, and nothing of it is open."
CLAIM = {"kind": "wr.confirmation", "confirmedBy": "Ada", "statement": "Yes, go on."}


def turn(number: int, **members: Any) -> dict[str, Any]:
    ids = {"interactionId": f"i{number}"}
    usage = {"inputTokens": 10, "outputTokens": 5, "cost": 0.5}
    return {"kind": "wr.turn", "version": 1, "status": "done", "ids": ids, "turn": number, "usage": usage, **members}


def turns_of(server: InMemory, answer: Any) -> dict[str, Any]:
    run = answer["run"]
    read = server.ask("read_resource", f"interlock://sessions/{run['sessionId']}/runs/{run['label']}/turns")
    return json.loads(read.contents[0].text)


@pytest.mark.inv("TURN-8")
def test_the_turns_of_a_run_are_a_resource_with_their_sums_and_a_mark_counts_once() -> None:
    with InMemory(ABC) as server:
        first = server.start()
        marked = turn(1, status="about_to_call")
        for artifact in (marked, turn(1, tools=[{}, {}]), turn(2)):
            saved = server.call("checkpoint_workflow", ackToken=first.ack, output={"artifacts": [artifact]})
            assert not saved.is_error
        server.report(first, turn(3, errors=[{}]), notes=NOTES)
        found = turns_of(server, first)
        assert found["totals"] == {
            "turns": 3,
            "inputTokens": 30,
            "outputTokens": 15,
            "cost": 1.5,
            "toolCalls": 2,
            "errors": 1,
        }
        assert [one["turn"]["turn"] for one in found["turns"]] == [1, 1, 2, 3]
        assert len({one["stepNode"] for one in found["turns"]}) == 1
        assert found["pendingNode"] not in {one["stepNode"] for one in found["turns"]}
        missing = server.client
        assert missing is not None


@pytest.mark.inv("TURN-7")
def test_a_record_of_a_turn_is_no_evidence_so_no_later_attempt_inherits_it_and_views_leave_it_out() -> None:
    with InMemory(linear_workflow("test.abc", DECIDES, "b")) as server:
        first = server.start()
        refused = server.report(first, turn(1), {"kind": "note", "text": "kept"}, notes=NOTES)
        assert refused["kind"] == "blocked"
        done = server.report(refused, {"kind": "wr.decision", "conditionId": "one", "result": True})
        assert done["kind"] == "ok"
        assert [one["turn"]["turn"] for one in turns_of(server, first)["turns"]] == [1], "it is stored once"
        shown = server.rehydrate(done)
        assert "`note`" in shown.text
        assert "wr.turn" not in json.dumps(dict(shown.structure))
        record = server.ask("read_resource", f"interlock://sessions/{first['run']['sessionId']}")
        assert "wr.turn" not in record.contents[0].text


@pytest.mark.inv("TURN-7")
def test_turns_never_push_out_the_notes_of_a_step() -> None:
    with InMemory(ABC) as server:
        first = server.start()
        server.call("checkpoint_workflow", ackToken=first.ack, output={"notesMarkdown": "Half is done."})
        for number in range(1, 60):
            server.call("checkpoint_workflow", ackToken=first.ack, output={"artifacts": [turn(number)]})
        assert "Half is done." in server.rehydrate(first)["recap"]


@pytest.mark.inv("DRIVE-12", "SRV-13", "EXE-4")
@pytest.mark.asyncio
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("declared", "kind"), [(None, "agent"), ("interlock/noPerson", "agent"), ("interlock/system", "system")]
)
async def test_a_claim_of_a_client_that_speaks_for_no_person_opens_no_gate(
    era: Era, declared: str | None, kind: str
) -> None:
    confirmed = {"id": "a", "title": "A", "prompt": "Do a.", "requireConfirmation": True}
    harness = Harness.in_memory(linear_workflow("test.abc", confirmed, "b"))
    extensions = [] if declared is None else [advertise(declared)]
    async with Client(build_server(harness.ports, None), mode=era, extensions=extensions) as client:
        first = await call_through(client, "start_workflow", {"workflowId": "test.abc"})
        output = {"notesMarkdown": NOTES, "artifacts": [CLAIM]}
        answer = await call_through(client, "continue_workflow", {"ackToken": first.ack, "output": output})
    assert (answer["pending"]["stepId"] == "b") == (declared is None)
    actors = [event.actor for event in harness.events(harness.session_of(first))]
    assert {actor.type for actor in actors if actor is not None} == {kind}
