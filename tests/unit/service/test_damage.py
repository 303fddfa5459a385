"""Damage met by a call is one of the reasons: shown as a blocker of the table, logged, and never appended to."""

import logging
from pathlib import Path

import pytest
from tests.support.flow import IS_FAST, document, step
from tests.support.modes import NEVER_STOPS, files_below, with_artifacts

from interlock.cli.session.evidence.show import account_of
from interlock.cli.session.import_ import restoring
from interlock.kernel.errors import ErrorCode
from interlock.kernel.ids import SessionId
from interlock.service.transfer.repair import Repaired, repair_session
from interlock.store.local import layout
from interlock.store.local.store import LocalStore
from interlock.testing.harness import Harness, ToolResult, call_through

pytestmark = pytest.mark.damages

DOCUMENT = document(step("a"), step("b", when=IS_FAST), step("c"))


def a_run(root: Path, **more: object) -> tuple[Harness, ToolResult]:
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
def test_an_advance_that_meets_damage_is_reported_by_a_blocker_and_writes_nothing(tmp_path: Path, place: str) -> None:
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
    for refused in (fresh.rehydrate(advanced), fresh.advance(advanced)):
        assert refused.code is ErrorCode.SESSION_NOT_HEALTHY
        assert f"`interlock session repair {session}`" in refused["suggestion"]
        assert "`interlock doctor" in refused["suggestion"]
    repaired = repair_session(restoring(LocalStore(tmp_path)), session)
    assert isinstance(repaired, Repaired), "the advice works"


@pytest.mark.inv("ANS-18")
def test_a_refusal_does_not_name_the_repair_of_a_session_without_an_intact_part(tmp_path: Path) -> None:
    _, blocked = a_run(tmp_path)
    (tmp_path / "sessions" / session_below(tmp_path) / "manifest.jsonl").unlink()
    refused = Harness.on_disk(tmp_path, DOCUMENT).rehydrate(blocked)
    assert refused.code is ErrorCode.SESSION_NOT_HEALTHY
    assert "session repair" not in refused["suggestion"]
    assert "Restore it from a backup" in refused["suggestion"]
    assert "`interlock doctor`" in refused["suggestion"]


@pytest.mark.inv("READ-9")
@pytest.mark.parametrize("is_lost", [True, False], ids=["lost", "altered"])
@pytest.mark.parametrize("is_refused", [True, False], ids=["of a refused attempt", "of a finished step"])
def test_a_lost_artifact_is_named_by_every_view(tmp_path: Path, *, is_lost: bool, is_refused: bool) -> None:
    harness = Harness.on_disk(tmp_path, DOCUMENT)
    first = harness.start("test.flow", context={"mode": "fast"})
    notes = None if is_refused else "Done."
    second = harness.advance(first, None, output=with_artifacts({"kind": "mine"}, notes=notes))
    expected = harness.rehydrate(second)["pending"]
    stored = (tmp_path / "artifacts").iterdir()
    artifact = next(path for path in stored if path.read_bytes() == b'{"kind":"mine"}')
    if is_lost:
        artifact.unlink()
    else:
        flip(artifact)
    fresh = Harness.on_disk(tmp_path, DOCUMENT)
    looked = fresh.rehydrate(second)
    assert looked["pending"] == expected
    assert f"- artifact sha256:{artifact.name[:12]}" in looked["recap"]
    assert ("missing" if is_lost else "wrong bytes") in looked["recap"]
    assert "`interlock doctor --deep`" in looked["recap"]
    assert looked == fresh.rehydrate(second)
    shown = account_of(LocalStore(tmp_path), str(session_below(tmp_path))).view
    (lost,) = [one for step in shown.runs[0].steps for one in step.artifacts]
    assert (lost.digest, lost.is_readable) == (f"sha256:{artifact.name}", False)
    # The evidence of a refused attempt counts for the next one, which therefore needs it.
    advanced = fresh.advance(looked, "Done.")
    assert advanced.code is (ErrorCode.SESSION_NOT_HEALTHY if is_refused else None)


@pytest.mark.inv("RES-7", "ANS-18")
@pytest.mark.parametrize("is_lost", [True, False], ids=["lost", "altered"])
def test_a_run_whose_next_report_needs_a_lost_file_is_named_with_its_repair_and_not_offered(
    tmp_path: Path, *, is_lost: bool
) -> None:
    harness, blocked = a_run(tmp_path)
    assert len(harness.resume()["candidates"]) == 1
    (artifact,) = (path for path in (tmp_path / "artifacts").iterdir() if path.read_bytes() == b'{"kind":"mine"}')
    artifact.unlink() if is_lost else flip(artifact)
    fresh = Harness.on_disk(tmp_path, DOCUMENT)
    found, session = fresh.resume(), session_below(tmp_path)
    assert found["candidates"] == []
    refused = fresh.advance(blocked, "Done.")
    assert refused.code is ErrorCode.SESSION_NOT_HEALTHY
    for words in (found["reason"], refused["suggestion"]):
        assert f"`interlock session repair {session}`" in words
    repaired = repair_session(restoring(LocalStore(tmp_path)), session)
    assert isinstance(repaired, Repaired), "the advice works"
    again = Harness.on_disk(tmp_path, DOCUMENT)
    (candidate,) = again.resume()["candidates"]
    assert (
        again.advance(again.call(candidate["nextCall"]["tool"], candidate["nextCall"]["arguments"]), "Done.").code
        is None
    )


@pytest.mark.inv("READ-9")
def test_a_lost_snapshot_of_an_earlier_step_leaves_its_notes_readable(tmp_path: Path) -> None:
    harness = Harness.on_disk(tmp_path, DOCUMENT)
    first = harness.start("test.flow", context={"mode": "fast"})
    third = harness.advance(harness.advance(first, "zebra"), "okapi")
    session = harness.store.load(session_below(tmp_path))
    assert session is not None
    root = next(node for node in session.nodes.values() if node.parent is None)
    (tmp_path / layout.snapshot(root.snapshot)).unlink()
    fresh = Harness.on_disk(tmp_path, DOCUMENT)
    looked = fresh.rehydrate(third)
    assert looked["pending"]["stepId"] == "c"
    for words in ("zebra", "okapi", "a step whose snapshot cannot be read", "- snapshot sha256:"):
        assert words in looked["recap"], words
    assert fresh.rehydrate(first).code is ErrorCode.SESSION_NOT_HEALTHY, "it needs that snapshot"
    assert fresh.advance(looked, "Done.")["isComplete"]
