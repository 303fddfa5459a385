"""All ports of one store together. Whoever opens a data directory holds this, and gives each use case its part."""

from typing import Protocol

from interlock.store.ports.keys import KeyRingPort
from interlock.store.ports.reader import SessionReader
from interlock.store.ports.writer import SessionWriter


class Store(SessionReader, SessionWriter, KeyRingPort, Protocol):
    """Every port of durable truth. The contract suite runs against each implementation."""
