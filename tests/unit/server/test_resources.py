"""What can be read: the catalogue, plans, records of sessions; and the completions of their ids."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from mcp import MCPError, types
from tests.support.server import Served, serving, tree

from interlock.kernel.budgets import COMPLETIONS_MAX, LIST_ENTRIES_MAX, RECORD_BYTES_MAX, RESOURCES_MAX
from interlock.kernel.text import utf8_bytes
from interlock.server.completions import completed
from interlock.store.memory.store import MemoryStore
from interlock.store.ports.errors import FailureKind, StoreFailureError
from interlock.store.ports.reader import LogVersion
from interlock.testing.harness import ERAS, CounterClock, Era, FixedKeyRing, Harness, linear_workflow

REVIEW = linear_workflow("test.code_review", "read", "judge", name="Careful look", tags=["security"])
FAULTY = linear_workflow("test.faulty", {"id": "A", "title": "A", "prompt": "p"})
NOWHERE = "sess_00000000000000000000000000"
PLAN, RECORD = "interlock://workflows/{workflowId}/plan", "interlock://sessions/{sessionId}"


class TickingClock(CounterClock):
    """A clock that advances by a second at each read."""

    def __init__(self) -> None:
        super().__init__()
        self._seconds = itertools.count()

    def unix_ms(self) -> int:
        return super().unix_ms() + 1_000 * next(self._seconds)


@pytest.fixture
def harness() -> Harness:
    return Harness.over(MemoryStore(), REVIEW, FAULTY, keys=FixedKeyRing(), clock=TickingClock())


@pytest.fixture(params=ERAS)
def client(request: pytest.FixtureRequest, harness: Harness) -> Iterator[Served]:
    with serving(harness, request.param) as connected:
        yield connected


def read(client: Served, uri: str) -> str:
    contents = (client.ask("read_resource", uri)).contents
    assert [(one.uri, one.mime_type) for one in contents] == [(uri, "text/markdown")]
    assert isinstance(contents[0], types.TextResourceContents)
    return contents[0].text


def values(client: Served, ref: str, argument: str, typed: str) -> list[str]:
    reference = (
        types.ResourceTemplateReference(uri=ref) if "://" in ref else types.PromptReference(type="ref/prompt", name=ref)
    )
    completion = (client.ask("complete", reference, {"name": argument, "value": typed})).completion
    assert completion.total is not None
    assert completion.has_more == (completion.total > len(completion.values))
    return completion.values


def test_the_catalogue_the_latest_sessions_and_the_plans_are_listed(client: Served, harness: Harness) -> None:
    for number in range(LIST_ENTRIES_MAX + 2):
        harness.start("test.code_review", goal=f"Goal {number}")
    listed = client.ask("list_resources").resources
    assert listed[0].uri == "interlock://workflows"
    sessions = [one for one in listed if one.uri.startswith("interlock://sessions/")]
    assert [one.title for one in sessions] == [
        f"Careful look: Goal {number}" for number in reversed(range(2, LIST_ENTRIES_MAX + 2))
    ]
    assert sessions[0].description is not None
    assert "in progress, step 1 of 2" in sessions[0].description
    assert [one.uri for one in listed[len(sessions) + 1 :]] == ["interlock://workflows/test.code_review/plan"]
    for one in listed:
        assert read(client, one.uri)


def test_the_title_of_a_plan_is_one_line_without_marks_that_steer() -> None:
    with serving(Harness.in_memory(linear_workflow("test.named", "a", name="A\u202e\nB"))) as client:
        titles = [one.title for one in client.ask("list_resources").resources]
    assert len(titles) == 2
    assert all(title.isprintable() for title in titles)


def test_the_templates_are_the_addresses_that_are_listed(client: Served) -> None:
    templates = client.ask("list_resource_templates").resource_templates
    assert [one.uri_template for one in templates] == [
        *(PLAN, RECORD),
        f"{RECORD}/artifacts/{{digest}}",
        f"{RECORD}/runs/{{label}}/context",
        f"{RECORD}/runs/{{label}}/lifecycle",
        f"{RECORD}/runs/{{label}}/turns",
        f"{RECORD}/runs/{{label}}/steps/{{stepId}}",
    ]


def test_the_catalogue_says_what_cannot_be_started_and_why(client: Served, harness: Harness) -> None:
    for number in range(LIST_ENTRIES_MAX):
        harness.workflows.put(linear_workflow(f"test.more{number}", "a"))
    text = read(client, "interlock://workflows")
    assert text.count("\n- `test.more") == LIST_ENTRIES_MAX < RESOURCES_MAX
    assert "Files with faults; no run can start from them:\n- test.faulty.json (project): " in text


def test_the_record_of_a_session_tells_of_its_runs_and_their_notes(client: Served, harness: Harness) -> None:
    first = harness.start("test.code_review", goal="Mend the login")
    session = harness.session_of(first)
    harness.advance(first, "Read all of it.")
    harness.start("test.code_review", goal="Second run", sessionId=session)
    text = read(client, f"interlock://sessions/{session}")
    for words in ("Mend the login", "Second run", "Read all of it.", "step 2 of 2", session):
        assert words in text


def test_a_long_record_is_reported_in_short_and_says_where_the_rest_is() -> None:
    steps = [f"s{number}" for number in range(40)]
    harness = Harness.in_memory(linear_workflow("test.long", *steps))
    answer = first = harness.start("test.long")
    for number in range(39):
        answer = harness.advance(answer, f"Notes {number}. " + "x" * 3_000)
    session = harness.session_of(first)
    with serving(harness) as client:
        text = read(client, f"interlock://sessions/{session}")
    assert utf8_bytes(text) <= RECORD_BYTES_MAX
    assert "Notes 38." in text
    assert "Notes 3." not in text
    assert f"`interlock session report {session}` prints all of it" in text


@pytest.mark.inv("SRV-8")
@pytest.mark.parametrize(
    "uri",
    [
        f"interlock://sessions/{NOWHERE}",
        "interlock://sessions/sess_x",
        "interlock://sessions/../keys",
        f"interlock://sessions/{NOWHERE}/../../keys",
        "interlock://workflows/test.code_reveiw/plan",
        "interlock://workflows/",
        "interlock://nothing",
        "file:///etc/passwd",
    ],
)
def test_what_is_not_there_is_invalid_params_with_its_address(client: Served, uri: str) -> None:
    with pytest.raises(MCPError) as caught:
        client.ask("read_resource", uri)
    assert caught.value.error.code == types.INVALID_PARAMS
    assert caught.value.error.data == {"uri": uri}


@pytest.mark.damages
def test_a_damaged_session_is_said_to_be_damaged_and_the_others_are_listed(tmp_path: Path) -> None:
    harness = Harness.on_disk(tmp_path / "data", REVIEW)
    damaged, sound = (harness.session_of(harness.start("test.code_review", goal=goal)) for goal in ("One", "Two"))
    manifest = tmp_path / "data" / "sessions" / damaged / "manifest.jsonl"
    manifest.write_bytes(manifest.read_bytes().replace(b'"sha256:', b'"sha256:0', 1))
    later = Harness.on_disk(tmp_path / "data", REVIEW)
    with serving(later) as client:
        text = read(client, f"interlock://sessions/{damaged}")
        assert "SESSION_NOT_HEALTHY" in text
        assert "damaged" in text
        assert "Steps" not in text
        listed = [one.name for one in client.ask("list_resources").resources]
        assert (sound in listed, damaged in listed) == (True, False)


@pytest.mark.inv("READ-1", "SRV-8")
def test_nothing_that_people_look_at_writes(tmp_path: Path) -> None:
    data = tmp_path / "data"
    Harness.on_disk(data, REVIEW).start("test.code_review", goal="One")
    for directory in (data, tmp_path / "none"):
        before = tree(directory) if directory.exists() else None
        for era in ERAS:
            with serving(Harness.on_disk(directory, REVIEW), era) as client:
                for one in client.ask("list_resources").resources:
                    read(client, one.uri)
                client.ask("get_prompt", "start", {"workflowId": "test.code_review"})
                client.ask("get_prompt", "start", {})
                client.ask("get_prompt", "resume", {"words": "One"})
                values(client, RECORD, "sessionId", "")
        assert (tree(directory) if directory.exists() else None) == before


class FailingStore(MemoryStore):
    """A store whose disk is gone."""

    def log_versions(self) -> dict[str, LogVersion]:  # type: ignore[override]
        raise StoreFailureError(FailureKind.FAILED, "input/output error on /dev/secret")


class FaultyStore(MemoryStore):
    """A store with a bug."""

    def log_versions(self) -> dict[str, LogVersion]:  # type: ignore[override]
        raise RuntimeError("secret /srv/path")


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("store", [FailingStore, FaultyStore])
def test_a_look_that_fails_is_an_internal_error_without_its_words(era: Era, store: type[MemoryStore]) -> None:
    harness = Harness.over(store(), REVIEW, keys=FixedKeyRing())
    with serving(harness, era) as client:
        with pytest.raises(MCPError) as caught:
            client.ask("list_resources")
        assert caught.value.error.code == types.INTERNAL_ERROR
        assert "secret" not in str(caught.value.error)
        assert read(client, "interlock://workflows")


def test_ids_of_workflows_are_completed_by_beginning_and_by_word(client: Served) -> None:
    for ref in ("start", PLAN):
        for typed in ("", "te", "TEST.code", "rev", "careful", "secur", "code look"):
            assert values(client, ref, "workflowId", typed) == ["test.code_review"], typed
        assert values(client, ref, "workflowId", "faulty") == []


def test_ids_of_sessions_are_completed_by_beginning_label_and_goal(client: Served, harness: Harness) -> None:
    old, new = (harness.start("test.code_review", goal=goal) for goal in ("Mend the login", "Mend the door"))
    ids = [harness.session_of(one) for one in (new, old)]
    assert values(client, RECORD, "sessionId", "") == ids
    assert values(client, RECORD, "sessionId", "sess_") == ids
    assert values(client, RECORD, "sessionId", "login") == ids[1:]
    assert values(client, RECORD, "sessionId", new["run"]["label"]) == ids[:1]


@pytest.mark.parametrize(
    ("ref", "argument"), [("start", "goal"), ("resume", "words"), ("other", "workflowId"), (PLAN, "sessionId")]
)
def test_what_has_no_completions_gets_none(client: Served, ref: str, argument: str) -> None:
    assert values(client, ref, argument, "t") == []


def test_no_more_values_are_given_than_the_protocol_allows_and_the_rest_is_counted() -> None:
    count = COMPLETIONS_MAX + 1
    harness = Harness.in_memory(*(linear_workflow(f"test.w{number:03}", "a") for number in range(count)))
    with serving(harness) as client:
        reference = types.PromptReference(type="ref/prompt", name="start")
        completion = (client.ask("complete", reference, {"name": "workflowId", "value": "test"})).completion
    assert (len(completion.values), completion.total, completion.has_more) == (COMPLETIONS_MAX, count, True)


def test_what_begins_as_typed_comes_before_what_only_holds_the_word() -> None:
    choices = [("a.review", "a.review"), ("review.b", "review.b"), ("c", "of reviews"), ("d", "preview")]
    assert completed("review", choices) == ["review.b", "a.review", "c"]
