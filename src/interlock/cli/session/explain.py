"""`interlock session explain`: why a run stands where it stands."""

from interlock.cli.screen import StopError, say, say_json
from interlock.cli.session.store import answered_by_store
from interlock.kernel.ids import NodeId
from interlock.record.short_tokens import ShortRef, verified
from interlock.record.tokens import TokenFault
from interlock.service.explain import Explained, explain, session_of_node
from interlock.service.plans import Plans
from interlock.service.tokens import whole_reference
from interlock.store.local.store import LocalStore


def run_explain(store: LocalStore, wanted: str, *, as_json: bool) -> int:
    """Tell each condition with its inputs and the way taken, what was set, what is missing."""
    with answered_by_store():
        node = _node_of(store, wanted)
        session = session_of_node(store, node) if node is not None else None
        if node is None or session is None:
            message = f"No session of this data directory holds the node {wanted[:80]!r}."
            raise StopError(message, "Give a node's id, or a token that this data directory issued.", exit_code=1)
        told = explain(store, Plans(store), session, session.nodes[node])
    if as_json:
        say_json({"session": told.session, "node": told.node, "title": told.title, "capture": dict(told.record)})
    else:
        _say(told)
    return 0


def _say(told: Explained) -> None:
    say(f"{told.node} of {told.session}: {told.title}")
    parts = {
        "Refused": told.refusal,
        "Decided": told.decisions,
        "Set": told.effects,
        "Gaps": told.gaps,
        "In short": told.reasons,
    }
    for head, lines in parts.items():
        if lines:
            say(f"{head}:\n" + "\n".join(f"  {line}" for line in lines))
    if not any(parts.values()):
        say("Nothing was decided on the way here: the plan leads here from the step before.")


def _node_of(store: LocalStore, wanted: str) -> NodeId | None:
    """Return the node that an id or a token names."""
    if wanted.startswith("node_"):
        return NodeId(wanted)
    ring = store.keys()
    found = verified(wanted, ring.keys() if ring is not None else ())
    if isinstance(found, ShortRef):
        session = store.load(found.session)
        ref = whole_reference(session, found) if session is not None else None
        return ref.node if ref is not None else None
    return None if isinstance(found, TokenFault) else found.node
