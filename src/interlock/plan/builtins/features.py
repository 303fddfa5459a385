"""Features: lines that are added to every step of a workflow that is written in blocks, with typed configuration."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from interlock.kernel.canonical import Json
from interlock.kernel.frozen import frozen


@frozen
class ConfigField:
    """One value that a feature can be configured with."""

    name: str
    type: Literal["integer", "boolean", "string"]
    default: str | int | bool
    choices: tuple[str | int, ...] = ()
    minimum: int | None = None
    maximum: int | None = None

    def takes(self, value: Json) -> bool:
        """Say whether a value is valid."""
        match self.type:
            case "boolean":
                return isinstance(value, bool)
            case "string":
                return isinstance(value, str) and (not self.choices or value in self.choices)
            case "integer":
                return isinstance(value, int) and not isinstance(value, bool) and self._holds(value)

    def in_words(self) -> str:
        """Describe the valid values."""
        if self.choices:
            return f"one of {', '.join(map(str, self.choices))}"
        least = f" from {self.minimum}" if self.minimum is not None else ""
        most = f" to {self.maximum}" if self.maximum is not None else ""
        return {"integer": "a whole number", "boolean": "true or false", "string": "a string"}[self.type] + least + most

    def _holds(self, number: int) -> bool:
        if self.choices and number not in self.choices:
            return False
        return (self.minimum is None or number >= self.minimum) and (self.maximum is None or number <= self.maximum)


@frozen
class Feature:
    """Lines for three sections of a prompt. `{name}` stands for a configured value."""

    feature_id: str
    title: str
    purpose: str
    config: tuple[ConfigField, ...] = ()
    constraints: tuple[str, ...] = ()
    procedure: tuple[str, ...] = ()
    verify: tuple[str, ...] = ()


_ALL = (
    Feature(
        feature_id="wr.features.capabilities",
        title="Capabilities",
        purpose="The agent says what it can and cannot do instead of pretending.",
        constraints=(
            (
                "Use only tools you really have. Where the step needs one that is missing, say so in your notes and do"
                " the part that is possible."
            ),
        ),
        verify=("Nothing is reported that a missing tool kept you from doing.",),
    ),
    Feature(
        feature_id="wr.features.memory_context",
        title="Memory",
        purpose="The agent first looks up what earlier sessions learnt, and keeps what this one learns.",
        config=(ConfigField(name="maxQueries", type="integer", default=2, minimum=1, maximum=10),),
        procedure=(
            (
                "If your client has a memory tool, look up what it holds on this subject first, with at most"
                " {maxQueries} queries; say in your notes what you took from it."
            ),
        ),
        verify=("What will matter in a later session stands in your notes, not only in this chat.",),
    ),
    Feature(
        feature_id="wr.features.subagent_guidance",
        title="Subagents",
        purpose="The agent gives work that can be split to subagents of the client, in the right way.",
        config=(ConfigField(name="maxSubagents", type="integer", default=3, minimum=1, maximum=12),),
        constraints=(
            (
                "Delegate with your client's own subagent tool, at most {maxSubagents} at a time, all started in one"
                " message. Do not call `start_workflow` for delegated work."
            ),
            (
                "Give each subagent everything it needs to know: it does not see this chat. You stay responsible for"
                " what it brings back."
            ),
        ),
        verify=("What subagents reported was checked by you before it went into your notes.",),
    ),
)

FEATURES: Mapping[str, Feature] = MappingProxyType({feature.feature_id: feature for feature in _ALL})
"""Every feature by its id, in the order of the ids."""
