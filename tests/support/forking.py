"""The fork server: imports the product once, and forks for each program that a launcher asks for.

A script, which imports nothing of the tests: what a program finds imported is the product and its requirements.
"""

import atexit
import contextlib
import fcntl
import gc
import importlib
import io
import marshal
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType, ModuleType
from typing import TextIO, TypeAlias

PACKAGES = ("interlock.server", "interlock.service", "interlock.store", "interlock.cli", "interlock.config")
MORE = {"drive": ("interlock.drive",), "console": ("interlock.console",), "demo": ("mcp.client",)}
"""Packages that are imported for the first command of that name."""
Request: TypeAlias = tuple[list[str], dict[bytes, bytes], list[int], int, list[int], list[str], str]
FILES_MAX = 64
STDERR = 2


@dataclass(slots=True)
class ForkServer:
    """The sockets of the launchers, each with the process that it started."""

    listener: socket.socket
    selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)
    processes: dict[int, socket.socket] = field(default_factory=dict[int, socket.socket])
    imported: set[str] = field(default_factory=set[str])

    def serve(self) -> "Program | None":
        """Serve until stdin ends. In a forked process, return its program; in the server, None."""
        woken, wake = socket.socketpair()
        os.set_blocking(wake.fileno(), False)
        signal.signal(signal.SIGCHLD, _wake)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
        for source, meaning in ((sys.stdin, "end"), (self.listener, "launcher"), (woken, "child")):
            self.selector.register(source, selectors.EVENT_READ, meaning)
        while True:
            for key, _ in self.selector.select():
                match key.data:
                    case "end":
                        return self.end()
                    case "launcher":
                        program = self.fork()
                        if program is not None:
                            woken.close()
                            wake.close()
                            return program
                    case "child":
                        woken.recv(1 << 12)
                        self.reap()
                    case process:
                        self.relay(process)

    def end(self) -> None:
        for process in self.processes:
            os.kill(process, signal.SIGKILL)

    def fork(self) -> "Program | None":
        """Make a process for the next launcher; return its program in that process."""
        connection, _ = self.listener.accept()
        size, files, _, _ = socket.recv_fds(connection, 4, FILES_MAX)
        request: Request = marshal.loads(received(connection, int.from_bytes(size, "big")))  # noqa: S302 — from ourselves
        self.preload(request[0])
        process = os.fork()
        if process:
            for number in files:
                os.close(number)
            self.processes[process] = connection
            self.selector.register(connection, selectors.EVENT_READ, process)
            return None
        signal.set_wakeup_fd(-1)
        self.selector.close()
        for one in (self.listener, connection, *self.processes.values()):
            one.close()
        return Program(request, files)

    def preload(self, arguments: Sequence[str]) -> None:
        """Import what such a program imports, so that no process forked from now on has to."""
        wanted = [("", PACKAGES), *((word, MORE[word]) for word in MORE if word in arguments)]
        for word, packages in wanted:
            if word not in self.imported:
                self.imported.add(word)
                for package in packages:
                    import_all(package)
                gc.collect()
                gc.freeze()

    def reap(self) -> None:
        """Report each process that ended to its launcher."""
        while self.processes:
            process, status = os.waitpid(-1, os.WNOHANG)
            if process == 0:
                return
            connection = self.processes.pop(process)
            with contextlib.suppress(KeyError, OSError):  # the launcher was killed
                self.selector.unregister(connection)
                connection.send(status.to_bytes(4, "big"))
            connection.close()

    def relay(self, process: int) -> None:
        """Send a process the signals of its launcher, and kill it if that was killed."""
        if process not in self.processes:
            return
        try:
            numbers = self.processes[process].recv(16)
        except OSError:
            numbers = b""
        if not numbers:
            self.selector.unregister(self.processes[process])
        for number in numbers or [signal.SIGKILL]:
            os.kill(process, number)


def _wake(_number: int, _frame: FrameType | None) -> None:
    """Let the signal write to the wake-up socket, which an ignored one does not."""


@dataclass(slots=True)
class Program:
    """A program in its new process."""

    request: Request
    files: Sequence[int]

    def run(self) -> None:
        """Make this process what a new interpreter would be, run the program in it, and end."""
        (kind, *rest), environment, numbers, mask, ignored, path, executable = self.request
        self.take_files(numbers)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)
        os.umask(mask)
        os.environ.clear()
        os.environ.update({os.fsdecode(name): os.fsdecode(value) for name, value in environment.items()})
        sys.executable = executable
        open_standard_streams(is_unbuffered=bool(os.environ.get("PYTHONUNBUFFERED")))
        sys.path[:0] = path
        if path:
            sys.modules.pop("sitecustomize", None)
            with contextlib.suppress(ImportError):
                importlib.import_module("sitecustomize")
        try:
            if kind == "-P":
                kind, *rest = rest
                run_program(kind, rest, is_isolated=True)
            else:
                run_program(kind, rest)
        except SystemExit as ended:
            if not isinstance(ended.code, int | None):
                raise
            end_at_once(ended.code or 0)
        end_at_once(0)

    def take_files(self, numbers: Sequence[int]) -> None:
        """Enter the directory, and give each file its number; a standard file that is not among them is closed."""
        os.fchdir(self.files[0])
        moved = [fcntl.fcntl(file, fcntl.F_DUPFD, 2 * FILES_MAX) for file in self.files[1:]]
        os.closerange(0, 2 * FILES_MAX)
        for file, number in zip(moved, numbers, strict=True):
            os.dup2(file, number)
            os.close(file)


def end_at_once(exit_code: int) -> None:
    """End as an interpreter does, except that nothing of the imported modules is taken apart.

    Raises:
        SystemExit: stdout cannot be written, which the interpreter has to report.
    """
    threading._shutdown()  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue, reportUnknownMemberType]
    atexit._run_exitfuncs()  # pyright: ignore[reportPrivateUsage] — what an interpreter calls
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None and not stream.closed:  # pyright: ignore[reportUnnecessaryComparison] — one may be closed
                stream.flush()
    except OSError:
        raise SystemExit(exit_code) from None
    os._exit(exit_code & 0xFF)


def run_program(kind: str, rest: list[str], *, is_isolated: bool = False) -> None:
    """Run what the command line of an interpreter names. An isolated one imports nothing from where that is."""
    place = None
    if kind == "-m":
        sys.argv = rest
        with contextlib.suppress(FileNotFoundError):
            place = str(Path.cwd())
    elif kind == "-c":
        sys.argv = ["-c", *rest[1:]]
        place = ""
    else:
        sys.argv = [kind, *rest]
        place = str(Path(kind).resolve().parent)
    if place is not None and not is_isolated:
        sys.path.insert(0, place)
    if kind == "-m":
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif kind == "-c":
        module = sys.modules["__main__"] = ModuleType("__main__")
        exec(compile(rest[0], "<string>", "exec"), module.__dict__)  # noqa: S102 — as `python -c` does
    else:
        runpy.run_path(kind, run_name="__main__")


def open_standard_streams(*, is_unbuffered: bool) -> None:
    """Make the text streams of the three standard files, as an interpreter does at its start."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        old, new = getattr(sys, name), None
        with contextlib.suppress(OSError):
            os.fstat(number)
            new = text_stream(number, old, is_unbuffered=is_unbuffered)
        setattr(sys, name, new)
        setattr(sys, f"__{name}__", new)


def text_stream(number: int, like: TextIO, *, is_unbuffered: bool) -> TextIO:
    """Open a standard file as text with the encoding of another stream."""
    if number == 0:
        return open(number, encoding=like.encoding, errors=like.errors, closefd=False)
    raw = io.FileIO(number, "w", closefd=False)
    return io.TextIOWrapper(
        raw if is_unbuffered else io.BufferedWriter(raw),  # pyright: ignore[reportArgumentType] — as for the real ones
        encoding=like.encoding,
        errors=like.errors,
        newline="\n",
        line_buffering=not is_unbuffered and (number == STDERR or raw.isatty()),
        write_through=is_unbuffered,
    )


def import_all(name: str) -> None:
    """Import a package with all of its modules, except those that are programs."""
    package = importlib.import_module(name)
    for module in pkgutil.walk_packages(package.__path__, f"{name}."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


def received(connection: socket.socket, size: int) -> bytes:
    """Receive so many bytes."""
    parts = bytearray()
    while len(parts) < size:
        part = connection.recv(size - len(parts))
        if not part:
            raise ConnectionError
        parts += part
    return bytes(parts)


if __name__ == "__main__":
    sys.path.pop(0)
    found = ForkServer(socket.socket(fileno=int(sys.argv[1]))).serve()
    if found is not None:
        found.run()
