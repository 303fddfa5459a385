"""The recap: the newest notes on the path to a node, within a budget (ANS-6, REC-1)."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from interlock.engine.template import title_in_code
from interlock.kernel.budgets import RECAP_NODES_MAX, RECAP_PART_BYTES_MIN
from interlock.kernel.frozen import frozen, replace
from interlock.kernel.ids import NodeId
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


@frozen
class RecapPart:
    """The `recap_part` of a step. With `is_fixed`, its text never changes.

    `above` is the node at which the step was pending, `nodes` nodes above where the part before it ended.
    """

    text: str
    above: NodeId
    nodes: int
    is_fixed: bool


def recap_parts(
    session: Session,
    node: Node,
    part_of: Callable[[Node, str], tuple[str, bool]],
    *,
    above: Node | None = None,
    known: Callable[[Node], Sequence[RecapPart]] = lambda _: (),
) -> Iterator[RecapPart | None]:
    """Yield the parts of the path to a node, newest first; at the end None, if the path is longer than a recap reads.

    Args:
        session: The session.
        node: The end of the path. Notes of refused attempts are left out.
        part_of: Returns the `recap_part` of the step that was pending at a node, and of its notes, and whether it is
            fixed.
        above: The start of the path: notes of this node and of earlier ones are left out.
        known: Returns the first parts of the path to a node, if they are known.
    """
    here, left, nodes = node, RECAP_NODES_MAX, 0
    while left > 0:
        if here.parent is None or (above is not None and here.node == above.node):
            return
        found = known(here)
        for part in found:
            left -= part.nodes
            if left < 0:
                yield None
                return
            yield replace(part, nodes=part.nodes + nodes) if nodes else part
            nodes = 0
        if found:
            here = session.nodes[found[-1].above]
            continue
        parent = session.nodes[here.parent]
        notes = notes_of_attempt(here) if here.kind == "step" else None
        left, nodes = left - 1, nodes + 1
        if notes is not None:
            text, is_fixed = part_of(parent, notes)
            yield RecapPart(text=text, above=parent.node, nodes=nodes, is_fixed=is_fixed)
            nodes = 0
        here = parent
    yield None


def recap(parts: Iterable[RecapPart | None], bytes_max: int) -> str | None:
    """Return parts as one text of at most so many UTF-8 bytes, cut at the last one; None if there is none."""
    taken, room = list[str](), bytes_max - utf8_bytes(TRUNCATION_MARKER)
    for part in parts:
        if part is None:
            return "\n\n".join(taken) + TRUNCATION_MARKER if taken else None
        size = utf8_bytes(part.text) + 2
        if size > room:
            if room >= RECAP_PART_BYTES_MIN:
                taken.append(truncated(part.text, room, marker=""))
            return "\n\n".join(taken) + TRUNCATION_MARKER
        taken.append(part.text)
        room -= size
    return "\n\n".join(taken) or None
