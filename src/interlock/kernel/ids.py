"""Identifiers: opaque, typed, never used for ordering (ID-1, ID-2).

An id is a prefix and 26 lowercase Crockford base32 characters. An id that differs per call is minted from the time and
entropy; an id that must be equal on replay is derived from the ids of what it belongs to.
"""

import hashlib
import json
from functools import lru_cache
from typing import Literal, NewType

from interlock.kernel.budgets import DERIVED_IDS_KEPT_MAX

SessionId = NewType("SessionId", str)
RunId = NewType("RunId", str)
NodeId = NewType("NodeId", str)
EventId = NewType("EventId", str)
AttemptId = NewType("AttemptId", str)
OutputId = NewType("OutputId", str)
ContextId = NewType("ContextId", str)
ChangeId = NewType("ChangeId", str)
GapId = NewType("GapId", str)
TraceId = NewType("TraceId", str)
CapObsId = NewType("CapObsId", str)
DivergenceId = NewType("DivergenceId", str)
IntentId = NewType("IntentId", str)
Digest = NewType("Digest", str)
"""`sha256:<hex>` over bytes; each field defines which."""
SnapshotRef = NewType("SnapshotRef", Digest)
"""Digest of an execution snapshot's canonical bytes."""
WorkflowHash = NewType("WorkflowHash", Digest)
"""Digest of a compiled workflow's canonical bytes: what a run may execute."""
WorkflowId = NewType("WorkflowId", str)
SigningKey = NewType("SigningKey", bytes)
"""32 random bytes that sign tokens."""
SourceKind = Literal["bundled", "user", "project", "remote", "plugin"]
"""The kind of source of a workflow (SRC-4)."""

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_BODY_CHARS = 26
_BODY_BITS = 128
NODE_TAG_CHARS = 8
"""The last characters of a node's id, which distinguish it from the other nodes of its session: 40 bits (TOK-8)."""
LABEL_CHARS = 4
LABEL_CHARS_ON_CLASH = 6
"""A run's label: the last characters of its id, more if another run of the session ends in the same."""

ID_BODY_PATTERN = rf"[0-7][{_ALPHABET}]{{25}}"
"""What follows the prefix: 26 characters carry 128 bits, so the first is at most 7."""

_CHARS = frozenset(_ALPHABET)
_TO_PYTHON = str.maketrans(_ALPHABET, "0123456789abcdefghijklmnopqrstuv")
_PAIRS = [first + second for first in _ALPHABET for second in _ALPHABET]
"""Two characters for each ten bits: an answer encodes some twenty ids."""
_SHIFTS = range(_BODY_CHARS * 5 - 10, -1, -10)

_encode_parts = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


def minted_id(prefix: str, *, unix_ms: int, entropy: bytes) -> str:
    """Return a fresh id from a time in milliseconds and ten random bytes (a ULID, lowercased)."""
    assert len(entropy) == 10, "an id takes ten bytes of entropy"  # noqa: PLR2004 — a ULID's 80 bits
    return f"{prefix}_{_encode((unix_ms & (1 << 48) - 1) << 80 | int.from_bytes(entropy, 'big'))}"


def derived_id(prefix: str, *parts: str | int) -> str:
    """Return the id that these parts always have: the first 128 bits of sha256 over their canonical bytes."""
    # For strings and small integers in a list, json's bytes are the canonical ones.
    data = _encode_parts(parts).encode()
    return f"{prefix}_{_encode(int.from_bytes(hashlib.sha256(data).digest()[:16], 'big'))}"


@lru_cache(DERIVED_IDS_KEPT_MAX)
def ack_attempt(node: NodeId) -> AttemptId:
    """Return the only ordinary attempt to advance a node: new the first time, and a replay after that (ID-2)."""
    return AttemptId(derived_id("att", node, "ack", 0))


def fork_attempt(node: NodeId, number: int) -> AttemptId:
    """Return the attempt that starts the fork with this number (0-based, counted on the node) (ID-2)."""
    return AttemptId(derived_id("att", node, "fork", number))


def checkpoint_attempt(node: NodeId, number: int) -> AttemptId:
    """Return the attempt that makes the checkpoint with this number (0-based, counted on the node) (ID-2)."""
    return AttemptId(derived_id("att", node, "checkpoint", number))


@lru_cache(DERIVED_IDS_KEPT_MAX)
def node_of_attempt(attempt: AttemptId) -> NodeId:
    """Return the node that an attempt creates, whether it advances or is refused (ID-2)."""
    return NodeId(derived_id("node", attempt, "node"))


@lru_cache(DERIVED_IDS_KEPT_MAX)
def id_bytes(identifier: str) -> bytes:
    """Return the 128 bits of an id. Each token of an answer holds those of its session."""
    return _number(identifier[-_BODY_CHARS:]).to_bytes(16, "big")


def id_of_bytes(prefix: str, data: bytes) -> str:
    """Return the id with these 128 bits."""
    return f"{prefix}_{_encode(int.from_bytes(data, 'big'))}"


def tag_of(node: NodeId) -> str:
    """Return a node's tag: the last 40 bits of its id, as the characters of the id."""
    return node[-NODE_TAG_CHARS:]


def tag_bytes(tag: str) -> bytes:
    """Return the 40 bits of a tag: the last characters of an id."""
    return _number(tag).to_bytes(5, "big")


def tag_of_bytes(data: bytes) -> str:
    """Return the tag with these 40 bits."""
    return _encode(int.from_bytes(data, "big"))[-NODE_TAG_CHARS:]


def _number(text: str) -> int:
    # An id may hold only characters of the alphabet; Python's base 32 has others.
    assert set(text) <= _CHARS, "only a checked id is decoded"
    return int(text.translate(_TO_PYTHON), 32)


def _encode(number: int) -> str:
    assert 0 <= number < 1 << _BODY_BITS
    return "".join([_PAIRS[number >> shift & 1023] for shift in _SHIFTS])
