"""What a wrong token was meant to be: the one that it nearly is, or one of the run that the call names (ANS-15).

Nothing here is applied: what is found is told, and the caller sends it or does not. A token is only completed for who
had nearly all of it, the signature included, so nothing is told that could not be read off the token that was issued.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import nlargest

from interlock.kernel.budgets import NEAR_TOKEN_CHARS_MAX, NEAR_TOKEN_NODES_MAX
from interlock.kernel.canonical import Json
from interlock.kernel.ids import RunId, SessionId
from interlock.record.base import UnknownVersionError
from interlock.record.short_tokens import decode_token
from interlock.service.ports import ReadPorts
from interlock.service.run.context import RunContext, load_run_context
from interlock.service.tokens.mint import Argument, Mint
from interlock.store.ports.errors import ContentDamagedError, SessionUnhealthyError
from interlock.views.node_position import node_position
from interlock.views.session import Node, Run, Session

_UNREADABLE = (SessionUnhealthyError, ContentDamagedError, UnknownVersionError)
_LABELLED = re.compile(r"(?:st|ack|chk)_([0-9a-z]{4})(?:[0-9a-z]{2})?", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTokens:
    """A run of a session, and what mints its tokens."""

    scene: RunContext
    mint: Mint

    @property
    def label(self) -> str:
        """The run's label."""
        return self.scene.session.label(self.scene.run.run)

    def look(self) -> dict[str, Json]:
        """Return the arguments of `continue_workflow` that show where the run stands."""
        return {"stateToken": self.mint.state(self._tip.node), "run": self.label}

    def current(self, argument: Argument, node: Node | None = None) -> str | None:
        """Return the token for an argument at a node, else where the run stands; None where there is no such token."""
        at = node or self._tip
        if argument == "stateToken":
            return self.mint.state(at.node)
        standing = node_position(self.scene.session, at.node)
        if standing.passed_to is not None or standing.is_used_up or self.scene.place(at) is None:
            return None
        last = standing.last
        return self.mint.ack(last.node) if argument == "ackToken" else self.mint.checkpoint(last.node, last.checkpoints)

    def issued(self, argument: Argument) -> Iterator[str]:
        """Yield the tokens for an argument of the run's nodes, on every branch, the latest first."""
        nodes = (node for node in self.scene.session.nodes.values() if node.run == self.scene.run.run)
        for node in nlargest(NEAR_TOKEN_NODES_MAX, nodes, key=lambda node: node.index):
            match argument:
                case "stateToken":
                    yield self.mint.state(node.node)
                case "ackToken":
                    yield self.mint.ack(node.node)
                    yield from (self.mint.fork(node.node, number) for number in range(node.forks + 1))
                case "checkpointToken":
                    yield from (self.mint.checkpoint(node.node, number) for number in range(node.checkpoints + 1))

    @property
    def _tip(self) -> Node:
        assert self.scene.run.tip is not None, "a run with a node has a tip"
        return self.scene.session.nodes[self.scene.run.tip]


def place_of(ports: ReadPorts, session: Session, run: Run) -> RunTokens | None:
    """Return a run as a place; None where its workflow cannot be read, or no key ring stands that could sign for it."""
    ring = ports.key_ring.keys()
    if ring is None or run.tip is None:
        return None
    try:
        scene = load_run_context(session, run, ports.plans)
    except _UNREADABLE:
        return None
    return RunTokens(scene=scene, mint=Mint(ring=ring, session=session, run=run, form=ports.token_format))


def place_of_run(ports: ReadPorts, session: SessionId, run: RunId) -> RunTokens | None:
    """Return a run of a session as a place; None where it is not there, or cannot be read."""
    found = _loaded(ports, session)
    return place_of(ports, found, found.runs[run]) if found is not None and run in found.runs else None


def place_labelled(ports: ReadPorts, label: str, first: Session | None = None) -> RunTokens | None:
    """Return the run that bears a label: one of the session that is looked at first, else the only one there is."""
    run = _labelled(first, label) if first is not None else None
    if first is not None and run is not None:
        return place_of(ports, first, run)
    told = ports.listing().sessions
    bearing = [(one.session, run.run) for one in told for run in one.runs if label in (run.label, run.run)]
    return place_of_run(ports, *bearing[0]) if len(bearing) == 1 else None


def suggest_token(ports: ReadPorts, text: str, argument: Argument, label: str | None) -> str | None:
    """Return the issued token that a text nearly is: cut, respelled, or in another case; None where it is none."""
    found = text.strip()
    for place in _places(ports, found, label):
        for token in place.issued(argument):
            if _is_near(found, token):
                return token
    return None


def label_in(text: str) -> str | None:
    """Return the label that a text says if it begins as a token of format 2 does."""
    found = _LABELLED.match(text)
    return found[1].lower() if found is not None else None


def _places(ports: ReadPorts, text: str, label: str | None) -> Iterator[RunTokens]:
    claimed = decode_token(text).session
    session = _loaded(ports, claimed) if claimed is not None else None
    if session is not None:
        yield from filter(None, (place_of(ports, session, run) for run in session.runs.values()))
    for named in dict.fromkeys(filter(None, (label, label_in(text)))):
        place = place_labelled(ports, named)
        if place is not None:
            yield place


def _loaded(ports: ReadPorts, session: SessionId) -> Session | None:
    try:
        return ports.load(session)
    except _UNREADABLE:
        return None


def _labelled(session: Session, label: str) -> Run | None:
    return next((run for run in session.runs.values() if label in (session.label(run.run), run.run)), None)


def _is_near(text: str, token: str) -> bool:
    """Say whether a text is a token but for one damaged place. Case is what agents lose first."""
    found, wanted = text.lower(), token.lower()
    same = _common(found, wanted)
    same += _common(found[same:][::-1], wanted[same:][::-1])
    return max(len(found), len(wanted)) - same <= NEAR_TOKEN_CHARS_MAX


def _common(one: str, other: str) -> int:
    """Return how many characters two texts begin with alike."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (left, right) in enumerate(pairs) if left != right), min(len(one), len(other)))
