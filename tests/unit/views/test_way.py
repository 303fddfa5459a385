"""The way to a node: its steps in order, the refused attempts with the step they were made on."""

from tests.support.record import RUN, History

from interlock.kernel.ids import NodeId
from interlock.views.evolution import evolve
from interlock.views.node_position import path_to
from interlock.views.run_graph import run_graph, walk
from interlock.views.session import Session, new_session


def fold(history: History) -> Session:
    session = new_session(history.session)
    for event in history.events:
        session = evolve(session, event)
    return session


def legs(session: Session, node: NodeId) -> list[tuple[NodeId, list[NodeId], NodeId | None]]:
    return [
        (leg.at.node, [one.node for one in leg.refused], leg.passed_to.node if leg.passed_to is not None else None)
        for leg in path_to(session, session.nodes[node])
    ]


def test_the_way_to_a_root_is_its_own_step() -> None:
    history = History()
    root = history.start()
    assert legs(fold(history), root) == [(root, [], None)]


def test_refused_attempts_belong_to_the_step_they_were_made_on() -> None:
    history = History()
    root = history.start()
    second = history.advance(root)
    refused = history.advance(second, is_refused=True)
    again = history.advance(refused, is_refused=True)
    third = history.advance(again)
    session = fold(history)
    assert legs(session, third) == [(root, [], second), (second, [refused, again], third), (third, [], None)]
    assert legs(session, again) == [(root, [], second), (second, [refused, again], None)]


def test_the_way_to_a_branch_leaves_out_the_other() -> None:
    history = History()
    root = history.start()
    history.advance(root)
    branch = history.advance(root)
    assert legs(fold(history), branch) == [(root, [], branch), (branch, [], None)]


def test_a_graph_names_the_checkpoints_of_each_node_in_the_order_they_came() -> None:
    history = History()
    root = history.start()
    first = history.checkpoint(root)
    second = history.advance(root)
    kept = [history.checkpoint(root), history.checkpoint(second)]
    graph = run_graph(fold(history), RUN)
    assert [(here.node.node, [one.node for one in here.checkpoints]) for here in walk(graph)] == [
        (root, [first, kept[0]]),
        (second, [kept[1]]),
    ]
