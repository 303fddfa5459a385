"""Repair copies what is sound of a damaged session into a new one, says what it left out, and leaves the old one."""

from pathlib import Path

import pytest
from tests.support.bundles import DOCUMENT, a_session, exported, imported, repaired, restoring, views
from tests.support.modes import files_below

from interlock.kernel.errors import ErrorCode, Refusal
from interlock.kernel.ids import SessionId
from interlock.record.bundle import SalvageBanner
from interlock.service.audit.verify import verify_session
from interlock.service.transfer.repair import repair_session
from interlock.service.transfer.salvage import left_out_words
from interlock.store.ports.reader import SalvageCode
from interlock.testing.harness import Harness

pytestmark = pytest.mark.damages


@pytest.fixture
def here(tmp_path: Path) -> Harness:
    return Harness.on_disk(tmp_path, DOCUMENT)


def again(harness: Harness) -> Harness:
    """Return the same data directory in a process that remembers nothing."""
    assert harness.data_dir is not None
    return Harness.on_disk(harness.data_dir, DOCUMENT)


def segments_of(harness: Harness, session: SessionId) -> list[Path]:
    assert harness.data_dir is not None
    return sorted((harness.data_dir / "sessions" / session / "events").iterdir())


def refusal(harness: Harness, session: SessionId) -> Refusal:
    result = repair_session(restoring(harness), session)
    assert isinstance(result, Refusal)
    return result


@pytest.mark.inv("SAL-3")
@pytest.mark.parametrize("at", range(1, 8))
def test_what_stands_before_the_damage_becomes_a_session_of_its_own_that_goes_on(here: Harness, at: int) -> None:
    session = a_session(here)
    history, segments = here.store.history(session), segments_of(here, session)
    assert len(history) == 8
    segments[at].write_bytes(segments[at].read_bytes()[:-2])
    before = files_below(segments[at].parents[1])
    outcome = repaired(again(here), session)
    assert outcome.source == session
    copy = outcome.restored.session
    assert (outcome.restored.groups, outcome.restored.events) == (at, sum(map(len, history[:at])))
    banner = outcome.banner
    assert (banner.code, banner.where) == ("SALVAGED_PREFIX", f"events/{segments[at].name}")
    assert (banner.groups_left_out, banner.events_left_out) == (8 - at, sum(map(len, history[at:])))
    assert files_below(segments[at].parents[1]) == before
    fresh = again(here)
    assert [[event.data for event in plan] for plan in fresh.store.history(copy)] == [
        [event.data for event in plan] for plan in history[:at]
    ]
    assert verify_session(fresh.store, fresh.ports.read.plans, copy) == ()
    looked = fresh.call("continue_workflow", outcome.restored.ways_on[0].next_call.arguments)
    assert fresh.session_of(looked) == copy
    assert not fresh.follow(looked).is_error


@pytest.mark.inv("SAL-3")
def test_damage_behind_the_last_group_costs_nothing_that_was_recorded(here: Harness) -> None:
    session = a_session(here)
    before = views(here, session)
    assert here.data_dir is not None
    manifest = here.data_dir / "sessions" / session / "manifest.jsonl"
    manifest.write_bytes(manifest.read_bytes() + b"x")
    outcome = repaired(again(here), session)
    assert views(again(here), outcome.restored.session) == before
    assert (outcome.banner.groups_left_out, outcome.banner.bytes_left_out, outcome.banner.is_count_known) == (
        0,
        1,
        False,
    )
    assert "at least" in left_out_words(outcome.banner)


@pytest.mark.inv("SAL-2", "SAL-3")
def test_a_log_whose_content_is_lost_is_copied_up_to_what_refers_to_it(here: Harness) -> None:
    session = a_session(here)
    history = here.store.history(session)
    assert here.data_dir is not None
    cuts: set[int] = set()
    for path in (here.data_dir / "artifacts").iterdir():
        good = path.read_bytes()
        path.unlink()
        outcome = repaired(again(here), session)
        cuts.add(outcome.restored.groups)
        banner = outcome.banner
        assert (banner.code, banner.health, banner.found) == ("PARTIAL_DATA", "healthy", "missing")
        assert f"artifact sha256:{path.name}" in banner.where
        assert banner.groups_left_out == 8 - outcome.restored.groups
        assert banner.events_left_out == sum(map(len, history[outcome.restored.groups :]))
        assert banner.is_count_known
        assert again(here).store.load(session) is not None
        path.write_bytes(good)
    assert cuts >= {1, 2}


@pytest.mark.inv("SAL-2", "SAL-3")
def test_lost_content_before_a_damaged_segment_is_what_ends_the_copy(here: Harness) -> None:
    session = a_session(here)
    segments = segments_of(here, session)
    segments[6].unlink()
    assert here.data_dir is not None
    kept = repaired(again(here), session).restored.groups
    assert kept == 6
    refused_one = here.data_dir / "artifacts"
    for path in sorted(refused_one.iterdir()):
        path.unlink()
    outcome = repaired(again(here), session)
    assert (outcome.banner.code, outcome.banner.health) == ("PARTIAL_DATA", "corrupt_tail")
    assert outcome.restored.groups == 1
    assert outcome.banner.groups_left_out == 7


@pytest.mark.inv("SAL-3")
def test_a_whole_session_is_not_repaired_and_nothing_is_written(here: Harness) -> None:
    session = a_session(here)
    assert here.data_dir is not None
    before = files_below(here.data_dir)
    result = refusal(again(here), session)
    assert result.code is ErrorCode.VALIDATION_ERROR
    assert "nothing to repair" in result.suggestion
    assert files_below(here.data_dir) == before


@pytest.mark.inv("SAL-2", "SAL-3")
@pytest.mark.parametrize("how", ["the first segment", "the pinned workflow", "the first snapshot"])
def test_of_a_session_without_a_sound_beginning_nothing_is_made(here: Harness, how: str) -> None:
    session = a_session(here)
    assert here.data_dir is not None
    if how == "the first segment":
        segments_of(here, session)[0].write_bytes(b"")
    else:
        for path in (here.data_dir / ("workflows/pinned" if "workflow" in how else "snapshots")).iterdir():
            path.unlink()
    before = files_below(here.data_dir)
    result = refusal(again(here), session)
    assert result.code is ErrorCode.SESSION_NOT_HEALTHY
    assert result.message.startswith(SalvageCode.PARTIAL_DATA)
    assert "backup" in result.suggestion
    assert files_below(here.data_dir) == before


@pytest.mark.inv("SAL-3")
def test_a_repaired_session_is_exported_and_imported_like_any_other(here: Harness, tmp_path: Path) -> None:
    session = a_session(here)
    segments_of(here, session)[5].unlink()
    fresh = again(here)
    copy = repaired(fresh, session).restored.session
    bundle = exported(fresh, copy)
    assert bundle.banner is None
    there = Harness.on_disk(tmp_path / "there", DOCUMENT)
    assert imported(there, bundle.data).restored.session == copy
    assert views(there, copy) == views(again(here), copy)


@pytest.mark.inv("SAL-4")
def test_verify_tells_what_of_a_damaged_session_is_sound_and_how_to_go_on(here: Harness) -> None:
    session = a_session(here)
    history = here.store.history(session)
    segments_of(here, session)[3].unlink()
    fresh = again(here)
    (result,) = verify_session(fresh.store, fresh.ports.read.plans, session)
    assert result.code == "hash_mismatch"
    assert f"the {sum(map(len, history[:3]))} events before it verify (SALVAGED_PREFIX)" in result.found
    assert f"`interlock session repair {session}`" in result.fix
    segments_of(here, session)[0].unlink()
    fresh = again(here)
    (result,) = verify_session(fresh.store, fresh.ports.read.plans, session)
    assert "corrupt_head" in result.found
    assert "nothing before it verifies (PARTIAL_DATA)" in result.found


@pytest.mark.inv("SAL-4")
def test_verify_tells_what_is_newer_from_what_is_damaged(here: Harness) -> None:
    session = a_session(here)
    assert here.data_dir is not None
    manifest = here.data_dir / "sessions" / session / "manifest.jsonl"
    head, _, last = manifest.read_bytes().rpartition(b'"v":1')
    manifest.write_bytes(head + b'"v":2' + last)
    fresh = again(here)
    (result,) = verify_session(fresh.store, fresh.ports.read.plans, session)
    assert result.code == "unsupported_version"
    assert "repair" not in result.fix
    assert refusal(fresh, session).details["health"] == "unknown_version"


def test_words_name_where_the_damage_is_and_how_much_lies_behind_it() -> None:
    banner = SalvageBanner(
        code="SALVAGED_PREFIX",
        health="corrupt_tail",
        where="manifest record 7",
        found="does not match its segment",
        groups_left_out=2,
        events_left_out=9,
        bytes_left_out=1234,
        is_count_known=True,
    )
    assert left_out_words(banner) == (
        "everything from manifest record 7 on (does not match its segment); appends: 2, events: 9, bytes: 1234"
    )
