"""Producer and checker apart: who reported a step cannot report the step that verifies it, if the author says so."""

from collections.abc import Mapping
from typing import Any

import pytest
from mcp import Client, types
from tests.support.flow import Document, compiled, loop, step
from tests.support.verify import unsound

from interlock.server.app import build_server
from interlock.service.workflows.catalog import Catalog, Pinnable, RefusedFile
from interlock.testing.harness import Harness, InlineWorkflows, ToolResult, call_through

NOTES = {"notesMarkdown": "Done and looked at, with the result at hand."}
CHECK = step("check", verifies=["build"], by="another")


def flow(*steps: Document) -> Document:
    return {"id": "test.flow", "name": "Flow", "steps": list(steps)}


async def call(harness: Harness, name: str, tool: str, arguments: Mapping[str, Any]) -> ToolResult:
    """Call a tool as a client of this name."""
    info = types.Implementation(name=name, version="1")
    async with Client(build_server(harness.ports, None), client_info=info) as client:
        return await call_through(client, tool, arguments)


async def report(harness: Harness, name: str, answer: ToolResult) -> ToolResult:
    return await call(harness, name, "continue_workflow", {"ackToken": answer.ack, "output": NOTES})


async def begun(harness: Harness, **more: object) -> ToolResult:
    return await call(harness, "maker", "start_workflow", {"workflowId": "test.flow", **more})


@pytest.mark.asyncio
@pytest.mark.inv("IR-16")
async def test_the_client_that_reported_a_step_cannot_report_its_check_and_another_one_can() -> None:
    harness = Harness.in_memory(flow(step("build"), step("between"), CHECK))
    answer = await begun(harness)
    answer = await report(harness, "maker", answer)
    answer = await report(harness, "other", answer)
    refused = await report(harness, "maker", answer)
    (blocker,) = refused["blockers"]
    assert (blocker["code"], blocker["pointer"]) == (
        "USER_ONLY_DEPENDENCY",
        {"kind": "workflow_step", "stepId": "check"},
    )
    assert "'maker'" in blocker["message"]
    assert "another client" in blocker["suggestedFix"]
    assert (await report(harness, "checker", refused))["isComplete"]
    assert unsound(harness.store) == []


@pytest.mark.asyncio
@pytest.mark.inv("IR-16")
async def test_without_by_anybody_may_check() -> None:
    harness = Harness.in_memory(flow(step("build"), step("check", verifies=["build"])))
    answer = await report(harness, "maker", await begun(harness))
    assert (await report(harness, "maker", answer))["isComplete"]


@pytest.mark.asyncio
@pytest.mark.inv("IR-16")
async def test_the_latest_report_of_a_step_counts_and_a_skipped_step_excludes_nobody() -> None:
    rounds = loop("rounds", step("build"), **{"for": {"count": 2}})
    skipped = step("extra", when={"var": "goal", "equals": "never"})
    check = step("check", verifies=["build", "extra"], by="another")
    harness = Harness.in_memory(flow(rounds, skipped, check))
    answer = await begun(harness, goal="G")
    answer = await report(harness, "maker", answer)
    answer = await report(harness, "other", answer)
    refused = await report(harness, "other", answer)
    assert [one["code"] for one in refused["blockers"]] == ["USER_ONLY_DEPENDENCY"]
    assert (await report(harness, "maker", refused))["isComplete"]


@pytest.mark.asyncio
@pytest.mark.inv("IR-16", "MODE-2")
async def test_a_run_that_never_stops_discloses_that_producer_and_checker_are_the_same() -> None:
    harness = Harness.in_memory(flow(step("build"), CHECK))
    answer = await begun(harness, preferences={"autonomy": "full_auto_never_stop"})
    answer = await report(harness, "maker", await report(harness, "maker", answer))
    assert answer["isComplete"]
    (run,) = harness.ports.read.listing().sessions[0].runs
    session = harness.ports.read.load(harness.ports.read.listing().sessions[0].session)
    assert session is not None
    gaps = [gap for node in session.nodes.values() for gap in node.gaps]
    assert [gap.reason.detail for gap in gaps] == ["needs_user_environment_action"]
    assert run.status == "complete_with_gaps"
    assert unsound(harness.store) == []


@pytest.mark.inv("IR-16")
def test_a_client_without_a_name_is_not_known_to_be_another() -> None:
    harness = Harness.in_memory(flow(step("build"), CHECK))
    refused = harness.advance(harness.advance(harness.start("test.flow")))
    assert "a client without a name" in refused["blockers"][0]["message"]


def test_a_step_that_verifies_is_one_of_a_verifier_and_says_who_must_report_it() -> None:
    workflow = compiled(step("build"), CHECK)
    node = workflow.steps["check"]
    assert node.task is not None
    assert (node.owner, node.task.verifies, node.task.by) == ("verifier", ("build",), "another")
    assert node.task.requirements == ("A client that reported `build` cannot report this step: another client must.",)


def faults(*steps: Document) -> list[tuple[str, str]]:
    found = Catalog(InlineWorkflows(flow(*steps))).view(None)
    (entry,) = [*found.entries.values(), *found.refused]
    result = entry if isinstance(entry, RefusedFile) else entry.compiled
    return [] if isinstance(result, Pinnable) else [(one.code, one.path) for one in result.diagnostics]


@pytest.mark.inv("IR-16")
def test_only_a_known_earlier_step_can_be_verified() -> None:
    assert faults(step("build"), CHECK) == []
    assert faults(CHECK, step("build")) == [("unknown_step", "steps[0]")]
    assert faults(step("biuld"), CHECK) == [("unknown_step", "steps[1]")]
    assert faults(step("check", verifies=["check"])) == [("unknown_step", "steps[0]")]
    assert faults(step("build"), step("check", by="another")) == [("unfit_node", "steps[1]")]
