"""Contracts: commitments with a work side, flows and sub-contracts, and an outcome side (GOAL-1 to GOAL-3)."""

from typing import Annotated

from pydantic import Field

from interlock.define.operations.base import Entity, Metadata, Name, Text, UuidField, Value, Version
from interlock.kernel.budgets.operations import CONTRACT_PARTS_MAX
from interlock.kernel.canonical import Json


class FlowReference(Value):
    """One version of one flow."""

    flow_id: UuidField
    flow_version: Version
    alias: Name | None = None
    metadata: Metadata = Field(default_factory=dict[str, Json])


class ContractReference(Value):
    """One version of one contract, as a part of another."""

    contract_id: UuidField
    contract_version: Version
    alias: Name | None = None
    metadata: Metadata = Field(default_factory=dict[str, Json])


class RequiredOutcome(Value):
    """What a contract must achieve, in words. Assessments judge it; nothing else reads it."""

    id: UuidField
    name: Name
    description: Text = ""
    metadata: Metadata = Field(default_factory=dict[str, Json])


_Flows = Annotated[tuple[FlowReference, ...], Field(max_length=CONTRACT_PARTS_MAX, strict=False)]


class AssessmentBinding(Value):
    """The assessment of an outcome: a flow with one terminal slot, whose output is the verdict.

    The outputs of the test flows are inputs of the assessment flow.
    """

    required_outcome_id: UuidField
    assessment_flow_id: UuidField
    assessment_flow_version: Version
    test_flow_refs: _Flows = ()
    metadata: Metadata = Field(default_factory=dict[str, Json])


class Contract(Entity):
    """A commitment: the work that is to be done, and the outcomes that it must have."""

    work_flows: _Flows = ()
    sub_contracts: Annotated[tuple[ContractReference, ...], Field(max_length=CONTRACT_PARTS_MAX, strict=False)] = ()
    required_outcomes: Annotated[tuple[RequiredOutcome, ...], Field(max_length=CONTRACT_PARTS_MAX, strict=False)] = ()
    assessment_bindings: Annotated[
        tuple[AssessmentBinding, ...], Field(max_length=CONTRACT_PARTS_MAX, strict=False)
    ] = ()
    metadata: Metadata = Field(default_factory=dict[str, Json])
