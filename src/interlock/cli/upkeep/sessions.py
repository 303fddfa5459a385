"""The checks of `interlock doctor` for sessions: damage, locks, leftover files and expired data.

Without `--deep` they check only that the bytes match the manifests.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from interlock.cli.render.progress import shown_progress
from interlock.cli.screen import in_units
from interlock.cli.upkeep.finding import Finding, attention, fine, note
from interlock.kernel.budgets import NAMED_MAX
from interlock.service.contracts.lost import lost_definitions
from interlock.service.retention.collect import CollectCommand, GcBlocker, find_gc_blockers, hold_back
from interlock.service.retention.lifetime import read_kept
from interlock.service.run.advice import ACCESS
from interlock.store.opening import open_store
from interlock.store.ports.errors import PinsDamagedError
from interlock.store.ports.maintenance import CONTENT, Foreign, GcSnapshot, Item, Kind, Retention, StoreInspector
from interlock.store.ports.store import StoreReader
from interlock.store.retention import due

_DEBRIS = {
    Kind.TEMP: "temporary files",
    Kind.SEGMENT: "segments of interrupted appends",
    Kind.LEFTOVER: "directories of interrupted starts",
    Kind.TRASH: "items in the trash",
}


def check_sessions(data_dir: Path) -> Iterator[Finding]:
    """Check that the bytes of each session match its manifest, and report leftover files.

    Raises:
        StoreFailureError: The disk failed.
    """
    collector = open_store(data_dir).upkeep
    # First, because what cannot be entered may end the check of the sessions.
    yield from _report_obstacles(collector)
    with shown_progress("Checking sessions") as progress:
        kept, seen = read_kept(collector.retention_pins), collector.overview(progress)
    yield from _report_blockers(find_gc_blockers(kept, seen.attested, seen.unsound))
    count = len(seen.attested)
    yield fine("sessions", f"{count} match their manifests; `--deep` also reads every record.")
    yield from _report_locks(collector)
    yield from _report_debris(seen.debris)
    yield from _report_foreign(seen.foreign)


def check_sessions_deeply(data_dir: Path, command: CollectCommand) -> Iterator[Finding]:
    """Read every session and everything that it refers to, and report what `interlock gc` would delete.

    Raises:
        StoreFailureError: The disk failed.
    """
    store = open_store(data_dir)
    collector = store.upkeep
    # First, because what cannot be entered may end the check of the sessions.
    yield from _report_obstacles(collector)
    with shown_progress("Reading sessions") as progress:
        kept, snapshot = read_kept(collector.retention_pins), collector.mark(progress, folds_all=True)
    blockers = find_gc_blockers(kept, snapshot.names(), snapshot.unsound)
    yield from _report_blockers(blockers)
    found = len(snapshot.sessions)
    yield fine("sessions", f"{found} {'is' if found == 1 else 'are'} healthy: every record was read.")
    yield from _check_content(snapshot, collector)
    yield from _report_lost_definitions(store)
    yield from _report_locks(collector)
    trashed = [one.item for one in snapshot.trashed]
    yield from _report_debris([*(item for item in snapshot.items if item.kind not in CONTENT), *trashed])
    yield from _report_foreign(snapshot.foreign)
    if not (blockers or isinstance(kept, PinsDamagedError)):
        yield from _report_expired(snapshot, hold_back(collector, snapshot, command.retention(kept))[0])


def _report_blockers(blockers: Iterable[GcBlocker]) -> Iterator[Finding]:
    for blocker in blockers:
        check = "sessions" if blocker.code == "SESSION_NOT_HEALTHY" else "keep marks"
        yield attention(check, blocker.message, blocker.fix)


def _check_content(snapshot: GcSnapshot, inspector: StoreInspector) -> Iterator[Finding]:
    damaged = inspector.damaged_content(snapshot)
    for one in damaged:
        named = _join_names(one.sessions)
        if one.is_unreadable:
            yield attention("content", f"{one.name}: {one.found}; {named} refer to it.", ACCESS)
            continue
        fix = "Restore the file from a backup. Until then, what these sessions record in it cannot be shown."
        yield attention("content", f"{one.name} is damaged ({one.found}); {named} refer to it.", fix)
    if not damaged:
        yield fine("content", "Every file that sessions refer to exists and matches its hash.")


def _report_lost_definitions(store: StoreReader) -> Iterator[Finding]:
    for one in lost_definitions(store, store).values():
        fix = "Restore the directory `definitions` from a backup, or publish it again from its sources"
        yield attention("definitions", f"{one.name}: {one.found}.", f"{fix} (`interlock contract publish`).")


def _report_obstacles(inspector: StoreInspector) -> Iterator[Finding]:
    for one in inspector.obstacles():
        yield attention("files", f"{one.name} of the data directory: {one.found}.", one.fix)


def _report_locks(inspector: StoreInspector) -> Iterator[Finding]:
    held = inspector.held_sessions()
    if held:
        yield note("locks", f"Other processes are writing to {_join_names(held)}.")


def _report_debris(debris: Iterable[Item]) -> Iterator[Finding]:
    found = list(debris)
    for kind, words in _DEBRIS.items():
        sizes = [item.bytes for item in found if item.kind is kind]
        if sizes:
            message = f"{len(sizes)} {words}, {in_units(sum(sizes))}"
            yield note("debris", f"{message}: `interlock gc` deletes what is older than a day.")


def _report_foreign(foreign: Iterable[Foreign]) -> Iterator[Finding]:
    names = [one.name for one in foreign]
    if names:
        yield note("debris", f"No sessions, so `interlock gc` leaves them: {_join_names(names)}.")


def _report_expired(snapshot: GcSnapshot, retention: Retention) -> Iterator[Finding]:
    expired = due(snapshot, retention)
    sizes = [size for _, size in expired.sizes()]
    if sizes:
        message = (
            f"`interlock gc` would delete {len(expired.sessions)} expired sessions and {len(expired.items)} other items"
        )
        yield note("retention", f"{message}, {in_units(sum(sizes))} in all.")


def _join_names(names: Iterable[str]) -> str:
    named = list(names)
    more = f" and {len(named) - NAMED_MAX} more" if len(named) > NAMED_MAX else ""
    return ", ".join(named[:NAMED_MAX]) + more
