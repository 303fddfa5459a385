"""Keeps producer and checker apart: who reported a step cannot report the step that verifies it (IR-16).

An actor is a claim: the name that a client states. An actor without a name counts as the same as every other.
"""

from collections.abc import Iterator

from interlock.engine.judge.attempt import Attempt
from interlock.engine.judge.violations import Violation
from interlock.plan.records import PlanNode
from interlock.record.events import Actor
from interlock.record.outcome import WorkflowStepPointer


def check_separation(attempt: Attempt, node: PlanNode) -> Iterator[Violation]:
    """Yield a violation for each verified step that may have been reported by the actor of this attempt."""
    assert node.task is not None, "a pending step is a task"
    if node.task.by != "another":
        return
    for verified, reporter in attempt.reporters.items():
        if not _are_apart(reporter, attempt.actor):
            yield Violation(
                detail="needs_user_environment_action",
                pointer=WorkflowStepPointer(step_id=node.node_id),
                message=f"The step {verified!r} was reported by {_named(reporter)}, so {_named(attempt.actor)} cannot"
                " verify it: another client must report this step.",
                fix="Ask the user to continue this run in another client, which finds it with `resume_session`."
                " Do not repeat the call in this client.",
                details={"verifies": verified},
            )


def _are_apart(one: Actor | None, other: Actor | None) -> bool:
    return one is not None and other is not None and (one.type, one.identifier) != (other.type, other.identifier)


def _named(actor: Actor | None) -> str:
    return f"{actor.identifier!r}" if actor is not None else "a client without a name"
