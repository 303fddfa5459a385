"""The paths of everything in the data directory (HOUSE-4). No name contains a `:`."""

import re

from interlock.kernel.ids import ID_BODY_PATTERN, Digest, NodeId, SessionId

SESSIONS = "sessions"
SNAPSHOTS = "snapshots"
WORKFLOWS = "workflows"
PINNED = "workflows/pinned"
ARTIFACTS = "artifacts"
DEFINITIONS = "definitions"
KEYS = "keys"
KEYRING = "keys/keyring.json"
KEYRING_MARK = "keys/settled"
"""Holds the digest of the ring that is known to be durable."""
CONFIG = "config"
LIVE = "live"
"""One file for each server that has written here and may still run."""
CHECKS = "checks"
"""One lock file for each step whose check runs; it is removed when the result is recorded."""
OUTBOX = "outbox"
"""One file for each session with intents that no process has tried to send yet (WORLD-13)."""
ALLOWED_CHECKS = "config/checks.json"
"""The files with checks of projects that a person has allowed, by their directory."""
KEEP = "config/keep.json"
KEEP_MARK = "config/keep.settled"
"""Holds the digest of the pins that are known to be durable: without their file, they are lost."""
UPKEEP_LOCK = "config/.lock"
"""Held during work outside of sessions: on retention pins, on keys, in a collection."""
TRASH = "trash"
TRASHED_SESSIONS = "trash/sessions"
TRASHED_SEGMENTS = "trash/segments"
CONTENT_DIRS = (SNAPSHOTS, PINNED, ARTIFACTS)

_OF_SESSION = frozenset({"events", "manifest.jsonl", ".lock", "settled", "cache"})
"""What Interlock makes in a session's directory."""
_SESSION = re.compile(rf"sess_{ID_BODY_PATTERN}")
_CONTENT = re.compile(r"[0-9a-f]{64}(\.json)?")
_SEGMENT = re.compile(r"\d{8,}-\d{8,}\.jsonl")
_TEMP = re.compile(r".+\.[0-9a-f]{16}\.tmp")


def session_dir(session: SessionId) -> str:
    """Return a session's directory."""
    return f"{SESSIONS}/{session}"


def events_dir(session: SessionId) -> str:
    """Return the directory of a session's segments."""
    return f"{SESSIONS}/{session}/events"


def manifest(session: SessionId) -> str:
    """Return a session's manifest."""
    return f"{SESSIONS}/{session}/manifest.jsonl"


def lock(session: SessionId) -> str:
    """Return a session's lock file."""
    return f"{SESSIONS}/{session}/.lock"


def check_lock(node: NodeId) -> str:
    """Return the lock file of the check that a node waits for."""
    return f"{CHECKS}/{node}.lock"


def untried(session: SessionId) -> str:
    """Return the file with the intents of a session that no process has tried to send yet."""
    return f"{OUTBOX}/{session}.json"


def settled(session: SessionId) -> str:
    """Return the file that records up to which byte a session's manifest is durable."""
    return f"{SESSIONS}/{session}/settled"


def cache_dir(session: SessionId) -> str:
    """Return the directory of data derived from a session: safe to delete."""
    return f"{SESSIONS}/{session}/cache"


def cached_summary(session: SessionId) -> str:
    """Return the file of a session's cached summary."""
    return f"{SESSIONS}/{session}/cache/summary"


def segment(session: SessionId, first: int, last: int) -> str:
    """Return a segment's file."""
    from interlock.record.manifest import segment_rel_path  # noqa: PLC0415 — a list of sessions needs no record model

    return f"{SESSIONS}/{session}/{segment_rel_path(first, last)}"


def snapshot(ref: Digest) -> str:
    """Return the path of a snapshot's file, relative to the data directory."""
    return f"{SNAPSHOTS}/{ref.removeprefix('sha256:')}.json"


def pinned_workflow(workflow_hash: Digest) -> str:
    """Return a pinned workflow's file."""
    return f"{PINNED}/{workflow_hash.removeprefix('sha256:')}.json"


def artifact(digest: Digest) -> str:
    """Return an artifact's file."""
    return f"{ARTIFACTS}/{digest.removeprefix('sha256:')}"


def digest_in(path: str) -> Digest:
    """Return the digest in a content-addressed file's name."""
    return Digest(f"sha256:{path.rpartition('/')[2].removesuffix('.json')}")


def parent(path: str) -> str:
    """Return the directory of a path; the data directory itself is the empty path."""
    return path.rpartition("/")[0]


def temp(path: str, unique: str) -> str:
    """Return a temporary name in a file's directory: readers ignore it, and a sweep deletes it later."""
    return f"{path}.{unique}.tmp"


def trashed(path: str) -> str:
    """Return the path of a content-addressed file in the trash; readers try it before they report a loss (GC-3)."""
    return f"{TRASH}/{path}"


def moved_to_trash(path: str) -> str:
    """Return what is in the trash if a file is: a whole session for one of a session, else the file itself."""
    first, *rest = path.split("/")
    return f"{TRASH}/{first}/{rest[0]}" if first == SESSIONS and rest else trashed(path)


def kind_of(path: str) -> str:
    """Return what a content-addressed file is, in words."""
    return {SNAPSHOTS: "snapshot", PINNED: "pinned workflow", ARTIFACTS: "artifact"}.get(parent(path), "content")


def deleted(name: str) -> str:
    """Return the name in the trash of a session that nothing moves back: a person deleted it, or a sweep deletes it."""
    return f"{name}.deleted"


def is_session(name: str) -> bool:
    """Return whether a name below `sessions` is a session's; any other is not Interlock's."""
    return _SESSION.fullmatch(name) is not None


def is_of_start(path: str) -> bool:
    """Return whether an interrupted start or import can have made a path below a session's directory."""
    first, _, rest = path.partition("/")
    if not rest:
        return first in _OF_SESSION or is_temp(first)
    return first == "cache" or (first == "events" and (is_segment(rest) or is_temp(rest)))


def is_content(name: str) -> bool:
    """Return whether a name is that of a content-addressed file."""
    return _CONTENT.fullmatch(name) is not None


def is_segment(name: str) -> bool:
    """Return whether a name is that of a segment."""
    return _SEGMENT.fullmatch(name) is not None


def is_temp(name: str) -> bool:
    """Return whether a name is a temporary one, as `temp` makes them."""
    return _TEMP.fullmatch(name) is not None
