"""Minting and resolving tokens with the key ring (locks 1.2, D3, D15)."""

from dataclasses import dataclass
from typing import Literal

from interlock.engine.answer import RunWords
from interlock.kernel.canonical import Json
from interlock.kernel.errors import ErrorCode, Refusal
from interlock.kernel.ids import AttemptId, NodeId
from interlock.record.tokens import (
    AttemptRef,
    StateRef,
    TokenFault,
    TokenKind,
    TokenRef,
    kind_of,
    mint,
    verify,
)
from interlock.service.ports import ReadPorts
from interlock.service.words import scene_of
from interlock.store.ports import KeyRing
from interlock.views.session import LABEL_CHARS, Run, Session

Argument = Literal["ackToken", "stateToken"]

_WANTED = {"ackToken": TokenKind.ACK, "stateToken": TokenKind.STATE}
_SHAPE = {"ackToken": "`ack.v1.…`", "stateToken": "`st.v1.…`"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mint:
    """Makes the tokens of one run, all signed with the current key."""

    ring: KeyRing
    session: Session
    run: Run

    def state(self, node: NodeId) -> str:
        """Return the token that looks at a node."""
        ref = StateRef(session=self.session.session, run=self.run.run, node=node, workflow_hash=self.run.workflow_hash)
        return mint(ref, self.ring.current)

    def attempt(self, node: NodeId, attempt: AttemptId) -> str:
        """Return the token that makes an attempt on a node."""
        ref = AttemptRef(kind=TokenKind.ACK, session=self.session.session, run=self.run.run, node=node, attempt=attempt)
        return mint(ref, self.ring.current)


def resolved(ports: ReadPorts, text: str, argument: Argument) -> TokenRef | Refusal:
    """Return what a token refers to, or why it is refused. A failed signature reads the key ring once more."""
    for fresh in (False, True):
        ring = ports.key_ring.keys(fresh=fresh)
        found = verify(text, ring.keys() if ring is not None else ())
        if not isinstance(found, TokenFault):
            return found if kind_of(found) is _WANTED[argument] else _wrong_kind(ports, found, argument)
        if found.code is not ErrorCode.TOKEN_BAD_SIGNATURE:
            break
    return _refused(found, argument)


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
        suggestion="Nothing is guessed. Ask the user whether the data directory was restored from a backup. To go on,"
        " use a token of an earlier answer of this run, or begin anew with `start_workflow`.",
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
        suggestion=f"{copy} If there is none, begin with `start_workflow`.",
        details={"argument": argument, "found": fault.found},
    )
