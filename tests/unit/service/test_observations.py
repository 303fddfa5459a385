"""Where a run began in git is recorded with it, quietly, and never at the cost of the start."""

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.tampering import Tampering

from interlock.kernel.canonical import digest_of_bytes
from interlock.record.events import ObservationRecordedEvent
from interlock.service.audit.verify import verify_session
from interlock.service.run.plans import Plans
from interlock.store.git import GitObserver, git_anchors
from interlock.store.local.store import LocalStore
from interlock.store.ports.workspace import NOWHERE, GitAnchors
from interlock.testing.harness import Harness, ToolResult, linear_workflow

GIT = shutil.which("git")
needs_git = pytest.mark.skipif(GIT is None, reason="git is not installed")
SHA = "1" * 40


def git(place: Path, *arguments: str) -> str:
    assert GIT is not None
    who = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
    environment = {**os.environ, **who, "GIT_CONFIG_GLOBAL": os.devnull}
    done = subprocess.run([GIT, *arguments], cwd=place, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    place = (tmp_path / "repo").resolve()
    place.mkdir()
    git(place, "init", "-q", "-b", "feature/login")
    git(place, "commit", "-q", "--allow-empty", "-m", "first")
    return place


def observed(harness: Harness, answer: ToolResult) -> list[tuple[str | None, str, str]]:
    events = harness.events(harness.session_of(answer))
    return [
        (event.scope.run_id if event.scope is not None else None, event.data.key, event.data.value.value)
        for event in events
        if isinstance(event, ObservationRecordedEvent)
    ]


def at(harness: Harness, anchors: GitAnchors, *, keeps_repo_root: bool = False) -> Harness:
    """The same harness, called from a place in git."""

    def result(_workspace: Path | None) -> GitAnchors:
        return anchors

    read = replace(harness.ports.read, anchors=result)
    return replace(harness, ports=replace(harness.ports, read=read, keeps_repo_root=keeps_repo_root))


def standing(anchors: GitAnchors, *, keeps_repo_root: bool = False) -> Harness:
    return at(Harness.in_memory(linear_workflow("test.abc", "a")), anchors, keeps_repo_root=keeps_repo_root)


@needs_git
@pytest.mark.inv("OBS-1")
def test_git_tells_root_branch_and_commit_from_any_directory_below(repository: Path) -> None:
    below = repository / "deep" / "er"
    below.mkdir(parents=True)
    expected = GitAnchors(
        repo_root=str(repository), branch="feature/login", head_sha=git(repository, "rev-parse", "HEAD")
    )
    assert git_anchors(repository) == git_anchors(below) == expected


@needs_git
@pytest.mark.inv("OBS-1")
def test_where_there_is_no_branch_no_commit_or_no_repository_there_is_that_much_less(repository: Path) -> None:
    git(repository, "checkout", "-q", "--detach")
    assert git_anchors(repository).branch is None
    assert git_anchors(repository).head_sha is not None
    fresh = repository.parent / "fresh"
    fresh.mkdir()
    git(fresh, "init", "-q")
    assert git_anchors(fresh) == GitAnchors(repo_root=str(fresh))
    outside = repository.parent / "outside"
    outside.mkdir()
    for place in (outside, outside / "missing", None):
        assert git_anchors(place) == NOWHERE


@pytest.mark.inv("OBS-1")
@pytest.mark.parametrize("script", ["sleep 5", "exit 1", "printf '\\377\\376'", "echo nonsense"])
def test_a_git_that_hangs_fails_or_babbles_gives_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    fake = tmp_path / "git"
    fake.write_text(f"#!/bin/sh\n{script}\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert git_anchors(tmp_path) == NOWHERE


@pytest.mark.inv("OBS-1")
def test_without_git_there_is_nothing_and_no_complaint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git_anchors(tmp_path) == NOWHERE


@pytest.mark.produces("event:observation_recorded")
@pytest.mark.inv("OBS-1")
def test_a_start_records_where_it_is_and_the_path_only_where_it_is_asked_for() -> None:
    here = GitAnchors(repo_root="/repo", branch="main", head_sha=SHA)
    digest = digest_of_bytes(b"/repo")
    expected = [(None, "git_branch", "main"), (None, "git_head_sha", SHA), (None, "repo_root_hash", digest)]
    quiet, telling = standing(here), standing(here, keeps_repo_root=True)
    assert observed(quiet, quiet.start("test.abc")) == expected
    assert observed(telling, telling.start("test.abc")) == [*expected, (None, "repo_root", "/repo")]


@needs_git
@pytest.mark.inv("OBS-1")
def test_a_workspace_in_no_repository_is_known_by_the_path_that_a_process_in_it_reads(
    repository: Path, tmp_path: Path
) -> None:
    place, link = tmp_path / "plain", tmp_path / "link"
    place.mkdir()
    link.symlink_to(place)
    found = GitObserver().find(link)
    assert found == GitAnchors(workspace=str(place.resolve()))
    assert GitObserver().find(repository).workspace is None
    harness = standing(found)
    expected = [(None, "workspace_hash", digest_of_bytes(str(place.resolve()).encode()))]
    assert observed(harness, harness.start("test.abc")) == expected


@pytest.mark.inv("OBS-5")
def test_a_run_that_joins_a_session_records_where_it_is_for_itself() -> None:
    harness = standing(GitAnchors(branch="main"))
    first = harness.start("test.abc")
    session = str(harness.session_of(first))
    for branch in ("dev", "main"):
        at(harness, GitAnchors(branch=branch)).start("test.abc", sessionId=session)
    fold = harness.ports.read.reader.load(harness.session_of(first))
    assert fold is not None
    runs = sorted(fold.runs.values(), key=lambda run: run.index)
    assert [fold.observed(run.run, "git_branch") for run in runs] == ["main", "dev", "main"]


@pytest.mark.inv("OBS-2")
def test_what_is_longer_than_a_value_may_be_is_left_out() -> None:
    harness = standing(GitAnchors(repo_root="/" + "r" * 512), keeps_repo_root=True)
    assert [key for _, key, _ in observed(harness, harness.start("test.abc"))] == ["repo_root_hash"]


def in_place(repository: Path) -> Harness:
    """A harness whose calls come from a repository."""
    git_observer = GitObserver()
    harness = Harness.in_memory(linear_workflow("test.abc", "a", "b", "c", "d", "e"))
    read = replace(harness.ports.read, anchors=git_observer.find, anchors_again=git_observer.find_again)
    return replace(harness, ports=replace(harness.ports, read=read), workspace=repository)


@needs_git
@pytest.mark.inv("OBS-6")
def test_an_attempt_records_a_change_of_branch_also_a_change_back(repository: Path) -> None:
    harness = in_place(repository)
    start = answer = harness.start("test.abc")
    began = observed(harness, start)
    first_sha = git(repository, "rev-parse", "HEAD")
    answer = harness.advance(answer, notes="Nothing changed.")
    assert observed(harness, start) == began
    git(repository, "checkout", "-q", "-b", "dev")
    git(repository, "commit", "-q", "--allow-empty", "-m", "second")
    sent = answer
    answer = harness.advance(sent, notes="Changed the branch.")
    git(repository, "checkout", "-q", "feature/login")
    assert harness.advance(sent, notes="Changed the branch.") == answer, "a repeated call records nothing"
    answer = harness.advance(answer, notes="And back.")
    run = start["run"]["runId"]
    second_sha = git(repository, "rev-parse", "dev")
    assert observed(harness, start)[len(began) :] == [
        (run, "git_branch", "dev"),
        (run, "git_head_sha", second_sha),
        (run, "git_branch", "feature/login"),
        (run, "git_head_sha", first_sha),
    ]
    assert verify_session(harness.ports.read.reader, harness.ports.read.plans, harness.session_of(start)) == ()


@needs_git
@pytest.mark.inv("OBS-6")
def test_a_second_look_starts_git_only_if_the_branch_or_the_commit_changed(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = list[Path | None]()

    def counted(workspace: Path | None) -> GitAnchors:
        looks.append(workspace)
        return git_anchors(workspace)

    monkeypatch.setattr("interlock.store.git.git_anchors", counted)
    git_observer, below = GitObserver(), repository / "below"
    below.mkdir()
    tree = repository.parent / "tree"
    changes = [
        ("commit", "-q", "--allow-empty", "-m", "second"),
        ("checkout", "-q", "-b", "dev"),
        ("pack-refs", "--all"),
        ("commit", "-q", "--allow-empty", "-m", "third"),
        ("checkout", "-q", "--detach", "HEAD~1"),
    ]
    git(repository, "worktree", "add", "-q", "-b", "other", str(tree))
    for place, in_tree in ((below, False), (tree, True)):
        assert git_observer.find_again(place) == git_observer.find_again(place) == git_anchors(place)
        for change in changes if not in_tree else changes[:1]:
            git(tree if in_tree else repository, *change)
            looks.clear()
            assert git_observer.find_again(place) == git_observer.find_again(place) == git_anchors(place)
            assert looks == [place], change
    assert git_observer.find_again(None) == NOWHERE


@needs_git
@pytest.mark.inv("OBS-6")
def test_another_repository_is_not_the_position_of_a_run(repository: Path) -> None:
    harness = in_place(repository)
    answer = harness.start("test.abc")
    began = observed(harness, answer)
    other = repository.parent / "other"
    other.mkdir()
    git(other, "init", "-q", "-b", "elsewhere")
    git(other, "commit", "-q", "--allow-empty", "-m", "first")
    replace(harness, workspace=other).advance(answer)
    assert observed(harness, answer) == began


@needs_git
@pytest.mark.inv("OBS-6", "RES-1")
def test_a_run_is_found_by_the_branch_that_it_moved_to_also_after_a_refusal(repository: Path) -> None:
    harness = in_place(repository)
    answer = harness.start("test.abc")
    git(repository, "checkout", "-q", "-b", "late")
    refused = harness.advance(answer, notes=None)
    assert refused["kind"] == "blocked"
    [candidate] = harness.resume(gitBranch="late")["candidates"]
    assert candidate["whyMatched"] == ["matched_branch"]


@needs_git
@pytest.mark.damages
@pytest.mark.inv("OBS-6", "VERIFY-1")
@pytest.mark.parametrize("value", ["feature/login", "dev"])
def test_verify_reports_an_observation_that_repeats_the_last_one(tmp_path: Path, repository: Path, value: str) -> None:
    placed = in_place(repository)
    disk = Harness.on_disk(tmp_path / "data", linear_workflow("test.abc", "a", "b", "c"))
    read = replace(disk.ports.read, anchors=placed.ports.read.anchors, anchors_again=placed.ports.read.anchors_again)
    harness = replace(disk, ports=replace(disk.ports, read=read), workspace=repository)
    answer = harness.start("test.abc")
    git(repository, "checkout", "-q", "-b", "dev")
    harness.advance(answer)
    altered = Tampering(tmp_path / "data")
    altered.alter("observation_recorded", lambda event: event["data"]["value"].update(value=value), number=3)
    store = LocalStore(tmp_path / "data")
    found = verify_session(store, Plans(store), altered.session)
    assert [one.code for one in found] == (["effect_mismatch"] if value == "feature/login" else [])
