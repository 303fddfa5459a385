"""`interlock witness`: run a command unchanged, and record for a run that it ran, and how it ended (PROOF-1)."""

import argparse
import os
import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from interlock.cli.outside.pass_through import signals_passed_to, start_command
from interlock.store.worktree import read_tree

if TYPE_CHECKING:
    from interlock.cli.screen import StopError
    from interlock.service.trust.receipts import CommandSeen

    _Failed: TypeAlias = StopError | OSError

_NOT_FOUND, _NOT_STARTED = 127, 126
"""What a shell returns for a command that is not there, or that it cannot run."""
_BY_SIGNAL = 128
_WRONG_USE = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    # The shared options are written here: their module imports the configuration, and the command must start at once.
    parser.add_argument("--data-dir", default=argparse.SUPPRESS, help="directory of the sessions (INTERLOCK_DATA_DIR)")
    parser.add_argument("wanted", metavar="RUN", help="a run label or id")
    parser.add_argument("argv", metavar="-- COMMAND", nargs=argparse.REMAINDER, help="the command and its arguments")


def run(options: argparse.Namespace) -> int:
    """Run the command, record its receipt, and return the exit code of the command, whatever became of the receipt.

    The run is looked for while the command runs. What went wrong with the receipt is printed on stderr.
    """
    words: list[str] = options.argv
    argv = words[1:] if words[:1] == ["--"] else words
    if not argv:
        print("interlock witness: no command is named. Write `interlock witness RUN -- COMMAND`.", file=sys.stderr)
        return _WRONG_USE
    directory, program = Path.cwd(), shutil.which(argv[0])
    before = read_tree(directory)
    try:
        command = start_command(argv)
    except OSError as error:
        print(f"interlock: {argv[0]}: {error.strerror}. No receipt was recorded.", file=sys.stderr)
        return _NOT_FOUND if isinstance(error, FileNotFoundError) else _NOT_STARTED
    with signals_passed_to(command):
        command.start()
        record = _prepared(options)
        code = command.wait()

    def seen() -> "CommandSeen":
        from interlock.service.trust.receipts import CommandSeen  # noqa: PLC0415 — it was imported meanwhile

        return CommandSeen(
            argv=tuple(argv),
            program=program,
            directory=os.fsencode(directory).decode("utf-8", "backslashreplace"),
            exit=code,
            seconds=command.seconds,
            output=command.kept.text(),
            digest=command.kept.digest(),
            before=before,
            after=read_tree(directory),
        )

    record(code, seen)
    return code if code >= 0 else _BY_SIGNAL - code


def _prepared(options: argparse.Namespace) -> "Callable[[int, Callable[[], CommandSeen]], None]":
    """Find the run while the command runs. Return what records the receipt after it, or says why there is none."""
    from interlock.cli.outside.receipt import prepare_receipt, say_no_receipt  # noqa: PLC0415 — the command runs meanwhile
    from interlock.cli.screen import StopError  # noqa: PLC0415 — see above

    try:
        prepared = prepare_receipt(options)
    except (StopError, OSError) as error:
        return partial(_without_run, say_no_receipt, error)

    def record(code: int, seen: "Callable[[], CommandSeen]") -> None:
        try:
            prepared(seen())
        except (StopError, OSError) as error:
            say_no_receipt(error, code)

    return record


def _without_run(say: "Callable[[_Failed, int], None]", failed: "_Failed", code: int, _seen: object) -> None:
    """Say why there is no receipt of a command whose run was not found."""
    say(failed, code)
