"""What the other side of a channel answers: a small JSON object, or nothing that counts."""

from collections.abc import Mapping

from interlock.kernel.budgets import CHANNEL_REPLY_BYTES_MAX
from interlock.kernel.canonical import Json, parse_object


def parse_reply(data: bytes) -> Mapping[str, Json] | None:
    """Return the JSON object of an answer; None if it is empty, too long, or no JSON object."""
    if not data.strip() or len(data) > CHANNEL_REPLY_BYTES_MAX:
        return None
    return parse_object(data)
