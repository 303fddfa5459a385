"""Damage met by a call is one of the reasons: told as a blocker of the table, logged, and never appended to."""

import logging
from pathlib import Path

import pytest
from tests.support.flow import IS_FAST, document, step
from tests.support.modes import NEVER_STOPS, files_below, with_artifacts

from interlock.cli.session.import_ import restoring
from interlock.kernel.errors import ErrorCode
from interlock.kernel.ids import SessionId
from interlock.service.transfer.repair import Repaired, repair_session
from interlock.store.local.store import LocalStore
from interlock.testing.harness import Called, Harness, call_through

pytestmark = pytest.mark.damages

DOCUMENT = document(step("a"), step("b", when=IS_FAST), step("c"))


def a_run(root: Path, **more: object) -> tuple[Harness, Called]:
    """Return a run whose last attempt was refused and left an artifact."""
    harness = Harness.on_disk(root, DOCUMENT)
    first = harness.start("test.flow", context={"mode": "fast"}, **more)
    return harness, harness.advance(first, None, output=with_artifacts({"kind": "mine"}, notes=None))


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


def damaged(root: Path, what: str) -> None:
    """Damage what stands in a directory of the data directory: the newest file of it."""
    found = sorted(path for path in root.glob(what) if path.is_file())
    assert found, what
    flip(found[-1])


def session_below(root: Path) -> SessionId:
    (session,) = (root / "sessions").glob("sess_*")
    return SessionId(session.name)


PLACES = {"a segment": "sessions/*/events/*", "an artifact": "artifacts/**/*", "a snapshot": "snapshots/*"}


@pytest.mark.produces(
    "reason:storage_corruption_detected",
    "blocker:STORAGE_CORRUPTION_DETECTED",
    "error:SESSION_NOT_HEALTHY",
)
@pytest.mark.inv("MODE-6")
@pytest.mark.parametrize("place", PLACES)
def test_an_advance_that_meets_damage_is_told_by_a_blocker_and_writes_nothing(tmp_path: Path, place: str) -> None:
    _, blocked = a_run(tmp_path)
    damaged(tmp_path, PLACES[place])
    before = files_below(tmp_path)
    refused = Harness.on_disk(tmp_path, DOCUMENT).advance(blocked)
    assert refused.code is ErrorCode.SESSION_NOT_HEALTHY
    (blocker,) = refused["details"]["blockers"]
    assert blocker["code"] == "STORAGE_CORRUPTION_DETECTED"
    assert blocker["pointer"] == {"kind": "workflow_step", "stepId": "unknown"}
    assert "damaged" in blocker["message"]
    assert "start_workflow" in blocker["suggestedFix"]
    assert str(tmp_path) not in str(blocker)
    assert files_below(tmp_path) == before


@pytest.mark.inv("MODE-6")
def test_a_run_that_never_stops_stops_at_damage_and_records_no_gap(tmp_path: Path) -> None:
    harness = Harness.on_disk(tmp_path, DOCUMENT)
    first = harness.start("test.flow", context={"mode": "fast"}, preferences=NEVER_STOPS)
    damaged(tmp_path, PLACES["a segment"])
    before = files_below(tmp_path)
    refused = Harness.on_disk(tmp_path, DOCUMENT).advance(first)
    assert refused["details"]["blockers"][0]["code"] == "STORAGE_CORRUPTION_DETECTED"
    assert files_below(tmp_path) == before


@pytest.mark.inv("MODE-6")
def test_a_session_of_a_newer_interlock_is_no_damage_and_has_no_blocker(tmp_path: Path) -> None:
    _, blocked = a_run(tmp_path)
    (manifest,) = tmp_path.glob("sessions/*/manifest.jsonl")
    manifest.write_bytes(manifest.read_bytes().replace(b'"v":1', b'"v":2'))
    refused = Harness.on_disk(tmp_path, DOCUMENT).advance(blocked)
    assert refused.code is ErrorCode.SESSION_NOT_HEALTHY
    assert "blockers" not in refused["details"]


@pytest.mark.inv("MODE-6")
@pytest.mark.asyncio
async def test_the_log_of_the_server_says_what_is_damaged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    _, blocked = a_run(tmp_path)
    damaged(tmp_path, PLACES["an artifact"])
    with caplog.at_level(logging.WARNING, logger="interlock"):
        async with Harness.on_disk(tmp_path, DOCUMENT).client() as client:
            refused = await call_through(
                client, "continue_workflow", {"ackToken": blocked.ack, "output": {"notesMarkdown": "Done."}}
            )
    assert refused["details"]["blockers"][0]["code"] == "STORAGE_CORRUPTION_DETECTED"
    assert "artifact" in caplog.text


@pytest.mark.inv("ANS-18")
@pytest.mark.parametrize("place", ["a segment", "a snapshot"])
def test_a_refusal_names_the_commands_that_examine_and_repair_the_session(tmp_path: Path, place: str) -> None:
    harness, blocked = a_run(tmp_path)
    advanced = harness.advance(blocked, "Done.")
    session = session_below(tmp_path)
    if place == "a segment":
        damaged(tmp_path, PLACES[place])
    else:
        max((tmp_path / "snapshots").iterdir(), key=lambda path: path.stat().st_mtime_ns).unlink()
    fresh = Harness.on_disk(tmp_path, DOCUMENT)
    for refused in (fresh.look(advanced), fresh.advance(advanced)):
        assert refused.code is ErrorCode.SESSION_NOT_HEALTHY
        assert f"`interlock session repair {session}`" in refused["suggestion"]
        assert "`interlock doctor" in refused["suggestion"]
    repaired = repair_session(restoring(LocalStore(tmp_path)), session)
    assert isinstance(repaired, Repaired), "the advice works"


@pytest.mark.inv("ANS-18")
def test_a_refusal_does_not_name_the_repair_of_a_session_without_an_intact_part(tmp_path: Path) -> None:
    _, blocked = a_run(tmp_path)
    (tmp_path / "sessions" / session_below(tmp_path) / "manifest.jsonl").unlink()
    refused = Harness.on_disk(tmp_path, DOCUMENT).look(blocked)
    assert refused.code is ErrorCode.SESSION_NOT_HEALTHY
    assert "session repair" not in refused["suggestion"]
    assert "Restore it from a backup" in refused["suggestion"]
    assert "`interlock doctor`" in refused["suggestion"]
