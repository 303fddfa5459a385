"""A corpus of broken definitions: each rule and side gives its code and its path, all in one pass."""

import json

import pytest
import yaml
from tests.support.definitions import (
    BLOCK,
    BUILD,
    CHECK,
    CONTRACT,
    CORPUS,
    FLOW,
    OPERATIONS,
    Broken,
    contract,
    sound_definitions,
    uuid,
)

from interlock.define.diagnostics import Diagnostics
from interlock.define.operations.definitions import Resolver
from interlock.define.operations.files import parse_definition, parse_definition_file, validate_definition
from interlock.kernel.canonical import Json

SOUND = sound_definitions()
ELSEWHERE = {"version_taken", "predicate_not_read"}
"""Codes that one definition alone cannot have."""


def faults_of(value: Json, resolver: Resolver | None = SOUND) -> Diagnostics:
    assert isinstance(value, dict)
    parsed = parse_definition(value)
    return parsed if isinstance(parsed, tuple) else validate_definition(parsed, resolver).faults


@pytest.mark.parametrize("broken", CORPUS, ids=lambda one: one.name)
@pytest.mark.inv("OPS-12")
def test_a_broken_definition_gives_all_its_codes_and_paths_in_one_pass(broken: Broken) -> None:
    found = faults_of(broken.value)
    assert sorted((one.code, one.path) for one in found) == sorted(broken.faults)
    for one in found:
        assert one.message.endswith((".", "?"))
        assert one.fix.endswith((".", "?"))


def test_the_corpus_has_every_code_of_definitions_and_no_name_twice() -> None:
    assert len({one.name for one in CORPUS}) == len(CORPUS) >= 60
    assert {code for one in CORPUS for code, _ in one.faults} >= OPERATIONS - ELSEWHERE


@pytest.mark.parametrize("value", [BLOCK, FLOW, CONTRACT], ids=lambda one: str(one["kind"]))
def test_the_definitions_that_the_corpus_breaks_are_sound(value: Json) -> None:
    assert faults_of(value) == ()


@pytest.mark.inv("GOAL-4", "OPS-12")
def test_a_circular_contract_is_reported_with_the_way_back() -> None:
    part = contract("contract", "outer ring")
    (found,) = validate_definition(part, SOUND).faults
    assert "contract → outer ring → ring → contract" in found.message


@pytest.mark.inv("OPS-10", "OPS-12")
def test_two_slots_with_one_id_are_named_by_both_positions() -> None:
    found = next(one for one in CORPUS if one.name == "two slots with one id")
    (fault,) = faults_of(found.value)
    assert "nodes[2]" in fault.message
    assert "nodes[0]" in fault.message


@pytest.mark.inv("OPS-12")
def test_without_a_resolver_the_report_says_what_was_not_judged() -> None:
    flow, pact = parse_definition(FLOW), parse_definition(CONTRACT)
    assert not isinstance(flow, tuple)
    assert not isinstance(pact, tuple)
    judged = validate_definition(flow)
    assert judged.is_valid
    assert judged.not_judged == (
        "nodes[0].target_id",
        "nodes[1].target_id",
        "edges[0].port_mappings[0].target_port",
        "edges[1].port_mappings[0].source_port",
        "edges[1].port_mappings[0].target_port",
    )
    assert validate_definition(flow, SOUND).not_judged == ()
    assert validate_definition(pact).not_judged == (
        "work_flows[0].flow_id",
        "sub_contracts[0].contract_id",
        "assessment_bindings[0].assessment_flow_id",
        "assessment_bindings[0].test_flow_refs[0].flow_id",
    )


@pytest.mark.inv("OPS-13")
def test_a_file_in_json_and_in_yaml_holds_the_same_definition() -> None:
    in_json = parse_definition_file(json.dumps(FLOW).encode(), "json")
    in_yaml = parse_definition_file(yaml.safe_dump(FLOW).encode(), "yaml")
    assert in_json == in_yaml == parse_definition(FLOW)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b'{"kind": "block", "metadata": ' + b'{"a":' * 70 + b"1" + b"}" * 70 + b"}", "too_deep"),
        (b'{"kind": "block", "inputs": [' + b"[]," * 100_000 + b"[]]}", "too_large"),
        (b'{"kind": "block", "description": "' + b"x" * 1_000_000 + b'"}', "too_large"),
        (b'{"kind": "block", "version": 1' + b"0" * 600 + b"}", "not_json"),
        (b'{"kind": "block", "kind": "flow"}', "duplicate_key"),
        (b'{"kind": "block", "version": 9007199254740993}', "number_not_exact"),
        (b'{"kind": "block", "version": NaN}', "not_json"),
        (b'["block"]', "not_an_object"),
        (b"\xff", "not_utf8"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_a_hostile_file_meets_the_limits_of_workflow_files(data: bytes, code: str) -> None:
    found = parse_definition_file(data, "json")
    assert isinstance(found, tuple)
    assert [one.code for one in found] == [code]


def test_a_value_that_is_nested_too_deep_for_the_library_is_refused_without_an_overflow() -> None:
    deep: Json = 1
    for _ in range(100_000):
        deep = [deep]
    found = parse_definition({**BLOCK, "metadata": {"a": deep}})
    assert isinstance(found, tuple)
    assert [one.code for one in found] == ["too_deep"]


def test_a_chain_of_a_thousand_contracts_is_followed_to_its_end() -> None:
    held = sound_definitions()
    for number in range(1_000):
        held.add(contract(f"link {number}", f"link {number + 1}"))
    held.add(contract("link 1000", "first"))
    (found,) = validate_definition(contract("first", "link 0"), held).faults
    assert found.code == "circular_contract"


def test_the_blocks_of_the_corpus_have_the_ports_that_its_flow_maps() -> None:
    assert [port.name for port in (*BUILD.inputs, *BUILD.outputs)] == ["ticket", "artifact"]
    assert [port.name for port in (*CHECK.inputs, *CHECK.outputs)] == ["subject", "verdict"]
    assert uuid("a") != uuid("b")
