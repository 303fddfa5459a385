"""Blocks, flows and contracts are immutable values that convert to JSON and back; a version keeps its content."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.support.definitions import BUILD, CONTRACT, FLOW, TWO_ENDS, slot, sound_definitions, uuid, without_kind

from interlock.define.operations.base import Entity, InvalidDefinitionError
from interlock.define.operations.blocks import PortDescriptor, WorkBlock
from interlock.define.operations.contracts import Contract
from interlock.define.operations.definitions import Definitions, VersionTakenError, kind_of, next_version
from interlock.define.operations.files import parse_definition, to_file_json, validate_definition
from interlock.define.operations.flows import Condition, Flow
from interlock.kernel.canonical import Json
from interlock.kernel.uuids import UUID_PATTERN, derived_uuid

WORDS = st.text(st.characters(blacklist_categories=["Cs"]), max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.inv("OPS-13")
@given(metadata=st.dictionaries(WORDS, JSON, max_size=3), outcome=JSON, description=WORDS)
def test_a_definition_survives_its_json_form(metadata: dict[str, Json], outcome: Json, description: str) -> None:
    for base in (FLOW, CONTRACT):
        value: dict[str, Json] = {**base, "metadata": metadata, "description": description}
        value |= {"expected_outcome": outcome} if base is FLOW else {}
        first = parse_definition(value)
        assert not isinstance(first, tuple)
        assert parse_definition(to_file_json(first)) == first
        assert type(first).from_json(first.to_json()) == first
        assert first.to_json()["metadata"] == metadata


@pytest.mark.inv("OPS-13")
@pytest.mark.parametrize("definition", [*sound_definitions()], ids=lambda one: one.name)
def test_a_field_of_a_definition_cannot_be_assigned(definition: Entity) -> None:
    with pytest.raises(ValidationError):
        definition.name = "another"


@pytest.mark.inv("OPS-4", "OPS-5")
def test_a_block_has_exactly_the_fields_of_the_model() -> None:
    assert [*WorkBlock.from_json(BUILD.to_json()).to_json()] == [
        *("id", "version", "name", "description", "inputs", "outputs", "execution_hints", "metadata")
    ]
    assert [*PortDescriptor(name="p").to_json()] == ["name", "description", "required", "schema", "metadata"]
    port = PortDescriptor.from_json({"name": "p", "schema": {"type": "integer"}})
    assert port.schema == {"type": "integer"}
    assert PortDescriptor(name="p").schema is None


@pytest.mark.inv("OPS-6", "OPS-7", "OPS-8")
def test_a_flow_has_exactly_the_fields_of_the_model() -> None:
    flow = Flow.from_json(without_kind(FLOW))
    assert [*flow.to_json()] == [
        *("id", "version", "name", "description", "nodes", "edges", "expected_outcome", "metadata")
    ]
    assert [*flow.nodes[0].to_json()] == ["id", "target_id", "target_version", "alias", "metadata"]
    assert [*flow.edges[0].to_json()] == ["source_id", "target_id", "condition", "port_mappings"]
    assert [*Condition(description="d").to_json()] == ["description", "predicate", "metadata"]


@pytest.mark.inv("GOAL-1", "GOAL-3")
def test_a_contract_has_exactly_the_fields_of_the_model() -> None:
    pact = Contract.from_json(without_kind(CONTRACT))
    sides = ["work_flows", "sub_contracts", "required_outcomes", "assessment_bindings"]
    assert [*pact.to_json()] == ["id", "version", "name", "description", *sides, "metadata"]
    assert [*pact.assessment_bindings[0].to_json()] == [
        *("required_outcome_id", "assessment_flow_id", "assessment_flow_version", "test_flow_refs", "metadata")
    ]
    twice = pact.model_copy(update={"assessment_bindings": pact.assessment_bindings * 2})
    assert validate_definition(twice, sound_definitions()).faults == ()


@pytest.mark.inv("OPS-6")
def test_a_flow_may_be_unconnected_and_have_one_block_in_two_slots() -> None:
    flow = parse_definition({**TWO_ENDS, "nodes": [slot("one", "build"), slot("two", "build")], "edges": []})
    assert isinstance(flow, Flow)
    assert validate_definition(flow, sound_definitions()).faults == ()
    assert {slot.target_id for slot in flow.nodes} == {BUILD.id}
    assert len(flow.terminal_slots) == 2


@pytest.mark.inv("OPS-2", "OPS-3")
def test_the_next_version_keeps_the_id_and_leaves_the_version_before_as_it_is() -> None:
    before = BUILD.to_json()
    changed = next_version(BUILD, description="build it again")
    assert (changed.id, changed.version, changed.description) == (BUILD.id, 2, "build it again")
    assert changed.inputs == BUILD.inputs
    assert BUILD.to_json() == before


@pytest.mark.inv("OPS-3")
@pytest.mark.parametrize("changes", [{"id": uuid("other")}, {"version": 7}, {"nme": "x"}, {"name": 1}], ids=str)
def test_a_new_version_cannot_change_its_identity_or_break_its_form(changes: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(changes))):
        next_version(BUILD, **changes)


@pytest.mark.inv("OPS-3")
def test_another_content_under_the_same_version_is_refused_and_the_same_content_is_not() -> None:
    held = Definitions([BUILD])
    held.add(WorkBlock.from_json(BUILD.to_json()))
    changed = BUILD.model_copy(update={"name": "changed"})
    with pytest.raises(VersionTakenError, match="version 2"):
        held.add(changed)
    assert held.find(BUILD.id, 1) == BUILD
    held.add(next_version(BUILD, name="changed"))
    assert [one.version for one in held] == [1, 2]
    assert held.find(BUILD.id, 1) == BUILD


@pytest.mark.inv("OPS-3")
def test_a_definition_of_another_kind_under_the_same_version_is_refused() -> None:
    pact = Contract.from_json({"id": BUILD.id, "version": 1, "name": BUILD.name})
    with pytest.raises(VersionTakenError):
        Definitions([BUILD]).add(pact)
    assert [kind_of(one) for one in (BUILD, pact)] == ["block", "contract"]


def test_a_default_that_is_written_out_does_not_change_the_digest() -> None:
    bare = WorkBlock(id=uuid("b"), version=1, name="b")
    assert bare.digest() == WorkBlock.from_json(bare.to_json()).digest()
    assert bare.digest() != bare.model_copy(update={"name": "c"}).digest()


def test_a_form_that_is_wrong_raises_every_fault() -> None:
    with pytest.raises(InvalidDefinitionError) as caught:
        WorkBlock.from_json({"id": "no", "version": 0, "name": "b"})
    assert [(one.code, one.path) for one in caught.value.faults] == [("wrong_value", "id"), ("wrong_value", "version")]
    with pytest.raises(InvalidDefinitionError, match="number_not_exact"):
        WorkBlock.from_json({"id": uuid("b"), "version": 1, "name": "b", "metadata": {"a": float("nan")}})


@pytest.mark.inv("OPS-15")
@given(st.lists(st.text(st.characters(blacklist_categories=["Cs"])) | st.integers(0, 2**53 - 1), max_size=4))
def test_a_derived_uuid_is_a_version_8_uuid_that_its_parts_always_have(parts: list[str | int]) -> None:

    found = derived_uuid(*parts)
    assert re.fullmatch(UUID_PATTERN, found)
    assert found[14] == "8"
    assert found[19] in "89ab"
    assert derived_uuid(*parts) == found
    assert derived_uuid(*parts, 1) != found
