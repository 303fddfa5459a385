"""Filters text by the patterns of a profile: a match is replaced, or stops what holds it (DRIVE-6, TOOL-7)."""

import re
from collections.abc import Mapping
from typing import cast

from interlock.drive.agent.profile import TextFilter
from interlock.drive.conversation.messages import ContentPart, Message
from interlock.drive.faults import Fault, TurnError
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import frozen, replace

REDACTED = "[redacted]"


@frozen
class Filter:
    """The compiled patterns of a filter. `place` is the setting that states them, for messages."""

    redact: tuple[re.Pattern[str], ...]
    block: tuple[re.Pattern[str], ...]
    place: str

    @classmethod
    def of(cls, stated: TextFilter, place: str) -> "Filter":
        """Compile a filter; one that is switched off has no patterns.

        Raises:
            TurnError: A pattern is not a regular expression.
        """
        if not stated.enabled:
            return cls(redact=(), block=(), place=place)
        return cls(
            redact=tuple(_compiled(one, place) for one in stated.redact),
            block=tuple(_compiled(one, place) for one in stated.block),
            place=place,
        )

    def text(self, text: str) -> str:
        """Return text with each match of `redact` replaced.

        Raises:
            TurnError: A pattern of `block` matches.
        """
        for pattern in self.block:
            if pattern.search(text) is not None:
                message = f"A text matches the pattern {pattern.pattern!r} of `{self.place}.block`."
                raise TurnError(Fault(code="CONTENT_FILTERED", message=message))
        for pattern in self.redact:
            text = pattern.sub(REDACTED, text)
        return text

    def value(self, value: Json) -> Json:
        """Return a JSON value whose texts, those of keys included, are filtered.

        Raises:
            TurnError: See `text`.
        """
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(key): self.value(inner) for key, inner in cast("Mapping[str, Json]", value).items()}
        return [self.value(inner) for inner in value] if isinstance(value, list) else value

    def message(self, message: Message) -> Message:
        """Return a message whose content is filtered.

        Raises:
            TurnError: See `text`.
        """
        if isinstance(message.content, str):
            return replace(message, content=self.text(message.content))
        return replace(message, content=tuple(self._part(one) for one in message.content))

    def _part(self, part: ContentPart) -> ContentPart:
        return replace(part, value=self.text(part.value)) if part.type == "text" else part


def _compiled(pattern: str, place: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        message = f"`{place}`: {pattern!r} is not a regular expression: {error}."
        raise TurnError(Fault(code="VALIDATION_ERROR", message=message)) from error
