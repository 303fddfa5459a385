"""A run's status, from its end or its preferred tip (READ-4)."""

from interlock.kernel.frozen import frozen
from interlock.kernel.ids import RunId
from interlock.record.payloads import GapReason, GapRecorded
from interlock.record.snapshot import Complete, ExecutionSnapshot
from interlock.views.node_position import chain_head
from interlock.views.session import Node, Session
from interlock.views.summary import RunStatus


def run_status(session: Session, tip: Node, snapshot: ExecutionSnapshot) -> RunStatus:
    """Return the status of a run: how it ended, or else what its preferred tip, the tip's snapshot and its gaps say.

    A gap never blocks: the step that left it was passed, and the next attempt is accepted (READ-7).
    """
    ended = session.runs[tip.run].ended
    if ended is not None:
        return ended.kind
    has_critical_gaps = session.runs[tip.run].critical > 0
    if isinstance(snapshot.state, Complete):
        return "complete_with_gaps" if has_critical_gaps else "complete"
    return "blocked" if tip.kind == "blocked_attempt" and not tip.preferences.never_stops else "in_progress"


_REDO = "tell the agent to redo this step on a new branch"
_BY_CATEGORY = {
    "user_only_dependency": f"Answer or approve what the step needs, then {_REDO}.",
    "contract_violation": f"Correct what was missing or invalid, then {_REDO}.",
    "capability_missing": f"Make the capability available, then {_REDO}.",
    "unexpected": f"Find the cause with `interlock session explain`, then {_REDO}.",
}


@frozen
class OpenGap:
    """An open gap, the node on which it was recorded, and the node of its step; None if the start recorded it."""

    gap: GapRecorded
    node: Node
    step: Node | None


def open_gaps(session: Session, run: RunId) -> tuple[OpenGap, ...]:
    """Return the open gaps of a run in the order of the log (GAP-2)."""
    holding = {session.open_gaps[gap] for gap in session.open_gaps}
    nodes = sorted((session.nodes[node] for node in holding), key=lambda node: node.index)
    return tuple(
        OpenGap(gap=gap, node=node, step=_step_of_gap(session, node))
        for node in nodes
        if node.run == run
        for gap in node.gaps
        if gap.gap_id in session.open_gaps
    )


def remedy(reason: GapReason, *, is_of_start: bool) -> str:
    """Return what a person can do to resolve a gap."""
    if is_of_start:
        return "Begin a new run with what is missing: no step of this run asks for it again."
    return _BY_CATEGORY[reason.category]


def _step_of_gap(session: Session, node: Node) -> Node | None:
    return None if node.parent is None else chain_head(session, session.nodes[node.parent])
