"""Steps that wait for an event from outside."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from tests.support.bundles import exported, imported, reattested, refused, restoring, value_of
from tests.support.calls import with_samples
from tests.support.ends import ended_by_command
from tests.support.flow import Document, declared, document, step
from tests.support.modes import NEVER_STOPS, events_of, files_below, gaps_in, session_of, status_of
from tests.support.outside import (
    AWAIT,
    STATUS,
    WAITING,
    a_source,
    artifact,
    into_file,
    sending,
    sent,
    signed_event,
    waiting_for,
    with_sources,
)
from tests.support.verify import unsound

from interlock.engine.outside import SourceKey
from interlock.kernel.budgets import ATTEMPTS_PER_STEP_MAX, CLAIMS_WAITING_MAX, EVENTS_WAITING_MAX
from interlock.kernel.errors import ErrorCode, Refusal
from interlock.kernel.ids import SessionId
from interlock.record.events import AdvanceRecordedEvent, Event
from interlock.service.run.summarize import summary_of
from interlock.service.tools.send_event import EventReport
from interlock.service.tools.session_parts import SessionPart, read_step
from interlock.service.transfer import bundle_check
from interlock.service.transfer.redact import Redacted, redact_session
from interlock.store.memory.store import MemoryStore
from interlock.testing.harness import CounterClock, FixedKeyRing, Harness, ToolResult

HOUR_MS = 3_600_000


def at_the_wait(harness: Harness, **start: object) -> tuple[ToolResult, ToolResult]:
    """Start the workflow and report its first step; return both answers."""
    first = harness.start("test.flow", goal="Ship", **start)
    return first, harness.advance(first)


def took(harness: Harness, start: ToolResult) -> list[tuple[str, ...]]:
    found = cast("list[AdvanceRecordedEvent]", events_of(harness, start, "advance_recorded"))
    return [one.data.took or () for one in found]


@pytest.mark.inv("WORLD-1", "WORLD-3", "ING-4")
def test_an_ack_of_a_waiting_step_without_its_event_writes_nothing_and_answers_the_same(tmp_path: Path) -> None:
    harness = Harness.on_disk(tmp_path, WAITING)
    _, waiting = at_the_wait(harness)
    assert waiting["waiting"].items() >= {"for": "event", "event": "ci.finished"}.items()
    assert waiting["nextCall"]["fill"] == []
    before = files_below(tmp_path)
    answers = [harness.advance(waiting, None) for _ in range(100)]
    assert files_below(tmp_path) == before
    assert all(one == answers[0] for one in answers)
    assert answers[0]["ackToken"] == waiting["ackToken"]
    assert answers[0].text == answers[-1].text


@pytest.mark.inv("WORLD-1", "WORLD-4")
@pytest.mark.produces("event:event_received")
def test_an_event_that_arrives_while_a_step_waits_lets_the_run_continue_at_once() -> None:
    harness = Harness.in_memory(WAITING)
    first, waiting = at_the_wait(harness)
    report = sent(harness, first)
    assert isinstance(report, EventReport)
    assert (report.is_new, report.is_advanced) == (True, True)
    third = harness.advance(waiting, None)
    assert third["pending"]["stepId"] == "b"
    session = session_of(harness, first)
    assert session.context(harness.reference_of(third).node)["status"] == "green"
    assert unsound(harness.store) == []


@pytest.mark.inv("WORLD-4")
def test_an_event_before_its_step_during_it_and_twice_lead_to_the_same_run() -> None:
    def played(moments: str) -> tuple[list[Any], list[tuple[str, ...]], Any, str]:
        harness = Harness.in_memory(WAITING)
        first = harness.start("test.flow", goal="Ship")
        if "before" in moments:
            sent(harness, first)
        waiting = harness.advance(first)
        if "during" in moments:
            sent(harness, first)
        third = harness.advance(waiting, None)
        assert unsound(harness.store) == []
        context = dict(session_of(harness, first).context(harness.reference_of(third).node))
        taken = [() if not one else ("one",) for one in took(harness, first)]
        log = without_order(harness.events(harness.session_of(first)))
        return log, taken, context, third["pending"]["stepId"]

    log, *rest = played("during")
    assert len(log) > 10
    assert rest == [[(), ("one",)], {"goal": "Ship", "status": "green"}, "b"]
    assert played("before") == played("before during") == (log, *rest)


@pytest.mark.inv("WORLD-3", "ADV-5")
def test_a_run_does_not_wait_for_an_event_that_is_recorded_already() -> None:
    harness = Harness.in_memory(WAITING)
    first = harness.start("test.flow", goal="Ship")
    sent(harness, first)
    answer = harness.advance(first)
    assert answer["waiting"]["how"].startswith("The event `ci.finished` is recorded already. The call takes it")
    (run,) = summary_of(session_of(harness, first), harness.ports.read.plans).runs
    assert run.waiting is None
    third = harness.advance(answer, None)
    assert third["pending"]["stepId"] == "b"
    assert harness.advance(first).structure == answer.structure


@pytest.mark.inv("SRV-17")
def test_a_step_that_waits_is_read_before_and_after_it_is_pending() -> None:
    other = {**AWAIT, "id": "other", "event": "deploy.done"}
    harness = Harness.in_memory({**waiting_for(), "steps": [step("a"), AWAIT, other]})
    first = harness.start("test.flow", goal="Ship")
    session, label = SessionId(harness.session_of(first)), first["run"]["label"]

    def read_of_step(step_id: str) -> str:
        part = read_step(harness.ports.read, session, label, step_id)
        assert isinstance(part, SessionPart)
        return part.text

    sent(harness, first)
    before = [read_of_step(one) for one in ("ci", "other")]
    waiting = harness.advance(first)
    assert waiting["pending"]["stepId"] == "ci"
    assert [read_of_step(one) for one in ("ci", "other")] == before
    last = harness.advance(waiting, None)
    sent(harness, first, event="deploy.done")
    assert harness.advance(last, None)["isComplete"]
    assert [read_of_step(one) for one in ("ci", "other")] == before


@pytest.mark.inv("WORLD-4")
def test_a_late_event_is_reported_as_too_late() -> None:
    clock = CounterClock()
    harness = Harness.over(MemoryStore(), waiting_for(timeout="1h"), clock=clock, keys=FixedKeyRing())
    in_time, _ = at_the_wait(harness)
    late, waiting = at_the_wait(harness)
    assert "It waits at most 1 h." in waiting["waiting"]["how"]
    report = sent(harness, in_time)
    assert isinstance(report, EventReport)
    assert (report.is_advanced, report.expired) == (True, None)
    clock.skip_ms(2 * HOUR_MS)
    report = sent(harness, late)
    assert isinstance(report, EventReport)
    assert (report.is_advanced, report.expired) == (True, "ci.finished")
    for event_id in ("1", "2"):
        report = sent(harness, late, event_id)
        assert isinstance(report, EventReport)
        assert (report.is_advanced, report.expired) == (False, "ci.finished")
    report = sent(harness, in_time)
    assert isinstance(report, EventReport)
    assert report.expired is None


@pytest.mark.inv("WORLD-4")
def test_an_agent_that_sends_an_event_too_late_is_told_so_with_the_call_that_notices_it_and_with_later_ones() -> None:
    clock = CounterClock()
    document_ = waiting_for(timeout="1h", assurance="claimed")
    harness = Harness.over(MemoryStore(), document_, clock=clock, keys=FixedKeyRing())
    _, waiting = at_the_wait(harness)
    clock.skip_ms(2 * HOUR_MS)
    noticed = harness.advance(waiting, None, output={"artifacts": [artifact("1")]})
    assert "EVENT_TOO_LATE" in noticed.warnings
    assert harness.advance(waiting, None, output={"artifacts": [artifact("1")]}) == noticed
    output = {"notesMarkdown": "Did b.", "artifacts": [artifact("2")]}
    assert "EVENT_TOO_LATE" in harness.advance(noticed, output=output).warnings
    _, in_time = at_the_wait(harness)
    taken = harness.advance(in_time, None, output={"artifacts": [artifact("1")]})
    assert "EVENT_TOO_LATE" not in taken.warnings


def without_order(events: Sequence[Event]) -> list[Any]:
    """Return a log without the place of the event from outside: ids are numbered, and the event is the first.

    Who made the call that the run waited for is left out: its sender, if the step waited, and else the agent.
    """
    found = [{**one.to_json(), "eventIndex": None, "actor": None} for one in events]
    found.sort(key=lambda one: one["kind"] != "event_received")
    numbers: dict[str, str] = {}
    named = re.compile(r"\b([a-z]+_[0-9a-hjkmnp-tv-z]{26}|intent_[0-9a-z]+)\b")
    text = named.sub(lambda id_: numbers.setdefault(id_[0], f"{id_[0][:4]}#{len(numbers)}"), json.dumps(found))
    return cast("list[Any]", json.loads(text))


@pytest.mark.inv("WORLD-2")
def test_an_event_with_the_same_kind_and_id_counts_once_and_the_first_fields_stay() -> None:
    harness = Harness.in_memory(waiting_for(assurance="signed"))
    first, _ = at_the_wait(harness)
    sent(harness, first)
    again = sent(harness, first, fields={"status": "red"})
    assert isinstance(again, EventReport)
    assert not again.is_new
    assert [one.code for one in again.warnings] == ["EVENT_CONTENT_IGNORED"]
    assert again.received.data.fields == {"status": "green"}
    assert len(events_of(harness, first, "event_received")) == 1


@pytest.mark.inv("WORLD-2", "WORLD-4")
def test_a_claim_does_not_take_the_id_or_the_place_of_a_signed_event() -> None:
    source, key = a_source("ci.finished")
    harness = with_sources(Harness.in_memory(waiting_for(assurance="signed")), source)
    first, waiting = at_the_wait(harness)
    harness.advance(waiting, None, output={"artifacts": [artifact("1", fields={"status": "claimed"})]})
    for number in range(2, CLAIMS_WAITING_MAX + 1):
        assert isinstance(sent(harness, first, str(number), assurance="claimed"), EventReport)
    refusal = sent(harness, first, "one more", assurance="claimed")
    assert isinstance(refusal, Refusal)
    assert f"{CLAIMS_WAITING_MAX} claimed events" in refusal.message
    event: dict[str, Any] = signed_event(harness, first, key).to_json()
    report = sent(harness, first, event.pop("id"), **event)
    assert isinstance(report, EventReport)
    assert (report.is_new, report.is_advanced) == (True, True)
    tip = session_of(harness, first).runs[harness.reference_of(first).run].tip
    assert tip is not None
    assert session_of(harness, first).context(tip)["status"] == "green"
    assert unsound(harness.store) == []


@pytest.mark.inv("WORLD-4")
def test_after_a_fork_both_branches_take_the_event_and_a_waiting_step_offers_no_fork() -> None:
    harness = Harness.in_memory(WAITING)
    first, waiting = at_the_wait(harness)
    sent(harness, first)
    passed = harness.rehydrate(waiting)
    assert "fork" not in passed.structure
    fork = str(harness.rehydrate(first)["fork"]["ackToken"])
    other = harness.advance(fork, "Did it another way, with other files and another result.")
    assert other["pending"]["stepId"] == "ci"
    assert harness.advance(other, None)["pending"]["stepId"] == "b"
    [one, two] = [found for found in took(harness, first) if found]
    assert one == two
    assert unsound(harness.store) == []


def test_a_loop_takes_one_event_in_each_pass_in_log_order() -> None:
    body = [{"id": "do", "title": "Do", "prompt": "Do it.", "notes": "optional"}, AWAIT]
    loop: Document = {
        "type": "loop",
        "loopId": "again",
        "title": "Again",
        "maxIterations": 3,
        "for": {"count": 3},
        "body": body,
    }
    harness = Harness.in_memory({**WAITING, "steps": [loop]})
    first = harness.start("test.flow", goal="Ship")
    sent(harness, first, "1", fields={"status": "one"})
    sent(harness, first, "2", fields={"status": "two"})
    here, seen = first, list[object]()
    for _ in range(2):
        here = harness.advance(here, "Did this pass completely.")
        here = harness.advance(here, None)
        seen.append(session_of(harness, first).context(harness.reference_of(here).node)["status"])
    here = harness.advance(here, "Did the last pass completely.")
    assert seen == ["one", "two"]
    assert here["waiting"]["event"] == "ci.finished"
    assert unsound(harness.store) == []


@pytest.mark.inv("WORLD-3")
def test_an_agent_reports_an_event_as_a_claim_with_the_call_of_the_waiting_step() -> None:
    harness = Harness.in_memory(WAITING)
    first, waiting = at_the_wait(harness)
    third = harness.advance(waiting, None, output={"artifacts": [artifact()]})
    assert third["pending"]["stepId"] == "b"
    [event] = events_of(harness, first, "event_received")
    data = cast("Any", event).data
    assert (data.assurance, data.via) == ("claimed", "claim")
    assert unsound(harness.store) == []


@pytest.mark.inv("WORLD-4", "WORLD-9")
def test_an_event_that_is_not_known_well_enough_is_kept_and_not_taken() -> None:
    harness = Harness.in_memory(waiting_for(assurance="observed"))
    first, waiting = at_the_wait(harness)
    claimed = harness.advance(waiting, None, output={"artifacts": [artifact("1")]})
    assert claimed["pending"]["stepId"] == "ci"
    assert "wr.event" not in claimed.text
    report = sent(harness, first, "2")
    assert isinstance(report, EventReport)
    assert report.is_advanced
    assert session_of(harness, first).outside.waiting(harness.reference_of(first).run) == 1


@pytest.mark.inv("ING-1", "ING-3")
@pytest.mark.parametrize(
    ("changes", "path", "words"),
    [
        ({"event": "ci.finishd"}, "event", "ci.finished"),
        ({"fields": {}}, "fields.status", "`status` (string)"),
        ({"fields": {"status": "green", "more": 1}}, "fields.more", "`status` (string)"),
        ({"fields": {"status": True}}, "fields.status", "`status` (string)"),
        ({"node": "node_" + "0" * 26}, "node", "Leave `node` out"),
    ],
    ids=["unknown kind", "missing field", "unknown field", "wrong type", "unknown node"],
)
def test_an_event_that_no_step_waits_for_is_refused_and_nothing_is_written(
    tmp_path: Path, changes: dict[str, Any], path: str, words: str
) -> None:
    harness = Harness.on_disk(tmp_path, WAITING)
    first, waiting = at_the_wait(harness)
    before = files_below(tmp_path)
    refusal = sent(harness, first, **changes)
    assert isinstance(refusal, Refusal)
    assert (refusal.code, refusal.details["path"]) == (ErrorCode.VALIDATION_ERROR, path)
    assert words in refusal.suggestion
    by_agent = harness.advance(waiting, None, output={"artifacts": [artifact(**changes)]})
    assert by_agent.code is ErrorCode.VALIDATION_ERROR
    assert files_below(tmp_path) == before


@pytest.mark.parametrize("kind", ["wr.approval", "wr.expired", "wr.check"])
def test_a_forged_event_of_interlock_itself_is_refused(kind: str) -> None:
    harness = Harness.in_memory(WAITING)
    first, waiting = at_the_wait(harness)
    refused = harness.advance(waiting, None, output={"artifacts": [artifact(event=kind)]})
    assert refused.code is ErrorCode.VALIDATION_ERROR
    assert events_of(harness, first, "event_received") == []


def test_a_checkpoint_records_no_event() -> None:
    harness = Harness.in_memory(WAITING)
    first, waiting = at_the_wait(harness)
    refused = harness.checkpoint(waiting, None, output={"artifacts": [artifact()]})
    assert refused.code is ErrorCode.VALIDATION_ERROR
    assert events_of(harness, first, "event_received") == []


def test_an_event_to_a_run_that_ended_is_refused() -> None:
    harness = Harness.in_memory(WAITING)
    first, _ = at_the_wait(harness)
    ended_by_command(harness, first)
    refusal = sent(harness, first)
    assert isinstance(refusal, Refusal)
    assert refusal.code is ErrorCode.RUN_ENDED


def test_a_run_holds_a_bounded_number_of_events_that_nobody_took() -> None:
    harness = Harness.in_memory(waiting_for(assurance="signed"))
    first, _ = at_the_wait(harness)
    for number in range(EVENTS_WAITING_MAX):
        assert isinstance(sent(harness, first, str(number)), EventReport)
    refusal = sent(harness, first, "one more")
    assert isinstance(refusal, Refusal)
    assert str(EVENTS_WAITING_MAX) in refusal.message


@pytest.mark.inv("ANS-12", "WORLD-3")
@pytest.mark.parametrize(
    ("change", "asked"),
    [
        ({"id": 5}, {"id"}),
        ({"id": None}, {"id"}),
        ({"fields": {"status": None}}, {"fields"}),
        ({"event": "CI finished"}, {"event"}),
        ({"source": "ci"}, set[str]()),
    ],
)
def test_the_corrected_call_of_an_event_changes_only_the_wrong_member(change: Document, asked: set[str]) -> None:
    harness = Harness.in_memory(WAITING)
    _, waiting = at_the_wait(harness)
    report = {"kind": "report", "rows": [1]}
    refused = harness.advance(waiting, None, output={"artifacts": [report, {**artifact(), **change}]})
    assert refused.code is ErrorCode.VALIDATION_ERROR
    call = with_samples(refused["details"]["correctedCall"])
    first, second = call["arguments"]["output"]["artifacts"]
    assert first == report
    assert {name for name in {**artifact(), **second} if second.get(name) != artifact().get(name)} == asked


@pytest.mark.inv("WORLD-4")
@pytest.mark.parametrize("modes", [{}, {"preferences": NEVER_STOPS}], ids=["guided", "never stops"])
def test_a_wait_that_ends_by_its_timeout_leaves_a_critical_gap(modes: dict[str, Any]) -> None:
    clock = CounterClock()
    harness = Harness.over(MemoryStore(), waiting_for(timeout="1h"), clock=clock, keys=FixedKeyRing())
    first, waiting = at_the_wait(harness, **modes)
    assert harness.advance(waiting, None)["pending"]["stepId"] == "ci"
    clock.skip_ms(HOUR_MS)
    third = harness.advance(waiting, None)
    assert third["pending"]["stepId"] == "b"
    [gap] = gaps_in(harness, first)
    assert (gap.severity, gap.reason.detail) == ("critical", "missing_required_output")
    harness.advance(third, "Finished the rest of the work.")
    assert status_of(harness, first) == "complete_with_gaps"
    [event] = events_of(harness, first, "event_received")
    assert (cast("Any", event).data.event, cast("Any", event).data.via) == ("wr.expired", "clock")
    assert unsound(harness.store) == []


@pytest.mark.inv("WORLD-4")
def test_a_step_that_reads_whether_its_time_is_over_leaves_no_gap() -> None:
    clock = CounterClock()
    sets = [*AWAIT["set"], {"key": "late", "from": "event.expired"}]
    harness = Harness.over(MemoryStore(), waiting_for(timeout="1h", set=sets), clock=clock, keys=FixedKeyRing())
    first, waiting = at_the_wait(harness)
    clock.skip_ms(HOUR_MS)
    third = harness.advance(waiting, None)
    assert gaps_in(harness, first) == []
    context = session_of(harness, first).context(harness.reference_of(third).node)
    assert context["late"] is True
    assert "status" not in context


def test_an_event_that_arrived_in_time_counts_after_the_time_is_over() -> None:
    clock = CounterClock()
    harness = Harness.over(MemoryStore(), waiting_for(timeout="1h"), clock=clock, keys=FixedKeyRing())
    first = harness.start("test.flow", goal="Ship")
    sent(harness, first)
    waiting = harness.advance(first)
    clock.skip_ms(2 * HOUR_MS)
    harness.advance(waiting, None)
    assert gaps_in(harness, first) == []


@pytest.mark.inv("WORLD-4")
def test_an_event_after_the_timeout_is_too_late_whoever_notices_it() -> None:
    clock = CounterClock()
    harness = Harness.over(MemoryStore(), waiting_for(timeout="1h"), clock=clock, keys=FixedKeyRing())
    by_command, _ = at_the_wait(harness)
    by_agent, waiting = at_the_wait(harness)
    clock.skip_ms(2 * HOUR_MS)
    report = sent(harness, by_command)
    assert isinstance(report, EventReport)
    assert report.is_advanced
    harness.advance(waiting, None, output={"artifacts": [artifact()]})
    for first in (by_command, by_agent):
        tip = session_of(harness, first).runs[harness.reference_of(first).run].tip
        assert tip is not None
        assert "status" not in session_of(harness, first).context(tip)
        assert len(gaps_in(harness, first)) == 1
    assert unsound(harness.store) == []


@pytest.mark.inv("WORLD-4", "WORLD-5")
def test_a_step_whose_event_did_not_come_sends_and_mirrors_nothing() -> None:
    clock = CounterClock()
    emits = [{"kind": "team.notify", "fields": {"text": {"value": "green"}}, "mirror": {"status": "text"}}]
    body = waiting_for(timeout="1h", emit=emits, set=[])
    harness = Harness.over(MemoryStore(), body, clock=clock, keys=FixedKeyRing())
    harness = sending(harness, into_file(Path("/nowhere")))
    first, waiting = at_the_wait(harness)
    clock.skip_ms(2 * HOUR_MS)
    third = harness.advance(waiting, None)
    assert third["pending"]["stepId"] == "b"
    session = session_of(harness, first)
    assert not list(session.outside.intents)
    assert "status" not in session.context(harness.reference_of(third).node)
    assert unsound(harness.store) == []


@pytest.mark.inv("ING-3")
def test_of_two_events_in_one_call_none_is_recorded_if_one_is_refused(tmp_path: Path) -> None:
    harness = Harness.on_disk(tmp_path, WAITING)
    _, waiting = at_the_wait(harness)
    before = files_below(tmp_path)
    refused = harness.advance(waiting, None, output={"artifacts": [artifact("1"), artifact("2", event="ci.no")]})
    assert refused.code is ErrorCode.VALIDATION_ERROR
    assert files_below(tmp_path) == before


def test_an_event_to_a_complete_run_is_refused_and_nothing_is_recorded() -> None:
    harness = Harness.in_memory(WAITING)
    first, waiting = at_the_wait(harness)
    third = harness.advance(waiting, None, output={"artifacts": [artifact()]})
    assert harness.advance(third, "Did the last step, and all of it works.")["isComplete"]
    refusal = sent(harness, first, "2")
    assert isinstance(refusal, Refusal)
    assert (refusal.code, "is complete" in refusal.message) == (ErrorCode.RUN_ENDED, True)
    assert len(events_of(harness, first, "event_received")) == 1


# Signatures.


@pytest.mark.inv("WORLD-10")
def test_a_signed_event_satisfies_a_step_that_demands_it_whoever_brings_it() -> None:
    source, key = a_source("ci.finished")
    harness = with_sources(Harness.in_memory(waiting_for(assurance="signed")), source)
    first, waiting = at_the_wait(harness)
    event = signed_event(harness, first, key)
    third = harness.advance(waiting, None, output={"artifacts": [{"kind": "wr.event", **event.to_json()}]})
    assert third["pending"]["stepId"] == "b"
    [recorded] = events_of(harness, first, "event_received")
    assert cast("Any", recorded).data.signed.source == "ci"
    assert unsound(harness.store) == []


@pytest.mark.inv("WORLD-10")
def test_a_signature_whose_key_is_not_configured_here_is_not_taken_and_the_answer_names_the_key() -> None:
    source, key = a_source("ci.finished")
    theirs = with_sources(Harness.in_memory(waiting_for(assurance="signed")), source)
    first = theirs.start("test.flow", goal="Ship")
    event: dict[str, Any] = signed_event(theirs, first, key).to_json()
    assert isinstance(sent(theirs, first, event.pop("id"), **event), EventReport)
    mine, my_key = a_source("ci.finished")
    here = with_sources(theirs, mine)
    waiting = here.advance(first)
    still = here.advance(waiting, None)
    assert still["pending"]["stepId"] == "ci"
    assert source.public_key in still.text
    assert "not configured here" in still["waiting"]["how"]
    own: dict[str, Any] = signed_event(here, first, my_key, id="mine", fields={"status": "red"}).to_json()
    report = sent(here, first, own.pop("id"), **own)
    assert isinstance(report, EventReport)
    assert report.is_advanced
    tip = session_of(here, first).runs[here.reference_of(first).run].tip
    assert tip is not None
    assert session_of(here, first).context(tip)["status"] == "red"
    assert unsound(here.store) == []


@pytest.mark.inv("WORLD-10")
@pytest.mark.parametrize(
    "forgery", ["fields", "id", "node", "another run", "another key", "another source", "another kind", "moved kind"]
)
def test_a_forged_moved_or_replayed_signature_is_refused(forgery: str) -> None:
    source, key = a_source(*(["ci.other"] if forgery == "another kind" else []))
    # Both kinds are awaited with the same fields, so that only the signature tells them apart.
    body = document(step("a"), {**AWAIT, "assurance": "signed"}, {**AWAIT, "id": "qa", "event": "qa.finished"})
    harness = with_sources(Harness.in_memory({**body, "inputs": [STATUS]}), source)
    first, _ = at_the_wait(harness)
    other = harness.start("test.flow", goal="Another")
    if forgery == "another key":
        _, key = a_source()
    event = signed_event(harness, other if forgery == "another run" else first, key)
    changed: dict[str, Any] = event.to_json()
    match forgery:
        case "fields":
            changed["fields"] = {"status": "red"}
        case "id":
            changed["id"] = "2"
        case "node":
            changed["node"] = harness.reference_of(first).node
        case "another source":
            changed["signed"]["source"] = "nobody"
        case "moved kind":
            changed["event"] = "qa.finished"
        case _:
            pass
    refusal = sent(harness, first, changed.pop("id"), **changed)
    assert isinstance(refusal, Refusal)
    assert refusal.details["path"] == "signed"
    assert events_of(harness, first, "event_received") == []


def test_every_character_of_a_signature_counts() -> None:
    source, key = a_source()
    harness = with_sources(Harness.in_memory(WAITING), source)
    first, _ = at_the_wait(harness)
    event = signed_event(harness, first, key).to_json()
    text = cast("dict[str, str]", event["signed"])["signature"]
    for at in range(len(text)):
        other = "A" if text[at] != "A" else "B"
        forged: dict[str, Any] = json.loads(json.dumps(event))
        forged["signed"]["signature"] = text[:at] + other + text[at + 1 :]
        assert isinstance(sent(harness, first, forged.pop("id"), **forged), Refusal)


# A step that waits and is refused.


@pytest.mark.inv("WORLD-4", "BLK-5")
def test_a_waiting_step_that_was_refused_too_often_offers_a_fork_of_the_step_before_it() -> None:
    emit = {"kind": "team.notify", "fields": {"room": {"from": "room"}}}
    body = document(step("a"), {**AWAIT, "emit": [emit]}, step("b"), inputs=[STATUS, declared("room", required=False)])
    harness = sending(Harness.in_memory(body), into_file(Path("/never-written")))
    first, waiting = at_the_wait(harness)
    sent(harness, first)
    here = waiting
    for _ in range(ATTEMPTS_PER_STEP_MAX - 1):
        here = harness.advance(here, None)
    limit = harness.advance(here, None)
    assert limit.code == ErrorCode.ATTEMPT_LIMIT_REACHED
    assert "redo the step before it, `Step a`, on a new branch" in limit["details"]["fork"]["note"]
    shown = harness.rehydrate(here)
    assert "fork" not in shown.structure
    assert "to see the step before it" in shown.text
    earlier = harness.rehydrate(str(shown["nextCall"]["arguments"]["stateToken"]))
    assert earlier["pending"]["stepId"] == "a"
    assert earlier["fork"]["ackToken"] == limit["details"]["fork"]["ackToken"]
    again = harness.advance(str(earlier["fork"]["ackToken"]), "Did it again, for ops.", context={"room": "ops"})
    assert again["pending"]["stepId"] == "ci"
    assert harness.advance(again, None)["pending"]["stepId"] == "b"
    assert unsound(harness.store) == []


@pytest.mark.inv("WORLD-10", "WORLD-11")
@pytest.mark.parametrize("is_known", [True, False])
def test_a_signed_event_of_a_bundle_counts_only_by_a_key_that_is_configured_here(*, is_known: bool) -> None:
    document = waiting_for(assurance="observed")
    source, key = a_source("ci.finished")
    theirs = with_sources(Harness.in_memory(document), source)
    first = theirs.start("test.flow", goal="Ship")
    event: dict[str, Any] = signed_event(theirs, first, key).to_json()
    assert isinstance(sent(theirs, first, event.pop("id"), **event), EventReport)
    here = with_sources(Harness.in_memory(document), source if is_known else a_source("ci.finished")[0])
    restored = imported(here, exported(theirs, theirs.session_of(first)).data).restored
    waiting = here.advance(here.call("continue_workflow", restored.ways_on[0].next_call.arguments))
    after = here.advance(waiting, None)
    assert after["pending"]["stepId"] == ("b" if is_known else "ci")
    assert unsound(here.store) == []


def with_a_false_signature(data: bytes, source: SourceKey) -> bytes:
    """Return a bundle whose last event from outside is said to be signed by a source; every digest is good again."""
    value = value_of(data)
    event = [one for one in value["session"]["events"] if one["kind"] == "event_received"][-1]
    signed = {"source": source.name, "publicKey": source.public_key, "signature": "A" * 86}
    event["data"] |= {"assurance": "signed", "signed": signed}
    return reattested(value)


def forged(source: SourceKey, assurance: str) -> bytes:
    """Return a bundle that says that a source signed the event that a step waits for."""
    theirs = Harness.in_memory(waiting_for(assurance=assurance))
    first = theirs.start("test.flow", goal="Ship")
    assert isinstance(sent(theirs, first), EventReport)
    return with_a_false_signature(exported(theirs, theirs.session_of(first)).data, source)


@pytest.mark.inv("WORLD-10", "WORLD-11")
def test_a_bundle_with_a_false_signature_is_refused() -> None:
    source, _ = a_source("ci.finished")
    refusal = refused(with_sources(Harness.in_memory(WAITING), source), forged(source, "signed"))
    assert refusal.code is ErrorCode.BUNDLE_INTEGRITY_FAILED
    assert "the signature of 'ci' is not one over this event" in refusal.message


@pytest.mark.damages
@pytest.mark.inv("WORLD-10", "WORLD-11")
@pytest.mark.parametrize("assurance", ["observed", "signed"])
def test_a_false_signature_that_an_earlier_build_imported_counts_as_a_claim(
    monkeypatch: pytest.MonkeyPatch, assurance: str
) -> None:
    source, _ = a_source("ci.finished")
    here = with_sources(Harness.in_memory(waiting_for(assurance=assurance)), source)
    bundle = forged(source, assurance)
    unchecked: list[object] = []
    with monkeypatch.context() as earlier:
        earlier.setattr(bundle_check, "_check_signatures", unchecked.append)
        restored = imported(here, bundle).restored
    waiting = here.advance(here.call("continue_workflow", restored.ways_on[0].next_call.arguments))
    after = here.advance(waiting, None)
    assert (after["pending"]["stepId"], "is not configured here" in after.text) == ("ci", False)
    assert "`claimed`" in after.text
    assert [one.code for one in unsound(here.store)] == ["hash_mismatch"]


@pytest.mark.damages
@pytest.mark.inv("VERIFY-2", "EVD-13")
def test_a_false_signature_is_found_beside_a_redacted_text(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs, (source, _) = Harness.in_memory(WAITING), a_source("ci.finished")
    first = theirs.start("test.flow", goal="Ship")
    assert isinstance(sent(theirs, first, fields={"status": "hunter2x"}), EventReport)
    copy = redact_session(restoring(theirs), theirs.session_of(first), "hunter2x")
    assert isinstance(copy, Redacted)
    bundle = with_a_false_signature(exported(theirs, copy.restored.session).data, source)
    here, unchecked = Harness.in_memory(WAITING), list[object]()
    with monkeypatch.context() as earlier:
        earlier.setattr(bundle_check, "_check_signatures", unchecked.append)
        imported(here, bundle)
    assert [one.code for one in unsound(here.store)] == ["hash_mismatch"]


def to_the_end(harness: Harness, answer: ToolResult) -> ToolResult:
    """Report each step until the run is complete, and check what is recorded."""
    while not answer["isComplete"]:
        answer = harness.advance(answer, None if answer.structure.get("waiting") else "Looked, and found it in order.")
    assert unsound(harness.store) == []
    return answer


@pytest.mark.inv("WORLD-11", "PROOF-7")
def test_a_step_that_takes_an_event_of_a_bundle_rests_on_a_claim() -> None:
    theirs = Harness.in_memory(waiting_for(assurance="claimed"))
    first = theirs.start("test.flow", goal="Ship")
    assert isinstance(sent(theirs, first, assurance="observed"), EventReport)
    here = Harness.in_memory(waiting_for(assurance="claimed"))
    restored = imported(here, exported(theirs, theirs.session_of(first)).data).restored
    way_on = here.call("continue_workflow", restored.ways_on[0].next_call.arguments)
    ends = [to_the_end(theirs, first), to_the_end(here, way_on)]
    assert [(end["restsOn"]["claimed"], end["restsOn"].get("observed", 0)) for end in ends] == [(2, 1), (3, 0)]
