"""What `interlock doctor` says of sessions: which are whole, which are not, which are held, and what lies around.

Without `--deep` it claims no more than it looked at: that the bytes are those that the manifests attest.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from interlock.cli.render.progress import shown_progress
from interlock.cli.screen import in_units
from interlock.cli.upkeep.finding import Finding, attention, fine, note
from interlock.kernel.budgets import NAMED_MAX
from interlock.kernel.ids import SessionId
from interlock.service.collect import CollectCommand, GcBlocker, doubts_of, read_kept
from interlock.store.opening import open_store
from interlock.store.ports.errors import PinsDamagedError
from interlock.store.ports.maintenance import CONTENT, GcSnapshot, Item, Kind, StoreInspector
from interlock.store.retention import due

_DEBRIS = {
    Kind.TEMP: "temporary files",
    Kind.SEGMENT: "segments of interrupted appends",
    Kind.LEFTOVER: "directories without a session",
    Kind.TRASH: "items in the trash",
}


def sessions(data_dir: Path) -> Iterator[Finding]:
    """Look whether each session's bytes are those that its manifest attests, and at what lies around.

    Raises:
        StoreFailureError: The disk failed.
    """
    collector = open_store(data_dir).upkeep
    with shown_progress("Checking sessions") as told:
        kept, seen = read_kept(collector.keep_marks), collector.glance(told)
    yield from _doubts(doubts_of(kept, seen.attested, seen.unsound))
    count = len(seen.attested)
    yield fine("sessions", f"{count} match their manifests; `--deep` also reads every record.")
    yield from _held(collector)
    yield from _lying_around(seen.debris)


def sessions_deeply(data_dir: Path, command: CollectCommand) -> Iterator[Finding]:
    """Read every session and everything that one refers to, and say what a collection would take.

    Raises:
        StoreFailureError: The disk failed.
    """
    collector = open_store(data_dir).upkeep
    with shown_progress("Reading sessions") as told:
        kept, marked = read_kept(collector.keep_marks), collector.mark(told)
    doubts = doubts_of(kept, marked.names(), marked.unsound)
    yield from _doubts(doubts)
    yield fine("sessions", f"{len(marked.sessions)} are healthy: every record was read.")
    yield from _content(marked, collector)
    yield from _held(collector)
    yield from _lying_around([item for item in marked.items if item.kind not in CONTENT])
    if not (doubts or isinstance(kept, PinsDamagedError)):
        yield from _expired(marked, kept, command)


def _doubts(doubts: Iterable[GcBlocker]) -> Iterator[Finding]:
    for doubt in doubts:
        check = "sessions" if doubt.code == "SESSION_NOT_HEALTHY" else "keep marks"
        yield attention(check, doubt.message, doubt.fix)


def _content(marked: GcSnapshot, inspector: StoreInspector) -> Iterator[Finding]:
    damaged = inspector.damaged_content(marked)
    for one in damaged:
        named = _named(one.sessions)
        fix = "Restore the file from a backup. Until then, what these sessions record in it cannot be shown."
        yield attention("content", f"{one.name} is damaged ({one.found}); {named} refer to it.", fix)
    if not damaged:
        yield fine("content", "Every file that sessions refer to exists and matches its hash.")


def _held(inspector: StoreInspector) -> Iterator[Finding]:
    held = inspector.held_sessions()
    if held:
        yield note("locks", f"Other processes are writing to {_named(held)}.")


def _lying_around(debris: Iterable[Item]) -> Iterator[Finding]:
    found = list(debris)
    for kind, words in _DEBRIS.items():
        sizes = [item.bytes for item in found if item.kind is kind]
        if sizes:
            message = f"{len(sizes)} {words}, {in_units(sum(sizes))}"
            yield note("debris", f"{message}: `interlock gc` deletes what is older than a day.")


def _expired(marked: GcSnapshot, kept: frozenset[SessionId], command: CollectCommand) -> Iterator[Finding]:
    taken = due(marked, command.retention(kept))
    sizes = [size for _, size in taken.sizes()]
    if sizes:
        message = (
            f"`interlock gc` would delete {len(taken.sessions)} expired sessions and {len(taken.items)} other items"
        )
        yield note("retention", f"{message}, {in_units(sum(sizes))} in all.")


def _named(names: Iterable[str]) -> str:
    named = list(names)
    more = f" and {len(named) - NAMED_MAX} more" if len(named) > NAMED_MAX else ""
    return ", ".join(named[:NAMED_MAX]) + more
