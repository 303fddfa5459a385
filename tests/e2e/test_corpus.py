"""Real workflow files in the WorkRail dialect, mounted as core: each compiles, and each runs to its end."""

import json
import os
import re
import shutil
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from mcp import Client, StdioServerParameters
from tests.agents.agent import Agent, Task
from tests.support.corpus import CORPUS, workrail_files

from interlock.config.settings import BUNDLED
from interlock.kernel.errors import ErrorCode
from interlock.service.workflows.catalog import Entry, RefusedFile
from interlock.store.memory.store import MemoryStore
from interlock.store.workflow_files import PROJECT_DIR, LocalWorkflowFiles
from interlock.testing.harness import FixedKeyRing, Harness, ToolResult, call_through

NAMES = [path.relative_to(CORPUS).as_posix() for path in sorted(CORPUS.rglob("*.json"))] or ["(no corpus)"]
INVALID = "examples/dashboard-template-workflow.json"
"""The one file that its own schema refuses too, and the keys that schema does not have."""
EXTRA_KEYS = ("expectedOutput", "tags", "tips", "autoRecognitionPatterns")
VALID = [name for name in NAMES if name != INVALID]
OVER_STDIO = (
    "coding-task-workflow-agentic.json",
    "bug-investigation.agentic.v2.json",
    "wr.shaping.json",
    "test-artifact-loop-control.json",
    "examples/loops/simple-batch.json",
)
OPERATORS = ("equals", "not_equals", "contains", "gt", "gte", "lt", "lte")
SEEDS = (1, 2, 3)


def content_of(name: str) -> dict[str, Any]:
    """Return what a file holds; without a corpus the test that asks is skipped, and says so."""
    workrail_files()
    return json.loads((CORPUS / name).read_text(encoding="utf-8"))


def harness_over(core: Path | None = None, workspace: Path | None = None) -> Harness:
    sources = LocalWorkflowFiles(core_dirs=(BUNDLED, *([] if core is None else [core])), user_dir=None)
    return replace(Harness.over(MemoryStore(), keys=FixedKeyRing(), sources=sources), workspace=workspace)


def known_of(value: object) -> dict[str, tuple[object, ...]]:
    """Return what the conditions of a file compare with, by context key: what a user may come to say."""
    said: dict[str, list[object]] = defaultdict(list)
    for part in parts_of(value):
        if isinstance(part.get("var"), str):
            said[part["var"]] += [part[operator] for operator in OPERATORS if operator in part]
            said[part["var"]] += [True, "something else"]
    return {key: tuple(values) for key, values in said.items()}


def task_of(content: Mapping[str, Any], seed: int) -> Task:
    """Return a task whose word no other test has: the tests of this module share a server."""
    word = f"{re.sub(r'[^a-z0-9]', '', content['id'])}seed{seed}"
    return Task(content["id"], f"See {word} through", word)


def parts_of(value: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, dict):
        yield cast("Mapping[str, Any]", value)
    members = cast("Mapping[str, object]", value).values() if isinstance(value, dict) else value
    for member in cast("list[object]", members) if isinstance(value, dict | list) else ():
        yield from parts_of(member)


@pytest.fixture(scope="module")
def mounted() -> Harness:
    return harness_over(CORPUS)


@pytest.mark.parametrize("name", VALID)
def test_every_file_compiles_and_runs_to_its_end(mounted: Harness, name: str) -> None:
    content = content_of(name)
    entry = mounted.ports.catalog.view(None).entries[content["id"]]
    assert not isinstance(entry.compiled, RefusedFile), [one.render_line() for one in entry.compiled.diagnostics]
    played = Agent((task_of(content, 1),), seed=1).work(mounted.call)
    assert played.is_complete
    assert played.errors == []


@pytest.mark.parametrize("name", VALID)
@pytest.mark.parametrize("seed", SEEDS)
def test_every_file_runs_to_its_end_with_an_agent_that_errs(mounted: Harness, name: str, seed: int) -> None:
    content = content_of(name)
    agent = Agent((task_of(content, seed),), seed=seed, fault_rate=0.5, known=known_of(content["steps"]))
    played = agent.work(mounted.call)
    assert played.is_complete
    assert ErrorCode.INTERNAL_ERROR not in played.errors


@pytest.mark.parametrize("name", VALID)
def test_the_text_of_the_answers_is_enough_to_finish(mounted: Harness, name: str) -> None:
    content = content_of(name)
    agent = Agent((task_of(content, 4),), seed=4, known=known_of(content["steps"]), channel="text")
    assert agent.work(mounted.call).is_complete


def test_the_file_that_its_own_schema_refuses_is_refused_with_every_key_it_should_not_have(mounted: Harness) -> None:
    answer = mounted.start(content_of(INVALID)["id"])
    assert answer.code is ErrorCode.WORKFLOW_INVALID
    assert [key for key in EXTRA_KEYS if f"'{key}'" not in answer.text] == []


def test_no_other_file_is_refused(mounted: Harness) -> None:
    content_of(INVALID)
    assert [file.source.ref for file in mounted.ports.catalog.view(None).refused] == [INVALID]


# Over the wire.


@pytest.mark.asyncio
@pytest.mark.parametrize("fault_rate", [0.0, 0.5])
@pytest.mark.skipif(sys.platform == "win32", reason="starts a server over stdio")
async def test_a_real_server_over_stdio_takes_files_to_their_end(tmp_path: Path, fault_rate: float) -> None:
    contents = [content_of(name) for name in OVER_STDIO]
    own = {name: value for name, value in os.environ.items() if not name.startswith("INTERLOCK_")}
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "interlock", "serve", "--data-dir", str(tmp_path / "data"), "--core-source", str(CORPUS)],
        env=own | {"INTERLOCK_WORKFLOWS_DIR": str(tmp_path / "none"), "INTERLOCK_WORKSPACE": str(tmp_path)},
        cwd=tmp_path,
    )
    async with Client(parameters) as client:

        async def call(tool: str, arguments: Mapping[str, object]) -> ToolResult:
            return await call_through(client, tool, arguments)

        for content in contents:
            agent = Agent((task_of(content, 5),), seed=5, fault_rate=fault_rate, known=known_of(content["steps"]))
            played = await agent.work_async(call)
            assert played.is_complete
            assert ErrorCode.INTERNAL_ERROR not in played.errors


# From a project.


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for path in workrail_files():
        to = tmp_path / PROJECT_DIR / path.relative_to(CORPUS)
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, to)
    return tmp_path


def test_a_project_may_not_use_reserved_ids_and_is_reported_how_to_rename_them(project: Path) -> None:
    harness = harness_over(workspace=project)
    reserved = [content["id"] for name in VALID if (content := content_of(name))["id"].startswith("wr.")]
    assert len(reserved) > len(VALID) / 2
    for workflow_id in reserved:
        answer = harness.start(workflow_id)
        assert answer.code is ErrorCode.WORKFLOW_INVALID, workflow_id
        result = answer["details"]["diagnostics"][0]
        assert result["code"] == "reserved_namespace"
        assert f"`project.{workflow_id.removeprefix('wr.').replace('-', '_')}`" in result["fix"]


def test_undotted_ids_of_a_project_run_and_are_warned_about(project: Path) -> None:
    harness = harness_over(workspace=project)
    undotted = [content["id"] for name in VALID if "." not in (content := content_of(name))["id"]]
    assert undotted
    for workflow_id in undotted:
        entry = harness.ports.catalog.view(project).entries[workflow_id]
        assert isinstance(entry, Entry)
        compiled = entry.compiled
        assert not isinstance(compiled, RefusedFile)
        assert "legacy_id" in {one.code for one in (*entry.placement, *compiled.warnings)}
