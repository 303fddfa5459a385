"""The seam of the laboratory does to an operation exactly what its fault says."""

import errno
from dataclasses import replace
from pathlib import Path

import pytest
from tests.lab.faulty_files import SHORT_BYTES, Fault, FaultyFiles, Gate, Operation, kind_of
from tests.lab.processes import while_hanging
from tests.support.power_cut import CrashDisk

from interlock.store.local.files import FileOps, OsFiles

pytestmark = pytest.mark.damages
SESSION = "sessions/sess_01jgfjjz000000000000000001"
MANIFEST = f"{SESSION}/manifest.jsonl"
APPEND = Operation(name="append", kind="manifest", number=1)
LINE = b"x" * (2 * SHORT_BYTES)


@pytest.fixture(params=["a real disk", "a crash disk"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> FileOps:
    files: FileOps = OsFiles(tmp_path) if request.param == "a real disk" else CrashDisk()
    for path in ("sessions", SESSION):
        files.make_dir(path)
    files.write(MANIFEST, b"")
    return files


def appended(disk: FileOps, fault: Fault, times: int = 4) -> tuple[list[bool], bytes]:
    """Append a line several times; return which of them failed, and what the file holds in the end."""
    files, failed = FaultyFiles(disk, fault).seam(), list[bool]()
    for number in range(times):
        try:
            files.append(MANIFEST, str(number).encode() * len(LINE))
        except OSError:
            failed.append(True)
        else:
            failed.append(False)
    return failed, disk.read(MANIFEST)


def lines(*numbers: int) -> bytes:
    return b"".join(str(number).encode() * len(LINE) for number in numbers)


def test_a_fault_before_the_effect_leaves_none_of_it_and_one_after_it_all(disk: FileOps) -> None:
    assert appended(disk, Fault(at=APPEND)) == ([False, True, False, False], lines(0, 2, 3))
    disk.truncate(MANIFEST, 0)
    after = Fault(at=APPEND, phase="after", error=errno.ENOSPC)
    assert appended(disk, after) == ([False, True, False, False], lines(0, 1, 2, 3))


def test_a_short_write_leaves_its_first_bytes(disk: FileOps) -> None:
    _, data = appended(disk, Fault(at=APPEND, is_short=True), times=2)
    assert data == lines(0) + b"1" * SHORT_BYTES


def test_a_lasting_fault_goes_on_and_reads_pass_one_that_takes_all(disk: FileOps) -> None:
    failed, _ = appended(disk, Fault(at=APPEND, is_lasting=True))
    assert failed == [False, True, True, True]
    files = FaultyFiles(
        disk, Fault(at=Operation(name="stat", kind="manifest", number=0), is_lasting=True, takes_all=True)
    )
    with pytest.raises(OSError, match="made to fail"):
        files.seam().stat(MANIFEST)
    with pytest.raises(OSError, match="made to fail"):
        files.seam().sync(MANIFEST)
    assert files.seam().read(MANIFEST)


@pytest.mark.parametrize("phase", ["before", "after"])
@pytest.mark.parametrize("error", [None, errno.EIO])
def test_a_hanging_operation_lets_others_work_before_or_after_its_effect(
    disk: FileOps, phase: str, error: int | None
) -> None:
    fault = Fault(at=replace(APPEND, number=0), phase="before" if phase == "before" else "after", error=error)
    fault.gate = Gate()
    seen = list[bytes]()
    failed, data = while_hanging(
        lambda: appended(disk, fault, times=1), fault, lambda: seen.append(disk.read(MANIFEST))
    )
    assert failed == [error is not None]
    assert seen == [b"" if phase == "before" else lines(0)]
    assert data == (b"" if phase == "before" and error is not None else lines(0))


def test_after_a_sync_that_failed_the_next_one_succeeds_without_writing() -> None:
    disk = CrashDisk()
    disk.write("file", b"lost")
    disk.sync_dir("")
    files = FaultyFiles(disk, Fault(at=Operation(name="sync", kind="other", number=0))).seam()
    with pytest.raises(OSError, match="made to fail"):
        files.sync("file")
    files.sync("file")
    assert disk.read("file") == b"lost"
    assert {left.read("file") for left in disk.survivors()} == {b""}
    disk.append("file", b" kept")
    files.sync("file")
    assert {left.read("file") for left in disk.survivors()} == {b"\0\0\0\0 kept"}
    disk.truncate("file", 0)
    disk.append("file", b"again")
    files.sync("file")
    assert {left.read("file") for left in disk.survivors()} == {b"again"}


def test_after_a_directory_sync_that_failed_a_name_lasts_only_if_it_is_given_again() -> None:
    disk = CrashDisk()
    fault = Fault(at=Operation(name="sync_dir", kind="data directory", number=0), drops_names=True)
    files = FaultyFiles(disk, fault).seam()
    disk.write("temp", b"new")
    disk.sync("temp")
    disk.rename("temp", "file")
    with pytest.raises(OSError, match="made to fail"):
        files.sync_dir("")
    files.sync_dir("")
    assert [left.names("") for left in disk.survivors()] == [[]]
    disk.rename("file", "temp")
    disk.rename("temp", "file")
    files.sync_dir("")
    assert [left.names("") for left in disk.survivors()] == [["file"]]


def test_every_path_of_a_data_directory_has_a_kind() -> None:
    golden = Path(__file__).parent.parent / "golden" / "data-dir-1"
    kinds = {kind_of(path.relative_to(golden).as_posix()) for path in golden.rglob("*")}
    assert "other" not in kinds
    assert kind_of(f"{MANIFEST}.0123456789abcdef.tmp") == "temporary manifest"
