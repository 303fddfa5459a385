"""A small set of sound definitions, and a corpus of broken ones for each rule and side, with their codes and paths."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from interlock.define.operations.blocks import WorkBlock
from interlock.define.operations.contracts import Contract
from interlock.define.operations.definitions import Definition, Definitions
from interlock.define.operations.flows import Flow
from interlock.kernel.canonical import Json
from interlock.kernel.uuids import Uuid, derived_uuid

OPERATIONS = {
    "unknown_definition",
    "unknown_outcome",
    "assessment_terminal",
    "invalid_port_mapping",
    "circular_contract",
    "version_taken",
    "predicate_not_read",
}
"""The diagnostic codes that only definitions have."""


def uuid(name: str) -> Uuid:
    return derived_uuid("test", name)


def block(name: str, inputs: tuple[str, ...] = (), outputs: tuple[str, ...] = ("result",)) -> WorkBlock:
    fields: dict[str, Json] = {
        "id": uuid(name),
        "version": 1,
        "name": name,
        "inputs": [{"name": port} for port in inputs],
        "outputs": [{"name": port} for port in outputs],
    }
    return WorkBlock.from_json(fields)


def slot(name: str, of: str) -> dict[str, Json]:
    return {"id": uuid(f"slot {name}"), "alias": name, "target_id": uuid(of), "target_version": 1}


def edge(source: str | None, target: str, *mappings: tuple[str, str]) -> dict[str, Json]:
    return {
        "source_id": None if source is None else uuid(f"slot {source}"),
        "target_id": uuid(f"slot {target}"),
        "port_mappings": [{"source_port": one, "target_port": other} for one, other in mappings],
    }


BUILD = block("build", ("ticket",), ("artifact",))
CHECK = block("check", ("subject",), ("verdict",))
FLOW: dict[str, Json] = {
    "kind": "flow",
    "id": uuid("flow"),
    "version": 1,
    "name": "flow",
    "nodes": [slot("one", "build"), slot("two", "check")],
    "edges": [edge(None, "one", ("task", "ticket")), edge("one", "two", ("artifact", "subject"))],
}
TWO_ENDS: dict[str, Json] = {
    **FLOW,
    "id": uuid("two ends"),
    "name": "two ends",
    "edges": [edge(None, "one"), edge(None, "two")],
}
NO_END: dict[str, Json] = {
    **FLOW,
    "id": uuid("no end"),
    "name": "no end",
    "edges": [edge(None, "one"), edge("one", "two"), edge("two", "one")],
}
OUTCOME: dict[str, Json] = {"id": uuid("outcome"), "name": "it is done"}
BINDING: dict[str, Json] = {
    "required_outcome_id": uuid("outcome"),
    "assessment_flow_id": uuid("flow"),
    "assessment_flow_version": 1,
    "test_flow_refs": [{"flow_id": uuid("two ends"), "flow_version": 1}],
}
CONTRACT: dict[str, Json] = {
    "kind": "contract",
    "id": uuid("contract"),
    "version": 1,
    "name": "contract",
    "work_flows": [{"flow_id": uuid("flow"), "flow_version": 1}],
    "sub_contracts": [{"contract_id": uuid("part"), "contract_version": 1}],
    "required_outcomes": [OUTCOME],
    "assessment_bindings": [BINDING],
}
BLOCK: dict[str, Json] = {
    "kind": "block",
    "id": uuid("block"),
    "version": 1,
    "name": "block",
    "inputs": [{"name": "ticket"}],
    "outputs": [{"name": "artifact"}],
    "execution_hints": ["shell"],
}


def without_kind(value: Mapping[str, Json]) -> dict[str, Json]:
    return {key: member for key, member in value.items() if key != "kind"}


def contract(name: str, *parts: str) -> Contract:
    """Return a contract of sub-contracts only."""
    subs: list[Json] = [{"contract_id": uuid(part), "contract_version": 1} for part in parts]
    return Contract.from_json({"id": uuid(name), "version": 1, "name": name, "sub_contracts": subs})


def sound_definitions() -> Definitions:
    """Return the definitions that `FLOW` and `CONTRACT` refer to, with two contracts that include each other."""
    held: list[Definition] = [
        BUILD,
        CHECK,
        Flow.from_json(without_kind(FLOW)),
        Flow.from_json(without_kind(TWO_ENDS)),
        Flow.from_json(without_kind(NO_END)),
        contract("part"),
        contract("ring", "contract"),
        contract("outer ring", "ring"),
    ]
    return Definitions(held)


class Broken(NamedTuple):
    """A definition with faults: what is wrong with it, its JSON, and the code and path of each fault."""

    name: str
    value: Json
    faults: tuple[tuple[str, str], ...]


def _with(base: dict[str, Json], name: str, changes: dict[str, Json], *faults: tuple[str, str]) -> Broken:
    return Broken(name, {**base, **changes}, faults)


def _lacks(base: dict[str, Json], key: str) -> Broken:
    value = {name: member for name, member in base.items() if name != key}
    return Broken(f"a {base['kind']} without {key}", value, (("missing_key", key),))


def broken_blocks() -> Iterator[Broken]:
    port: dict[str, Json] = {"name": "p"}
    for key in ("kind", "id", "version", "name"):
        yield _lacks(BLOCK, key)
    yield _with(BLOCK, "an unknown kind", {"kind": "blok"}, ("wrong_value", "kind"))
    yield _with(BLOCK, "a kind that is no text", {"kind": 1}, ("wrong_value", "kind"))
    yield _with(BLOCK, "an id that is no UUID", {"id": "block"}, ("wrong_value", "id"))
    yield _with(BLOCK, "an id in capitals", {"id": str(BLOCK["id"]).upper()}, ("wrong_value", "id"))
    yield _with(BLOCK, "version 0", {"version": 0}, ("wrong_value", "version"))
    yield _with(BLOCK, "a version above the limit", {"version": 1_000_001}, ("wrong_value", "version"))
    yield _with(BLOCK, "a version that is a text", {"version": "1"}, ("wrong_type", "version"))
    yield _with(BLOCK, "a version that is true", {"version": True}, ("wrong_type", "version"))
    yield _with(BLOCK, "an empty name", {"name": ""}, ("empty", "name"))
    yield _with(BLOCK, "a long name", {"name": "n" * 201}, ("too_long", "name"))
    yield _with(BLOCK, "a long description", {"description": "d" * 32_769}, ("too_long", "description"))
    yield _with(BLOCK, "an unknown key", {"executor": "Ann"}, ("unknown_key", "executor"))
    yield _with(BLOCK, "metadata that is a list", {"metadata": []}, ("wrong_type", "metadata"))
    yield _with(BLOCK, "an empty hint", {"execution_hints": [""]}, ("empty", "execution_hints[0]"))
    yield _with(BLOCK, "too many hints", {"execution_hints": [*(["h"] * 21)]}, ("too_many", "execution_hints"))
    for side in ("inputs", "outputs"):
        yield _with(BLOCK, f"no list of {side}", {side: {}}, ("wrong_type", side))
        yield _with(BLOCK, f"an entry of {side} without a name", {side: [{}]}, ("missing_key", f"{side}[0].name"))
        yield _with(BLOCK, f"a name of {side} with a space", {side: [{"name": "a b"}]}, ("bad_id", f"{side}[0].name"))
        repeated: list[Json] = [port, {"name": "q"}, port]
        yield _with(BLOCK, f"a repeated name of {side}", {side: repeated}, ("duplicate_id", f"{side}[2].name"))
        wrong: list[Json] = [{**port, "required": "yes"}]
        yield _with(BLOCK, f"{side} with required as a text", {side: wrong}, ("wrong_type", f"{side}[0].required"))
        wrong = [{**port, "schema": "text"}]
        yield _with(BLOCK, f"{side} with a schema as a text", {side: wrong}, ("wrong_type", f"{side}[0].schema"))
        wrong = [{**port, "type": "text"}]
        yield _with(BLOCK, f"{side} with an unknown key", {side: wrong}, ("unknown_key", f"{side}[0].type"))
        many: list[Json] = [{"name": f"p{number}"} for number in range(101)]
        yield _with(BLOCK, f"too many {side}", {side: many}, ("too_many", side))


def broken_flows() -> Iterator[Broken]:
    one, two, way = slot("one", "build"), slot("two", "check"), edge("one", "two")
    for key in ("id", "version", "name"):
        yield _lacks(FLOW, key)
    for key in ("id", "target_id", "target_version"):
        lacking: Json = {name: value for name, value in one.items() if name != key}
        faults = (("missing_key", f"nodes[0].{key}"),)
        yield _with(FLOW, f"a slot without {key}", {"nodes": [lacking, two]}, *faults)
    for version in (0, -1):
        slots: list[Json] = [{**one, "target_version": version}, two]
        yield _with(FLOW, f"a slot for version {version}", {"nodes": slots}, ("wrong_value", "nodes[0].target_version"))
    yield _with(FLOW, "an empty alias", {"nodes": [{**one, "alias": ""}, two]}, ("empty", "nodes[0].alias"))
    yield _with(FLOW, "two slots with one id", {"nodes": [one, two, one]}, ("duplicate_id", "nodes[2].id"))
    unknown: Json = {**one, "target_id": uuid("unknown")}
    yield _with(FLOW, "a slot for no block", {"nodes": [unknown, two]}, ("unknown_definition", "nodes[0].target_id"))
    other: Json = {**one, "target_version": 2}
    yield _with(
        FLOW,
        "a slot for a version that does not exist",
        {"nodes": [other, two]},
        ("unknown_definition", "nodes[0].target_id"),
    )
    a_flow: Json = {**one, "target_id": uuid("flow")}
    yield _with(FLOW, "a slot for a flow", {"nodes": [a_flow, two]}, ("unknown_definition", "nodes[0].target_id"))
    yield _with(
        FLOW, "a source that is no slot", {"edges": [edge("three", "two")]}, ("dangling_edge", "edges[0].source_id")
    )
    yield _with(
        FLOW, "a target that is no slot", {"edges": [edge("one", "three")]}, ("dangling_edge", "edges[0].target_id")
    )
    entry = edge(None, "three")
    yield _with(FLOW, "an entry to no slot", {"edges": [way, entry]}, ("dangling_edge", "edges[1].target_id"))
    no_source: Json = {"target_id": way["target_id"]}
    yield _with(FLOW, "an edge without a source", {"edges": [no_source]}, ("missing_key", "edges[0].source_id"))
    no_target: Json = {"source_id": way["source_id"]}
    yield _with(FLOW, "an edge without a target", {"edges": [no_target]}, ("missing_key", "edges[0].target_id"))
    yield _with(
        FLOW,
        "a condition without a description",
        {"edges": [{**way, "condition": {"predicate": {"==": [1, 1]}}}]},
        ("missing_key", "edges[0].condition.description"),
    )
    yield _with(
        FLOW,
        "a condition with an empty description",
        {"edges": [{**way, "condition": {"description": ""}}]},
        ("empty", "edges[0].condition.description"),
    )
    yield _with(
        FLOW,
        "a condition with an id",
        {"edges": [{**way, "condition": {"description": "d", "id": uuid("c")}}]},
        ("unknown_key", "edges[0].condition.id"),
    )
    yield _with(
        FLOW,
        "a predicate that is a text",
        {"edges": [{**way, "condition": {"description": "d", "predicate": "x == 1"}}]},
        ("wrong_type", "edges[0].condition.predicate"),
    )
    mapping = "edges[0].port_mappings[0]"
    yield _with(
        FLOW,
        "a mapping from no output",
        {"edges": [edge("one", "two", ("ticket", "subject"))]},
        ("invalid_port_mapping", f"{mapping}.source_port"),
    )
    yield _with(
        FLOW,
        "a mapping to no input",
        {"edges": [edge("one", "two", ("artifact", "verdict"))]},
        ("invalid_port_mapping", f"{mapping}.target_port"),
    )
    yield _with(
        FLOW,
        "a mapping of an entry to no input",
        {"edges": [edge(None, "one", ("anything", "artifact"))]},
        ("invalid_port_mapping", f"{mapping}.target_port"),
    )
    halves: Json = {**way, "port_mappings": [{"source_port": "artifact"}]}
    yield _with(FLOW, "half of a mapping", {"edges": [halves]}, ("missing_key", f"{mapping}.target_port"))
    yield Broken("a flow without a terminal slot", NO_END, (("no_terminal_node", "nodes"),))
    yield _with(FLOW, "an empty flow", {"nodes": [], "edges": []}, ("no_terminal_node", "nodes"))
    yield _with(FLOW, "slots that are no list", {"nodes": "one"}, ("wrong_type", "nodes"))
    yield _with(FLOW, "too many slots", {"nodes": [*([one] * 1_001)]}, ("too_many", "nodes"))
    yield _with(
        FLOW,
        "faults at three places",
        {"nodes": [one, two, one], "edges": [edge("three", "four")]},
        ("duplicate_id", "nodes[2].id"),
        ("dangling_edge", "edges[0].source_id"),
        ("dangling_edge", "edges[0].target_id"),
    )


def broken_contracts() -> Iterator[Broken]:
    for key in ("id", "version", "name"):
        yield _lacks(CONTRACT, key)
    references = (("work_flows", "flow"), ("sub_contracts", "contract"))
    for side, kind in references:
        named = str(uuid("flow" if kind == "flow" else "part"))
        pinned: dict[str, Json] = {f"{kind}_id": named, f"{kind}_version": 1}
        unpinned: Json = {f"{kind}_id": named}
        path = f"{side}[0].{kind}"
        yield _with(CONTRACT, f"{side} without a version", {side: [unpinned]}, ("missing_key", f"{path}_version"))
        zero: Json = {**pinned, f"{kind}_version": 0}
        yield _with(CONTRACT, f"{side} with version 0", {side: [zero]}, ("wrong_value", f"{path}_version"))
        unknown: Json = {**pinned, f"{kind}_id": uuid("unknown")}
        yield _with(CONTRACT, f"{side} that do not exist", {side: [unknown]}, ("unknown_definition", f"{path}_id"))
        wrong: Json = {**pinned, f"{kind}_id": uuid("build")}
        yield _with(CONTRACT, f"{side} of another kind", {side: [wrong]}, ("unknown_definition", f"{path}_id"))
    twice: Json = [OUTCOME, {**OUTCOME, "name": "again"}]
    yield _with(
        CONTRACT, "two outcomes with one id", {"required_outcomes": twice}, ("duplicate_id", "required_outcomes[1].id")
    )
    nameless: Json = [{"id": uuid("outcome")}]
    yield _with(
        CONTRACT,
        "an outcome without a name",
        {"required_outcomes": nameless},
        ("missing_key", "required_outcomes[0].name"),
    )
    yield _with(
        CONTRACT,
        "an outcome that nothing assesses",
        {"assessment_bindings": []},
        ("unassessed_outcome", "required_outcomes[0]"),
    )
    yield _with(
        CONTRACT,
        "an assessment of no outcome",
        {"required_outcomes": []},
        ("unknown_outcome", "assessment_bindings[0].required_outcome_id"),
    )
    at = "assessment_bindings[0]"
    changes: tuple[tuple[str, dict[str, Json], tuple[str, str]], ...] = (
        (
            "an assessment without a version",
            {"assessment_flow_version": None},
            ("wrong_type", f"{at}.assessment_flow_version"),
        ),
        (
            "an assessment by no flow",
            {"assessment_flow_id": uuid("x")},
            ("unknown_definition", f"{at}.assessment_flow_id"),
        ),
        (
            "an assessment by a block",
            {"assessment_flow_id": uuid("build")},
            ("unknown_definition", f"{at}.assessment_flow_id"),
        ),
        ("an assessment with two ends", {"assessment_flow_id": uuid("two ends")}, ("assessment_terminal", at)),
        ("an assessment without an end", {"assessment_flow_id": uuid("no end")}, ("assessment_terminal", at)),
        (
            "a test flow that does not exist",
            {"test_flow_refs": [{"flow_id": uuid("x"), "flow_version": 1}]},
            ("unknown_definition", f"{at}.test_flow_refs[0].flow_id"),
        ),
        (
            "a test flow without a version",
            {"test_flow_refs": [{"flow_id": uuid("flow")}]},
            ("missing_key", f"{at}.test_flow_refs[0].flow_version"),
        ),
    )
    for name, change, found in changes:
        yield _with(CONTRACT, name, {"assessment_bindings": [{**BINDING, **change}]}, found)
    for name, part in (
        ("itself", "contract"),
        ("itself through one other", "ring"),
        ("itself through two", "outer ring"),
    ):
        subs: Json = [{"contract_id": uuid(part), "contract_version": 1}]
        faults = [("circular_contract", "sub_contracts[0]")]
        faults += [("unknown_definition", "sub_contracts[0].contract_id")] if part == "contract" else []
        yield _with(CONTRACT, f"a contract that includes {name}", {"sub_contracts": subs}, *faults)


CORPUS = (*broken_blocks(), *broken_flows(), *broken_contracts())
