"""`interlock doctor`: what it says is so, what needs attention is said with what to do, and nothing is written."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.server import tree
from tests.support.tampering import Tampering
from tests.unit.cli.upkeep.conftest import Site

from interlock.cli.screen import in_units
from interlock.cli.upkeep import checks, place
from interlock.kernel.canonical import canonical_bytes, digest_of_bytes
from interlock.kernel.ids import derived_id
from interlock.store.local import layout
from interlock.store.local.store import LocalStore
from interlock.version import VERSION

pytestmark = pytest.mark.damages


def findings(result: dict[str, Any], level: str) -> list[dict[str, str]]:
    return [one for one in result["findings"] if one["level"] == level]


@pytest.mark.inv("DOC-1", "DOC-2")
def test_a_sound_data_directory_is_fine_and_stays_as_it_was(site: Site) -> None:
    site.session()
    assert "1 is healthy: every record was read." in site.said("doctor", "--deep")
    for _ in range(2):
        site.session()
    before = tree(site.data_dir)
    quick, deep = site.json("doctor"), site.json("doctor", "--deep")
    assert tree(site.data_dir) == before
    assert (quick["attention"], deep["attention"], quick["interlock"]) == (0, 0, VERSION)
    assert (quick["dataDir"], quick["dataDirOrigin"]) == (str(site.data_dir), "environment")
    said = site.said("doctor")
    assert "3 match their manifests; `--deep` also reads every record." in said
    assert "healthy" not in said
    assert "3 are healthy: every record was read." in site.said("doctor", "--deep")
    assert said.splitlines()[-1].startswith("No problem found.")


@pytest.mark.inv("DOC-2")
def test_a_log_that_cannot_be_history_is_named_as_verify_does_whatever_a_cached_summary_says(site: Site) -> None:
    site.session()
    log = Tampering(site.data_dir)
    log.drop("node_created", number=1)
    (site.data_dir / layout.settled(log.session)).unlink()
    manifest = (site.data_dir / layout.manifest(log.session)).read_bytes()
    summary = site.data_dir / layout.cached_summary(log.session)
    head, _, body = summary.read_bytes().partition(b"\n")
    says = {**json.loads(head), "manifestBytes": len(manifest), "manifest": digest_of_bytes(manifest)}
    summary.write_bytes(canonical_bytes(says) + b"\n" + body)
    (mismatch,) = site.json("session", "verify", code=1)["mismatches"]
    (found,) = findings(site.json("doctor", "--deep", code=1), "attention")
    assert (mismatch["code"], found["check"]) == ("chain_broken", "sessions")
    assert "which is not in the log" in mismatch["found"]
    assert "which is not in the log" in found["message"]


def test_a_data_directory_that_is_not_there_yet_is_no_fault_and_is_not_made(site: Site) -> None:
    assert "does not exist yet: the first run creates it" in site.said("doctor")
    assert not site.data_dir.exists()
    site.data_dir.write_bytes(b"")
    said = site.said("doctor", code=1)
    assert f"{site.data_dir} is not a directory." in said.replace("\n" + " " * 11, " ")


def test_what_names_the_data_directory_is_reported(site: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert site.json("doctor", "--data-dir", str(tmp_path))["dataDirOrigin"] == "argument"
    monkeypatch.delenv("INTERLOCK_DATA_DIR")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert site.json("doctor")["dataDirOrigin"] == "default"


def by_directory(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.mkdir()


def by_pipe(path: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def by_loop(path: Path) -> None:
    path.rename(path.with_name("aside"))
    path.symlink_to(path.name)


def by_dangling_link(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to("nowhere")


def by_link(path: Path) -> None:
    path.rename(path.with_name("aside"))
    path.symlink_to("aside")


def by_file(path: Path) -> None:
    if path.exists():
        path.rename(path.with_name("aside"))
    path.write_bytes(b"x")


def read_only(path: Path) -> None:
    if not hasattr(os, "geteuid") or os.geteuid() == 0:
        pytest.skip("root writes everything; files of another kind stand for this")
    path.chmod(0o500 if path.is_dir() else 0o400)


OBSTACLES: list[tuple[str, Callable[[Path], None]]] = [
    *(
        (f"{directory}/{name}", harm)
        for directory, name in (("sessions/{}", "settled"), ("sessions/{}", ".lock"), ("config", ".lock"))
        for harm in (by_directory, by_pipe, by_loop, by_dangling_link, read_only)
    ),
    *((name, by_link) for name in ("sessions/{}/.lock", "config/.lock", "trash", "trash/sessions", "trash/snapshots")),
    ("keys/settled", by_directory),
    ("live", by_dangling_link),
    ("live", by_file),
    ("live/1.json", by_dangling_link),
    ("live/1.json", by_directory),
    *((name, by_file) for name in ("config", "trash", "artifacts", "keys")),
    *(
        (name, read_only)
        for name in ("config", "keys", "sessions/{}/events", "sessions/{}", "sessions/{}/manifest.jsonl")
    ),
]


@pytest.mark.inv("DOC-1")
@pytest.mark.parametrize(("name", "harm"), OBSTACLES)
def test_what_keeps_the_next_call_from_writing_is_named_with_what_to_do(
    site: Site, name: str, harm: Callable[[Path], None]
) -> None:
    session, _ = site.session()
    path = name.format(session)
    (site.data_dir / path).parent.mkdir(exist_ok=True)
    harm(site.data_dir / path)
    try:
        for options in ((), ("--deep",)):
            found = [
                one
                for one in findings(site.json("doctor", *options, code=1), "attention")
                if f"{path} of the data" in one["message"]
            ]
            assert len(found) == 1
            assert found[0]["fix"]
    finally:
        if not (site.data_dir / path).is_symlink():
            (site.data_dir / path).chmod(0o700)


def change(segment: Path) -> None:
    segment.write_bytes(segment.read_bytes().replace(b"Done", b"Gone"))


DAMAGE: dict[str, Callable[[Path], None]] = {"a changed segment": change, "a segment that is gone": Path.unlink}


@pytest.mark.inv("DOC-2", "DOC-1")
@pytest.mark.parametrize("kind", DAMAGE)
@pytest.mark.parametrize("mode", [(), ("--deep",)], ids=["quick", "deep"])
def test_a_damaged_session_is_named_with_its_health_and_what_to_do(site: Site, kind: str, mode: tuple[str]) -> None:
    site.session()
    session, _ = site.session()
    DAMAGE[kind](max((site.data_dir / "sessions" / session / "events").iterdir()))
    before = tree(site.data_dir)
    result = site.json("doctor", *mode, code=1)
    assert tree(site.data_dir) == before
    (wanting,) = findings(result, "attention")
    assert session in wanting["message"]
    assert "corrupt_tail" in wanting["message"]
    assert f"interlock session repair {session}" in wanting["fix"]
    assert f"interlock session export {session} --salvage" in wanting["fix"]
    assert site.said("doctor", *mode, code=1).splitlines()[-1] == "One thing needs attention."


@pytest.mark.inv("DOC-2")
def test_a_session_of_a_newer_release_is_reported_apart_from_a_damaged_one(site: Site) -> None:
    session, _ = site.session()
    manifest = site.data_dir / "sessions" / session / "manifest.jsonl"
    manifest.write_bytes(manifest.read_bytes().replace(b'"v":1', b'"v":2'))
    for mode in ((), ("--deep",)):
        (wanting,) = findings(site.json("doctor", *mode, code=1), "attention")
        assert "written by a newer Interlock" in wanting["message"]


@pytest.mark.inv("DOC-2")
def test_what_only_a_reading_shows_is_not_claimed_without_it(site: Site) -> None:
    session, _ = site.session()
    (artifact,) = (site.data_dir / "artifacts").iterdir()
    artifact.write_bytes(b"other")
    snapshot = min((site.data_dir / "snapshots").iterdir())
    snapshot.unlink()
    assert findings(site.json("doctor"), "attention") == []
    wanting = findings(site.json("doctor", "--deep", code=1), "attention")
    assert [one["check"] for one in wanting] == ["content", "content"]
    assert artifact.name in wanting[0]["message"]
    assert "wrong bytes" in wanting[0]["message"]
    assert snapshot.name in wanting[1]["message"]
    assert all(session in one["message"] for one in wanting)


def test_debris_and_what_a_collection_would_take_are_reported(site: Site) -> None:
    site.session(days=100)
    session, _ = site.session()
    site.make_content_old()
    (site.data_dir / "sessions" / session / "events" / "00000099-00000099.jsonl").write_bytes(b"x" * 2_000)
    (site.data_dir / "keys" / "keyring.json.0123456789abcdef.tmp").write_bytes(b"x")
    (site.data_dir / "sessions" / derived_id("sess", "left")).mkdir()
    (site.data_dir / "sessions" / "mine").mkdir()
    said = site.said("doctor")
    assert "1 segments of interrupted appends, 2.0 kB" in said
    assert "1 temporary files, 1 B" in said
    assert "1 directories of interrupted starts, 0 B" in said
    assert "No sessions, so `interlock gc` leaves them: sessions/mine." in said
    assert "`interlock gc` would delete 1 expired sessions and 1 other items" in site.said("doctor", "--deep")
    site.said("gc")
    assert "in the trash" in site.said("doctor")


def test_a_session_that_is_written_to_is_named_without_waiting_for_it(site: Site) -> None:
    session, _ = site.session()
    assert "Other processes are writing to" not in site.said("doctor")
    with LocalStore(site.data_dir).hold(session):
        assert f"Other processes are writing to {session}." in site.said("doctor")


def test_a_directory_that_others_can_enter_needs_attention(site: Site) -> None:
    site.session()
    site.data_dir.chmod(0o755)
    (wanting,) = findings(site.json("doctor", code=1), "attention")
    assert "0755" in wanting["message"]
    assert "chmod 700" in wanting["fix"]


def test_a_faulty_configuration_needs_attention_and_the_rest_is_looked_at_all_the_same(site: Site) -> None:
    site.session()
    (site.data_dir / "config.toml").write_text("[gates]\nclaim = 1\n[retention]\ndays = 'x'\n", encoding="utf-8")
    for mode in ((), ("--deep",)):
        result = site.json("doctor", *mode, code=1)
        (wanting,) = findings(result, "attention")
        assert "gates.claim" in wanting["message"]
        assert "retention.days" in wanting["message"]
        assert any(one["check"] == "sessions" for one in result["findings"])
    (site.data_dir / "config.toml").write_text("[gates]\nclaims = 'never'\n", encoding="utf-8")
    assert "config.toml sets gates.claims." in site.said("doctor")


def answer_with(monkeypatch: pytest.MonkeyPatch, **answers: object) -> None:
    """Let looks at the machine that a test cannot arrange give these answers."""
    for name, answer in answers.items():

        def look(_: Path, *, answer: object = answer) -> object:
            return answer

        monkeypatch.setattr(checks, name, look)


@pytest.mark.inv("CHECK-5", "DOC-1")
def test_a_check_whose_program_is_not_found_needs_attention(site: Site, tmp_path: Path) -> None:
    site.session()
    space = tmp_path / "space"
    space.mkdir()
    for command, count in (("true", 0), ("no-such-program", 1)):
        lines = f'command = ["{command}"]\nworkspaces = ["{space.resolve()}"]\n'
        (site.data_dir / "config.toml").write_text(f"[checks.tests]\n{lines}")
        found = [one for one in findings(site.json("doctor", code=count), "attention") if one["check"] == "checks"]
        assert len(found) == count
    assert "the program 'no-such-program' of the check `tests` is not found" in found[0]["message"]
    assert "[checks.tests]" in found[0]["fix"]


def test_a_full_disk_is_reported_before_runs_stop(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.session()
    answer_with(monkeypatch, free_bytes=5_000_000)
    assert "Its disk has only 5.0 MB free" in site.said("doctor", code=1)


@pytest.mark.inv("DOC-4")
@pytest.mark.parametrize(
    ("kind", "is_network"),
    [("ext4", False), ("nfs4", True), ("cifs", True), ("9p", True), ("fuse.sshfs", True), ("fuse.ext2", False)],
)
def test_a_network_file_system_is_reported_by_the_nearest_mount(
    kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, is_network: bool
) -> None:
    mounts = tmp_path / "mountinfo"
    point = str(tmp_path / "a b").replace(" ", "\\040")
    mounts.write_text(
        f"1 0 0:1 / / rw - ext4 /dev/x rw\n2 1 0:2 / {point} rw shared:1 - {kind} host:/x rw\nnonsense\n",
        encoding="utf-8",
    )
    monkeypatch.setattr(place, "_MOUNTS", mounts)
    below = tmp_path / "a b" / "data"
    below.mkdir(parents=True)
    assert place.network_file_system(below) == (kind if is_network else None)
    assert place.network_file_system(below / "not" / "yet") == (kind if is_network else None)
    assert place.network_file_system(tmp_path) is None
    monkeypatch.setattr(place, "_MOUNTS", tmp_path / "missing")
    assert place.network_file_system(below) is None


def test_a_directory_that_looks_synchronised_is_reported_and_one_that_does_not_is_not(tmp_path: Path) -> None:
    for name in ("Dropbox", "OneDrive - Firm", "Nextcloud", "Library/CloudStorage", "Library/Mobile Documents"):
        assert place.synchronised_directory(tmp_path / name / "data") == str(tmp_path / name)
    for name in ("dropboxes", "Library", "CloudStorage", "data"):
        assert place.synchronised_directory(tmp_path / name / "data") is None
    (tmp_path / ".stfolder").mkdir()
    assert place.synchronised_directory(tmp_path / "data") == str(tmp_path)


@pytest.mark.inv("DOC-4")
def test_a_place_that_is_not_supported_needs_attention(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.session()
    answer_with(monkeypatch, network_file_system="nfs4", synchronised_directory="/home/me/Dropbox")
    said = site.said("doctor", code=1)
    assert "network file system (nfs4)" in said
    assert "/home/me/Dropbox seems to be synchronised" in said


def test_sizes_are_reported_in_the_unit_that_people_use() -> None:
    sizes = (0, 999, 1_000, 999_949, 999_951, 1_000_000, 2_500_000_000, 10**16)
    assert [in_units(size) for size in sizes] == [
        "0 B",
        "999 B",
        "1.0 kB",
        "999.9 kB",
        "1.0 MB",
        "1.0 MB",
        "2.5 GB",
        "10000.0 TB",
    ]


def test_no_line_of_the_doctor_runs_into_the_margin(site: Site) -> None:
    session, _ = site.session()
    (site.data_dir / "sessions" / session / "manifest.jsonl").write_bytes(b"x\n")
    for line in site.said("doctor", code=1).splitlines()[:-1]:
        assert re.match(r"(fine|note|attention) +[a-z ]+: |  {10}", line), line
