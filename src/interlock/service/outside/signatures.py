"""Signs events, and checks those that are sent, by the sources of the user's configuration (WORLD-10)."""

from collections.abc import Mapping
from dataclasses import field

from interlock.engine.outside import SentEvent, SentSignature, SourceKey, is_signed, signed_bytes
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import RunId
from interlock.record.tokens import encode_base64url
from interlock.record.world import Signed


def new_source() -> tuple[str, str]:
    """Return a new private key and its public key. Reads entropy."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (  # noqa: PLC0415 — only signatures need it
        Ed25519PrivateKey,
    )

    private = Ed25519PrivateKey.generate()
    return encode_base64url(private.private_bytes_raw()), encode_base64url(private.public_key().public_bytes_raw())


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
    return sent.changed(signed=SentSignature(source=key.source, signature=encode_base64url(signature)))


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
