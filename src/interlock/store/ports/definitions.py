"""The port of published definitions: each version of a block, a flow or a contract, kept for ever (OPS-3)."""

from collections.abc import Mapping
from typing import Protocol, TypeAlias

from interlock.kernel.frozen import frozen
from interlock.kernel.uuids import Uuid

DefinitionKey: TypeAlias = tuple[Uuid, int]
"""The id and the version of a definition."""


@frozen
class DamagedDefinition:
    """A published definition that cannot be used: the name of its file in the store, and what is wrong with it."""

    name: str
    found: str


class DefinitionReader(Protocol):
    """Reads definitions by id and version."""

    def published(self) -> Mapping[DefinitionKey, bytes]:
        """Return every published definition that is intact. Writes nothing.

        Raises:
            StoreFailureError: The disk failed.
        """
        ...

    def damaged_definitions(self) -> Mapping[DefinitionKey, DamagedDefinition]:
        """Return the published definitions that are damaged or cannot be read. Writes nothing.

        Raises:
            StoreFailureError: The disk failed.
        """
        ...


class DefinitionArchive(DefinitionReader, Protocol):
    """Definitions by id and version. A pair keeps its first content."""

    def publish(self, definitions: Mapping[DefinitionKey, bytes]) -> None:
        """Publish definitions, durably. Those that were published with the same bytes stay; damaged ones are restored.

        Raises:
            DefinitionTakenError: One of them was published with other bytes; nothing was published.
            DefinitionDamagedError: Something in the place of a damaged one cannot be replaced.
            UpkeepBusyError: Another process publishes.
            StoreFailureError: The disk failed; some of them may be published, which is harmless.
        """
        ...
