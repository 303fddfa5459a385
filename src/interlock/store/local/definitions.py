"""Published definitions as files: `definitions/<id>.<version>.json`, written once (OPS-3)."""

import re
from collections.abc import Mapping

from interlock.kernel.uuids import Uuid
from interlock.store.local import layout
from interlock.store.local.content import write_durably
from interlock.store.local.files import FileOps, store_failure
from interlock.store.local.locks import Locks
from interlock.store.local.upkeep import upkeep_lock
from interlock.store.ports.definitions import DefinitionKey
from interlock.store.ports.errors import DefinitionTakenError

_NAME = re.compile(r"([0-9a-f-]{36})\.([1-9][0-9]*)\.json")


class DefinitionFiles:
    """Reads and writes the files of definitions. Names of another form are ignored."""

    def __init__(self, files: FileOps, locks: Locks) -> None:
        self._files = files
        self._locks = locks

    def published(self) -> Mapping[DefinitionKey, bytes]:
        """See `DefinitionArchive.published`."""
        try:
            named = [found for name in self._files.names(layout.DEFINITIONS) if (found := _NAME.fullmatch(name))]
            return {
                (Uuid(name[1]), int(name[2])): self._files.read(f"{layout.DEFINITIONS}/{name[0]}") for name in named
            }
        except OSError as error:
            raise store_failure(error) from error

    def publish(self, definitions: Mapping[DefinitionKey, bytes]) -> None:
        """See `DefinitionArchive.publish`."""
        with upkeep_lock(self._files, self._locks):
            known = self.published()
            for key, data in definitions.items():
                if known.get(key, data) != data:
                    raise DefinitionTakenError(definition_id=key[0], version=key[1])
            try:
                self._files.make_dir(layout.DEFINITIONS)
                for (definition_id, version), data in definitions.items():
                    if (definition_id, version) not in known:
                        write_durably(self._files, f"{layout.DEFINITIONS}/{definition_id}.{version}.json", data)
                self._files.sync_dir(layout.DEFINITIONS)
                self._files.sync_dir("")
            except OSError as error:
                raise store_failure(error) from error
