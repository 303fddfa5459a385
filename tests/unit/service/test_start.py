"""`start_workflow`: one append makes a run whole, in a new session or beside the runs of one that exists."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from interlock.kernel.budgets import GOAL_BYTES_MAX
from interlock.kernel.errors import ErrorCode
from interlock.kernel.ids import SessionId, derived_id
from interlock.record.events import ContextSetEvent, PreferencesChangedEvent, RunStartedEvent
from interlock.store.local.store import LocalStore
from interlock.store.memory.store import MemoryStore
from interlock.store.ports.writer import SessionLock
from interlock.testing.harness import FIXED_UNIX_MS, FixedKeyRing, Harness, linear_workflow


@pytest.mark.produces(
    "event:session_created", "event:run_started", "event:node_created", "event:preferences_changed", "event:context_set"
)
@pytest.mark.inv("ADV-1")
def test_a_start_hands_out_the_first_step_and_records_it_in_one_segment(harness: Harness) -> None:
    answer = harness.start("test.abc", goal="Show it", context={"ticket": "T-1"})
    assert (answer["kind"], answer["isComplete"]) == ("ok", False)
    assert answer["nextIntent"] == "perform_pending_then_continue"
    assert answer["pending"] == {"stepId": "a", "title": "Step a", "prompt": "Do a."}
    assert answer["run"]["step"] == {"number": 1, "total": 3}
    assert answer["preferences"] == {"autonomy": "guided", "riskPolicy": "conservative"}
    events = harness.events(harness.session_of(answer))
    assert [event.kind for event in events] == [
        *("session_created", "run_started", "node_created", "preferences_changed", "context_set"),
    ]
    assert len({event.recorded_at for event in events}) == 1


@pytest.mark.inv("ADV-1", "CTX-1", "IR-40")
def test_what_a_start_records_is_what_was_sent(harness: Harness) -> None:
    answer = harness.start("test.abc", goal="G", context={"k": [1, None]}, preferences={"riskPolicy": "balanced"})
    events = harness.events(harness.session_of(answer))
    (run,) = [event for event in events if isinstance(event, RunStartedEvent)]
    assert (run.data.workflow_id, run.data.workflow_source_kind) == ("test.abc", "project")
    assert run.data.workflow_source_ref == "test.abc.json"
    assert run.scope.run_id == answer["run"]["runId"]
    (context,) = [event for event in events if isinstance(event, ContextSetEvent)]
    assert context.data.context == {"goal": "G", "k": [1, None]}
    (preferences,) = [event for event in events if isinstance(event, PreferencesChangedEvent)]
    assert preferences.data.effective.to_json() == {"autonomy": "guided", "riskPolicy": "balanced"}
    assert preferences.data.source == "user"


def test_a_start_without_context_records_none(harness: Harness) -> None:
    events = harness.events(harness.session_of(harness.start("test.abc")))
    assert "context_set" not in [event.kind for event in events]


@pytest.mark.inv("ADV-2")
def test_a_session_holds_several_runs_that_do_not_touch_each_other(harness: Harness) -> None:
    first = harness.start("test.abc", goal="One")
    session = harness.session_of(first)
    second = harness.start("test.one", goal="Two", sessionId=session)
    assert harness.session_of(second) == session
    assert second["run"]["runId"] != first["run"]["runId"]
    assert [event.kind for event in harness.events(session)].count("session_created") == 1
    done = harness.advance(second)
    assert done["isComplete"]
    looked = harness.rehydrate(first)
    assert (looked["pending"]["stepId"], looked["run"]["goal"]) == ("a", "One")
    assert harness.advance(first)["pending"]["stepId"] == "b"
    assert [event.event_index for event in harness.events(session)] == list(range(len(harness.events(session))))


class CollectedStore(LocalStore):
    """A store whose session is collected between the look and the lock."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._sessions = root / "sessions"

    @contextmanager
    def hold(self, session: SessionId, *, since_s: float | None = None) -> Generator[SessionLock]:
        (self._sessions / session).rename(self._sessions.parent / "gone")
        with super().hold(session, since_s=since_s) as lock:
            yield lock


@pytest.mark.inv("ADV-2", "GC-6", "FAIL-4")
def test_a_session_that_is_collected_while_a_run_joins_it_is_not_found(tmp_path: Path) -> None:
    document = linear_workflow("test.abc", "a")
    session = Harness.on_disk(tmp_path, document).start("test.abc")["run"]["sessionId"]
    late = Harness.over(CollectedStore(tmp_path), document)
    assert late.start("test.abc", sessionId=session).code is ErrorCode.SESSION_NOT_FOUND
    assert list((tmp_path / "sessions").iterdir()) == [], "the call that is refused leaves nothing of it"
    assert LocalStore(tmp_path).sessions() == ()


@pytest.mark.produces("error:SESSION_NOT_FOUND")
@pytest.mark.inv("ADV-2")
def test_an_unknown_session_is_not_found_and_nothing_is_recorded(harness: Harness) -> None:
    unknown = derived_id("sess", "nobody")
    refused = harness.start("test.abc", sessionId=unknown)
    assert refused.code is ErrorCode.SESSION_NOT_FOUND
    assert unknown in refused.text
    assert harness.store.load(SessionId(unknown)) is None


@pytest.mark.produces("error:VALIDATION_ERROR")
@pytest.mark.parametrize("session", ["sess_x", "run_01jgfjjz000000000000000001", "../../etc", "sess_" + "I" * 26])
def test_what_is_no_session_id_is_a_mistake_in_the_call(harness: Harness, session: str) -> None:
    refused = harness.start("test.abc", sessionId=session)
    assert refused.code is ErrorCode.VALIDATION_ERROR
    assert refused["details"]["path"] == "sessionId"


@pytest.mark.produces("error:WORKFLOW_NOT_FOUND")
@pytest.mark.inv("SRC-5")
@pytest.mark.parametrize(
    ("asked", "meant"),
    [("test.ab", "test.abc"), ("abc", "test.abc"), ("tset.abc", "test.abc"), ("optional", "test.optional")],
)
def test_an_unknown_workflow_is_not_found_and_the_nearest_is_named(harness: Harness, asked: str, meant: str) -> None:
    refused = harness.start(asked)
    assert refused.code is ErrorCode.WORKFLOW_NOT_FOUND
    assert refused["details"]["didYouMean"] == meant
    assert f"`{meant}`" in refused["suggestion"]
    assert "list_workflows" in refused["suggestion"]


@pytest.mark.inv("SRC-17")
@pytest.mark.parametrize(("place", "found"), [("gone", "does not exist"), ("file", "is not a directory")])
@pytest.mark.parametrize("tool", ["start_workflow", "inspect_workflow", "list_workflows"])
def test_a_workspace_that_is_no_directory_is_named(
    harness: Harness, tmp_path: Path, place: str, found: str, tool: str
) -> None:
    (tmp_path / "file").touch()
    workspace = str(tmp_path / place)
    arguments = {} if tool == "list_workflows" else {"workflowId": "team.gone"}
    answer = harness.call(tool, {**arguments, "workspacePath": workspace})
    words = answer["reason"] if tool == "list_workflows" else answer["message"]
    assert f"The workspace {workspace!r} {found}" in words
    # The path of the server's own workspace is not the caller's.
    own = replace(harness, workspace=tmp_path / place).call(tool, arguments)
    assert f"The workspace of this server {found}" in own.text
    assert str(tmp_path) not in own.text + str(own.structure)
    there = harness.call(tool, {**arguments, "workspacePath": str(tmp_path)})
    assert "The workspace" not in there.text


@pytest.mark.inv("SRC-5")
def test_an_id_that_resembles_nothing_is_answered_with_the_list(harness: Harness) -> None:
    refused = harness.start("zzzzzz")
    assert refused.code is ErrorCode.WORKFLOW_NOT_FOUND
    assert "didYouMean" not in refused["details"]


@pytest.mark.produces("error:WORKFLOW_INVALID")
@pytest.mark.inv("SRC-5", "ANS-10")
def test_the_id_of_a_faulty_file_is_answered_with_the_file_and_each_fault(harness: Harness) -> None:
    bad = linear_workflow(
        "test.bad", {"id": "A", "title": "A", "prompt": "p"}, {"id": "b", "titel": "B", "prompt": "p"}
    )
    harness.workflows.put(bad, ref="deep/bad.json")
    refused = harness.start("test.bad")
    assert refused.code is ErrorCode.WORKFLOW_INVALID
    assert refused["details"]["source"] == "deep/bad.json"
    paths = [fault["path"] for fault in refused["details"]["diagnostics"]]
    assert {"steps[0].id", "steps[1].titel"} <= set(paths)
    for fault in refused["details"]["diagnostics"]:
        assert f"{fault['path']}: {fault['message']} {fault['fix']}" in refused.text
    assert "deep/bad.json" in refused.text
    harness.workflows.put(linear_workflow("test.bad", "a"), ref="deep/bad.json")
    assert not harness.start("test.bad").is_error


@pytest.mark.inv("CTX-6")
def test_goal_and_context_goal_are_one_key_and_may_not_differ(harness: Harness) -> None:
    refused = harness.start("test.abc", goal="a", context={"goal": "b"})
    assert refused.code is ErrorCode.VALIDATION_ERROR
    assert refused["details"]["path"] == "goal"
    for sent in ({"goal": "a"}, {"context": {"goal": "a"}}, {"goal": "a", "context": {"goal": "a"}}):
        assert harness.start("test.abc", **sent)["run"]["goal"] == "a"


@pytest.mark.inv("CTX-6")
def test_a_goal_is_no_document(harness: Harness) -> None:
    assert not harness.start("test.abc", goal="x" * GOAL_BYTES_MAX).is_error
    refused = harness.start("test.abc", goal="x" * (GOAL_BYTES_MAX + 1))
    assert refused.code is ErrorCode.VALIDATION_ERROR
    assert (refused["details"]["measuredBytes"], refused["details"]["maxBytes"]) == (GOAL_BYTES_MAX + 1, GOAL_BYTES_MAX)


def test_a_refused_start_leaves_no_data_directory_behind(tmp_path: Path) -> None:
    harness = Harness.on_disk(tmp_path / "data", linear_workflow("test.abc", "a"))
    refused = [
        harness.start("test.nope"),
        harness.start("test.abc", context={"__proto__": 1}),
        harness.start("test.abc", workspacePath="relative"),
        harness.start("test.abc", sessionId=derived_id("sess", "nobody")),
    ]
    assert all(one.is_error for one in refused)
    assert not (tmp_path / "data").exists()


class ScriptedClock:
    """Mints ids whose last characters a test chooses."""

    def __init__(self, *entropies: int) -> None:
        self._entropies: Iterator[int] = iter(entropies)

    def unix_ms(self) -> int:
        return FIXED_UNIX_MS

    def entropy(self) -> bytes:
        return next(self._entropies).to_bytes(10, "big")


@pytest.fixture
def clashing() -> Harness:
    """Two runs of one session whose ids end in the same four characters, and differ in the fifth from the end."""
    events = iter(range(1 << 40, 1 << 41))
    session, first, second = 1, 1 << 20 | 7, 2 << 20 | 7
    start_events = [next(events) for _ in range(4)]
    later = [next(events) for _ in range(100)]
    return Harness.over(
        MemoryStore(),
        linear_workflow("test.abc", "a", "b", "c"),
        keys=FixedKeyRing(),
        clock=ScriptedClock(session, first, *start_events, second, *later),
    )


@pytest.mark.inv("ANS-2")
def test_a_label_is_the_last_four_characters_and_six_where_two_runs_share_four(clashing: Harness) -> None:
    first = clashing.start("test.abc")
    assert first["run"]["label"] == first["run"]["runId"][-4:]
    second = clashing.start("test.abc", sessionId=clashing.session_of(first))
    assert second["run"]["runId"][-4:] == first["run"]["runId"][-4:]
    assert second["run"]["label"] == second["run"]["runId"][-6:]
    assert not clashing.follow(second).is_error


@pytest.mark.inv("ADV-5")
def test_a_run_that_begins_later_does_not_rename_an_earlier_one(clashing: Harness) -> None:
    """Else a replay would differ from its first answer, and a label that was handed out would name two runs."""
    first = clashing.start("test.abc")
    answer = clashing.advance(first)
    clashing.start("test.abc", sessionId=clashing.session_of(first))
    assert clashing.advance(first) == answer


@pytest.mark.inv("TOK-6")
def test_the_label_of_one_run_is_no_witness_for_another_that_ends_alike(clashing: Harness) -> None:
    first = clashing.start("test.abc")
    second = clashing.start("test.abc", sessionId=clashing.session_of(first))
    assert clashing.advance(second, run=first["run"]["label"]).code is ErrorCode.TOKEN_SCOPE_MISMATCH
