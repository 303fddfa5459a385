"""A run as a graph, and its status."""

from tests.support.record import RUN, SESSION, WORKFLOW_HASH, History, build_snapshot, complete, running

from interlock.kernel.ids import NodeId
from interlock.record.outcome import OutputContractPointer, build_report
from interlock.record.snapshot import ExecutionSnapshot
from interlock.views.evolution import evolve
from interlock.views.node_position import refusal_of
from interlock.views.run_graph import leaves, newest_part, run_graph
from interlock.views.session import Session, new_session
from interlock.views.status import run_status


def fold(history: History) -> Session:
    session = new_session(SESSION)
    for event in history.events:
        session = evolve(session, event)
    return session


def forked() -> tuple[Session, list[NodeId]]:
    """A run with a refused attempt, two steps on, and a fork of its root."""
    history = History()
    root = history.start()
    refused = history.advance(root, is_refused=True)
    second = history.advance(refused)
    fork = history.advance(root)
    return fold(history), [root, refused, second, fork]


def test_a_graph_holds_every_node_once_and_marks_the_preferred_tip() -> None:
    session, (root, refused, second, fork) = forked()
    graph = run_graph(session, RUN)
    assert graph.node.node == root
    assert [child.node.node for child in graph.children] == [refused, fork]
    assert [leaf.node.node for leaf in leaves(graph)] == [second, fork]
    assert [leaf.is_tip for leaf in leaves(graph)] == [False, True]


def test_the_newest_part_of_a_run_ends_at_its_preferred_tip_and_has_so_many_nodes() -> None:
    history = History()
    root = history.start()
    first = history.advance(root)
    second = history.advance(first)
    tip = history.advance(second)
    graph = run_graph(fold(history), RUN)
    parts = [newest_part(graph, nodes_max).node.node for nodes_max in (0, 1, 2, 3, 4, 9)]
    assert parts == [tip, tip, second, first, root, root]
    _, (root, _, _, fork) = forked()
    graph = run_graph(forked()[0], RUN)
    assert [newest_part(graph, nodes_max).node.node for nodes_max in (1, 3, 4)] == [fork, fork, root]


def test_a_run_is_complete_blocked_or_in_progress_by_its_tip() -> None:
    session, (root, refused, *_) = forked()

    running_on: ExecutionSnapshot = build_snapshot(WORKFLOW_HASH, running("first"))
    assert (
        run_status(session, session.nodes[root], build_snapshot(WORKFLOW_HASH, complete("first", "second")))
        == "complete"
    )
    assert run_status(session, session.nodes[root], running_on) == "in_progress"
    assert run_status(session, session.nodes[refused], running_on) == "blocked"


def test_why_an_attempt_was_refused_is_reported_by_its_node_alone() -> None:
    session, (root, refused, *_) = forked()
    result = refusal_of(session, session.nodes[refused])
    assert result is not None
    assert isinstance(result.blockers[0].pointer, OutputContractPointer)
    assert build_report(list(result.blockers)) == result
    assert refusal_of(session, session.nodes[root]) is None
