"""All ports of one store together. The code that opens a data directory passes each use case its part."""

from typing import TYPE_CHECKING, Protocol

from interlock.store.ports.definitions import DefinitionArchive, DefinitionReader
from interlock.store.ports.keys import KeyRingMaintenance, KeyRingReader, KeyRingWriter
from interlock.store.ports.reader import SessionReader
from interlock.store.ports.writer import SessionWriter

if TYPE_CHECKING:
    # No server needs it, and it is longer than all other ports.
    from interlock.store.ports.maintenance import Upkeep


class StoreReader(SessionReader, KeyRingReader, DefinitionReader, Protocol):
    """Everything that reads a store: enough for a read-only command."""


class Store(StoreReader, SessionWriter, KeyRingWriter, KeyRingMaintenance, DefinitionArchive, Protocol):
    """Every port of a store. The contract suite runs against each implementation."""

    @property
    def upkeep(self) -> "Upkeep":
        """Return the ports that check and collect this store."""
        ...
