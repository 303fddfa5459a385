"""What only looks, in a thread: for the resources, prompts and completions that people meet."""

import logging
from collections.abc import Callable
from typing import TypeVar

import anyio.to_thread
from mcp import types
from mcp.shared.exceptions import MCPError

from interlock.service.failures import EXPECTED_ERRORS, refusal_of

_Seen = TypeVar("_Seen")
_log = logging.getLogger(__name__)


async def looked(look: Callable[[], _Seen]) -> _Seen:
    """Return what a look in a worker thread gives.

    Raises:
        MCPError: What the look raised, or why it could not be done, without the words of an exception.
    """
    try:
        return await anyio.to_thread.run_sync(look)
    except MCPError:
        raise
    except EXPECTED_ERRORS as error:
        _log.warning("%s", error)
        refusal = refusal_of(error)
        raise MCPError(types.INTERNAL_ERROR, f"{refusal.message} {refusal.suggestion}") from error
    except Exception as error:
        _log.exception("a look failed")
        raise MCPError(
            types.INTERNAL_ERROR, "Interlock met a fault of its own; the server's log (stderr) has the details."
        ) from error
