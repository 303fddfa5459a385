"""The state of a contract run: its work, its parts and its goals, computed from the log of its session (GOAL-6)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from interlock.define.operations.contracts import Contract, FlowReference
from interlock.define.operations.definitions import Definitions
from interlock.kernel.canonical import Json, parse_object
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import Digest, RunId, SessionId
from interlock.kernel.uuids import Uuid
from interlock.record import payloads as data
from interlock.service.contracts.definitions import read_bound
from interlock.service.contracts.start import BoundPart, bound_parts, flow_of
from interlock.service.ports import ReadPorts
from interlock.service.run.context import load_run_context
from interlock.service.run.lifecycle import read_executions, read_facts
from interlock.store.ports.reader import SessionReader
from interlock.views.executions.derive import latest_by_slot, rank_states
from interlock.views.executions.events import ExecutionEvent, ExecutionState
from interlock.views.executions.goals import GoalState, combine_goals, read_verdict
from interlock.views.executions.model import AssessmentResult, BlockExecution, ContractExecution
from interlock.views.executions.projection import Executions, Recorded
from interlock.views.session import Session

Artifact = Mapping[str, Json]


@frozen
class PartExecution:
    """An execution of a part of a contract: a run of this session, or a claimed one.

    `artifacts` are those of its terminal slots, in the order of the slots. `label` names the run.
    """

    id: Uuid
    binding: data.Binding
    state: ExecutionState
    artifacts: tuple[Artifact, ...]
    label: str
    is_claimed: bool = False

    def to_json(self) -> dict[str, Json]:
        """Return the execution as commands show it."""
        return {"id": self.id, "run": self.label, "state": self.state, "claimed": self.is_claimed}

    @property
    def outputs(self) -> dict[str, Json]:
        """The outputs of its terminal slots by port. Of equal names, the last counts."""
        found: dict[str, Json] = {}
        for one in self.artifacts:
            outputs = one.get("outputs")
            if one.get("kind") == "wr.block_outputs" and isinstance(outputs, dict):
                found |= outputs
        return found


@frozen
class Goal:
    """An outcome that a contract requires, and whether it is met. `verdicts` are those of its assessments."""

    outcome_id: Uuid
    name: str
    state: GoalState
    verdicts: tuple[Json, ...] = ()

    def to_json(self) -> dict[str, Json]:
        """Return the goal as commands show it."""
        return {"outcome_id": self.outcome_id, "name": self.name, "goal": self.state, "verdicts": list(self.verdicts)}


@frozen
class ContractStatus:
    """A bound contract: its execution, its work flows with their executions, its goals, and its parts."""

    contract: Contract
    execution: ContractExecution
    flows: tuple[tuple[str, ExecutionState, tuple[PartExecution, ...]], ...]
    goals: tuple[Goal, ...]
    parts: tuple["ContractStatus", ...]

    def to_json(self) -> dict[str, Json]:
        """Return the status as commands show it."""
        flows: list[Json] = [
            {
                "flow": name,
                "state": state,
                "executions": [
                    {"id": one.id, "run": one.label, "state": one.state, "claimed": one.is_claimed} for one in found
                ],
            }
            for name, state, found in self.flows
        ]
        return {
            "contract_execution": self.execution.to_json(),
            "name": self.contract.name,
            "flows": flows,
            "goals": [goal.to_json() for goal in self.goals],
            "sub_contracts": [part.to_json() for part in self.parts],
        }


def read_status(ports: ReadPorts, session_id: SessionId) -> ContractStatus | None:
    """Return the state of the contract that a session executes; None if it executes none.

    Raises:
        SessionUnhealthyError, SessionBusyError, StoreFailureError, ContentDamagedError: See `service.failures`.
    """
    session = ports.load(session_id)
    return None if session is None or not session.contracts else ContractReading(ports=ports, session=session).status()


@dataclass(kw_only=True)
class ContractReading:
    """A session that executes a contract, as it was read once. What is read is kept."""

    ports: ReadPorts
    session: Session
    _executions: dict[RunId, Executions] = field(default_factory=dict[RunId, Executions])

    @cached_property
    def definitions(self) -> Definitions:
        """The definitions that the contract was started with."""
        return read_bound(self.ports.reader, self.session)

    @cached_property
    def bound(self) -> tuple[BoundPart, ...]:
        """The bound contracts, the one that contains the others first."""
        return bound_parts(self.session, self.definitions)

    @cached_property
    def executions(self) -> tuple[PartExecution, ...]:
        """The executions of all parts of the contract, in the order of the log."""
        found = [(run.index, self._of_run(run.run, run.binding)) for run in self.session.runs.values() if run.binding]
        found += [(claim.index, self._of_claim(claim.data)) for claim in self.session.claims]
        return tuple(one for _, one in sorted(found, key=lambda pair: pair[0]))

    @cached_property
    def _facts(self) -> tuple[Recorded, ...]:
        return read_facts(self.ports.reader, self.session)

    def status(self) -> ContractStatus:
        """Return the state of the whole contract."""
        return self.status_of(self.bound[0])

    def status_of(self, part: BoundPart) -> ContractStatus:
        """Return the state of one bound contract and of its parts."""
        flows = tuple(self._flow(part, at, one) for at, one in enumerate(part.contract.work_flows))
        parts = tuple(self.status_of(one) for one in self.parts_of(part))
        states: tuple[ExecutionState, ...] = (*(one[1] for one in flows), *(one.execution.state for one in parts))
        execution = ContractExecution(
            id=part.bound.binding_id,
            contract_id=part.contract.id,
            contract_version=part.contract.version,
            flow_executions=tuple(one.id for _, _, found in flows for one in found),
            sub_contract_executions=tuple(one.execution.id for one in parts),
            assessment_executions=tuple(self._results(part)),
            state=rank_states(states, states),
            events=(self._created(part),),
        )
        goals = tuple(self.goal(part, outcome.id, outcome.name) for outcome in part.contract.required_outcomes)
        return ContractStatus(contract=part.contract, execution=execution, flows=flows, goals=goals, parts=parts)

    def parts_of(self, part: BoundPart) -> list[BoundPart]:
        """Return the contracts directly inside a bound contract."""
        return [one for one in self.bound if one.bound.parent and one.bound.parent.binding_id == part.bound.binding_id]

    def of_part(self, part: BoundPart, role: str, position: int, test: int | None = None) -> tuple[PartExecution, ...]:
        """Return the executions of one flow of a contract, in the order of the log."""
        wanted = (part.bound.binding_id, role, position, test)
        return tuple(
            one
            for one in self.executions
            if (one.binding.binding_id, one.binding.role, one.binding.position, one.binding.test) == wanted
        )

    def goal(self, part: BoundPart, outcome_id: Uuid, name: str) -> Goal:
        """Return whether an outcome is met: the latest execution of each of its assessments counts."""
        states: list[GoalState] = []
        verdicts: list[Json] = []
        for at, binding in enumerate(part.contract.assessment_bindings):
            if binding.required_outcome_id != outcome_id:
                continue
            found = self.of_part(part, "assessment", at)
            latest = found[-1] if found else None
            if latest is None or latest.state in {"pending", "in_progress"}:
                states.append("not_assessed")
            elif latest.state in {"completed", "skipped"}:
                states.append(read_verdict(latest.artifacts))
                verdicts.append(dict(latest.outputs))
            else:
                states.append("undetermined")
        return Goal(outcome_id=outcome_id, name=name, state=combine_goals(states), verdicts=tuple(verdicts))

    def _flow(
        self, part: BoundPart, position: int, reference: FlowReference
    ) -> tuple[str, ExecutionState, tuple[PartExecution, ...]]:
        """Return the name of a work flow, its state, and its executions. The latest execution counts."""
        found = self.of_part(part, "work", position)
        name = reference.alias or flow_of(self.definitions, reference).name
        return name, found[-1].state if found else "pending", found

    def _results(self, part: BoundPart) -> list[AssessmentResult]:
        return [
            AssessmentResult(
                required_outcome_id=binding.required_outcome_id,
                assessment_flow_execution_id=one.id,
                result=dict(one.outputs) if one.state == "completed" else None,
            )
            for at, binding in enumerate(part.contract.assessment_bindings)
            for one in self.of_part(part, "assessment", at)
        ]

    def _created(self, part: BoundPart) -> ExecutionEvent:
        index = self.session.contracts.index(part.bound) + 1
        fact = self._facts[index]
        return ExecutionEvent(
            id=part.bound.binding_id,
            timestamp=fact.time,
            execution_id=part.bound.binding_id,
            event_type="created",
            executor=fact.executor,
            metadata={"log_event": index},
        )

    def executions_of(self, run_id: RunId) -> Executions:
        """Return the executions of a run of this session, on its preferred branch."""
        if run_id not in self._executions:
            run = self.session.runs[run_id]
            assert run.tip is not None, "a run has a root"
            context = load_run_context(self.session, run, self.ports.plans)
            tip = self.session.nodes[run.tip]
            self._executions[run_id] = read_executions(self.ports.reader, context, tip, self._facts)
        return self._executions[run_id]

    def _of_run(self, run_id: RunId, binding: data.Binding) -> PartExecution:
        executions = self.executions_of(run_id)
        return PartExecution(
            id=executions.flow.id,
            binding=binding,
            state=executions.flow.state,
            artifacts=read_terminal_artifacts(self.ports.reader, executions),
            label=self.session.label(run_id),
        )

    def _of_claim(self, claim: data.ExecutionClaimed) -> PartExecution:
        stored = read_json(self.ports.reader, claim.outputs).get("artifacts")
        return PartExecution(
            id=claim.flow_execution_id,
            binding=claim.binding,
            state=claim.state,
            artifacts=tuple(one for one in stored if isinstance(one, dict)) if isinstance(stored, list) else (),
            label=claim.source_run_id,
            is_claimed=True,
        )


def read_terminal_artifacts(reader: SessionReader, executions: Executions) -> tuple[Artifact, ...]:
    """Return the artifacts of the terminal slots of a flow, in the order of the slots."""
    latest = latest_by_slot(executions.blocks)
    found = [latest[slot] for slot in executions.terminal_slots if slot in latest]
    return tuple(read_json(reader, digest) for block in found for digest in _artifacts_of(block))


def _artifacts_of(block: BlockExecution) -> list[Digest]:
    payloads = [event.payload for event in block.events if event.event_type == "outcome_produced"]
    named = [payload.get("artifacts") for payload in payloads if isinstance(payload, dict)]
    return [Digest(str(one)) for digests in named if isinstance(digests, list) for one in digests]


def read_json(reader: SessionReader, digest: Digest) -> Artifact:
    """Return a stored artifact that is a JSON object; empty if it is something else."""
    return parse_object(reader.artifact(digest)) or {}
