"""Messages in one form, whatever they came from, and values that JSON can carry (DRIVE-4, DRIVE-5)."""

import re
from collections.abc import Mapping
from dataclasses import field
from typing import Literal, TypeAlias, cast

from interlock.kernel.budgets import ARTIFACT_DEPTH_MAX
from interlock.kernel.canonical import Json, number_fault
from interlock.kernel.frozen import frozen

Role = Literal["user", "system", "assistant", "tool"]
Source = Literal["user", "api", "delegation"]
PartType = Literal["text", "image", "file"]
_SURROGATE = re.compile("[\ud800-\udfff]")
_REPLACEMENT = "\ufffd"
_PART_DEPTH_MAX = ARTIFACT_DEPTH_MAX // 2


@frozen
class ContentPart:
    """A part of a message with several media: a text, or the address of an image or a file."""

    type: PartType
    value: str
    media_type: str | None = None

    def to_json(self) -> dict[str, Json]:
        """Return the part as it is recorded."""
        media: dict[str, Json] = {} if self.media_type is None else {"mediaType": self.media_type}
        return {"type": self.type, "value": self.value, **media}


Content: TypeAlias = str | tuple[ContentPart, ...]


@frozen
class Origin:
    """Where a message came from, in which form, and when it was converted."""

    source: Source
    original_format: str
    normalized_at: str

    def to_json(self) -> dict[str, Json]:
        """Return the origin as it is recorded."""
        return {"source": self.source, "originalFormat": self.original_format, "normalizedAt": self.normalized_at}


@frozen
class ToolCall:
    """A call that a model asked for. Its id is unique in the run."""

    call_id: str
    name: str
    arguments: Json

    def to_json(self) -> dict[str, Json]:
        """Return the call as it is recorded."""
        return {"callId": self.call_id, "name": self.name, "arguments": self.arguments}


@frozen
class Message:
    """A message of the conversation. `calls` are those of an assistant; a tool's message answers `call_id`."""

    role: Role
    content: Content
    origin: Origin
    calls: tuple[ToolCall, ...] = field(default=())
    call_id: str | None = None
    tool_name: str | None = None

    def to_json(self) -> dict[str, Json]:
        """Return the message as it is recorded and as commands receive it."""
        content: Json = self.content if isinstance(self.content, str) else [one.to_json() for one in self.content]
        value: dict[str, Json] = {"role": self.role, "content": content, "metadata": self.origin.to_json()}
        if self.calls:
            value["toolCalls"] = [one.to_json() for one in self.calls]
        if self.call_id is not None:
            value["callId"] = self.call_id
        if self.tool_name is not None:
            value["toolName"] = self.tool_name
        return value

    def text(self) -> str:
        """Return the text of the message; other media are named."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(one.value if one.type == "text" else f"[{one.type} {one.value}]" for one in self.content)


def parse_message(value: Mapping[str, Json]) -> Message:
    """Return a recorded message. What is missing or of another type becomes empty: a record is a claim."""
    role = value.get("role")
    origin = _object(value.get("metadata"))
    calls = value.get("toolCalls")
    call_id, tool = value.get("callId"), value.get("toolName")
    return Message(
        role=role if role in ("user", "system", "assistant", "tool") else "user",
        content=_content(value.get("content")),
        origin=Origin(
            source=cast("Source", origin.get("source")) if origin.get("source") in ("user", "delegation") else "api",
            original_format=str(origin.get("originalFormat", "")),
            normalized_at=str(origin.get("normalizedAt", "")),
        ),
        calls=tuple(parse_call(_object(one)) for one in (calls if isinstance(calls, list) else [])),
        call_id=call_id if isinstance(call_id, str) else None,
        tool_name=tool if isinstance(tool, str) else None,
    )


def parse_call(value: Mapping[str, Json]) -> ToolCall:
    """Return a recorded call."""
    return ToolCall(
        call_id=str(value.get("callId", "")), name=str(value.get("name", "")), arguments=value.get("arguments")
    )


def _content(value: Json) -> Content:
    if not isinstance(value, list):
        return value if isinstance(value, str) else ""
    parts = [_object(one) for one in value]
    return tuple(
        ContentPart(
            type=cast("PartType", one["type"]) if one.get("type") in ("image", "file") else "text",
            value=str(one.get("value", "")),
            media_type=cast("str | None", one.get("mediaType")) if isinstance(one.get("mediaType"), str) else None,
        )
        for one in parts
    )


def _object(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, dict) else {}


def members_of(value: object) -> Mapping[str, object]:
    """Return the members of an object of foreign JSON; those of anything else are none."""
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else {}


def carried_text(text: str) -> str:
    """Return text with each lone surrogate replaced: JSON cannot carry one."""
    return _SURROGATE.sub(_REPLACEMENT, text)


def carried(value: object, depth: int = 0) -> Json:
    """Return a value as JSON can carry it exactly: other numbers become text, deeper nesting a remark.

    A model's arguments and a tool's output are recorded as they are, so nothing in them may make the record invalid.
    """
    if isinstance(value, str):
        return carried_text(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return value if number_fault(value) is None else str(value)
    if depth >= _PART_DEPTH_MAX:
        return "[nested too deep]"
    if isinstance(value, Mapping):
        members = cast("Mapping[object, object]", value)
        return {carried_text(str(key)): carried(inner, depth + 1) for key, inner in members.items()}
    if isinstance(value, list | tuple):
        return [carried(inner, depth + 1) for inner in cast("list[object]", value)]
    return carried_text(str(value))
