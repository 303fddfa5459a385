"""`list_workflows` and `inspect_workflow`: what can be started, what cannot and why, and what would run."""

import json
from pathlib import Path

import pytest
from tests.agents.agent import Agent, Task
from tests.unit.test_bundled_workflows import ITEMS

from interlock.config.ports import local_ports
from interlock.config.settings import Settings
from interlock.define.document import WorkflowDocument
from interlock.kernel.budgets import LIST_ENTRIES_MAX
from interlock.kernel.errors import ErrorCode
from interlock.service.tools.list_workflows import ListCommand, matching_entries
from interlock.service.workflows.catalog import Pinnable
from interlock.testing.harness import Harness, ToolResult, linear_workflow


@pytest.fixture
def memory() -> Harness:
    return Harness.in_memory(
        linear_workflow("team.deploy", "a", "b", description="Ship a release to production.", tags=["ops", "release"]),
        linear_workflow("team.code_review", "a", description="Look at a change.", tags=["review"]),
        linear_workflow("old-one", "a", description="From before.", tags=["ops"]),
    )


def ids(answer: ToolResult) -> list[str]:
    return [one["workflowId"] for one in answer["workflows"]]


def found(harness: Harness, **arguments: object) -> list[str]:
    """Return the ids of the workflows that match."""
    answer = harness.call("list_workflows", arguments)
    return [] if "reason" in answer.structure else ids(answer)


@pytest.mark.inv("SRC-4")
def test_a_list_gives_each_workflow_with_all_that_tells_it_from_others(memory: Harness) -> None:
    answer = memory.call("list_workflows")
    assert ids(answer) == ["old-one", "team.code_review", "team.deploy"]
    assert answer["workflows"][2] == {
        "workflowId": "team.deploy",
        "name": "Workflow team.deploy",
        "description": "Ship a release to production.",
        "tags": ["ops", "release"],
        "steps": 2,
        "sourceKind": "project",
        "idStatus": "namespaced",
    }
    for one in answer["workflows"]:
        assert f"`{one['workflowId']}`" in answer.text
        assert one["description"] in answer.text
    assert "start_workflow" in answer.text


@pytest.mark.inv("ANS-1")
def test_the_text_of_a_list_shows_tags(memory: Harness) -> None:
    """Clients that show only the text need what `tag` takes."""
    assert "release" in memory.call("list_workflows").text


@pytest.mark.inv("SRC-7")
def test_what_agents_list_and_inspect_has_no_advice_for_authors(memory: Harness) -> None:
    """A small model followed the advice to rename a workflow."""
    inspected = memory.call("inspect_workflow", {"workflowId": "old-one"})
    for answer in (memory.call("list_workflows"), inspected):
        for one in (json.dumps(dict(answer.structure)), answer.text):
            assert "old-one" in one
            assert "project.old_one" not in one
            assert not {"warnings", "suggestedId", "legacy_id"} & set(one.replace('"', " ").split())


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("deploy", ["team.deploy"]),
        ("DEPLOY", ["team.deploy"]),
        ("release production", ["team.deploy"]),
        ("production release", ["team.deploy"]),
        ("review", ["team.code_review"]),
        ("code_review", ["team.code_review"]),
        ("team", ["team.code_review", "team.deploy"]),
        ("ops", ["old-one", "team.deploy"]),
        ("workflow", ["old-one", "team.code_review", "team.deploy"]),
        ("depl", ["team.deploy"]),
        ("zzz", []),
    ],
)
def test_a_query_finds_the_workflows_that_match_it_best(memory: Harness, query: str, expected: list[str]) -> None:
    assert found(memory, query=query) == expected


@pytest.mark.inv("RES-5")
@pytest.mark.parametrize(
    ("query", "expected", "said"),
    [
        ("deploy review", ["team.code_review", "team.deploy"], "No workflow has all of these words"),
        ("depoly", ["team.deploy"], "if one letter is wrong"),
    ],
)
def test_workflows_that_match_approximately_are_said_to_do_so(
    memory: Harness, query: str, expected: list[str], said: str
) -> None:
    answer = memory.call("list_workflows", {"query": query})
    assert [one["workflowId"] for one in answer["workflows"]] == expected
    assert said in answer["reason"]


@pytest.mark.parametrize("query", ["日本", "???", "ü"])
def test_a_query_without_a_word_that_can_be_matched_does_not_match_everything(memory: Harness, query: str) -> None:
    assert found(memory, query=query) == []


@pytest.mark.parametrize(
    ("tag", "expected"),
    [("ops", ["old-one", "team.deploy"]), ("OPS", []), ("op", []), ("review", ["team.code_review"])],
)
def test_a_tag_is_matched_whole(memory: Harness, tag: str, expected: list[str]) -> None:
    assert found(memory, tag=tag) == expected


def test_query_and_tag_must_both_match(memory: Harness) -> None:
    assert found(memory, query="release", tag="ops") == ["team.deploy"]
    assert found(memory, query="review", tag="ops") == []


@pytest.mark.inv("SRC-8")
@pytest.mark.parametrize("sent", [{"query": "zzz"}, {"tag": "zzz"}, {"query": "release", "tag": "review"}])
def test_a_search_without_a_match_shows_all_workflows_and_says_so(memory: Harness, sent: dict[str, str]) -> None:
    answer, every = memory.call("list_workflows", sent), memory.call("list_workflows")
    assert (answer["workflows"], "reason" in every.structure) == (every["workflows"], False)
    assert "No workflow matches" in answer["reason"]
    assert answer.text == f"{answer['reason']}\n\n{every.text}"


@pytest.mark.inv("SRC-8", "ANS-6")
def test_all_workflows_after_a_search_without_a_match_end_after_thirty_entries() -> None:
    harness = Harness.in_memory(*(linear_workflow(f"team.w{at:03d}", "a") for at in range(LIST_ENTRIES_MAX + 4)))
    answer = harness.call("list_workflows", {"query": "zzz"})
    assert (len(answer["workflows"]), answer["more"]) == (LIST_ENTRIES_MAX, 4)


def test_an_empty_catalogue_says_that_nothing_can_be_started() -> None:
    answer = Harness.in_memory().call("list_workflows", {"query": "zzz"})
    assert (answer["workflows"], answer.text) == ([], "No workflow can be started.")


@pytest.mark.inv("ANS-6")
@pytest.mark.parametrize("count", [LIST_ENTRIES_MAX - 1, LIST_ENTRIES_MAX, LIST_ENTRIES_MAX + 1, 2 * LIST_ENTRIES_MAX])
def test_a_list_ends_after_thirty_entries_and_counts_the_rest(count: int) -> None:
    harness = Harness.in_memory(*(linear_workflow(f"team.w{at:03d}", "a") for at in range(count)))
    answer = harness.call("list_workflows")
    assert ids(answer) == [f"team.w{at:03d}" for at in range(min(count, LIST_ENTRIES_MAX))]
    more = max(0, count - LIST_ENTRIES_MAX)
    assert answer.structure.get("more", 0) == more
    assert (f"{more} more" in answer.text) == bool(more)
    assert ("`query`" in answer.text) == bool(more)


@pytest.mark.inv("ANS-6")
def test_refused_files_beyond_thirty_are_counted_and_not_silently_left_out() -> None:
    harness = Harness.in_memory(linear_workflow("team.good", "a"))
    for at in range(LIST_ENTRIES_MAX + 7):
        harness.workflows.put(b"{", ref=f"bad{at:02d}.json")
    answer = harness.call("list_workflows")
    assert len(answer["refused"]) <= LIST_ENTRIES_MAX
    assert "7 more" in answer.text


@pytest.mark.inv("ANS-6")
def test_a_full_list_with_long_descriptions_stays_compact() -> None:
    """An ordinary answer stays below 10 kB (ANS-6), in the channel that most clients show: the structure."""
    documents = (
        linear_workflow(f"team.w{at:03d}", "a", description="word " * 390, tags=["tag"] * 5) for at in range(30)
    )
    answer = Harness.in_memory(*documents).call("list_workflows")
    assert len(answer.text.encode()) < 12_000
    assert len(json.dumps(dict(answer.structure)).encode()) < 20_000


@pytest.mark.inv("ANS-6")
def test_one_file_with_a_monstrous_key_does_not_swell_the_list() -> None:
    harness = Harness.in_memory(linear_workflow("team.good", "a"))
    harness.workflows.put(linear_workflow("team.bad", "a", **{"k" * 500_000: 1}))
    assert len(harness.call("list_workflows").text) < 5_000
    assert len(harness.start("team.bad").text) < 10_000


@pytest.mark.inv("SRC-4")
def test_a_refused_file_is_listed_with_its_first_diagnostic(memory: Harness) -> None:
    memory.workflows.put({"id": "team.bad", "name": "Bad", "steps": []}, ref="sub/bad.json")
    answer = memory.call("list_workflows", {"query": "deploy"})
    (refused,) = answer["refused"]
    assert (refused["source"], refused["sourceKind"], refused["workflowId"]) == ("sub/bad.json", "project", "team.bad")
    assert (refused["diagnostic"]["code"], refused["diagnostic"]["path"]) == ("empty", "steps")
    assert "sub/bad.json" in answer.text
    assert refused["diagnostic"]["message"] in answer.text
    assert refused["diagnostic"]["fix"] in answer.text


GUIDED = linear_workflow(
    "team.guided",
    {
        "id": "a",
        "title": "First",
        "promptBlocks": {"goal": "Look at {{x}}.", "verify": ["Seen."]},
        "agentRole": "You look.",
    },
    {"id": "b", "title": "Second", "prompt": "Act.", "requireConfirmation": True, "notes": "optional"},
    description="Guided work.",
    tags=["t"],
    guidance=["Be kind."],
    references=[{"id": "r", "title": "Spec", "source": "docs/r.md", "purpose": "Binding."}],
)


def inspected(detail: str | None = None) -> ToolResult:
    harness = Harness.in_memory(GUIDED)
    return harness.call("inspect_workflow", {"workflowId": "team.guided", "detail": detail})


def test_a_summary_shows_each_step_in_short_and_no_prompt() -> None:
    answer = inspected()
    assert answer == inspected("summary")
    assert answer["steps"] == [
        {"stepId": "a", "title": "First", "requireConfirmation": False, "notesRequired": True},
        {"stepId": "b", "title": "Second", "requireConfirmation": True, "notesRequired": False},
    ]
    assert (answer["guidance"], answer["tags"], answer["sourceRef"]) == (["Be kind."], ["t"], "team.guided.json")
    assert answer["references"][0]["title"] == "Spec"
    assert not {"plan", "source", "warnings", "suggestedId"} & set(answer.structure)
    for words in (
        "team.guided",
        "Guided work.",
        "Be kind.",
        "Spec: docs/r.md",
        "First",
        "Second",
        "needs confirmation",
    ):
        assert words in answer.text
    assert "Look at" not in answer.text


@pytest.mark.inv("PLAN-5", "ANS-1")
def test_the_plan_shows_every_prompt_as_it_will_be_handed_out_in_both_channels() -> None:
    answer = inspected("plan")
    prompts = [node["task"]["prompt"] for node in answer["plan"]["nodes"] if "task" in node]
    assert prompts == ["Look at {{x}}.\n\n**Check before you send**\n- Seen.", "Act."]
    for prompt in prompts:
        assert prompt in answer.text
    assert "You look." in answer.text


@pytest.mark.inv("ANS-28")
def test_each_channel_of_a_plan_has_a_prompt_once() -> None:
    answer = inspected("plan")
    for one in (json.dumps(answer["plan"]), answer.text):
        assert one.count("Look at {{x}}.") == one.count("Seen.") == one.count("Act.") == 1


@pytest.mark.inv("ANS-1")
def test_the_source_shows_the_file_as_written_in_both_channels() -> None:
    answer = inspected("source")
    assert answer["source"] == GUIDED
    assert '"promptBlocks"' in answer.text
    assert "Look at {{x}}." in answer.text


@pytest.mark.inv("PLAN-1")
def test_inspecting_tells_the_hash_that_a_start_pins() -> None:
    harness = Harness.in_memory(GUIDED)
    answer = harness.call("inspect_workflow", {"workflowId": "team.guided"})
    first = harness.start("team.guided")
    session = harness.store.load(harness.session_of(first))
    assert session is not None
    assert [run.workflow_hash for run in session.runs.values()] == [answer["workflowHash"]]


@pytest.mark.inv("SRC-5")
def test_inspecting_what_is_not_there_or_cannot_run_is_answered_as_a_start_is() -> None:
    harness = Harness.in_memory(GUIDED)
    harness.workflows.put({"id": "team.bad", "name": "Bad", "steps": []}, ref="bad.json")
    for name, code in (("team.guide", ErrorCode.WORKFLOW_NOT_FOUND), ("team.bad", ErrorCode.WORKFLOW_INVALID)):
        inspected = harness.call("inspect_workflow", {"workflowId": name})
        assert inspected.code is code
        assert "start_workflow" not in inspected.text
        started = harness.start(name)
        call = inspected["details"].pop("correctedCall", None)
        assert call == (call and {**started["details"].pop("correctedCall"), "tool": "inspect_workflow"})
        assert inspected.structure == started.structure


KNOWN: dict[str, tuple[object, ...]] = {
    **{name: ([item, item],) for name, item in ITEMS.items()},
    "depth": ("quick", "thorough"),
    # With it, a report that the tests passed needs a receipt, and this agent runs nothing.
    "test_command": (),
}


@pytest.mark.inv("PLAN-2", "SRC-4")
def test_the_bundled_workflows_are_sound_and_the_prompts_of_each_can_be_walked(tmp_path: Path) -> None:
    catalog = local_ports(Settings(data_dir=tmp_path, workspace=None, user_workflows=None)).catalog
    entries = catalog.view(None).entries
    assert len(entries) >= 3
    assert all(workflow_id.startswith("wr.") for workflow_id in entries)
    assert catalog.view(None).refused == ()
    for entry in entries.values():
        assert isinstance(entry.document.content, WorkflowDocument)
        assert 2 <= len(entry.document.content.steps) <= 10
        assert entry.document.content.description
        assert isinstance(entry.compiled, Pinnable)
        assert entry.compiled.warnings == ()
        harness = Harness.in_memory()
        harness.workflows.put(entry.document.value, kind="bundled")
        played = Agent((Task(entry.workflow_id),), known=KNOWN).work(harness.call)
        assert played.is_complete
        assert played.steps
        for answer in played.answers:
            assert "[context key not set:" not in answer.text
            assert len(answer.text) < 10_000
    assert not list(tmp_path.iterdir())


SAID = {
    "debug": "wr.bug_investigation",
    "flaky test": "wr.bug_investigation",
    "pr review": "wr.code_review",
    "look at my code": "wr.code_review",
    "new feature": "wr.coding_task",
    "adr": "wr.design_decision",
    "readme": "wr.documentation",
    "outage": "wr.incident_review",
    "typo": "wr.quick_task",
    "tech debt": "wr.refactoring",
    "can we ship": "wr.release_readiness",
    "deploy": "wr.release_readiness",
    "look into": "wr.research",
    "coverage": "wr.test_gap_analysis",
    "debugg": "wr.bug_investigation",
    "refacotr": "wr.refactoring",
}
"""What people say, and the bundled workflow that they mean."""


@pytest.mark.inv("SRC-9")
def test_a_bundled_workflow_is_found_first_by_what_people_say(tmp_path: Path) -> None:
    catalog = local_ports(Settings(data_dir=tmp_path, workspace=None, user_workflows=None)).catalog
    entries = [entry for _, entry in sorted(catalog.view(None).entries.items())]
    commands = {query: ListCommand(workspace=None, query=query) for query in SAID}
    assert {query: matching_entries(entries, one)[0][0].workflow_id for query, one in commands.items()} == SAID


@pytest.mark.inv("SRC-9")
def test_keywords_are_searched_and_change_nothing_that_a_run_pins() -> None:
    plain = linear_workflow("team.deploy", "a")
    with_keywords = {**plain, "keywords": ["send it out", "roll out"]}
    harnesses = [Harness.in_memory(document) for document in (plain, with_keywords)]
    assert [found(harness, query="send it out") for harness in harnesses] == [[], ["team.deploy"]]
    inspected = [harness.call("inspect_workflow", {"workflowId": "team.deploy"}) for harness in harnesses]
    assert len({one["workflowHash"] for one in inspected}) == 1
    assert "roll out" not in inspected[1].text
