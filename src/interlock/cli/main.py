"""The command `interlock`: without arguments it serves a client on stdin, or prints help in a terminal."""

import argparse
import gc
import sys
from collections.abc import Sequence
from functools import partial

from interlock.cli.commands import command_line
from interlock.cli.frame.edge import ending_as_interrupted, ensure_stdin, run_at_edge
from interlock.cli.frame.running import printing, run_command
from interlock.version import VERSION


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    words = sys.argv[1:] if arguments is None else arguments
    options = argparse.Namespace()
    # Imported code never becomes garbage, and searching it takes a tenth of the start; a command resumes collection.
    gc.disable()
    try:
        return run_at_edge(partial(_parse_and_run, words, options), options)
    finally:
        gc.enable()


def _parse_and_run(words: Sequence[str], options: argparse.Namespace) -> int:
    parser = command_line(words)
    parser.parse_args(words, options)
    if options.command == "serve" or (options.command is None and not _is_in_terminal()):
        from interlock.cli.top.serve import run  # noqa: PLC0415 — only a server pays for it

        return run(options)
    with ending_as_interrupted():
        return printing(partial(_run, parser, options))


def _is_in_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()  # pyright: ignore[reportUnnecessaryComparison] — it may be closed


def _run(parser: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    ensure_stdin()
    match options.command:
        case None:
            parser.print_help()
            return 0
        case "version":
            print(f"interlock {VERSION}")
            return 0
        case "witness":
            # It prints its refusals itself: its command starts before the modules that print are imported.
            return options.run(options)
        case _:
            return run_command(options)
