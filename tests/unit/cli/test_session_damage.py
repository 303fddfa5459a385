"""A damaged session is reported by every command that reads sessions, and advice is given only where it works."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.history import Place

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
        told = place.run(command)
        assert (session in told.out, "corrupt_head" in told.out) == (True, True), command
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
        told = place.run(*command)
        assert told.code == 1
        assert f"no part of {session} can be used" in told.err
    for command in ("list", "verify"):
        told = place.run(command).out
        assert "session repair" not in told
        assert f"No part of {session} can be used. Restore it from a backup" in told


@pytest.mark.inv("CRASH-9")
def test_repair_is_advised_where_a_beginning_is_left(place: Place) -> None:
    session = recorded(place)
    max((place.root / "sessions" / session / "events").iterdir()).unlink()
    assert f"`interlock session repair {session}`" in place.run("verify").out
    assert place.run("repair", session).code == 0
