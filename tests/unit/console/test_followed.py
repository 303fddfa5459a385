"""A long session is read once; of a log that grew, only what was added is read, and damage of it is found."""

from pathlib import Path

import pytest
from tests.support.console import entered

from interlock.console.followed import FollowedHistories
from interlock.kernel.ids import SessionId
from interlock.service.audit.damage import Viewed
from interlock.service.run.history import History, history_of
from interlock.service.run.plans import Plans
from interlock.store.local.store import LocalStore
from interlock.testing.harness import Harness, linear_workflow

pytestmark = [pytest.mark.inv("CON-7"), pytest.mark.damages]
SHIP = linear_workflow("team.ship", "a", "b", "c", "d")


@pytest.fixture(autouse=True)
def every_history_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("interlock.console.followed.CONSOLE_SLOW_S", 0.0)


def seen(histories: FollowedHistories, session: SessionId) -> Viewed[History]:
    found = histories.view(session, lambda history: history)
    assert isinstance(found, Viewed)
    return found


def segments(root: Path) -> list[Path]:
    return sorted(root.glob("sessions/*/events/*.jsonl"))


def test_a_history_that_grew_is_the_one_of_a_fresh_reader_and_only_what_is_new_was_read(tmp_path: Path) -> None:
    harness = Harness.on_disk(tmp_path, SHIP)
    first = harness.start("team.ship")
    session, reading = harness.session_of(first), LocalStore(tmp_path)
    histories = FollowedHistories(reading, Plans(reading))
    assert seen(histories, session).view == history_of(LocalStore(tmp_path), session)
    second = harness.advance(first)
    events = [event for plan in harness.store.history(session) for event in plan]
    oldest = segments(tmp_path)[0]
    away = oldest.rename(tmp_path / "away")
    grown = seen(histories, session)
    assert grown.damage is None, "what was verified is not read again"
    assert grown.view.session == harness.store.load(session)
    assert [event for plan in grown.view.appended for event in plan] == events
    away.rename(oldest)
    harness.advance(second)
    segments(tmp_path)[-1].write_bytes(b"{}\n")
    damaged = seen(histories, session)
    assert damaged.damage is not None, "the whole log is read if something new is damaged"


def test_lost_content_of_what_is_new_is_found(tmp_path: Path) -> None:
    harness = Harness.on_disk(tmp_path, SHIP)
    first = harness.start("team.ship")
    session, reading = harness.session_of(first), LocalStore(tmp_path)
    histories = FollowedHistories(reading, Plans(reading))
    before = {path.name for path in tmp_path.glob("snapshots/*")}
    assert seen(histories, session).damage is None
    harness.advance(first)
    for path in tmp_path.rglob("*.json"):
        if path.parent.name.startswith("snapshot") and path.name not in before:
            path.unlink()
    assert seen(histories, session).damage is not None


def test_a_page_shows_what_was_appended_to_a_long_run() -> None:
    harness = Harness.in_memory(SHIP)
    first = harness.start("team.ship")
    browser = entered(harness)
    path = f"/sessions/{harness.session_of(first)}/runs/{harness.reference_of(first).run}"
    assert "The first part is done." not in browser.get(path).text
    second = harness.advance(first, "The first part is done.")
    assert "The first part is done." in browser.get(path).text
    harness.advance(second, "The second part is done.")
    assert "The second part is done." in browser.get(path).text
