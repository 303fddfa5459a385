"""Options that several commands share, and the directories that a command line names."""

import argparse
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from interlock.cli.screen import StopError
from interlock.config.data_dir import PlaceArguments, SettingsError, data_dir_of


def add_store_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of every command that reads a data directory."""
    # A default here would overwrite a value that was given before the command.
    parser.add_argument("--data-dir", default=argparse.SUPPRESS, help="directory of the sessions (INTERLOCK_DATA_DIR)")
    add_json(parser)


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add `--json`."""
    parser.add_argument("--json", dest="as_json", action="store_true", help="print one JSON value")


def place_arguments(options: argparse.Namespace) -> PlaceArguments:
    """Return the directories that a command line names; a command may lack some of these options."""
    return PlaceArguments(
        data_dir=getattr(options, "data_dir", None),
        workspace=getattr(options, "workspace", None),
        workflows_dir=getattr(options, "workflows_dir", None),
        core_source=getattr(options, "core_source", None),
    )


def printed_command(options: argparse.Namespace, command: str) -> str:
    """Return a command to print, with the data directory if the command line names one: it works there alone."""
    data_dir, own = getattr(options, "data_dir", None), "interlock "
    if not data_dir or not command.startswith(own):
        return command
    import shlex  # noqa: PLC0415 — few commands print another one

    return f"{own}--data-dir {shlex.quote(str(chosen_data_dir(options)))} {command.removeprefix(own)}"


def chosen_data_dir(options: argparse.Namespace) -> Path:
    """Return the data directory that the command line, the environment or the platform names.

    Raises:
        StopError: See `checked_settings`.
    """
    with checked_settings():
        return data_dir_of(os.environ, place_arguments(options))


@contextmanager
def checked_settings() -> Generator[None]:
    """End the command with exit code 2 if one of its directories cannot be used.

    Raises:
        StopError: A directory cannot be used.
    """
    try:
        yield
    except SettingsError as error:
        raise StopError(error.message, error.fix, exit_code=2) from error
