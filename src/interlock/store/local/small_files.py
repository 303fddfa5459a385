"""Small files of a fixed form: read within a bound, and anything that is not of their form is nothing.

They lie in directories that people can write to, so they may hold anything of any size.
"""

import json
from collections.abc import Mapping
from typing import Any, cast

from interlock.kernel.budgets.files import SMALL_FILE_BYTES_MAX
from interlock.store.local.files import FileOps


def read_small(files: FileOps, path: str) -> bytes:
    """Return the beginning of a file, which is all of it if it is of its form. Raises as `FileOps.read` does."""
    return files.read(path, bytes_max=SMALL_FILE_BYTES_MAX)


def parse_object(data: bytes) -> Mapping[str, Any] | None:
    """Return the JSON object that the bytes are; None if they are none."""
    try:
        value: object = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else None
