"""Tokens of format 1: signed references into the log. They hold no state (TOK-1).

The format is `<prefix>.v1.<payload>.<signature>`. The payload is canonical JSON, the signature an HMAC-SHA256 over the
payload bytes; both are in base64url without padding. Only the exact text that `mint` returns verifies.
"""

import base64
import hmac
from collections.abc import Mapping, Sequence
from enum import StrEnum

from interlock.kernel.budgets import TOKEN_CHARS_MAX
from interlock.kernel.canonical import Json, NotCanonicalError, canonical_bytes, parse_object
from interlock.kernel.errors import ErrorCode
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import AttemptId, Digest, NodeId, RunId, SessionId, SigningKey, WorkflowHash


class TokenKind(StrEnum):
    """What a token allows."""

    STATE = "state"
    ACK = "ack"
    CHECKPOINT = "checkpoint"


_PREFIX = {TokenKind.STATE: "st", TokenKind.ACK: "ack", TokenKind.CHECKPOINT: "chk"}
_KIND = {prefix: kind for kind, prefix in _PREFIX.items()}


@frozen
class StateRef:
    """Names a node to read."""

    session: SessionId
    run: RunId
    node: NodeId
    workflow_hash: WorkflowHash


@frozen
class AttemptRef:
    """Names one attempt on a node: an ordinary ack, a fork, or a checkpoint."""

    kind: TokenKind
    session: SessionId
    run: RunId
    node: NodeId
    attempt: AttemptId


TokenRef = StateRef | AttemptRef


@frozen
class TokenFault:
    """Why a text is not a token of this server."""

    code: ErrorCode
    found: str


UNKNOWN_SIGNATURE = TokenFault(
    code=ErrorCode.TOKEN_BAD_SIGNATURE, found="a signature of another data directory, or altered text"
)
"""The fault of a token that no key of this data directory signed."""


def token_kind(ref: TokenRef) -> TokenKind:
    """Return the kind of token that carries a reference."""
    return TokenKind.STATE if isinstance(ref, StateRef) else ref.kind


def mint(ref: TokenRef, key: SigningKey) -> str:
    """Return the token for a reference, signed with a key. Equal inputs give equal tokens."""
    data = canonical_bytes(_payload_of(ref))
    return f"{_PREFIX[token_kind(ref)]}.v1.{encode_base64url(data)}.{encode_base64url(_sign(data, key))}"


@frozen
class LongToken:
    """A received token of format 1: decoded, but not verified.

    `session` is what the token claims. Use it only to choose a queue.
    """

    text: str
    session: SessionId | None
    fault: TokenFault | None
    prefix: str
    fields: Mapping[str, object]
    payload: bytes | None
    signature: bytes | None

    def verify(self, keys: Sequence[SigningKey]) -> TokenRef | TokenFault:
        """Return what the token refers to, or its fault. `keys` are ordered from newest to oldest."""
        if self.fault is not None:
            return self.fault
        payload, signature = self.payload, self.signature
        if payload is None or signature is None or not any(_is_signed(payload, signature, key) for key in keys):
            return UNKNOWN_SIGNATURE
        ref = _build_reference(_KIND[self.prefix], self.fields)
        return ref if _is_payload_of(ref, payload) else UNKNOWN_SIGNATURE


def decode_long(text: str) -> LongToken:
    """Decode a text as a token of format 1. It never raises: the result's `fault` says what is wrong."""
    parts = text.split(".") if len(text) <= TOKEN_CHARS_MAX else []
    payload, signature = map(decode_base64url, parts[2:]) if len(parts) == 4 else (None, None)  # noqa: PLR2004 — see _shape_fault
    fields = _parse_fields(payload)
    claimed = fields.get("sessionId")
    return LongToken(
        text=text,
        session=SessionId(claimed) if isinstance(claimed, str) else None,
        fault=_check_shape(text, parts),
        prefix=parts[0] if parts else "",
        fields=fields,
        payload=payload,
        signature=signature,
    )


def _check_shape(text: str, parts: list[str]) -> TokenFault | None:
    if len(text) > TOKEN_CHARS_MAX:
        return TokenFault(code=ErrorCode.TOKEN_INVALID_FORMAT, found=f"{len(text)} characters")
    if len(parts) != 4 or parts[0] not in _KIND or not all(parts):  # noqa: PLR2004 — prefix, version, payload, signature
        return TokenFault(code=ErrorCode.TOKEN_INVALID_FORMAT, found="not the form of a token")
    if parts[1] != "v1":
        return TokenFault(code=ErrorCode.TOKEN_UNSUPPORTED_VERSION, found=f"format {parts[1][:8]}")
    return None


def _parse_fields(payload: bytes | None) -> Mapping[str, object]:
    return parse_object(payload or b"") or {}


def _payload_of(ref: TokenRef) -> dict[str, Json]:
    common = {"sessionId": ref.session, "runId": ref.run, "nodeId": ref.node}
    last = {"workflowHash": ref.workflow_hash} if isinstance(ref, StateRef) else {"attemptId": ref.attempt}
    return {"tokenVersion": 1, "tokenKind": token_kind(ref).value, **common, **last}


def _build_reference(kind: TokenKind, fields: Mapping[str, object]) -> TokenRef:
    """Build a reference from any fields; `_is_payload_of` rejects it if they are not exactly the fields of its kind."""
    last = "workflowHash" if kind is TokenKind.STATE else "attemptId"
    session, run, node, text = (str(fields.get(name)) for name in ("sessionId", "runId", "nodeId", last))
    if kind is TokenKind.STATE:
        pinned = WorkflowHash(Digest(text))
        return StateRef(session=SessionId(session), run=RunId(run), node=NodeId(node), workflow_hash=pinned)
    attempt = AttemptId(text)
    return AttemptRef(kind=kind, session=SessionId(session), run=RunId(run), node=NodeId(node), attempt=attempt)


def _is_payload_of(ref: TokenRef, payload: bytes) -> bool:
    """Say whether bytes are exactly the payload that `mint` signs for a reference (TOK-9)."""
    try:
        return canonical_bytes(_payload_of(ref)) == payload
    except NotCanonicalError:
        return False


def _sign(data: bytes, key: SigningKey) -> bytes:
    return hmac.digest(key, data, "sha256")


def _is_signed(data: bytes, signature: bytes, key: SigningKey) -> bool:
    return hmac.compare_digest(_sign(data, key), signature)


def encode_base64url(data: bytes) -> str:
    """Return bytes as text in base64url without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def decode_base64url(text: str) -> bytes | None:
    """Inverse of `encode_base64url`. Return None for any text that it cannot return."""
    if "+" in text or "/" in text:
        return None  # The decoder takes the other alphabet too, and from Python 3.15 on it warns.
    try:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        return None
    # The decoder skips foreign characters and ignores unused bits; encoding again detects both.
    return data if encode_base64url(data) == text else None
