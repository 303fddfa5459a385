"""A repository whose configuration names a program in each way that git knows: no call of ours starts one (GIT-1)."""

import os
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.proofs import begun, proof, proving

from interlock.cli.main import main
from interlock.store.git import GitObserver, git_anchors
from interlock.store.git_process import GitCommand
from interlock.store.worktree import read_tree
from interlock.testing.harness import Harness

ENVIRONMENT = {
    **os.environ,
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.org",
}


def git(place: Path, *words: str) -> None:
    options = ("-c", "protocol.file.allow=always")
    subprocess.run(["git", *options, *words], cwd=place, env=ENVIRONMENT, check=True, capture_output=True)


def make_repository(place: Path) -> Path:
    place.mkdir(parents=True)
    git(place, "init", "-q", "-b", "main")
    (place / "a.txt").write_text("hello\n")
    (place / ".gitattributes").write_text("*.txt filter=evil diff=evil merge=evil\n")
    git(place, "add", ".")
    git(place, "commit", "-qm", "One")
    return place


def touch_content(place: Path) -> None:
    """Change a tracked file without its size: git must read it."""
    (place / "a.txt").write_text("hellp\n")


FILTER = '[filter "evil"]\n\tclean = {program}\n\trequired = true\n'
KINDS = {
    "clean": FILTER,
    "process": '[filter "evil"]\n\tprocess = {program}\n\trequired = true\n',
    "odd name": '[filter "e=v\\"i l.x"]\n\tclean = {program}\n',
    "monitor": "[core]\n\tfsmonitor = {program}\n",
    "programs": (
        "[core]\n\tpager = {program}\n\teditor = {program}\n\tsshCommand = {program}\n\taskPass = {program}\n"
        "\tgitProxy = {program}\n\talternateRefsCommand = {program}\n"
        '[credential]\n\thelper = {program}\n[diff]\n\texternal = {program}\n[diff "evil"]\n\ttextconv = {program}\n'
        '\tcommand = {program}\n[merge "evil"]\n\tdriver = {program}\n[pager]\n\tstatus = {program}\n'
        "[alias]\n\tstatus = !{program}\n\trev-parse = !{program}\n\tconfig = !{program}\n"
        "[trace2]\n\teventTarget = af_unix:/nowhere\n[gpg]\n\tprogram = {program}\n"
        "[status]\n\tsubmoduleSummary = true\n"
    ),
}


@pytest.fixture
def program(tmp_path: Path) -> Path:
    written = tmp_path / "program"
    written.write_text(f"#!/bin/sh\necho \"$0 $@\" >> '{tmp_path / 'ran'}'\ncat\n")
    written.chmod(0o755)
    return written


@pytest.fixture
def ran(tmp_path: Path) -> Callable[[], bool]:
    return (tmp_path / "ran").exists


def configure(repository: Path, text: str, program: Path) -> None:
    with (repository / ".git" / "config").open("a") as config:
        config.write(text.replace("{program}", str(program)))


def look(place: Path) -> None:
    """Read what Interlock reads of a repository."""
    assert git_anchors(place).branch is not None
    tree = read_tree(place)
    assert tree.digest is not None
    assert tree == read_tree(place)


@pytest.mark.inv("GIT-1", "PROOF-3")
@pytest.mark.parametrize("kind", KINDS)
def test_no_program_of_the_configuration_runs(
    tmp_path: Path, program: Path, ran: Callable[[], bool], kind: str
) -> None:
    place = make_repository(tmp_path / "repo")
    if kind == "odd name":
        (place / ".git" / "info").mkdir(exist_ok=True)
        (place / ".git" / "info" / "attributes").write_text('*.txt filter=e=v"i\n')
    configure(place, KINDS[kind], program)
    touch_content(place)
    look(place)
    assert not ran()
    if kind in {"clean", "process", "monitor"}:
        subprocess.run(["git", "status"], cwd=place, check=False, capture_output=True)
        assert ran(), "git itself starts it, so this test can fail"


@pytest.mark.inv("GIT-1")
@pytest.mark.parametrize("kind", ["include", "includeIf", "worktree"])
def test_no_program_of_another_file_of_the_configuration_runs(
    tmp_path: Path, program: Path, ran: Callable[[], bool], kind: str
) -> None:
    place = make_repository(tmp_path / "repo")
    text = FILTER.replace("{program}", str(program))
    (place / "evil.config").write_text(text)
    if kind == "worktree":
        (place / ".git" / "config.worktree").write_text(text)
        configure(place, "[extensions]\n\tworktreeConfig = true\n", program)
    else:
        section = "include" if kind == "include" else 'includeIf "gitdir:**"'
        configure(place, f"[{section}]\n\tpath = ../evil.config\n", program)
    touch_content(place)
    look(place)
    assert not ran()
    subprocess.run(["git", "status"], cwd=place, check=False, capture_output=True)
    assert ran()


@pytest.mark.inv("GIT-1", "PROOF-3")
def test_no_program_of_a_submodule_or_a_linked_work_tree_runs_and_their_changes_count(
    tmp_path: Path, program: Path, ran: Callable[[], bool]
) -> None:
    inner, place = make_repository(tmp_path / "inner"), make_repository(tmp_path / "repo")
    git(place, "submodule", "add", "-q", str(inner), "sub")
    git(place, "commit", "-qm", "Two")
    linked = tmp_path / "linked"
    git(place, "worktree", "add", "-q", "-b", "other", str(linked))
    configure(place, FILTER, program)
    for module in (place / ".git" / "modules").glob("*/config"):
        module.write_text(
            module.read_text()
            + FILTER.replace("{program}", str(program))
            + KINDS["monitor"].replace("{program}", str(program))
        )
    before = [read_tree(place), read_tree(linked)]
    assert None not in [one.digest for one in before]
    touch_content(place / "sub")
    touch_content(linked)
    after = [read_tree(place), read_tree(linked)]
    assert None not in [one.digest for one in after]
    assert before[0].digest != after[0].digest
    assert before[1].digest != after[1].digest
    git(place / "sub", "-c", "filter.evil.clean=cat", "commit", "-qam", "Moved")
    assert read_tree(place).digest not in {before[0].digest, after[0].digest}
    (tmp_path / "ran").unlink(missing_ok=True)
    look(place)
    look(linked)
    assert not ran()


@pytest.mark.inv("GIT-1")
def test_no_hook_and_no_remote_of_missing_objects_runs(tmp_path: Path, program: Path, ran: Callable[[], bool]) -> None:
    place = make_repository(tmp_path / "repo")
    hooks = place / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-index-change", "fsmonitor-watchman", "pre-auto-gc", "reference-transaction"):
        (hooks / name).symlink_to(program)
    (place / ".git" / "info").mkdir(exist_ok=True)
    os.utime(place / "a.txt", (1, 1))
    look(place)
    configure(
        place,
        "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tpartialClone = origin\n"
        '[protocol "ext"]\n\tallow = always\n'
        '[remote "origin"]\n\turl = ext::{program}\n\tpromisor = true\n',
        program,
    )
    for found in (place / ".git" / "objects").glob("??/*"):
        found.unlink()
    assert read_tree(place).digest is None, "what cannot be read is unknown"
    assert git_anchors(place).branch == "main"
    assert not ran()


@pytest.mark.inv("GIT-1", "PROOF-3")
def test_a_repository_with_longer_ids_has_its_commit_and_a_digest(tmp_path: Path) -> None:
    place = tmp_path / "repo"
    place.mkdir()
    git(place, "init", "-q", "-b", "main", "--object-format=sha256")
    git(place, "commit", "-q", "--allow-empty", "-m", "One")
    commit = git_anchors(place).head_sha
    assert commit is not None
    assert len(commit) == 64
    assert read_tree(place).commit == commit
    assert read_tree(place).digest is not None


@pytest.mark.inv("GIT-1")
def test_values_of_the_configuration_that_name_no_program_count(tmp_path: Path) -> None:
    place = make_repository(tmp_path / "repo")
    (place / ".gitattributes").unlink()
    git(place, "commit", "-qam", "Two")
    clean = read_tree(place).digest
    (place / "a.txt").chmod(0o755)
    assert read_tree(place).digest != clean
    git(place, "config", "core.fileMode", "false")
    assert read_tree(place).digest == clean


@pytest.mark.inv("GIT-1")
def test_a_relative_directory_of_the_path_is_not_searched(
    tmp_path: Path, program: Path, ran: Callable[[], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = make_repository(tmp_path / "repo")
    (place / "git").symlink_to(program)
    monkeypatch.setenv("PATH", f".{os.pathsep}{os.environ['PATH']}")
    assert git_anchors(place).branch == "main"
    assert not ran()


@pytest.mark.inv("GIT-1")
def test_a_tree_without_filters_and_submodules_costs_two_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, calls = make_repository(tmp_path / "repo"), list[str]()
    run = GitCommand.run

    def counted(self: GitCommand, *arguments: str) -> bytes | None:
        calls.append(arguments[0])
        return run(self, *arguments)

    monkeypatch.setattr(GitCommand, "run", counted)
    read_tree(place)
    assert calls == ["config", "status"]


@pytest.mark.inv("GIT-1", "PROOF-3")
def test_no_call_of_an_agent_and_no_command_starts_a_program_of_the_project(
    tmp_path: Path, program: Path, ran: Callable[[], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = make_repository(tmp_path / "repo")
    for text in KINDS.values():
        configure(place, text, program)
    touch_content(place)
    monkeypatch.chdir(place)
    observer, data = GitObserver(), tmp_path / "data"
    harness = Harness.on_disk(data, proving(proof(tree="unchanged")))
    read = replace(harness.ports.read, anchors=observer.find, anchors_again=observer.find_again, tree=read_tree)
    harness = replace(harness, ports=replace(harness.ports, read=read), workspace=place)
    answer = begun(harness)
    harness.rehydrate(answer)
    assert main(["--data-dir", str(data), "witness", str(answer["run"]["label"]), "--", "make", "test"]) != 0
    assert main(["--data-dir", str(data), "witness", str(answer["run"]["label"]), "--", "true"]) == 0
    harness.advance(answer, notes="Mended the parser, and the tests pass.")
    harness.resume(gitBranch="main")
    for command in (["session", "list"], ["doctor"], ["session", "verify"], ["inbox"]):
        main(["--data-dir", str(data), *command])
    assert not ran()
