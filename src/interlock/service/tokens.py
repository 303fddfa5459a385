"""Minting and resolving tokens with the key ring (locks 1.2, D3, D15)."""

from dataclasses import dataclass
from typing import Literal

from interlock.engine.answer import RunWords
from interlock.kernel.canonical import Json
from interlock.kernel.errors import ErrorCode, Refusal
from interlock.kernel.ids import AttemptId, NodeId, ack_attempt, checkpoint_attempt, fork_attempt, tag_of
from interlock.record.base import SHORT, TokenFormat
from interlock.record.short_tokens import ShortKind, ShortRef, mint_short, verified
from interlock.record.tokens import AttemptRef, StateRef, TokenFault, TokenKind, TokenRef, kind_of, mint
from interlock.service.ports import ReadPorts
from interlock.service.words import scene_of
from interlock.store.ports import KeyRing, SessionUnhealthyError
from interlock.views.session import LABEL_CHARS, Run, Session

Argument = Literal["ackToken", "stateToken", "checkpointToken"]

_WANTED = {"ackToken": TokenKind.ACK, "stateToken": TokenKind.STATE, "checkpointToken": TokenKind.CHECKPOINT}
_SHAPE = {"ackToken": "`ack_`", "stateToken": "`st_`", "checkpointToken": "`chk_`"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mint:
    """Makes the tokens of one run, all signed with the current key."""

    ring: KeyRing
    session: Session
    run: Run
    form: TokenFormat = 2

    def state(self, node: NodeId) -> str:
        """Return the token that looks at a node."""
        if self._is_short(node):
            return self._short(ShortKind.STATE, node)
        ref = StateRef(session=self.session.session, run=self.run.run, node=node, workflow_hash=self.run.workflow_hash)
        return mint(ref, self.ring.current)

    def ack(self, node: NodeId) -> str:
        """Return the token of the one ordinary attempt on a node."""
        if self._is_short(node):
            return self._short(ShortKind.ACK, node)
        return self._attempt(TokenKind.ACK, node, ack_attempt(node))

    def fork(self, node: NodeId, number: int) -> str:
        """Return the token of the fork of a node with this number, counted from 0."""
        if self._is_short(node):
            return self._short(ShortKind.FORK, node, number)
        return self._attempt(TokenKind.ACK, node, fork_attempt(node, number))

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


def minting(ports: ReadPorts, session: Session, run: Run) -> Mint:
    """Return what mints a run's tokens with the key ring that stands, made if there was none.

    Raises:
        KeyRingDamagedError, StoreFailureError: The ring cannot be used or made.
    """
    return Mint(ring=ports.key_ring.ensured(), session=session, run=run, form=ports.token_format)


def resolved(ports: ReadPorts, text: str, argument: Argument) -> TokenRef | Refusal:
    """Return what a token refers to, or why it is refused. A failed signature reads the key ring once more."""
    for fresh in (False, True):
        ring = ports.key_ring.keys(fresh=fresh)
        found = verified(text, ring.keys() if ring is not None else ())
        if not isinstance(found, TokenFault):
            ref = _whole(ports, found, argument) if isinstance(found, ShortRef) else found
            if isinstance(ref, Refusal):
                return ref
            return ref if kind_of(ref) is _WANTED[argument] else _wrong_kind(ports, ref, argument)
        if found.code is not ErrorCode.TOKEN_BAD_SIGNATURE:
            break
    return _refused(found, argument)


def _whole(ports: ReadPorts, ref: ShortRef, argument: Argument) -> TokenRef | Refusal:
    """Return the reference that a short one stands for in its session, or say that history is gone (D3)."""
    try:
        session = ports.reader.load(ref.session)
    except SessionUnhealthyError as error:
        error.label = ref.label
        raise
    whole = whole_reference(session, ref) if session is not None else None
    return whole or lost_history(argument, label=ref.label)


def whole_reference(session: Session, ref: ShortRef) -> TokenRef | None:
    """Return the reference that a short one stands for in its session; None where the session has no such node."""
    node = session.nodes.get(session.tags.get(ref.tag, NodeId("")))
    if node is None:
        return None
    attempts = {ShortKind.FORK: fork_attempt, ShortKind.CHECKPOINT: checkpoint_attempt}
    if ref.kind is ShortKind.STATE:
        run = session.runs[node.run]
        return StateRef(session=ref.session, run=node.run, node=node.node, workflow_hash=run.workflow_hash)
    attempt_of = attempts.get(ref.kind)
    attempt = attempt_of(node.node, ref.number) if attempt_of is not None else ack_attempt(node.node)
    return AttemptRef(kind=ref.kind.kind, session=ref.session, run=node.run, node=node.node, attempt=attempt)


def scope_mismatch(message: str, suggestion: str, **details: Json) -> Refusal:
    """Return the refusal of a token that is ours but does not belong here."""
    return Refusal(code=ErrorCode.TOKEN_SCOPE_MISMATCH, message=message, suggestion=suggestion, details=details)


def lost_history(argument: Argument, *, words: RunWords | None = None, label: str = "") -> Refusal:
    """Return the refusal of a token whose node or attempt the log does not hold: history is gone (D2)."""
    named: dict[str, Json] = words.to_json() if words else {"label": label}
    return Refusal(
        code=ErrorCode.TOKEN_UNKNOWN_NODE,
        message=f"The `{argument}` was issued here, but the log of run `{named['label']}` does not hold what it refers"
        " to: the stored history is shorter than when the token was issued.",
        suggestion="Nothing is guessed. Ask the user whether the data directory was restored from a backup, and to run"
        " `interlock doctor`. To go on, use a token of an earlier answer of this run, or begin anew with"
        " `start_workflow`.",
        details={"run": named},
    )


def _wrong_kind(ports: ReadPorts, ref: TokenRef, argument: Argument) -> Refusal:
    kind = kind_of(ref)
    named: dict[str, Json] = {"label": ref.run[-LABEL_CHARS:]}
    session = ports.reader.load(ref.session)
    if session is not None and ref.run in session.runs:
        named = scene_of(session, session.runs[ref.run], ports.plans).words().to_json()
    of_run = f"run `{named['label']}`" + (f" ({named['workflowId']})" if "workflowId" in named else "")
    return scope_mismatch(
        f"`{argument}` holds a token of kind {kind.value}, of {of_run}.",
        f"Send it as `{kind.value}Token`, or put the `{argument}` of that run's last answer here; it begins with"
        f" {_SHAPE[argument]}.",
        found=kind.value,
        expected=_WANTED[argument].value,
        run=named,
    )


def _refused(fault: TokenFault, argument: Argument) -> Refusal:
    copy = f"Copy the `{argument}` of the last answer of this run, whole and unchanged."
    match fault.code:
        case ErrorCode.TOKEN_UNSUPPORTED_VERSION:
            message = f"`{argument}` is a token of {fault.found}, which this release does not know."
        case ErrorCode.TOKEN_BAD_SIGNATURE:
            message = (
                f"`{argument}` does not verify: this data directory did not issue it, its text was altered, or its key"
                " was rotated out."
            )
        case _:
            message = f"`{argument}` is not a token ({fault.found}); one begins with {_SHAPE[argument]}."
    return Refusal(
        code=fault.code,
        message=message,
        suggestion=f"{copy} If there is none, `resume_session` finds the run, with a few words of its goal.",
        details={"argument": argument, "found": fault.found},
    )
