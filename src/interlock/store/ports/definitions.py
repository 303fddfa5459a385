"""The port of published definitions: each version of a block, a flow or a contract, kept for ever (OPS-3)."""

from collections.abc import Mapping
from typing import Protocol, TypeAlias

from interlock.kernel.uuids import Uuid

DefinitionKey: TypeAlias = tuple[Uuid, int]
"""The id and the version of a definition."""


class DefinitionArchive(Protocol):
    """Definitions by id and version. A pair keeps its first content."""

    def published(self) -> Mapping[DefinitionKey, bytes]:
        """Return every published definition. Writes nothing.

        Raises:
            StoreFailureError: The disk failed.
        """
        ...

    def publish(self, definitions: Mapping[DefinitionKey, bytes]) -> None:
        """Publish definitions, durably. Those that were published with the same bytes stay as they are.

        Raises:
            DefinitionTakenError: One of them was published with other bytes; nothing was published.
            UpkeepBusyError: Another process publishes.
            StoreFailureError: The disk failed; some of them may be published, which is harmless.
        """
        ...
