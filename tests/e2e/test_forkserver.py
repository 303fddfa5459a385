"""A `python` that forks does what an interpreter does, as far as a program and those around it can see."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.forkserver import forking_python

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there is no fork server on other systems")

PATIENCE_S = 60
SURROUNDINGS = """
import json, os, signal, sys
mask = os.umask(0)
streams = [one and [one.encoding, one.errors, one.line_buffering, one.isatty()] for one in (sys.stdout, sys.stderr)]
found = {"argv": sys.argv, "name": __name__, "cwd": os.getcwd(), "mask": mask, "streams": streams,
    "env": {one: os.environ[one] for one in os.environ if one != "LC_CTYPE"},
    "first": sys.path[0], "stdin": sys.stdin and sys.stdin.read(),
    "files": [number for number in range(20) if os.path.exists(f"/proc/self/fd/{number}")],
    "signals": [str(signal.getsignal(one)) for one in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGPIPE)]}
open(sys.argv[1], "w").write(json.dumps(found))
"""
"""What a program finds, except `LC_CTYPE`, which an interpreter sets that finds no locale."""
ENDS = {
    "nothing": "pass",
    "a number": "import sys; sys.exit(7)",
    "a large number": "import sys; sys.exit(256 + 3)",
    "a text": "import sys; sys.exit('why')",
    "an exception": "raise ValueError",
    "an interruption": "raise KeyboardInterrupt",
    "a signal": "import os; os.kill(os.getpid(), 15)",
    "killed": "import os; os.kill(os.getpid(), 9)",
    "at exit": "import atexit; atexit.register(print, 'bye')",
    "a thread": "import threading, time; threading.Timer(0.01, print, ['late']).start()",
    "no place for output": "import sys; sys.stdout = open('/dev/full', 'w'); print('x')",
}


def seen(python: str, tmp_path: Path, redirections: str, *, is_script: bool, **environment: str) -> dict[str, object]:
    """Return what a program sees, started by a shell in a directory with these redirections."""
    (tmp_path / "program.py").write_text(SURROUNDINGS)
    report = tmp_path / "report.json"
    program = [str(tmp_path / "program.py")] if is_script else ["-c", SURROUNDINGS]
    subprocess.run(
        ["sh", "-c", f'umask 27; exec "$0" "$@" {redirections}', python, *program, str(report), "ä b"],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"]} | environment,
        input=b"typed",
        capture_output=True,
        check=True,
        timeout=PATIENCE_S,
    )
    return json.loads(report.read_text())


@pytest.mark.parametrize(
    ("environment", "redirections", "is_script"),
    [
        ({}, "", False),
        ({}, "<&-", True),
        ({}, ">&- 2>&-", False),
        ({}, "5</dev/null", True),
        ({"PYTHONUTF8": "1", "A": "ä"}, "", True),
        ({"PYTHONUNBUFFERED": "1"}, "", False),
        ({"PYTHONIOENCODING": "ascii"}, "", True),
        ({"PYTHONPATH": "/nowhere"}, "", False),
    ],
)
def test_a_program_sees_the_same_surroundings(
    tmp_path: Path, environment: dict[str, str], redirections: str, *, is_script: bool
) -> None:
    forked, plain = (
        seen(python, tmp_path, redirections, is_script=is_script, **environment)
        for python in (forking_python(), sys.executable)
    )
    assert forked == plain


def test_an_isolated_program_imports_nothing_from_its_directory(tmp_path: Path) -> None:
    forked, plain = (
        subprocess.run(
            [python, "-P", "-c", "import sys; print(sys.path, sys.argv)", "a"],
            cwd=tmp_path,
            capture_output=True,
            check=True,
            timeout=PATIENCE_S,
        ).stdout
        for python in (forking_python(), sys.executable)
    )
    assert forked == plain


@pytest.mark.parametrize("end", ENDS)
def test_a_program_ends_with_the_same_code_and_output(end: str) -> None:
    forked, plain = (
        subprocess.run([python, "-c", ENDS[end]], capture_output=True, check=False, timeout=PATIENCE_S)
        for python in (forking_python(), sys.executable)
    )
    assert (forked.returncode, forked.stdout) == (plain.returncode, plain.stdout)
    assert (b"Error" in forked.stderr) == (b"Error" in plain.stderr)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_signal_reaches_the_program(number: signal.Signals) -> None:
    """A launcher that is killed takes its process with it, so its pipe ends."""
    # What runs in the background of a shell, or by `nohup`, is started with signals ignored.
    heeding = "import signal, sys; [signal.signal(number, signal.SIG_DFL) for number in (1, 2, 15)]; "
    program = heeding + "print('up', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [forking_python(), "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        process.send_signal(number)
        assert process.stdout.read() == b""
        assert process.wait(PATIENCE_S) == -number


def test_a_program_starts_its_children_by_the_same_python_with_a_module_that_customises_it(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.customised = True")
    child = "import sys; print(sys.customised, 'interlock.server.app' in sys.modules)"
    program = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}], check=True)"
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [forking_python(), "-c", program],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        check=True,
        timeout=PATIENCE_S,
    )
    assert done.stdout == b"True True\n"
