"""What a client carries from a question to its reply, sealed so that only we can have written it (GATE-8).

The keys are derived from the key ring, so a reply may come to another process or after a restart. The seal
itself is the SDK's, AES-256-GCM (decision 0020).
"""

import json
from dataclasses import dataclass
from typing import cast

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from mcp.server.request_state import AESGCMRequestStateCodec, InvalidRequestState

from interlock.kernel.canonical import canonical_bytes
from interlock.kernel.ids import Digest
from interlock.record.tokens import SigningKey
from interlock.store.ports.keys import KeyRingWriter

_PURPOSE = b"interlock/asked/v1"
"""Keeps these keys apart from those that sign tokens, and this format from a later one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What was asked, on whose behalf, and when: the attempt, the question's digest, milliseconds since the epoch."""

    subject: str
    question: Digest
    unix_ms: int


class Seal:
    """Seals and opens with the keys of a data directory. Reads the disk, so it belongs in a worker thread."""

    def __init__(self, key_ring: KeyRingWriter) -> None:
        self._key_ring = key_ring

    def sealed(self, asked: Asked) -> str:
        """Return the text for a client to carry, under the current key.

        Raises:
            KeyRingDamagedError: There is no usable key.
            StoreFailureError: The disk failed.
        """
        fields = {"subject": asked.subject, "question": asked.question, "unixMs": asked.unix_ms}
        return _codec(self._key_ring.ensured().current).seal(canonical_bytes(fields))

    def opened(self, text: str) -> Asked | None:
        """Return what was sealed, or None where neither key sealed this text. A failure reads the ring once more.

        Raises:
            KeyRingDamagedError: There is no usable key.
            StoreFailureError: The disk failed.
        """
        for fresh in (False, True):
            ring = self._key_ring.keys(fresh=fresh)
            for key in ring.keys() if ring is not None else ():
                payload = _unsealed(text, key)
                if payload is not None:
                    return _parsed(payload)
        return None


def _parsed(payload: bytes) -> Asked:
    """Read what we have sealed: it needs no judging."""
    fields = json.loads(payload)
    return Asked(
        subject=cast("str", fields["subject"]),
        question=cast("Digest", fields["question"]),
        unix_ms=cast("int", fields["unixMs"]),
    )


def _unsealed(text: str, key: SigningKey) -> bytes | None:
    try:
        return _codec(key).unseal(text)
    except InvalidRequestState:
        return None


def _codec(key: SigningKey) -> AESGCMRequestStateCodec:
    derived = HKDF(algorithm=SHA256(), length=32, salt=None, info=_PURPOSE).derive(key)
    return AESGCMRequestStateCodec([derived])
