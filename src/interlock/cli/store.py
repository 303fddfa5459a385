"""The store for commands: opened in the data directory of the command line, with failures as messages."""

import argparse
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from interlock.cli.options import checked_settings, chosen_data_dir
from interlock.cli.screen import RefusedError
from interlock.config.data_dir import check_data_dir
from interlock.service.retention.lifetime import Kept, read_kept
from interlock.store.opening import open_retention_pins, open_store
from interlock.store.ports.store import Store, StoreReader


def open_chosen_store(options: argparse.Namespace) -> Store:
    """Return the store of the chosen data directory.

    Raises:
        StopError: The path is not a directory and cannot become one.
    """
    data_dir = chosen_data_dir(options)
    with checked_settings():
        check_data_dir(data_dir)
    return open_store(data_dir)


def open_chosen_reader(options: argparse.Namespace) -> StoreReader:
    """Return the ports that read the store of the chosen data directory.

    Raises:
        StopError: See `open_chosen_store`.
    """
    return open_chosen_store(options)


def kept_sessions(data_dir: Path) -> Kept:
    """Return the sessions that are marked to be kept, or why they are unknown.

    Raises:
        StoreFailureError: The disk failed.
    """
    return read_kept(open_retention_pins(data_dir))


@contextmanager
def answered_by_store() -> Generator[None]:
    """Report damage and disk failures as messages, and end with 1.

    Raises:
        RefusedError: The store failed.
    """
    try:
        yield
    except Exception as error:
        from interlock.service.failures import EXPECTED_ERRORS, command_refusal  # noqa: PLC0415 — most calls are answered

        if not isinstance(error, EXPECTED_ERRORS):
            raise
        raise RefusedError(command_refusal(error)) from error
