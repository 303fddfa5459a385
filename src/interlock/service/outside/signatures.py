"""Signatures of events: Ed25519 over kind, id, run, node and fields, by a source of the user's configuration."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import field

from interlock.engine.outside import SentEvent, SentSignature, SourceKey, signed_bytes
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import RunId
from interlock.record.events import EventReceivedEvent, NodeScope
from interlock.record.world import Signed

KEY_BYTES = 32
"""Bytes of an Ed25519 key, public or private; part of the algorithm."""


def decoded_key(text: str) -> bytes | None:
    """Return the bytes of a key in base64url without padding; None if it is not one."""
    try:
        data = base64.urlsafe_b64decode(text + "=")
    except (binascii.Error, ValueError):
        return None
    return data if len(data) == KEY_BYTES and encoded(data) == text else None


def encoded(data: bytes) -> str:
    """Return bytes in base64url without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def new_source() -> tuple[str, str]:
    """Return a new private key and its public key. Reads entropy."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (  # noqa: PLC0415 — only signatures need it
        Ed25519PrivateKey,
    )

    private = Ed25519PrivateKey.generate()
    return encoded(private.private_bytes_raw()), encoded(private.public_key().public_bytes_raw())


@frozen
class SigningKey:
    """The private key of a source."""

    source: str
    private_key: bytes = field(repr=False)


def sign_event(run: RunId, sent: SentEvent, key: SigningKey) -> SentEvent:
    """Return the event with the signature of a source."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (  # noqa: PLC0415 — see above
        Ed25519PrivateKey,
    )

    signature = Ed25519PrivateKey.from_private_bytes(key.private_key).sign(signed_bytes(run, sent))
    return sent.model_copy(update={"signed": SentSignature(source=key.source, signature=encoded(signature))})


def verified(run: RunId, sent: SentEvent, sources: Mapping[str, SourceKey]) -> Signed | str:
    """Return the signature to record, or why it does not count."""
    assert sent.signed is not None, "the event has a signature"
    source = sources.get(sent.signed.source)
    if source is None:
        return f"The configuration has no source {sent.signed.source!r}."
    if source.kinds and sent.event not in source.kinds:
        return f"The source {source.name!r} may not sign events of the kind `{sent.event}`."
    if not is_signed(run, sent, source.public_key):
        return f"The signature is not one of {source.name!r} over this event: kind, id, run, node and fields."
    return Signed(source=source.name, public_key=source.public_key, signature=sent.signed.signature)


def has_signature(event: EventReceivedEvent) -> bool:
    """Say whether the signature of a recorded event is one over exactly what the log holds of it."""
    assert event.data.signed is not None, "the event has a signature"
    sent = SentEvent.model_validate(
        {
            "event": event.data.event,
            "id": event.data.sent_id,
            "fields": dict(event.data.fields),
            **({"node": event.scope.node_id} if isinstance(event.scope, NodeScope) else {}),
            "signed": {"source": event.data.signed.source, "signature": event.data.signed.signature},
        }
    )
    return is_signed(event.scope.run_id, sent, event.data.signed.public_key)


def is_signed(run: RunId, sent: SentEvent, public_key: str) -> bool:
    """Say whether the signature of an event is one of this key over exactly this event."""
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 — see above
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415 — see above

    assert sent.signed is not None, "the event has a signature"
    key = decoded_key(public_key)
    try:
        signature = base64.urlsafe_b64decode(sent.signed.signature + "==")
    except (binascii.Error, ValueError):
        return False
    # The decoder ignores stray bits; encoding again shows that this is the only spelling.
    if key is None or encoded(signature) != sent.signed.signature:
        return False
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, signed_bytes(run, sent))
    except InvalidSignature:
        return False
    return True
