"""Claiming an execution: a run of this or another session counts for a contract, and is not changed (GOAL-9)."""

from typing import cast

from interlock.kernel.canonical import Json, canonical_bytes, digest_of_bytes
from interlock.kernel.errors import ErrorCode, Refusal
from interlock.kernel.ids import RunId, SessionId
from interlock.record import payloads as data
from interlock.record.append_plan import AppendPlan, EventDraft
from interlock.record.events import Actor
from interlock.service.contracts.start import refuse_no_contract
from interlock.service.contracts.status import ContractReading, PartExecution, read_terminal_artifacts
from interlock.service.ports import AppendPorts
from interlock.service.run.context import load_run_context
from interlock.service.run.lifecycle import read_executions
from interlock.store.ports.maintenance import Collector
from interlock.views.executions.events import TERMINAL
from interlock.views.executions.model import FlowExecution
from interlock.views.session import Session


def claim_run(
    ports: AppendPorts, collector: Collector, source: tuple[SessionId, RunId], session_id: SessionId, actor: Actor
) -> data.ExecutionClaimed | Refusal:
    """Let a run that has ended count for a contract, wherever the contract has its flow and no completed execution.

    No collection runs meanwhile: one that marked before the claim and swept after it would delete the claimed run.

    Raises:
        UpkeepBusyError: A collection runs; nothing was recorded.
        StoreFailureError, SessionBusyError, SessionUnhealthyError, ContentDamagedError: See `service.failures`.
    """
    with collector.upkeep_lock():
        claimed_session = ports.read.load(source[0])
        if claimed_session is None:
            return _refuse(f"The session {source[0]} has been deleted.")
        return _claim(ports, (claimed_session, source[1]), session_id, actor)


def _claim(
    ports: AppendPorts, source: tuple[Session, RunId], session_id: SessionId, actor: Actor
) -> data.ExecutionClaimed | Refusal:
    claimed_session, run_id = source
    run = claimed_session.runs[run_id]
    assert run.tip is not None, "a run has a root"
    context = load_run_context(claimed_session, run, ports.read.plans)
    executions = read_executions(ports.read.reader, context, claimed_session.nodes[run.tip])
    flow = executions.flow
    if flow.state not in TERMINAL:
        return _refuse(f"The run {claimed_session.label(run_id)} has not ended: it is {flow.state.replace('_', ' ')}.")
    artifacts: list[Json] = [dict(one) for one in read_terminal_artifacts(ports.read.reader, executions)]
    stored = canonical_bytes({"artifacts": artifacts})
    with ports.hold(session_id) as lock:
        session = lock.session
        if session is None or not session.contracts:
            return refuse_no_contract(session_id)
        binding = _find_part(ContractReading(ports=ports.read, session=session), flow)
        if binding is None:
            return _refuse(f"The contract has no flow {flow.flow_id} version {flow.flow_version} that is still open.")
        claim = data.ExecutionClaimed(
            binding=binding,
            source_session_id=claimed_session.session,
            source_run_id=run_id,
            source_node_id=run.tip,
            flow_id=flow.flow_id,
            flow_version=flow.flow_version,
            flow_execution_id=flow.id,
            state=cast("data.ClaimedState", flow.state),
            outputs=digest_of_bytes(stored),
        )
        plan = AppendPlan(session=session_id, drafts=(EventDraft(data=claim),), artifacts=((claim.outputs, stored),))
        ports.append(lock, plan, actor)
    return claim


def _find_part(reading: ContractReading, flow: FlowExecution) -> data.Binding | None:
    """Return the first part of a contract that has this flow and no completed execution; None if there is none."""
    wanted = (flow.flow_id, flow.flow_version)
    for part in reading.bound:
        for at, one in enumerate(part.contract.work_flows):
            found = reading.of_part(part, "work", at)
            if (one.flow_id, one.flow_version) == wanted and not _is_done(found):
                return data.Binding(binding_id=part.bound.binding_id, role="work", position=at)
        for at, binding in enumerate(part.contract.assessment_bindings):
            for number, one in enumerate(binding.test_flow_refs):
                found = reading.of_part(part, "test", at, number)
                if (one.flow_id, one.flow_version) == wanted and not _is_done(found):
                    return data.Binding(binding_id=part.bound.binding_id, role="test", position=at, test=number)
    return None


def _is_done(found: tuple[PartExecution, ...]) -> bool:
    return bool(found) and found[-1].state in {"completed", "skipped"}


def _refuse(message: str) -> Refusal:
    return Refusal(
        code=ErrorCode.VALIDATION_ERROR,
        message=message,
        suggestion="`interlock contract status` shows the flows of a contract and their executions.",
        details={"path": "run"},
    )
