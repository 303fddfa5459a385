"""Between a run and the world outside is a wall: a waiting step takes a recorded event, and nothing else passes it.

The owner of such a step is `plugin`. Nothing that an agent returns completes it or sends anything, a plan cannot give
it work, and what derives, views or verifies a run imports nothing that sends.
"""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.flow import Document, compiled, document, step
from tests.support.lifecycle import events_of, lifecycle_at, run_of
from tests.support.modes import NEVER_STOPS, session_of
from tests.support.outside import AWAIT, STATUS, HeldOutbox, into_file, sending, sent
from tests.support.verify import unsound

from interlock.plan.builtins.packs import PACKS
from interlock.plan.check.validate import validate_plan
from interlock.plan.records import Plan
from interlock.testing.conformance import faults_of
from interlock.testing.harness import Harness

NOTIFY: Document = {"kind": "team.notify", "fields": {"text": {"value": "CI is green"}}}
BODY = document(step("a"), {**AWAIT, "assurance": "observed", "emit": [NOTIFY]}, step("b"), inputs=[STATUS])


def walled(tmp_path: Any) -> tuple[Harness, Any, Any]:
    """Return a run whose pending step waits, its first answer, and the answer with the step that waits."""
    harness = sending(Harness.in_memory(BODY), into_file(tmp_path / "never"))
    first = harness.start("test.flow", goal="Ship", preferences=NEVER_STOPS)
    return harness, first, harness.advance(first)


FORGERIES: dict[str, dict[str, Any]] = {
    "notes": {"output": {"notesMarkdown": "CI is green, so the event is there."}},
    "a key that the step sets": {"context": {"status": "green"}},
    "a claim below the level": {
        "output": {
            "artifacts": [{"kind": "wr.event", "event": "ci.finished", "id": "1", "fields": {"status": "green"}}]
        }
    },
    "the end of its time": {"output": {"artifacts": [{"kind": "wr.event", "event": "wr.expired", "id": "1"}]}},
    "the result of a check": {"output": {"artifacts": [{"kind": "wr.event", "event": "wr.check", "id": "1"}]}},
    "an approval": {"output": {"artifacts": [{"kind": "wr.approval", "approved": True}]}},
    "a confirmation": {
        "output": {"artifacts": [{"kind": "wr.confirmation", "confirmedBy": "Ann", "statement": "CI is green."}]}
    },
    "an intent": {"output": {"artifacts": [{"kind": "team.notify", "text": "CI is green"}]}},
}


@pytest.mark.inv("WORLD-1", "WORLD-3", "WORLD-5")
@pytest.mark.parametrize("forgery", FORGERIES)
def test_nothing_that_an_agent_returns_completes_a_waiting_step_or_sends_what_it_emits(
    tmp_path: Any, forgery: str
) -> None:
    harness, first, waiting = walled(tmp_path)
    harness.call("continue_workflow", {"ackToken": waiting.ack, "run": first["run"]["label"], **FORGERIES[forgery]})
    session = session_of(harness, first)
    assert harness.rehydrate(waiting)["pending"]["stepId"] == "ci"
    assert list(session.outside.intents) == []
    outbox = harness.ports.outbox
    assert isinstance(outbox, HeldOutbox)
    assert outbox.offered == []
    # The event itself passes, also after each of them.
    sent(harness, first, "real")
    assert [one.sends for one in session_of(harness, first).outside.intents.values()] == ["team.notify"]
    assert unsound(harness.store) == []


BROKEN: dict[str, Callable[[dict[str, Any]], object]] = {
    "a plugin that waits for nothing": lambda node: node["task"].pop("awaits"),
    "an agent that waits": lambda node: node.update(owner="agent"),
    "a harness that waits": lambda node: node.update(owner="harness"),
}


@pytest.mark.inv("IR-13", "WORLD-1")
@pytest.mark.parametrize("fault", BROKEN)
def test_a_plan_that_gives_a_plugin_work_or_an_agent_a_wait_is_refused(fault: str) -> None:
    parts = compiled(step("a"), AWAIT, inputs=[STATUS]).plan.to_json()
    nodes: Any = parts["nodes"]
    [waits] = [node for node in nodes if node["nodeId"] == "ci"]
    assert waits["owner"] == "plugin"
    assert validate_plan(Plan.of_json(parts), PACKS) == ()
    BROKEN[fault](waits)
    found = validate_plan(Plan.of_json(parts), PACKS)
    assert [one.path for one in found if "ci" in one.path], found


@pytest.mark.inv("LIFE-5", "WORLD-1")
def test_a_lifecycle_in_which_a_plugin_is_done_without_being_begun_is_no_history(tmp_path: Any) -> None:
    harness, first, _ = walled(tmp_path)
    sent(harness, first)
    events, plan = events_of(lifecycle_at(harness, first)), run_of(harness, first).workflow.plan
    assert faults_of(events, plan) == ()
    kept = [one for one in events if not (one["kind"] == "workflow.node.started" and one.get("node") == "ci")]
    assert "completed_without_start" in [one.code for one in faults_of(kept, plan)]


@pytest.mark.inv("EFF-9", "WORLD-6")
def test_what_decides_views_and_verifies_a_run_imports_nothing_that_sends() -> None:
    code = (
        "import sys, interlock.engine.advance, interlock.views.lifecycle.projection, interlock.service.audit.verify;"
        "sends = ('interlock.channels.http', 'interlock.channels.mcp', 'interlock.channels.command',"
        " 'interlock.channels.file', 'interlock.channels.opening', 'interlock.service.outside.dispatch', 'httpx2');"
        "print(*(one for one in sends if one in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == ""
