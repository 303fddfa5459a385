"""Finds published definitions whose files are gone (OPS-21)."""

from collections.abc import Mapping
from contextlib import suppress

from interlock.record.errors import MalformedRecordError
from interlock.store.ports.definitions import DamagedDefinition, DefinitionKey, DefinitionReader
from interlock.store.ports.errors import ContentDamagedError, SessionUnhealthyError
from interlock.store.ports.reader import SessionReader


def lost_definitions(reader: SessionReader, archive: DefinitionReader) -> Mapping[DefinitionKey, DamagedDefinition]:
    """Return the definitions that a session here was started with and whose published files are gone.

    A start publishes before it records. Imported sessions and redacted copies were started elsewhere. A session that
    cannot be read is passed over: it is reported as damaged itself.

    Raises:
        StoreFailureError: The disk failed.
    """
    known = {*archive.published(), *archive.damaged_definitions()}
    lost: dict[DefinitionKey, DamagedDefinition] = {}
    for name in reader.sessions():
        with suppress(SessionUnhealthyError, ContentDamagedError, MalformedRecordError):
            session = reader.load(name)
            if session is None or not session.contracts or session.is_imported or session.redacted_from is not None:
                continue
            # Definitions are models, which a data directory without contracts does not need.
            from interlock.service.contracts.definitions import read_bound  # noqa: PLC0415 — see above

            for one in read_bound(reader, session):
                found = f"its file is missing, and {name} was started with it"
                if (one.id, one.version) not in known:
                    lost.setdefault(
                        (one.id, one.version), DamagedDefinition(name=f"{one.id}, version {one.version}", found=found)
                    )
    return lost
