"""Runs compared, searched, and seen from the place where they were worked on."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.history import HOSTILE, Place, begun_at, label_of, redone
from tests.support.modes import with_artifacts

from interlock.cli.main import main
from interlock.config.applied import applied_config_hash
from interlock.config.data_dir import PlaceArguments
from interlock.config.model import FaultyConfig
from interlock.config.ports import local_ports
from interlock.config.settings import read_settings
from interlock.kernel.canonical import digest_of
from interlock.store.git import GitAnchors
from interlock.testing.harness import Harness, ToolResult, linear_workflow

SHIP = linear_workflow("team.ship", "a", "b", "c", name="Ship it")


@pytest.fixture
def harness(place: Place) -> Harness:
    return place.serving(SHIP)


def played(harness: Harness, notes: str, artifact: dict[str, object], **start: object) -> ToolResult:
    first = harness.start("team.ship", **start)
    harness.advance(harness.advance(first, None, output=with_artifacts(artifact, notes=notes)), "The same.")
    return first


@pytest.mark.inv("EVD-6")
def test_two_runs_are_compared_step_by_step(place: Place, harness: Harness) -> None:
    one = played(harness, "Built it.\nTwice.", {"kind": "a", "n": 1, "verdict": "failed"}, context={"size": 1})
    two = played(harness, "Built it.\nOnce.", {"kind": "a", "n": 1, "verdict": "passed"}, context={"size": 2})
    result = place.run("diff", label_of(one), label_of(two))
    assert (result.code, result.err) == (1, "")
    assert result.out.splitlines()[2:] == [
        "step 1, Step a",
        "  notes",
        "    @@ -1,2 +1,2 @@",
        "     Built it.",
        "    -Twice.",
        "    +Once.",
        "  a: verdict",
        "    A: failed",
        "    B: passed",
        "step 2, Step b: the same",
        "step 3, Step c: the same",
        "At the end",
        "  context: size",
        "    A: 1",
        "    B: 2",
    ]
    value = place.run("diff", label_of(one), label_of(two), "--json").json()
    assert [(step["stepId"], step["side"], len(step["changes"])) for step in value["steps"]] == [
        ("a", "both", 2),
        ("b", "both", 0),
        ("c", "both", 0),
    ]
    assert [change["what"] for change in value["context"]] == ["context: size"]


@pytest.mark.inv("EVD-6")
def test_a_run_does_not_differ_from_itself(place: Place, harness: Harness) -> None:
    one = played(harness, "Built it.", {"kind": "a"})
    result = place.run("diff", label_of(one), label_of(one))
    assert (result.code, result.out.splitlines()[-1]) == (0, "Nothing differs in path, evidence, context or text.")


@pytest.mark.inv("EVD-6")
def test_two_branches_of_a_run_are_compared_by_their_nodes(place: Place, harness: Harness) -> None:
    one = played(harness, "Built it.", {"kind": "a"})
    redone(harness, one, "Built otherwise.")
    (run,) = place.run("show", "--json").json()["runs"]
    nodes = [branch["node"] for branch in run["branches"]]
    value = place.run("diff", *nodes, "--json").json()
    sides = {step["stepId"]: step["side"] for step in value["steps"]}
    assert sides["a"] == "both"
    assert sorted(sides.values()) == ["both", "both", "first"] or sorted(sides.values()) == ["both", "both", "second"]


@pytest.mark.inv("EVD-7")
@pytest.mark.parametrize(
    ("words", "where", "step"),
    [
        (["built", "it"], "notes", "Step a"),
        (["zebra"], "artifact", "Step a"),
        (["Ada"], "context owner", None),
        (["missing", "output.notesMarkdown"], "refusal", None),
        (["team.ship"], "workflow", None),
        (["zbera"], "artifact", "Step a"),
    ],
)
def test_everything_that_was_recorded_is_found_with_its_place(
    place: Place, harness: Harness, words: list[str], where: str, step: str | None
) -> None:
    first = harness.start("team.ship", context={"owner": "Ada"})
    second = harness.advance(first, None, output=with_artifacts({"kind": "a", "animal": "zebra"}, notes="Built it."))
    harness.advance(second, None)
    result = place.run("search", *words, "--json").json()
    hit = result["passages"][0]
    assert (hit["where"], hit["label"]) == (where, label_of(first))
    assert step is None or hit["step"]["title"] == step
    said = place.run("search", *words)
    assert (said.code, f"run {label_of(first)}" in said.out) == (0, True)
    assert ("one letter is wrong" in said.out) == (words == ["zbera"])


@pytest.mark.inv("EVD-7")
def test_a_search_without_a_match_ends_with_1_and_text_of_others_is_shown_on_one_line(
    place: Place, harness: Harness
) -> None:
    harness.start("team.ship", goal=HOSTILE)
    none = place.run("search", "elephant")
    assert (none.code, none.out) == (1, "Nothing that was recorded matches.\n")
    found = place.run("search", "owned").out
    assert "\x1b" not in found
    assert "\u202e" not in found
    assert place.run("search", "owned", "--limit", "0").code == 2


@pytest.mark.inv("EVD-8")
def test_the_pinned_plan_of_a_run_is_shown_after_its_source_changed(place: Place, harness: Harness) -> None:
    first = harness.start("team.ship")
    place.serving(linear_workflow("team.ship", "a"))
    shown = place.run("plan", label_of(first)).out
    assert f"Run {label_of(first)}\nShip it (team.ship)\n" in shown
    assert "3. Step c (`c`)" in shown
    (run,) = place.run("plan", "--json").json()["runs"]
    (result,) = place.run("show", "--json").json()["runs"]
    assert run["workflowHash"] == result["workflowHash"] == digest_of(harness_plan(harness, first))


def harness_plan(harness: Harness, first: ToolResult) -> object:
    session = harness.store.load(harness.session_of(first))
    assert session is not None
    (run,) = session.runs.values()
    return json.loads(harness.store.workflow_bytes(run.workflow_hash))


@pytest.mark.inv("CFG-5")
def test_a_run_records_the_configuration_under_which_it_began(place: Place, harness: Harness, tmp_path: Path) -> None:
    settings = read_settings({}, PlaceArguments(data_dir=str(tmp_path / "other")))
    assert not isinstance(settings, FaultyConfig)
    digest = applied_config_hash(settings)
    assert local_ports(settings).config_hash == digest
    configured = replace(harness, ports=replace(harness.ports, config_hash=digest))
    first = configured.start("team.ship")
    (run,) = place.run("show", "--json").json()["runs"]
    assert run["appliedConfigHash"] == digest
    assert f"- **Configuration:** {digest}" in place.run("report").out
    assert place.run("verify", label_of(first)).code == 0


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a repository that is the current directory, with a workflow file."""
    root = tmp_path / "shop"
    (root / ".interlock" / "workflows").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    (root / ".interlock" / "workflows" / "team.ship.json").write_text(json.dumps(SHIP), encoding="utf-8")
    monkeypatch.chdir(root)
    return root


def of_project(harness: Harness, root: str) -> ToolResult:
    return begun_at(harness, GitAnchors(repo_root=root, branch="main", head_sha="a1" * 20)).start("team.ship")


@pytest.mark.inv("EVD-9")
def test_a_list_names_projects_and_shows_those_of_this_one_inside_it(
    place: Place, harness: Harness, project: Path
) -> None:
    mine, other = of_project(harness, str(project)), of_project(harness, "/home/ada/library")
    unknown = harness.start("team.ship")

    def labels(*options: str) -> set[str]:
        return {run["label"] for run in place.run("list", *options, "--json").json()["runs"]}

    assert labels() == {label_of(mine), label_of(unknown)}
    assert labels("--here") == {label_of(mine)}
    assert labels("--everywhere") == {label_of(mine), label_of(other), label_of(unknown)}
    said = place.run("list").out
    assert "1 run of other projects: --everywhere" in said
    assert said.startswith("PROJECT  SESSION")
    projects = {run["label"]: run["project"] for run in place.run("list", "--everywhere", "--json").json()["runs"]}
    assert projects == {label_of(mine): "shop", label_of(other): "library", label_of(unknown): ""}


@pytest.mark.inv("EVD-8")
def test_a_changed_moved_or_removed_source_is_shown_for_open_runs_of_this_project(
    place: Place, harness: Harness, project: Path
) -> None:
    of_project(harness, str(project))
    source = project / ".interlock" / "workflows" / "team.ship.json"

    def drift() -> tuple[str | None, str | None]:
        listed = place.run("list", "--json").json()["runs"][0]["drift"]
        shown = place.run("show", "--json").json()["runs"][0]["drift"]
        assert (f"source {listed}" in place.run("list").out) == (listed is not None)
        assert ("since the run began" in place.run("show").out) == (shown is not None)
        return listed, shown

    assert drift() == (None, None)
    source.write_text(json.dumps({**SHIP, "name": "Ship that"}), encoding="utf-8")
    assert drift() == ("changed", "changed")
    source.unlink()
    assert drift() == ("removed", "removed")
    (project / ".interlock" / "workflows" / "new.json").write_text(json.dumps(SHIP), encoding="utf-8")
    assert drift() == ("moved", "moved")


@pytest.mark.inv("EVD-8")
def test_a_run_that_began_outside_of_git_is_not_compared_with_the_files_that_happen_to_be_here(
    place: Place, harness: Harness, project: Path
) -> None:
    harness.start("team.ship")
    (project / ".interlock" / "workflows" / "team.ship.json").unlink()
    assert place.run("list", "--json").json()["runs"][0]["drift"] is None
    assert place.run("show", "--json", "--workspace", str(project)).json()["runs"][0]["drift"] is None


@pytest.mark.inv("EVD-9")
def test_the_workflows_of_a_project_are_found_from_below_its_root(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    below = project / "src" / "deep"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    monkeypatch.setenv("INTERLOCK_DATA_DIR", str(tmp_path / "data"))
    for name in ("INTERLOCK_WORKSPACE", "CLAUDE_PROJECT_DIR"):
        monkeypatch.delenv(name, raising=False)
    assert main(["workflow", "list", "--json"]) == 0
    assert "team.ship" in {one["workflowId"] for one in json.loads(capsys.readouterr().out)["workflows"]}
    assert main(["workflow", "list", "--json", "--workspace", "."]) == 0
    assert "team.ship" not in {one["workflowId"] for one in json.loads(capsys.readouterr().out)["workflows"]}


def test_the_built_ins_are_listed_from_the_definitions_of_the_compiler(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["workflow", "builtins", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    contracts = {one["contractRef"]: one for one in result["contracts"]}
    assert contracts["wr.contracts.verification_report"]["schema"]["properties"]["verdict"]["enum"]
    assert all(one["steps"] for one in result["routines"])
    assert [one["featureId"] for one in result["features"]]
    assert all(one["text"] for one in result["references"])
    capabilities = [one["id"] for one in result["capabilities"]]
    assert capabilities == ["delegation", "web_browsing"]
    assert main(["workflow", "builtins"]) == 0
    said = capsys.readouterr().out
    assert all(ref in said for ref in (*contracts, *capabilities))
