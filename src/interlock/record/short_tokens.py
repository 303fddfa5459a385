"""Tokens of format 2: short enough for an agent to copy, and verified without a table of issued tokens (TOK-8).

`<prefix>_<label><52 characters>`: the run's label in clear, then 39 bytes in base64url without padding. The bytes are
the MAC (16) and the payload: version and kind (1), session (16), the last 40 bits of the node's id (5), and the number
of the fork or checkpoint (1). The MAC is the first half of an HMAC-SHA256 over the label and the payload, with the kind
in place of its first two bits. The HMAC key is derived for this format only.

The MAC comes first because small models mix tokens that begin alike: the tokens of one answer name the same node, so
their payloads are nearly equal. The kind in its first bits makes their first characters differ always (TOK-12).
"""

import base64
import hmac
import re
from collections.abc import Sequence
from enum import IntEnum
from functools import lru_cache
from typing import TypeAlias

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.hmac import HMAC
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

from interlock.kernel.budgets import SIGNING_KEYS_KEPT_MAX
from interlock.kernel.errors import ErrorCode
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import SessionId, SigningKey, id_bytes, id_of_bytes, tag_bytes, tag_of_bytes
from interlock.record.tokens import UNKNOWN_SIGNATURE, LongToken, TokenFault, TokenKind, decode_long

_VERSION = 2
_PURPOSE = b"interlock/token/v2"
_BODY_CHARS = 52
_MAC_BYTES = 16
_SESSION_BYTES = 16
_SHAPE = re.compile(r"(st|ack|chk)_([0-9a-z]{4}|[0-9a-z]{6})([A-Za-z0-9_-]{52})")
_PREFIX_PATTERN = re.compile(r"(?:st|ack|chk)_")


class ShortKind(IntEnum):
    """What a token of format 2 allows. A fork is an attempt of its own."""

    STATE = 0
    ACK = 1
    FORK = 2
    CHECKPOINT = 3

    @property
    def kind(self) -> TokenKind:
        """The kind of token: tokens of format 1 and of format 2 have the same kinds."""
        return _KINDS[self]


_KINDS = {
    ShortKind.STATE: TokenKind.STATE,
    ShortKind.ACK: TokenKind.ACK,
    ShortKind.FORK: TokenKind.ACK,
    ShortKind.CHECKPOINT: TokenKind.CHECKPOINT,
}
_PREFIXES = {
    ShortKind.STATE: "st",
    ShortKind.ACK: "ack",
    ShortKind.FORK: "ack",
    ShortKind.CHECKPOINT: "chk",
}


@frozen
class ShortRef:
    """Names a node of a session by its tag, and the number of its fork or checkpoint. The label is the run's."""

    kind: ShortKind
    session: SessionId
    label: str
    tag: str
    number: int = 0


def mint_short(ref: ShortRef, key: SigningKey) -> str:
    """Return the token for a reference, signed with a key. Equal inputs give equal tokens."""
    payload = bytes([_VERSION << 4 | ref.kind]) + id_bytes(ref.session) + tag_bytes(ref.tag) + bytes([ref.number])
    mac = _compute_mac(ref.label, payload, key)
    return f"{_PREFIXES[ref.kind]}_{ref.label}{base64.urlsafe_b64encode(mac + payload).decode('ascii')}"


@frozen
class ShortToken:
    """A received token of format 2: decoded, but not verified. `session` is a claim, as in `LongToken`."""

    text: str
    session: SessionId | None
    fault: TokenFault | None
    prefix: str = ""
    label: str = ""
    payload: bytes = b""
    mac: bytes = b""

    def verify(self, keys: Sequence[SigningKey]) -> ShortRef | TokenFault:
        """Return what the token refers to, or its fault. `keys` are ordered from newest to oldest."""
        if self.fault is not None:
            return self.fault
        if self.session is None or not any(_is_signed(self.label, self.payload, self.mac, key) for key in keys):
            return UNKNOWN_SIGNATURE
        kind = ShortKind(self.payload[0] & 15)
        if _PREFIXES[kind] != self.prefix:
            return TokenFault(code=ErrorCode.TOKEN_BAD_SIGNATURE, found=f"a {kind.kind} token under another prefix")
        tag = tag_of_bytes(self.payload[1 + _SESSION_BYTES : -1])
        return ShortRef(kind=kind, session=self.session, label=self.label, tag=tag, number=self.payload[-1])


SentToken: TypeAlias = LongToken | ShortToken
"""A received token of either format: decoded, but not verified."""


def decode_token(text: str) -> SentToken:
    """Decode a token of either format, without a key. It never raises: the result's `fault` says what is wrong."""
    return decode_short(text) if _PREFIX_PATTERN.match(text) is not None else decode_long(text)


def decode_short(text: str) -> ShortToken:
    """Decode a text as a token of format 2. It never raises: the result's `fault` says what is wrong."""
    found = _SHAPE.fullmatch(text)
    if found is None:
        fault = TokenFault(code=ErrorCode.TOKEN_INVALID_FORMAT, found=_describe_shape_fault(text))
        # A token of format 1 with a damaged prefix can match the prefix of format 2; it still names its session.
        return ShortToken(text=text, session=decode_long(text).session, fault=fault)
    prefix, label, body = found.groups()
    # 52 characters encode exactly 39 bytes, with no spare bits: two different texts never decode to the same bytes.
    data = base64.urlsafe_b64decode(body)
    mac, payload = data[:_MAC_BYTES], data[_MAC_BYTES:]
    version, fault = payload[0] >> 4, None
    if version != _VERSION:
        fault = TokenFault(code=ErrorCode.TOKEN_UNSUPPORTED_VERSION, found=f"format {version}, or altered text")
    return ShortToken(
        text=text,
        session=_read_session(payload),
        fault=fault,
        prefix=prefix,
        label=label,
        payload=payload,
        mac=mac,
    )


def _read_session(data: bytes) -> SessionId:
    return SessionId(id_of_bytes("sess", data[1 : 1 + _SESSION_BYTES]))


def _describe_shape_fault(text: str) -> str:
    """Describe why a text with the prefix of a token is not one: a wrong character, or a wrong length."""
    length = len(text.partition("_")[0]) + 1 + _BODY_CHARS
    if any(not (char.isascii() and (char.isalnum() or char in "_-")) for char in text):
        return "a character that no token contains"
    return f"{len(text)} characters; a whole token has {length + 4} or {length + 6}"


def _compute_mac(label: str, payload: bytes, key: SigningKey) -> bytes:
    keyed = _keyed(key).copy()
    keyed.update(label.encode("ascii") + b"\0" + payload)
    mac, kind = keyed.finalize(), payload[0] & 0b11
    return bytes([kind << 6 | mac[0] & 0b0011_1111]) + mac[1:_MAC_BYTES]


def _is_signed(label: str, payload: bytes, mac: bytes, key: SigningKey) -> bool:
    return hmac.compare_digest(_compute_mac(label, payload, key), mac)


@lru_cache(maxsize=SIGNING_KEYS_KEPT_MAX)
def _keyed(key: SigningKey) -> HMAC:
    """Return the HMAC that has taken the derived key. It is copied for each token: to key one costs twice as much."""
    return HMAC(HKDFExpand(algorithm=hashes.SHA256(), length=32, info=_PURPOSE).derive(key), hashes.SHA256())
