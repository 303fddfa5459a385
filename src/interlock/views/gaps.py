"""What is still open on a run: each disclosure that nothing has resolved, where it came from, what would settle it."""

from dataclasses import dataclass

from interlock.kernel.ids import RunId
from interlock.record.payloads import GapReason, GapRecorded
from interlock.views.session import Node, Session
from interlock.views.standing import chain_head

_REDO = "have the agent look at the step again and send the fork that is offered there"
_BY_CATEGORY = {
    "user_only_dependency": f"Give the agent what only you can give, then {_REDO}, with it.",
    "contract_violation": f"Get what was missing or did not fit, then {_REDO}, with it.",
    "capability_missing": f"Make the capability available to the agent, then {_REDO}.",
    "unexpected": f"See why with `interlock session explain`, then {_REDO}.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenGap:
    """A gap that is open, the node it was recorded on, and the node of the step that left it; None for the start."""

    gap: GapRecorded
    node: Node
    step: Node | None


def open_gaps(session: Session, run: RunId) -> tuple[OpenGap, ...]:
    """Return the open gaps of a run in the order of the log (locks 3)."""
    holding = {session.open_gaps[gap] for gap in session.open_gaps}
    nodes = sorted((session.nodes[node] for node in holding), key=lambda node: node.index)
    return tuple(
        OpenGap(gap=gap, node=node, step=_step(session, node))
        for node in nodes
        if node.run == run
        for gap in node.gaps
        if gap.gap_id in session.open_gaps
    )


def remedy(reason: GapReason, *, is_of_start: bool) -> str:
    """Return what would resolve a gap, in words for a person."""
    if is_of_start:
        return "Begin a new run with what is missing: no step of this one asks for it again."
    return _BY_CATEGORY[reason.category]


def _step(session: Session, node: Node) -> Node | None:
    return None if node.parent is None else chain_head(session, session.nodes[node.parent])
