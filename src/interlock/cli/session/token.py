"""What a token that a person gives refers to."""

from dataclasses import dataclass

from interlock.kernel.ids import NodeId, RunId, SessionId
from interlock.record.short_tokens import ShortRef, verified
from interlock.record.tokens import TokenFault
from interlock.service.tokens import whole_reference
from interlock.store.ports import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Referred:
    """The session of a token; its run and node where the session is there and holds them."""

    session: SessionId
    run: RunId | None = None
    node: NodeId | None = None


def referred(store: Store, text: str) -> Referred | TokenFault:
    """Return what a token of either format refers to, or why it is none of this data directory.

    Raises:
        SessionUnhealthyError, StoreFailureError: The session of a short one cannot be read.
    """
    ring = store.keys()
    found = verified(text, ring.keys() if ring is not None else ())
    if isinstance(found, TokenFault):
        return found
    if not isinstance(found, ShortRef):
        return Referred(session=found.session, run=found.run, node=found.node)
    session = store.load(found.session)
    whole = whole_reference(session, found) if session is not None else None
    if whole is None:
        return Referred(session=found.session)
    return Referred(session=found.session, run=whole.run, node=whole.node)
