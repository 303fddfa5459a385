"""The key ring file: the current and the previous signing key, with a check over both (locks 1.2, 10).

It comes into being by a link that only one of several first starts can make; the others read what won.
"""

import base64
import json
import secrets
import stat
import threading
from typing import cast

from interlock.kernel.canonical import Json, canonical_bytes, digest_of
from interlock.record.tokens import SigningKey
from interlock.store.local import layout
from interlock.store.local.content import discard, write_durably
from interlock.store.local.files import FileOps, FileStat, store_failure
from interlock.store.ports import KeyRing, KeyRingDamagedError, KeyRingFacts

_KEY_BYTES = 32


class KeyRingFile:
    """`keys/keyring.json`, private to the user."""

    def __init__(self, files: FileOps) -> None:
        self._files = files
        self._mutex = threading.Lock()
        self._read: tuple[FileStat, KeyRing] | None = None

    def keys(self, *, fresh: bool = False) -> KeyRing | None:
        """See `KeyRingPort.keys`. The file is read again whenever it changed."""
        try:
            with self._mutex:
                if fresh:
                    self._read = None
                return self._current()
        except OSError as error:
            raise store_failure(error) from error

    def facts(self) -> KeyRingFacts | None:
        """See `KeyRingMaintenance.key_ring_facts`."""
        ring = self.keys()
        file, directory = self._files.stat(layout.KEYRING), self._files.stat(layout.KEYS)
        if ring is None or file is None or directory is None:
            return None
        return KeyRingFacts(
            keys=len(ring.keys()),
            changed_s=file.modified_s,
            mode=stat.S_IMODE(file.mode),
            directory_mode=stat.S_IMODE(directory.mode),
        )

    def ensured(self) -> KeyRing:
        """See `KeyRingPort.ensured`."""
        try:
            with self._mutex:
                found = self._current()
                if found is None:
                    self._create()
                    found = self._current()
        except OSError as error:
            raise store_failure(error) from error
        if found is None:
            raise KeyRingDamagedError("the key ring vanished while it was made")
        return found

    def rotate(self) -> KeyRing:
        """See `KeyRingPort.rotate`."""
        old = self.ensured()
        ring = KeyRing(current=_fresh_key(), previous=old.current)
        try:
            with self._mutex:
                write_durably(self._files, layout.KEYRING, _encoded(ring))
                self._files.sync_dir(layout.KEYS, full=True)
                self._read = None
        except OSError as error:
            raise store_failure(error) from error
        return ring

    def _current(self) -> KeyRing | None:
        found = self._files.stat(layout.KEYRING)
        if found is None:
            return None
        if self._read is None or self._read[0] != found:
            ring = _decoded(self._files.read(layout.KEYRING))
            # Another process may have linked it and died before it was durable; no token leaves before it is.
            self._files.sync(layout.KEYRING)
            self._files.sync_dir(layout.KEYS)
            self._files.sync_dir("")
            self._read = (found, ring)
        return self._read[1]

    def _create(self) -> None:
        self._files.make_dir(layout.KEYS)
        temp = layout.temp(layout.KEYRING, secrets.token_hex(8))
        self._files.write(temp, _encoded(KeyRing(current=_fresh_key(), previous=None)))
        try:
            self._files.sync(temp)
            self._files.link(temp, layout.KEYRING)
        finally:
            discard(self._files, temp)


def _fresh_key() -> SigningKey:
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
        fields = cast("dict[str, str | None]", json.loads(data))
        current, previous = fields["current"], fields["previous"]
        ring = KeyRing(
            current=SigningKey(base64.b64decode(current or "")),
            previous=None if previous is None else SigningKey(base64.b64decode(previous)),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise KeyRingDamagedError("the key ring is not readable") from error
    lengths = {len(key) for key in (ring.current, ring.previous) if key is not None}
    if _encoded(ring) != data or lengths != {_KEY_BYTES}:
        raise KeyRingDamagedError("the key ring's check does not hold")
    return ring
