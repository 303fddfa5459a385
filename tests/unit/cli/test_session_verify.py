"""`interlock session verify` of a bundle file, and what verifying does not do: no write, no socket, no process."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.bundles import changed
from tests.support.flow import IS_FAST, declared, document, step
from tests.support.modes import with_artifacts
from tests.support.server import tree
from tests.support.tampering import Tampering

from interlock.cli.main import main
from interlock.testing.harness import Harness

Printed = pytest.CaptureFixture[str]
Alteration = Callable[[Tampering], object]

WORKFLOW = document(
    step("a", set=[{"key": "seen", "from": "mode"}]),
    step("quick", when=IS_FAST),
    step("end"),
    inputs=[declared("mode"), declared("seen")],
)


class Place:
    """A data directory with one session, and its bundle beside it."""

    def __init__(self, root: Path) -> None:
        self.root, self.data, self.bundle = root, root / "data", root / "bundle.json"
        harness = Harness.on_disk(self.data, WORKFLOW)
        at = harness.start("test.flow", context={"mode": "fast"})
        self.session = harness.session_of(at)
        at = harness.advance(at, output=with_artifacts({"kind": "mine"}))
        harness.advance(harness.advance(at, None), "Was quick.")

    def export(self, *options: str) -> None:
        data = ("--data-dir", str(self.data))
        assert main(["session", "export", self.session, "--out", str(self.bundle), *options, *data]) == 0

    def damage(self) -> None:
        last = max((self.data / "sessions" / self.session / "events").iterdir())
        last.write_bytes(last.read_bytes() + b"x")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def ran(capsys: Printed, *arguments: str) -> tuple[int, str, str]:
    """Return the exit code of `interlock session verify`, and what it printed."""
    capsys.readouterr()
    code = main(["session", "verify", *arguments])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


# A bundle is verified like the session.


@pytest.mark.inv("VERIFY-5")
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_sound_bundle_gives_the_output_of_its_session(place: Place, capsys: Printed, form: tuple[str, ...]) -> None:
    place.export()
    of_session = ran(capsys, "--data-dir", str(place.data), *form)
    assert of_session[0] == 0
    assert place.session in of_session[1]
    assert ran(capsys, "--file", str(place.bundle), *form) == of_session


def _set_capture(part: str, member: str, to: object) -> Alteration:
    def change(capture: dict[str, Any]) -> None:
        capture[part][0][member] = to

    return lambda log: log.alter_capture(change)


def _complete(snapshot: dict[str, Any]) -> None:
    """Let the last step be done, which is possible in this plan."""
    state = snapshot["enginePayload"]["engineState"]
    done = sorted([*state["completed"]["values"], "end"])
    state |= {"kind": "complete", "completed": {"kind": "set", "values": done}, "pending": {"kind": "none"}}
    del state["loopStack"]


ALTERATIONS: dict[str, Alteration] = {
    "decision_mismatch": _set_capture("decisions", "verdict", to=False),
    "effect_mismatch": _set_capture("effects", "value", to="slow"),
    "provenance_mismatch": lambda log: log.alter_capture(lambda one: one.update(catalogue="sha256:" + "0" * 64)),
    "missing_capture": lambda log: log.drop("decision_trace_appended"),
    "snapshot_mismatch": lambda log: log.alter_snapshot(_complete, number=-1),
    "hash_mismatch": lambda log: log.alter(
        "node_output_appended", lambda one: one["data"]["payload"].update(notesMarkdown="Did b.")
    ),
}


@pytest.mark.damages
@pytest.mark.inv("VERIFY-5")
@pytest.mark.parametrize("form", [(), ("--json",)])
@pytest.mark.parametrize("code", ALTERATIONS)
def test_an_altered_record_is_found_in_the_bundle_as_in_the_session(
    place: Place, capsys: Printed, code: str, form: tuple[str, ...]
) -> None:
    """Every digest around the alteration is correct, in the log and in the bundle."""
    ALTERATIONS[code](Tampering(place.data))
    place.export()
    of_session = ran(capsys, "--data-dir", str(place.data), *form)
    assert of_session[0] == 1
    assert code in of_session[1]
    assert ran(capsys, "--file", str(place.bundle), *form) == of_session


@pytest.mark.inv("VERIFY-5")
def test_no_data_directory_is_used_or_created(place: Place, capsys: Printed, monkeypatch: pytest.MonkeyPatch) -> None:
    place.export()
    monkeypatch.setenv("INTERLOCK_DATA_DIR", str(place.root / "none"))
    assert ran(capsys, "--file", str(place.bundle))[0] == 0
    # A data directory that cannot be opened does not matter either.
    monkeypatch.setenv("INTERLOCK_DATA_DIR", str(place.bundle))
    assert ran(capsys, "--file", str(place.bundle))[0] == 0
    assert {path.name for path in place.root.iterdir()} == {"data", "bundle.json"}


def test_a_bundle_is_read_from_standard_input(place: Place, capsys: Printed, monkeypatch: pytest.MonkeyPatch) -> None:
    place.export()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(place.bundle.read_bytes())))
    assert ran(capsys, "--file", "-") == (0, f"{place.session}: sound\n1 session, 0 mismatches\n", "")


@pytest.mark.damages
@pytest.mark.inv("VERIFY-5", "BND-9")
def test_a_bundle_of_a_damaged_session_says_that_it_is_incomplete(place: Place, capsys: Printed) -> None:
    place.damage()
    place.export("--salvage")
    code, out, _ = ran(capsys, "--file", str(place.bundle))
    assert code == 0
    assert out.startswith("SALVAGED_PREFIX: the bundle contains only the intact beginning of a damaged session;")
    assert f"{place.session}: sound" in out
    answer = json.loads(ran(capsys, "--file", str(place.bundle), "--json")[1])
    assert (answer["salvage"]["code"], answer["mismatches"]) == ("SALVAGED_PREFIX", [])


BROKEN: dict[str, Callable[[bytes], bytes]] = {
    "BUNDLE_INVALID_FORMAT": lambda data: data[:-1],
    "BUNDLE_INTEGRITY_FAILED": lambda data: data.replace(b"Was quick.", b"Was quiet."),
    "BUNDLE_UNSUPPORTED_VERSION": lambda data: changed(lambda one: one.update(bundleSchemaVersion=2), data),
    "BUNDLE_EVENT_ORDER_INVALID": lambda data: changed(lambda one: one["session"]["events"].reverse(), data),
    "BUNDLE_MANIFEST_ORDER_INVALID": lambda data: changed(lambda one: one["session"]["manifest"].reverse(), data),
    "BUNDLE_MISSING_SNAPSHOT": lambda data: changed(lambda one: one["session"]["snapshots"].popitem(), data),
    "BUNDLE_MISSING_PINNED_WORKFLOW": lambda data: changed(lambda one: one["session"]["pinnedWorkflows"].clear(), data),
}


@pytest.mark.inv("VERIFY-5")
@pytest.mark.parametrize("code", BROKEN)
def test_a_file_that_an_import_refuses_has_the_same_code_here(place: Place, capsys: Printed, code: str) -> None:
    place.export()
    place.bundle.write_bytes(BROKEN[code](place.bundle.read_bytes()))
    exit_code, out, err = ran(capsys, "--file", str(place.bundle))
    assert (exit_code, out) == (1, "")
    assert f"{code}: The bundle is refused: " in err
    exit_code, out, _ = ran(capsys, "--file", str(place.bundle), "--json")
    assert (exit_code, json.loads(out)["error"]["code"]) == (1, code)


def test_a_file_that_is_not_there_ends_with_1_and_a_session_beside_a_file_with_2(capsys: Printed) -> None:
    code, out, err = ran(capsys, "--file", "nope.json")
    assert (code, out) == (1, "")
    assert "nope.json cannot be read: No such file" in err
    with pytest.raises(SystemExit) as ended:
        main(["session", "verify", "sess_x", "--file", "x.json"])
    assert ended.value.code == 2
    assert "not allowed with argument" in capsys.readouterr().err


# Verifying is silent.

WATCHED = """
import os, sys

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
BARRED = (
    "socket.", "urllib.", "http.", "subprocess.", "pty.", "os.exec", "os.fork", "os.posix_spawn", "os.spawn",
    "os.startfile", "os.system", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink",
    "os.truncate", "os.chmod", "os.chown", "os.chflags", "os.utime", "os.setxattr", "os.removexattr", "os.lockf",
    "shutil.", "tempfile.", "_winapi.CreateProcess",
)


def watch(event, arguments):
    # A stream over a descriptor that is open already has a number instead of a path.
    writes = event == "open" and not isinstance(arguments[0], int) and arguments[2] & WRITING
    # A damaged session is examined under its lock. A reader creates no lock file, and locks one that exists.
    locks = writes and str(arguments[0]).endswith(".lock") and os.path.exists(arguments[0])
    if (writes and not locks) or event.startswith(BARRED):
        os.write(2, f"barred: {event} {arguments}".encode())
        os._exit(99)

sys.addaudithook(watch)
"""
"""Ends the process with 99 at the first socket, the first process, and the first file that is opened to write."""
COMMAND = "from interlock.cli.main import main\nsys.exit(main(sys.argv[1:]))"


def run_watched(root: Path, code: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run Python code under the watch, with every place where a program might write below `root`."""
    below = dict.fromkeys(("HOME", "TMPDIR", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"), str(root))
    return subprocess.run(
        [sys.executable, "-B", "-c", WATCHED + code, *arguments],
        cwd=root,
        env={**os.environ, **below},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    "code",
    [
        "import socket; socket.socket()",
        "import socket; socket.getaddrinfo('localhost', 1)",
        "import subprocess; subprocess.run([sys.executable, '-V'])",
        "os.system('true')",
        "open('new', 'w')",
        "os.open('new', os.O_CREAT)",
        "os.mkdir('new')",
        "os.utime('.')",
        "from interlock.cli.main import main; main(['session', 'import', 'bundle.json', '--data-dir', 'new'])",
    ],
)
def test_the_watch_notices_each_kind_of_effect(place: Place, code: str) -> None:
    place.export()
    assert run_watched(place.root, code).returncode == 99
    assert not (place.root / "new").exists()


@pytest.mark.damages
@pytest.mark.inv("VERIFY-4")
@pytest.mark.parametrize("state", ["sound", "altered", "damaged"])
def test_verifying_writes_nothing_opens_no_socket_and_starts_no_process(place: Place, state: str) -> None:
    if state == "altered":
        ALTERATIONS["decision_mismatch"](Tampering(place.data))
    place.export()
    if state == "damaged":
        place.damage()
        place.bundle.write_bytes(place.bundle.read_bytes()[:-1])
    before = tree(place.root)
    for chosen in (["--data-dir", "data"], ["--file", "bundle.json"]):
        done = run_watched(place.root, COMMAND, "session", "verify", *chosen)
        assert done.returncode == (0 if state == "sound" else 1), done.stderr
        assert (place.session in done.stdout) or "BUNDLE_INVALID_FORMAT" in done.stderr
    assert tree(place.root) == before
