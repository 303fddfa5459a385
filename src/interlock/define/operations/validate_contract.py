"""Checks contracts: references, assessments, and that no contract includes itself (GOAL-2, GOAL-4)."""

from collections.abc import Iterator

from interlock.define.diagnostics import Diagnostic, fault, warning
from interlock.define.operations.contracts import Contract
from interlock.define.operations.definitions import Resolver
from interlock.define.operations.flows import Flow
from interlock.define.operations.report import Reference, Report, resolve
from interlock.define.operations.validate_flow import check_terminal_of_assessment
from interlock.kernel.uuids import Uuid


def validate_contract(contract: Contract, resolver: Resolver | None = None) -> Report:
    """Check a contract: its outcomes, its assessments, what it refers to, and that it does not include itself.

    Without a resolver, references are reported as not judged, and only an inclusion of itself by itself is found.
    """
    faults = [*_find_repeated_outcomes(contract), *_check_outcomes(contract), *_find_cycles(contract, resolver)]
    references = [*_list_references(contract)]
    if resolver is None:
        return Report(faults=tuple(faults), not_judged=tuple(one.path for one in references))
    for one in references:
        found = resolve(one, resolver)
        if isinstance(found, Diagnostic):
            faults.append(found)
        elif isinstance(found, Flow) and one.path.endswith(".assessment_flow_id"):
            terminal = check_terminal_of_assessment(found, one.path.removesuffix(".assessment_flow_id"))
            faults += [terminal] if terminal is not None else []
    return Report(faults=tuple(faults))


def _list_references(contract: Contract) -> Iterator[Reference]:
    for at, flow in enumerate(contract.work_flows):
        yield Reference(
            path=f"work_flows[{at}].flow_id", target_id=flow.flow_id, version=flow.flow_version, kind="flow"
        )
    for at, part in enumerate(contract.sub_contracts):
        path = f"sub_contracts[{at}].contract_id"
        yield Reference(path=path, target_id=part.contract_id, version=part.contract_version, kind="contract")
    for at, binding in enumerate(contract.assessment_bindings):
        path = f"assessment_bindings[{at}]"
        yield Reference(
            path=f"{path}.assessment_flow_id",
            target_id=binding.assessment_flow_id,
            version=binding.assessment_flow_version,
            kind="flow",
        )
        for number, test in enumerate(binding.test_flow_refs):
            inner = f"{path}.test_flow_refs[{number}].flow_id"
            yield Reference(path=inner, target_id=test.flow_id, version=test.flow_version, kind="flow")


def _find_repeated_outcomes(contract: Contract) -> Iterator[Diagnostic]:
    first_at: dict[Uuid, int] = {}
    for at, outcome in enumerate(contract.required_outcomes):
        first = first_at.setdefault(outcome.id, at)
        if first != at:
            message = f"required_outcomes[{at}] has the id of required_outcomes[{first}], {outcome.id}."
            yield fault(f"required_outcomes[{at}].id", "duplicate_id", message, "Give one of the two another id.")


def _check_outcomes(contract: Contract) -> Iterator[Diagnostic]:
    """Report assessments of unknown outcomes, and outcomes that no assessment judges."""
    known = {outcome.id: outcome.name for outcome in contract.required_outcomes}
    for at, binding in enumerate(contract.assessment_bindings):
        if binding.required_outcome_id not in known:
            names = ", ".join(f"{one} ({name})" for one, name in known.items()) or "none"
            message = f"The contract requires no outcome {binding.required_outcome_id}."
            fix = f"Name one of its `required_outcomes`: {names}."
            yield fault(f"assessment_bindings[{at}].required_outcome_id", "unknown_outcome", message, fix)
    assessed = {binding.required_outcome_id for binding in contract.assessment_bindings}
    for at, outcome in enumerate(contract.required_outcomes):
        if outcome.id not in assessed:
            message = f"Nothing assesses the outcome {outcome.name!r}, so it is never met."
            yield warning(f"required_outcomes[{at}]", "unassessed_outcome", message, "Add an assessment binding.")


def _find_cycles(contract: Contract, resolver: Resolver | None) -> Iterator[Diagnostic]:
    """Report each sub-contract by which a contract includes itself, in whichever version, with the way back to it."""
    for at, part in enumerate(contract.sub_contracts):
        way = _find_way_back(contract, part.contract_id, part.contract_version, resolver)
        if way is not None:
            names = " → ".join([contract.name, *way, contract.name])
            message = f"The contract includes itself: {names}."
            yield fault(
                f"sub_contracts[{at}]", "circular_contract", message, "Remove the sub-contract that leads back."
            )


def _find_way_back(contract: Contract, first: Uuid, version: int, resolver: Resolver | None) -> list[str] | None:
    """Return the names of the contracts from a sub-contract back to the contract; None if no way leads back.

    It needs no recursion, so that a long chain of contracts cannot overflow the stack.
    """
    waiting: list[tuple[Uuid, int, tuple[str, ...]]] = [(first, version, ())]
    seen: set[tuple[Uuid, int]] = set()
    while waiting:
        here, number, way = waiting.pop()
        if here == contract.id:
            return list(way)
        if (here, number) in seen or resolver is None:
            continue
        seen.add((here, number))
        found = resolver.find(here, number)
        if isinstance(found, Contract):
            waiting += [(one.contract_id, one.contract_version, (*way, found.name)) for one in found.sub_contracts]
    return None
