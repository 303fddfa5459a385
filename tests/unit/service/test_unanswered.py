"""A start that is recorded and not answered: the same call again finds its run, and nothing else does."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from interlock.engine.gates import ApprovalContext, Reply
from interlock.kernel.budgets import UNANSWERED_STARTS_MAX
from interlock.kernel.errors import ErrorCode
from interlock.kernel.ids import Digest, RunId, SessionId, derived_id
from interlock.service.unanswered import StartIds, UnansweredStarts
from interlock.store.local import layout
from interlock.store.ports.errors import FailureKind, StoreFailureError
from interlock.testing.harness import Harness, ToolResult, linear_workflow

HOW: tuple[Literal["accept", "decline"], ...] = ("accept", "decline")
LOST = StoreFailureError(FailureKind.FAILED, "EIO")


class LosingTrace:
    """Fails the renderings that it is given errors for: each comes after the append of its call."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)

    def span(self, name: str) -> AbstractContextManager[None]:
        if name == "render" and self.errors:
            raise self.errors.pop()
        return nullcontext()


def losing(harness: Harness, *errors: Exception) -> Harness:
    """Return the same harness, in the same process, with answers that are lost."""
    read = replace(harness.ports.read, trace=LosingTrace(*errors))
    return replace(harness, ports=replace(harness.ports, read=read))


def runs_of(harness: Harness) -> list[RunId]:
    sessions = (harness.store.load(session) for session in harness.store.sessions())
    return [run for session in sessions if session is not None for run in session.runs]


def assert_unanswered(refused: ToolResult, harness: Harness) -> None:
    assert refused.code is ErrorCode.STORE_FAILED
    details = refused["details"]
    assert details["mayBeRecorded"] is True
    assert details["runId"] in runs_of(harness)
    assert details["sessionId"] in harness.store.sessions()


@pytest.mark.inv("FAIL-2")
def test_a_start_whose_answer_was_lost_is_answered_from_the_record_when_it_is_repeated(harness: Harness) -> None:
    refused = losing(harness, LOST).start("test.abc", goal="Once")
    assert_unanswered(refused, harness)
    answer = harness.start("test.abc", goal="Once")
    assert [answer["run"]["runId"]] == runs_of(harness) == [refused["details"]["runId"]]
    assert answer["pending"]["stepId"] == "a"
    # It is answered now, so the next one is a start of its own.
    assert harness.start("test.abc", goal="Once")["run"]["runId"] != answer["run"]["runId"]
    assert len(runs_of(harness)) == 2
    assert harness.advance(answer)["pending"]["stepId"] == "b"


@pytest.mark.inv("FAIL-2")
def test_a_start_that_joins_a_session_is_found_as_well(harness: Harness) -> None:
    session = harness.session_of(harness.start("test.abc", goal="First"))
    refused = losing(harness, LOST).start("test.one", sessionId=session)
    assert_unanswered(refused, harness)
    assert harness.start("test.one", sessionId=session)["run"]["runId"] == refused["details"]["runId"]
    assert len(runs_of(harness)) == 2


@pytest.mark.inv("FAIL-2")
def test_the_call_that_a_refused_start_names_finds_its_run_in_another_process(harness: Harness) -> None:
    refused = losing(harness, LOST).start("test.abc", goal="Once")
    other = replace(harness, ports=replace(harness.ports, unanswered=UnansweredStarts()))
    call = refused["details"]["correctedCall"]
    (candidate,) = other.call(call["tool"], call["arguments"])["candidates"]
    found = other.call(candidate["nextCall"]["tool"], candidate["nextCall"]["arguments"])
    assert found["run"]["runId"] == refused["details"]["runId"]
    assert other.advance(found)["pending"]["stepId"] == "b"
    assert len(runs_of(other)) == 1


@pytest.mark.inv("FAIL-2")
def test_answers_that_are_lost_again_and_again_still_leave_one_run(harness: Harness) -> None:
    lossy = losing(harness, *[LOST] * 3)
    refused = [lossy.start("test.abc") for _ in range(3)]
    assert len({one["details"]["runId"] for one in refused}) == 1
    lossy.start("test.abc")
    assert len(runs_of(harness)) == 1


@pytest.mark.inv("FAIL-2")
def test_a_fault_of_ours_after_the_append_leaves_one_run_as_well(harness: Harness) -> None:
    with pytest.raises(RuntimeError, match="a fault"):
        losing(harness, RuntimeError("a fault")).start("test.abc")
    assert [harness.start("test.abc")["run"]["runId"]] == runs_of(harness)


class Meanwhile:
    """Makes a call of its own while the answer of another one is rendered."""

    def __init__(self, harness: Harness) -> None:
        self.harness = harness
        self.answers: list[ToolResult] = []

    def span(self, name: str) -> AbstractContextManager[None]:
        if name == "render" and not self.answers:
            self.answers.append(self.harness.start("test.abc", goal="Once"))
        return nullcontext()


@pytest.mark.inv("FAIL-2")
def test_an_equal_start_that_runs_at_the_same_time_is_a_start_of_its_own(harness: Harness) -> None:
    meanwhile = Meanwhile(harness)
    read = replace(harness.ports.read, trace=meanwhile)
    answer = replace(harness, ports=replace(harness.ports, read=read)).start("test.abc", goal="Once")
    (other,) = meanwhile.answers
    assert answer["run"]["runId"] != other["run"]["runId"]
    assert len(runs_of(harness)) == 2


@pytest.mark.inv("FAIL-2")
def test_another_call_is_no_repeat(harness: Harness) -> None:
    refused = losing(harness, LOST).start("test.abc", goal="Once")
    for other in (harness.start("test.abc", goal="Twice"), harness.start("test.one", goal="Once")):
        assert other["run"]["runId"] != refused["details"]["runId"]
    assert len(runs_of(harness)) == 3


@pytest.mark.inv("FAIL-2")
def test_a_run_that_went_on_since_is_not_begun_again(harness: Harness) -> None:
    """Whoever went on with it had found it; so the same call means another run."""
    refused = losing(harness, LOST).start("test.abc")
    (candidate,) = harness.resume(runId=refused["details"]["runId"])["candidates"]
    looked = harness.call(candidate["nextCall"]["tool"], candidate["nextCall"]["arguments"])
    harness.advance(looked)
    again = harness.start("test.abc")
    assert (again["pending"]["stepId"], len(runs_of(harness))) == ("a", 2)
    assert again["run"]["runId"] != refused["details"]["runId"]


@pytest.mark.inv("FAIL-2")
def test_a_recorded_run_is_not_denied_by_a_person_who_is_asked_for_it_again(harness: Harness) -> None:
    autonomy = {"preferences": {"autonomy": "full_auto_never_stop"}}
    accepted, declined = (
        ApprovalContext(client_can=True, reply=Reply(action=how, client="x", answers={})) for how in HOW
    )
    losing(replace(harness, asking=accepted), LOST).start("test.abc", **autonomy)
    answer = replace(harness, asking=declined).start("test.abc", **autonomy)
    assert [answer["run"]["runId"]] == runs_of(harness)


@pytest.mark.inv("FAIL-2")
@pytest.mark.damages
def test_a_run_that_is_damaged_since_is_left_and_another_is_begun(tmp_path: Path) -> None:
    harness = Harness.on_disk(tmp_path, linear_workflow("test.abc", "a"))
    refused = losing(harness, LOST).start("test.abc")
    with (tmp_path / layout.manifest(SessionId(refused["details"]["sessionId"]))).open("ab") as manifest:
        manifest.write(b"damage\n")
    assert harness.start("test.abc")["run"]["sessionId"] != refused["details"]["sessionId"]


@pytest.mark.inv("FAIL-1")
@pytest.mark.parametrize("notes", ["Done.", None], ids=["advance", "refused attempt"])
def test_an_answer_that_is_lost_after_the_append_is_reported_as_lost_and_the_repeat_gives_it(
    harness: Harness, notes: str | None
) -> None:
    first = harness.start("test.abc")
    session = harness.session_of(first)
    lossy = losing(harness, LOST, LOST)
    for _ in range(2):
        refused = lossy.advance(first, notes)
        assert refused["details"]["mayBeRecorded"] is True
        assert "may be recorded" in refused["message"]
    recorded = len(harness.events(session))
    answer = harness.advance(first, notes)
    assert answer["kind"] == ("blocked" if notes is None else "ok")
    assert harness.advance(first, notes) == answer
    assert len(harness.events(session)) == recorded


@pytest.mark.inv("FAIL-2")
def test_the_oldest_of_many_unanswered_starts_is_forgotten() -> None:
    starts = UnansweredStarts()
    digest = Digest("sha256:" + "0" * 64)
    ids = [
        StartIds(
            key=(f"test.{number}", None, None, digest),
            session=SessionId(derived_id("sess", number)),
            run=RunId(derived_id("run", number)),
        )
        for number in range(UNANSWERED_STARTS_MAX + 1)
    ]
    for one in ids:
        starts.keep(one)
    assert starts.find(ids[0].key) is None
    assert [starts.find(one.key) for one in ids[1:]] == ids[1:]
