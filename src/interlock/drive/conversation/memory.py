"""What of a conversation a request holds: the latest messages within a number and a budget of tokens (DRIVE-10).

A call of a tool is never parted from its result, so messages are kept and left out in groups: an assistant's message
with calls and the results of those calls.
"""

from collections.abc import Iterator, Sequence

from interlock.drive.agent.profile import Memory
from interlock.drive.conversation.messages import Message
from interlock.kernel.budgets.drive import CHARS_PER_TOKEN, CUT_MESSAGE_TOKENS_MIN
from interlock.kernel.canonical import canonical_bytes
from interlock.kernel.frozen import frozen
from interlock.kernel.text import truncated


@frozen
class Window:
    """The messages that a request holds, and the older ones that it leaves out."""

    kept: tuple[Message, ...]
    left_out: tuple[Message, ...]


def select_window(messages: Sequence[Message], memory: Memory) -> Window:
    """Return the latest messages that fit. The newest group is always kept, whatever its size.

    `truncate` ends at the first group that does not fit. `sliding` skips such a group and continues with older ones
    that do. `summarize` selects as `truncate` does; the caller replaces what is left out by a summary.
    """
    kept: list[tuple[Message, ...]] = []
    left: list[tuple[Message, ...]] = []
    count, tokens = 0, 0
    groups = list(_groups(messages))
    for at in range(len(groups) - 1, -1, -1):
        group = groups[at]
        size = sum(map(estimate_tokens, group))
        fits = count + len(group) <= memory.window_size and tokens + size <= memory.max_history_tokens
        if kept and not fits:
            left.append(group)
            if memory.summarization != "sliding":
                left += reversed(groups[:at])
                break
            continue
        kept.append(group)
        count, tokens = count + len(group), tokens + size
    return Window(
        kept=tuple(one for group in reversed(kept) for one in group),
        left_out=tuple(one for group in reversed(left) for one in group),
    )


def _groups(messages: Sequence[Message]) -> Iterator[tuple[Message, ...]]:
    """Yield the messages in groups that belong together."""
    group: list[Message] = []
    for message in messages:
        if message.role != "tool" and group:
            yield tuple(group)
            group = []
        group.append(message)
    if group:
        yield tuple(group)


def estimate_tokens(message: Message) -> int:
    """Return how many tokens a message has, roughly: models count differently, so this is an estimate for all."""
    calls = sum(len(canonical_bytes(one.to_json())) for one in message.calls)
    return (len(message.text()) + calls) // CHARS_PER_TOKEN + 1


def summary_source(messages: Sequence[Message], tokens_max: int) -> str:
    """Return the text of messages that a model is to summarise, within a budget."""
    text = "\n\n".join(f"{one.role}: {one.text()}" for one in messages)
    return truncated(text, max(tokens_max, CUT_MESSAGE_TOKENS_MIN) * CHARS_PER_TOKEN)
