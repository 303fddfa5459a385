"""The way to a node: each step on it, with the attempts that were refused before it was done."""

from dataclasses import dataclass, replace

from interlock.views.session import Node, Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Leg:
    """One step on the way: the node that handed it out, its refused attempts, and the node that its end led to.

    `passed_to` is None at the end of the way, where a step is pending or the run is complete.
    """

    at: Node
    refused: tuple[Node, ...] = ()
    passed_to: Node | None = None


def way_to(session: Session, node: Node) -> tuple[Leg, ...]:
    """Return the way from the root to a node, its own step last."""
    path = [node]
    while path[-1].parent is not None:
        path.append(session.nodes[path[-1].parent])
    legs: list[Leg] = []
    for here in reversed(path):
        if here.kind != "step":
            legs[-1] = replace(legs[-1], refused=(*legs[-1].refused, here))
            continue
        if legs:
            legs[-1] = replace(legs[-1], passed_to=here)
        legs.append(Leg(at=here))
    return tuple(legs)
