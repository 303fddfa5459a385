"""Runs a Python program in a process that the fork server makes, and ends as that process does.

`tests.support.forkserver` writes copies, each with a call of `main` at its end. A copy takes the arguments of `python`.
It imports nothing but built-in modules, so it costs a hundredth of a second. A start that the fork server cannot
imitate exactly gets an interpreter of its own instead.
"""

import _socket
import marshal
import posix
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from types import FrameType
else:
    import _signal

RELAYED = (_signal.SIGHUP, _signal.SIGINT, _signal.SIGTERM)


def main(address: str, python: str, settings: dict[str, str], path: list[str], before: list[str]) -> None:
    """Run the program of the command line.

    Args:
        address: Where the fork server listens.
        python: The interpreter for what it cannot do.
        settings: The variables with which the fork server's own interpreter started.
        path: Its `PYTHONPATH`.
        before: Arguments that come before those of the command line.
    """
    arguments = [*before, *sys.argv[1:]]
    request = request_of(arguments, settings, path)
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    if request is None or connection.connect_ex(address):
        posix.execv(python, [python, *arguments])
    else:
        follow(connection, *request)


def request_of(arguments: list[str], settings: dict[str, str], path: list[str]) -> tuple[bytes, list[int]] | None:
    """Return what the fork server has to know, and the files to pass; None if it cannot imitate such a start."""
    own = {decoded(name): decoded(value) for name, value in posix.environ.items()}
    searched = [place for place in own.get("PYTHONPATH", "").split(":") if place]
    more = searched[: max(len(searched) - len(path), 0)]
    program = arguments[1:] if arguments[:1] == ["-P"] else arguments
    is_program = bool(program) and (program[0] in ("-m", "-c") or not program[0].startswith("-"))
    if not is_program or settings_of(own) != settings or more + path != searched:
        return None
    numbers = [number for number in map(int, posix.listdir("/dev/fd")) if is_open(number)]
    if 0 in numbers and posix.isatty(0):
        return None
    mask = posix.umask(0o77)
    posix.umask(mask)
    ignored = [int(number) for number in RELAYED if _signal.getsignal(number) == _signal.SIG_IGN]
    request = (arguments, dict(posix.environ), numbers, mask, ignored, more, sys.argv[0])
    return marshal.dumps(request), numbers


def decoded(text: bytes) -> str:
    """Return a text of the environment."""
    return text.decode("utf-8", "surrogateescape")


def is_open(number: int) -> bool:
    """Say whether a file descriptor is open: listing them opens one for a moment."""
    try:
        posix.fstat(number)
    except OSError:
        return False
    return True


def settings_of(environment: dict[str, str]) -> dict[str, str]:
    """Return the variables that an interpreter obeys when it starts and not later, and how it encodes text."""
    rest = (
        "PYTHONPATH",
        "PYTHONUNBUFFERED",
        "PYTHONUTF8",
        "PYTHONDONTWRITEBYTECODE",
        "PYTHONPYCACHEPREFIX",
    )
    own = {name: value for name, value in environment.items() if name.startswith("PYTHON") and value}
    return {name: value for name, value in own.items() if name not in rest} | {"encoding": encoding_of(environment)}


def encoding_of(environment: dict[str, str]) -> str:
    """Return a name for what an interpreter does with text: two environments with the same name do the same."""
    first = [environment.get(name) for name in ("LC_ALL", "LC_CTYPE", "LANG")]
    locale = next(filter(None, first), "C")
    is_utf8 = environment.get("PYTHONUTF8") or ("1" if locale in ("C", "C.UTF-8", "POSIX") else "")
    return "utf-8" if is_utf8 == "1" else f"{locale} {is_utf8}"


def follow(connection: _socket.socket, request: bytes, numbers: list[int]) -> None:
    """Hand over the open files and the directory, relay signals, and end as the process ends."""

    def relay(received: int, _frame: "FrameType | None") -> None:
        connection.send(bytes([received]))

    for number in RELAYED:
        _signal.signal(number, relay)
    directory = posix.open(".", posix.O_PATH)
    files = b"".join(number.to_bytes(4, sys.byteorder) for number in (directory, *numbers))
    connection.sendmsg([len(request).to_bytes(4, "big")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, files)])
    connection.sendall(request)
    for number in numbers:
        posix.close(number)
    received = connection.recv(4)
    status = int.from_bytes(received, "big") if received else 1 << 8
    if posix.WIFSIGNALED(status):
        number = posix.WTERMSIG(status)
        if number != _signal.SIGKILL:
            _signal.signal(number, _signal.SIG_DFL)
        posix.kill(posix.getpid(), number)
    posix._exit(posix.WEXITSTATUS(status))  # pyright: ignore[reportPrivateUsage] — the public name is in a larger module
