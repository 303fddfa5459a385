"""What the environment can do to a call: each has its code and its advice, nothing is recorded, repair is enough."""

import errno
import json
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from interlock.kernel.errors import CODES, Correction, ErrorCode, InterlockError, Owner
from interlock.kernel.ids import RunId, SessionId, derived_id
from interlock.record.errors import UnknownVersionError
from interlock.server.calls import refusal_text
from interlock.service.failures import EXPECTED_ERRORS, refusal_of
from interlock.service.unanswered import UnansweredError
from interlock.store.local import layout
from interlock.store.local.failures import store_failure
from interlock.store.local.files import FileStat, OpenedFile, OsFiles, UnreadableError
from interlock.store.local.store import LocalStore
from interlock.store.ports.errors import (
    ContentDamagedError,
    DefinitionDamagedError,
    FailureKind,
    Health,
    KeyRingDamagedError,
    SessionBusyError,
    SessionUnhealthyError,
    StoreFailureError,
)
from interlock.testing.harness import Harness, ToolResult, linear_workflow

SESSION, RUN = SessionId(derived_id("sess", "x")), RunId(derived_id("run", "x"))
DIGEST: Any = "sha256:" + "0" * 64
DOCUMENT = linear_workflow("test.abc", "a", "b", "c")

MAY_BE_RECORDED = [
    (StoreFailureError(FailureKind.READ_ONLY, "EROFS", may_be_recorded=True), ErrorCode.STORE_READ_ONLY),
    (StoreFailureError(FailureKind.FULL, "ENOSPC", may_be_recorded=True), ErrorCode.STORE_FULL),
    (StoreFailureError(FailureKind.FAILED, "EIO", may_be_recorded=True), ErrorCode.STORE_FAILED),
]
EXCEPTIONS: list[tuple[InterlockError, ErrorCode]] = [
    (StoreFailureError(FailureKind.UNREADABLE, "EACCES"), ErrorCode.STORE_FAILED),
    (StoreFailureError(FailureKind.READ_ONLY, "EROFS"), ErrorCode.STORE_READ_ONLY),
    (StoreFailureError(FailureKind.FULL, "ENOSPC"), ErrorCode.STORE_FULL),
    (StoreFailureError(FailureKind.NO_DIRECTORY, "a file"), ErrorCode.STORE_FAILED),
    (StoreFailureError(FailureKind.FAILED, "EIO"), ErrorCode.STORE_FAILED),
    *((failure, code) for failure, code in MAY_BE_RECORDED),
    *((UnansweredError(failure, session=SESSION, run=RUN), code) for failure, code in MAY_BE_RECORDED),
    (SessionBusyError(session=SESSION, waited_ms=2000), ErrorCode.TOKEN_SESSION_LOCKED),
    *(
        (SessionUnhealthyError(session=SESSION, health=health, where="w", found="f"), ErrorCode.SESSION_NOT_HEALTHY)
        for health in Health
        if health is not Health.HEALTHY
    ),
    (ContentDamagedError(what="snapshot", digest=DIGEST, found="missing"), ErrorCode.SESSION_NOT_HEALTHY),
    (DefinitionDamagedError(name="definitions/x", found="missing"), ErrorCode.STORE_FAILED),
    (UnknownVersionError("event", "version 2"), ErrorCode.SESSION_NOT_HEALTHY),
    (KeyRingDamagedError("x"), ErrorCode.KEYRING_DAMAGED),
]


@pytest.mark.inv("ANS-7", "ANS-8")
@pytest.mark.parametrize(("error", "code"), EXCEPTIONS, ids=[type(error).__name__ for error, _ in EXCEPTIONS])
def test_each_expected_failure_has_a_code_with_its_retry_and_an_advice(error: InterlockError, code: ErrorCode) -> None:
    refusal = refusal_of(error)
    assert refusal.code is code
    envelope = refusal.envelope()
    retry = envelope["retry"]
    assert isinstance(retry, dict)
    assert retry["kind"] == (refusal.retry or CODES[code].retry).value
    assert CODES[code].owner is not Owner.COMMAND
    assert refusal.message
    assert refusal.suggestion
    text = refusal_text(refusal)
    for words in (code.value, refusal.message, refusal.suggestion):
        assert words in text


@pytest.mark.inv("ANS-8")
def test_every_expected_exception_is_reported() -> None:
    assert {type(error) for error, _ in EXCEPTIONS} == set(EXPECTED_ERRORS)


@pytest.mark.inv("FAIL-1")
@pytest.mark.parametrize("kind", FailureKind)
def test_a_failed_disk_says_whether_the_call_may_be_recorded_and_that_a_repeat_is_safe(kind: FailureKind) -> None:
    before = refusal_of(StoreFailureError(kind, "EIO"))
    after = refusal_of(StoreFailureError(kind, "EIO", may_be_recorded=True))
    assert "nothing was recorded this time" in before.message
    assert "may be recorded" in after.message
    assert "nothing" not in refusal_text(after)
    assert [one.details["mayBeRecorded"] for one in (before, after)] == [False, True]
    for one in (before, after):
        assert "Send the same call again" in one.suggestion
        assert "nothing was recorded" not in CODES[one.code].meaning


@pytest.mark.inv("FAIL-2")
def test_a_start_that_may_be_recorded_names_its_run_and_the_call_that_finds_it() -> None:
    for failure, _ in MAY_BE_RECORDED:
        refusal = refusal_of(UnansweredError(failure, session=SESSION, run=RUN))
        assert refusal.correction == Correction(tool="resume_session", instead={"sessionId": SESSION, "runId": RUN})
        assert (refusal.details["sessionId"], refusal.details["runId"]) == (SESSION, RUN)
        assert "`resume_session`" in refusal.suggestion


@pytest.mark.inv("FAIL-3")
def test_a_copy_that_may_be_recorded_names_its_session_and_is_not_to_be_repeated_as_it_is() -> None:
    for failure, _ in MAY_BE_RECORDED:
        refusal = refusal_of(UnansweredError(failure, session=SESSION, run=None))
        assert SESSION in refusal.message
        assert f"interlock session show {SESSION}" in refusal.suggestion
        assert refusal.envelope()["retry"] == {"kind": "not_retryable"}


@pytest.mark.inv("LOCK-3")
def test_a_session_that_is_locked_says_when_to_retry() -> None:
    envelope = refusal_of(SessionBusyError(session=SESSION, waited_ms=2000)).envelope()
    assert envelope["retry"] == {"kind": "retryable_after_ms", "afterMs": 1000}
    assert "after 1000 ms" in refusal_text(refusal_of(SessionBusyError(session=SESSION, waited_ms=2000)))


@pytest.mark.inv("FAIL-8")
@pytest.mark.parametrize(
    ("number", "found", "fix"),
    [
        (errno.ENOLCK, "has no locks, as some network mounts", "a local disk"),
        (errno.ENOTSUP, "has no locks, as some network mounts", "a local disk"),
        (errno.EMFILE, "too many open files", "`ulimit -n`"),
        (errno.ENFILE, "too many open files", "`ulimit -n`"),
        (errno.EXDEV, "on another file system", "on one file system"),
        (errno.ENOMEM, "not enough memory", "more memory"),
    ],
)
def test_a_cause_that_is_no_fault_of_the_disk_has_words_of_its_own(number: int, found: str, fix: str) -> None:
    refusal = refusal_of(store_failure(OSError(number, "as requested")))
    assert found in refusal.message
    assert fix in refusal.suggestion
    assert refusal.details["cause"] == errno.errorcode[number]


class FailingFiles(OsFiles):
    """A disk on which every effect of a kind fails while a cause lasts."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.failing: dict[str, int] = {}

    def _meet(self, effect: str) -> None:
        if self.failing.get(effect) == errno.ENOMEM:
            raise MemoryError
        if effect in self.failing:
            raise OSError(self.failing[effect], "as requested")

    def create(self, path: str, data: bytes) -> OpenedFile:
        self._meet("write")
        return super().create(path, data)

    def append(self, path: str, data: bytes) -> OpenedFile:
        self._meet("append")
        return super().append(path, data)

    def sync(self, path: str, *, full: bool = False, opened: OpenedFile | None = None) -> None:
        self._meet("sync")
        super().sync(path, full=full, opened=opened)

    def read(self, path: str, offset: int = 0, bytes_max: int | None = None) -> bytes:
        self._meet("read")
        return super().read(path, offset, bytes_max)

    def read_with_stat(self, path: str, offset: int) -> tuple[bytes, FileStat]:
        self._meet("read_with_stat")
        return super().read_with_stat(path, offset)


def failing(root: Path) -> tuple[Harness, FailingFiles]:
    files = FailingFiles(root)
    return Harness.over(LocalStore(root, files=files), DOCUMENT), files


CAUSES = [
    (errno.ENOSPC, ErrorCode.STORE_FULL),
    (errno.EDQUOT, ErrorCode.STORE_FULL),
    (errno.EROFS, ErrorCode.STORE_READ_ONLY),
    (errno.EACCES, ErrorCode.STORE_READ_ONLY),
    (errno.EPERM, ErrorCode.STORE_READ_ONLY),
    (errno.EIO, ErrorCode.STORE_FAILED),
    (errno.EMFILE, ErrorCode.STORE_FAILED),
    (errno.ENOLCK, ErrorCode.STORE_FAILED),
]


@pytest.mark.produces("error:STORE_FULL", "error:STORE_READ_ONLY", "error:STORE_FAILED")
@pytest.mark.inv("APP-7", "ANS-10")
@pytest.mark.parametrize("effect", ["write", "append"])
@pytest.mark.parametrize(("cause", "code"), CAUSES)
def test_a_disk_that_fails_is_reported_by_its_cause_and_the_same_call_works_afterwards(
    tmp_path: Path, cause: int, code: ErrorCode, effect: str
) -> None:
    harness, files = failing(tmp_path / "data")
    first = harness.start("test.abc")
    files.failing[effect] = cause
    for refused in (harness.advance(first), harness.advance(first, None), harness.start("test.abc")):
        assert refused.code is code
        assert str(tmp_path) not in refused.text + json.dumps(dict(refused.structure))
    files.failing.clear()
    assert harness.rehydrate(first)["pending"]["stepId"] == "a"
    assert harness.advance(first)["pending"]["stepId"] == "b"
    assert Harness.on_disk(tmp_path / "data").advance(first)["pending"]["stepId"] == "b"


@pytest.mark.inv("APP-7", "READ-1")
def test_a_read_that_fails_is_reported_too_and_is_no_damage(tmp_path: Path) -> None:
    harness, files = failing(tmp_path / "data")
    first = harness.start("test.abc")
    files.failing["read"] = errno.EIO
    assert harness.rehydrate(first).code is ErrorCode.STORE_FAILED
    files.failing.clear()
    assert harness.rehydrate(first)["pending"]["stepId"] == "a"


@pytest.mark.inv("FAIL-8")
def test_a_log_that_does_not_fit_into_the_memory_is_answered_and_is_no_damage(tmp_path: Path) -> None:
    harness, files = failing(tmp_path / "data")
    first = harness.start("test.abc")
    other, files = failing(tmp_path / "data")
    files.failing["read_with_stat"] = errno.ENOMEM
    refused = other.rehydrate(first)
    assert refused.code is ErrorCode.STORE_FAILED
    assert "not enough memory" in refused["message"]
    files.failing.clear()
    assert other.rehydrate(first)["pending"]["stepId"] == "a"


@pytest.mark.inv("APP-7")
@pytest.mark.parametrize("name", ["keys/keyring.json", "sessions", "sessions/{}/manifest.jsonl"])
def test_what_cannot_be_read_is_not_said_to_refuse_a_write(tmp_path: Path, name: str) -> None:
    """A link to itself stands for what permissions refuse: not even root reads through it."""
    data_dir = tmp_path / "data"
    first = Harness.on_disk(data_dir, DOCUMENT).start("test.abc")
    path = data_dir / name.format(first["run"]["sessionId"])
    aside = path.rename(tmp_path / "aside")
    path.symlink_to(path.name)
    refused = Harness.on_disk(data_dir, DOCUMENT).rehydrate(first)
    assert refused.code is ErrorCode.STORE_FAILED
    assert "cannot be read" in refused["message"]
    assert f"`{path.relative_to(data_dir)}" in refused["message"]
    assert str(tmp_path) not in refused.text
    assert "write" not in refused["message"]
    assert refused["details"]["cause"] == "ELOOP"
    path.unlink()
    aside.rename(path)
    assert Harness.on_disk(data_dir, DOCUMENT).rehydrate(first)["pending"]["stepId"] == "a"


def test_no_permission_to_read_and_none_to_write_are_two_failures() -> None:
    assert store_failure(UnreadableError(errno.EACCES, "x", "p")).kind is FailureKind.UNREADABLE
    assert store_failure(PermissionError(errno.EACCES, "x", "p")).kind is FailureKind.READ_ONLY


@pytest.mark.inv("APP-7", "ANS-10")
@pytest.mark.parametrize("below", [".", "below"])
def test_a_data_directory_that_is_a_file_is_reported_as_that(tmp_path: Path, below: str) -> None:
    file = tmp_path / "data"
    file.write_text("")
    harness = Harness.over(LocalStore(file / below), DOCUMENT)
    refused = harness.start("test.abc")
    assert refused.code is ErrorCode.STORE_FAILED
    assert "The data directory is not a directory" in refused["message"]
    assert "--data-dir" in refused["suggestion"]
    assert str(tmp_path) not in refused.text
    file.unlink()
    assert harness.start("test.abc")["pending"]["stepId"] == "a"


def test_an_unknown_cause_is_a_failure_without_a_path() -> None:
    assert store_failure(OSError(errno.EIO, "x", "/secret/path")).kind is FailureKind.FAILED
    assert "/secret" not in str(store_failure(OSError(errno.EIO, "x", "/secret/path")))


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-10])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def replaced_by(data: bytes) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        path.write_bytes(data)

    return damage


def flipped(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


def spelled_otherwise(path: Path) -> None:
    path.write_bytes(json.dumps(json.loads(path.read_bytes()), indent=1).encode())


def short_key(path: Path) -> None:
    """A ring whose check holds over a key that is too short to be one."""
    from interlock.kernel.canonical import canonical_bytes, digest_of  # noqa: PLC0415 — this one damage

    body: dict[str, Any] = {"v": 1, "current": "AAAA", "previous": None}
    path.write_bytes(canonical_bytes(body | {"check": digest_of(body)}) + b"\n")


DAMAGES: dict[str, Callable[[Path], None]] = {
    "cut short": truncate,
    "empty": empty,
    "one bit flipped": flipped,
    "spelled otherwise": spelled_otherwise,
    "not JSON": replaced_by(b"keys\n"),
    "a list": replaced_by(b"[]\n"),
    "numbers for keys": replaced_by(b'{"v":1,"current":1,"previous":2,"check":"x"}\n'),
    "not UTF-8": replaced_by(b"\xff\xfe"),
    "NULs": replaced_by(bytes(200)),
    "deeply nested": replaced_by(b"[" * 100_000),
    "a key of three bytes": short_key,
}


@pytest.mark.produces("error:KEYRING_DAMAGED")
@pytest.mark.inv("KEY-1", "KEY-3")
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("is_running", [True, False], ids=["under a running server", "before a fresh server"])
def test_a_damaged_key_ring_is_reported_and_left_alone(tmp_path: Path, damage: str, *, is_running: bool) -> None:
    harness = Harness.on_disk(tmp_path, DOCUMENT)
    first = harness.start("test.abc")
    path = tmp_path / "keys" / "keyring.json"
    DAMAGES[damage](path)
    damaged = path.read_bytes()
    if not is_running:
        harness = Harness.on_disk(tmp_path, DOCUMENT)
    for refused in (harness.start("test.abc"), harness.rehydrate(first), harness.advance(first)):
        assert refused.code is ErrorCode.KEYRING_DAMAGED
        assert "keys/keyring.json" in refused["suggestion"]
        assert str(tmp_path) not in refused.text
    assert not harness.call("list_workflows").is_error
    assert path.read_bytes() == damaged


@pytest.mark.inv("KEY-3")
def test_a_key_ring_that_is_put_back_works_at_once(tmp_path: Path) -> None:
    harness = Harness.on_disk(tmp_path, DOCUMENT)
    first = harness.start("test.abc")
    path = tmp_path / "keys" / "keyring.json"
    good = path.read_bytes()
    path.write_bytes(b"")
    assert harness.advance(first).code is ErrorCode.KEYRING_DAMAGED
    path.write_bytes(good)
    assert harness.advance(first)["pending"]["stepId"] == "b"


@pytest.mark.inv("KEY-3", "READ-1")
@pytest.mark.parametrize("is_running", [True, False], ids=["under a running server", "before a fresh server"])
def test_reading_makes_no_key_ring_in_place_of_a_lost_one(tmp_path: Path, *, is_running: bool) -> None:
    harness = Harness.on_disk(tmp_path, DOCUMENT)
    first = harness.start("test.abc", goal="Found again")
    path = tmp_path / "keys" / "keyring.json"
    path.unlink()
    if not is_running:
        harness = Harness.on_disk(tmp_path, DOCUMENT)
    assert harness.resume("Found again").code is ErrorCode.KEYRING_DAMAGED
    assert harness.rehydrate(first).code is ErrorCode.TOKEN_BAD_SIGNATURE
    assert not path.exists()


def stored(root: Path) -> list[Path]:
    return sorted(
        path for path in root.rglob("*") if path.is_file() and path.name != ".lock" and path.parent.name != "keys"
    )


@pytest.mark.inv("READ-2", "CRASH-7", "ANS-10")
@pytest.mark.damages
def test_a_flipped_byte_makes_its_own_session_unhealthy_and_no_other(tmp_path: Path) -> None:
    harness = Harness.on_disk(tmp_path, DOCUMENT)
    hurt, well = harness.start("test.abc", goal="Hurt"), harness.start("test.abc", goal="Well")
    events = tmp_path / "sessions" / harness.session_of(hurt) / "events"
    (segment,) = events.iterdir()
    flipped(segment)
    fresh = Harness.on_disk(tmp_path, DOCUMENT)
    before = {path: path.read_bytes() for path in stored(tmp_path)}
    calls: list[Callable[[], ToolResult]] = [
        lambda: fresh.rehydrate(hurt),
        lambda: fresh.advance(hurt),
        lambda: fresh.start("test.abc", sessionId=harness.session_of(hurt)),
    ]
    for call in calls:
        refused = call()
        assert refused.code is ErrorCode.SESSION_NOT_HEALTHY
        assert refused["details"]["sessionId"] == harness.session_of(hurt)
        assert refused["details"]["health"] in ("corrupt_head", "corrupt_tail")
        assert str(tmp_path) not in refused.text + json.dumps(dict(refused.structure))
    assert {path: path.read_bytes() for path in stored(tmp_path)} == before
    assert fresh.advance(well)["pending"]["stepId"] == "b"
    assert not fresh.start("test.abc").is_error


@pytest.mark.inv("READ-2", "SNAP-1")
@pytest.mark.parametrize("directory", ["snapshots", "workflows/pinned"])
@pytest.mark.parametrize("damage", ["one bit flipped", "gone"])
def test_damaged_content_is_noticed_before_it_is_used(tmp_path: Path, directory: str, damage: str) -> None:
    harness = Harness.on_disk(tmp_path, DOCUMENT)
    first = harness.start("test.abc")
    (path,) = (tmp_path / directory).iterdir()
    if damage == "gone":
        path.unlink()
    else:
        flipped(path)
    fresh = Harness.on_disk(tmp_path, DOCUMENT)
    for refused in (fresh.rehydrate(first), fresh.advance(first)):
        assert refused.code is ErrorCode.SESSION_NOT_HEALTHY
        assert str(tmp_path) not in refused.text
    # A new start puts the same content again, and with it the old session is whole.
    fresh.start("test.abc")
    assert Harness.on_disk(tmp_path, DOCUMENT).advance(first)["pending"]["stepId"] == "b"


@pytest.mark.inv("ANS-2", "READ-2")
@pytest.mark.damages
def test_an_unhealthy_session_met_through_a_token_names_the_run_of_the_token(tmp_path: Path) -> None:
    """The token verifies, so the run is known, if only by its label (ANS-2)."""
    harness = Harness.on_disk(tmp_path, DOCUMENT)
    first = harness.start("test.abc")
    (segment,) = (tmp_path / "sessions" / harness.session_of(first) / "events").iterdir()
    flipped(segment)
    refused = Harness.on_disk(tmp_path, DOCUMENT).advance(first)
    assert first["run"]["label"] in refused["message"]


@pytest.mark.inv("READ-2", "EVT-2")
@pytest.mark.damages
def test_a_session_of_a_newer_interlock_is_not_called_damaged(tmp_path: Path) -> None:
    harness = Harness.on_disk(tmp_path, DOCUMENT)
    first = harness.start("test.abc")
    manifest = tmp_path / "sessions" / harness.session_of(first) / "manifest.jsonl"
    manifest.write_bytes(manifest.read_bytes().replace(b'"v":1', b'"v":2'))
    refused = Harness.on_disk(tmp_path, DOCUMENT).rehydrate(first)
    assert (refused.code, refused["details"]["health"]) == (ErrorCode.SESSION_NOT_HEALTHY, "unknown_version")
    assert "newer Interlock" in refused.text


@pytest.mark.inv("APP-7")
@pytest.mark.parametrize("place", ["a file", "below a file"])
def test_a_data_directory_that_cannot_be_is_reported(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_bytes(b"mine")
    root = tmp_path / "file" if place == "a file" else tmp_path / "file" / "data"
    harness = Harness.on_disk(root, DOCUMENT)
    refused = harness.start("test.abc")
    assert refused.code in (ErrorCode.STORE_READ_ONLY, ErrorCode.STORE_FAILED)
    assert str(tmp_path) not in refused.text + json.dumps(dict(refused.structure))
    assert (tmp_path / "file").read_bytes() == b"mine"
    assert not harness.call("list_workflows").is_error


@pytest.mark.inv("KEY-2", "APP-7")
def test_a_missing_data_directory_is_made_with_its_parents(tmp_path: Path) -> None:
    root = tmp_path / "a" / "b" / "data"
    first = Harness.on_disk(root, DOCUMENT).start("test.abc")
    assert Harness.on_disk(root, DOCUMENT).advance(first)["pending"]["stepId"] == "b"


class RemovingTrace:
    """Moves a session's manifest away when the session is locked and its append begins."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def span(self, name: str) -> AbstractContextManager[None]:
        if name == "append":
            for manifest in self._root.glob("sessions/*/manifest.jsonl"):
                manifest.rename(self._root / f"{manifest.parent.name}.away")
        return nullcontext()


@pytest.mark.inv("FAIL-5")
def test_a_manifest_that_vanishes_under_the_lock_is_a_failed_disk_and_no_fault_of_ours(tmp_path: Path) -> None:
    harness = Harness.on_disk(tmp_path, DOCUMENT)
    first = harness.start("test.abc")
    read = replace(harness.ports.read, trace=RemovingTrace(tmp_path))
    robbed = replace(harness, ports=replace(harness.ports, read=read))
    calls: list[Callable[[], ToolResult]] = [
        lambda: robbed.advance(first),
        lambda: robbed.checkpoint(first),
        lambda: robbed.start("test.abc", sessionId=harness.session_of(first)),
        lambda: robbed.start("test.abc"),
    ]
    for call in calls:
        refused = call()
        assert refused.code is ErrorCode.STORE_FAILED
        assert refused["details"]["mayBeRecorded"] is False
        away = tmp_path / f"{harness.session_of(first)}.away"
        if away.exists():
            assert harness.advance(first).code is ErrorCode.SESSION_NOT_HEALTHY
            away.rename(tmp_path / layout.manifest(harness.session_of(first)))
    assert harness.advance(first)["pending"]["stepId"] == "b"


@pytest.mark.damages
@pytest.mark.inv("READ-2")
def test_damage_that_sessions_share_is_never_called_damage_of_one(tmp_path: Path) -> None:
    harness = Harness.on_disk(tmp_path, DOCUMENT)
    firsts = [harness.start("test.abc", goal=goal) for goal in ("One", "Two")]
    pinned = next((tmp_path / layout.PINNED).iterdir())
    pinned.write_bytes(b"x" + pinned.read_bytes()[1:])
    fresh = Harness.on_disk(tmp_path, DOCUMENT)
    for first in firsts:
        refused = fresh.rehydrate(first)
        assert refused.code is ErrorCode.SESSION_NOT_HEALTHY
        assert "Other sessions may refer to the same content" in refused["suggestion"]
        assert "`interlock doctor --deep` names the file and these sessions" in refused["suggestion"]
    # A damaged log concerns its own session, and nothing is said of the others that was not looked at.
    of_log = refusal_of(SessionUnhealthyError(session=SESSION, health=Health.CORRUPT_TAIL, where="w", found="f"))
    assert "Other" not in of_log.message
