"""Parts of a session can be read: artifacts, the context of a run, any step as an agent would receive it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import MCPError, types
from tests.support.flow import loop, parallel, step
from tests.support.lifecycle import lifecycle_at
from tests.support.server import Served, serving, tree

from interlock.engine.answer.secret_scanning import WITHHELD, without_secrets
from interlock.record.payloads import ArtifactPayload
from interlock.store.memory.store import MemoryStore
from interlock.testing.harness import ERAS, FixedKeyRing, Harness, ToolResult, linear_workflow

TOKEN = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
REPORT = {"kind": "wr.verification_report", "status": "passed", "checks": [{"name": "tests", "status": "passed"}]}
FLOW = {
    "id": "test.flow",
    "name": "Flow",
    "inputs": [{"key": "goal", "description": "G.", "type": "string"}],
    "steps": [
        parallel("both", [step("left", prompt="Left of {{goal}}.")], [step("right", prompt="Right of {{goal}}.")]),
        loop("rounds", step("round", prompt="Round {{iteration}}."), **{"for": {"count": 2}}),
        step("last", requireConfirmation=True, agentRole="A judge."),
    ],
}


@pytest.fixture
def harness() -> Harness:
    return Harness.over(MemoryStore(), FLOW, linear_workflow("test.one", "a"), keys=FixedKeyRing())


@pytest.fixture(params=ERAS)
def client(request: pytest.FixtureRequest, harness: Harness) -> Iterator[Served]:
    with serving(harness, request.param) as connected:
        yield connected


def read(client: Served, uri: str) -> tuple[str, str]:
    (content,) = client.ask("read_resource", uri).contents
    assert isinstance(content, types.TextResourceContents)
    return content.mime_type or "", content.text


def refused(client: Served, uri: str) -> str:
    with pytest.raises(MCPError) as caught:
        client.ask("read_resource", uri)
    assert caught.value.error.code == types.INVALID_PARAMS
    return caught.value.error.message


def address(harness: Harness, begun: ToolResult) -> str:
    return f"interlock://sessions/{harness.session_of(begun)}"


def run_of(harness: Harness, begun: ToolResult) -> str:
    return f"{address(harness, begun)}/runs/{begun['run']['label']}"


@pytest.mark.inv("SRV-17")
def test_an_agent_reads_the_prompts_of_the_steps_that_need_not_wait(client: Served, harness: Harness) -> None:
    begun = harness.start("test.flow", goal="the wall")
    assert begun["pending"]["stepId"] == "left"
    kind, text = read(client, f"{run_of(harness, begun)}/steps/right")
    assert kind == "text/markdown"
    assert "Right of the wall." in text
    assert "step 2 of 4" in text
    assert begun["pending"]["prompt"] in read(client, f"{run_of(harness, begun)}/steps/left")[1]


@pytest.mark.inv("SRV-17")
def test_a_step_is_read_with_its_role_its_confirmation_and_the_current_pass(client: Served, harness: Harness) -> None:
    begun = harness.start("test.flow", goal="the wall")
    uri = run_of(harness, begun)
    assert "Round [context key not set: iteration]" in read(client, f"{uri}/steps/round")[1]
    answer = begun
    for _ in range(3):
        answer = harness.advance(answer, "Done, with the result at hand.")
    assert answer["pending"]["stepId"] == "round"
    assert "Round 2." in read(client, f"{uri}/steps/round")[1]
    last = read(client, f"{uri}/steps/last")[1]
    assert "A judge." in last
    assert "needs the user's confirmation" in last


@pytest.mark.inv("SRV-17", "ANS-20")
def test_the_context_of_a_run_is_read_without_what_looks_like_a_secret(client: Served, harness: Harness) -> None:
    context = {"ticket": "T-1", "githubToken": TOKEN, "nested": [{"note": f"use {TOKEN}"}], TOKEN: 1}
    begun = harness.start("test.one", goal="G", context=context)
    kind, text = read(client, f"{run_of(harness, begun)}/context")
    assert kind == "application/json"
    assert TOKEN not in text
    assert json.loads(text) == {
        "goal": "G",
        "ticket": "T-1",
        "githubToken": WITHHELD,
        "nested": [{"note": WITHHELD}],
        "…": WITHHELD,
    }


SECRETS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({"a": [1, None, True, {"b": "c"}]}, {"a": [1, None, True, {"b": "c"}]}),
    ({"passwords": {"one": "hunter2!", "two": "$TWO"}}, {"passwords": {"one": WITHHELD, "two": "$TWO"}}),
    ({"password": ["hunter2!", "x"]}, {"password": [WITHHELD, WITHHELD]}),
]


@pytest.mark.inv("LIFE-8", "SRV-17")
def test_the_lifecycle_of_a_run_is_read_as_the_command_prints_it(client: Served, harness: Harness) -> None:
    begun = harness.start("test.one", goal="G")
    kind, text = read(client, f"{run_of(harness, begun)}/lifecycle")
    assert kind == "application/json"
    assert json.loads(text) == json.loads(json.dumps(lifecycle_at(harness, begun).to_json()))


@pytest.mark.parametrize(("context", "shown"), SECRETS)
def test_only_suspect_values_are_withheld(context: dict[str, Any], shown: dict[str, Any]) -> None:
    assert without_secrets(context) == shown


@pytest.mark.inv("SRV-17")
def test_an_artifact_is_read_by_its_digest_in_its_own_session_alone(client: Served, harness: Harness) -> None:
    begun, other = harness.start("test.one", goal="G"), harness.start("test.one", goal="H")
    output = {"notesMarkdown": "Done, with the result at hand.", "artifacts": [REPORT]}
    harness.call("continue_workflow", {"ackToken": begun.ack, "output": output})
    session = harness.ports.read.reader.load(harness.session_of(begun))
    assert session is not None
    (digest,) = {
        output.payload.sha256
        for node in session.nodes.values()
        for output in node.outputs
        if isinstance(output.payload, ArtifactPayload)
    }
    kind, text = read(client, f"{address(harness, begun)}/artifacts/{digest}")
    assert (kind, json.loads(text)) == ("application/json", REPORT)
    assert "no artifact" in refused(client, f"{address(harness, other)}/artifacts/{digest}")
    assert "no artifact" in refused(client, f"{address(harness, begun)}/artifacts/sha256:{'0' * 64}")


@pytest.mark.inv("SRV-8", "SRV-17")
def test_what_is_not_there_is_refused_with_what_is(client: Served, harness: Harness) -> None:
    begun = harness.start("test.one", goal="G")
    session = address(harness, begun)
    assert f"its runs are {begun['run']['label']}" in refused(client, f"{session}/runs/none/context")
    assert "its steps are a" in refused(client, f"{run_of(harness, begun)}/steps/z")
    assert "no session" in refused(client, "interlock://sessions/sess_00000000000000000000000000/runs/x/context")
    for path in ("/runs", "/runs/x", "/artifacts/", "/runs/x/steps/../../keys", "/runs/x/steps/a/b"):
        assert "There is no resource" in refused(client, session + path)


@pytest.mark.inv("SRV-17")
@pytest.mark.parametrize("era", ERAS)
def test_reading_parts_writes_nothing(tmp_path: Path, era: Any) -> None:
    harness = Harness.on_disk(tmp_path / "data", FLOW)
    begun = harness.start("test.flow", goal="G")
    before = tree(tmp_path)
    with serving(harness, era) as client:
        for part in ("context", "steps/right"):
            read(client, f"{run_of(harness, begun)}/{part}")
    assert tree(tmp_path) == before


@pytest.mark.damages
@pytest.mark.inv("SRV-17")
def test_a_part_of_a_damaged_session_is_refused_with_the_damage(tmp_path: Path) -> None:
    harness = Harness.on_disk(tmp_path / "data", FLOW)
    begun = harness.start("test.flow", goal="G")
    manifest = tmp_path / "data" / "sessions" / harness.session_of(begun) / "manifest.jsonl"
    manifest.write_bytes(manifest.read_bytes().replace(b'"sha256:', b'"sha256:0', 1))
    with serving(Harness.on_disk(tmp_path / "data", FLOW)) as client:
        assert "damaged" in refused(client, f"{run_of(harness, begun)}/context")
