"""Special files in the place of regular ones: nothing waits for them, each is refused, and others are served."""

import json
import os
import shutil
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.bundles import DOCUMENT, a_session

from interlock.cli.main import main
from interlock.kernel.budgets import CONFIG_BYTES_MAX
from interlock.service.workflows.catalog import Catalog
from interlock.store.local.files import OsFiles
from interlock.store.local.locks import is_held
from interlock.store.regular_file import NotRegularFileError, read_regular
from interlock.store.workflow_files import BINDINGS_FILE, LocalWorkflowFiles
from interlock.testing.harness import Harness, linear_workflow

Printed = pytest.CaptureFixture[str]
PATIENCE_S = 30


def pipe(path: Path) -> None:
    os.mkfifo(path)


def local_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        here = Path.cwd()
        os.chdir(path.parent)  # The name of a socket may have a hundred bytes.
        listening.bind(path.name)
        os.chdir(here)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


SPECIAL: list[Callable[[Path], None]] = [pipe, local_socket, endless, Path.mkdir]
special = pytest.mark.parametrize("put", SPECIAL, ids=["pipe", "socket", "endless device", "directory"])
pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no such files")


@pytest.fixture(autouse=True)
def nothing_waits() -> Iterator[None]:
    """End a test that waits for a pipe or reads without end."""

    def end(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(PATIENCE_S)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.inv("LIM-5")
@special
def test_a_special_file_is_refused_unread(tmp_path: Path, put: Callable[[Path], None]) -> None:
    put(tmp_path / "it")
    (tmp_path / "link").symlink_to("it")
    for name in ("it", "link"):
        with pytest.raises(OSError, match=r"regular|directory"):
            read_regular(tmp_path / name, 10)
        with pytest.raises(OSError, match=r"regular|directory"):
            OsFiles(tmp_path).read(name)


@pytest.mark.inv("LIM-5")
def test_a_regular_file_is_read_up_to_its_limit_and_one_byte(tmp_path: Path) -> None:
    (tmp_path / "it").write_bytes(b"0123456789")
    (tmp_path / "link").symlink_to("it")
    assert [read_regular(tmp_path / "link", limit) for limit in (4, 9, 10, 11)] == [
        b"01234",
        *[b"0123456789"] * 3,
    ]
    with pytest.raises(FileNotFoundError):
        read_regular(tmp_path / "none", 4)


@pytest.mark.inv("LIM-5")
def test_what_is_refused_is_closed(tmp_path: Path) -> None:
    handles: set[int] = set()
    for _ in range(2):
        with pytest.raises(NotRegularFileError):
            read_regular(tmp_path, 4)
        handles.add(next_handle := os.open(os.devnull, os.O_RDONLY))
        os.close(next_handle)
    assert len(handles) == 1


@pytest.mark.inv("LIM-5")
@special
def test_a_special_file_is_no_bundle(tmp_path: Path, capsys: Printed, put: Callable[[Path], None]) -> None:
    put(tmp_path / "it")
    assert main(["session", "import", str(tmp_path / "it"), "--data-dir", str(tmp_path / "data")]) == 1
    printed = capsys.readouterr()
    assert "it cannot be read: " in printed.err
    assert "`-` to read one from a pipe" in printed.err
    assert not list((tmp_path / "data").glob("sessions/*"))


@pytest.mark.inv("LIM-5")
@special
def test_a_special_file_is_no_configuration(tmp_path: Path, capsys: Printed, put: Callable[[Path], None]) -> None:
    put(tmp_path / "config.toml")
    assert main(["config", "check", "--data-dir", str(tmp_path)]) == 1
    assert "The file cannot be read: " in capsys.readouterr().out


@pytest.mark.inv("LIM-5")
@special
def test_a_special_file_among_workflows_hides_no_other(tmp_path: Path, put: Callable[[Path], None]) -> None:
    sources = LocalWorkflowFiles(core_dirs=(), user_dir=tmp_path)
    (tmp_path / "good.json").write_text(json.dumps(linear_workflow("team.good", "a")))
    (tmp_path / "gone.json").write_text("{}")
    (tmp_path / BINDINGS_FILE.parent).mkdir()
    put(tmp_path / BINDINGS_FILE)
    put(tmp_path / "special.json")
    listed = sources.files(tmp_path)
    assert [file.ref for file in listed] == ["gone.json", "good.json"]
    # What was a file when it was listed may be another thing when it is read.
    (tmp_path / "gone.json").unlink()
    put(tmp_path / "gone.json")
    with pytest.raises(OSError, match=r"regular|directory"):
        sources.read(listed[0])
    assert list(Catalog(sources).view(tmp_path).entries) == ["team.good"]


@pytest.mark.inv("LIM-5")
@pytest.mark.damages
@pytest.mark.parametrize("part", ["manifest.jsonl", "events", "cache"])
@special
def test_a_special_file_in_a_session_damages_that_session_alone(
    tmp_path: Path, capsys: Printed, put: Callable[[Path], None], part: str
) -> None:
    harness = Harness.on_disk(tmp_path, DOCUMENT)
    damaged, sound = a_session(harness), a_session(harness)
    directory = tmp_path / "sessions" / damaged
    path = directory / part if part == "manifest.jsonl" else min((directory / part).iterdir())
    path.unlink()
    put(path)
    for command in (["session", "list"], ["session", "show", sound], ["session", "verify", sound]):
        assert main([*command, "--data-dir", str(tmp_path)]) == 0
        assert sound[-6:] in capsys.readouterr().out
    main(["doctor", "--data-dir", str(tmp_path)])
    assert "disk" not in capsys.readouterr().err
    shown = main(["session", "show", damaged, "--data-dir", str(tmp_path)])
    assert shown == (0 if part == "cache" else 1)


@pytest.mark.inv("LIM-5")
@special
def test_a_special_file_as_a_lock_is_held_by_nobody(tmp_path: Path, put: Callable[[Path], None]) -> None:
    session = a_session(Harness.on_disk(tmp_path, DOCUMENT))
    lock = tmp_path / "sessions" / session / ".lock"
    lock.unlink(missing_ok=True)
    put(lock)
    assert is_held(tmp_path, session) is False
    shutil.rmtree(lock) if lock.is_dir() else lock.unlink()


@pytest.mark.inv("LIM-5")
def test_a_configuration_is_read_no_further_than_its_limit(tmp_path: Path, capsys: Printed) -> None:
    with (tmp_path / "config.toml").open("wb") as stream:
        stream.truncate(1 << 40)
    assert main(["config", "check", "--data-dir", str(tmp_path)]) == 1
    assert f"more than {CONFIG_BYTES_MAX} bytes" in capsys.readouterr().out
