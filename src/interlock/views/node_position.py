"""Where a node stands (ADV-8, ADV-9): at its own step, at a refused attempt of it, or behind it because it is done."""

from dataclasses import dataclass, replace

from interlock.kernel.budgets import ATTEMPTS_PER_STEP_MAX
from interlock.kernel.ids import AttemptId, NodeId, ack_attempt, fork_attempt, node_of_attempt
from interlock.record.outcome import Blocked, BlockerReport
from interlock.views.session import Node, Session


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePosition:
    """Where an addressed node stands.

    `first` is the step node that its chain of refused attempts begins with, `last` where the chain ends;
    `passed_to` the node its ordinary attempt advanced to, if it did; `blockers` why the last attempt was refused.
    """

    first: Node
    last: Node
    passed_to: NodeId | None
    blockers: BlockerReport | None

    @property
    def is_used_up(self) -> bool:
        """Say whether no further refused attempt would be recorded, so that only a fork goes on (BLK-5)."""
        return self.passed_to is None and self.last.refusals >= ATTEMPTS_PER_STEP_MAX - 1


def node_position(session: Session, node: NodeId) -> NodePosition:
    """Return where a node stands: follow its ordinary attempt through the refused ones. At most ten hops."""
    here = session.nodes[node]
    if here.kind == "checkpoint":
        assert here.parent is not None, "a checkpoint is always of a node"
        here = session.nodes[here.parent]
    first = chain_head(session, here)
    while True:
        advance = session.advance(here.node, ack_attempt(here.node))
        if advance is None:
            return NodePosition(first=first, last=here, passed_to=None, blockers=refusal_of(session, here))
        if not isinstance(advance.outcome, Blocked):
            return NodePosition(first=first, last=here, passed_to=advance.outcome.to_node_id, blockers=None)
        here = session.nodes[node_of_attempt(advance.attempt)]


def chain_head(session: Session, node: Node) -> Node:
    """Return the step node that a chain of refused attempts begins with; the node itself if it is none."""
    while node.kind != "step":
        assert node.parent is not None, "only step nodes are roots"
        node = session.nodes[node.parent]
    return node


def refusal_of(session: Session, node: Node) -> BlockerReport | None:
    """Return why the attempt that made this node was refused, if it was."""
    if node.kind != "blocked_attempt" or node.parent is None:
        return None
    parent = session.nodes[node.parent]
    for attempt in attempts_on(parent):
        advance = session.advance(parent.node, attempt)
        if node_of_attempt(attempt) == node.node and advance is not None and isinstance(advance.outcome, Blocked):
            return advance.outcome.blockers
    return None


def attempts_on(node: Node) -> list[AttemptId]:
    """Return the attempts that may be recorded on a node: the ordinary one, then its forks."""
    return [ack_attempt(node.node), *(fork_attempt(node.node, number) for number in range(node.forks))]


def is_ancestor(session: Session, ancestor: Node, node: Node) -> bool:
    """Say whether a node lies on the way from the root to another, or is that other."""
    while node.depth > ancestor.depth:
        assert node.parent is not None, "only roots have depth 0"
        node = session.nodes[node.parent]
    return node.node == ancestor.node


def tip_below(session: Session, node: Node) -> NodeId:
    """Return the preferred tip among a node's descendants: the run's if it is one, else the newest leaf below."""
    run_tip = session.runs[node.run].tip
    assert run_tip is not None, "a run with a node has a tip"
    if is_ancestor(session, node, session.nodes[run_tip]):
        return run_tip
    newest, below = node, [node]
    while below:
        newest = max(newest, *below, key=lambda one: one.index)
        below = [session.nodes[child] for one in below for child in one.children]
    return newest.node


@dataclass(frozen=True, slots=True, kw_only=True)
class PathStep:
    """One step on the way: the node that handed it out, its refused attempts, and the node that its end led to.

    `passed_to` is None at the end of the way, where a step is pending or the run is complete.
    """

    at: Node
    refused: tuple[Node, ...] = ()
    passed_to: Node | None = None


def path_to(session: Session, node: Node) -> tuple[PathStep, ...]:
    """Return the way from the root to a node, its own step last."""
    path = [node]
    while path[-1].parent is not None:
        path.append(session.nodes[path[-1].parent])
    legs: list[PathStep] = []
    for here in reversed(path):
        if here.kind != "step":
            legs[-1] = replace(legs[-1], refused=(*legs[-1].refused, here))
            continue
        if legs:
            legs[-1] = replace(legs[-1], passed_to=here)
        legs.append(PathStep(at=here))
    return tuple(legs)
