"""What a run sends outside: derived, recorded with the advance, and sent once."""

import json
import shutil
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest
from tests.support.bundles import exported, imported, repaired
from tests.support.ends import ended_by_command
from tests.support.flow import Document, declared, document, step
from tests.support.modes import NEVER_STOPS, codes, events_of, files_below, session_of
from tests.support.outside import HeldOutbox, into_file, sender_of, sending
from tests.support.tampering import Tampering
from tests.support.verify import unsound

from interlock.channels.channel import ChannelConfig, Result, owner_of
from interlock.kernel.errors import ErrorCode
from interlock.kernel.ids import IntentId
from interlock.record.world import IntentSettled
from interlock.service.outside.dispatch import Undelivered
from interlock.service.outside.intents import abandon_intent, deliver_intent, shown_intents
from interlock.store.local.store import LocalStore
from interlock.testing.harness import Harness, ToolResult

INPUTS = [
    declared("room", required=False),
    declared("sent", required=False),
    declared("tries", "number", required=False),
    declared("box", "object", required=False),
]
NOTIFY: Document = {"kind": "team.notify", "fields": {"text": {"value": "Built"}, "room": {"from": "room"}}}


def emitting(*actions: Document, **more: Any) -> Document:
    """Return a workflow whose first step sends these intents."""
    return document({**step("a"), "emit": list(actions), **more}, step("b"), inputs=INPUTS)


def served(tmp_path: Path, *actions: Document, **more: Any) -> Harness:
    return sending(Harness.on_disk(tmp_path / "data", emitting(*actions, **more)), into_file(tmp_path / "out"))


def intents_of(harness: Harness, start: ToolResult) -> list[Any]:
    found = session_of(harness, start).outside.intents.values()
    return sorted(found, key=lambda one: one.index)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


# Derived and recorded.


@pytest.mark.inv("EFF-3", "EFF-5", "WORLD-5", "DEC-9")
@pytest.mark.produces("event:intent_recorded")
def test_an_intent_is_derived_from_its_declaration_and_recorded_with_the_advance(tmp_path: Path) -> None:
    harness = served(tmp_path, NOTIFY)
    first = harness.start("test.flow", goal="Ship", context={"room": "ops"})
    second = harness.advance(first)
    [intent] = intents_of(harness, first)
    assert (intent.sends, intent.fields) == ("team.notify", {"text": "Built", "room": "ops"})
    assert intent.node == harness.reference_of(second).node
    kinds = [event.kind for event in harness.events(harness.session_of(first))]
    assert kinds.index("advance_recorded") < kinds.index("intent_recorded") < len(kinds)
    assert cast("HeldOutbox", harness.ports.outbox).offered == [(harness.session_of(first), intent.intent_id)]
    assert lines(tmp_path / "out") == []
    assert unsound(harness.store) == []


@pytest.mark.inv("EFF-4")
def test_a_mirrored_field_sets_its_context_key_in_the_same_append(tmp_path: Path) -> None:
    harness = served(tmp_path, {**NOTIFY, "mirror": {"sent": "text"}})
    first = harness.start("test.flow", context={"room": "ops"})
    second = harness.advance(first)
    assert session_of(harness, first).context(harness.reference_of(second).node)["sent"] == "Built"
    assert unsound(harness.store) == []


OUTCOMES: Mapping[str, tuple[Document, dict[str, Any], str]] = {
    "attempted": (NOTIFY, {"room": "ops"}, "attempted"),
    "skipped": ({**NOTIFY, "when": {"var": "tries", "gte": 3}}, {"room": "ops", "tries": 1}, "skipped"),
    "failed": (NOTIFY, {}, "failed"),
    "rejected": (
        {**NOTIFY, "fields": {"text": {"from": "box.text"}}, "mirror": {"tries": "text"}},
        {"box": {"text": "Built"}},
        "rejected",
    ),
    "cancelled": (
        {**NOTIFY, "fields": {"room": {"compute": {"divide": [1, {"var": "tries"}]}}}},
        {"room": "ops", "tries": 0},
        "cancelled",
    ),
}


@pytest.mark.inv("EFF-5", "DEC-9")
@pytest.mark.parametrize("outcome", OUTCOMES)
def test_each_outcome_of_an_intent_sends_it_or_not_and_says_so(tmp_path: Path, outcome: str) -> None:
    action, context, kind = OUTCOMES[outcome]
    harness = served(tmp_path, action)
    first = harness.start("test.flow", goal="Ship", context=context, preferences=NEVER_STOPS)
    harness.advance(first)
    assert len(intents_of(harness, first)) == (1 if kind == "attempted" else 0)
    session = session_of(harness, first)
    [capture] = [one for node in session.nodes.values() for one in node.captures]
    outcomes = json.loads(harness.store.artifact(capture))["outcomes"]
    assert [one["kind"] for one in outcomes if one["key"] == "emit.0"] == [kind]
    assert unsound(harness.store) == []


@pytest.mark.inv("EFF-7")
def test_in_a_run_that_stops_an_intent_that_cannot_be_sent_refuses_the_report(tmp_path: Path) -> None:
    harness = served(tmp_path, NOTIFY)
    first = harness.start("test.flow", goal="Ship")
    refused = harness.advance(first)
    assert codes(refused) == ["MISSING_REQUIRED_OUTPUT"]
    assert intents_of(harness, first) == []
    accepted = harness.advance(refused, context={"room": "ops"})
    assert accepted["pending"]["stepId"] == "b"
    assert len(intents_of(harness, first)) == 1


@pytest.mark.inv("WORLD-5")
@pytest.mark.parametrize("value", [["a"], {"a": 1}, "x" * 9_000])
def test_a_value_that_no_field_can_have_refuses_the_report_until_it_is_corrected(tmp_path: Path, value: Any) -> None:
    harness = served(tmp_path, {**NOTIFY, "fields": {"text": {"from": "box.text"}}})
    first = harness.start("test.flow", goal="Ship", context={"box": {"text": value}})
    refused = harness.advance(first)
    assert codes(refused) == ["INVALID_REQUIRED_OUTPUT"]
    assert intents_of(harness, first) == []
    assert harness.advance(refused, context={"box": {"text": "Built"}})["pending"]["stepId"] == "b"
    assert [one.fields for one in intents_of(harness, first)] == [{"text": "Built"}]


@pytest.mark.inv("WORLD-5")
def test_a_fork_sends_again_under_a_new_id_unless_the_intent_is_sent_once_in_a_run(tmp_path: Path) -> None:
    harness = served(tmp_path, NOTIFY, {**NOTIFY, "once": "run"})
    first = harness.start("test.flow", goal="Ship", context={"room": "ops"})
    harness.advance(first)
    fork = str(harness.rehydrate(first)["fork"]["ackToken"])
    harness.advance(fork, "Did it again on another branch, in another way.")
    found = intents_of(harness, first)
    assert [one.number for one in found] == [0, 1, 0]
    assert len({one.intent_id for one in found}) == 3
    assert unsound(harness.store) == []


def test_in_a_loop_each_pass_sends_and_once_sends_in_the_first_pass_only(tmp_path: Path) -> None:
    body = {**step("a"), "emit": [NOTIFY, {**NOTIFY, "once": "run"}]}
    loop: Document = {
        "type": "loop",
        "loopId": "again",
        "title": "Again",
        "maxIterations": 3,
        "for": {"count": 3},
        "body": [body],
    }
    harness = sending(Harness.on_disk(tmp_path / "data", document(loop, inputs=INPUTS)), into_file(tmp_path / "out"))
    here = first = harness.start("test.flow", goal="Ship", context={"room": "ops"})
    for number in range(3):
        here = harness.advance(here, f"Did pass number {number} of the work completely.")
    assert [one.number for one in intents_of(harness, first)] == [0, 1, 0, 0]
    assert unsound(harness.store) == []


@pytest.mark.damages
@pytest.mark.inv("EFF-9")
def test_verification_derives_intents_again_and_finds_a_changed_one(tmp_path: Path) -> None:
    harness = served(tmp_path, NOTIFY)
    first = harness.start("test.flow", goal="Ship", context={"room": "ops"})
    harness.advance(first)
    before = files_below(tmp_path)
    assert unsound(harness.store) == []
    assert files_below(tmp_path) == before
    tampering = Tampering(tmp_path / "data")

    def change(body: Any) -> None:
        body["data"]["fields"]["text"] = "Something else"

    tampering.alter("intent_recorded", change)
    [found] = unsound(LocalStore(tmp_path / "data"))
    assert found.code == "effect_mismatch"


# Coverage.


@pytest.mark.inv("EFF-6", "WORLD-7")
@pytest.mark.produces("error:EFFECT_UNCOVERED")
@pytest.mark.parametrize(
    ("channels", "words"),
    [
        ((), "no channel accepts `team.notify`"),
        ((into_file(Path("/out"), sources=("user", "bundled")),), "not from workflows of the source `project`"),
        ((into_file(Path("/a"), name="one"), into_file(Path("/b"), name="two")), "several channels accept"),
    ],
    ids=["none", "only for the user's own", "two"],
)
def test_a_run_does_not_begin_without_exactly_one_channel_for_what_it_sends(
    tmp_path: Path, channels: tuple[ChannelConfig, ...], words: str
) -> None:
    harness = sending(Harness.on_disk(tmp_path, emitting(NOTIFY)), *channels)
    refused = harness.start("test.flow", goal="Ship")
    assert refused.code is ErrorCode.EFFECT_UNCOVERED
    assert words in refused["message"]
    assert refused["details"]["sends"] == ["team.notify"]
    assert files_below(tmp_path) == {}


def test_without_any_channel_a_workflow_that_sends_nothing_starts_as_before() -> None:
    assert Harness.in_memory(document(step("a"))).start("test.flow", goal="x")["pending"]["stepId"] == "a"


# Sending.


@pytest.mark.inv("WORLD-6", "EFF-7")
@pytest.mark.produces("event:intent_settled")
def test_an_intent_is_claimed_before_it_is_sent_and_its_result_follows(tmp_path: Path) -> None:
    harness = served(tmp_path, NOTIFY)
    first = harness.start("test.flow", goal="Ship", context={"room": "ops"})
    harness.advance(first)
    [intent] = intents_of(harness, first)
    sender = sender_of(harness, into_file(tmp_path / "out"))
    settled = sender.send(harness.session_of(first), intent.intent_id, 0)
    assert isinstance(settled, IntentSettled)
    assert settled.state == "delivered"
    [line] = lines(tmp_path / "out")
    assert (line["intent"], line["kind"], line["fields"]) == (
        intent.intent_id,
        "team.notify",
        {"text": "Built", "room": "ops"},
    )
    states = [cast("Any", one).data.state for one in events_of(harness, first, "intent_settled")]
    assert states == ["dispatched", "delivered"]
    assert isinstance(sender.send(harness.session_of(first), intent.intent_id, 0), Undelivered)
    assert len(lines(tmp_path / "out")) == 1
    assert unsound(harness.store) == []


@pytest.mark.inv("WORLD-6")
def test_of_two_processes_that_send_one_intent_at_the_same_moment_only_one_sends_it(tmp_path: Path) -> None:
    harness = served(tmp_path, NOTIFY)
    first = harness.start("test.flow", goal="Ship", context={"room": "ops"})
    harness.advance(first)
    [intent] = intents_of(harness, first)
    barrier, found = threading.Barrier(2), list[object]()

    def send(owner: str) -> None:
        other = Harness.on_disk(tmp_path / "data", emitting(NOTIFY))
        barrier.wait()
        sender = sender_of(other, into_file(tmp_path / "out"), owner=owner)
        found.append(sender.send(harness.session_of(first), intent.intent_id, 0))

    threads = [threading.Thread(target=send, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(lines(tmp_path / "out")) == 1
    assert sorted(type(one).__name__ for one in found) == ["IntentSettled", "Undelivered"]


@pytest.mark.inv("WORLD-6")
def test_a_claim_without_a_result_is_unknown_and_is_sent_again_only_if_a_person_says_so(tmp_path: Path) -> None:
    harness = served(tmp_path, NOTIFY)
    first = harness.start("test.flow", goal="Ship", context={"room": "ops"})
    harness.advance(first)
    [intent] = intents_of(harness, first)
    channel = into_file(tmp_path / "out")
    claimed = sender_of(harness, channel).claim(harness.session_of(first), intent.intent_id, 0)
    assert not isinstance(claimed, Undelivered)
    [shown] = shown_intents(session_of(harness, first), (channel,))
    assert shown.state == "unknown"
    sender = sender_of(harness, channel, owner="another process")
    refused = deliver_intent(sender, session_of(harness, first), intent.intent_id, is_repeated=False)
    assert isinstance(refused, Undelivered)
    assert "--again" in refused.why
    assert lines(tmp_path / "out") == []
    settled = deliver_intent(sender, session_of(harness, first), intent.intent_id, is_repeated=True)
    assert isinstance(settled, IntentSettled)
    assert (settled.state, settled.attempt) == ("delivered", 2)
    states = [
        (one.data.attempt, one.data.state) for one in cast("list[Any]", events_of(harness, first, "intent_settled"))
    ]
    assert states == [(1, "dispatched"), (1, "unknown"), (2, "dispatched"), (2, "delivered")]
    assert unsound(harness.store) == []


def test_a_result_that_comes_after_a_person_began_the_next_try_does_not_settle_that_one(tmp_path: Path) -> None:
    harness = served(tmp_path, NOTIFY)
    first = harness.start("test.flow", goal="Ship", context={"room": "ops"})
    harness.advance(first)
    [intent] = intents_of(harness, first)
    channel = into_file(tmp_path / "out")
    slow, fast = sender_of(harness, channel, owner="slow"), sender_of(harness, channel, owner="fast")
    claimed = slow.claim(harness.session_of(first), intent.intent_id, 0)
    assert not isinstance(claimed, Undelivered)
    deliver_intent(fast, session_of(harness, first), intent.intent_id, is_repeated=True)
    kept = slow.settle(harness.session_of(first), claimed[0], channel, Result(outcome="failed", note="late"))
    assert not isinstance(kept, Undelivered)
    assert (kept.state, kept.attempt) == ("delivered", 2)
    assert unsound(harness.store) == []


@pytest.mark.inv("WORLD-6", "EFF-8")
def test_after_its_run_ended_an_intent_is_cancelled_and_a_result_may_still_be_recorded(tmp_path: Path) -> None:
    harness = served(tmp_path, NOTIFY, {**NOTIFY, "fields": {"text": {"value": "2"}}})
    first = harness.start("test.flow", goal="Ship", context={"room": "ops"})
    harness.advance(first)
    one, two = intents_of(harness, first)
    channel = into_file(tmp_path / "out")
    sender = sender_of(harness, channel)
    claimed = sender.claim(harness.session_of(first), one.intent_id, 0)
    assert not isinstance(claimed, Undelivered)
    ended_by_command(harness, first)
    settled = sender.settle(harness.session_of(first), claimed[0], channel, Result(outcome="delivered"))
    assert not isinstance(settled, Undelivered)
    assert settled.state == "delivered"
    assert isinstance(sender.send(harness.session_of(first), two.intent_id, 0), Undelivered)
    states = [shown.state for shown in shown_intents(session_of(harness, first), (channel,))]
    assert states == ["delivered", "cancelled"]
    assert lines(tmp_path / "out") == []
    assert unsound(harness.store) == []


@pytest.mark.inv("WORLD-6")
@pytest.mark.parametrize("made_by", ["import", pytest.param("repair", marks=pytest.mark.damages), "restored backup"])
def test_a_copy_of_a_session_sends_nothing_and_lists_what_was_not_sent(tmp_path: Path, made_by: str) -> None:
    harness = served(tmp_path, NOTIFY)
    first = harness.start("test.flow", goal="Ship", context={"room": "ops"})
    harness.advance(harness.advance(first), "Did b.")
    original = harness.session_of(first)
    target = sending(Harness.on_disk(tmp_path / "copy", emitting(NOTIFY)), into_file(tmp_path / "out"))
    if made_by == "import":
        copy = imported(target, exported(harness, original).data).restored.session
    elif made_by == "repair":
        target = sending(harness, into_file(tmp_path / "out"))
        max((tmp_path / "data" / "sessions" / original / "events").iterdir()).unlink()
        copy = repaired(target, original).restored.session
    else:
        shutil.copytree(tmp_path / "data", tmp_path / "copy", dirs_exist_ok=True)
        copy = original
    session = target.store.load(copy)
    assert session is not None
    assert cast("HeldOutbox", target.ports.outbox).offered == []
    assert [one.state for one in shown_intents(session, (into_file(tmp_path / "out"),))] == ["undelivered"]
    assert lines(tmp_path / "out") == []


@pytest.mark.inv("WORLD-7")
def test_a_run_of_an_imported_session_reaches_a_channel_only_if_it_names_imports(tmp_path: Path) -> None:
    theirs = served(tmp_path, NOTIFY)
    first = theirs.start("test.flow", goal="Ship", context={"room": "ops"})
    mine = into_file(tmp_path / "out", sources=("user", "project", "bundled"))
    harness = sending(Harness.on_disk(tmp_path / "copy", emitting(NOTIFY)), mine)
    made = imported(harness, exported(theirs, theirs.session_of(first)).data).restored
    harness.follow(harness.call("continue_workflow", made.ways_on[0].next_call.arguments), "Did a here, with care.")
    session = harness.store.load(made.session)
    assert session is not None
    [intent] = session.outside.intents.values()
    found = sender_of(harness, mine).send(made.session, intent.intent_id, 0)
    assert isinstance(found, Undelivered)
    assert "`imported`" in found.why
    assert lines(tmp_path / "out") == []
    [shown] = shown_intents(session, (mine,))
    assert (shown.state, "`imported`" in (shown.why or "")) == ("undelivered", True)
    joined = harness.start("test.flow", goal="Ship", sessionId=made.session)
    assert joined.code is ErrorCode.EFFECT_UNCOVERED
    assert unsound(harness.store) == []
    believing = into_file(tmp_path / "out", sources=("imported",))
    assert isinstance(sender_of(harness, believing).send(made.session, intent.intent_id, 0), IntentSettled)
    assert len(lines(tmp_path / "out")) == 1


@pytest.mark.damages
@pytest.mark.inv("WORLD-7")
def test_the_mark_of_an_import_stays_in_a_repaired_and_in_a_further_copy(tmp_path: Path) -> None:
    theirs = served(tmp_path, NOTIFY)
    first = theirs.start("test.flow", goal="Ship", context={"room": "ops"})
    theirs.advance(first)
    harness = served(tmp_path / "there", NOTIFY)
    harness.start("test.flow", goal="Takes the first id", context={"room": "ops"})
    copy = imported(harness, exported(theirs, theirs.session_of(first)).data).restored.session
    again = imported(theirs, exported(harness, copy).data).restored.session
    max((tmp_path / "there" / "data" / "sessions" / copy / "events").iterdir()).unlink()
    whole = repaired(harness, copy).restored.session
    found = [theirs.store.load(theirs.session_of(first)), theirs.store.load(again), harness.store.load(whole)]
    assert [one is not None and one.is_imported for one in found] == [False, True, True]


def test_an_abandoned_intent_is_not_delivered(tmp_path: Path) -> None:
    harness = served(tmp_path, NOTIFY)
    first = harness.start("test.flow", goal="Ship", context={"room": "ops"})
    harness.advance(first)
    [intent] = intents_of(harness, first)
    sender = sender_of(harness, into_file(tmp_path / "out"))
    settled = abandon_intent(sender.ports, harness.session_of(first), intent.intent_id, sender.actor)
    assert isinstance(settled, IntentSettled)
    refused = deliver_intent(sender, session_of(harness, first), intent.intent_id, is_repeated=True)
    assert isinstance(refused, Undelivered)
    assert isinstance(
        abandon_intent(sender.ports, harness.session_of(first), intent.intent_id, sender.actor), Undelivered
    )
    assert isinstance(
        abandon_intent(sender.ports, harness.session_of(first), IntentId("intent_no"), sender.actor), Undelivered
    )
    assert lines(tmp_path / "out") == []


def test_without_a_channel_an_intent_stays_undelivered_and_the_list_says_why(tmp_path: Path) -> None:
    harness = served(tmp_path, NOTIFY)
    first = harness.start("test.flow", goal="Ship", context={"room": "ops"})
    harness.advance(first)
    [intent] = intents_of(harness, first)
    found = sender_of(harness).send(harness.session_of(first), intent.intent_id, 0)
    assert isinstance(found, Undelivered)
    [shown] = shown_intents(session_of(harness, first), ())
    assert (shown.state, shown.why) == ("undelivered", "uncovered: no channel accepts `team.notify`")
    assert events_of(harness, first, "intent_settled") == []


def test_the_owner_of_a_kind_is_the_only_channel_for_it_and_its_source() -> None:
    mine, theirs = into_file(Path("/a"), name="mine", sources=("user",)), into_file(Path("/b"), name="theirs")
    assert owner_of((mine, theirs), "team.notify", "user") == mine
    assert owner_of((mine, theirs), "team.notify", "project") == theirs
    assert isinstance(owner_of((mine, theirs), "team.other", "user"), str)
