"""`interlock session verify`: compute every recorded decision again and compare."""

import argparse
from collections.abc import Sequence

from interlock.cli.options import add_store_options
from interlock.cli.screen import RefusedError, StopError, counted, say, say_json
from interlock.cli.session.chosen import named_sessions, say_damaged
from interlock.cli.session.import_ import read_bundle, restoring, salvage_words
from interlock.cli.store import answered_by_store, open_chosen_reader
from interlock.kernel.canonical import Json
from interlock.kernel.errors import ErrorCode, Refusal
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import SessionId
from interlock.record.bundle import SalvageBanner
from interlock.service.audit.verify import Mismatch, unfinished_note, verify_with_words
from interlock.service.contracts.lost import lost_definitions
from interlock.service.run.plans import Plans
from interlock.service.transfer.import_ import import_session
from interlock.store.opening import open_memory_store
from interlock.store.ports.definitions import DamagedDefinition
from interlock.store.ports.store import StoreReader


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_store_options(parser)
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("sessions", metavar="SESSION", nargs="*", default=[], help="session ids (default: all)")
    chosen.add_argument(
        "--file",
        metavar="BUNDLE",
        help="verify an exported file without importing it, `-` for standard input; no data directory is used",
    )
    parser.add_argument(
        "--force",
        dest="is_forced",
        action="store_true",
        help="also compare decisions that another build of Interlock made",
    )


def run(options: argparse.Namespace) -> int:
    """Verify sessions, all of them, or a bundle; return 1 if a decision differs.

    Raises:
        StopError: There is no such session, the file cannot be read, or it is not a valid bundle.
    """
    chosen = _select_sessions(options) if options.file is None else _read_file(options.file)
    reader, names, is_forced = chosen.reader, chosen.names, bool(options.is_forced)
    with answered_by_store():
        plans = Plans(reader)
        verified = {name: verify_with_words(reader, plans, name, is_forced=is_forced) for name in names}
        notes = {name: note for name in names if (note := unfinished_note(reader, name)) is not None}
        damaged = _unusable_definitions(reader) if chosen.is_all else ()
    found = {name: one.mismatches for name, one in verified.items()}
    copies = {name: one.redacted for name, one in verified.items() if one.redacted is not None}
    examined = {name: one.examined.to_json() for name, one in verified.items() if one.examined is not None}
    words = {name: one.words for name, one in verified.items() if one.words}
    count = sum(map(len, found.values()))
    if options.as_json:
        mismatches = [one.to_json() for each in found.values() for one in each]
        reworded: dict[str, Json] = {name: [one.to_json() for one in each] for name, each in words.items()}
        salvage = {} if chosen.banner is None else {"salvage": chosen.banner.to_json()}
        definitions = {"damagedDefinitions": [one.name for one in damaged]} if damaged else {}
        seen: dict[str, Json] = {
            "examined": {**examined},
            "unfinished": {**notes},
            **({"redacted": {**copies}} if copies else {}),
            **({"otherWords": {**reworded}} if words else {}),
        }
        say_json({"sessions": list(names), "mismatches": mismatches, **seen, **salvage, **definitions})
    else:
        if chosen.banner is not None:
            say(salvage_words(chosen.banner))
        for name, mismatches in found.items():
            sound = "sound, as far as it was compared" if name in copies else "sound"
            say(f"{name}: {counted(len(mismatches), 'mismatch') if mismatches else sound}")
            for one in mismatches:
                say(_render_mismatch(one))
            for note in (one[name] for one in (notes, copies) if name in one):
                say(f"  note: {note}")
            for one in words.get(name, ()):
                say(f"  note: other words at {one.node}, {one.where}: {one.found}\n    {_OTHER_WORDS}")
        say(f"{counted(len(names), 'session')}, {counted(count, 'mismatch')}")
        say_damaged(damaged)
    return 1 if count or damaged else 0


_OTHER_WORDS = "Another build of Interlock wrote this text, or somebody changed it. The facts are the same."


@frozen
class _Selection:
    """The sessions to verify, and the ports that read them; `banner` if a bundle is not the whole session.

    With `is_all`, all of a data directory is verified, with its published definitions.
    """

    reader: StoreReader
    names: Sequence[SessionId]
    banner: SalvageBanner | None = None
    is_all: bool = False


def _unusable_definitions(reader: StoreReader) -> tuple[DamagedDefinition, ...]:
    return (*reader.damaged_definitions().values(), *lost_definitions(reader, reader).values())


def _select_sessions(options: argparse.Namespace) -> _Selection:
    store = open_chosen_reader(options)
    wanted = named_sessions(store, options.sessions)
    with answered_by_store():
        names = wanted or store.sessions()
        unknown = [name for name in wanted if not store.is_stored(name)]
    if unknown:
        message = f"There is no session {unknown[0]!r} in this data directory."
        raise StopError(
            message, "Leave out the id to verify all sessions.", exit_code=1, code=ErrorCode.SESSION_NOT_FOUND
        )
    return _Selection(reader=store, names=names, is_all=not wanted)


def _read_file(file: str) -> _Selection:
    """Import a bundle into memory, with all checks of an import. Its session keeps its id."""
    store, data = open_memory_store(), read_bundle(file)
    with answered_by_store():
        imported = import_session(restoring(store), data)
    if isinstance(imported, Refusal):
        raise RefusedError(imported)
    return _Selection(reader=store, names=store.sessions(), banner=imported.banner)


def _render_mismatch(one: Mismatch) -> str:
    return f"  {one.code} at {one.node or 'the session'}, {one.where}: {one.found}\n    {one.fix}"
