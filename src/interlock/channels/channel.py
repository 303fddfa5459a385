"""What a channel is: where the user lets intents go, and what became of one (WORLD-6)."""

from collections.abc import Mapping
from typing import Literal, Protocol

from interlock.kernel.budgets import CHANNEL_TIMEOUT_S
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import SourceKind

ChannelKind = Literal["command", "http", "file", "mcp"]
Delivery = Literal["at_most_once", "at_least_once"]
Outcome = Literal["delivered", "refused", "failed", "unknown"]
ChannelSource = Literal[SourceKind, "imported"]
"""What a channel names as a source: a kind of source of workflows, or `imported` for the runs of imported sessions."""
DEFAULT_SOURCES: tuple[ChannelSource, ...] = ("bundled", "user")
"""The sources whose workflows reach a channel that names none: not those of a project, which others can change."""


@frozen
class ChannelConfig:
    """A channel as the user configured it. `accepts` are kinds of intents, `sources` kinds of sources of workflows.

    A channel of the kind `command` has an argv, `http` a URL, `file` an absolute path, `mcp` an argv and a tool.
    """

    name: str
    kind: ChannelKind
    accepts: tuple[str, ...]
    sources: tuple[ChannelSource, ...] = DEFAULT_SOURCES
    command: tuple[str, ...] = ()
    url: str | None = None
    path: str | None = None
    tool: str | None = None
    timeout_s: int = CHANNEL_TIMEOUT_S
    delivery: Delivery = "at_most_once"


@frozen
class Message:
    """What is sent: canonical JSON, which names the intent, and the id of the intent, which is equal in every try."""

    intent_id: str
    body: bytes


@frozen
class Result:
    """What became of one try. `unknown`: it may have arrived. `reply` is the answer, if it is a JSON object."""

    outcome: Outcome
    note: str | None = None
    reply: Mapping[str, Json] | None = None


class Channel(Protocol):
    """Sends one message and waits for the outcome, at most `timeout_s`."""

    def deliver(self, message: Message) -> Result:
        """Send a message. Never raises for what the other side does."""
        ...


def owner_of(channels: tuple[ChannelConfig, ...], sends: str, source: ChannelSource) -> ChannelConfig | str:
    """Return the only channel that takes intents of a kind from a kind of source, or why there is none (WORLD-7)."""
    accepting = [one for one in channels if sends in one.accepts]
    if not accepting:
        return f"no channel accepts `{sends}`"
    found = [one for one in accepting if source in one.sources]
    if not found:
        names = ", ".join(f"`{one.name}`" for one in accepting)
        if source == "imported":
            return (
                f"{names} accepts `{sends}`, but not from imported sessions: their bundle may come from somebody else."
                " Add `imported` to its `sources` if all your imports may send, or abandon the intent"
            )
        return f"{names} accepts `{sends}`, but not from workflows of the source `{source}`"
    if len(found) > 1:
        return f"several channels accept `{sends}`: {', '.join(f'`{one.name}`' for one in found)}"
    return found[0]
