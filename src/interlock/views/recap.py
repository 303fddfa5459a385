"""The recap: the newest notes on the path to a node, within a budget (ANS-6, REC-1)."""

from collections.abc import Callable, Iterator
from itertools import islice

from interlock.engine.template import title_in_code
from interlock.kernel.budgets import RECAP_BYTES_MAX, RECAP_NODES_MAX, RECAP_PART_BYTES_MIN
from interlock.kernel.text import TRUNCATION_MARKER, quoted, truncated, utf8_bytes
from interlock.record.payloads import ArtifactPayload, NotesPayload
from interlock.views.node_position import walk_up
from interlock.views.session import Node, NodeOutput, Session


def notes_of_attempt(node: Node) -> str | None:
    """Return the notes of the attempt that made a node."""
    for output in node.outputs:
        if isinstance(output.payload, NotesPayload) and not output.is_of_checkpoint:
            return output.payload.notes_markdown
    return None


def notes_of_checkpoint(node: Node) -> str | None:
    """Return the notes of a node's last checkpoint with notes."""
    output = current_output(node, "recap")
    return _text(output) if output is not None and output.is_of_checkpoint else None


def current_notes(node: Node) -> str | None:
    """Return a node's current notes: the latest that no later output supersedes (READ-5)."""
    output = current_output(node, "recap")
    return _text(output) if output is not None else None


def latest_notes(session: Session, node: Node) -> str | None:
    """Return a node's current notes. After a refusal: the latest refused ones, then the step's (RES-8)."""
    found = list[str]()
    while True:
        notes = current_notes(node)
        is_of_step = node.kind != "blocked_attempt" or node.parent is None
        if notes is not None and (is_of_step or not found):
            found.append(notes)
        if is_of_step:
            return "\n\n".join([one.removesuffix(TRUNCATION_MARKER) for one in found[:-1]] + found[-1:]) or None
        node = session.nodes[node.parent or node.node]


def _text(output: NodeOutput) -> str | None:
    return output.payload.notes_markdown if isinstance(output.payload, NotesPayload) else None


def current_output(node: Node, channel: str) -> NodeOutput | None:
    """Return the current output of a channel: the latest one that is not superseded (READ-5)."""
    superseded = {output.supersedes for output in node.outputs}
    live = [output for output in node.outputs if output.channel == channel and output.output_id not in superseded]
    return live[-1] if live else None


def nodes_above(session: Session, node: Node) -> Iterator[Node]:
    """Return a node and its ancestors, nearest first, at most as many as a recap reads."""
    return islice(walk_up(session, node), RECAP_NODES_MAX)


def nodes_with_artifacts(session: Session, node: Node) -> Iterator[Node]:
    """Yield those of `nodes_above` that have artifacts. It ends with the last artifact of the run."""
    unseen = session.runs[node.run].artifacts
    for here in nodes_above(session, node) if unseen else ():
        found = sum(isinstance(output.payload, ArtifactPayload) for output in here.outputs)
        if found:
            yield here
        unseen -= found
        if not unseen:
            return


def recap_part(title: str, notes: str) -> str:
    """Return the notes of one step under its title: quoted and in code, so they are not taken for Interlock's text."""
    return f"{title_in_code(title)}:\n{quoted(notes)}"


def recap(
    session: Session,
    node: Node,
    part_of: Callable[[Node, str], str],
    *,
    above: Node | None = None,
    bytes_max: int = RECAP_BYTES_MAX,
) -> str | None:
    """Return the notes on the path to a node, newest first, cut at the budget; None if there are no notes.

    Args:
        session: The session.
        node: The end of the path. Notes of refused attempts are left out.
        part_of: Returns the `recap_part` of the step that was pending at a node, and of its notes.
        above: The start of the path: notes of this node and of earlier ones are left out.
        bytes_max: Limit of the whole text in UTF-8 bytes, including the quote marks.
    """
    parts: list[str] = []
    room = bytes_max - utf8_bytes(TRUNCATION_MARKER)
    here = node
    for _ in range(RECAP_NODES_MAX):
        if here.parent is None or (above is not None and here.node == above.node):
            return "\n\n".join(parts) or None
        parent = session.nodes[here.parent]
        notes = notes_of_attempt(here) if here.kind == "step" else None
        if notes is not None:
            part = part_of(parent, notes)
            size = utf8_bytes(part) + 2
            if size > room:
                if room >= RECAP_PART_BYTES_MIN:
                    parts.append(truncated(part, room, marker=""))
                return "\n\n".join(parts) + TRUNCATION_MARKER
            parts.append(part)
            room -= size
        here = parent
    return "\n\n".join(parts) + TRUNCATION_MARKER if parts else None
