"""A second reader of the data directory, which shares no code with Interlock.

It is written from the format's description (docs/architecture.md, the schemas in tool-schemas/records) and imports
nothing of the package, so a fault that the store's writer and reader have in common is visible to it. It takes the
files as a mapping from path to bytes, so it reads a real directory and a disk in memory in the same way.
"""

import base64
import hashlib
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias, cast

import rfc8785
from jsonschema import Draft202012Validator
from jsonschema.protocols import Validator

Files: TypeAlias = Mapping[str, bytes]
Event: TypeAlias = dict[str, Any]

SCHEMAS = Path(__file__).parent.parent.parent / "tool-schemas" / "records"
ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
SESSION_NAME = re.compile(rf"sess_[0-7][{ALPHABET}]{{25}}")
SEGMENT_NAME = re.compile(r"(\d{8,})-(\d{8,})\.jsonl")
TOKEN = re.compile(r"(?:st|ack|chk)_(?:[0-9a-z]{4}|[0-9a-z]{6})([A-Za-z0-9_-]{52})")
MARK = re.compile(rb"(2 ([0-9a-f]{16}) ([0-9]{20})) ([0-9a-f]{32})\n")
NULS_MIN = 2
KEY_BYTES = 32


class DamageError(Exception):
    """Bytes that no writer leaves behind: where, and what was found there."""

    def __init__(self, where: str, found: str) -> None:
        super().__init__(f"{where}: {found}")
        self.where, self.found = where, found


@dataclass(frozen=True, kw_only=True)
class SettledMark:
    """Up to where a writer knew a manifest to be durable; None if the mark's bytes are not those of a mark."""

    manifest_bytes: int | None
    is_of_this_boot: bool


@dataclass(frozen=True, kw_only=True)
class Group:
    """One append: the segment it attests, the events in it, and the manifest bytes that attest it."""

    events: tuple[Event, ...]
    data: bytes
    pins: tuple[str, ...]


@dataclass(kw_only=True)
class ReadSession:
    """What one session holds. `unsettled` are whole groups at the end that no reader may answer from yet."""

    session: str
    groups: list[Group] = field(default_factory=list[Group])
    unsettled: list[Group] = field(default_factory=list[Group])
    torn_bytes: int = 0
    damage: DamageError | None = None

    @property
    def events(self) -> tuple[Event, ...]:
        """All events that count, oldest first."""
        return tuple(event for group in self.groups for event in group.events)

    def of_kind(self, kind: str) -> Iterator[Event]:
        """Yield the events of one kind, oldest first."""
        return (event for event in self.events if event["kind"] == kind)

    @property
    def advances(self) -> list[str]:
        """The dedupe keys of the recorded advances, oldest first."""
        return [event["dedupeKey"] for event in self.of_kind("advance_recorded")]

    @property
    def runs(self) -> list[str]:
        """The runs, oldest first."""
        return [event["scope"]["runId"] for event in self.of_kind("run_started")]

    @property
    def nodes(self) -> list[str]:
        """The nodes, oldest first."""
        return [event["scope"]["nodeId"] for event in self.of_kind("node_created")]


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What a data directory holds: its sessions by id, the keys that verify tokens, and the keep marks."""

    sessions: dict[str, ReadSession]
    keys: tuple[bytes, ...]
    kept: tuple[str, ...]
    damage: tuple[DamageError, ...]

    @property
    def advances(self) -> list[str]:
        """The dedupe keys of all recorded advances."""
        return [key for session in self.sessions.values() for key in session.advances]

    @property
    def runs(self) -> list[str]:
        """The runs of all sessions."""
        return [run for session in self.sessions.values() for run in session.runs]

    @property
    def flaws(self) -> list[str]:
        """Every damage that was found, in words."""
        of_sessions = (one.damage for one in self.sessions.values() if one.damage is not None)
        return [str(damage) for damage in (*self.damage, *of_sessions)]

    def names(self, token: str) -> bool:
        """Say whether the node that a token of the short format refers to is recorded, in an unsettled group too.

        A token is made after its node was settled, so a group that has the node counts for whoever has the token.
        """
        session, tag = node_tag(token)
        found = self.sessions.get(session)
        groups = [*found.groups, *found.unsettled] if found is not None else []
        events = (event for group in groups for event in group.events if event["kind"] == "node_created")
        return any(event["scope"]["nodeId"].endswith(tag) for event in events)


def files_of(root: Path) -> dict[str, bytes]:
    """Return the files of a real data directory, while others may write to it."""
    return _files_below(root, [root])


def session_files(root: Path, sessions: Iterable[str]) -> Files:
    """Return the files of some sessions, while others may write to them; content is read when it is asked for."""
    return _WithContent(root, _files_below(root, [root / "sessions" / session for session in sessions]))


def _files_below(root: Path, places: Sequence[Path]) -> dict[str, bytes]:
    """Read marks before manifests are listed, and manifests before the rest: what a file refers to exists before it.

    What is made after its kind was read is left out.
    """
    files: dict[str, bytes] = {}
    first = ("settled", "manifest.jsonl")
    for name in (*first, "*"):
        for path in (path for place in places for path in place.rglob(name)):
            if path.is_file() and (name in first or path.name not in first):
                with suppress(FileNotFoundError):
                    files[path.relative_to(root).as_posix()] = path.read_bytes()
    return files


class _WithContent(Mapping[str, bytes]):
    """Files that were read, and any other file of the directory at the time it is asked for."""

    def __init__(self, root: Path, files: Mapping[str, bytes]) -> None:
        self._root = root
        self._files = files

    def __getitem__(self, path: str) -> bytes:
        if path in self._files:
            return self._files[path]
        if path.startswith("sessions/"):
            raise KeyError(path)
        try:
            return (self._root / path).read_bytes()
        except FileNotFoundError as error:
            raise KeyError(path) from error

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)


def read_data_dir(files: Files, *, boot: str | None = None) -> Reading:
    """Read everything that a data directory holds. `boot` is the machine's boot id; None if it is another boot."""
    damage: list[DamageError] = []

    def read_or_note(parse: Callable[[Files], tuple[Any, ...]]) -> tuple[Any, ...]:
        try:
            return parse(files)
        except DamageError as error:
            damage.append(error)
            return ()

    names = sorted({path.split("/")[1] for path in files if path.startswith("sessions/")})
    sessions = {name: read_session(files, name, boot=boot) for name in names if SESSION_NAME.fullmatch(name)}
    return Reading(
        sessions={name: one for name, one in sessions.items() if one.groups or one.unsettled or one.damage},
        keys=read_or_note(read_keys),
        kept=read_or_note(read_keep_marks),
        damage=tuple(damage),
    )


# -- sessions -------------------------------------------------------------------------------------------------------


def read_session(files: Files, session: str, *, boot: str | None = None) -> ReadSession:
    """Read one session up to the first damage, if there is any."""
    own = frozenset((path, data) for path, data in files.items() if path.startswith(f"sessions/{session}/"))
    history = _read_history(session, own)
    found = replace(history, groups=list(history.groups))
    try:
        if found.damage is None:
            _check_content(files, found)
            _apply_mark(found, settled_mark(files, session, boot))
    except DamageError as error:
        found.damage = error
    return found


@lru_cache(maxsize=1 << 10)
def _read_history(session: str, own: frozenset[tuple[str, bytes]]) -> ReadSession:
    """Read the log of a session, which follows from its own files alone. No caller alters the result."""
    files, found = dict(own), ReadSession(session=session)
    try:
        manifest = files.get(f"sessions/{session}/manifest.jsonl", b"")
        at = _read_groups(files, found, manifest)
        found.torn_bytes = len(manifest) - at
        _check_history(found)
    except DamageError as error:
        found.damage = error
    return found


def _read_groups(files: Files, found: ReadSession, manifest: bytes) -> int:
    """Collect the whole groups and return where they end; what follows must be a torn tail."""
    at = 0
    while at < len(manifest):
        group = _named_group(files, found, manifest, at)
        if group is None or not manifest.startswith(group.data, at):
            due = [group] if group is not None else list(_groups_due(files, found))
            if not any(_is_torn(manifest[at:], one.data) for one in due):
                raise DamageError(f"{found.session} manifest byte {at}", "no group and no beginning of one")
            break
        found.groups.append(group)
        at += len(group.data)
    return at


def _named_group(files: Files, found: ReadSession, manifest: bytes, at: int) -> Group | None:
    """Return the group of the segment that the line at a place names; None if there is no such line."""
    line, newline, _ = manifest[at:].partition(b"\n")
    try:
        record = checked(line, "manifest-segment-closed")
    except DamageError:
        return None
    if not newline:
        return None
    path = f"sessions/{found.session}/{record['segmentRelPath']}"
    if path not in files:
        raise DamageError(path, "missing")
    data = files[path]
    if digest(data) != record["sha256"] or len(data) != record["bytes"]:
        raise DamageError(path, "other bytes than the manifest attests")
    return _group_due(found, path, data)


def _groups_due(files: Files, found: ReadSession) -> Iterator[Group]:
    """Yield the groups that segments at the next index call for."""
    for path, data in files.items():
        if path.startswith(f"sessions/{found.session}/events/{len(found.events):08d}-"):
            try:
                yield _group_due(found, path, data)
            except DamageError:
                continue


def _group_due(found: ReadSession, path: str, data: bytes) -> Group:
    """Return the group that a segment's bytes call for at the end of what was read.

    Raises:
        DamageError: The bytes are not a segment at this place.
    """
    first = len(found.events)
    if not data.endswith(b"\n"):
        raise DamageError(path, "does not end with a newline")
    events = tuple(_event(line, path) for line in data[:-1].split(b"\n"))
    for number, event in enumerate(events):
        if event["eventIndex"] != first + number or event["sessionId"] != found.session:
            raise DamageError(path, f"event {first + number} has another place")
    last = first + len(events) - 1
    named = SEGMENT_NAME.fullmatch(path.rpartition("/")[2])
    if named is None or (int(named[1]), int(named[2])) != (first, last):
        raise DamageError(path, f"named otherwise than events {first} to {last}")
    lines = sum(group.data.count(b"\n") for group in found.groups)
    pinned = {pin for group in found.groups for pin in group.pins}
    records: list[Event] = [
        {
            "v": 1,
            "manifestIndex": lines,
            "sessionId": found.session,
            "kind": "segment_closed",
            "firstEventIndex": first,
            "lastEventIndex": last,
            "segmentRelPath": f"events/{first:08d}-{last:08d}.jsonl",
            "sha256": digest(data),
            "bytes": len(data),
        }
    ]
    pins: list[str] = []
    for event in events:
        if event["kind"] != "node_created" or event["data"]["snapshotRef"] in {*pinned, *pins}:
            continue
        pins.append(event["data"]["snapshotRef"])
        records.append(
            {
                "v": 1,
                "manifestIndex": lines + len(pins),
                "sessionId": found.session,
                "kind": "snapshot_pinned",
                "eventIndex": event["eventIndex"],
                "snapshotRef": pins[-1],
                "createdByEventId": event["eventId"],
            }
        )
    return Group(events=events, data=b"".join(rfc8785.dumps(one) + b"\n" for one in records), pins=tuple(pins))


def _is_torn(tail: bytes, group: bytes) -> bool:
    """Say whether a tail is a proper beginning of a group, or such a beginning with NULs for the lost rest."""
    if len(tail) < len(group) and group.startswith(tail):
        return True
    written = tail.rstrip(b"\0")
    return len(tail) <= len(group) and group.startswith(written) and len(tail) - len(written) >= NULS_MIN


def _event(line: bytes, path: str) -> Event:
    event = checked(line, "event")
    prefix = f"{event['kind']}:{event['sessionId']}"
    data: Event = event["data"]
    scope: Event = event.get("scope", {})
    # The keys that tell a repeated call from a new one, by their recipes.
    recipes: dict[str, str] = {
        "run_started": f":{scope.get('runId')}",
        "node_created": f":{scope.get('runId')}:{scope.get('nodeId')}",
        "advance_recorded": f":{scope.get('nodeId')}:{data.get('attemptId')}",
        "work_recorded": ":".join(("", scope.get("runId", ""), *([scope["nodeId"]] if "nodeId" in scope else []))),
    }
    expected = prefix + recipes.get(event["kind"], str(event["dedupeKey"]).removeprefix(prefix))
    if event["dedupeKey"] != expected:
        raise DamageError(path, f"dedupe key {event['dedupeKey']!r} of a {event['kind']}")
    return event


def _check_history(found: ReadSession) -> None:
    """Check that the events can follow each other and that every event is there once."""
    keys, ids, runs, nodes = set[str](), set[str](), set[str](), dict[str, str]()
    for number, event in enumerate(found.events):
        where = f"{found.session} event {number}"
        if (number == 0) != (event["kind"] == "session_created"):
            raise DamageError(where, "session_created is not the first event and the first alone")
        if event["dedupeKey"] in keys or event["eventId"] in ids:
            raise DamageError(where, f"{event['dedupeKey']} is recorded twice")
        keys.add(event["dedupeKey"])
        ids.add(event["eventId"])
        scope: Event = event.get("scope") or {}
        data: Event = event["data"]
        if event["kind"] == "run_started":
            runs.add(scope["runId"])
        elif "runId" in scope and scope["runId"] not in runs:
            raise DamageError(where, "of a run that did not begin")
        if event["kind"] == "node_created":
            parent = data["parentNodeId"]
            if parent is not None and nodes.get(parent) != scope["runId"]:
                raise DamageError(where, "its parent is no earlier node of its run")
            nodes[scope["nodeId"]] = scope["runId"]
        elif "nodeId" in scope and nodes.get(scope["nodeId"]) != scope["runId"]:
            raise DamageError(where, "of a node that is not there")
    _check_advances(found, set(nodes))
    _check_ends(found)


def _check_ends(found: ReadSession) -> None:
    """Check that no event of a run follows the end of that run."""
    ended = set[str]()
    for event in found.events:
        scope: Event = event.get("scope") or {}
        if scope.get("runId") in ended:
            raise DamageError(f"{found.session} event {event['eventIndex']}", "of a run that has ended")
        if event["kind"] == "work_recorded" and "nodeId" not in scope:
            ended.add(scope["runId"])


def _check_advances(found: ReadSession, nodes: set[str]) -> None:
    """Check that each recorded attempt is one of its node's, and that the node which it makes is there."""
    for event in found.of_kind("advance_recorded"):
        node, attempt = event["scope"]["nodeId"], event["data"]["attemptId"]
        attempts = (derived("att", node, *sort) for sort in (("ack", 0), *(("fork", number) for number in range(256))))
        if attempt not in attempts:
            raise DamageError(f"{found.session} event {event['eventIndex']}", "not an attempt of its node")
        child, outcome = derived("node", attempt, "node"), event["data"]["outcome"]
        if child not in nodes or outcome.get("toNodeId", child) != child:
            raise DamageError(f"{found.session} event {event['eventIndex']}", "the node it makes is not there")


def _check_content(files: Files, found: ReadSession) -> None:
    """Check everything that the events refer to by digest."""
    for event in found.events:
        data = event["data"]
        match event["kind"]:
            case "node_created":
                snapshot = checked(content(files, "snapshots", data["snapshotRef"], ".json"), "execution-snapshot")
                if snapshot["workflowHash"] != data["workflowHash"]:
                    raise DamageError(data["snapshotRef"], "a snapshot of another workflow")
            case "run_started":
                checked(content(files, "workflows/pinned", data["workflowHash"], ".json"), "compiled-workflow")
            case "node_output_appended" if data["payload"]["payloadKind"] == "artifact_ref":
                content(files, "artifacts", data["payload"]["sha256"], "")
            case "decision_trace_appended" if data.get("captureRef") is not None:
                content(files, "artifacts", data["captureRef"], "")
            case "work_recorded" if data.get("answerRef") is not None:
                content(files, "artifacts", data["answerRef"], "")
            case "contract_bound" | "execution_claimed":
                for digest in (data.get("definition", data.get("outputs")), *data.get("definitions", ())):
                    content(files, "artifacts", digest, "")
            case _:
                continue


def content(files: Files, directory: str, named: str, suffix: str) -> bytes:
    """Return a content-addressed file, from where it belongs or from the trash, checked against its name."""
    path = f"{directory}/{named.removeprefix('sha256:')}{suffix}"
    data = files.get(path, files.get(f"trash/{path}"))
    if data is None:
        raise DamageError(path, "missing")
    if digest(data) != named:
        raise DamageError(path, "other bytes than its name says")
    return data


# -- the settled mark -----------------------------------------------------------------------------------------------


def settled_mark(files: Files, session: str, boot: str | None) -> SettledMark | None:
    """Return a session's settled mark; None if there is none, or nothing but what a power loss leaves of one."""
    data = files.get(f"sessions/{session}/settled", b"")
    if not data.strip(b"\0"):
        return None
    found = MARK.fullmatch(data)
    if found is None or hashlib.sha256(session.encode() + b" " + found[1]).hexdigest()[:32].encode() != found[4]:
        return SettledMark(manifest_bytes=None, is_of_this_boot=True)
    this = hashlib.sha256((boot or "").encode()).hexdigest()[:16].encode()
    return SettledMark(manifest_bytes=int(found[3]), is_of_this_boot=found[2] == this)


def _apply_mark(found: ReadSession, mark: SettledMark | None) -> None:
    """Take back the groups at the end that nobody has settled in this boot of the machine."""
    if mark is None:
        return
    ends = list(itertools.accumulate(len(group.data) for group in found.groups))
    if mark.manifest_bytes is not None and mark.manifest_bytes > (ends[-1] if ends else 0):
        raise DamageError(f"{found.session} manifest", f"{mark.manifest_bytes} bytes are settled, and fewer are there")
    if not mark.is_of_this_boot:
        return
    settled = len(ends) - 1 if mark.manifest_bytes is None else sum(end <= mark.manifest_bytes for end in ends)
    found.unsettled = found.groups[max(settled, 0) :]
    del found.groups[max(settled, 0) :]


# -- keys, keep marks, tokens ---------------------------------------------------------------------------------------


def read_keys(files: Files) -> tuple[bytes, ...]:
    """Return the keys of the ring, the current one first; none without a ring."""
    if "keys/keyring.json" not in files:
        return ()
    ring = checked(whole_line(files["keys/keyring.json"], "keys/keyring.json"), None)
    check = ring.pop("check", None)
    if check != digest(rfc8785.dumps(ring)) or set(ring) != {"v", "current", "previous"} or ring["v"] != 1:
        raise DamageError("keys/keyring.json", "its check does not hold")
    keys = tuple(base64.b64decode(key) for key in (ring["current"], ring["previous"]) if key is not None)
    if {len(key) for key in keys} != {KEY_BYTES} or len(set(keys)) != len(keys):
        raise DamageError("keys/keyring.json", "a key of another length, or one key twice")
    return keys


def read_keep_marks(files: Files) -> tuple[str, ...]:
    """Return the sessions that are kept."""
    if "config/keep.json" not in files:
        return ()
    return tuple(checked(whole_line(files["config/keep.json"], "config/keep.json"), "keep-marks")["sessions"])


def whole_line(data: bytes, path: str) -> bytes:
    """Return the one line that a file holds, without its newline."""
    if not data.endswith(b"\n"):
        raise DamageError(path, "does not end with a newline")
    return data[:-1]


@lru_cache(maxsize=1 << 10)
def node_tag(token: str) -> tuple[str, str]:
    """Return the session and the end of the node's id that a short token names. The MAC is not checked."""
    found = TOKEN.fullmatch(token)
    if found is None:
        raise DamageError("token", "not of the short format")
    said = base64.urlsafe_b64decode(found[1])
    return f"sess_{_encoded(said[17:33])}", _encoded(said[33:38])[-8:]


# -- canonical bytes ------------------------------------------------------------------------------------------------


def digest(data: bytes) -> str:
    """Return the digest of bytes as records spell it."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


@lru_cache(maxsize=1 << 12)
def derived(prefix: str, *parts: str | int) -> str:
    """Return the id that follows from its parts: the first 128 bits of the digest of their canonical bytes."""
    return f"{prefix}_{_encoded(hashlib.sha256(rfc8785.dumps(list(parts))).digest()[:16])}"


def _encoded(data: bytes) -> str:
    number = int.from_bytes(data, "big")
    return "".join(ALPHABET[number >> shift & 31] for shift in range(125, -1, -5))


def checked(data: bytes, schema: str | None) -> dict[str, Any]:
    """Return the object that canonical bytes hold, checked against the published schema of its kind of record."""
    return json.loads(_checked(data, schema))


@lru_cache(maxsize=1 << 16)
def _checked(data: bytes, schema: str | None) -> bytes:
    """Return the bytes if they are canonical and valid: a session is read thousands of times over."""
    where = schema or "record"
    try:
        value: object = json.loads(data)
        record = cast("Event", value) if isinstance(value, dict) else None
        is_canonical = record is not None and rfc8785.dumps(record) == data
    except (ValueError, RecursionError) as error:
        raise DamageError(where, "not JSON") from error
    if record is None or not is_canonical:
        raise DamageError(where, "not the canonical bytes of an object")
    if schema is not None:
        fault = next(_validator(schema, str(record.get("kind"))).iter_errors(record), None)
        if fault is not None:
            raise DamageError(where, f"{fault.json_path}: {fault.message}")
    return data


@lru_cache
def _validator(name: str, kind: str) -> Validator:
    """Return the validator of a schema; of a union, that of one kind."""
    schema: dict[str, Any] = json.loads((SCHEMAS / f"{name}.json").read_bytes())
    mapping: dict[str, str] = schema.get("discriminator", {}).get("mapping", {})
    if kind in mapping:
        schema = {"$ref": mapping[kind], "$defs": schema["$defs"]}
    return Draft202012Validator(schema)
