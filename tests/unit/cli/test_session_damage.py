"""A damaged session is reported by every command that reads sessions, and advice is given only where it works."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.history import Place, redone
from tests.support.modes import NEVER_STOPS
from tests.support.server import tree

from interlock.cli.frame import processes
from interlock.store.local.files import OsFiles
from interlock.testing.harness import linear_workflow

pytestmark = pytest.mark.damages

SHIP = linear_workflow("team.ship", "a", "b", "c")


def recorded(place: Place) -> str:
    """Record a session with two steps done; return its id."""
    harness = place.serving(SHIP)
    first = harness.start("team.ship", goal="Ship")
    harness.advance(harness.advance(first, "Built it."), "Tried it.")
    return str(harness.session_of(first))


def lose_manifest(session: Path) -> None:
    (session / "manifest.jsonl").unlink()


def empty_manifest(session: Path) -> None:
    (session / "manifest.jsonl").write_bytes(b"")


def lose_manifest_and_mark(session: Path) -> None:
    lose_manifest(session)
    (session / "settled").unlink()


def empty_manifest_without_mark(session: Path) -> None:
    empty_manifest(session)
    (session / "settled").unlink()


LOST: list[Callable[[Path], None]] = [
    lose_manifest,
    empty_manifest,
    lose_manifest_and_mark,
    empty_manifest_without_mark,
]


@pytest.mark.inv("CRASH-9", "HIS-2")
@pytest.mark.parametrize("lose", LOST)
def test_a_session_without_its_manifest_is_reported_as_damaged_by_every_command(
    place: Place, lose: Callable[[Path], None]
) -> None:
    session = recorded(place)
    lose(place.root / "sessions" / session)
    for command in ("list", "status", "open-gaps"):
        printed = place.run(command)
        assert (session in printed.out, "corrupt_head" in printed.out) == (True, True), command
        assert place.run(command, "--json").json()["unreadable"], command
    assert place.run("open-gaps").code == 1
    for name in ((), (session,)):
        shown = place.run("show", *name)
        assert (shown.code, "damaged" in shown.err) == (1, True)
        verified = place.run("verify", *name)
        assert verified.code == 1
        assert "1 session, 1 mismatch" in verified.out


@pytest.mark.inv("CRASH-9")
@pytest.mark.parametrize("lose", LOST)
def test_repair_and_salvage_are_not_advised_where_nothing_is_left_to_copy(
    place: Place, lose: Callable[[Path], None]
) -> None:
    session = recorded(place)
    lose(place.root / "sessions" / session)
    for command in (("repair", session), ("export", session, "--salvage")):
        printed = place.run(*command)
        assert printed.code == 1
        assert f"no part of {session} can be used" in printed.err
    for command in ("list", "verify"):
        printed = place.run(command).out
        assert "session repair" not in printed
        assert f"No part of {session} can be used. Restore it from a backup" in printed


@pytest.mark.inv("CRASH-9")
def test_repair_is_advised_where_a_beginning_is_left(place: Place) -> None:
    session = recorded(place)
    max((place.root / "sessions" / session / "events").iterdir()).unlink()
    for command in ("list", "verify"):
        assert f"`interlock session repair {session}`" in place.run(command).out
    assert place.run("repair", session).code == 0


def alter_first_segment(root: Path, session: str) -> None:
    path = min((root / "sessions" / session / "events").iterdir())
    path.write_bytes(path.read_bytes().replace(b"Ship", b"Shop"))


def lose_first_segment(root: Path, session: str) -> None:
    min((root / "sessions" / session / "events").iterdir()).unlink()


def newest_snapshot(root: Path) -> Path:
    return max((root / "snapshots").iterdir(), key=lambda path: path.stat().st_mtime_ns)


def lose_snapshot(root: Path, _: str) -> None:
    newest_snapshot(root).unlink()


def alter_snapshot(root: Path, _: str) -> None:
    path = newest_snapshot(root)
    path.write_bytes(path.read_bytes().replace(b"{", b" {", 1))


def lose_workflow(root: Path, _: str) -> None:
    next((root / "workflows" / "pinned").iterdir()).unlink()


@pytest.mark.inv("HIS-7", "HIS-2")
@pytest.mark.parametrize(
    "harm", [alter_first_segment, lose_first_segment, lose_snapshot, alter_snapshot, lose_workflow]
)
def test_a_cached_summary_does_not_hide_that_a_file_was_altered_or_lost(
    place: Place, harm: Callable[[Path, str], None]
) -> None:
    session = recorded(place)
    assert place.run("open-gaps").code == 0
    assert (place.root / "sessions" / session / "cache" / "summary").exists()
    harm(place.root, session)
    for command in ("list", "status", "open-gaps"):
        printed = place.run(command)
        assert session in printed.out, command
        assert "in progress" not in printed.out, command
        assert place.run(command, "--json").json()["unreadable"], command
    assert place.run("open-gaps").code == 1
    assert place.run("show").code == 1
    assert place.run("verify").code == 1


@pytest.mark.inv("HIS-7")
def test_a_listing_reads_no_event_of_an_unchanged_session(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded(place)
    reads = list[str]()
    read = OsFiles.read

    def noted(files: OsFiles, path: str, offset: int = 0, bytes_max: int | None = None) -> bytes:
        reads.append(path)
        return read(files, path, offset, bytes_max)

    monkeypatch.setattr(OsFiles, "read", noted)
    assert "in progress" in place.run("list").out
    assert {path.rpartition("/")[2] for path in reads if path.startswith("sessions/")} == {"summary", "settled"}
    assert not [path for path in reads if "/events/" in path]


@pytest.mark.inv("HIS-7", "RES-4")
@pytest.mark.parametrize("at", [100, -9])
def test_a_manifest_with_another_time_is_compared_whole(place: Place, at: int) -> None:
    session = recorded(place)
    manifest = place.root / "sessions" / session / "manifest.jsonl"
    os.utime(manifest, (0, 0))
    assert "in progress" in place.run("list").out
    data = bytearray(manifest.read_bytes())
    data[at] ^= 1
    manifest.write_bytes(data)
    for command in ("list", "status", "open-gaps"):
        printed = place.run(command)
        assert session in printed.out
        assert "in progress" not in printed.out
        assert place.run(command, "--json").json()["unreadable"]


@pytest.mark.inv("HIS-9", "RES-4")
def test_a_directory_under_the_id_of_another_session_is_damaged(place: Place) -> None:
    session = recorded(place)
    other = session[:-1] + ("0" if session[-1] != "0" else "1")
    shutil.copytree(place.root / "sessions" / session, place.root / "sessions" / other)
    for command in ("list", "status", "open-gaps"):
        assert other in str(place.run(command, "--json").json()["unreadable"]), command


def test_an_interrupted_append_beside_the_log_is_no_damage(place: Place) -> None:
    session = recorded(place)
    events = place.root / "sessions" / session / "events"
    second = sorted(events.iterdir())[1]
    first = int(second.name.partition("-")[0])
    orphan = events / f"{first:08d}-{first + 90:08d}.jsonl"
    orphan.write_bytes(b"")
    os.utime(orphan, (0, 0))
    printed = place.run("list")
    assert ("in progress" in printed.out, "Cannot be read" in printed.out) == (True, False)


VIEWS = ["show", "show --evidence", "context", "timeline", "graph", "graph --format mermaid", "report"]


def of_evidence(place: Place) -> str:
    """Record a session whose first step has an artifact and whose second was refused once; return its id."""
    harness = place.serving(SHIP)
    first = harness.start("team.ship", goal="Ship")
    artifact = {"kind": "team.result", "verdict": "passed", "n": 12_345}
    second = harness.advance(first, None, output={"notesMarkdown": "Built it.", "artifacts": [artifact]})
    harness.advance(harness.advance(second, None), "Tried it.")
    return str(harness.session_of(first))


def alter(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:-20] + bytes([data[-20] ^ 1]) + data[-19:])


def lose(path: Path) -> None:
    path.unlink()


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def files_of(place: Place, session: str) -> dict[str, Path]:
    """Return one file of each class whose loss is damage, by the name of the class."""
    events = sorted((place.root / "sessions" / session / "events").iterdir())
    snapshots = sorted((place.root / "snapshots").iterdir(), key=lambda path: path.stat().st_mtime_ns)
    (artifact,) = (path for path in (place.root / "artifacts").rglob("*") if path.is_file())
    (workflow,) = (place.root / "workflows" / "pinned").iterdir()
    return {
        "the manifest": place.root / "sessions" / session / "manifest.jsonl",
        "the first segment": events[0],
        "a later segment": events[-1],
        "the first snapshot": snapshots[0],
        "the latest snapshot": snapshots[-1],
        "an artifact": artifact,
        "the pinned workflow": workflow,
    }


CLASSES = [
    *("the manifest", "the first segment", "a later segment", "the first snapshot", "the latest snapshot"),
    *("an artifact", "the pinned workflow"),
]


@pytest.mark.inv("HIS-8")
@pytest.mark.parametrize("harm", [lose, alter, pytest.param(cut, marks=pytest.mark.soak)])
@pytest.mark.parametrize("name", CLASSES)
def test_each_view_says_what_is_lost_and_no_less_than_verify(
    place: Place, name: str, harm: Callable[[Path], None]
) -> None:
    session = of_evidence(place)
    harm(files_of(place, session)[name])
    before = tree(place.root)
    mismatches = place.run("verify", session, "--json").json()["mismatches"]
    assert mismatches
    for view in VIEWS:
        action, *options = view.split()
        outcome = place.run(action, session, *options)
        said = outcome.out + outcome.err
        assert outcome.code == 1, view
        assert "ackToken" not in said, view
        if "No part of" in said:
            assert f"PARTIAL_DATA: no part of {session} can be used" in said
            continue
        assert "damaged" in said, view
        damage = place.run(action, session, *options, "--json").json()["damage"]
        assert damage["mismatches"] == mismatches, view
        is_log_sound = damage["code"] == "PARTIAL_DATA"
        assert ("Calls that do not need what is lost still work." in said) == is_log_sound, view
        assert ("Nothing of it can be continued." in said) == (not is_log_sound), view
        assert all(one["code"] in said for one in mismatches), view
    assert tree(place.root) == before


@pytest.mark.inv("HIS-8")
@pytest.mark.parametrize("view", [*VIEWS, "show --all", "report --format html"])
def test_a_lost_snapshot_of_an_inner_node_of_another_branch_is_reported_by_what_draws_it(
    place: Place, view: str
) -> None:
    harness = place.serving(SHIP)
    first = harness.start("team.ship", goal="Ship")
    third = harness.advance(harness.advance(first, "Built it."), "Tried it.")
    inner = newest_snapshot(place.root)
    harness.advance(third, "Shipped it.")
    redone(harness, first)
    session = str(harness.session_of(first))
    inner.unlink()
    action, *options = view.split()
    outcome = place.run(action, session, *options)
    said = outcome.out + outcome.err
    assert (outcome.code, "PARTIAL_DATA: damaged." in said, "Built it." in said) == (
        1,
        True,
        action in {"show", "report", "timeline"},
    )


LOG = {"the manifest", "the first segment", "a later segment"}
OF_EARLIER = {"the first snapshot", "an artifact"}
"""Content that the current step does not need: lists show the run, and say that it is damaged."""


@pytest.mark.inv("HIS-9")
@pytest.mark.parametrize("harm", [lose, *(pytest.param(one, marks=pytest.mark.soak) for one in (alter, cut))])
@pytest.mark.parametrize("name", CLASSES)
def test_lists_searches_and_comparisons_say_what_is_lost_of_what_they_read(
    place: Place, name: str, harm: Callable[[Path], None]
) -> None:
    session = of_evidence(place)
    path = files_of(place, session)[name]
    # Another workflow: its snapshots are other files.
    other = place.serving(linear_workflow("team.other", "x")).start("team.other")["run"]["sessionId"]
    place.run("list")
    harm(path)
    is_listed = name not in OF_EARLIER
    for command in ("list", "status", "open-gaps"):
        listed = place.run(command, "--json").json()
        assert (session in str(listed["unreadable"])) == is_listed, command
        assert (session in str(listed["incomplete"])) != is_listed, command
        said = place.run(command).out.lower()
        assert ("cannot be read" in said) == is_listed, command
        assert ("1 session damaged" in said) != is_listed, command
        assert other not in said, command
    for command in ("status", "open-gaps") if not is_listed else ():
        printed = place.run(command, session)
        assert "damaged" in printed.out + printed.err, command
    resumed = place.serving(SHIP).resume("Tried")
    assert (session in str(resumed.structure.get("reason"))) == is_listed
    found = place.run("search", "12345", "--json").json()
    is_log = name in LOG
    assert (session in found["unreadable"]) == is_log
    assert (session in found["incomplete"]) != is_log
    assert bool(found["passages"]) == (not is_log and name != "an artifact")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(processes, "_processors", lambda: 2)
        patch.setattr(processes, "ITEMS_BEFORE_PROCESSES", 0)
        patch.setattr(processes, "ITEMS_PER_BATCH", 1)
        assert place.run("search", "12345", "--json").json() == found
    compared = place.run("diff", session, other)
    assert compared.code == 1
    assert "damaged" in compared.out + compared.err
    assert "Traceback" not in compared.err


HARMLESS = (
    "sessions/{}/.lock",
    "sessions/{}/settled",
    "sessions/{}/cache/summary",
    "keys/settled",
    "keys/keyring.json",
)


@pytest.mark.inv("HIS-9")
@pytest.mark.parametrize("harm", [lose, cut])
def test_damaged_files_that_no_record_refers_to_change_no_view(place: Place, harm: Callable[[Path], None]) -> None:
    session = of_evidence(place)
    commands = ["list", "status", "open-gaps", "search Built", "verify", *VIEWS]
    before = [place.run(*command.split()) for command in commands]
    for name in HARMLESS:
        harm(place.root / name.format(session))
    assert [place.run(*command.split()) for command in commands] == before


@pytest.mark.inv("HIS-8")
def test_the_steps_before_a_lost_segment_are_shown_and_the_later_ones_are_not(place: Place) -> None:
    session = of_evidence(place)
    lose(files_of(place, session)["a later segment"])
    for view in VIEWS:
        action, *options = view.split()
        outcome = place.run(action, session, *options)
        assert (
            "SALVAGED_PREFIX: damaged. Only what was recorded before the damage is shown." in outcome.out + outcome.err
        )
        assert "Tried it." not in outcome.out
    assert "Built it." in place.run("show").out
    assert "Built it." in place.run("report").out
    assert "completed step 1, Step a" in place.run("timeline").out
    assert "damaged" not in place.run("graph", "--format", "mermaid").out


@pytest.mark.inv("HIS-8")
def test_with_a_lost_artifact_all_events_are_shown(place: Place) -> None:
    session = of_evidence(place)
    lose(files_of(place, session)["an artifact"])
    for view in VIEWS:
        action, *options = view.split()
        outcome = place.run(action, *options)
        assert "damaged. Every event is shown, but what some refer to cannot be read." in outcome.out + outcome.err
    assert "Tried it." in place.run("show").out
    assert place.run("report", "--out", str(place.root.parent / "report.md")).code == 1


@pytest.mark.inv("HIS-8")
def test_what_would_resolve_a_gap_is_not_offered_for_a_damaged_session(place: Place) -> None:
    harness = place.serving(SHIP)
    first = harness.start("team.ship", preferences=NEVER_STOPS)
    harness.advance(harness.advance(first, None), "Tried it.")
    session = str(harness.session_of(first))
    assert "redo this step on a new branch" in place.run("show").out
    max((place.root / "sessions" / session / "events").iterdir()).unlink()
    shown = place.run("show").out
    assert "redo this step" not in shown
    assert "To resolve: repair the session first." in shown
