"""Resume: the right run from a few words, the same every time, and nothing that was not asked for."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.history import begun_at

from interlock.define.schemas import flat_schema
from interlock.kernel.budgets import (
    BRANCH_DIGEST_CHARS,
    CANDIDATE_SNIPPET_BYTES_MAX,
    CANDIDATES_MAX,
    QUERY_BYTES_MAX,
    SHORT_STRING_CHARS_MAX,
)
from interlock.kernel.errors import ErrorCode
from interlock.kernel.ids import RunId, SessionId
from interlock.kernel.text import TRUNCATION_MARKER, utf8_bytes
from interlock.server.tools import tool_named
from interlock.store.local import layout
from interlock.store.local.files import OsFiles
from interlock.store.local.session import session_log
from interlock.store.ports.workspace import GitAnchors
from interlock.testing.harness import CounterClock, Harness, ToolResult, linear_workflow
from interlock.views.session import Session

REPO, OTHER = "/repo/one", "/repo/two"
SHA, OTHER_SHA = "1" * 40, "2" * 40


class TickingClock(CounterClock):
    """A clock that goes on by a second each time it is asked, so that later is later."""

    def __init__(self) -> None:
        super().__init__()
        self._ms = 1_735_689_600_000

    def unix_ms(self) -> int:
        self._ms += 1_000
        return self._ms


def standing(branch: str | None = None, sha: str | None = None, root: str | None = None) -> Callable[[Any], GitAnchors]:
    return lambda _workspace: GitAnchors(repo_root=root, branch=branch, head_sha=sha)


def at(harness: Harness, **anchors: str) -> Harness:
    """The same harness, called from a place in git."""
    read = replace(harness.ports.read, anchors=standing(**anchors))
    return replace(harness, ports=replace(harness.ports, read=read))


@pytest.fixture(params=["memory", "disk"])
def harness(request: pytest.FixtureRequest, tmp_path: Path) -> Harness:
    documents = (linear_workflow("test.abc", "a", "b"), linear_workflow("team.review", "look", name="Careful review"))
    made = Harness.in_memory(*documents) if request.param == "memory" else Harness.on_disk(tmp_path / "d", *documents)
    return replace(made, ports=replace(made.ports, clock=TickingClock()))


def runs(answer: ToolResult) -> list[str]:
    assert not answer.is_error, answer.text
    return [one["run"]["runId"] for one in answer["candidates"]]


def why(answer: ToolResult) -> list[list[str]]:
    return [one["whyMatched"] for one in answer["candidates"]]


def run_of(answer: ToolResult) -> str:
    return str(answer["run"]["runId"])


@pytest.mark.inv("RES-1")
def test_the_locked_tiers_come_in_their_order(harness: Harness) -> None:
    at_sha = at(harness, sha=SHA, branch="x", root=REPO).start("test.abc")
    on_branch = at(harness, branch="feature/login-form").start("test.abc")
    noted = harness.start("test.abc")
    harness.advance(noted, "The login page is done.")
    named = Harness.over(
        harness.store,
        linear_workflow("team.login", "look"),
        clock=harness.ports.clock,
        keys=harness.ports.key_ring,
    ).start("team.login")
    aimed = harness.start("test.abc", goal="Repair the login")
    found = harness.resume("login", gitHeadSha=SHA, gitBranch="feature/")
    assert runs(found) == [run_of(one) for one in (at_sha, on_branch, noted, named, aimed)]
    assert why(found) == [
        ["matched_head_sha"],
        ["matched_branch"],
        ["matched_notes"],
        ["matched_workflow_id"],
        ["matched_goal"],
    ]


@pytest.mark.inv("RES-1")
def test_within_a_tier_the_callers_repository_then_open_runs_then_the_latest_come_first(harness: Harness) -> None:
    here = at(harness, root=REPO)
    open_here = here.start("test.abc")
    done_here = here.start("team.review")
    here.advance(done_here)
    older, newer = harness.start("test.abc"), at(harness, root=OTHER).start("test.abc")
    assert runs(here.resume()) == [run_of(one) for one in (open_here, done_here, newer, older)]
    here.advance(older)
    assert runs(here.resume()) == [run_of(one) for one in (open_here, done_here, older, newer)]


@pytest.mark.inv("RES-1")
def test_a_next_call_sent_as_it_stands_shows_the_pending_step(harness: Harness) -> None:
    harness.advance(harness.start("test.abc", goal="Repair the login"), "Looked at the form.")
    (found,) = harness.resume("login")["candidates"]
    shown = harness.call(found["nextCall"]["tool"], found["nextCall"]["arguments"])
    assert shown["pending"]["stepId"] == "b"
    assert "Looked at the form." in shown.text
    assert (found["status"], found["pendingStep"]) == ("in_progress", "step 2 of 2: Step b")
    assert found["title"] == "Workflow test.abc: Repair the login"
    assert harness.advance(shown)["isComplete"]


@pytest.mark.inv("RES-2", "RES-5")
def test_words_are_found_after_normalisation_and_approximate_matches_are_said_to_be_so(harness: Harness) -> None:
    noted = harness.start("test.abc")
    harness.advance(noted, "\uff3aebra crossing, half-done")
    harness.start("test.abc", goal="Something else")
    for query in ("ZEBRA half-done", "zebr", "half done"):
        found = harness.resume(query)
        assert (runs(found), "reason" in found.structure) == ([run_of(noted)], False), query
    for query, said in (("zbera", "one letter is wrong"), ("zebra unicorn", "the most of them")):
        found = harness.resume(query)
        assert (runs(found), said in found["reason"]) == ([run_of(noted)], True), query
    for query in ("unicorn", "ze", "zebra unicorn pink giraffe"):
        assert why(harness.resume(query))[0] == ["recency_fallback"], query


@pytest.mark.inv("RES-5")
def test_a_commit_is_found_by_its_beginning_if_only_one_commit_has_it(harness: Harness) -> None:
    first = begun_at(harness, GitAnchors(repo_root=None, branch=None, head_sha="ab12" + "0" * 36)).start("test.abc")
    begun_at(harness, GitAnchors(repo_root=None, branch=None, head_sha="ab13" + "0" * 36)).start("test.abc")
    found = harness.resume(gitHeadSha="ab12")
    assert (runs(found), why(found)) == ([run_of(first)], [["matched_head_sha"]])
    assert why(harness.resume(gitHeadSha="ab1"))[0] == ["recency_fallback"]


def test_words_of_goal_notes_and_name_find_a_run_together(harness: Harness) -> None:
    one = harness.start("team.review", goal="Repair the login")
    harness.start("team.review", goal="Repair the logout")
    found = harness.resume("careful login")
    assert (runs(found), why(found)) == ([run_of(one)], [["matched_goal"]])
    assert runs(harness.resume(one["run"]["label"])) == [run_of(one)]


def test_only_the_notes_of_where_a_run_stands_are_searched(harness: Harness) -> None:
    second = harness.advance(harness.start("test.abc"), "zebra")
    harness.checkpoint(second, "okapi")
    assert why(harness.resume("okapi")) == [["matched_notes"]]
    assert why(harness.resume("zebra")) == [["recency_fallback"]], "superseded by the checkpoint's"


@pytest.mark.inv("RES-8")
def test_after_refused_attempts_a_run_is_found_by_its_words_and_shows_its_last_notes() -> None:
    decide = {"id": "b", "title": "B", "prompt": "Decide.", "outputContract": {"contractRef": "wr.contracts.decision"}}
    harness = Harness.in_memory(linear_workflow("test.decide", "a", decide, "c"))
    second = harness.advance(harness.start("test.decide"), "zebra")
    harness.start("test.decide")
    refused = harness.advance(second, None)
    (found,) = harness.resume("zebra")["candidates"]
    assert (found["whyMatched"], found["snippet"], found["status"]) == (["matched_notes"], "zebra", "blocked")
    refused = harness.advance(refused, None, output={"notesMarkdown": "okapi"})
    harness.advance(refused, None)
    for word in ("zebra", "okapi"):
        (found,) = harness.resume(word)["candidates"]
        assert (found["whyMatched"], found["snippet"]) == (["matched_notes"], "okapi\n\nzebra")


@pytest.mark.inv("RES-2")
def test_an_id_is_matched_exactly_and_an_unknown_one_offers_nothing(harness: Harness) -> None:
    first = harness.start("test.abc")
    joined = harness.start("test.abc", sessionId=str(harness.session_of(first)))
    harness.start("test.abc")
    session = str(harness.session_of(first))
    assert runs(harness.resume(sessionId=session)) == [run_of(joined), run_of(first)]
    assert runs(harness.resume(runId=run_of(first))) == [run_of(first)]
    assert why(harness.resume(sessionId=session, runId=run_of(first))) == [["matched_session_id", "matched_run_id"]]
    for unknown in ({"sessionId": "sess_" + "0" * 26}, {"runId": "run_" + "0" * 26}):
        found = harness.resume("abc", **unknown)
        assert found["candidates"] == []
        assert "There is no" in found["reason"]
        assert found["reason"] in found.text


@pytest.mark.inv("RES-2")
def test_what_matches_nothing_is_offered_with_that_reason(harness: Harness) -> None:
    harness.start("test.abc")
    for query, said in (
        ("unicorn", "Nothing matches"),
        ("¿?", "no searchable word"),
        ("ログイン", "Nothing matches"),
    ):
        found = harness.resume(query)
        assert why(found) == [["recency_fallback"]]
        assert said in found["reason"]
    assert "reason" not in harness.resume().structure


def test_an_empty_data_directory_says_how_to_begin(harness: Harness) -> None:
    found = harness.resume("anything")
    assert found["candidates"] == []
    assert "`start_workflow`" in found["reason"]


@pytest.mark.inv("RES-1")
def test_five_are_shown_and_the_rest_is_counted(harness: Harness) -> None:
    for _ in range(CANDIDATES_MAX + 2):
        harness.start("test.abc")
    found = harness.resume()
    assert len(found["candidates"]) == CANDIDATES_MAX
    assert found["more"] == 2
    assert "2 more" in found.text
    assert harness.resume() == found, "the same for the same stored sessions"


def test_without_words_the_callers_branch_and_commit_are_what_is_looked_for(harness: Harness) -> None:
    mine = at(harness, branch="mine", sha=SHA, root=REPO).start("test.abc")
    at(harness, branch="other", sha=OTHER_SHA, root=REPO).start("test.abc")
    found = at(harness, branch="mine", sha=OTHER_SHA, root=REPO).resume()
    assert why(found)[0] == ["matched_head_sha"]
    assert run_of(mine) in runs(found)
    assert why(at(harness, branch="mine", root=REPO).resume()) == [["matched_branch"]]


@pytest.mark.inv("RES-6")
def test_a_snippet_is_short_and_says_that_it_is_cut(harness: Harness) -> None:
    harness.advance(harness.start("test.abc"), "é" * 2_000)
    (found,) = harness.resume()["candidates"]
    assert utf8_bytes(found["snippet"]) <= CANDIDATE_SNIPPET_BYTES_MAX
    assert found["snippet"].endswith(TRUNCATION_MARKER)


@pytest.mark.parametrize(
    "arguments", [{"sessionId": "nope"}, {"runId": "sess_" + "0" * 26}, {"query": "x" * (QUERY_BYTES_MAX + 1)}]
)
def test_what_cannot_be_meant_is_refused_with_the_corrected_call(harness: Harness, arguments: dict[str, str]) -> None:
    assert harness.resume(**arguments).code is ErrorCode.VALIDATION_ERROR


@pytest.mark.inv("RES-3")
@pytest.mark.damages
def test_a_damaged_session_is_no_candidate_and_is_counted(tmp_path: Path) -> None:
    harness = Harness.on_disk(tmp_path, linear_workflow("test.abc", "a", "b"))
    broken, sound = harness.start("test.abc", goal="zebra"), harness.start("test.abc", goal="zebra")
    segment = next((tmp_path / "sessions" / harness.session_of(broken) / "events").iterdir())
    data = bytearray(segment.read_bytes())
    data[40] ^= 1
    segment.write_bytes(bytes(data))
    fresh = Harness.on_disk(tmp_path, linear_workflow("test.abc", "a", "b"))
    found = fresh.resume("zebra")
    assert runs(found) == [run_of(sound)]
    assert "cannot be read: 1" in found["reason"]
    assert "`interlock doctor --deep`" in found.text


@pytest.mark.inv("RES-7", "HIS-7")
@pytest.mark.damages
def test_a_search_looks_at_the_events_of_what_it_offers_and_of_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = Harness.on_disk(tmp_path, linear_workflow("test.abc", "a", "b"))
    other = harness.start("test.abc", goal="aardvark")
    wanted = harness.start("test.abc", goal="zebra")
    looked = list[str]()
    for method in ("modified", "contents"):
        plain = getattr(OsFiles, method)

        def noted(files: OsFiles, path: str, plain: Callable[[OsFiles, str], Any] = plain) -> object:
            looked.append(path)
            return plain(files, path)

        monkeypatch.setattr(OsFiles, method, noted)
    assert runs(Harness.on_disk(tmp_path).resume("zebra")) == [run_of(wanted)]
    assert not [path for path in looked if harness.session_of(other) in path]
    altered = next((tmp_path / "sessions" / harness.session_of(other) / "events").iterdir())
    altered.write_bytes(altered.read_bytes().replace(b"a", b"b", 1))
    fresh = Harness.on_disk(tmp_path)
    assert runs(fresh.resume("zebra")) == [run_of(wanted)]
    found = fresh.resume("aardvark")
    assert runs(found) == [run_of(wanted)]
    assert found["reason"].startswith("What matches cannot be read; these are the latest runs.")
    assert str(harness.session_of(other)) in found["reason"]


@pytest.mark.inv("RES-7", "HIS-9")
@pytest.mark.damages
def test_a_match_that_cannot_be_shown_is_named_however_many_others_are_offered(tmp_path: Path) -> None:
    harness = Harness.on_disk(tmp_path, linear_workflow("test.abc", "a", "b"))
    lost = harness.start("test.abc", goal="aardvark")
    for number in range(CANDIDATES_MAX + 2):
        harness.start("test.abc", goal=f"zebra {number}")
    next((tmp_path / "sessions" / harness.session_of(lost) / "events").iterdir()).unlink()
    found = Harness.on_disk(tmp_path).resume("aardvark")
    assert len(found["candidates"]) == CANDIDATES_MAX
    assert found["more"] == 2
    assert f"run `{lost['run']['label']}` of session {harness.session_of(lost)}" in found["reason"]


@pytest.mark.inv("RES-7")
@pytest.mark.damages
@pytest.mark.parametrize("is_cached", [True, False])
def test_a_run_is_offered_again_when_its_lost_file_is_put_back(tmp_path: Path, *, is_cached: bool) -> None:
    harness = Harness.on_disk(tmp_path, linear_workflow("test.abc", "a", "b"))
    started = harness.start("test.abc", goal="zebra")
    session = SessionId(harness.session_of(started))
    if not is_cached:
        (tmp_path / layout.cached_summary(session)).unlink()
    segment = next((tmp_path / layout.events_dir(session)).iterdir())
    serving = Harness.on_disk(tmp_path)
    segment.rename(tmp_path / "elsewhere")
    assert serving.resume("zebra")["candidates"] == []
    (tmp_path / "elsewhere").rename(segment)
    assert runs(serving.resume("zebra")) == [run_of(started)]


@pytest.mark.inv("HIS-9")
@pytest.mark.damages
def test_a_list_after_a_search_checks_the_files_that_the_search_did_not(tmp_path: Path) -> None:
    harness = Harness.on_disk(tmp_path, linear_workflow("test.abc", "a", "b"))
    lost = harness.session_of(harness.start("test.abc", goal="aardvark"))
    wanted = harness.start("test.abc", goal="zebra")
    next((tmp_path / "sessions" / lost / "events").iterdir()).unlink()
    fresh = Harness.on_disk(tmp_path)
    assert runs(fresh.resume("zebra")) == [run_of(wanted)]
    listed = fresh.ports.read.listing()
    assert [one.session for one in listed.sessions] == [harness.session_of(wanted)]
    assert [one.session for one in listed.unreadable] == [lost]
    assert lost in fresh.resume("aardvark")["reason"]


@pytest.mark.inv("RES-7", "RES-1")
@pytest.mark.damages
def test_what_is_offered_is_what_its_call_shows_whatever_a_damaged_mark_hides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = Harness.on_disk(tmp_path, linear_workflow("test.abc", "a", "b", "c"))
    started = harness.start("test.abc", goal="zebra")
    session = harness.session_of(started)
    others = [harness.session_of(harness.start("test.abc")) for _ in range(3)]
    harness.advance(harness.advance(started))
    (tmp_path / layout.cached_summary(SessionId(session))).unlink()
    serving = Harness.on_disk(tmp_path, linear_workflow("test.abc", "a", "b", "c"))
    assert serving.resume("zebra")["candidates"][0]["pendingStep"].endswith("Step c")
    with monkeypatch.context() as small:
        small.setattr(session_log, "SESSIONS_KEPT_BYTES_MAX", 1)
        for other in others:
            serving.resume(sessionId=other)
    mark = tmp_path / layout.settled(SessionId(session))
    mark.write_bytes(mark.read_bytes().replace(b"2 ", b"3 ", 1))
    (offered,) = serving.resume("zebra")["candidates"]
    shown = serving.call(offered["nextCall"]["tool"], offered["nextCall"]["arguments"])
    assert offered["pendingStep"].endswith(shown["pending"]["title"])


@pytest.mark.inv("RES-7")
@pytest.mark.damages
@pytest.mark.parametrize("lost", ["pinned workflow", "snapshot"])
@pytest.mark.parametrize("is_cached", [True, False])
def test_a_run_that_cannot_be_shown_is_not_offered_but_named(tmp_path: Path, lost: str, *, is_cached: bool) -> None:
    documents = linear_workflow("test.abc", "a", "b"), linear_workflow("test.other", "x")
    harness = Harness.on_disk(tmp_path, *documents)
    broken = harness.start("test.abc", goal="zebra")
    sound = harness.start("test.other", goal="zebra")
    session = harness.store.load(harness.session_of(broken))
    assert session is not None
    (run,) = session.runs.values()
    assert run.tip is not None
    path = layout.snapshot(session.nodes[run.tip].snapshot)
    (tmp_path / (layout.pinned_workflow(run.workflow_hash) if lost == "pinned workflow" else path)).unlink()
    if not is_cached:
        for cached in tmp_path.glob("sessions/*/cache/summary"):
            cached.unlink()
    fresh = Harness.on_disk(tmp_path, *documents)
    found = fresh.resume("zebra")
    assert runs(found) == [run_of(sound)]
    assert f"{lost}: missing" in found["reason"]
    assert str(harness.session_of(broken)) in found["reason"]
    (one,) = found["candidates"]
    assert not fresh.call(one["nextCall"]["tool"], one["nextCall"]["arguments"]).is_error
    exact = fresh.resume(sessionId=str(harness.session_of(broken)))
    assert exact["candidates"] == []
    assert f"{lost}: missing" in exact["reason"]


@pytest.mark.inv("RES-7")
@pytest.mark.damages
def test_a_run_whose_snapshot_was_lost_after_it_was_listed_is_named(tmp_path: Path) -> None:
    documents = linear_workflow("test.abc", "a", "b"), linear_workflow("test.other", "x")
    first = Harness.on_disk(tmp_path, *documents).start("test.abc", goal="zebra")
    serving = Harness.on_disk(tmp_path, *documents)
    assert serving.ports.read.listing().unreadable == ()
    for path in (tmp_path / "snapshots").iterdir():
        path.unlink()
    found = serving.resume("zebra")
    assert found["candidates"] == []
    assert f"run `{first['run']['label']}` of session" in found["reason"]
    assert "No stored run can be continued." in found["reason"]
    assert "snapshot: missing" in found["reason"]


@pytest.mark.inv("RES-4")
@pytest.mark.parametrize("harm", ["gone", "cut", "a byte", "another version", "of an older log"])
def test_what_is_reported_does_not_depend_on_the_cache(tmp_path: Path, harm: str) -> None:
    document = linear_workflow("test.abc", "a", "b")
    harness = Harness.on_disk(tmp_path, document)
    first = harness.start("test.abc", goal="zebra")
    cache = tmp_path / "sessions" / harness.session_of(first) / "cache" / "summary"
    old = cache.read_bytes()
    harness.advance(first, "Did a.")
    expected = Harness.on_disk(tmp_path, document).resume("zebra")
    assert "Did a." in expected.text
    match harm:
        case "gone":
            cache.unlink()
        case "cut":
            os.truncate(cache, len(old) // 2)
        case "a byte":
            data = cache.read_bytes()
            cache.write_bytes(data.replace(b"Did a.", b"Did b."))
        case "another version":
            cache.write_bytes(cache.read_bytes().replace(b'"v":2', b'"v":3'))
        case _:
            cache.write_bytes(old)
    before = cache.read_bytes() if cache.exists() else None
    assert Harness.on_disk(tmp_path, document).resume("zebra") == expected
    assert (cache.read_bytes() if cache.exists() else None) == before, "looking mends nothing"


@pytest.mark.inv("RES-4")
def test_what_is_cached_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document = linear_workflow("test.abc", "a", "b")
    harness = Harness.on_disk(tmp_path, document)
    for number in range(8):
        harness.advance(harness.start("test.abc", goal=f"zebra {number}"))
    fresh = Harness.on_disk(tmp_path, document)
    loads = list[SessionId]()
    load = fresh.ports.read.reader.load

    def noted(session: SessionId, tag: str | None = None, *, since_s: float | None = None) -> Session | None:
        loads.append(session)
        return load(session, tag, since_s=since_s)

    monkeypatch.setattr(fresh.ports.read.reader, "load", noted)
    assert len(fresh.resume("zebra 3")["candidates"]) == 1
    assert len(loads) == 1, "only what is offered is verified"


def test_a_run_that_another_process_began_is_found(tmp_path: Path) -> None:
    document = linear_workflow("test.abc", "a", "b")
    looking = Harness.on_disk(tmp_path, document)
    assert looking.resume()["candidates"] == []
    Harness.on_disk(tmp_path, document).start("test.abc", goal="zebra")
    assert why(looking.resume("zebra")) == [["matched_goal"]]


@pytest.mark.inv("OBS-4")
@pytest.mark.parametrize("chars", [80, 81, 200])
def test_a_run_on_a_branch_with_a_long_name_is_found_by_that_name_and_by_its_beginning(
    harness: Harness, chars: int
) -> None:
    name = "feature/" + "x" * (chars - 8)
    mine = at(harness, branch=name).start("test.abc")
    at(harness, branch=name + "-2").start("test.abc")
    session = harness.ports.read.reader.load(harness.session_of(mine))
    assert session is not None
    recorded = session.observed(RunId(run_of(mine)), "git_branch")
    assert recorded is not None
    assert len(recorded) == 80
    assert (recorded == name, "~" in recorded) == ((True, False) if chars == 80 else (False, True))
    for found in (harness.resume(gitBranch=name), at(harness, branch=name).resume()):
        assert run_of(mine) in runs(found)
        assert why(found)[0] == ["matched_branch"]
        assert chars == 80 or runs(found) == [run_of(mine)]
    assert run_of(mine) in runs(harness.resume(gitBranch="feature/xxx"))
    assert why(harness.resume(gitBranch=name + "-3")) == [["recency_fallback"]] * 2


@pytest.mark.inv("OBS-4")
def test_a_long_branch_is_found_by_as_much_of_its_beginning_as_the_description_says(harness: Harness) -> None:
    branch = "feature/" + "long-name-" * 10
    start = at(harness, branch=branch, root=REPO).start("test.abc")
    kept = SHORT_STRING_CHARS_MAX - BRANCH_DIGEST_CHARS - 1
    for name, is_found in ((branch, True), (branch[:kept], True), (branch[: kept + 1], False)):
        (found,) = harness.call("resume_session", {"gitBranch": name})["candidates"]
        assert found["run"]["label"] == start["run"]["label"]
        assert ("matched_branch" in found["whyMatched"]) == is_found
    tool = tool_named("resume_session")
    assert tool is not None
    schema = json.dumps(flat_schema(tool.arguments, "validation"))
    assert f"at most {kept} characters" in schema
