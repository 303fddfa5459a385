"""A plan file in a folder of workflows is listed, inspected and started like a workflow, or starts nothing."""

import json
from pathlib import Path
from typing import Any

import pytest

from interlock.kernel.budgets.workflow import (
    DOCUMENT_BYTES_MAX,
)
from interlock.kernel.errors import ErrorCode
from interlock.plan.check.plan_file import plan_document
from interlock.service.workflows.catalog import Catalog, Pinnable
from interlock.testing.harness import ERAS, Era, Harness, InlineWorkflows, call_through, filled_in, linear_workflow

AUTHORED = linear_workflow("team.made", "a", "b", name="Made elsewhere", tags=["demo"])


def plan_of(document: dict[str, Any]) -> dict[str, Any]:
    """Return the plan file of a document."""
    compiled = Catalog(InlineWorkflows(document)).view(None).entries[document["id"]].compiled
    assert isinstance(compiled, Pinnable)
    return json.loads(json.dumps(plan_document(compiled.workflow)))


def with_plan(harness: Harness, value: object) -> Harness:
    harness.workflows.put(json.dumps(value).encode(), ref="made.plan.json")
    return harness


@pytest.fixture
def harness() -> Harness:
    return with_plan(Harness.in_memory(), plan_of(AUTHORED))


@pytest.mark.inv("IR-14")
def test_a_plan_file_is_listed_and_inspected_like_a_workflow(harness: Harness) -> None:
    (listed,) = [one for one in harness.call("list_workflows", {})["workflows"] if one["workflowId"] == "team.made"]
    assert (listed["name"], listed["steps"], listed["tags"]) == ("Made elsewhere", 2, [])
    inspected = harness.call("inspect_workflow", {"workflowId": "team.made", "detail": "source"})
    assert inspected["workflowHash"] == plan_of(AUTHORED)["workflowHash"]
    assert inspected["source"] == plan_of(AUTHORED)


@pytest.mark.inv("IR-14")
def test_a_run_of_a_plan_file_pins_the_same_bytes_as_one_of_its_document_and_completes(harness: Harness) -> None:
    answer = begun = harness.start("team.made", goal="G")
    while not answer["isComplete"]:
        answer = harness.call("continue_workflow", filled_in(answer, "Done and checked, with the result at hand."))
    inspected = Harness.in_memory(AUTHORED).call("inspect_workflow", {"workflowId": "team.made"})
    loaded = harness.ports.read.reader.load(harness.session_of(begun))
    assert loaded is not None
    assert [run.workflow_hash for run in loaded.runs.values()] == [inspected["workflowHash"]]


@pytest.mark.inv("IR-5", "IR-14")
@pytest.mark.asyncio
@pytest.mark.parametrize("era", ERAS)
async def test_a_plan_with_a_dangling_edge_starts_nothing(tmp_path: Path, era: Era) -> None:
    value = plan_of(AUTHORED)
    value["plan"]["edges"][0]["target"] = "nowhere"
    value["plan"]["nodes"][1]["evidenceSchemaRef"] = "wr.contracts.none"
    del value["workflowHash"], value["contracts"]
    harness = with_plan(Harness.on_disk(tmp_path / "data"), value)
    async with harness.client(era) as client:
        answer = await call_through(client, "start_workflow", {"workflowId": "team.made"})
    assert answer.code is ErrorCode.WORKFLOW_INVALID
    found = {(one["code"], one["path"]) for one in answer["details"]["diagnostics"]}
    assert {("dangling_edge", "plan.edges[0]"), ("unknown_contract_ref", "plan.nodes[1]")} <= found
    assert all(one["line"] for one in answer["details"]["diagnostics"])
    assert not (tmp_path / "data").exists(), "no session, no event, not even a key"


@pytest.mark.inv("IR-15")
def test_the_limits_of_a_workflow_file_hold_for_a_plan_file() -> None:
    nested: Any = {"op": "always"}
    for _ in range(70):
        nested = {"op": "not", "of": nested}
    deep = plan_of(AUTHORED)
    deep["plan"]["conditions"] = [{"conditionId": "c", "condition": nested}]
    files = {
        "too_large": json.dumps(plan_of(AUTHORED)).encode() + b" " * DOCUMENT_BYTES_MAX,
        "too_deep": json.dumps(deep).encode(),
        "number_not_exact": b'{"schemaVersion": 1, "plan": {"v": 1e999}}',
        "duplicate_key": b'{"schemaVersion": 1, "plan": {}, "plan": {}}',
    }
    for code, data in files.items():
        workflows = InlineWorkflows()
        workflows.put(data, ref="x.plan.json")
        (refused,) = Catalog(workflows).view(None).refused
        assert [one.code for one in refused.diagnostics] == [code]


def test_a_plan_in_the_reserved_namespace_is_refused_outside_of_the_bundled_source() -> None:
    value = plan_of(linear_workflow("team.made", "a")) | {"workflowId": "wr.mine"}
    del value["workflowHash"]
    workflows = InlineWorkflows()
    workflows.put(json.dumps(value).encode(), ref="x.plan.json")
    (refused,) = Catalog(workflows).view(None).refused
    assert [(one.code, one.path) for one in refused.diagnostics] == [("reserved_namespace", "workflowId")]
    assert refused.workflow_id == "wr.mine"
