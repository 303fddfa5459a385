"""Makes the tokens of a run, signed with the key ring, in the configured format (TOK-1, TOK-8)."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from interlock.kernel.frozen import frozen
from interlock.kernel.ids import AttemptId, NodeId, ack_attempt, checkpoint_attempt, fork_attempt, tag_of
from interlock.record.base import SHORT, TokenFormat
from interlock.record.short_tokens import ShortKind, ShortRef, mint_short
from interlock.record.tokens import AttemptRef, StateRef, TokenKind, mint
from interlock.service.ports import ReadPorts
from interlock.store.ports.keys import KeyRing
from interlock.views.session import Run, Session

Argument = Literal["ackToken", "stateToken", "checkpointToken"]
"""The arguments that hold a token."""
PREFIXES: Mapping[Argument, str] = MappingProxyType(
    {"ackToken": "ack_", "stateToken": "st_", "checkpointToken": "chk_"}
)
"""The prefix of a short token, by the argument that takes it."""


@frozen
class Mint:
    """Makes the tokens of one run, all signed with the current key."""

    ring: KeyRing
    session: Session
    run: Run
    form: TokenFormat = 2

    def state(self, node: NodeId) -> str:
        """Return the token that shows a node and changes nothing."""
        if self._is_short(node):
            return self._short(ShortKind.STATE, node)
        ref = StateRef(session=self.session.session, run=self.run.run, node=node, workflow_hash=self.run.workflow_hash)
        return mint(ref, self.ring.current)

    def ack(self, node: NodeId) -> str:
        """Return the token that reports the step of a node on the same branch; a fork has its own token."""
        if self._is_short(node):
            return self._short(ShortKind.ACK, node)
        return self._attempt(TokenKind.ACK, node, ack_attempt(node))

    def fork(self, node: NodeId, number: int) -> str:
        """Return the token of the fork of a node with this number, counted from 0."""
        if self._is_short(node):
            return self._short(ShortKind.FORK, node, number)
        return self._attempt(TokenKind.ACK, node, fork_attempt(node, number))

    def retry(self, node: NodeId, attempt: AttemptId) -> str:
        """Return the token that makes an unrecorded attempt on a node again: its ack, or that of its next fork."""
        is_ack = attempt == ack_attempt(node)
        return self.ack(node) if is_ack else self.fork(node, self.session.nodes[node].forks)

    def checkpoint(self, node: NodeId, number: int) -> str:
        """Return the token that makes the checkpoint of a node with this number, counted from 0."""
        if self._is_short(node):
            return self._short(ShortKind.CHECKPOINT, node, number)
        return self._attempt(TokenKind.CHECKPOINT, node, checkpoint_attempt(node, number))

    def _is_short(self, node: NodeId) -> bool:
        return self.form == SHORT and self.session.has_tag(node)

    def _short(self, kind: ShortKind, node: NodeId, number: int = 0) -> str:
        label = self.session.label(self.run.run)
        ref = ShortRef(kind=kind, session=self.session.session, label=label, tag=tag_of(node), number=number)
        return mint_short(ref, self.ring.current)

    def _attempt(self, kind: TokenKind, node: NodeId, attempt: AttemptId) -> str:
        ref = AttemptRef(kind=kind, session=self.session.session, run=self.run.run, node=node, attempt=attempt)
        return mint(ref, self.ring.current)


def minting(ports: ReadPorts, ring: KeyRing, session: Session, run: Run) -> Mint:
    """Return the mint of a run, for the configured token format.

    The key ring is a parameter because callers that append load it first: after an append, loading it must not fail.
    """
    return Mint(ring=ring, session=session, run=run, form=ports.token_format)
