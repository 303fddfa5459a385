"""Intents that a process recorded and has not tried to send: the next server sends them if it is killed (WORLD-13).

`outbox/<session>.json` holds their ids and the state of the session's manifest. A copy, a restored backup, an import
and a repair have another manifest, or one that changed later, so such a file says nothing there. Nothing is synced: a
file that is lost only means that a person sends these intents.
"""

import json
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import cast

from interlock.kernel.canonical import parse_object
from interlock.kernel.ids import IntentId, SessionId
from interlock.store.local import layout
from interlock.store.local.content import discard, unused_name
from interlock.store.local.files import FileOps, OsFiles
from interlock.store.local.small_files import read_small


class UntriedFiles:
    """The files of one data directory. No method raises: nothing else depends on them."""

    def __init__(self, root: Path, files: FileOps | None = None) -> None:
        self._files = files or OsFiles(root)

    def note(self, session: SessionId, intents: Collection[IntentId]) -> None:
        """Replace the file of a session; without intents, remove it."""
        path = layout.untried(session)
        with suppress(OSError):
            state = self._state(session) if intents else None
            if state is None:
                discard(self._files, path)
                return
            self._files.make_dir(layout.OUTBOX)
            temp = layout.temp(path, unused_name())
            data = json.dumps({"intents": sorted(intents), "manifest": state})
            try:
                self._files.write(temp, data.encode("ascii"))
                self._files.rename(temp, path)
            except OSError:
                discard(self._files, temp)

    def left(self) -> Iterator[tuple[SessionId, frozenset[IntentId]]]:
        """Yield what the files hold whose session is unchanged since. Remove all others."""
        names = list[str]()
        with suppress(OSError):
            if not self._files.is_link(layout.OUTBOX):
                names = self._files.names(layout.OUTBOX)
        for name in names:
            session = SessionId(name.removesuffix(".json"))
            if layout.is_temp(name):
                discard(self._files, f"{layout.OUTBOX}/{name}")
            if not layout.is_session(session) or name == session:
                continue
            intents = self._read(session)
            if intents is None:
                discard(self._files, layout.untried(session))
            else:
                yield session, intents

    def _read(self, session: SessionId) -> frozenset[IntentId] | None:
        """Return the intents of a file; None if it is of another state of the session, or not of its form."""
        try:
            found = parse_object(read_small(self._files, layout.untried(session))) or {}
            state = self._state(session)
        except OSError:
            return None
        intents = found.get("intents")
        if state is None or found.get("manifest") != state or not isinstance(intents, list):
            return None
        return frozenset(IntentId(str(one)) for one in cast("list[object]", intents))

    def _state(self, session: SessionId) -> list[int] | None:
        """Return what identifies the manifest and its last change; None where the system does not keep it."""
        found = self._files.own_stat(layout.manifest(session))
        if found is None or not found.is_file or not found.changed_ns:
            return None
        return [found.device, found.inode, found.size, found.changed_ns]
