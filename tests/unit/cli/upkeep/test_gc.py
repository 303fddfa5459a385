"""`interlock gc` and the retention pins: what people see of a collection, and what it does to a real data directory."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.support.server import tree
from tests.unit.cli.upkeep.conftest import Site

from interlock.cli.main import main
from interlock.cli.screen import StopError
from interlock.cli.session.keep import UNCONFIRMED
from interlock.cli.upkeep.failures import answered_by_upkeep, unconfirmed
from interlock.kernel.ids import SessionId, derived_id
from interlock.service.audit.verify import verify_session
from interlock.service.run.plans import Plans
from interlock.store.local.collect.collector import LocalCollector
from interlock.store.local.locks import OsLocks
from interlock.store.local.store import LocalStore
from interlock.store.ports.errors import FailureKind, StoreFailureError

pytestmark = pytest.mark.damages


def counts(result: dict[str, Any]) -> dict[str, int]:
    """Return how many of each kind went, of those that did."""
    return {one["what"]: one["count"] for one in result["taken"] if one["count"]}


@pytest.mark.inv("GC-1", "GC-3")
def test_two_collections_take_an_expired_session_for_good_and_leave_the_others_whole(site: Site) -> None:
    old, _ = site.session(days=100)
    young, _ = site.session(days=80)
    site.make_content_old()
    first = site.json("gc")
    assert (first["mode"], first["expired"], first["sessions"]) == ("normal", [old], 2)
    assert counts(first) == {"session": 1, "artifact or capture": 1}
    assert (site.data_dir / "trash" / "sessions" / old).is_dir()
    assert counts(site.json("gc")) == {"trash": 2}
    assert list((site.data_dir / "trash" / "sessions").iterdir()) == []
    store = LocalStore(site.data_dir)
    assert store.sessions() == (young,)
    assert verify_session(store, Plans(store), young) == ()


def test_a_person_sees_what_went_what_is_kept_and_that_it_is_still_in_the_trash(site: Site) -> None:
    site.session(days=100)
    kept, _ = site.session(days=100)
    site.said("session", "keep", kept)
    said = site.said("gc", "--dry-run")
    assert said.splitlines()[0].split() == ["would", "be", "deleted", "count", "size"]
    assert "trash" not in said.splitlines()[-1]
    said = site.said("gc")
    rows = {line.split("  ")[0]: line.split()[-3:] for line in said.splitlines()}
    assert rows["expired sessions"][0] == "1"
    assert rows["snapshots"] == ["0", "0", "B"]
    assert "1 of 2 are kept regardless of age." in said
    assert "`trash` until the next `interlock gc` removes it" in said


@pytest.mark.inv("GC-8")
def test_a_dry_run_changes_nothing_not_even_a_time_and_says_what_the_run_then_says(site: Site) -> None:
    site.session(days=100)
    site.session(days=1)
    site.make_content_old()
    before = tree(site.data_dir)
    result = site.json("gc", "--dry-run")
    assert tree(site.data_dir) == before
    assert result.pop("dryRun") is True
    done = site.json("gc")
    assert done.pop("dryRun") is False
    assert result == done


@pytest.mark.inv("GC-8")
def test_where_there_is_nothing_nothing_is_made(site: Site) -> None:
    for arguments in (("gc",), ("gc", "--dry-run")):
        assert counts(site.json(*arguments)) == {}
    assert not site.data_dir.exists()


@pytest.mark.inv("GC-1")
def test_the_configuration_says_when_sessions_expire(site: Site) -> None:
    session, _ = site.session(days=10)
    site.make_content_old()
    config = site.data_dir / "config.toml"
    assert site.json("gc", "--dry-run")["expired"] == []
    config.write_text("[retention]\ndays = 0\n", encoding="utf-8")
    assert site.json("gc", "--dry-run")["expired"] == []
    assert "Sessions never expire" in site.said("gc", "--dry-run")
    config.write_text("[retention]\ndays = 9\n", encoding="utf-8")
    assert site.json("gc", "--dry-run")["expired"] == [session]
    config.write_text("[retention]\ndays = -1\n", encoding="utf-8")
    assert "retention.days" in site.complained("gc")
    assert LocalStore(site.data_dir).load(session) is not None


@pytest.mark.inv("GC-7")
def test_a_damaged_session_is_named_with_what_to_do_and_the_exit_code_is_1(site: Site) -> None:
    site.session(days=100)
    damaged, _ = site.session(days=100)
    manifest = site.data_dir / "sessions" / damaged / "manifest.jsonl"
    manifest.write_bytes(manifest.read_bytes() + b"x\n")
    site.make_old(manifest, 100)
    before = {name for name in tree(site.data_dir) if "config" not in name}
    result = site.json("gc", code=1)
    assert result["mode"] == "safe"
    assert counts(result) == {}
    (warned,) = result["warnings"]
    assert (warned["code"], warned["session"], warned["health"]) == ("SESSION_NOT_HEALTHY", damaged, "corrupt_tail")
    assert f"interlock session repair {damaged}" in warned["fix"]
    said = site.said("gc", "--dry-run", code=1)
    assert said.startswith("Safe mode")
    assert damaged in said
    assert {name for name in tree(site.data_dir) if "config" not in name} == before


@pytest.mark.inv("GC-7")
def test_damaged_keep_marks_are_reported_by_every_command_that_needs_them(site: Site) -> None:
    session, _ = site.session(days=100)
    site.said("session", "keep", session)
    (site.data_dir / "config" / "keep.json").write_bytes(b"{}")
    (warned,) = site.json("gc", code=1)["warnings"]
    assert warned["code"] == "KEEP_MARKS_DAMAGED"
    for action in ("keep", "unkeep"):
        assert "config/keep.json" in site.complained("session", action, session)
    assert "keep marks: " in site.said("doctor", code=1)
    assert (site.data_dir / "config" / "keep.json").read_bytes() == b"{}"


@pytest.mark.inv("GC-10", "DOC-1")
def test_every_command_that_collects_or_checks_reports_a_mark_without_a_session(site: Site, tmp_path: Path) -> None:
    site.session(days=100)
    kept, _ = site.session(days=100)
    site.said("session", "keep", kept)
    (site.data_dir / "sessions" / kept).rename(tmp_path / "elsewhere")
    for arguments in (("gc", "--dry-run"), ("gc",)):
        result = site.json(*arguments, code=1)
        assert (result["mode"], counts(result)) == ("safe", {})
        (warned,) = result["warnings"]
        assert (warned["code"], warned["session"]) == ("KEPT_SESSION_MISSING", kept)
    for arguments in (("doctor",), ("doctor", "--deep")):
        (wanting,) = [one for one in site.json(*arguments, code=1)["findings"] if one["level"] == "attention"]
        assert wanting["check"] == "keep marks"
        assert f"interlock session unkeep {kept}" in wanting["fix"]
    site.said("session", "unkeep", kept)
    assert counts(site.json("gc"))["session"] == 1


@pytest.mark.inv("GC-11")
def test_a_keep_that_the_disk_did_not_confirm_is_reported_as_such() -> None:
    failure = StoreFailureError(FailureKind.FAILED, "EIO", may_be_recorded=True)
    with pytest.raises(StopError) as stopped, answered_by_upkeep(), unconfirmed(*UNCONFIRMED):
        raise failure
    assert stopped.value.message.endswith("so a power loss may undo the change (EIO).")
    assert "a repeat is safe" in stopped.value.fix
    failure.may_be_recorded = False
    with pytest.raises(StopError, match="nothing was recorded"), answered_by_upkeep(), unconfirmed(*UNCONFIRMED):
        raise failure


@pytest.mark.inv("GC-6")
@pytest.mark.produces("error:SESSION_LOCKED")
def test_a_session_that_is_written_to_is_left_and_said_to_be_locked(site: Site) -> None:
    session, _ = site.session(days=100)
    with LocalStore(site.data_dir).hold(session):
        result = site.json("gc")
        assert f"{session} was skipped" in site.said("gc")
    assert result["skipped"] == [{"session": session, "why": "busy", "code": "SESSION_LOCKED"}]
    assert counts(result) == {}
    assert site.json("gc")["expired"] == [session]


@pytest.mark.inv("GC-14")
@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_each_session_is_named_before_it_moves_and_one_that_the_disk_refuses_is_said_to_stay(site: Site) -> None:
    refused, taken = (site.session(days=100)[0] for _ in range(2))
    lock = site.data_dir / "sessions" / refused / ".lock"
    lock.unlink(missing_ok=True)
    lock.symlink_to("nowhere")
    result = site.json("gc", "--dry-run")
    assert result["expired"] == sorted([refused, taken])
    assert main(["gc"]) == 1
    printed = site.capsys.readouterr()
    assert {f"due: {refused}", f"due: {taken}"} <= set(printed.err.splitlines())
    assert f"{refused} was skipped: the disk refused the work on `sessions/{refused}` (ELOOP)." in printed.out
    assert "expired sessions        1" in printed.out
    named = {"session": refused, "why": "failed", "name": f"sessions/{refused}", "found": "ELOOP"}
    assert site.json("gc", code=1)["skipped"] == [named]
    assert "the disk refused" in site.complained("session", "delete", refused, "--yes")


@pytest.mark.inv("GC-2", "GC-6")
def test_collecting_and_setting_marks_exclude_each_other(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    defaults = OsLocks.__init__.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "wait_ms_max", 10)
    session, _ = site.session(days=100)
    with LocalCollector(site.data_dir).upkeep_lock():
        for arguments in (("gc",), ("session", "keep", session), ("keys", "rotate")):
            assert "when that one is done" in site.complained(*arguments)
        assert counts(site.json("gc", "--dry-run")) == {"session": 1}
    assert LocalStore(site.data_dir).load(session) is not None


@pytest.mark.inv("GC-2")
def test_marks_are_set_and_removed_each_once_and_reported(site: Site) -> None:
    one, _ = site.session()
    other, _ = site.session()
    assert site.json("session", "keep", one, one) == {"changed": [one], "kept": [one]}
    assert site.json("session", "keep", one, other) == {"changed": [other], "kept": sorted([one, other])}
    assert site.said("session", "keep", one) == f"{one}: kept, as before\n"
    assert json.loads((site.data_dir / "config" / "keep.json").read_text())["sessions"] == sorted([one, other])
    assert site.said("session", "unkeep", one) == f"{one}: no longer kept\n"
    assert "None of these sessions is kept" in site.complained("session", "unkeep", one)
    assert site.json("session", "unkeep", one, other) == {"changed": [other], "kept": []}


def test_a_session_that_is_not_there_cannot_be_kept_but_its_mark_can_be_removed(site: Site) -> None:
    session, _ = site.session()
    unknown = SessionId(derived_id("sess", "unknown"))
    assert unknown in site.complained("session", "keep", session, unknown)
    assert not (site.data_dir / "config" / "keep.json").exists()
    site.said("session", "keep", session)
    (site.data_dir / "sessions" / session).rename(site.data_dir / "elsewhere")
    assert site.json("session", "unkeep", session)["kept"] == []


@pytest.mark.inv("GC-4")
def test_links_are_not_followed_and_what_they_lead_to_stays(site: Site, tmp_path: Path) -> None:
    site.session(days=100)
    elsewhere = tmp_path / "mine"
    elsewhere.mkdir()
    (elsewhere / "precious").write_bytes(b"x")
    left = site.data_dir / "sessions" / "left"
    left.mkdir()
    (left / "link").symlink_to(elsewhere)
    os.utime(left / "link", (0, 0), follow_symlinks=False)
    (site.data_dir / "sessions" / "link").symlink_to(elsewhere)
    site.make_old(elsewhere, 100)
    site.make_old(left, 100)
    for _ in range(2):
        site.said("gc")
    assert left.exists()
    assert (elsewhere / "precious").exists()
    assert (site.data_dir / "sessions" / "link").exists()


@pytest.mark.inv("GC-8")
@pytest.mark.parametrize("options", [(), ("--dry-run",)])
def test_a_data_directory_that_is_none_is_refused_and_not_called_empty(site: Site, options: tuple[str, ...]) -> None:
    for make in (site.data_dir.touch, lambda: site.data_dir.symlink_to(site.data_dir.name)):
        make()
        assert "is not a directory" in site.complained("gc", *options, code=2)
        site.data_dir.unlink()


@pytest.mark.inv("GC-4", "GC-7")
def test_a_copy_beside_a_session_is_listed_and_does_not_change_the_exit_code(site: Site) -> None:
    session, _ = site.session(days=1)
    copy = site.data_dir / "sessions" / f"{session}.bak"
    shutil.copytree(site.data_dir / "sessions" / session, copy)
    site.make_old(copy, 100)
    site.make_content_old()
    result = site.json("gc")
    assert result["skipped"] == [{"session": None, "why": "foreign", "name": f"sessions/{session}.bak"}]
    assert counts(result) == {}
    assert f"sessions/{session}.bak was skipped: it is no session" in site.said("gc", "--dry-run")
    assert copy.is_dir()


@pytest.mark.inv("GC-7")
def test_a_collection_in_safe_mode_counts_the_kept_sessions(site: Site) -> None:
    session, _ = site.session()
    site.said("session", "keep", session)
    damaged, _ = site.session()
    (site.data_dir / "sessions" / damaged / "manifest.jsonl").write_bytes(b"x\n")
    result = site.json("gc", code=1)
    assert (result["mode"], result["kept"], result["sessions"]) == ("safe", 1, 2)
