"""The sealed state that a client carries from a question to its reply. Only this server can write it (GATE-8).

The keys are derived from the key ring, so another process, or a restarted one, can read the reply. The SDK seals
with AES-256-GCM (decision 0020).
"""

import json
from typing import TYPE_CHECKING, cast

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from interlock.engine.gates import Origin
from interlock.kernel.canonical import canonical_bytes
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import Digest, SigningKey
from interlock.store.ports.keys import KeyRingWriter

if TYPE_CHECKING:
    from mcp.server.request_state import AESGCMRequestStateCodec

_PURPOSE = b"interlock/asked/v2"
"""Separates these keys from the keys that sign tokens, and this format from a later one."""


@frozen
class Asked:
    """A question that was asked: the attempt, the question's digest, and what makes it the only one of its kind."""

    subject: str
    question: Digest
    origin: Origin


class QuestionSealer:
    """Encrypts and decrypts questions with the keys of a data directory. Reads the disk: call it in a worker thread."""

    def __init__(self, key_ring: KeyRingWriter) -> None:
        self._key_ring = key_ring

    def seal(self, asked: Asked) -> str:
        """Seal a question with the current key. Returns the text that the client sends back.

        Raises:
            KeyRingDamagedError: There is no usable key.
            StoreFailureError: The disk failed.
        """
        fields = {
            "subject": asked.subject,
            "question": asked.question,
            "unixMs": asked.origin.unix_ms,
            "entropy": asked.origin.entropy.hex(),
        }
        return _codec(self._key_ring.ensure_keys().current).seal(canonical_bytes(fields))

    def unseal(self, text: str) -> Asked | None:
        """Return the sealed question, or None if no key decrypts it. Reads the key ring again before it gives up.

        Raises:
            KeyRingDamagedError: There is no usable key.
            StoreFailureError: The disk failed.
        """
        for fresh in (False, True):
            ring = self._key_ring.keys(fresh=fresh)
            for key in ring.keys() if ring is not None else ():
                payload = _decrypt(text, key)
                if payload is not None:
                    return _parse(payload)
        return None


def _parse(payload: bytes) -> Asked:
    """Parse a payload that this server sealed. It needs no validation."""
    fields = json.loads(payload)
    return Asked(
        subject=cast("str", fields["subject"]),
        question=cast("Digest", fields["question"]),
        origin=Origin(unix_ms=cast("int", fields["unixMs"]), entropy=bytes.fromhex(fields["entropy"])),
    )


def _decrypt(text: str, key: SigningKey) -> bytes | None:
    from mcp.server.request_state import InvalidRequestState  # noqa: PLC0415 — few clients are asked anything

    try:
        return _codec(key).unseal(text)
    except InvalidRequestState:
        return None


def _codec(key: SigningKey) -> "AESGCMRequestStateCodec":
    from mcp.server.request_state import AESGCMRequestStateCodec  # noqa: PLC0415 — see `_decrypt`

    derived = HKDF(algorithm=SHA256(), length=32, salt=None, info=_PURPOSE).derive(key)
    return AESGCMRequestStateCodec([derived])
