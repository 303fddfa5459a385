"""The ports of the key ring, which signs and verifies tokens.

Every use case has the reader. Those that may sign the first token of a data directory also have the writer: start,
advance, checkpoint, import and repair, and the questions that the server encrypts. `interlock keys` and
`interlock doctor` have the port of maintenance.
"""

from typing import Protocol

from interlock.kernel.frozen import frozen
from interlock.kernel.ids import SigningKey


@frozen
class KeyRing:
    """The keys that sign tokens: `current` signs, both verify (KEY-1)."""

    current: SigningKey
    previous: SigningKey | None

    def keys(self) -> tuple[SigningKey, ...]:
        """Return the keys that verify, newest first."""
        return (self.current,) if self.previous is None else (self.current, self.previous)


@frozen
class KeyRingStatus:
    """The state of a key ring, without its keys.

    `changed_s`, when it was made or rotated last, counts from the epoch; the modes are permission bits.
    `has_unfinished_rotation` says that the older key still signs.
    """

    keys: int
    changed_s: float
    mode: int
    directory_mode: int
    has_unfinished_rotation: bool


class KeyRingReader(Protocol):
    """Reads the signing keys. Makes none."""

    def keys(self, *, fresh: bool = False) -> KeyRing | None:
        """Return the key ring as it is stored now, or None if there is none yet. Writes nothing.

        `fresh` reads it even if nothing seems to have changed, as after a signature that did not verify.

        Raises:
            KeyRingDamagedError: It cannot be used.
            StoreFailureError: The disk failed.
        """
        ...


class KeyRingWriter(KeyRingReader, Protocol):
    """Reads the signing keys, and creates the first one."""

    def ensure_keys(self) -> KeyRing:
        """Return the key ring; create it, durably, if there is none.

        Raises:
            KeyRingDamagedError: It cannot be used.
            StoreFailureError: It could not be created.
        """
        ...


class KeyRingMaintenance(Protocol):
    """Describes the key ring without its keys, and rotates it."""

    def key_ring_status(self) -> KeyRingStatus | None:
        """Return the state of the ring, or None if there is none yet. Writes nothing.

        Raises:
            KeyRingDamagedError: It cannot be used.
            StoreFailureError: The disk failed.
        """
        ...

    def rotate(self) -> KeyRing:
        """Create a new current key; the old current key verifies until the next rotation.

        A rotation that failed, and may have been recorded, is finished instead: a repeat invalidates no token.

        Raises:
            KeyRingDamagedError: It cannot be used.
            StoreFailureError: It could not be written; nothing was changed, unless `may_be_recorded`.
        """
        ...
