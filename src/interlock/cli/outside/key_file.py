"""The file with the private key of a source, and other small JSON files that a command names."""

import json
import sys
from pathlib import Path
from typing import cast

from interlock.cli.screen import StopError
from interlock.engine.outside import decoded_key
from interlock.kernel.budgets import EVENT_FIELDS_BYTES_MAX, KIB
from interlock.kernel.canonical import Json
from interlock.service.outside.signatures import SigningKey
from interlock.store.regular_file import read_regular


def read_key(path: str) -> SigningKey:
    """Read the file that `keys source new` wrote.

    Raises:
        StopError: It cannot be read, or it holds no key.
    """
    key = parse_object(read_small(path), "--sign")
    private, source = decoded_key(str(key.get("privateKey"))), key.get("source")
    if private is None or not isinstance(source, str):
        raise StopError(
            f"{path} holds no key of a source.", "`interlock keys source new NAME` writes one.", exit_code=2
        )
    return SigningKey(source=source, private_key=private)


def read_small(path: str) -> str:
    """Read a small file, or standard input if the path is `-`.

    Raises:
        StopError: It cannot be read.
    """
    if path == "-":
        return sys.stdin.read(EVENT_FIELDS_BYTES_MAX + 8 * KIB)
    try:
        return read_regular(Path(path), EVENT_FIELDS_BYTES_MAX + 8 * KIB).decode("utf-8")
    except (OSError, ValueError) as error:
        raise StopError(f"{path} cannot be read: {error}.", "Name a readable file.", exit_code=2) from error


def parse_object(text: str, option: str) -> dict[str, Json]:
    """Return the JSON object in a text that an option gave.

    Raises:
        StopError: It is none.
    """
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise StopError(f"{option} is not JSON: {error}.", "Write a JSON object.", exit_code=2) from error
    if not isinstance(value, dict):
        raise StopError(f"{option} is no JSON object.", 'Write one, such as \'{"status": "passed"}\'.', exit_code=2)
    return cast("dict[str, Json]", value)
