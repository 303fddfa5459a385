"""Runs reads in a worker thread, for resources, prompts and completions."""

import logging
from collections.abc import Callable
from typing import TypeVar

import anyio.to_thread
from mcp import types
from mcp.shared.exceptions import MCPError

from interlock.kernel.turns import TURNS
from interlock.service.failures import EXPECTED_ERRORS, refusal_of

_Found = TypeVar("_Found")
_log = logging.getLogger(__name__)


async def run_read(read: Callable[[], _Found]) -> _Found:
    """Return the result of a read that runs in a worker thread.

    Raises:
        MCPError: The read raised one, or it failed: then with the reason, but without the text of the exception.
    """
    try:
        return await anyio.to_thread.run_sync(_in_turn, read)
    except MCPError:
        raise
    except EXPECTED_ERRORS as error:
        _log.warning("%s", error)
        refusal = refusal_of(error)
        raise MCPError(types.INTERNAL_ERROR, f"{refusal.message} {refusal.suggestion}") from error
    except Exception as error:
        _log.exception("a read failed")
        raise MCPError(
            types.INTERNAL_ERROR,
            "This failed because of a bug in Interlock. The server's log (stderr) has the details.",
        ) from error


def _in_turn(read: Callable[[], _Found]) -> _Found:
    with TURNS.computing():
        return read()
