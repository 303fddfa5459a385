"""The recap: the newest notes on the way to a node, within a budget (D19, locks 18.1)."""

import re
from collections.abc import Callable, Iterator

from interlock.kernel.budgets import RECAP_BYTES_MAX
from interlock.kernel.text import TRUNCATION_MARKER, truncated, utf8_bytes
from interlock.record.payloads import NotesPayload
from interlock.views.session import Node, Output, Session

_NODES_WALKED_MAX = 200
"""A run without notes must not cost its whole length."""
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})(.*)")
"""What opens a block of code, and what closes one that was opened with no more of the same."""
_ROOM_MIN = 200
"""A cut of less than this says nothing."""


def notes_of_attempt(node: Node) -> str | None:
    """Return the notes of the attempt that made a node."""
    return next((_text(output) for output in node.outputs if _is_notes(output) and not output.is_of_checkpoint), None)


def notes_of_checkpoint(node: Node) -> str | None:
    """Return the notes of the last checkpoint of a node that brought any."""
    output = current_output(node, "recap")
    return _text(output) if output is not None and output.is_of_checkpoint else None


def current_notes(node: Node) -> str | None:
    """Return a node's current notes: the latest that no later output supersedes (locks 2.1)."""
    output = current_output(node, "recap")
    return _text(output) if output is not None else None


def closed(notes: str) -> str:
    """Return notes in which no block of code stays open: what follows them is not part of it."""
    opened = ""
    for line in notes.split("\n"):
        found = _FENCE.match(line)
        if found is None:
            continue
        mark, rest = found[1], found[2]
        if not opened and (mark[0] == "~" or "`" not in rest):
            opened = mark
        elif opened and mark.startswith(opened) and not rest.strip():
            opened = ""
    return f"{notes}\n{opened}" if opened else notes


def cut_closed(text: str, bytes_max: int, marker: str = TRUNCATION_MARKER) -> str:
    """Return the text cut to a budget, with no block of code left open, the mark that closes one counted in."""
    kept, room = truncated(text, bytes_max, marker), bytes_max
    while utf8_bytes(whole := closed(kept)) > bytes_max:
        room -= max(utf8_bytes(whole) - bytes_max, 1)
        if room < utf8_bytes(marker):
            return marker
        kept = truncated(text, room, marker)
    return whole


def _is_notes(output: Output) -> bool:
    return isinstance(output.payload, NotesPayload)


def _text(output: Output) -> str | None:
    return output.payload.notes_markdown if isinstance(output.payload, NotesPayload) else None


def current_output(node: Node, channel: str) -> Output | None:
    """Return the current output of a channel: the latest one that is not superseded (locks 2.1)."""
    superseded = {output.supersedes for output in node.outputs}
    live = [output for output in node.outputs if output.channel == channel and output.output_id not in superseded]
    return live[-1] if live else None


def nodes_above(session: Session, node: Node) -> Iterator[Node]:
    """Yield a node and those on the way to it, the nearest first, as far as a recap looks back."""
    for _ in range(_NODES_WALKED_MAX):
        yield node
        if node.parent is None:
            return
        node = session.nodes[node.parent]


def recap(
    session: Session,
    node: Node,
    title_of: Callable[[Node], str],
    *,
    above: Node | None = None,
    bytes_max: int = RECAP_BYTES_MAX,
) -> str | None:
    """Return what was done on the way to a node, newest first, cut at the budget; None if nothing was noted.

    Args:
        session: The session's facts.
        node: Where the recap ends; notes of refused attempts are left out.
        title_of: The title of the step that was pending at a node.
        above: Where it begins: what was done on the way to this node is left out.
        bytes_max: UTF-8 bytes of the whole.
    """
    parts: list[str] = []
    room = bytes_max - utf8_bytes(TRUNCATION_MARKER)
    here = node
    for _ in range(_NODES_WALKED_MAX):
        if here.parent is None or (above is not None and here.node == above.node):
            return "\n\n".join(parts) or None
        parent = session.nodes[here.parent]
        notes = notes_of_attempt(here) if here.kind == "step" else None
        if notes is not None:
            part = f"**{title_of(parent)}**\n{closed(notes)}"
            if utf8_bytes(part) + 2 > room:
                if room >= _ROOM_MIN:
                    parts.append(cut_closed(part, room, marker=""))
                return "\n\n".join(parts) + TRUNCATION_MARKER
            parts.append(part)
            room -= utf8_bytes(part) + 2
        here = parent
    return "\n\n".join(parts) + TRUNCATION_MARKER if parts else None
