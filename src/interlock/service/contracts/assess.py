"""Assessing a contract: the test flows of an assessment run first, and their outputs are its inputs (GOAL-3)."""

from collections.abc import Mapping

from interlock.define.operations.contracts import AssessmentBinding, FlowReference
from interlock.kernel.budgets.operations import PORT_VALUE_BYTES_MAX
from interlock.kernel.canonical import Json, canonical_bytes, digest_of
from interlock.kernel.errors import ErrorCode, Refusal
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import RunId, SessionId
from interlock.record import payloads as data
from interlock.service.contracts.start import (
    BoundPart,
    NewRun,
    RunOrigin,
    begin_runs,
    flow_of,
    goal_of,
    refuse_no_contract,
)
from interlock.service.contracts.status import ContractReading, PartExecution
from interlock.service.ports import Ports


@frozen
class Assessed:
    """What an assessment began: runs of test flows and of assessment flows; and what it still waits for."""

    begun: tuple[RunId, ...]
    waiting: tuple[str, ...]


def assess_contract(ports: Ports, session_id: SessionId, outcome: str | None, origin: RunOrigin) -> Assessed | Refusal:
    """Begin what the assessment of an outcome needs next; of all outcomes if none is named.

    First its test flows run. When all of them are completed, the assessment itself runs, with their outputs, those of
    the work flows and the verdicts of the sub-contracts. An assessment that is under way or done is not begun again.

    Raises:
        StoreFailureError, SessionBusyError, SessionUnhealthyError, ContentDamagedError: See `service.failures`.
    """
    with ports.hold(session_id) as lock:
        session = lock.session
        if session is None or not session.contracts:
            return refuse_no_contract(session_id)
        reading = ContractReading(ports=ports.read, session=session)
        chosen = [
            (part, at, binding)
            for part in reading.bound
            for at, binding in enumerate(part.contract.assessment_bindings)
            if outcome is None or outcome in _names_of(part, binding)
        ]
        if outcome is not None and not chosen:
            return _refuse_outcome(reading, outcome)
        planned = [_plan(reading, part, at, binding) for part, at, binding in chosen]
        new = [run for runs, _ in planned for run in runs]
        begun = begin_runs(ports, lock, new, reading.definitions, origin)
    return Assessed(begun=begun, waiting=tuple(words for _, waiting in planned for words in waiting))


def _names_of(part: BoundPart, binding: AssessmentBinding) -> set[str]:
    outcomes = part.contract.required_outcomes
    return {name for one in outcomes if one.id == binding.required_outcome_id for name in (one.id, one.name)}


def _refuse_outcome(reading: ContractReading, outcome: str) -> Refusal:
    names = [one.name for part in reading.bound for one in part.contract.required_outcomes]
    return Refusal(
        code=ErrorCode.VALIDATION_ERROR,
        message=f"No assessment judges an outcome {outcome!r}.",
        suggestion=f"Name one of these by its name or id: {', '.join(names) or 'the contract requires none'}.",
        details={"path": "outcome"},
    )


def _plan(
    reading: ContractReading, part: BoundPart, at: int, binding: AssessmentBinding
) -> tuple[list[NewRun], list[str]]:
    """Return the runs to begin for an assessment, and what it waits for."""
    done = reading.of_part(part, "assessment", at)
    flow = flow_of(reading.definitions, _reference_of(binding))
    if done and done[-1].state in {"completed", "skipped"}:
        return [], []
    if done and done[-1].state in {"pending", "in_progress"}:
        return [], [f"the assessment {flow.name!r} (run {done[-1].label})"]
    tests = [reading.of_part(part, "test", at, number) for number in range(len(binding.test_flow_refs))]
    new: list[NewRun] = []
    waiting: list[str] = []
    for number, reference in enumerate(binding.test_flow_refs):
        test, latest = flow_of(reading.definitions, reference), tests[number][-1] if tests[number] else None
        if latest is None or latest.state in {"failed", "cancelled"}:
            bound = _binding(part, "test", at, number)
            context: dict[str, Json] = {**_inputs(reading, part, []), "goal": goal_of(part.contract, test, None)}
            new.append(NewRun(binding=bound, flow=test, context=context))
            waiting.append(f"the test flow {test.name!r}")
        elif latest.state in {"pending", "in_progress"}:
            waiting.append(f"the test flow {test.name!r} (run {latest.label})")
    if waiting:
        return new, waiting
    context = {
        **_inputs(reading, part, [one[-1] for one in tests], binding),
        "goal": goal_of(part.contract, flow, None),
    }
    return [NewRun(binding=_binding(part, "assessment", at), flow=flow, context=context)], []


def _reference_of(binding: AssessmentBinding) -> FlowReference:
    return FlowReference(flow_id=binding.assessment_flow_id, flow_version=binding.assessment_flow_version)


def _binding(part: BoundPart, role: data.BindingRole, position: int, test: int | None = None) -> data.Binding:
    return data.Binding(binding_id=part.bound.binding_id, role=role, position=position, test=test)


def _inputs(
    reading: ContractReading,
    part: BoundPart,
    tests: list[PartExecution],
    binding: AssessmentBinding | None = None,
) -> dict[str, Json]:
    """Return the entry inputs of an assessment, or of a test flow.

    Each output of a work flow is an input of its own name, and then each of a test flow. The same outputs are in
    `work` and `tests` by the name of their flow, and the verdicts of sub-contracts in `sub_contracts`.
    """
    flat: dict[str, Json] = {}
    work: dict[str, Json] = {}
    for at, reference in enumerate(part.contract.work_flows):
        found = reading.of_part(part, "work", at)
        if found and found[-1].state == "completed":
            outputs = _small(found[-1].outputs)
            flat |= outputs
            work[reference.alias or flow_of(reading.definitions, reference).name] = outputs
    tested: dict[str, Json] = {}
    for reference, one in zip(binding.test_flow_refs if binding is not None else (), tests, strict=False):
        outputs = _small(one.outputs)
        flat |= outputs
        tested[reference.alias or flow_of(reading.definitions, reference).name] = outputs
    subs: dict[str, Json] = {}
    for sub in reading.parts_of(part):
        goals = [reading.goal(sub, outcome.id, outcome.name) for outcome in sub.contract.required_outcomes]
        subs[sub.contract.name] = {goal.name: goal.state for goal in goals}
    return {**flat, "work": work, "tests": tested, "sub_contracts": subs}


def _small(outputs: Mapping[str, Json]) -> dict[str, Json]:
    """Return outputs with each large value replaced by its digest, as in a flow."""
    return {
        port: value if len(canonical_bytes(value)) <= PORT_VALUE_BYTES_MAX else {"digest": digest_of(value)}
        for port, value in outputs.items()
    }
