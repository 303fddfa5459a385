"""The store for commands: opened in the data directory of the command line, with failures as messages."""

import argparse
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace

from interlock.cli.options import checked_settings, chosen_data_dir
from interlock.cli.screen import RefusedError
from interlock.config.settings import check_data_dir
from interlock.kernel.errors import ErrorCode, Refusal
from interlock.service.failures import EXPECTED_ERRORS, refusal_of
from interlock.store.opening import open_store
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


@contextmanager
def answered_by_store() -> Generator[None]:
    """Report damage and disk failures as messages, and end with 1.

    Raises:
        RefusedError: The store failed.
    """
    try:
        yield
    except EXPECTED_ERRORS as error:
        raise RefusedError(command_refusal(error)) from error


def command_refusal(error: Exception) -> Refusal:
    """Return the refusal of an expected error for a command: a locked session that no token named has another code."""
    refusal = refusal_of(error)
    if refusal.code is not ErrorCode.TOKEN_SESSION_LOCKED:
        return refusal
    fix = (
        "Run the command again in a second. If the error repeats, another Interlock process is stuck: end that process."
    )
    return replace(refusal, code=ErrorCode.SESSION_LOCKED, suggestion=fix)
