"""The key ring file: the current and the previous signing key, with a checksum over both (KEY-1, KEY-3).

The file alone does not show that it is durable: its writer may have been killed before its last sync, and repeating a
failed sync proves nothing. So a writer that synced a ring without an error records the digest of its bytes in the
settled mark. The mark needs no sync: if it is on the disk, it is true.

A ring that the mark does not name is not settled. If it has a previous key, it came from a rotation that did not
finish. The ring before that was settled and had the previous key as its current one, so the previous key is on the
disk in either case: it continues to sign, and the next rotation finishes this one (decision 0031).
"""

import base64
import stat
import threading
from collections.abc import Mapping
from typing import cast

from interlock.kernel.canonical import Json, canonical_bytes, digest_of, parse_object
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import SigningKey
from interlock.store.local import layout
from interlock.store.local.content import write_durably
from interlock.store.local.failures import store_failure
from interlock.store.local.files import FileOps, FileStat
from interlock.store.local.small_files import read_small, settled_mark
from interlock.store.local.upkeep import replacing
from interlock.store.ports.errors import KeyRingDamagedError
from interlock.store.ports.keys import KeyRing, KeyRingStatus

_KEY_BYTES = 32


@frozen
class _StoredRing:
    """A ring as read from its file, and whether the settled mark names it."""

    stat: FileStat
    ring: KeyRing
    is_settled: bool

    @property
    def has_unfinished_rotation(self) -> bool:
        return not self.is_settled and self.ring.previous is not None

    def usable(self) -> KeyRing:
        """Return the ring whose current key may sign: of an unfinished rotation, the older key (decision 0031)."""
        if self.is_settled or self.ring.previous is None:
            return self.ring
        return KeyRing(current=self.ring.previous, previous=self.ring.current)


class KeyRingFile:
    """`keys/keyring.json` and its settled mark, private to the user."""

    def __init__(self, files: FileOps) -> None:
        self._files = files
        self._mutex = threading.Lock()
        self._settled: _StoredRing | None = None

    def keys(self, *, fresh: bool = False) -> KeyRing | None:
        """See `KeyRingReader.keys`. Reads the file again if it changed. Writes and syncs nothing."""
        stored = self._load_locked(fresh=fresh)
        return stored.usable() if stored is not None else None

    def signing(self) -> KeyRing | None:
        """Return the ring if a durable key can sign; None if `make` must run first. Writes nothing.

        Raises:
            KeyRingDamagedError: It cannot be used.
            StoreFailureError: The disk failed.
        """
        stored = self._load_locked()
        if stored is None or not (stored.is_settled or stored.has_unfinished_rotation):
            return None
        return stored.usable()

    def status(self) -> KeyRingStatus | None:
        """See `KeyRingMaintenance.key_ring_status`."""
        stored = self._load_locked()
        if stored is None:
            return None
        try:
            directory = self._files.stat(layout.KEYS)
        except OSError as error:
            raise store_failure(error) from error
        return KeyRingStatus(
            keys=len(stored.ring.keys()),
            changed_s=stored.stat.modified_s,
            mode=stat.S_IMODE(stored.stat.mode),
            directory_mode=stat.S_IMODE(directory.mode) if directory is not None else 0,
            has_unfinished_rotation=stored.has_unfinished_rotation,
        )

    def make(self) -> KeyRing:
        """Create the ring if there is none, settle an unsettled one, and return the ring to sign with.

        Only under the upkeep lock.

        Raises:
            KeyRingDamagedError: It cannot be used.
            StoreFailureError: The disk failed.
        """
        try:
            with self._mutex:
                stored = self._load()
                if stored is None:
                    return self._settle(KeyRing(current=_fresh_key(), previous=None))
                return stored.ring if stored.is_settled else self._settle(stored.ring)
        except OSError as error:
            raise store_failure(error) from error

    def rotate(self) -> KeyRing:
        """See `KeyRingMaintenance.rotate`. Only under the upkeep lock.

        An unfinished rotation is finished instead: a further key would invalidate the tokens of the signing key.
        """
        with self._mutex, replacing(self._files, layout.KEYRING):
            stored = self._load()
            ring = stored.ring if stored is not None else KeyRing(current=_fresh_key(), previous=None)
            if stored is None or not stored.is_settled:
                self._settle(ring)
                if ring.previous is not None:
                    return ring
            return self._settle(KeyRing(current=_fresh_key(), previous=ring.current))

    def _load_locked(self, *, fresh: bool = False) -> _StoredRing | None:
        try:
            with self._mutex:
                if fresh:
                    self._settled = None
                return self._load()
        except OSError as error:
            raise store_failure(error) from error

    def _load(self) -> _StoredRing | None:
        """Return the ring as it is stored now. A settled one is not read again until its file changes."""
        found = self._files.stat(layout.KEYRING)
        if found is None:
            return None
        if self._settled is not None and self._settled.stat == found:
            return self._settled
        data = read_small(self._files, layout.KEYRING)
        stored = _StoredRing(stat=found, ring=_decoded(data), is_settled=self._is_marked(data))
        self._settled = stored if stored.is_settled else None
        return stored

    def _settle(self, ring: KeyRing) -> KeyRing:
        """Make a ring durable, and then record that in the mark.

        Raises:
            OSError: The disk failed: what the mark does not name is not settled.
        """
        data = _encoded(ring)
        self._files.make_dir(layout.KEYS)
        write_durably(self._files, layout.KEYRING, data)
        self._files.sync_dir(layout.KEYS, full=True)
        self._files.sync_dir("", full=True)
        try:
            write_durably(self._files, layout.KEYRING_MARK, settled_mark(data))
            self._files.sync_dir(layout.KEYS, full=True)
        except OSError:
            # The ring is durable, so the mark is true; it is enough that it can be read.
            if not self._is_marked(data):
                raise
        return ring

    def _is_marked(self, data: bytes) -> bool:
        try:
            return read_small(self._files, layout.KEYRING_MARK) == settled_mark(data)
        except OSError:
            # An unreadable mark counts as missing.
            return False


def _fresh_key() -> SigningKey:
    import secrets  # noqa: PLC0415 — only a new data directory and a new key need it

    return SigningKey(secrets.token_bytes(_KEY_BYTES))


def _encoded(ring: KeyRing) -> bytes:
    body: dict[str, Json] = {
        "v": 1,
        "current": base64.b64encode(ring.current).decode("ascii"),
        "previous": base64.b64encode(ring.previous).decode("ascii") if ring.previous else None,
    }
    return canonical_bytes(body | {"check": digest_of(body)}) + b"\n"


def _decoded(data: bytes) -> KeyRing:
    """Return the key ring that a file holds.

    Raises:
        KeyRingDamagedError: The file is not, byte for byte, what was written.
    """
    try:
        fields = cast("Mapping[str, str | None]", parse_object(data) or {})
        current, previous = fields["current"], fields["previous"]
        ring = KeyRing(
            current=SigningKey(base64.b64decode(current or "")),
            previous=None if previous is None else SigningKey(base64.b64decode(previous)),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise KeyRingDamagedError("the key ring is not readable") from error
    lengths = {len(key) for key in (ring.current, ring.previous) if key is not None}
    if _encoded(ring) != data or lengths != {_KEY_BYTES}:
        raise KeyRingDamagedError("the key ring's checksum does not match")
    return ring
