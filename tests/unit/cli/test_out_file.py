"""Files that commands write: whole or not at all, and a failure names its cause."""

import errno
import os
import tempfile
from pathlib import Path

import pytest
from tests.support.history import Place

from interlock.cli.main import main
from interlock.cli.render.out_file import write_out
from interlock.cli.screen import StopError
from interlock.testing.harness import linear_workflow

SHIP = linear_workflow("team.ship", "a", "b")


def fill(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no file be written with all of its bytes from now on."""

    def fail(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fail)


@pytest.mark.parametrize("command", ["report", "export"])
def test_a_full_disk_leaves_the_old_file_or_none_and_is_named(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    session = str(place.serving(SHIP).start("team.ship", goal="Alpha")["run"]["sessionId"])
    out = tmp_path / "out" / "file"
    out.parent.mkdir()
    fill(monkeypatch)
    for options in ((), ("--force",)):
        refused = place.run(command, session, "--out", str(out), *options)
        assert (refused.code, "No space left" in refused.err, "Free disk space" in refused.err) == (1, True, True)
        assert [one.name for one in out.parent.iterdir()] == (["file"] if options else [])
        out.write_text("old")
    assert out.read_text() == "old"


def test_a_full_disk_leaves_no_part_of_a_key(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(monkeypatch)
    out = tmp_path / "out" / "key"
    out.parent.mkdir()
    assert main(["keys", "source", "new", "ci", "--out", str(out)]) == 1
    assert "No space left" in capsys.readouterr().err
    assert list(out.parent.iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_a_link_and_a_pipe_stay_what_they_are(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    write_out(link, b"new", is_forced=True)
    assert (link.is_symlink(), target.read_text()) == (True, "new")
    with pytest.raises(StopError, match="exists already"):
        write_out(link, b"newer", is_forced=False)
    write_out(Path(os.devnull), b"new", is_forced=True)
    assert not Path(os.devnull).is_file()
    with pytest.raises(StopError, match="directory"):
        write_out(tmp_path, b"new", is_forced=True)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no file modes")
def test_a_file_is_private_unless_it_is_for_others(tmp_path: Path) -> None:
    write_out(tmp_path / "mine", b"", is_forced=False)
    write_out(tmp_path / "ours", b"", is_forced=False, mode=0o644)
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("mine", "ours")] == [0o600, 0o644]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no file modes")
def test_an_overwritten_file_gets_no_further_permissions_and_a_new_one_not_those_that_are_withheld(
    tmp_path: Path,
) -> None:
    private, open_to_all, new = (tmp_path / name for name in ("private", "open", "new"))
    for path, mode in ((private, 0o600), (open_to_all, 0o666)):
        path.touch()
        path.chmod(mode)
        write_out(path, b"report", is_forced=True, mode=0o644)
    before = os.umask(0o077)
    try:
        write_out(new, b"report", is_forced=False, mode=0o644)
    finally:
        os.umask(before)
    assert [path.stat().st_mode & 0o777 for path in (private, open_to_all, new)] == [0o600, 0o644, 0o600]
    write_out(open_to_all, b"key", is_forced=True)
    assert open_to_all.stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(os.name == "nt", reason="Windows has no /dev")
def test_an_open_file_of_the_process_is_written_to_without_force(tmp_path: Path) -> None:
    read, write = os.pipe()
    write_out(Path(f"/dev/fd/{write}"), b"report", is_forced=False)
    assert os.read(read, 100) == b"report"
    os.close(read)
    os.close(write)
    with (tmp_path / "report").open("wb") as stream:
        write_out(Path(f"/dev/fd/{stream.fileno()}"), b"report", is_forced=False)
    assert [(one.name, one.read_bytes()) for one in tmp_path.iterdir()] == [("report", b"report")]


MEMORY = Path("/dev/shm")  # noqa: S108 — a test makes a directory of its own there


@pytest.mark.skipif(not MEMORY.is_dir(), reason="there is no directory of files below /dev")
def test_a_file_below_dev_is_a_file_as_any_other() -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY) as directory:
        path = Path(directory) / "report"
        write_out(path, b"report", is_forced=False)
        assert path.stat().st_mode & 0o777 == 0o600
        with pytest.raises(StopError, match="exists already"):
            write_out(path, b"another", is_forced=False)
        assert path.read_bytes() == b"report"


def test_a_name_may_be_as_long_as_names_can_be_and_a_longer_one_is_not_a_matter_of_permissions(tmp_path: Path) -> None:
    write_out(tmp_path / ("n" * 255), b"report", is_forced=False)
    with pytest.raises(StopError) as refused:
        write_out(tmp_path / ("n" * 256), b"report", is_forced=False)
    assert refused.value.fix == "Choose another --out."
