"""Judges one line from a client: a message, a blank line, or a fault that gets an error response.

The SDK drops lines that it cannot read, so the caller waits for ever. Here every fault gets a response. Pure: each
rule can be tested without a process.
"""

import json
import re
from codecs import BOM_UTF8
from collections import Counter
from typing import cast

from mcp_types import INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, JSONRPCMessage, RequestId, jsonrpc_message_adapter

from interlock.kernel.budgets import (
    ECHO_BYTES_MAX,
    LINE_BYTES_MAX,
    LINE_DEPTH_MAX,
    LINE_VALUES_MAX,
    NUMBER_DIGITS_MAX,
)
from interlock.kernel.frozen import frozen, positional
from interlock.kernel.json_bounds import Excess, JsonBounds, find_excess
from interlock.kernel.strict_json import NotANumberError, RepeatedKeyError, decode, holds_lone_surrogate
from interlock.kernel.text import one_line
from interlock.server.transport.line_edges import edge_members, first_members

_EXAMPLE = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
_SEND_ONE = f"Send one JSON-RPC 2.0 object on one line, encoded as UTF-8, such as {_EXAMPLE}."
_BOUNDS = JsonBounds(values_max=LINE_VALUES_MAX, depth_max=LINE_DEPTH_MAX)
_EXCESS_WORDS: dict[Excess, str] = {
    "values": f"The line contains more than {LINE_VALUES_MAX} values and was not read. "
    "Send fewer; pass large content by reference, for instance as the path of a file.",
    "depth": f"The line is nested deeper than {LINE_DEPTH_MAX} levels. Send a flatter value, or pass it as text.",
    "digits": f"The line contains a number with more than {NUMBER_DIGITS_MAX} digits. Send such a number as a string.",
}
_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")
_KINDS: dict[type[object], str] = {
    dict: "an object",
    list: "an array",
    str: "a string",
    int: "a whole number",
    float: "a number that is not whole",
    bool: "true or false",
}


@positional
class Message:
    """A line that is a message, in the form that the SDK accepts."""

    content: JSONRPCMessage


@positional
class Skip:
    """A blank line: no message and no fault."""


@frozen
class Reject:
    """A line that no server can act on: what was found, and what to send instead."""

    code: int
    message: str
    id: RequestId | None = None
    response_to: RequestId | None = None
    """The server's own request that the line should answer. It will get no other response."""

    def answer_line(self) -> bytes:
        """Render the JSON-RPC error as one line of ASCII, with a newline."""
        error = {"code": self.code, "message": self.message}
        answer = {"jsonrpc": "2.0", "id": self.id, "error": error}
        return json.dumps(answer, separators=(",", ":")).encode("ascii") + b"\n"


class LineSplitter:
    """Splits chunks of a stream into lines. Of a line that is too long it keeps only enough to refuse it."""

    __slots__ = ("_kept", "_parts")

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._kept = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that this chunk ends, without their newlines."""
        *ends, beginning = chunk.split(b"\n")
        lines: list[bytes] = []
        for end in ends:
            self._keep(end)
            lines.append(self.rest())
        self._keep(beginning)
        return lines

    def rest(self) -> bytes:
        """Return the unfinished line and clear it. At the end of a stream it is the last line."""
        line = b"".join(self._parts)
        self._parts, self._kept = [], 0
        return line

    def _keep(self, part: bytes) -> None:
        room = LINE_BYTES_MAX + 1 - self._kept
        if part and room > 0:
            self._parts.append(part[:room])
            self._kept += min(len(part), room)


def judge_line(raw: bytes) -> Message | Reject | Skip:
    """Judge one line from a client. Never raises, whatever the bytes."""
    if not raw or raw.isspace():
        return Skip()
    if len(raw) > LINE_BYTES_MAX:
        too_long = (
            f"The line is longer than {LINE_BYTES_MAX} bytes and was not read. "
            "Send a shorter one; pass large content by reference, for instance as the path of a file."
        )
        return _reject_partly_read(PARSE_ERROR, too_long, first_members(raw))
    excess = find_excess(raw, _BOUNDS)
    if excess is not None:
        return _reject_partly_read(INVALID_REQUEST, _EXCESS_WORDS[excess], edge_members(raw))
    parsed = _parse(raw.removeprefix(BOM_UTF8))
    if isinstance(parsed, Reject):
        return parsed
    value = _plain(parsed.value)
    fault = _surrogate_fault(raw, value) or _message_fault(value)
    if fault is not None:
        return _reject(INVALID_REQUEST, fault, value)
    fault = _tool_call_fault(cast("dict[str, object]", value))
    if fault is not None:
        return _reject(INVALID_PARAMS, fault, value)
    return Message(jsonrpc_message_adapter.validate_python(value, by_name=False))


def _plain(value: object) -> object:
    """Return a message with the usual spelling of what some clients write otherwise (SRV-20).

    PHP writes an empty object as `[]`. JSON has no whole numbers, so `1.0` is the id 1. Null is an absent token.
    """
    if not (isinstance(value, dict) and "method" in value):
        return cast("object", value)
    message = dict(cast("dict[str, object]", value))
    identity = message.get("id")
    if isinstance(identity, float) and identity.is_integer():
        message["id"] = int(identity)
    if message.get("params") == []:
        message["params"] = {}
    params = message.get("params")
    if not isinstance(params, dict):
        return message
    plain = dict(cast("dict[str, object]", params))
    if message["method"] == "tools/call" and plain.get("arguments") in ([], ""):
        plain["arguments"] = {}
    meta = plain.get("_meta")
    if isinstance(meta, dict) and cast("dict[str, object]", meta).get("progressToken", "") is None:
        plain["_meta"] = {key: one for key, one in cast("dict[str, object]", meta).items() if key != "progressToken"}
    return message | {"params": plain}


def _reject(code: int, fault: str, value: object) -> Reject:
    """Refuse a message under its id; `value` is all of it."""
    return Reject(code=code, message=fault, id=_readable_id(value), response_to=_answered_id(value))


def _reject_partly_read(code: int, fault: str, members: dict[str, object]) -> Reject:
    """Refuse a message of which only some members could be read. Without its method, it may be a response."""
    readable = _readable_id(members) if "method" in members else None
    return Reject(code=code, message=fault, id=readable, response_to=_answered_id(members))


@positional
class _Parsed:
    value: object


# Accepts what the strict decoder refuses. Built once: `json.loads` with hooks would build a decoder for each line.
_decode_pairs = json.JSONDecoder(object_pairs_hook=tuple, parse_constant=lambda _: None).decode


def _parse(raw: bytes) -> _Parsed | Reject:
    try:
        text, fault = raw.decode("utf-8"), None
    except UnicodeDecodeError as error:
        text = raw.decode("utf-8", "surrogateescape")
        fault = f"The line is not UTF-8: no character begins at byte {error.start + 1}. {_SEND_ONE}"
    try:
        if fault is not None:
            return _reject(PARSE_ERROR, fault, _single_members(text))
        return _parse_strictly(text)
    except json.JSONDecodeError as error:
        found = f"The line is not valid JSON: the error is at character {error.pos + 1}. {_SEND_ONE}"
        return _reject_partly_read(PARSE_ERROR, fault or found, first_members(raw))


def _parse_strictly(text: str) -> _Parsed | Reject:
    """Parse a line. The text after a fault may be invalid JSON, and it may contain the id (SRV-12)."""
    try:
        return _Parsed(decode(text))
    except NotANumberError as error:
        found = f"The line is not valid JSON: {error} is not a JSON value. Send a finite number or null instead."
        return _reject(PARSE_ERROR, found, _single_members(text))
    except RepeatedKeyError as error:
        key = one_line(_printable(str(error)), ECHO_BYTES_MAX)
        fault = f'The key "{key}" occurs more than once in one object. Send each key once.'
        return _reject(INVALID_REQUEST, fault, _single_members(text))


def _single_members(text: str) -> dict[str, object]:
    """Return the members of the outer object that occur once, in a line with a fault that a strict parser refuses."""
    pairs: object = _decode_pairs(text)
    # The decoder returns objects as tuples and arrays as lists, so they can be distinguished.
    if not isinstance(pairs, tuple):
        return {}
    members = cast("tuple[tuple[str, object], ...]", pairs)
    counts = Counter(key for key, _ in members)
    return {key: value for key, value in members if counts[key] == 1}


def _surrogate_fault(raw: bytes, value: object) -> str | None:
    """Find half of a surrogate pair: JSON can escape it, UTF-8 cannot encode it. Searching bytes first is faster."""
    if _SURROGATE_ESCAPE.search(raw) and holds_lone_surrogate(value):
        return "The line contains half of a surrogate pair, such as \\ud800. Send the whole character, or both halves."
    return None


def _message_fault(value: object) -> str | None:
    if isinstance(value, list):
        return f"The line is an array; batches are not supported. {_SEND_ONE}"
    if not isinstance(value, dict):
        return f"The line is {_kind(value)}, not an object. {_SEND_ONE}"
    message = cast("dict[str, object]", value)
    if "jsonrpc" not in message:
        return f'The member "jsonrpc" is missing. Send "jsonrpc":"2.0", as in {_EXAMPLE}.'
    if message["jsonrpc"] != "2.0":
        return f'The member "jsonrpc" is not the string "2.0". Send "jsonrpc":"2.0", as in {_EXAMPLE}.'
    if "method" in message:
        return _call_fault(message)
    if _is_response(message):
        return _response_fault(message)
    return f'The member "method" is missing. Send the name of a method, as in {_EXAMPLE}.'


def _call_fault(message: dict[str, object]) -> str | None:
    if not isinstance(message["method"], str):
        found = _kind(message["method"])
        return f'The member "method" is {found}. Send the name of a method, as in {_EXAMPLE}.'
    if "id" in message and not _is_id(message["id"]):
        return (
            f'The member "id" is {_kind(message["id"])}. Send a string or a whole number. '
            'Only a notification, which gets no answer, has no "id".'
        )
    if message.get("error") is not None:
        return f'The member "error" belongs to a response, which has no "method". {_SEND_ONE}'
    # Null is accepted: clients that write every member send it for an absent one.
    if not isinstance(message.get("params"), dict | None):
        found = _kind(message["params"])
        return f'The member "params" is {found}. Send an object of named values, or leave it out.'
    return None


def _tool_call_fault(message: dict[str, object]) -> str | None:
    """Find what is wrong with the form of a tool call: the SDK would only say that the parameters are invalid."""
    if message.get("method") != "tools/call":
        return None
    params = cast("dict[str, object]", message.get("params") or {})
    if not isinstance(params.get("name"), str):
        found = _kind(params["name"]) if "name" in params else "missing"
        return f'The member "params.name" is {found}. Send the name of a tool.'
    arguments = params.get("arguments")
    if not isinstance(arguments, dict | None):
        return f'The member "params.arguments" is {_kind(arguments)}. Send an object of named values, or leave it out.'
    return None


def _response_fault(message: dict[str, object]) -> str | None:
    if "result" in message and "error" in message:
        return 'The response has both "result" and "error". Send only one of them.'
    if "result" in message:
        if not _is_id(message.get("id")):
            return 'The response has no usable "id". Send the "id" of the request that it answers.'
        if not isinstance(message["result"], dict):
            return f'The member "result" is {_kind(message["result"])}. Send an object.'
        return None
    if not (_is_id(message.get("id")) or message.get("id", "") is None):
        return 'The response has no usable "id". Send the "id" of the request that it answers, or null.'
    match message["error"]:
        case {"code": int() as code, "message": str()} if not isinstance(code, bool):
            return None
        case _:
            return 'The member "error" is malformed. Send an object with a whole "code" and a "message".'


def _is_response(message: dict[str, object]) -> bool:
    return "method" not in message and ("result" in message or "error" in message)


def _is_id(value: object) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _kind(value: object) -> str:
    return "null" if value is None else _KINDS[type(value)]


def _readable_id(value: object) -> RequestId | None:
    """Return the id for an error response about this message, or None.

    The id of a response is not used: it numbers the server's requests, and an error with it would end the client's
    unrelated request of the same number.
    """
    if not isinstance(value, dict):
        return None
    message = cast("dict[str, object]", value)
    found = message.get("id")
    if _is_response(message) or not _is_id(found) or holds_lone_surrogate(found):
        return None
    return cast("RequestId", found)


def _answered_id(value: object) -> RequestId | None:
    """Return the id of the server's own request that a malformed response names."""
    if not isinstance(value, dict):
        return None
    message = cast("dict[str, object]", value)
    found = message.get("id")
    return cast("RequestId", found) if _is_response(message) and _is_id(found) else None


def _printable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
