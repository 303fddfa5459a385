"""Checks that steps wait for: pinned when a run begins, begun by the ack that finds one missing (CHECK-2, CHECK-3)."""

from pathlib import Path

from interlock.channels.check import CheckFault, CheckResult
from interlock.engine.answer.model import Answer, HumanInputRequired
from interlock.kernel.errors import ErrorCode, Refusal
from interlock.kernel.ids import NodeId, RunId
from interlock.plan.compiled import CompiledWorkflow
from interlock.record.world import CHECK, EventReceived, Fields, PinnedCheck, check_end
from interlock.service.ports import Ports, WaitingCheck
from interlock.service.run.context import RunContext
from interlock.views.node_position import chain_head
from interlock.views.outside import Received
from interlock.views.session import Node, Session


def pin_checks(ports: Ports, workflow: CompiledWorkflow, workspace: Path | None) -> tuple[PinnedCheck, ...] | Refusal:
    """Return the checks of a workflow as they are defined now, or refuse to start a run that could not run one."""
    found = [ports.checks.pin(name, workspace) for name in workflow.checks]
    faults = [one for one in found if isinstance(one, CheckFault)]
    if faults:
        return Refusal(
            code=ErrorCode.EFFECT_UNCOVERED,
            message=f"`{workflow.workflow_id}` cannot start: {'; '.join(one.why for one in faults)}.",
            suggestion=" ".join(dict.fromkeys(one.fix for one in faults)) + " Tell the user.",
            details={"checks": list(workflow.checks)},
        )
    return tuple(one for one in found if isinstance(one, PinnedCheck))


def waiting_check(run_context: RunContext, node: Node) -> WaitingCheck | None:
    """Return the check that the pending step of a node waits for; None if it waits for none.

    Raises:
        ContentDamagedError: The node's snapshot is missing or damaged.
    """
    pending = run_context.pending(node)
    task = run_context.workflow.steps[pending.step_id].task if pending is not None else None
    if task is None or task.awaits is None or task.awaits.check is None:
        return None
    name, head, run = task.awaits.check, chain_head(run_context.session, node).node, run_context.run
    return WaitingCheck(
        session=run_context.session.session,
        run=run.run,
        label=run_context.session.label(run.run),
        node=head,
        name=name,
        pinned=next((one for one in run.checks if one.name == name), None),
        results=len(results_at(run_context.session, run_context.run.run, head)),
    )


def tip_check(run_context: RunContext) -> WaitingCheck | None:
    """Return the check that the preferred tip of a run waits for; None if it waits for none, or the run has ended.

    Raises:
        ContentDamagedError: See `waiting_check`.
    """
    tip = run_context.run.tip
    if tip is None or run_context.run.ended is not None or not run_context.workflow.checks:
        return None
    return waiting_check(run_context, run_context.session.nodes[tip])


def results_at(session: Session, run: RunId, node: NodeId) -> list[Received]:
    """Return the results that are recorded for a node which waits for a check, oldest first."""
    return [one for one in session.outside.received(run, CHECK) if one.node == node]


def unmet_words(session: Session, result: Received) -> str | None:
    """Say why a step that waits for a check does not continue with its last result; None if it may."""
    fields, is_imported = result.data.fields, result.index < session.imported
    if not fields["passed"]:
        imported = ", imported result" if is_imported else ""
        return f"did not pass ({check_end(fields)}{imported})"
    return "passed according to an imported bundle, which proves nothing here" if is_imported else None


def begin_check(
    ports: Ports, run_context: RunContext, node: Node, outcome: Answer | Refusal | HumanInputRequired
) -> Answer | Refusal | HumanInputRequired:
    """Let the check run that the step of a node waits for, after a call on the node that found no result to take.

    Returns the outcome of the call, or a refusal if the check must not run.
    """
    if not ports.begins_checks or not run_context.workflow.checks or not isinstance(outcome, Answer):
        return outcome
    session = ports.read.load(run_context.session.session)
    if session is None:
        return outcome
    here = run_context.at(session)
    waiting = tip_check(here)
    if waiting is None:
        return outcome
    fault = ports.checks.begin(waiting)
    # The answer to the report before it is recorded and stays as it is: the next call says why nothing runs.
    if fault is None or here.run.tip != node.node:
        return outcome
    return check_refusal(here, waiting, fault)


def check_refusal(run_context: RunContext, waiting: WaitingCheck, fault: CheckFault) -> Refusal:
    """Refuse to run a check."""
    view = run_context.view()
    return Refusal(
        code=ErrorCode.EFFECT_UNCOVERED,
        message=f"Run `{view.label}` ({view.workflow_id}) waits for the check `{waiting.name}`, which was not started:"
        f" {fault.why}.",
        suggestion=fault.fix,
        details={"check": waiting.name, "run": view.to_json()},
    )


def result_record(waiting: WaitingCheck, result: CheckResult, command: str) -> EventReceived:
    """Return the record of a result, which is the next one of its node."""
    assert waiting.pinned is not None, "only a pinned check runs"
    number = waiting.results + 1
    fields: Fields = {
        "check": waiting.name,
        "command": command,
        "digest": result.digest,
        "ended": result.ended,
        "exit": result.exit,
        "output": result.output,
        "passed": result.is_passed,
        "run": number,
        "seconds": result.seconds,
    }
    return EventReceived(
        event=CHECK,
        sent_id=f"{waiting.node}.{number}",
        fields=fields,
        assurance="executed",
        via="check",
    )
