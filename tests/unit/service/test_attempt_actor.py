"""An attempt knows who makes it."""

import pytest

from interlock.engine.request import Request
from interlock.kernel.ids import ack_attempt
from interlock.record.events import Actor
from interlock.service.run.attempts import attempt_on
from interlock.service.run.context import load_run_context
from interlock.testing.harness import Harness, linear_workflow

ACTORS = [None, Actor(type="human", identifier="somebody"), Actor(type="system", identifier="hook")]


@pytest.mark.parametrize("actor", ACTORS)
def test_an_attempt_carries_the_actor_that_makes_it(actor: Actor | None) -> None:
    harness = Harness.in_memory(linear_workflow("team.ship", "a", "b"))
    session = harness.ports.read.load(harness.session_of(harness.start("team.ship")))
    assert session is not None
    (run,), (node,) = session.runs.values(), session.nodes.values()
    run_context = load_run_context(session, run, harness.ports.read.plans)
    attempt = (node, ack_attempt(node.node))
    assert attempt_on(harness.store, run_context, attempt, Request(notes="Done."), actor).actor == actor
