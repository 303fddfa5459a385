"""`interlock session explain`: why a run is at a step."""

import argparse

from interlock.cli.options import add_store_options
from interlock.cli.screen import StopError, say, say_json
from interlock.cli.session.chosen import referred
from interlock.cli.store import answered_by_store, open_chosen_reader
from interlock.kernel.budgets import ECHO_BYTES_MAX
from interlock.kernel.errors import ErrorCode
from interlock.kernel.ids import NodeId
from interlock.kernel.text import one_line
from interlock.record.tokens import TokenFault
from interlock.service.audit.explain import Explanation, explain
from interlock.service.run.history import session_of_node
from interlock.service.run.plans import Plans
from interlock.store.ports.store import StoreReader
from interlock.views.session import Node, Session


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_store_options(parser)
    parser.add_argument("node", metavar="NODE|TOKEN", help="a node id, or a stateToken or ackToken of the node")


def run(options: argparse.Namespace) -> int:
    """Print each condition with its inputs and result, what was set, and the gaps."""
    store = open_chosen_reader(options)
    with answered_by_store():
        explanation = explain(store, Plans(store), *_find_node(store, options.node))
    if options.as_json:
        say_json(explanation.to_json())
    else:
        _say(explanation)
    return 0


def _say(explanation: Explanation) -> None:
    say(f"{explanation.node} of {explanation.session}: {explanation.title}")
    parts = {
        "Refused": explanation.refusal,
        "Decided": explanation.decisions,
        "Set": explanation.effects,
        "Gaps": explanation.gaps,
        "In short": explanation.reasons,
    }
    for head, lines in parts.items():
        if lines:
            say(f"{head}:\n" + "\n".join(f"  {line}" for line in lines))
    if not any(parts.values()):
        say("No decision led here: it is the next step of the plan.")


def _find_node(store: StoreReader, wanted: str) -> tuple[Session, Node]:
    """Find the node that an id or a token names, with its session.

    Raises:
        StopError: It is neither an id nor a token, or the node does not exist.
        SessionUnhealthyError: The session that the token names does not verify.
    """
    if wanted.startswith("node_"):
        node = NodeId(wanted)
        session = session_of_node(store, node)
    else:
        found = referred(store, wanted)
        if isinstance(found, TokenFault):
            shown = one_line(wanted, ECHO_BYTES_MAX)
            raise StopError(f"{shown!r} is neither a node id nor a token of this data directory.", _WANTED, exit_code=1)
        session, node = store.load(found.session), found.node or NodeId(wanted)
    if session is None or node not in session.nodes:
        message = f"No intact session contains the node {one_line(node, ECHO_BYTES_MAX)!r}."
        raise StopError(message, _WANTED, exit_code=1, code=ErrorCode.SESSION_NOT_FOUND)
    return session, session.nodes[node]


_WANTED = "Give a node id (`node_…`), or a token from an answer of this data directory."
