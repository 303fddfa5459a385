"""A `python` whose processes begin with the product already imported, for tests that start many of them.

An interpreter that imports the SDK and the product costs a second of processor time. Here one process imports them and
forks: each child is a process of its own, with its own pipes, environment and directory, which runs the same program
to the same end. Tests of the start itself use `sys.executable`.
"""

import atexit
import functools
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support import forked_launcher

LAUNCHER = Path(forked_launcher.__file__)
SERVER = Path(__file__).with_name("forking.py")
LOCALE = ("LANG", "LC_CTYPE", "PYTHONUTF8")
SHEBANG_BYTES_MAX = 120


@functools.cache
def forking_python() -> str:
    """Return the path of a `python` that forks; a plain one where a machine cannot do that."""
    if sys.platform != "linux" or len(sys.executable) > SHEBANG_BYTES_MAX:
        return sys.executable
    directory = Path(tempfile.mkdtemp(prefix="fork-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    address = directory / "socket"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(address))
        listener.listen(64)
        environment = {name: value for name, value in os.environ.items() if name not in LOCALE} | {"LC_ALL": "C.UTF-8"}
        server = subprocess.Popen(
            [sys.executable, str(SERVER), str(listener.fileno())],
            stdin=subprocess.PIPE,
            env=environment,
            pass_fds=[listener.fileno()],
        )
    atexit.register(_end, server)
    path = [place for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if place]
    known = (str(address), sys.executable, forked_launcher.settings_of(environment), path)
    launcher = LAUNCHER.read_text(encoding="utf-8")
    for name, before in (("python", []), ("interlock", ["-m", "interlock"])):
        text = f"#!{sys.executable} -IS\n{launcher}\n\nmain{(*known, before)!r}\n"
        (directory / name).write_text(text, encoding="utf-8")
        (directory / name).chmod(0o755)
    return str(directory / "python")


def _end(server: subprocess.Popen[bytes]) -> None:
    assert server.stdin is not None
    server.stdin.close()
    try:
        server.wait(10)
    except subprocess.TimeoutExpired:
        server.send_signal(signal.SIGKILL)
