"""The dispatcher: it sends what its process recorded, loses nothing of it, and does not hold the end of the process."""

import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.flow import Document, document, step
from tests.support.modes import session_of
from tests.support.outside import AWAIT, STATUS, into_file, sender_of, sent
from tests.support.verify import unsound

from interlock.channels.channel import ChannelConfig
from interlock.engine.outside import SentEvent
from interlock.kernel.errors import Refusal
from interlock.kernel.ids import RunId, SessionId
from interlock.service.outside import dispatch
from interlock.service.outside.dispatch import Dispatcher
from interlock.service.outside.intents import shown_intents
from interlock.service.outside.receive import Arrival
from interlock.service.tools.send_event import send_event
from interlock.testing.harness import Harness, ToolResult

NOTIFY: Document = {"kind": "team.notify", "fields": {"text": {"value": "Built"}}}
SLOW: Document = {"kind": "team.slow", "fields": {}}


def command(code: str, **fields: Any) -> ChannelConfig:
    """Return a channel that runs Python code for each message."""
    return ChannelConfig(
        name="slow",
        kind="command",
        accepts=("team.slow",),
        sources=("project",),
        command=(sys.executable, "-S", "-c", code),
        **fields,
    )


def dispatching(tmp_path: Path, body: Document, *channels: ChannelConfig) -> tuple[Harness, Dispatcher]:
    """Return a harness whose intents are sent by a real dispatcher."""
    harness = Harness.on_disk(tmp_path / "data", body)

    def receive(session: SessionId, run: RunId, event: SentEvent) -> str | None:
        found = send_event(
            harness.ports, (session, run), event, Arrival(via="channel", assurance="observed"), dispatch.SYSTEM
        )
        return found.message if isinstance(found, Refusal) else None

    outbox = Dispatcher(sender=replace(sender_of(harness, *channels), on_event=receive))
    return replace(harness, ports=replace(harness.ports, outbox=outbox)), outbox


def states(harness: Harness, first: ToolResult, *channels: ChannelConfig) -> list[tuple[str, str | None]]:
    return [(one.state, one.why) for one in shown_intents(session_of(harness, first), channels)]


def until(check: Callable[[], bool]) -> bool:
    """Wait until something holds, at most ten seconds."""
    limit = time.perf_counter() + 10
    while not check() and time.perf_counter() < limit:
        time.sleep(0.01)
    return check()


@pytest.mark.inv("WORLD-6")
def test_draining_waits_for_what_a_thread_has_already_taken(tmp_path: Path) -> None:
    slow = command(f"import time; time.sleep(0.3); open({str(tmp_path / 'done')!r}, 'w')")
    harness, outbox = dispatching(tmp_path, document({**step("a"), "emit": [SLOW]}, step("b")), slow)
    first = harness.start("test.flow", goal="Ship")
    harness.advance(first)
    outbox.drain()
    assert (tmp_path / "done").exists()
    assert states(harness, first, slow) == [("delivered", None)]
    assert unsound(harness.store) == []


@pytest.mark.inv("WORLD-6")
def test_closing_waits_a_bounded_time_for_what_is_being_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Its receiver recognises what it got before, so a process that does not end would send it again.
    slow = command("import time; time.sleep(60)", delivery="at_least_once")
    steps = document({**step("a"), "emit": [NOTIFY]}, {**step("b"), "emit": [SLOW]}, step("c"))
    harness, outbox = dispatching(tmp_path, steps, into_file(tmp_path / "out"), slow)
    monkeypatch.setattr(dispatch, "CLOSE_WAIT_S", 0.3)
    first = harness.start("test.flow", goal="Ship")
    second = harness.advance(first)
    outbox.drain()
    harness.advance(second, "Did b too, with care.")
    began = time.perf_counter()
    outbox.close()
    assert time.perf_counter() - began < 5
    # The child was ended: its result becomes known as unknown.
    assert until(lambda: [one for one, _ in states(harness, first, slow)] == ["delivered", "unknown"])
    outbox.drain()
    assert [one.attempt for one in session_of(harness, first).outside.intents.values()] == [1, 1]
    assert len((tmp_path / "out").read_text().splitlines()) == 1


@pytest.mark.inv("WORLD-6")
@pytest.mark.parametrize(("delivery", "tries"), [("at_most_once", 1), ("at_least_once", 3)])
def test_a_try_that_failed_is_repeated_only_where_the_receiver_recognises_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, delivery: Any, tries: int
) -> None:
    monkeypatch.setattr(dispatch, "DISPATCH_PAUSE_S", 0.01)
    log = into_file(tmp_path, accepts=("team.slow",), delivery=delivery)
    harness, outbox = dispatching(tmp_path, document({**step("a"), "emit": [SLOW]}, step("b")), log)
    first = harness.start("test.flow", goal="Ship")
    harness.advance(first)
    outbox.drain()
    [intent] = session_of(harness, first).outside.intents.values()
    assert (intent.attempt, intent.state) == (tries, "failed")
    assert unsound(harness.store) == []


@pytest.mark.inv("WORLD-3", "WORLD-6")
@pytest.mark.parametrize(
    ("changes", "step_id", "words"),
    [
        ({}, "b", None),
        ({"event": "wr.approval"}, "ci", "event: `wr.approval` cannot be sent."),
        ({"event": "ci.other"}, "ci", "No step of the run waits for `ci.other`."),
        ({"id": " "}, "ci", "The id of the event is blank."),
        ({"id": "\n"}, "ci", "The id of the event is blank."),
    ],
    ids=["taken", "reserved", "unknown", "blank", "line end"],
)
def test_an_answer_of_a_channel_is_an_event_or_says_in_its_note_why_not(
    tmp_path: Path, changes: Document, step_id: str, words: str | None
) -> None:
    reply = {"kind": "wr.event", "event": "ci.finished", "id": "1", "fields": {"status": "green"}, **changes}
    asks = command(f"print({json.dumps(reply)!r})")
    body = document({**step("a"), "emit": [SLOW]}, {**AWAIT, "assurance": "observed"}, step("b"), inputs=[STATUS])
    harness, outbox = dispatching(tmp_path, body, asks)
    first = harness.start("test.flow", goal="Ship")
    waiting = harness.advance(first)
    outbox.drain()
    [(state, why)] = states(harness, first, asks)
    assert state == "delivered"
    assert (words or "") in (why or "")
    assert (why is None) == (words is None)
    assert harness.advance(waiting, None)["pending"]["stepId"] == step_id
    assert unsound(harness.store) == []


@pytest.mark.inv("WORLD-6")
def test_an_event_that_completes_a_waiting_step_sends_what_the_step_emits(tmp_path: Path) -> None:
    channel = into_file(tmp_path / "out")
    body = document(step("a"), {**AWAIT, "emit": [NOTIFY]}, step("b"), inputs=[STATUS])
    harness, outbox = dispatching(tmp_path, body, channel)
    first = harness.start("test.flow", goal="Ship")
    harness.advance(first)
    sent(harness, first)
    outbox.drain()
    assert states(harness, first, channel) == [("delivered", None)]
