"""Selects one branch of a run: its run, and the node at its end."""

import argparse

from interlock.cli.screen import StopError
from interlock.cli.session.chosen import chosen_run, referred
from interlock.cli.store import answered_by_store, open_chosen_reader
from interlock.kernel.budgets import ECHO_BYTES_MAX
from interlock.kernel.errors import ErrorCode
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import NodeId
from interlock.kernel.text import one_line
from interlock.record.tokens import TokenFault
from interlock.service.run.context import RunContext, load_run_context
from interlock.service.run.lifecycle import read_lifecycle
from interlock.service.run.plans import Plans
from interlock.store.ports.store import StoreReader
from interlock.views.lifecycle.projection import Lifecycle
from interlock.views.session import Node, Session

RUN_HELP = "a session id, a run label or id, a node id, or a token (default: the only session)"


@frozen
class Branch:
    """A run, the node at the end of the branch, and the lifecycle to this node."""

    run: RunContext
    tip: Node
    lifecycle: Lifecycle


def add_branch_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that name a branch."""
    parser.add_argument("session", metavar="RUN", nargs="?", help=RUN_HELP)
    tip = "the end of another branch: a node id or a token of it (default: the newest node of the run)"
    parser.add_argument("--tip", metavar="NODE|TOKEN", help=tip)


def read_chosen_branch(options: argparse.Namespace) -> Branch:
    """Open the store and read the branch that the arguments of `add_branch_arguments` name.

    Raises:
        StopError: See `chosen_branch`, or the store cannot answer.
    """
    store = open_chosen_reader(options)
    with answered_by_store():
        return chosen_branch(store, Plans(store), options.session, options.tip)


def chosen_branch(store: StoreReader, plans: Plans, name: str | None, tip: str | None) -> Branch:
    """Return the branch that a name and the end of a branch refer to.

    Raises:
        StopError: No run or more than one matches, or the node is not of this run.
        SessionUnhealthyError, ContentDamagedError, StoreFailureError: See `answered_by_store`.
    """
    session, run = chosen_run(store, plans, name or tip)
    assert run.tip is not None, "a run begins with its root"
    node = _named_node(store, session, tip) if tip is not None else run.tip
    if node not in session.nodes or session.nodes[node].run != run.run:
        message = f"{one_line(tip or node, ECHO_BYTES_MAX)!r} names no node of run {session.label(run.run)}."
        fix = "`interlock session graph` shows the nodes of a run."
        raise StopError(message, fix, exit_code=1, code=ErrorCode.SESSION_NOT_FOUND)
    end = session.nodes[node]
    if end.kind == "checkpoint" and end.parent is not None:
        end = session.nodes[end.parent]
    run_context = load_run_context(session, run, plans)
    return Branch(run=run_context, tip=end, lifecycle=read_lifecycle(store, run_context, end))


def _named_node(store: StoreReader, session: Session, tip: str) -> NodeId:
    if tip.startswith("node_"):
        return NodeId(tip)
    found = referred(store, tip)
    if isinstance(found, TokenFault) or found.session != session.session or found.node is None:
        fix = f"Give a node id (`node_…`) or a token of {session.session}."
        raise StopError(f"{one_line(tip, ECHO_BYTES_MAX)!r} names no node of this session.", fix, exit_code=1)
    return found.node
