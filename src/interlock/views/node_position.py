"""The position of a node (ADV-8, ADV-9): its step is pending, its last attempt was refused, or its step is done."""

from collections.abc import Iterator
from itertools import zip_longest

from interlock.kernel.budgets import ATTEMPTS_PER_STEP_MAX
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import AttemptId, NodeId, ack_attempt, fork_attempt, node_of_attempt
from interlock.record.outcome import Blocked, BlockerReport
from interlock.views.session import Advance, BrokenHistoryError, Node, Session


@frozen
class NodePosition:
    """The position of a node in its chain of refused attempts.

    `first` is the step node that starts the chain, `last` is the end of the chain. `passed_to` is the node that the
    ordinary attempt advanced to; None if the step is not done. `blockers` say why the last attempt was refused.
    """

    first: Node
    last: Node
    passed_to: NodeId | None
    blockers: BlockerReport | None

    @property
    def is_used_up(self) -> bool:
        """Whether the limit of refused attempts is reached, so that only a fork can continue (BLK-5)."""
        return self.passed_to is None and self.last.refusals >= ATTEMPTS_PER_STEP_MAX - 1


def node_position(session: Session, node: NodeId) -> NodePosition:
    """Follow the ordinary attempts from a node through the refused ones, and return its position.

    The limit of attempts per step bounds the loop.
    """
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
    """Return the step node that starts the chain of refused attempts of a node; a step node itself."""
    while node.kind != "step":
        assert node.parent is not None, "only step nodes are roots"
        node = session.nodes[node.parent]
    return node


def refusal_of(session: Session, node: Node) -> BlockerReport | None:
    """Return why the attempt that made this node was refused, if it was."""
    if node.kind != "blocked_attempt":
        return None
    outcome = advance_to(session, node).outcome
    return outcome.blockers if isinstance(outcome, Blocked) else None


def advance_to(session: Session, node: Node) -> Advance:
    """Return the recorded attempt that made a node, which is neither a root nor a checkpoint."""
    assert node.parent is not None, "a root is made by no attempt"
    parent = session.nodes[node.parent]
    for attempt in attempts_on(parent):
        advance = session.advance(parent.node, attempt)
        if advance is not None and advance.child == node.node:
            return advance
    raise BrokenHistoryError(f"{node.node} was made by no recorded attempt")


def attempts_on(node: Node) -> list[AttemptId]:
    """Return the attempts that may be recorded on a node: first the ordinary one, then its forks."""
    return [ack_attempt(node.node), *(fork_attempt(node.node, number) for number in range(node.forks))]


def is_ancestor(session: Session, ancestor: Node, node: Node) -> bool:
    """Return whether `ancestor` is on the path from the root to `node`; a node is its own ancestor."""
    while node.depth > ancestor.depth:
        assert node.parent is not None, "only roots have depth 0"
        node = session.nodes[node.parent]
    return node.node == ancestor.node


def tip_below(session: Session, node: Node) -> NodeId:
    """Return the preferred tip at or below a node: the run's tip if it is there, else the newest descendant."""
    run_tip = session.runs[node.run].tip
    assert run_tip is not None, "a run with a node has a tip"
    if is_ancestor(session, node, session.nodes[run_tip]):
        return run_tip
    newest, generation = node, [node]
    while generation:
        newest = max(newest, *generation, key=lambda one: one.index)
        generation = [session.nodes[child] for one in generation for child in one.children]
    return newest.node


@frozen
class PathStep:
    """One step of a path: the node at which it was pending, its refused attempts, and the node that followed it.

    `passed_to` is None at the end of the path, where a step is pending or the run is complete.
    """

    at: Node
    refused: tuple[Node, ...] = ()
    passed_to: Node | None = None


def walk_up(session: Session, node: Node) -> Iterator[Node]:
    """Yield a node and its ancestors, nearest first."""
    yield node
    while node.parent is not None:
        node = session.nodes[node.parent]
        yield node


def path_to(session: Session, node: Node) -> tuple[PathStep, ...]:
    """Return the path from the root to a node, step by step; the node's own step is last."""
    steps: list[tuple[Node, list[Node]]] = []
    for here in reversed([*walk_up(session, node)]):
        if here.kind == "step":
            steps.append((here, []))
        else:
            steps[-1][1].append(here)
    following = [at for at, _ in steps[1:]]
    return tuple(
        PathStep(at=at, refused=tuple(refused), passed_to=passed_to)
        for (at, refused), passed_to in zip_longest(steps, following)
    )
