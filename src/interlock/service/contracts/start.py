"""Starting a contract: its definitions are bound in a session, and its work flows become runs (GOAL-8)."""

from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from interlock.define.operations.contracts import Contract, FlowReference
from interlock.define.operations.definitions import Definitions, Resolver
from interlock.define.operations.flows import Flow
from interlock.engine.request import Request
from interlock.engine.start import Start, plan_start
from interlock.kernel.canonical import Json
from interlock.kernel.errors import ErrorCode, Refusal, RetryKind
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import RunId, SessionId
from interlock.kernel.uuids import Uuid, derived_uuid
from interlock.plan.compile.compiler import Compiled
from interlock.plan.compiled import parse_compiled, pinned_bytes
from interlock.plan.flows.lowering import compile_flow
from interlock.record import payloads as data
from interlock.record.append_plan import AppendPlan, EventDraft
from interlock.record.events import Actor
from interlock.service.clock import mint_run, mint_session
from interlock.service.contracts.definitions import Gathered, all_sources, digest_in_store, gather, read_bound, to_bytes
from interlock.service.failures import fix_of_cause, refusal_of
from interlock.service.outside.approvals import notifies
from interlock.service.ports import Ports
from interlock.service.run.observations import observed_of
from interlock.service.unanswered import after_append
from interlock.store.ports.definitions import DefinitionArchive
from interlock.store.ports.errors import DefinitionTakenError, StoreFailureError
from interlock.store.ports.writer import SessionLock
from interlock.views.session import Session


@frozen
class ContractCommand:
    """The start of a contract: which one, with the definitions that the caller has, by whom and in which workspace."""

    contract_id: Uuid
    version: int | None
    definitions: Definitions
    goal: str | None
    actor: Actor
    workspace: Path | None = None


@frozen
class BoundPart:
    """A contract that is bound in a session: its definition and its binding."""

    contract: Contract
    bound: data.ContractBound


@frozen
class NewRun:
    """A run to begin for a part of a contract."""

    binding: data.Binding
    flow: Flow
    context: Mapping[str, Json]


@frozen
class RunOrigin:
    """Who begins runs, and the state of the workspace if it is recorded for each run (OBS-5)."""

    actor: Actor
    observed: tuple[data.ObservationRecorded, ...] = ()


@frozen
class ContractStarted:
    """A contract that was started: its session and the runs that began."""

    session: SessionId
    contract: Contract
    runs: tuple[RunId, ...]


def start_contract(ports: Ports, archive: DefinitionArchive, command: ContractCommand) -> ContractStarted | Refusal:
    """Publish the definitions of a contract, bind them in a new session, and begin a run for each work flow.

    The state of the workspace is recorded for the session, and the user's preferences are those of its runs, as when
    an agent starts a workflow.

    Raises:
        StoreFailureError, SessionBusyError, SessionUnhealthyError, ContentDamagedError: See `service.failures`.
    """
    gathered = find_contract(archive, command)
    if isinstance(gathered, Refusal):
        return gathered
    refusal = publish(archive, gathered)
    if refusal is not None:
        return refusal
    session_id = mint_session(ports.clock)
    try:
        with ports.hold(session_id) as lock:
            observed = observe_workspace(ports, command.workspace)
            session = ports.append(lock, _plan_binding(session_id, gathered, observed), command.actor)
            with after_append():
                new = [*_missing_work(session, gathered.definitions, command.goal)]
                runs = begin_runs(ports, lock, new, gathered.definitions, RunOrigin(actor=command.actor))
    except StoreFailureError as failure:
        if not failure.may_be_recorded:
            raise
        return _refuse_interrupted(session_id, failure)
    return ContractStarted(session=session_id, contract=gathered.contract, runs=runs)


def _refuse_interrupted(session: SessionId, failure: StoreFailureError) -> Refusal:
    """Refuse a start that the disk interrupted after its first append began: a repeat would make a second session."""
    cause = refusal_of(failure)
    return Refusal(
        code=cause.code,
        message=f"The disk failed ({failure.found}) while the contract began in the session {session}, which may be"
        " recorded, with some of its runs or all.",
        suggestion=f"`interlock contract resume {session}` begins the runs that are missing. If it finds no such"
        f" session, start the contract again. {fix_of_cause(failure)}",
        details={**cause.details, "sessionId": session},
        retry=RetryKind.NOT_RETRYABLE,
    )


def resume_contract(
    ports: Ports, session_id: SessionId, goal: str | None, origin: RunOrigin
) -> ContractStarted | Refusal:
    """Begin the runs of work flows that have none yet, because the start was interrupted.

    Raises:
        StoreFailureError, SessionBusyError, SessionUnhealthyError, ContentDamagedError: See `service.failures`.
    """
    with ports.hold(session_id) as lock:
        session = lock.session
        if session is None or not session.contracts:
            return refuse_no_contract(session_id)
        definitions = read_bound(ports.read.reader, session)
        runs = begin_runs(ports, lock, [*_missing_work(session, definitions, goal)], definitions, origin)
    return ContractStarted(session=session_id, contract=bound_parts(session, definitions)[0].contract, runs=runs)


def find_shown_contract(archive: DefinitionArchive, command: ContractCommand) -> Gathered | Refusal:
    """Find a contract as `find_contract` does. A version that is named is the published one, if it was published."""
    return find_contract(archive, command, prefers_published=command.version is not None)


def find_contract(
    archive: DefinitionArchive, command: ContractCommand, *, prefers_published: bool = False
) -> Gathered | Refusal:
    """Find a contract and everything that it refers to. Without a version, the highest one counts."""
    resolver: Resolver = all_sources(command.definitions, archive, prefers_published=prefers_published)
    version = _highest_version(archive, command) if command.version is None else command.version
    found = resolver.find(command.contract_id, version)
    if not isinstance(found, Contract):
        named = f"{command.contract_id}{f' version {command.version}' if command.version is not None else ''}"
        return Refusal(
            code=ErrorCode.VALIDATION_ERROR,
            message=f"There is no contract {named}.",
            suggestion="`interlock contract list` lists the contracts of the project and the published ones.",
            details={"path": "contract"},
        )
    gathered = gather(found, resolver)
    if isinstance(gathered, Gathered):
        return gathered
    lines = "\n".join(f"- {one.render_line()}" for one in gathered if one.severity == "error")
    return Refusal(
        code=ErrorCode.VALIDATION_ERROR,
        message=f"The contract {found.name!r} cannot be started:\n{lines}",
        suggestion="Correct each line, and check the files with `interlock contract validate`.",
        details={"diagnostics": [one.to_json() for one in gathered]},
    )


def publish(archive: DefinitionArchive, gathered: Gathered) -> Refusal | None:
    """Publish a contract and everything that it refers to; return why that is refused, if it is (OPS-3)."""
    try:
        archive.publish(gathered.contents())
    except DefinitionTakenError as error:
        key = (gathered.contract.id, gathered.contract.version)
        command = f"`interlock contract show {key[0]}@{key[1]} --json`"
        shows = f" {command} shows what was published." if key in archive.published() else ""
        return Refusal(
            code=ErrorCode.VALIDATION_ERROR,
            message=f"Version {error.version} of {error.definition_id} was published with other content.",
            suggestion=f"Give the changed definition version {error.version + 1}, and name that version where it is"
            f" referred to.{shows}",
            details={"path": "version", "id": error.definition_id, "version": error.version},
        )
    return None


def refuse_no_contract(session: SessionId) -> Refusal:
    """Refuse a command about a contract for a session without one."""
    return Refusal(
        code=ErrorCode.SESSION_NOT_FOUND,
        message=f"There is no contract in the session {session}.",
        suggestion="`interlock contract list` lists the sessions of contracts.",
        details={"session": session},
    )


def bound_parts(session: Session, definitions: Definitions) -> tuple[BoundPart, ...]:
    """Return the contracts that are bound in a session, the one that contains the others first."""
    parts: list[BoundPart] = []
    for bound in session.contracts:
        found = definitions.find(bound.contract_id, bound.contract_version)
        assert isinstance(found, Contract), "a contract run holds its own definitions"
        parts.append(BoundPart(contract=found, bound=bound))
    return tuple(parts)


def flow_of(definitions: Definitions, reference: FlowReference) -> Flow:
    """Return the flow of a reference of a bound contract."""
    found = definitions.find(reference.flow_id, reference.flow_version)
    assert isinstance(found, Flow), "as checked before it was bound"
    return found


def observe_workspace(ports: Ports, workspace: Path | None) -> tuple[data.ObservationRecorded, ...]:
    """Return the state of a workspace, as a start records it."""
    return observed_of(ports.read.anchors(workspace), keeps_repo_root=ports.keeps_repo_root)


def begin_runs(
    ports: Ports, lock: SessionLock, runs: list[NewRun], definitions: Definitions, origin: RunOrigin
) -> tuple[RunId, ...]:
    """Begin runs in a session that is held.

    Raises:
        StoreFailureError: The disk failed. With `may_be_recorded`, some may have begun, and a repeat begins the rest.
    """
    begun: list[RunId] = []
    for one in runs:
        compiled = compile_flow(one.flow, definitions)
        assert isinstance(compiled, Compiled), "as checked before it was bound"
        workflow_hash, pinned = pinned_bytes(compiled.workflow)
        assert lock.session is not None, "its contract is bound"
        start = Start(
            proofs=ports.proofs,
            notifies=notifies(ports, compiled.workflow, "project"),
            session=lock.session.session,
            is_new_session=False,
            run=mint_run(ports.clock),
            workflow=compiled.workflow,
            workflow_hash=workflow_hash,
            workflow_bytes=pinned,
            source_kind="project",
            source_ref=f"{one.flow.id}@{one.flow.version}",
            request=Request(context=one.context),
            baseline=lock.session.baseline or ports.baseline,
            observed=origin.observed,
            config_hash=ports.config_hash,
            binding=one.binding,
        )
        plan = plan_start(start)
        assert isinstance(plan, AppendPlan), "the conditions of a flow are decided also if a value is missing"
        ports.read.plans.keep_start(plan, partial(parse_compiled, pinned))
        with after_append() if begun else nullcontext():
            ports.append(lock, plan, origin.actor)
        begun.append(start.run)
    return tuple(begun)


def goal_of(contract: Contract, flow: Flow, goal: str | None) -> str:
    """Return the goal of a run: the contract comes first, so that lists of runs name it."""
    return f"{contract.name}: {goal or flow.name}"


def _highest_version(archive: DefinitionArchive, command: ContractCommand) -> int:
    keys = [(one.id, one.version) for one in command.definitions]
    keys += [*archive.published(), *archive.damaged_definitions()]
    return max((version for definition_id, version in keys if definition_id == command.contract_id), default=0)


def _plan_binding(session: SessionId, gathered: Gathered, observed: tuple[data.ObservationRecorded, ...]) -> AppendPlan:
    drafts = [EventDraft(data=data.SessionCreated())]
    drafts += [EventDraft(data=one) for one in _iter_bindings(session, gathered)]
    drafts += [EventDraft(data=one) for one in observed]
    contents = {digest_in_store(one): to_bytes(one) for one in gathered.definitions}
    return AppendPlan(session=session, drafts=tuple(drafts), artifacts=tuple(sorted(contents.items())))


def _iter_bindings(session: SessionId, gathered: Gathered) -> Iterator[data.ContractBound]:
    """Yield the binding of a contract and of all its parts, each after the one that contains it."""
    all_digests = tuple(sorted({digest_in_store(one) for one in gathered.definitions}))
    waiting: list[tuple[Contract, str, dict[str, Any]]] = [
        (gathered.contract, "", {"definitions": all_digests}),
    ]
    for contract, path, more in waiting:
        binding_id = derived_uuid("contract_execution", session, path)
        yield data.ContractBound(
            binding_id=binding_id,
            contract_id=contract.id,
            contract_version=contract.version,
            definition=digest_in_store(contract),
            **more,
        )
        for position, part in enumerate(contract.sub_contracts):
            found = gathered.definitions.find(part.contract_id, part.contract_version)
            assert isinstance(found, Contract), "as checked before"
            parent = data.ParentBinding(binding_id=binding_id, position=position)
            waiting.append((found, f"{path}/{position}", {"parent": parent}))


def _missing_work(session: Session, definitions: Definitions, goal: str | None) -> Iterator[NewRun]:
    """Yield a run for each work flow that has neither a run nor a claim."""
    bindings = [run.binding for run in session.runs.values()] + [claim.data.binding for claim in session.claims]
    have = {(one.binding_id, one.position) for one in bindings if one is not None and one.role == "work"}
    for part in bound_parts(session, definitions):
        for position, reference in enumerate(part.contract.work_flows):
            if (part.bound.binding_id, position) in have:
                continue
            flow = flow_of(definitions, reference)
            binding = data.Binding(binding_id=part.bound.binding_id, role="work", position=position)
            yield NewRun(binding=binding, flow=flow, context={"goal": goal_of(part.contract, flow, goal)})
