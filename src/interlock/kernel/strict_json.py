"""Decodes JSON of callers by one rule, on a line and inside a text: each key once, no NaN, no half characters."""

import json
from collections import Counter
from typing import NoReturn


class NotANumberError(Exception):
    """The text contains NaN or an infinity."""


class RepeatedKeyError(Exception):
    """An object contains one key twice."""


def _object_of(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) < len(pairs):
        ((repeated, _),) = Counter(key for key, _ in pairs).most_common(1)
        raise RepeatedKeyError(repeated)
    return members


def _refuse_constant(name: str) -> NoReturn:
    raise NotANumberError(name)


# Built once: `json.loads` with hooks would build a decoder for each text.
_decoder = json.JSONDecoder(object_pairs_hook=_object_of, parse_constant=_refuse_constant)


def decode(text: str) -> object:
    """Return the value of a JSON text. Its strings may hold lone surrogates.

    Raises:
        json.JSONDecodeError: The text is not JSON.
        NotANumberError: It contains NaN or an infinity; the error's text is its name.
        RepeatedKeyError: An object contains one key twice; the error's text is the key.
    """
    return _decoder.decode(text)


def holds_lone_surrogate(value: object) -> bool:
    """Say whether a key or a string of a JSON value holds half of a surrogate pair, which UTF-8 cannot encode."""
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False
